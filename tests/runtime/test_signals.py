"""A signal that nothing waits for, or whose value does not fit, is refused to its sender; the record stays as it is."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from quire import Run, Workflow, aopen
from quire.errors import InputError
from quire.ledger.memory.ledger import MemoryLedger
from quire.testing import ToldClock, Trial


class Paid(BaseModel):
    amount: float


invoice = Workflow("invoice", result=float)


@invoice.step(then="close")
async def collect(run: Run[dict[str, Any]]) -> None:
    paid = await run.wait("paid", Paid, timeout="7d")
    run.data["amount"] = paid.amount if paid else 0.0


@invoice.step
async def close(run: Run[dict[str, Any]]) -> float:
    await run.wait("closed")
    return float(run.data["amount"])


async def test_a_mistyped_name_and_a_value_that_does_not_fit_are_refused() -> None:
    async with Trial(invoice) as trial:
        record = await trial.start({})
        await trial.settle()
        waiting = await trial.client.get(record.record_id)

        with pytest.raises(InputError, match=r"never waits for a signal 'piad'; did you mean 'paid'\?"):
            await record.signal("piad", {"amount": 3})
        for value in ({"amount": "abc"}, {"amout": 3}, None, 3):
            with pytest.raises(InputError, match="the value of signal 'paid' does not fit what 'invoice' waits for: "):
                await record.signal("paid", value)
        assert await trial.client.get(record.record_id) == waiting

        await record.signal("closed", "early")  # a later step waits for it
        await record.signal("paid", {"amount": "3.5", "currency": "EUR"})  # what else a call from outside says is taken
        await trial.settle()
        assert (record.status, record.result) == ("DONE", 3.5)
        with pytest.raises(Exception, match="takes no signals: it is DONE"):
            await record.signal("piad")


async def test_a_sender_who_does_not_know_the_code_is_refused_as_well() -> None:
    ledger = MemoryLedger(ToldClock())
    async with aopen(ledger, workflows=[invoice]) as q:
        await q.start(invoice, {}, id="i1")
        await q.work()
        async with aopen(ledger) as stranger:
            with pytest.raises(InputError, match="never waits for a signal 'piad'; did you mean 'paid'"):
                await stranger.signal("i1", "piad")
            with pytest.raises(InputError, match="amount: Input should be a valid number"):
                await stranger.signal("i1", "paid", {"amount": "abc"})
            await stranger.signal("i1", "paid", {"amount": 2})


async def test_where_the_source_does_not_tell_all_names_only_what_waits_is_checked() -> None:
    async def helped(run: Run[dict[str, Any]], name: str) -> Paid | None:
        return await run.wait(name, Paid, timeout="7d")

    computed: Workflow[dict[str, Any], float, None] = Workflow("computed", result=float)

    @computed.step
    async def wait_somehow(run: Run[dict[str, Any]]) -> float:
        paid = await helped(run, "paid")
        return paid.amount if paid else 0.0

    async with Trial(computed) as trial:
        record = await trial.start({})
        await trial.settle()
        await record.signal("anything", 3)
        with pytest.raises(InputError, match="amount: Field required"):
            await record.signal("paid", {})
        await record.signal("paid", {"amount": 1})
        await trial.settle()
        assert record.result == 1.0
