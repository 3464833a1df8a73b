"""What the pages show runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)


def test_the_fifteen_lines_of_the_readme_run_and_are_well_typed(tmp_path: Path) -> None:
    [code] = blocks("README.md")
    (tmp_path / "fifteen.py").write_text(code)

    told = subprocess.run([sys.executable, "fifteen.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    typed = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--cache-dir",
            str(tmp_path / "cache"),
            str(tmp_path / "fifteen.py"),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert told.returncode == 0 and told.stdout.startswith("https://example.org/"), told.stderr
    assert typed.returncode == 0, typed.stdout


def test_every_page_that_is_named_exists() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    missing = [
        f"{page.relative_to(ROOT)}: {name}"
        for page in pages
        for name in re.findall(r"`((?:docs|examples|src|tests)/[\w./-]+\.\w+)`", page.read_text())
        if not (ROOT / name).exists()
    ]

    assert missing == []
