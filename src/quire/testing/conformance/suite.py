"""How the ``async def`` tests of the conformance suite run: each in a loop of its own, with its ledgers open."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from quire.ledger.base import Ledger
from quire.testing.clock import ToldClock

#: Asks one thing of one instance and another of the other, so that they meet; answers what both answered.
Together = Callable[[Ledger, Awaitable[Any], Ledger, Awaitable[Any]], Awaitable[tuple[Any, Any]]]


async def at_once(_first: Ledger, one: Awaitable[Any], _second: Ledger, two: Awaitable[Any]) -> tuple[Any, Any]:
    """Both at once, as they come. A store that can hold a verb between its locks and its decision does better."""
    return await asyncio.gather(one, two)


def _with_open_ledgers(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @functools.wraps(test)
    def run_test(self: object, **fixtures: Any) -> None:
        ledgers = [value for value in fixtures.values() if isinstance(value, Ledger)]

        async def opened() -> None:
            try:
                await asyncio.gather(*(ledger.open() for ledger in ledgers))
                await test(self, **fixtures)
            finally:
                await asyncio.gather(*(ledger.close() for ledger in ledgers))

        if not _loop_is_running():
            asyncio.run(opened())
            return
        with ThreadPoolExecutor(1) as other_thread:
            other_thread.submit(lambda: asyncio.run(opened())).result()

    return run_test


def _loop_is_running() -> bool:
    """Whether this thread is taken: some plugins leave a loop of their own running in it."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class Suite:
    """Runs the ``async def`` tests of its subclasses, with their ledgers open."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, test in list(vars(cls).items()):
            if name.startswith("test_") and inspect.iscoroutinefunction(test):
                setattr(cls, name, _with_open_ledgers(test))

    @pytest.fixture
    def clock(self) -> ToldClock:
        return ToldClock()

    @pytest.fixture
    def twin(self) -> Ledger:
        pytest.skip("there is no second instance on this store: the fixture 'twin' gives one")

    @pytest.fixture
    def emptied(self) -> Callable[[], object]:
        pytest.skip("this store cannot be emptied while it is open: the fixture 'emptied' gives a function for it")

    @pytest.fixture
    def together(self) -> Together:
        return at_once
