"""Claims on PostgreSQL: due records become a worker's by one statement.

Where nothing but its place in the queue decides about a record, the server takes it by itself: it finds what is due,
writes the rows and their lines, and answers them, in one flush. What it writes is what the rules would decide, to the
byte; tests/ledger/test_postgres_claim.py holds the two side by side. Steps with a cap or a rate, and a claim whose
first answer was lost, are decided here, under locks, as every other verb is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from math import inf
from typing import Any, NamedTuple

from quire.clock import SYSTEM, Clock
from quire.errors import LedgerUnavailable, Moved
from quire.ledger import columns as rows
from quire.ledger.blobs import resolved
from quire.ledger.postgres import pages as leaves
from quire.ledger.postgres.fast import queue_marks as postgres_heads
from quire.ledger.postgres.fast.queue_marks import HEAD, Heads, code_of, reached
from quire.ledger.postgres.locked import PostgresDecides
from quire.ledger.postgres.pages import CLAIMED
from quire.ledger.postgres.view import NOW, READ_BLOBS, RECORD, STANDING, Reading, View, Want
from quire.ledger.postgres.wire import Answer, Lost, Wire, array
from quire.model.change import Claim, Claimed, Slot
from quire.model.record import PRIORITY_SECONDS, Record, Status
from quire.model.row import field_names, replace
from quire.rules.claims import claimed_by, limited, may_claim, runs_of
from quire.rules.draft import Draft
from quire.rules.moves import claim_told
from quire.rules.sketch import sealed_text

#: How much later than its due time a record's rank may be: as far as priorities go below zero.
_MARGIN = (
    f"(SELECT coalesce(-min(priority), 0) * {PRIORITY_SECONDS} FROM records WHERE priority < 0 AND queue IS NOT NULL)"
)
#: All that was ordered, read once, and what of it is for a step. Mostly there is none.
_ORDERS = "orders AS MATERIALIZED (SELECT scope, floor, halted OR paused AS stops FROM controls)"
_STOPPED = """
    SELECT coalesce(max(floor), 0) AS floor, coalesce(bool_or(stops), false) AS stopped
    FROM orders WHERE scope IN ('*', slot.workflow)
"""
#: Where the look at a step begins: at what time makes due, or at a rank.
_ANYWHERE, _FROM_HEAD = "rank IS NOT NULL", "rank >= slot.head"


def _is_due(begins: str) -> str:
    return f"""
        workflow = slot.workflow AND queue = slot.step AND {begins} AND rank <= moment.now + moment.margin
        AND due_at <= moment.now AND epoch >= control.floor AND code_version <= slot.version
    """


def _filled(begins: str) -> str:
    """Whether the queue of a step holds anything at all that time makes due.

    Most are empty most of the time, and the first entry of an index tells.
    """
    return f"(SELECT true FROM records WHERE workflow = slot.workflow AND queue = slot.step AND {begins} LIMIT 1)"


def _due(columns: str, begins: str) -> str:
    """Due records, per step at most its room, in order of rank; none that another claim is taking at this moment.

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


#: What a claim knows of its records is not sent back. In its place come the number of the step, the last leaf, and the
#: epoch: whoever claims hears at once that somebody halted.
_ANSWERED = {
    "workflow": "taken.place",
    "step": "records.log_at",
    "status": "(SELECT epoch FROM ledger)",
    "worker": "NULL",
}
_WORKFLOW, _STEP, _STATUS, _WORKER = (field_names(Record).index(name) for name in _ANSWERED)
_MOMENT = f"(SELECT {NOW} AS now, {_MARGIN} AS margin)"
_LOCK = f"""
    WITH {_ORDERS}
    SELECT slot.place, {", ".join(f"due.{rows.quoted(name)}" for name in field_names(Record))}
    FROM {_MOMENT} AS moment
    CROSS JOIN unnest($2::text[], $3::text[], $4::bigint[], $6::bigint[])
        WITH ORDINALITY AS slot (workflow, step, room, version, place)
    {_due(RECORD, _ANYWHERE)}
    LIMIT $5
"""
#: The same, and all that follows: they become the worker's, as ``transition.claim`` says, and their lines are chained
#: as by ``event.chained``. Nothing is due for a worker that is not open, or in a sealed ledger. Rows are found again by
#: where they lie (ctid): one that somebody changed while this statement began does not lie there any more as far as it
#: sees, and is left for the next claim.
_TAKE = f"""
    WITH {_ORDERS},
    moment AS MATERIALIZED (
        SELECT now, margin, CASE WHEN now::text LIKE '%.%' THEN now::text ELSE now::text || '.0' END AS written
        FROM {_MOMENT} AS clock, ledger, workers WHERE sealed = '' AND worker_id = $2 AND closed IS NULL
    ),
    due AS MATERIALIZED (
        SELECT due.lies, due.rank, slot.code, slot.head, slot.place, slot.timeout, slot.before, slot.after
        FROM moment
        CROSS JOIN (
            SELECT workflow, step, room, timeout, before, after, code, version, place, {HEAD} AS head
            FROM reached CROSS JOIN moment CROSS JOIN unnest(
                $5::text[], $6::text[], $7::bigint[], $8::float8[], $9::text[], $10::text[], $11::bigint[],
                $12::float8[], $17::bigint[]
            ) WITH ORDINALITY AS given (workflow, step, room, timeout, before, after, code, known, version, place)
        ) AS slot
        {_due("ctid AS lies, rank", _FROM_HEAD)}
        LIMIT $13
    ),
    so_far AS MATERIALIZED ({reached("$16::bigint")}),
    taken AS MATERIALIZED (
        SELECT *, encode(sha256(convert_to(
            concat_ws(chr(10), log_hash, record_id, n, v, written, 'claimed', body), 'UTF8')), 'hex') AS hash
        FROM (
            SELECT lies, due.place, records.record_id, log_at, log_hash, log_seq + 1 AS n, version + 1 AS v, now,
                written, now + timeout AS until, $3 || number AS run, before || $3 || number || after AS body
            FROM moment CROSS JOIN so_far
            CROSS JOIN (SELECT *, $14::bigint + row_number() OVER () - 1 AS number FROM due) AS due
            JOIN records ON records.ctid = lies
        ) AS found
    ),
    {CLAIMED}
    UPDATE records SET
        status = 'RUNNING', worker = $2, run_id = run, run_until = until, question = NULL, version = v,
        updated_at = now, queue = NULL, rank = NULL, log_seq = n, log_hash = hash,
        log_at = coalesce((SELECT seq FROM leaf), records.log_at)
    FROM taken WHERE records.ctid = lies
    RETURNING {", ".join(_ANSWERED.get(name, f"records.{rows.quoted(name)}") for name in field_names(Record))}
"""
#: May anything be claimed, also of steps with a limit, how urgent is the first of each step that is due, and if none
#: is: when will one be? And why was the worker that asks closed (NULL: it is not known), and is the ledger sealed?
_PEEK = f"""
    WITH {_ORDERS}
    SELECT moment.now, bool_or(due.priority IS NOT NULL AND NOT control.stopped),
        bool_or(due.priority IS NOT NULL AND NOT control.stopped AND slot.limited), max(due.priority), min(soon.due_at),
        (SELECT coalesce(closed, '') FROM workers WHERE worker_id = $5), (SELECT sealed FROM ledger),
        (SELECT epoch FROM ledger)
    FROM {_MOMENT} AS moment
    LEFT JOIN unnest($2::text[], $3::text[], $4::boolean[], $6::bigint[]) AS slot (workflow, step, limited, version)
        ON {_filled(_ANYWHERE)}
    LEFT JOIN LATERAL ({_STOPPED}) AS control ON true
    LEFT JOIN LATERAL (
        SELECT priority FROM records WHERE {_is_due(_ANYWHERE)} ORDER BY rank, record_id LIMIT 1
    ) AS due ON true
    LEFT JOIN LATERAL (
        SELECT min(due_at) AS due_at FROM (
            SELECT due_at FROM records
            WHERE due.priority IS NULL AND workflow = slot.workflow AND queue = slot.step AND {_ANYWHERE}
                AND due_at > moment.now
            ORDER BY rank, record_id LIMIT 16
        ) AS first
    ) AS soon ON true
    GROUP BY moment.now
"""


#: After this, in the line of a claim, comes the name of the run. Quotes in what stands before it are escaped.
_RUN = '"run":"'


class _Peek(NamedTuple):
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


class PostgresClaims(PostgresDecides):
    """The verb ``claim``."""

    def __init__(self, url: str, clock: Clock | None = None) -> None:
        super().__init__(url, clock)
        #: The last claim took something, so that more may be due; and the last look saw something due of steps with a
        #: limit.
        self._more_is_due = False
        self._limited_is_due = False
        self._heads = Heads(clock or SYSTEM)
        #: What the last look at what is left saw. A claim that goes on from heads, and finds all it asks for, has no
        #: look of its own.
        self._look: _Peek | None = None

    async def claim(self, claim: Claim) -> Claimed:
        self._bell.still()
        if not claim.again and not self._more_is_due:
            ((*found,),) = await self._asked(_PEEK, *self._peeking(claim), lane=self._claims)
            look = self._looked(found)
            if not look.sealed:
                may_claim(claim, known=look.closed is not None, closed=look.closed or None)
                if not look.claimable:
                    return Claimed((), look.now, look.next_due, look.priority, look.epoch)
        # Steps with a limit have their turn, too: whichever step is the first is asked first.
        their_turn = claim.slots and limited(claim.slots[0]) and self._limited_is_due
        if claim.again or not claim.slots or their_turn or self.barrier is not None:
            claimed = await self._weighed(claim)
        else:
            try:
                claimed = await self._taken(claim)
            except LedgerUnavailable as error:
                if not isinstance(error.__cause__, Lost):
                    raise
                # The connection may have died before, while nobody used it: what it took, if anything, is found.
                claimed = await self._weighed(replace(claim, again=True))
        self._more_is_due = bool(claimed.records)
        return claimed

    def _looked(self, found: Sequence[Any]) -> _Peek:
        look = _Peek(*found)
        self._limited_is_due = look.limited
        return look

    def _peeking(self, claim: Claim) -> tuple[float | None, bytes, bytes, bytes, str, bytes]:
        return self._told, *_sent(claim.worker, claim.slots).looked_at, claim.worker, _versions(claim.slots)

    def _remember(self, changed: Collection[Record]) -> None:
        super()._remember(changed)
        self._heads.put(changed)

    # -- by the server -----------------------------------------------------------------------------------------

    async def _taken(self, claim: Claim) -> Claimed:
        """What is due of steps that nothing limits; then, if there is room left, of those with a cap or a rate."""
        heads = self._heads.of(claim.slots) if claim.limit else None  # who asks for nothing wants to look
        taken, epoch, look = await self._took(claim, heads)
        if heads is not None and len(taken) < claim.limit:
            before, heads = len(taken), None
            rest, epoch, look = await self._took(replace(claim, limit=claim.limit - before, before=before))
            taken += rest
        self._look = look = look or self._look
        assert look is not None
        now = taken[-1].updated_at if taken else look.now
        claimed = Claimed(tuple(taken), now, look.next_due, look.priority, max(epoch, look.epoch))
        room = claim.limit - len(taken)
        if room > 0:
            self._heads.forget()
        else:
            places = [(slot.workflow, slot.step) for slot in claim.slots]
            self._heads.reached(taken, now, dict(zip(places, heads or (), strict=False)))
        if room <= 0 or not look.limited:
            return claimed
        others = tuple(filter(limited, claim.slots))
        more = await self._weighed(replace(claim, slots=others, limit=room, before=len(taken)), claim)
        return replace(more, records=claimed.records + more.records)

    async def _took(self, claim: Claim, heads: list[float] | None = None) -> tuple[list[Record], int, _Peek | None]:
        """What is due of steps that nothing limits, from these heads on, and the epoch, 0 if nothing is due.

        Without heads also a look at what is left.
        """
        epoch = 0

        async def body(wire: Wire) -> tuple[list[Record], _Peek | None]:
            # No other claim of this worker runs meanwhile, such as a try whose answer was lost, and nobody closes it.
            self._lock(wire, Want(quiet={claim.worker}))
            place = self._take(wire, claim, heads)
            wire.hurry()  # the rows are read here while the server looks for more and commits
            peek = wire.send(_PEEK, *self._peeking(claim)) if heads is None else None
            standing = wire.send(STANDING) if self._known is None else None  # so the first commit needs no look
            taken: list[Record] = []
            ends: list[int | None] = []

            def read(answer: Answer) -> None:
                nonlocal epoch
                worker, names = claim.worker, _sent(claim.worker, claim.slots).names
                for row in answer.rows():
                    values = list(row)
                    ends.append(values[_STEP])
                    epoch = values[_STATUS]
                    # One object for all of them, where each row would bring its own.
                    values[_WORKFLOW], values[_STEP] = names[values[_WORKFLOW] - 1]
                    values[_STATUS], values[_WORKER] = Status.RUNNING, worker
                    taken.append(Record(*values))

            answers = await wire.flush(commits=True, early=(place, read), last=True)
            if standing is not None:
                self._stands(View(), answers[standing])
            self._ends.put(taken, ends)
            return taken, self._looked(answers[peek].rows()[0]) if peek is not None else None

        taken, look = await self._transacted(self._claims, body)
        if look is not None:
            if look.sealed:
                raise Moved(sealed_text(look.sealed))
            may_claim(claim, known=look.closed is not None, closed=look.closed or None)
            self._heard(look.now)
        if references := rows.references(taken, Record):
            blobs = dict(await self._asked(READ_BLOBS, array("text", sorted(references)), lane=self._claims))
            taken = [rows.with_blobs(row, Record, lambda ref, where: resolved(ref, blobs, where)) for row in taken]
        self._remember(taken)
        return taken, epoch, look

    def _take(self, wire: Wire, claim: Claim, heads: list[float] | None) -> int:
        sent = _sent(claim.worker, claim.slots)
        if heads is not None:
            heads = [head for head, slot in zip(heads, claim.slots, strict=True) if not limited(slot)]
        begin = array("float8", [-inf] * len(sent.names) if heads is None else heads)
        runs = runs_of(claim.claim_id)
        return wire.send(
            _TAKE,
            self._told,
            claim.worker,
            runs,
            claim.claim_id,
            *sent.taken,
            begin,
            claim.limit,
            claim.before,
            leaves.FEW,
            postgres_heads.LARGE,
            sent.versions,
        )

    # -- by the rules ------------------------------------------------------------------------------------------

    async def _weighed(self, claim: Claim, whole: Claim | None = None) -> Claimed:
        """``whole``: the claim that this one is a part of; what is left is told of all its steps."""
        return await self._transacted(self._claims, lambda wire: self._decided_on(wire, claim, whole or claim))

    async def _decided_on(self, wire: Wire, claim: Claim, whole: Claim) -> Claimed:
        want = Want(quiet={claim.worker}, held={claim.worker} if claim.again else set())
        for slot in claim.slots:
            want.of_slot(slot)
        view = View()
        self._begin(wire, want)
        await self._read_into(view, wire, want)
        if taken_before := claimed_by(claim, view.held):
            return Claimed(tuple(taken_before), view.now)
        sketch = Draft(view, view.now)
        room = array("bigint", [sketch.allowance(slot) for slot in claim.slots])
        place = wire.send(_LOCK, self._told, *_named(claim.slots), room, claim.limit, _versions(claim.slots))
        answers = await wire.flush()
        reading = Reading(view, wire)
        due = reading.take_due(answers[place])
        await reading.put_blobs()

        refilled: float | None = None

        def decide(draft: Draft, view: View) -> list[Record]:
            nonlocal refilled
            taken: list[Record] = []
            for number, slot in enumerate(claim.slots, 1):
                room = min(draft.allowance(slot), claim.limit - len(taken))
                found = [view.records[record_id] for record_id in due.get(number, [])[:room]]
                taken += draft.claim(claim, slot, [row for row in found if row is not None])
            refilled = draft.next_look(claim.slots, None)
            return taken

        taken, left = await self._written(
            wire, "claim", view, decide, then=lambda: wire.send(_PEEK, *self._peeking(whole))
        )
        assert left is not None
        look = self._looked(left.rows()[0])
        next_due = look.next_due
        if look.limited and refilled is not None:  # something stays that is due, perhaps only until a rate has a token
            next_due = refilled if next_due is None else min(next_due, refilled)
        return Claimed(tuple(taken), view.now, next_due, look.priority, look.epoch)


def _named(slots: Iterable[Slot]) -> tuple[bytes, bytes]:
    return array("text", [slot.workflow for slot in slots]), array("text", [slot.step for slot in slots])


@lru_cache(maxsize=256)
def _versions(slots: tuple[Slot, ...]) -> bytes:
    return array("bigint", [slot.version for slot in slots])


class _Sent(NamedTuple):
    """What is sent of a worker's steps."""

    #: Of all: their workflows and names, and whether they have a limit.
    looked_at: tuple[bytes, bytes, bytes]
    #: Of those without a limit: workflows, names, how many, for how long; what their lines say before and after the
    #: name of the run; and the numbers under which it is told how far claims came.
    taken: tuple[bytes, bytes, bytes, bytes, bytes, bytes, bytes]
    #: The same as they are here.
    names: tuple[tuple[str, str], ...]
    #: And the versions that the worker has.
    versions: bytes


@lru_cache(maxsize=1024)
def _told_of(worker: str, step: str) -> tuple[str, str, str]:
    """The line of a claim, parted at the name of the run."""
    return claim_told(worker, "", step).partition(_RUN)


@lru_cache(maxsize=256)
def _sent(worker: str, slots: tuple[Slot, ...]) -> _Sent:
    """Kept: a worker claims for the same steps all the time, beginning with another one each time."""
    plain = [slot for slot in slots if not limited(slot)]
    told = [_told_of(worker, slot.step) for slot in plain]
    return _Sent(
        (*_named(slots), array("boolean", list(map(limited, slots)))),
        (
            *_named(plain),
            array("bigint", [slot.free for slot in plain]),
            array("float8", [slot.timeout for slot in plain]),
            array("text", [head + mark for head, mark, _ in told]),
            array("text", [tail for _, _, tail in told]),
            array("bigint", list(map(code_of, plain))),
        ),
        tuple((slot.workflow, slot.step) for slot in plain),
        _versions(tuple(plain)),
    )
