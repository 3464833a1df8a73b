"""An emulator per test, on a free port; what it leaves running fails the test."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from emulator_api import Api, Book
from hectograph import Emulator


@pytest.fixture
def emulator() -> Iterator[Emulator]:
    before = set(threading.enumerate())  # other tests may share one that lasts
    with Emulator() as running:
        yield running
    left = set(threading.enumerate()) - before
    assert [t.name for t in left if t.name.startswith("emulator")] == []


@pytest.fixture
def api(emulator: Emulator) -> Api:
    return Api(emulator)


@pytest.fixture
def book(api: Api) -> Book:
    return api.book()


@pytest.fixture(scope="session")
def browser_type_launch_args() -> dict[str, Any]:
    """Playwright's ``page`` drives the system's Chromium, which talks to nobody else."""
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    chromium = next((path for path in map(shutil.which, names) if path is not None), None)
    if chromium is None:
        reason = "There is no Chromium on this machine: install the package chromium to run the browser tests."
        pytest.fail(reason, pytrace=False) if os.environ.get("CI") else pytest.skip(reason)
    quiet = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic"]
    as_root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    return {"executable_path": chromium, "args": ["--disable-gpu", "--no-first-run", *quiet, *as_root]}
