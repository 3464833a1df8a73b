"""``run.call``: how the value of a function is written and read."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from quire import Run, aopen, workflow
from quire.ledger.memory.ledger import MemoryLedger
from quire.model.change import Change, Verdict
from quire.model.codec import parse
from quire.run.calls import returns


class Adds:
    __hash__ = None  # type: ignore[assignment]

    def __call__(self, a: int, b: int) -> int:
        return a + b


class Text:
    def shout(self) -> list[str]:
        return ["HEY"]


def test_the_return_annotation_decides_whatever_the_callable_is_like() -> None:
    def plain() -> dict[str, int]:
        return {}

    text = Text()
    assert returns(plain).type == dict[str, int]
    assert returns(partial(plain)) is returns(plain)
    assert returns(text.shout).type == list[str]
    assert returns(text.shout) is returns(Text().shout)
    assert returns(len).type is Any
    assert returns(Adds()).type is int


def test_a_closure_that_was_called_is_not_kept_alive() -> None:
    def made(held: Text) -> Callable[[], Text]:
        def closure() -> Any:
            return held

        return closure

    held = Text()
    seen = weakref.ref(held)
    assert returns(made(held)).type is Any

    del held
    gc.collect()

    assert seen() is None


async def test_a_note_within_a_long_call_is_seen_before_the_call_ends() -> None:
    go, noted = threading.Event(), asyncio.Queue[str]()

    class Ledger(MemoryLedger):
        async def commit(self, changes: Sequence[Change]) -> list[Verdict]:
            verdicts = await super().commit(changes)
            for line in (line for change in changes for line in change.lines if line.kind == "noted"):
                noted.put_nowait(parse(line.body)["note"])
            return verdicts

    @workflow
    async def reads(run: Run[dict[str, Any]]) -> None:
        async def in_the_loop() -> None:
            run.note("page 1 of 10")

        def in_a_thread() -> None:
            run.note("page 5 of 10")
            go.wait(30)

        await run.call(in_the_loop)
        await run.call(in_a_thread)

    async with aopen(Ledger(), workflows=[reads]) as q, q.worker():
        await q.start(reads, {}, id="r")
        try:
            while await asyncio.wait_for(noted.get(), 30) != "page 5 of 10":
                pass
            shown = await q.show("r")
            assert (shown.record.status, shown.record.note) == ("RUNNING", "page 5 of 10")
        finally:
            go.set()
        await q.until_ended("r", timeout="10s")
        assert (await q.get("r")).note == "page 5 of 10"
