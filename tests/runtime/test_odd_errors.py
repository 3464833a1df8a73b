"""Whatever a user's code raises, and wherever: it is a try that failed, with a sentence, and it is counted."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel, field_validator

from quire import Act, Cron, Record, Retry, Run, SyncRun, Workflow, effect, workflow
from quire.client.client import Client
from quire.ledger.memory.ledger import MemoryLedger
from quire.testing import ToldClock, Trial

Data = dict[str, Any]


class Panic(BaseException):
    """As of a library in another language: not an Exception."""


class Mute(Exception):
    def __str__(self) -> str:
        raise IndexError


class Unreadable:
    def __repr__(self) -> str:
        raise KeyError("repr")

    def __eq__(self, other: object) -> bool:
        raise ValueError("which of them?")

    __hash__ = object.__hash__


class Touchy(BaseModel):
    number: int = 0

    def __eq__(self, other: object) -> bool:
        raise ValueError("which of them?")

    __hash__ = object.__hash__


class Insistent(Exception):
    @property
    def retry_after(self) -> float:
        raise OSError


class Confused(Exception):
    retry_after = float("nan")


def leave() -> None:
    sys.exit(4)


@effect(repeat=True)
async def leaving(act: Act) -> None:
    sys.exit(5)


async def awaits_what_it_cancelled(run: Run[Data]) -> None:
    task = asyncio.ensure_future(asyncio.Event().wait())
    task.cancel()
    await task


async def cancels_itself(run: Run[Data]) -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.Event().wait()


async def exits(run: Run[Data]) -> None:
    sys.exit(3)


def exits_in_a_thread(run: SyncRun[Data]) -> None:
    sys.exit(3)


async def exits_in_a_call(run: Run[Data]) -> None:
    await run.all(run.call(leave))


async def exits_in_an_effect(run: Run[Data]) -> None:
    await run.once(leaving)


async def interrupts(run: Run[Data]) -> None:
    raise KeyboardInterrupt


def interrupts_in_a_thread(run: SyncRun[Data]) -> None:
    raise KeyboardInterrupt


def interrupt() -> None:
    raise KeyboardInterrupt("ctrl")


async def interrupts_in_a_call(run: Run[Data]) -> None:
    await run.all(run.call(interrupt))


async def closes(run: Run[Data]) -> None:
    raise GeneratorExit


def closes_in_a_thread(run: SyncRun[Data]) -> None:
    raise GeneratorExit


def close() -> None:
    raise GeneratorExit


async def closes_in_a_call(run: Run[Data]) -> None:
    await run.call(close)


@effect(repeat=True)
async def closing(act: Act) -> None:
    raise GeneratorExit


async def closes_in_an_effect(run: Run[Data]) -> None:
    await run.once(closing)


async def panics(run: Run[Data]) -> None:
    raise Panic("unwrap")


async def says_nothing(run: Run[Data]) -> None:
    raise Mute


async def asks_oddly(run: Run[Data]) -> None:
    raise Insistent


async def asks_for_no_time(run: Run[Data]) -> None:
    raise Confused


async def returns_what_cannot_be_shown(run: Run[Data]) -> Any:
    return Unreadable()


async def keeps_what_cannot_be_shown(run: Run[Data]) -> None:
    run.data["it"] = Unreadable()
    await run.wait("go")


async def returns_what_cannot_be_compared(run: Run[Data]) -> Touchy:
    return Touchy()


CANCELLED = "something that the step awaited was cancelled, though nobody asked the step to end"
STEPS: dict[Callable[..., Any], str] = {
    awaits_what_it_cancelled: CANCELLED,
    cancels_itself: CANCELLED,
    exits: "SystemExit: 3 (in exits",
    exits_in_a_thread: "SystemExit: 3 (in exits_in_a_thread",
    exits_in_a_call: "sys.exit(4) was called (in leave",
    exits_in_an_effect: "sys.exit(5) was called (in leaving",
    interrupts: "KeyboardInterrupt (in interrupts",
    interrupts_in_a_thread: "KeyboardInterrupt (in interrupts_in_a_thread",
    interrupts_in_a_call: "KeyboardInterrupt: ctrl was raised (in interrupt,",
    closes: "GeneratorExit (in closes",
    closes_in_a_thread: "GeneratorExit was raised (in closes_in_a_thread",
    closes_in_a_call: "GeneratorExit was raised (in close,",
    closes_in_an_effect: "GeneratorExit was raised (in closing",
    panics: "Panic: unwrap (in panics",
    says_nothing: "Mute: (it cannot say what: its __str__ raised IndexError) (in says_nothing",
    asks_oddly: "Insistent",
    asks_for_no_time: "Confused",
    returns_what_cannot_be_shown: "Unreadable is not JSON; annotate it with a type, or convert it first (it is a Unre",
    keeps_what_cannot_be_shown: "Unreadable is not JSON",
    returns_what_cannot_be_compared: "comparing it with what comes back raised ValueError: which of them?",
}


async def once_over(flow: Workflow[Any, Any, Any]) -> Record:
    """A record of this workflow after one pass."""
    clock = ToldClock()
    async with Client(MemoryLedger(clock), workflows=[flow], clock=clock) as client:
        await client.start(flow, {}, id="r")
        await client.work()
        return await client.get("r")


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
async def test_it_is_a_try_that_failed(step: Callable[..., Any]) -> None:
    record = await once_over(workflow(retry=Retry(2, first="1h"))(step))

    assert record.attempt == 1
    assert STEPS[step] in (record.last_error or "")
    assert record.status in ("PENDING", "ERROR")
    assert record.due_at is None or record.due_at < float("inf")  # nor is it no number


async def test_a_step_that_calls_exit_ends_no_other() -> None:
    @workflow(retry=Retry(1))
    async def one(run: Run[Data]) -> str:
        if run.data["exits"]:
            sys.exit(1)
        return "done"

    async with Trial(one) as trial:
        records = [await trial.start({"exits": exits}) for exits in (True, False, False)]
        await trial.settle()

        assert [record.status for record in records] == ["ERROR", "DONE", "DONE"]


async def test_a_choice_between_steps_that_cannot_be_compared_is_a_try_that_failed() -> None:
    fork: Workflow[Any, Any, Any] = Workflow("fork", retry=Retry(1))

    @fork.step(then=["left", "right"])
    async def choose(run: Run) -> Any:
        return Unreadable()

    fork.state("left")
    fork.state("right")
    record = await once_over(fork)

    assert (record.status, record.attempt) == ("ERROR", 1)
    assert "ValueError: which of them?" in (record.last_error or "")


async def test_what_says_whether_to_try_again_may_fail_too() -> None:
    @workflow(retry=Retry(3, on=lambda error: bool(error.response)))  # type: ignore[attr-defined]
    async def asks(run: Run[Data]) -> None:
        raise ValueError("no response")

    record = await once_over(asks)

    assert (record.status, record.attempt) == ("ERROR", 1)
    assert (record.last_error or "").startswith("ValueError: no response (in asks")
    assert "it is not tried again, for its Retry(on=...) raised AttributeError" in (record.last_error or "")


async def test_a_timeout_is_counted_also_if_what_says_whether_to_try_again_fails() -> None:
    begun = asyncio.Event()
    slow: Workflow[Any, Any, Any] = Workflow("slow", retry=Retry(3, on=lambda error: bool(error.response)))  # type: ignore[attr-defined]

    @slow.step(timeout="30s")
    async def only(run: Run) -> None:
        begun.set()
        await asyncio.Event().wait()

    async with Trial(slow) as trial:
        record = await trial.start({})
        settling = asyncio.ensure_future(trial.settle())
        await begun.wait()
        for _ in range(30):  # to the very end of its time: a moment later the ledger may take the run from its worker
            trial.clock.advance("1s")
            for _ in range(20):
                await trial.clock.sleep(0)
        await settling

        assert (
            record.status == "ERROR" and "took longer than its timeout of 30 s; it is not tried again" in record.error
        )


def test_a_back_off_after_a_thousand_tries_is_the_longest() -> None:
    assert Retry(5000, most="5m").delay(3000, ValueError(), lambda: 1.0) == 300.0


def price_of(data: Data) -> Data:
    return {"total": data["price"] * 2}


def exits_instead(data: Data) -> Data:
    sys.exit(1)


def makes_no_json(data: Data) -> Data:
    return {"total": object()}


@pytest.mark.parametrize(
    ("migration", "sentence"),
    [
        (price_of, "its data could not be migrated from version 1 of 'order': KeyError: 'price' (in price_of"),
        (exits_instead, "its data could not be migrated from version 1 of 'order': SystemExit: 1 (in exits_instead"),
        (makes_no_json, "what its migration made of its data cannot be kept: object is not JSON"),
    ],
)
async def test_data_that_cannot_be_migrated_are_an_error_with_the_reason(
    migration: Callable[[Data], Data], sentence: str
) -> None:
    old: Workflow[Any, Any, Any] = Workflow("order")
    new: Workflow[Any, Any, Any] = Workflow("order", version=2)
    for flow in (old, new):
        flow.state("rest", then="pay")

        @flow.step
        async def pay(run: Run) -> None: ...

    new.migrate(1)(migration)
    async with Trial(old) as trial:
        record = await trial.start({"prize": 5})
        await trial.client.move(record.record_id, "pay")
        trial.client.registry.workflows["order"] = new
        await trial.settle()

        assert (record.status, record.record.attempt) == ("ERROR", 1)
        assert sentence in record.error
        assert record.record.data == '{"prize":5}'


async def test_data_whose_type_fails_to_read_them_are_an_error_with_the_reason() -> None:
    known = {2: "two"}

    class Picky(BaseModel):
        number: int

        @field_validator("number")
        @classmethod
        def is_known(cls, number: int) -> int:
            assert known[number]
            return number

    picky = Workflow("picky", data=Picky)

    @picky.step
    async def only(run: Run[Picky]) -> None: ...

    async with Trial(picky) as trial:
        record = await trial.start(Picky(number=2))
        known.clear()
        await trial.settle()

        assert (record.status, record.record.attempt) == ("ERROR", 1)
        assert record.error == "its data does not fit Picky: reading it raised KeyError: 2"


class Moody(BaseModel):
    """It was well when its workflow was declared."""

    number: int = 0
    _well: ClassVar[bool] = True

    def __eq__(self, other: object) -> bool:
        if not Moody._well:
            raise ValueError("which of them?")
        return super().__eq__(other)

    __hash__ = object.__hash__


async def test_a_schedule_that_cannot_start_keeps_no_other_from_starting(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed: Workflow[Any, Any, Any] = Workflow("typed", data=Moody)
    plain: Workflow[Any, Any, Any] = Workflow("plain")
    for flow in (typed, plain):
        flow.on(Cron("0 2 * * *"), data={"number": 1})

        @flow.step
        async def only(run: Run[Any]) -> None: ...

    clock = ToldClock()
    async with Client(MemoryLedger(clock), workflows=[typed, plain], clock=clock) as client:
        await client.work()
        clock.advance("1d")
        monkeypatch.setattr(Moody, "_well", False)
        with caplog.at_level(logging.ERROR):
            await client.work()

        assert [record.workflow for record in await client.find()] == ["plain"]
    assert "the schedule '0 2 * * *' of 'typed' starts nothing: the data of the schedule" in caplog.text


@pytest.mark.parametrize("folder", ["quire", "asyncio"])
async def test_an_error_names_the_users_line_also_in_a_folder_with_the_engines_name(
    folder: str, tmp_path: Path
) -> None:
    """`git clone` makes a folder named quire, and what lies in it is the user's own code."""
    file = tmp_path / folder / "flows.py"
    file.parent.mkdir()
    file.write_text("async def deep(run):\n    return {}['nope']\n")
    namespace: Data = {}
    exec(compile(file.read_text(), file, "exec"), namespace)
    flow: Workflow[Any, Any, Any] = Workflow("placed")
    flow.step(namespace["deep"])

    async with Trial(flow) as trial:
        record = await trial.start({})
        await trial.settle()

        assert record.error == "KeyError: 'nope' (in deep, flows.py:2)"
