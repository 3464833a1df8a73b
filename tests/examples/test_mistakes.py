"""What a type checker tells users before anything runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
MISTAKES = Path(__file__).with_name("mistakes.py")


def test_the_eight_mistakes_are_found_and_nothing_else(tmp_path: Path) -> None:
    lines = MISTAKES.read_text().splitlines()
    wanted = {number for number, line in enumerate(lines, 1) if "# MISTAKE" in line}
    assert len(wanted) == 8

    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), str(MISTAKES)]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout

    found = {int(line) for line in re.findall(r"mistakes\.py:(\d+): error", told)}
    assert found == wanted, told
