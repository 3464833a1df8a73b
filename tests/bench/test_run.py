"""One tiny run from end to end: Quire on SQLite beside the raw limit, resumed, and rendered once more."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench import harness

BENCH = Path(harness.__file__).parent


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCH / "run.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def figures(results: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(run["workload"], run["peer"]): run["figures"] for run in results["runs"]}


def test_a_run_measures_writes_its_page_and_is_resumed_without_measuring_again(tmp_path: Path) -> None:
    given = ["--quick", "--here", "--repeat", "1", "--workloads", "W2", "--scratch", str(tmp_path)]
    first = bench(*given, "--peers", "raw_sqlite", "--out", str(tmp_path / "out"))
    assert first.returncode == 0, first.stderr
    raw = tmp_path / "out" / "benchmarks" / "results.json"
    assert list(figures(json.loads(raw.read_text()))) == [("W2", "raw_sqlite")]

    second = bench(*given, "--peers", "quire_sqlite,raw_sqlite", "--resume", str(raw))
    assert second.returncode == 0, second.stderr
    results = json.loads(raw.read_text())
    found = figures(results)
    assert list(found) == [("W2", "raw_sqlite"), ("W2", "quire_sqlite")]
    assert found["W2", "quire_sqlite"]["steps"] == found["W2", "raw_sqlite"]["steps"] == 300
    assert found["W2", "quire_sqlite"]["cpu"]["own"] > 0
    [profile] = results["profiles"]
    assert profile["threads"]["MainThread"]["quire/run/passes.py"] > 0
    assert any("~sqlite" in modules for modules in profile["threads"].values())

    page = tmp_path / "out" / "benchmarks.md"
    text = page.read_text()
    assert "## W2: 300 records x 10 no-op durable steps at once" in text
    assert "| rules (rules) |" in text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]  # the scratch directories are gone
    page.unlink()
    harness.main(["--render", str(raw)])
    assert page.read_text() == text


def test_a_quick_run_is_not_resumed_as_a_full_one(tmp_path: Path) -> None:
    raw = tmp_path / "results.json"
    raw.write_text(json.dumps({"quick": True}))
    with pytest.raises(SystemExit, match="cannot be mixed"):
        harness.resumed(harness.arguments(["--resume", str(raw)]))


@pytest.mark.parametrize(
    ("arguments", "folder"),
    [
        ([], BENCH.parent / "docs"),
        (["--minutes", "50"], BENCH.parent / "docs"),
        (["--quick"], BENCH / ".out"),
        (["--peers", "quire"], BENCH / ".out"),
        (["--resume", "/tmp/page/benchmarks/results.json"], Path("/tmp/page")),
    ],
)
def test_only_a_whole_run_writes_into_the_docs(arguments: list[str], folder: Path) -> None:
    assert harness.where_to(harness.arguments(arguments)) == folder
