"""Async tests run on asyncio, by the plugin of anyio, which Quire's libraries bring along."""

import pytest


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
