"""What a type checker tells users before anything runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
MISTAKES = Path(__file__).with_name("mistakes.py")
#: What the checker knows of the libraries is kept from run to run; a directory of its own, for it runs beside others.
KNOWN = ROOT / ".mypy_cache" / "mistakes"


def test_the_eight_mistakes_are_found_and_nothing_else(tmp_path: Path) -> None:
    """Nor anything in the fifteen lines of the README: one run of the checker, which takes long to begin."""
    lines = MISTAKES.read_text().splitlines()
    wanted = {number for number, line in enumerate(lines, 1) if "# MISTAKE" in line}
    assert len(wanted) == 8
    [code] = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    readme = tmp_path / "fifteen.py"
    readme.write_text(code)

    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(KNOWN), str(MISTAKES), str(readme)]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout

    found = [(file, int(line)) for file, line in re.findall(r"(\w+\.py):(\d+): error", told)]
    assert sorted(set(found)) == [("mistakes.py", number) for number in sorted(wanted)], told
    assert "Found 8 errors in 1 file (checked 2 source files)" in told
