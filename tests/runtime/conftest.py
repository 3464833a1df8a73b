"""Stores by their address, for tests that start processes of their own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

StartWorker = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty ledger that several processes may share."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/ledger.db"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
def stores(tmp_path: Path, postgres_url: str) -> list[str]:
    """All of them, for a test that waits more than it works."""
    return [f"sqlite:///{tmp_path}/ledger.db", postgres_url]


@pytest.fixture
def sink_path(tmp_path: Path) -> Path:
    return tmp_path / "sink.txt"


@pytest.fixture
def start_worker(request: pytest.FixtureRequest, sink_path: Path) -> Iterator[StartWorker]:
    """Starts worker processes of ``tests.runtime.desk``; those that are left are killed in the end."""
    started: list[subprocess.Popen[str]] = []

    def start(*options: str, store: str = "", sink: Path = sink_path) -> subprocess.Popen[str]:
        url = store or request.getfixturevalue("store")
        command = [sys.executable, "-m", "tests.runtime.desk", url, str(sink), *options]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    yield start

    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()
