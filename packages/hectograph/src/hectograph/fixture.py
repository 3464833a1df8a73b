"""The pytest fixture ``workspace``: an emulator of its own for each test, on a free port."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hectograph.emulator import Emulator


@pytest.fixture
def workspace() -> Iterator[Emulator]:
    """Start an emulator without books or files; it stops when the test ends."""
    with Emulator() as running:
        yield running
