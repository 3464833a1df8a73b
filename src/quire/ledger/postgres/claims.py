"""Claims by the rules: caps, rates and all else that decides who may begin, under locks.

A claim that finds nothing due takes no lock: it only peeks.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from quire.ledger import columns as rows
from quire.ledger.postgres.known import Known
from quire.ledger.postgres.locked import Locked
from quire.ledger.postgres.reading import RECORD, Reading
from quire.ledger.postgres.server import Server
from quire.ledger.postgres.view import NOW, View
from quire.ledger.postgres.want import Want
from quire.ledger.postgres.wire import Param, Wire, array
from quire.model.change import Claim, Claimed, Slot
from quire.model.record import PRIORITY_SECONDS, Record
from quire.model.row import field_names
from quire.rules import conditions
from quire.rules.claims import allowance, claimed_by, limited, may_claim, next_look, take
from quire.rules.draft import Draft

#: How much later than its due time a record's rank may be: as far as priorities go below zero.
_MARGIN = (
    f"(SELECT coalesce(-min(priority), 0) * {PRIORITY_SECONDS} FROM records WHERE priority < 0 AND queue IS NOT NULL)"
)
MOMENT = f"(SELECT {NOW} AS now, {_MARGIN} AS margin)"
#: All orders, read once, and what of them is for a step. Mostly there are none.
ORDERS = "orders AS MATERIALIZED (SELECT scope, floor, halted OR paused AS stops FROM controls)"
_STOPPED = """
    SELECT coalesce(max(floor), 0) AS floor, coalesce(bool_or(stops), false) AS stopped
    FROM orders WHERE scope IN ('*', slot.workflow)
"""
#: Where the queue of a step begins: at its first entry that time makes due.
FIRST = "rank IS NOT NULL"


def _is_due(begins: str) -> str:
    queued = f"workflow = slot.workflow AND queue = slot.step AND {begins} AND rank <= moment.now + moment.margin"
    return conditions.due_sql(queued, now="moment.now", floor="control.floor", version="slot.version")


def _filled(begins: str) -> str:
    """SQL: whether the queue of a step has any entry. Most queues are empty most of the time, and this is cheap."""
    return f"(SELECT true FROM records WHERE workflow = slot.workflow AND queue = slot.step AND {begins} LIMIT 1)"


def due(columns: str, begins: str = FIRST) -> str:
    """SQL: due records, of each step at most its room, in order of rank, without those that another claim is taking.

    The steps are gone through in order, and no more rows are locked than are asked for.
    """
    return f"""
        CROSS JOIN LATERAL ({_STOPPED}) AS control
        CROSS JOIN LATERAL (
            SELECT {columns} FROM records WHERE {_is_due(begins)} AND NOT control.stopped
            ORDER BY rank, record_id LIMIT slot.room FOR UPDATE SKIP LOCKED
        ) AS due
        WHERE {_filled(begins)}
    """


_LOCK = f"""
    WITH {ORDERS}
    SELECT slot.place, {", ".join(f"due.{rows.quoted(name)}" for name in field_names(Record))}
    FROM {MOMENT} AS moment
    CROSS JOIN unnest($2::text[], $3::text[], $4::bigint[], $6::bigint[])
        WITH ORDINALITY AS slot (workflow, step, room, version, place)
    {due(RECORD)}
    LIMIT $5
"""
#: May anything be claimed, also of steps with a limit; how urgent is the first record of each step that is due; and if
#: none is due, when will one be? And why was the worker that asks closed (NULL: it is not known), is the ledger sealed,
#: and which epoch is it?
PEEK = f"""
    WITH {ORDERS}
    SELECT moment.now, bool_or(due.priority IS NOT NULL AND NOT control.stopped),
        bool_or(due.priority IS NOT NULL AND NOT control.stopped AND slot.limited), max(due.priority), min(soon.due_at),
        (SELECT coalesce(closed, '') FROM workers WHERE worker_id = $5), (SELECT sealed FROM ledger),
        (SELECT epoch FROM ledger)
    FROM {MOMENT} AS moment
    LEFT JOIN unnest($2::text[], $3::text[], $4::boolean[], $6::bigint[]) AS slot (workflow, step, limited, version)
        ON {_filled(FIRST)}
    LEFT JOIN LATERAL ({_STOPPED}) AS control ON true
    LEFT JOIN LATERAL (
        SELECT priority FROM records WHERE {_is_due(FIRST)} ORDER BY rank, record_id LIMIT 1
    ) AS due ON true
    LEFT JOIN LATERAL (
        SELECT min(due_at) AS due_at FROM (
            SELECT due_at FROM records
            WHERE due.priority IS NULL AND workflow = slot.workflow AND queue = slot.step AND {FIRST}
                AND due_at > moment.now
            ORDER BY rank, record_id LIMIT 16
        ) AS first
    ) AS soon ON true
    GROUP BY moment.now
"""


class Peek(NamedTuple):
    """What is left to claim."""

    now: float
    claimable: bool
    #: The same, of steps with a cap or a rate.
    limited: bool
    priority: int | None
    next_due: float | None
    #: Why the worker that asks was closed: '' if it was not, None if it is not known.
    closed: str | None
    sealed: str
    epoch: int


class Claims:
    """Peeks, and claims under locks."""

    def __init__(self, server: Server, known: Known, locked: Locked) -> None:
        self._server = server
        self._known = known
        self._locked = locked
        #: The last claim took something, so that more may be due.
        self.more_is_due = False
        #: The last peek saw something due of steps with a limit.
        self.limited_is_due = False

    async def nothing_due(self, claim: Claim) -> Claimed | None:
        """Peek, if the last claim found nothing. None: there is something to claim, or it is not known."""
        if claim.again or self.more_is_due:
            return None
        ((*found,),) = await self._server.ask(PEEK, *self.peeking(claim), pool=self._server.claims)
        peek = self.peeked(found)
        if peek.sealed:
            return None
        may_claim(claim, known=peek.closed is not None, closed=peek.closed or None)
        return None if peek.claimable else Claimed((), peek.now, peek.next_due, peek.priority, peek.epoch)

    async def claim(self, claim: Claim, whole: Claim | None = None) -> Claimed:
        """Claim under locks. ``whole``: the claim that this one is a part of, whose steps are all peeked at."""
        return await self._server.transacted(
            self._server.claims, lambda wire: self._claimed(wire, claim, whole or claim)
        )

    async def _claimed(self, wire: Wire, claim: Claim, whole: Claim) -> Claimed:
        want = Want(quiet={claim.worker}, held={claim.worker} if claim.again else set())
        for slot in claim.slots:
            want.of_slot(slot)
        view = View()
        self._locked.begin(wire, want)
        await self._locked.read_into(view, wire, want)
        if taken_before := claimed_by(claim, view.held):
            return Claimed(tuple(taken_before), view.now)
        draft = Draft(view, view.now)
        room = array("bigint", [allowance(draft, slot) for slot in claim.slots])
        workflows, steps, _ = named(claim.slots)
        place = wire.send(_LOCK, self._server.given_now, workflows, steps, room, claim.limit, versions(claim.slots))
        answers = await wire.flush()
        reading = Reading(view, wire)
        due = reading.take_due(answers[place])
        await reading.put_blobs()

        refilled: float | None = None

        def decide(draft: Draft, view: View) -> list[Record]:
            nonlocal refilled
            taken: list[Record] = []
            for number, slot in enumerate(claim.slots, 1):
                room = min(allowance(draft, slot), claim.limit - len(taken))
                found = [view.records[record_id] for record_id in due.get(number, [])[:room]]
                taken += take(draft, claim, slot, [row for row in found if row is not None])
            refilled = next_look(draft, claim.slots, None)
            return taken

        taken, left = await self._locked.written(
            wire, "claim", view, decide, then=lambda: wire.send(PEEK, *self.peeking(whole))
        )
        assert left is not None
        peek = self.peeked(left.rows()[0])
        next_due = peek.next_due
        if peek.limited and refilled is not None:  # a record that is due stays, perhaps only until a rate has a token
            next_due = refilled if next_due is None else min(next_due, refilled)
        return Claimed(tuple(taken), view.now, next_due, peek.priority, peek.epoch)

    def peeking(self, claim: Claim) -> tuple[Param, ...]:
        """Return the arguments of ``PEEK``."""
        return self._server.given_now, *named(claim.slots), claim.worker, versions(claim.slots)

    def peeked(self, found: Sequence[Any]) -> Peek:
        peek = Peek(*found)
        self.limited_is_due = peek.limited
        return peek


@lru_cache(maxsize=256)
def named(slots: tuple[Slot, ...]) -> tuple[bytes, bytes, bytes]:
    """Return the workflows and names of these steps, and whether each has a limit, as arrays.

    The arrays are kept: a worker claims for the same steps all the time, and begins with another one each time.
    """
    return (
        array("text", [slot.workflow for slot in slots]),
        array("text", [slot.step for slot in slots]),
        array("boolean", list(map(limited, slots))),
    )


@lru_cache(maxsize=256)
def versions(slots: tuple[Slot, ...]) -> bytes:
    """Return the versions of the workflows that the worker has, as an array."""
    return array("bigint", [slot.version for slot in slots])
