"""What whoever waits for a result hears of a record that fails: the error, the next try, the lines of the step."""

from __future__ import annotations

import traceback
from typing import Any

import pytest

from quire import Act, NotDone, Retry, Run, Workflow, effect
from quire.client.client import Client
from quire.errors import IllegalMove, ResultMissing, StepFailed
from quire.ledger.memory.ledger import MemoryLedger
from quire.testing import ToldClock

Data = dict[str, Any]


def falls(retry: Retry) -> Workflow[Data, Any, Any]:
    flow: Workflow[Data, Any, Any] = Workflow("falls")

    @flow.step(retry=retry)
    async def fall(run: Run[Data]) -> None:
        raise KeyError("nope")

    return flow


async def test_a_result_that_does_not_come_in_time_names_the_last_error_and_the_next_try() -> None:
    clock = ToldClock()
    flow = falls(Retry(9, first="1h"))
    async with Client(MemoryLedger(clock), workflows=[flow], clock=clock) as client:
        handle = await client.start(flow, {}, id="r")
        await client.work()

        with pytest.raises(ResultMissing) as caught:
            await handle.result(timeout="0s")

    said = str(caught.value)
    assert "'r' has not ended in time: it is PENDING at 'fall'; try 1 failed: KeyError: 'nope' (in fall, " in said
    assert "; the next try is at 2026-01-01T00:" in said and " s" in said.rpartition(", in ")[2]
    assert isinstance(caught.value.__cause__, StepFailed)


async def test_a_record_that_failed_raises_what_its_step_raised_as_the_cause_with_its_lines() -> None:
    clock = ToldClock()
    flow = falls(Retry(1))
    async with Client(MemoryLedger(clock), workflows=[flow], clock=clock) as client:
        handle = await client.start(flow, {}, id="r")
        await client.work()

        with pytest.raises(ResultMissing, match="it ended as ERROR: KeyError: 'nope'") as caught:
            await handle.result()

    cause = caught.value.__cause__
    assert isinstance(cause, StepFailed) and str(cause).startswith("KeyError: 'nope' (in fall, test_result_failed.py:")
    assert cause.trace[-1] == "KeyError: 'nope'" and '    raise KeyError("nope")' in cause.trace
    assert '    raise KeyError("nope")' in "".join(traceback.format_exception(caught.value))


async def test_a_record_that_was_cancelled_or_only_waits_has_no_such_cause() -> None:
    clock = ToldClock()
    flow: Workflow[Data, Any, Any] = Workflow("waits")

    @flow.step
    async def wait(run: Run[Data]) -> None:
        await run.wait("go")

    async with Client(MemoryLedger(clock), workflows=[flow], clock=clock) as client:
        handle = await client.start(flow, {}, id="r")
        await client.work()
        with pytest.raises(ResultMissing, match=r"it is WAITING at 'wait'$") as in_time:
            await handle.result(timeout="0s")
        await client.cancel("r")
        with pytest.raises(ResultMissing, match="it ended as CANCELLED") as ended:
            await handle.result()

    assert in_time.value.__cause__ is None and ended.value.__cause__ is None


async def test_resolve_says_until_when_an_act_settles() -> None:
    clock = ToldClock()

    async def look(act: Act[Any]) -> str | NotDone:
        return NotDone()

    @effect(probe=look, settle="40s")
    async def put(act: Act[Any]) -> str:
        raise OSError("the line broke")

    flow: Workflow[Data, Any, Any] = Workflow("puts")

    @flow.step(retry=Retry(5, first="1s"))
    async def act(run: Run[Data]) -> str:
        return await run.once(put)

    async with Client(MemoryLedger(clock), workflows=[flow], clock=clock) as client:
        await client.start(flow, {}, id="r")
        await client.work()
        clock.advance("5s")
        await client.work()

        with pytest.raises(IllegalMove) as caught:
            await client.resolve("r", happened=True, value="x")

    assert "'r' asks nobody yet: it waits until 2026-01-01T00:00:40" in str(caught.value)
    assert "for put to settle" in str(caught.value)
