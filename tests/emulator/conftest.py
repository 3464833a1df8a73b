"""An emulator per test, on a free port; what it leaves running fails the test."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from quire.testing.emulator import Emulator
from tests.emulator.api import Api, Book


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
