"""A world of Google for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hectograph import Emulator
from tests.workspace.worlds import ME, World


@pytest.fixture
def world() -> Iterator[World]:
    with Emulator(account=ME) as emulator:
        yield World(emulator)
