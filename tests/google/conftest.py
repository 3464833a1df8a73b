"""An emulator per test, and a transport that does not really wait."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from hectograph import Emulator
from quire.google.credentials import StaticToken
from quire.google.transport import Transport


class Hurried:
    """A clock that sleeps by jumping ahead, and remembers how long."""

    def __init__(self) -> None:
        self.time = 1_000.0
        self.slept: list[float] = []

    def now(self) -> float:
        return 1.8e9 + self.time

    def boottime(self) -> float:
        return self.time

    async def sleep(self, span: float) -> None:
        self.slept.append(span)
        self.time += span


@pytest.fixture
def emulator() -> Iterator[Emulator]:
    with Emulator() as running:
        yield running


@pytest.fixture
def hurried() -> Hurried:
    return Hurried()


@pytest.fixture
def transport(emulator: Emulator, hurried: Hurried) -> Transport:
    return Transport(StaticToken("ann", "ann@example.com"), endpoint=emulator.url, per_minute=None, clock=hurried)


def control(emulator: Emulator, method: str, path: str, body: Any = None) -> Any:
    answer = emulator.call(method, f"/emulator/{path}", body)
    assert answer.status < 300, answer.body
    return json.loads(answer.body)
