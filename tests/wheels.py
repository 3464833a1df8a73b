"""Wheels of this repository, and fresh environments in which they are installed."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]


def build(project: Path, to: Path) -> Path:
    """Build the wheel of one distribution of this repository."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(to)]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    [wheel] = to.glob(f"{project.name if project != ROOT else 'quire'}-*.whl")
    return wheel


def environment(path: Path, *wheels: str) -> Path:
    """Make a fresh environment in which these are installed, with the pinned versions of what they need.

    Where no package index can be reached, what they need is that of the tests' own environment.
    """
    venv.create(path, with_pip=False)
    uv = Path(sys.executable).with_name("uv")
    installer = [str(uv), "pip", "install", "--link-mode", "symlink", "--python", str(path / "bin" / "python")]
    if not uv.exists():
        installer = [sys.executable, "-m", "pip", "--python", str(path / "bin" / "python"), "install"]
    pinned = ["--constraint", str(ROOT / "constraints.txt")]
    done = subprocess.run([*installer, *pinned, *wheels], capture_output=True, text=True, check=False)
    if done.returncode:
        bare = [wheel.partition("[")[0] for wheel in wheels if wheel.partition("[")[0].endswith(".whl")]
        subprocess.run([*installer, "--no-deps", *bare], capture_output=True, text=True, check=True)
        [packages] = path.glob("lib/python3*/site-packages")
        [libraries] = (Path(sys.prefix) / packages.relative_to(path)).parent.glob("site-packages")
        # Editable installs of this repository are files of the same kind, which are not read from there.
        (packages / "libraries.pth").write_text(f"{libraries}\n")
    return path


def installed(environment: Path, home: Path) -> dict[str, str]:
    """Return the variables of somebody who has activated this environment, and nothing else of this process."""
    kept = ("LANG", "LC_ALL", "TMPDIR", "DATABASE_URL")
    return {
        "PATH": f"{environment / 'bin'}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(home),
        "PYTHONUNBUFFERED": "1",
        "COLUMNS": "200",
        **{name: os.environ[name] for name in kept if name in os.environ},
    }


def settings_of_pip(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what tells pip, uv and git how this machine reaches a package index: certificates, mirrors, proxies."""
    names = ("PIP_", "UV_", "SSL_", "GIT_SSL_", "REQUESTS_", "CURL_", "XDG_")
    return {
        name: value
        for name, value in environ.items()
        if name.startswith(names) or name.lower() in ("http_proxy", "https_proxy", "no_proxy")
    }
