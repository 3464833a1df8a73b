"""A newcomer in an empty directory for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.first_hour.newcomer import Newcomer


@pytest.fixture
def newcomer(fresh: Path, tmp_path: Path) -> Iterator[Newcomer]:
    home = tmp_path / "shop"
    home.mkdir()
    found = Newcomer(fresh, home)
    yield found
    found.leave()
