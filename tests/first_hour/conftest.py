"""The fresh environment, made once for all test processes, and a newcomer in an empty directory for each test."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.first_hour.newcomer import ROOT, Newcomer, build, environment


@pytest.fixture(scope="session")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment made from the built wheels of Quire, with the dashboard, and of the emulator."""
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "first_hour"
    shared.mkdir(exist_ok=True)
    with open(shared / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the first one makes it, the others wait for it
        made = shared / "environment"
        if not (shared / "made").exists():
            quire = build(ROOT, shared / "dist")
            hectograph = build(ROOT / "packages" / "hectograph", shared / "dist")
            environment(made, f"{quire}[web,google]", str(hectograph))
            (shared / "made").touch()
    return made


@pytest.fixture
def newcomer(fresh: Path, tmp_path: Path) -> Iterator[Newcomer]:
    home = tmp_path / "shop"
    home.mkdir()
    found = Newcomer(fresh, home)
    yield found
    found.leave()
