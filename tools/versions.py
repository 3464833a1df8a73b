"""Runs the tests with the newest and the oldest allowed versions of every dependency: ``python tools/versions.py``.

For each of the two, uv resolves what pyproject.toml asks for; the oldest is every requirement of ours at its lower
bound. The built wheels are installed with these versions into an environment below build/versions, and the tests run
there: on what is installed, not on the sources. Words that follow go to pytest.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLACE = ROOT / "build" / "versions"
UV = Path(sys.executable).with_name("uv")
#: Pages that are made with the pinned versions, and tests of those pins.
PINNED = ("tests/surfaces/cli/test_shell.py::test_the_reference_of_the_commands_is_up_to_date",)
RESOLUTIONS = {"newest": "highest", "oldest": "lowest-direct"}


def resolved(which: str) -> Path:
    """Write the versions that are taken, and return the file."""
    python = ".".join(map(str, sys.version_info[:2]))
    words = [str(UV), "pip", "compile", "--quiet", "--resolution", RESOLUTIONS[which], "--python-version", python]
    words += ["--extra", "dev", "--no-annotate", "--no-header", "pyproject.toml"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    kept = [line for line in done.stdout.splitlines() if "packages/" not in line]
    versions = PLACE / f"{which}.txt"
    versions.parent.mkdir(parents=True, exist_ok=True)
    versions.write_text("\n".join([*kept, ""]), encoding="utf-8")
    return versions


def environment(which: str) -> Path:
    versions, made = resolved(which), PLACE / which
    shutil.rmtree(made, ignore_errors=True)
    dist = PLACE / "dist"
    for folder in (ROOT, ROOT / "packages" / "hectograph"):
        words = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(dist)]
        subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    [quire], [hectograph] = dist.glob("quire-*.whl"), dist.glob("hectograph-*.whl")
    subprocess.run([UV, "venv", "--quiet", "--python", sys.executable, made], check=True)
    words = [
        str(UV),
        "pip",
        "install",
        "--quiet",
        "--compile-bytecode",
        "--python",
        str(made / "bin" / "python"),
        "--constraint",
        str(versions),
    ]
    # The tests look for uv and for the builder beside their Python.
    subprocess.run([*words, f"{quire}[dev]", str(hectograph), "uv"], check=True)
    return made


def main(given: Sequence[str]) -> int:
    chosen = [word for word in given if word in RESOLUTIONS] or list(RESOLUTIONS)
    others = [word for word in given if word not in RESOLUTIONS]
    failed = False
    for which in chosen:
        made = environment(which)
        began = time.monotonic()
        words = [
            str(made / "bin" / "pytest"),
            "-q",
            "-p",
            "no:cacheprovider",
            *(f"--deselect={name}" for name in PINNED),
        ]
        done = subprocess.run([*words, *others], cwd=ROOT, check=False)
        took = time.monotonic() - began
        sys.stdout.write(f"{which}: pytest ended with {done.returncode} after {took:.0f} s; {PLACE / which}.txt\n")
        failed = failed or done.returncode != 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
