"""The idempotency key of an act: one for each act of each ledger, made with its intent and never again."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from quire import Act, Fail, NotDone, Retry, Run, Workflow, effect, workflow
from quire.client.client import Client
from quire.ledger.base import Ledger
from quire.ledger.engine import ledger_id
from quire.ledger.memory.ledger import MemoryLedger
from quire.ledger.queries import migrations
from quire.ledger.sqlite.ledger import SqliteLedger
from quire.model.receipt import Receipt, fingerprint
from quire.testing import ToldClock
from quire.upkeep.promote import promote


class Outside:
    """A target that several ledgers share: it takes every key once."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.undone: list[str] = []
        self.refuses = 0


def take_back(act: Act[Outside], value: str) -> None:
    act.deps.undone.append(act.key)


@effect(undo=take_back, settle="0s")
async def post(act: Act[Outside]) -> str:
    act.deps.keys.append(act.key)
    if act.deps.refuses:
        act.deps.refuses -= 1
        raise NotDone("busy")
    return "posted"


def posting() -> Workflow[dict[str, Any], str, Outside]:
    @workflow
    async def posts(run: Run[dict[str, Any], Outside]) -> str:
        return await run.once(post)

    return posts


async def posted(ledger: Ledger, outside: Outside, record_id: str = "r") -> Receipt:
    """Run the record in this ledger. Answer its receipt."""
    flow = posting()
    async with Client(ledger, workflows=[flow], deps=outside, who="ann") as client:
        await client.start(flow, {}, id=record_id)
        await client.work()
        [receipt] = [row for row in await ledger.receipts(record_ids=[record_id]) if row.fn]
        return receipt


async def test_records_of_the_same_id_in_two_ledgers_do_not_share_a_key() -> None:
    outside = Outside()

    receipts = [await posted(MemoryLedger(), outside) for _ in range(2)]

    assert len(set(outside.keys)) == 2
    assert [receipt.act_key for receipt in receipts] == outside.keys
    assert receipts[0].key == receipts[1].key


async def test_every_try_of_an_act_has_its_key_and_its_undo_has_another() -> None:
    @workflow(on_failure="undo", retry=Retry(3, first="1s"))
    async def fails(run: Run[dict[str, Any], Outside]) -> None:
        await run.once(post)
        raise Fail("after all")

    outside, clock = Outside(), ToldClock()
    outside.refuses = 1
    async with Client(MemoryLedger(clock), workflows=[fails], deps=outside, clock=clock) as client:
        await client.start(fails, {}, id="r")
        for _ in range(3):
            await client.work()
            clock.advance(60)
    assert len(outside.keys) == 2 and len(set(outside.keys)) == 1
    assert len(outside.undone) == 1 and outside.undone != outside.keys[:1]


async def test_an_intent_of_before_keeps_the_key_that_it_had(tmp_path: Path) -> None:
    """A ledger of the schema before: the new columns are empty, and the key is what it always was."""
    path = tmp_path / "ledger.db"
    outside, clock = Outside(), ToldClock()
    outside.refuses = 1
    flow = posting()
    async with Client(SqliteLedger(path, clock), workflows=[flow], deps=outside, clock=clock) as client:
        await client.start(flow, {}, id="r")
        await client.work()
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for column in ("act_key", "prepared", "actor"):
            db.execute(f"ALTER TABLE receipts DROP COLUMN {column}")
        db.execute(f"PRAGMA user_version = {len(migrations('sqlite')) - 1}")

    clock.advance(60)
    async with Client(SqliteLedger(path, clock), workflows=[flow], deps=outside, clock=clock) as client:
        await client.work()
        [receipt] = [row for row in await client.ledger.receipts(record_ids=["r"]) if row.fn]

    assert outside.keys[1] == fingerprint(receipt.key) == receipt.act_key


async def test_a_promoted_ledger_keeps_its_id() -> None:
    outside = Outside()
    source, target = MemoryLedger(), MemoryLedger()
    source.url, target.url = "sqlite:////there/a.db", "sqlite:////there/b.db"
    await posted(source, outside)
    before = await ledger_id(source)

    await promote(source, target, by="ann", wait=0.0)

    assert await ledger_id(target) == before
    assert await target.receipts(record_ids=["r"]) == await source.receipts(record_ids=["r"])


async def test_workers_that_begin_together_agree_on_the_id() -> None:
    ledger = MemoryLedger(ToldClock())
    assert await ledger_id(ledger) == await ledger_id(ledger)
    assert await ledger_id(MemoryLedger()) != await ledger_id(ledger)
