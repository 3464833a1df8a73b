"""What becomes of an effect that did not go as it should."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from quire import Act, NotDone, Retry, Run, Status, effect, workflow
from quire.client.client import Client
from quire.errors import IllegalMove
from quire.ledger.memory.ledger import MemoryLedger
from quire.ledger.sqlite.ledger import SqliteLedger
from quire.model.codec import PLAIN
from quire.model.receipt import Kind, fingerprint, key_of
from quire.testing import ToldClock, Trial
from quire.testing.conformance import applied, claim, commit, lose_worker, new_facts, new_intent, slot


class Target:
    def __init__(self) -> None:
        self.done: list[str] = []
        self.errors: list[Exception] = []

    def act(self, what: str) -> str:
        if self.errors:
            raise self.errors.pop(0)
        self.done.append(what)
        return f"done {what}"


@effect
async def blind(act: Act[Target], what: str) -> str:
    return act.deps.act(what)


@workflow(retry=Retry(3, first="1s"))
async def blindly(run: Run[dict[str, Any], Target]) -> str:
    return await run.once(blind, "it")


async def test_an_act_that_surely_did_not_happen_is_tried_again() -> None:
    target = Target()
    target.errors = [NotDone("the server is down"), ConnectionRefusedError()]
    async with Trial(blindly, deps=target) as trial:
        record = await trial.start({})
        await trial.settle()

        assert record.result == "done it" and target.done == ["it"]


async def test_every_try_of_an_act_has_an_intent_of_its_own() -> None:
    """1: killed in the second try, the next worker finds that it may have happened, and does not act again."""
    seen: list[tuple[int, str]] = []

    @effect(retry=Retry(3, first="0.001s"))
    async def busy(act: Act[None]) -> str:
        [intent] = await client.ledger.receipts(record_ids=["r"])
        seen.append(((await client.get("r")).open_intents, str(intent.stage)))
        if len(seen) < 3:
            raise NotDone("it is busy")
        return "done"

    @workflow
    async def persists(run: Run[dict[str, Any], None]) -> str:
        return await run.once(busy)

    async with Client(MemoryLedger(), workflows=[persists]) as client:
        await client.start(persists, {}, id="r")
        await client.work()

        assert (await client.get("r")).status is Status.DONE and seen == [(1, "intended")] * 3
        kinds = [event.kind for event in await client.events("r")]
        assert kinds.count("effect.intended") == 3 and kinds.count("effect.void") == 2


@workflow(retry=Retry(3, first="1s"))
async def twice(run: Run[dict[str, Any], Target]) -> str:
    what = await run.once(blind, "it")
    if run.attempt == 1:
        raise TimeoutError
    return what


async def test_a_receipt_that_was_altered_is_neither_believed_nor_done_over(tmp_path: Path) -> None:
    target, clock = Target(), ToldClock()
    path = tmp_path / "ledger.db"
    async with Client(SqliteLedger(path, clock), workflows=[twice], deps=target, clock=clock) as client:
        await client.start(twice, {}, id="r")
        await client.work()
        assert target.done == ["it"]
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("UPDATE receipts SET value = '\"as if\"'")
        clock.advance(60)
        await client.work()
        record = await client.get("r")

    assert target.done == ["it"]
    assert record.status is Status.ERROR
    assert "the receipt of effect 'blind' of 'r' does not verify" in (record.last_error or "")


async def test_an_act_that_nobody_knows_of_is_asked_of_a_person() -> None:
    target = Target()
    target.errors = [TimeoutError("no answer")]
    async with Trial(blindly, deps=target) as trial:
        record = await trial.start({})
        await trial.advance("2m")
        assert record.status == "NEEDS_APPROVAL" and record.question.startswith("Did 'blind' happen?")
        events = await trial.client.events(record.record_id)
        assert "no answer" in next(event.body for event in events if event.kind == "effect.unclear")

        await trial.client.resolve(record.record_id, happened=True, value="done by hand", by="ann@x.eu")
        await trial.settle()

        assert record.result == "done by hand" and target.done == []


async def test_an_act_that_did_not_happen_after_all_is_done_when_a_person_says_so() -> None:
    target = Target()
    target.errors = [TimeoutError("no answer")]
    async with Trial(blindly, deps=target) as trial:
        record = await trial.start({})
        await trial.advance("2m")
        await trial.client.resolve(record.record_id, happened=False, by="ann@x.eu")
        await trial.settle()

        assert record.result == "done it" and target.done == ["it"]


async def test_a_record_in_doubt_is_not_rewound_and_is_cancelled_only_when_the_doubt_ends() -> None:
    target = Target()
    target.errors = [TimeoutError("no answer")]
    async with Trial(blindly, deps=target) as trial:
        record = await trial.start({})
        await trial.advance("2m")

        with pytest.raises(IllegalMove, match="in doubt"):
            await trial.client.retry(record.record_id, step="blindly")
        await trial.client.cancel(record.record_id)
        assert record.status == "NEEDS_APPROVAL"
        await trial.client.resolve(record.record_id, happened=True, value="done by hand")
        assert record.status == "CANCELLED"


@effect(repeat=True)
async def harmless(act: Act[Target], what: str) -> str:
    return act.deps.act(what)


async def test_what_may_be_repeated_is_repeated() -> None:
    @workflow(retry=Retry(3, first="1s"))
    async def harmlessly(run: Run[dict[str, Any], Target]) -> str:
        return await run.once(harmless, "it")

    target = Target()
    target.errors = [TimeoutError("no answer")]
    async with Trial(harmlessly, deps=target) as trial:
        record = await trial.start({})
        await trial.settle()

        assert record.result == "done it" and target.done == ["it"]


async def test_a_key_of_the_users_own_is_global_in_the_ledger() -> None:
    @workflow
    async def invoice(run: Run[dict[str, Any], Target]) -> str:
        return await run.once(blind.keyed("invoice-17"), "it")

    target = Target()
    async with Trial(invoice, deps=target) as trial:
        first, second = await trial.start({}), await trial.start({})
        await trial.settle()

        assert (first.result, second.result) == ("done it", "done it")
        assert target.done == ["it"]


async def test_a_receipt_never_answers_for_other_arguments() -> None:
    words = iter(["one", "two"])

    @workflow
    async def changing(run: Run[dict[str, Any], Target]) -> None:
        await run.once(blind, next(words))
        await run.wait("go")

    async with Trial(changing, deps=Target()) as trial:
        record = await trial.start({})
        await trial.settle()
        await record.signal("go")
        await trial.settle()

        assert record.status == "ERROR" and "was done with other arguments" in record.error


async def test_what_may_be_repeated_is_not_repeated_while_another_worker_may_still_act() -> None:
    @workflow
    async def harmlessly(run: Run[dict[str, Any], Target]) -> str:
        return await run.once(harmless, "it")

    clock, target = ToldClock(), Target()
    async with Client(MemoryLedger(clock), workflows=[harmlessly], deps=target, clock=clock) as client:
        await client.start(harmlessly, {}, id="h")
        step = (await client.get("h")).step
        [row] = (await claim(client.ledger, slot(step, "harmlessly"), worker="frozen")).records
        text = PLAIN.encode({"args": ["it"], "kwargs": {}}, "the arguments")
        intent = new_intent(
            row,
            "harmless",
            key=key_of("harmlessly", "h", step, 1, "", Kind.ONCE, "harmless", 0),
            fn=harmless.path,
            args=text,
            args_hash=fingerprint(text),
            act_by=clock.now() + 600,
            prepared="",
            actor="",
        )
        applied(await commit(client.ledger, new_facts(row, intent)))
        await lose_worker(client.ledger, clock)

        await client.work()
        waits = await client.get("h")
        before = list(target.done)
        clock.advance(600)
        await client.work()

        assert (waits.status, waits.due_at) == (Status.WAITING, intent.act_by)
        assert before == []
        assert ((await client.get("h")).status, target.done) == (Status.DONE, ["it"])


class Gate:
    def __init__(self) -> None:
        self.under_way = self.most = self.begun = 0
        self.go = asyncio.Event()


@effect(repeat=True, timeout="20s")
async def slowly(act: Act[Gate]) -> str:
    gate = act.deps
    gate.begun += 1
    gate.under_way += 1
    gate.most = max(gate.most, gate.under_way)
    await gate.go.wait()
    gate.under_way -= 1
    return "through"


async def test_what_may_be_repeated_is_not_repeated_while_an_earlier_pass_still_acts() -> None:
    """The run is past its end and taken back, and comes to the same worker again; its act goes on meanwhile."""

    @workflow(timeout="1s", retry=Retry(5, first="10ms"))
    async def hurried(run: Run[dict[str, Any], Gate]) -> str:
        return await run.once(slowly)

    clock, gate = ToldClock(), Gate()
    async with Client(MemoryLedger(clock), workflows=[hurried], deps=gate, clock=clock) as client:
        await client.start(hurried, {}, id="h")
        worker = client.worker()
        working = asyncio.ensure_future(worker.run())
        waited = False
        for _ in range(1000):
            clock.advance(0.1)
            await clock.sleep(0)
            waited |= (await client.get("h")).status is Status.WAITING
        before = gate.begun
        gate.go.set()
        for _ in range(1000):
            clock.advance(0.1)
            await clock.sleep(0)
        worker.stop()
        await working

        record = await client.get("h")
        assert (waited, before, gate.most) == (True, 1, 1)
        assert (record.status, record.result) == (Status.DONE, '"through"')
