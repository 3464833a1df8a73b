"""A result that somebody waits for: work for it here, and say when only a person or somebody outside can go on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from quire.clock import Span, iso
from quire.errors import ResultMissing
from quire.model.change import Query
from quire.model.record import Record, Status
from quire.model.side import EVERYWHERE
from quire.model.wait import On, Wait, load_waits

if TYPE_CHECKING:
    from quire.client.client import Client
    from quire.worker.worker import Worker

#: A signal that is waited for no longer than this is worth waiting for: the record goes on without it then.
SOON_SECONDS = 60.0
#: How often to look whether the record is held up, beside each move that is made here.
LOOK_SECONDS = 0.5
#: So many open records are looked at when ``work`` says why it ends.
MANY = 100


async def finished(client: Client, record_id: str, timeout: Span | None) -> Record:
    """Return the record once it has ended.

    If this client knows its workflow and runs no worker, it works meanwhile. Without a ``timeout`` it raises
    ``ResultMissing`` as soon as only a person, or a signal from outside, can make the record go on.
    """
    record = await client.get(record_id)
    if record.ended or client.registry.get(record.workflow) is None or client.works:
        return await client.until_ended(record_id, timeout=timeout)
    worker = client.worker()
    worker.grace = 0.0
    working = asyncio.ensure_future(worker.run())
    waiting = asyncio.ensure_future(client.until_ended(record_id, timeout=timeout))
    tasks: list[asyncio.Future[Record] | asyncio.Future[None]] = [working, waiting]
    if timeout is None:
        tasks.append(asyncio.ensure_future(_held_up(client, worker, record_id)))
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            if task.done():
                await task
        return waiting.result()
    finally:
        worker.stop()
        for task in tasks[1:]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _held_up(client: Client, worker: Worker, record_id: str) -> None:
    """Wait until nothing but a person or somebody outside can make the record go on; then raise, and say which."""
    changed = asyncio.Event()
    worker.watchers.append(lambda _: changed.set())
    while True:
        record = await client.get(record_id)
        if record.ended:
            await asyncio.Event().wait()
        if reason := await held_up(client, record, at_rest=worker.at_rest):
            raise ResultMissing(f"{record_id!r} has no result yet: {reason}")
        changed.clear()
        looks = [asyncio.ensure_future(wait) for wait in (client.clock.sleep(LOOK_SECONDS), changed.wait())]
        try:
            await asyncio.wait(looks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for look in looks:
                look.cancel()


async def held_up(client: Client, record: Record, *, at_rest: bool) -> str:
    """Say who must do something before this record goes on; nothing, if it goes on by itself."""
    waits = load_waits(record.waits)
    if record.status is Status.NEEDS_APPROVAL:
        whose = f"{record.record_id!r} waits for a person"
        return f"{whose}: {record.question}" if record.question else f"{whose} (quire why {record.record_id})"
    if not at_rest:
        return ""
    if record.status is Status.PENDING:
        return await _stopped(client, record)
    now = await client.ledger.now()
    if record.due_at is not None and record.due_at <= now + SOON_SECONDS:
        return ""
    if not waits or any(_goes_on(wait, now) for wait in waits):
        return ""
    for wait in waits:
        if wait.on is On.SIGNAL:
            return f"{record.record_id!r} waits for the signal {wait.name!r}"
        if wait.on is On.REST:
            return f"{record.record_id!r} rests at {record.step!r} until somebody moves it"
    return await _children_held_up(client, record)


def _goes_on(wait: Wait, now: float) -> bool:
    """Return whether this wait ends by itself, and soon enough where it is for somebody outside."""
    if wait.on in (On.TIMER, On.RATE, On.TURN):
        return True
    return wait.until is not None and wait.until <= now + SOON_SECONDS


async def _children_held_up(client: Client, record: Record) -> str:
    moving = (Status.PENDING, Status.RUNNING, Status.WAITING)
    asking = await client.ledger.find(
        Query(parent_id=record.record_id, status=(Status.NEEDS_APPROVAL,), limit=1),
    )
    reason = ""
    for child in await client.ledger.find(Query(parent_id=record.record_id, status=moving, limit=MANY)):
        reason = await held_up(client, child, at_rest=True)
        if not reason:
            return ""
    return await held_up(client, asking[0], at_rest=True) if asking else reason


async def _stopped(client: Client, record: Record) -> str:
    """Whether somebody has paused or halted what this record would run in."""
    standing = await client.ledger.standing()
    for control in standing.controls:
        if control.scope in (EVERYWHERE, record.workflow) and (control.halted or control.paused):
            what = "the ledger" if control.scope == EVERYWHERE else f"workflow {control.scope!r}"
            return f"{what} is {'halted' if control.halted else 'paused'}; it goes on when somebody resumes it"
    return ""


class Worked(int):
    """How many times a worker settled a record, and ``why`` it ended."""

    why: str

    def __new__(cls, count: int, why: str) -> Worked:
        made = super().__new__(cls, count)
        made.why = why
        return made

    def __repr__(self) -> str:
        return f"<{int(self)} record{'' if self == 1 else 's'} finished; {self.why}>"


async def why_idle(client: Client) -> str:
    """Say why there is nothing to do now: what waits for a person, for a moment, or for somebody outside."""
    names = tuple(client.registry.workflows)
    waiting = (Status.PENDING, Status.WAITING, Status.NEEDS_APPROVAL)
    found = [row for row in await client.ledger.find(Query(status=waiting, limit=MANY)) if row.workflow in names]
    if not found:
        return "nothing is left to do"
    asking = [row for row in found if row.status is Status.NEEDS_APPROVAL]
    timed = sorted((row.due_at, row.record_id) for row in found if row not in asking and row.due_at is not None)
    others = len(found) - len(asking) - len(timed)
    parts = [_asking(asking)] if asking else []
    if timed:
        moment, record_id = timed[0]
        parts.append(f"{_records(len(timed))} by a clock, {record_id!r} first, at {iso(moment)}")
    if others:
        parts.append(f"{_records(others)} when another record or somebody outside lets it")
    return f"nothing is due: {'; '.join(parts)}"


def _asking(rows: Sequence[Record]) -> str:
    question = rows[0].question or "a doubt"
    return f"{_records(len(rows))} when a person has answered, {rows[0].record_id!r} first: {question}"


def _records(count: int) -> str:
    return "1 record goes on" if count == 1 else f"{count} records go on"
