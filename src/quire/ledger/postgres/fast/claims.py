"""Claims by the server: due records become a worker's by one statement.

If nothing but its place in the queue decides about a record, the server takes it by itself: it finds what is due,
writes the rows and their lines, and returns them, in one flush. What it writes is what the rules would decide, to the
byte; tests/ledger/test_postgres_claims_by_server.py compares the two. Steps with a cap or a rate are claimed under
locks, and so is a claim whose first answer was lost.
"""

from __future__ import annotations

from functools import lru_cache
from math import inf
from typing import NamedTuple

from quire.errors import LedgerUnavailable, Moved
from quire.ledger import columns as rows
from quire.ledger.blobs import resolved
from quire.ledger.postgres import pages
from quire.ledger.postgres.claims import MOMENT, ORDERS, PEEK, Claims, Peek, due, named, versions
from quire.ledger.postgres.fast import queue_marks
from quire.ledger.postgres.fast.queue_marks import MARK, code_of, reached
from quire.ledger.postgres.known import Known
from quire.ledger.postgres.locked import Locked
from quire.ledger.postgres.pages import COLUMNS, ROOM
from quire.ledger.postgres.reading import READ_BLOBS
from quire.ledger.postgres.server import Server
from quire.ledger.postgres.view import STANDING, View
from quire.ledger.postgres.want import Want
from quire.ledger.postgres.wire import Answer, Lost, Wire, array
from quire.model.change import Claim, Claimed, Slot
from quire.model.record import Record, Status
from quire.model.row import field_names, field_places, replace
from quire.rules.claims import limited, may_claim, runs_of
from quire.rules.moves import claim_body
from quire.rules.orders import sealed_text

#: Where the queue of a step begins: at its mark.
_FROM_MARK = "rank >= slot.mark"
#: What a claim knows of its records is not sent back. In place of it come the number of the step, the last page, and
#: the epoch, so that the worker learns of a halt at once.
_RETURNED = {
    "workflow": "taken.place",
    "step": "records.log_at",
    "status": "(SELECT epoch FROM ledger)",
    "worker": "NULL",
}
_WORKFLOW, _STEP, _STATUS, _WORKER = (field_places(Record)[name] for name in _RETURNED)
#: The lines of the records in a table ``taken``: as a page, or as rows.
_LINES = f"""
    line_rows AS (
        INSERT INTO events ({", ".join(COLUMNS)})
        SELECT record_id, n, v, now, 'claimed', body, run, $4, hash FROM taken
        WHERE (SELECT count(*) FROM taken) NOT BETWEEN $15::bigint AND {ROOM}
    ),
    page AS (
        INSERT INTO leaves ({", ".join(COLUMNS)}, before)
        SELECT array_agg(record_id), array_agg(n), array_agg(v), ARRAY[min(now)], ARRAY['claimed'], array_agg(body),
            array_agg(run), ARRAY[$4], array_agg(hash), array_agg(log_at)
        FROM taken HAVING count(*) BETWEEN $15::bigint AND {ROOM}
        RETURNING seq
    )
"""
#: Find what is due, and make it the worker's, as ``rules.moves.claim`` says; lines are chained as by ``event.chained``.
#: Nothing is due for a worker that is not open, or in a sealed ledger. Rows are found again by where they lie (ctid): a
#: row that was changed while this statement began does not lie there any more, and is left for the next claim.
_TAKE = f"""
    WITH {ORDERS},
    moment AS MATERIALIZED (
        SELECT now, margin, CASE WHEN now::text LIKE '%.%' THEN now::text ELSE now::text || '.0' END AS written
        FROM {MOMENT} AS clock CROSS JOIN ledger CROSS JOIN workers
        WHERE sealed = '' AND worker_id = $2 AND closed IS NULL
    ),
    due AS MATERIALIZED (
        SELECT due.lies, due.rank, slot.code, slot.mark, slot.place, slot.timeout, slot.before, slot.after
        FROM moment
        CROSS JOIN (
            SELECT workflow, step, room, timeout, before, after, code, version, place, {MARK} AS mark
            FROM reached CROSS JOIN moment CROSS JOIN unnest(
                $5::text[], $6::text[], $7::bigint[], $8::float8[], $9::text[], $10::text[], $11::bigint[],
                $12::float8[], $17::bigint[]
            ) WITH ORDINALITY AS given (workflow, step, room, timeout, before, after, code, known, version, place)
        ) AS slot
        {due("ctid AS lies, rank", _FROM_MARK)}
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
    {_LINES}
    UPDATE records SET
        status = 'RUNNING', worker = $2, run_id = run, run_until = until, question = NULL, version = v,
        updated_at = now, queue = NULL, rank = NULL, log_seq = n, log_hash = hash,
        log_at = coalesce((SELECT seq FROM page), records.log_at)
    FROM taken WHERE records.ctid = lies
    RETURNING {", ".join(_RETURNED.get(name, f"records.{rows.quoted(name)}") for name in field_names(Record))}
"""
#: In the line of a claim, the id of the run comes after this text. Quotes in the text before it are escaped.
_RUN = '"run":"'


class ClaimsByServer:
    """Claims of one flush; of steps with a limit, the claims under locks take over."""

    def __init__(self, server: Server, known: Known, locked: Locked, claims: Claims) -> None:
        self._server = server
        self._known = known
        self._locked = locked
        self._claims = claims
        #: What the last peek saw. A claim that goes on from marks, and finds all that it asks for, does not peek.
        self._peek: Peek | None = None

    async def claim(self, claim: Claim) -> Claimed | None:
        """Let the server claim; None: it does not decide about this claim, and nothing was taken."""
        # Steps with a limit have their turn, too: the step that the claim names first is asked first.
        their_turn = claim.slots and limited(claim.slots[0]) and self._claims.limited_is_due
        if claim.again or not claim.slots or their_turn:
            return None
        try:
            return await self._claimed(claim)
        except LedgerUnavailable as error:
            if not isinstance(error.__cause__, Lost):
                raise
            # The connection may have died before, while nobody used it. If the claim took records, they are found.
            return await self._claims.claim(replace(claim, again=True))

    async def _claimed(self, claim: Claim) -> Claimed:
        """Claim of steps without a limit; then, if there is room left, of steps with a cap or a rate."""
        marks = self._known.marks.of(claim.slots) if claim.limit else None  # a claim of none is a peek
        taken, epoch, peek = await self._taken(claim, marks)
        if marks is not None and len(taken) < claim.limit:
            before, marks = len(taken), None
            rest, epoch, peek = await self._taken(replace(claim, limit=claim.limit - before, before=before))
            taken += rest
        self._peek = peek = peek or self._peek
        assert peek is not None
        now = taken[-1].updated_at if taken else peek.now
        claimed = Claimed(tuple(taken), now, peek.next_due, peek.priority, max(epoch, peek.epoch))
        room = claim.limit - len(taken)
        if room > 0:
            self._known.marks.forget()
        else:
            places = [(slot.workflow, slot.step) for slot in claim.slots]
            self._known.marks.reached(taken, now, dict(zip(places, marks or (), strict=False)))
        if room <= 0 or not peek.limited:
            return claimed
        others = tuple(filter(limited, claim.slots))
        more = await self._claims.claim(replace(claim, slots=others, limit=room, before=len(taken)), claim)
        return replace(more, records=claimed.records + more.records)

    async def _taken(self, claim: Claim, marks: list[float] | None = None) -> tuple[list[Record], int, Peek | None]:
        """Take what is due of steps without a limit, from these marks on. Return the records and the epoch.

        The epoch is 0 if nothing is due. Without marks, this also peeks at what is left.
        """
        epoch = 0

        async def body(wire: Wire) -> tuple[list[Record], Peek | None]:
            # No other claim of this worker runs meanwhile, such as one whose answer was lost, and nobody closes it.
            self._locked.lock(wire, Want(quiet={claim.worker}))
            place = self._take(wire, claim, marks)
            wire.hurry()  # the rows are read here while the server peeks and commits
            peek = wire.send(PEEK, *self._claims.peeking(claim)) if marks is None else None
            # With the orders, the first commit can be an optimistic one.
            standing = wire.send(STANDING) if self._known.orders is None else None
            taken: list[Record] = []
            last_pages: list[int | None] = []

            def read(answer: Answer) -> None:
                nonlocal epoch
                worker, names = claim.worker, _sent(claim.worker, claim.slots).names
                for row in answer.rows():
                    values = list(row)
                    last_pages.append(values[_STEP])
                    epoch = values[_STATUS]
                    # One object for all of them, where each row would bring its own.
                    values[_WORKFLOW], values[_STEP] = names[values[_WORKFLOW] - 1]
                    values[_STATUS], values[_WORKER] = Status.RUNNING, worker
                    taken.append(Record(*values))

            answers = await wire.flush(commits=True, early=(place, read), last=True)
            if standing is not None:
                view = View()
                view.take_standing(answers[standing], self._server.given_now)
                self._known.read(view)
            self._known.last_pages.put(taken, last_pages)
            return taken, self._claims.peeked(answers[peek].rows()[0]) if peek is not None else None

        taken, peek = await self._server.transacted(self._server.claims, body)
        if peek is not None:
            if peek.sealed:
                raise Moved(sealed_text(peek.sealed))
            may_claim(claim, known=peek.closed is not None, closed=peek.closed or None)
            self._known.heard(peek.now)
        if references := rows.references(taken, Record):
            found = await self._server.ask(READ_BLOBS, array("text", sorted(references)), pool=self._server.claims)
            blobs = dict(found)
            taken = [rows.with_blobs(row, Record, lambda ref, where: resolved(ref, blobs, where)) for row in taken]
        self._known.remember(taken)
        return taken, epoch, peek

    def _take(self, wire: Wire, claim: Claim, marks: list[float] | None) -> int:
        sent = _sent(claim.worker, claim.slots)
        if marks is not None:
            marks = [mark for mark, slot in zip(marks, claim.slots, strict=True) if not limited(slot)]
        begin = array("float8", [-inf] * len(sent.names) if marks is None else marks)
        runs = runs_of(claim.claim_id)
        return wire.send(
            _TAKE,
            self._server.given_now,
            claim.worker,
            runs,
            claim.claim_id,
            *sent.arrays,
            begin,
            claim.limit,
            claim.before,
            pages.FEW,
            queue_marks.LARGE,
            sent.versions,
        )


class _Sent(NamedTuple):
    """What is sent of a worker's steps without a limit."""

    #: Workflows, names, how many, for how long; what their lines say before and after the id of the run; and the
    #: numbers under which it is written how far claims came.
    arrays: tuple[bytes, bytes, bytes, bytes, bytes, bytes, bytes]
    #: The workflows and names as they are here.
    names: tuple[tuple[str, str], ...]
    #: The versions that the worker has.
    versions: bytes


@lru_cache(maxsize=1024)
def _line_around_run(worker: str, step: str) -> tuple[str, str, str]:
    """Return the line of a claim, parted at the id of the run."""
    return claim_body(worker, "", step).partition(_RUN)


@lru_cache(maxsize=256)
def _sent(worker: str, slots: tuple[Slot, ...]) -> _Sent:
    """Kept: a worker claims for the same steps all the time, and begins with another one each time."""
    plain = tuple([slot for slot in slots if not limited(slot)])
    workflows, steps, _ = named(plain)
    lines = [_line_around_run(worker, slot.step) for slot in plain]
    return _Sent(
        (
            workflows,
            steps,
            array("bigint", [slot.free for slot in plain]),
            array("float8", [slot.timeout for slot in plain]),
            array("text", [head + mark for head, mark, _ in lines]),
            array("text", [tail for _, _, tail in lines]),
            array("bigint", list(map(code_of, plain))),
        ),
        tuple((slot.workflow, slot.step) for slot in plain),
        versions(plain),
    )
