"""The ledger in PostgreSQL: many machines, one truth.

Every write verb is one transaction of two flushes. The first *locks*, then reads: the control lock (shared; orders take
it exclusively), caps and rates by name, workers, records by id, fan-ins. Only statements after the locks read what the
decision rests on, for a statement sees what was committed before it began, however long it then waits (protocol 4). The
second flush writes the after-images of the ``Draft`` and commits. What a draft asks for and was not read makes the
transaction start again with more to read.

Big batches are written in parts while the rest is still being decided, so that both processors work. Rows of records
that this process holds are not read again: their version and the end of their log say that they are as they were left.

Time is the server's, read after the locks. Beats and reads have connections of their own and never wait for a batch.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from quire.clock import SYSTEM, Clock
from quire.errors import LedgerError, ValueRefused, WorkerClosed
from quire.ledger import rows
from quire.ledger.base import Recovered, Row, Tidied, Traits
from quire.ledger.postgres_guess import OPEN, STANDS, Known
from quire.ledger.postgres_link import EXCLUSIVE
from quire.ledger.postgres_look import PostgresLooks
from quire.ledger.postgres_view import (
    CLOCK,
    CONTROL,
    READ_HELD,
    RECORD,
    STANDING,
    Missing,
    Reading,
    View,
    Want,
    still_wanted,
    turns_of,
)
from quire.ledger.postgres_wire import Answer, Clash, Lane, Wire, Wrong, array
from quire.ledger.postgres_write import Restorer, Writer
from quire.ledger.rules import GRACE, Draft
from quire.ledger.rules_claim import claimed_by, may_claim
from quire.model.change import (
    Applied,
    Beaten,
    Change,
    Claim,
    Claimed,
    Holding,
    Order,
    Refused,
    Send,
    Slot,
    Standing,
    Verdict,
)
from quire.model.event import Event
from quire.model.record import PRIORITY_SECONDS, Record, Status
from quire.model.side import Setting, Worker

T = TypeVar("T")

#: So many changes are decided, then their rows go to the server while the next are being decided.
STREAM_CHANGES = 100
#: Images kept of records that run here.
MOST_IMAGES = 20_000

_NOW = f"coalesce($1::float8, {CLOCK})"

# -- statements --------------------------------------------------------------------------------------------------

#: The control lock, and word to event readers: this transaction's events come after what is numbered now.
_SHARED = (
    "SELECT pg_advisory_xact_lock_shared($1::bigint), pg_advisory_xact_lock_shared($2::bigint | last_value) "
    "FROM events_seq_seq"
)
_NAMED = "SELECT pg_advisory_xact_lock(name) FROM unnest($1::bigint[]) AS name"


#: How much later than its due time a record's rank may be: as far as priorities go below zero.
_MARGIN = (
    f"(SELECT coalesce(-min(priority), 0) * {PRIORITY_SECONDS} FROM records WHERE priority < 0 AND queue IS NOT NULL)"
)
_STOPPED = """
    SELECT coalesce(max(floor), 0) AS floor, coalesce(bool_or(halted OR paused), false) AS stopped
    FROM controls WHERE scope IN ('*', slot.workflow)
"""
_IS_DUE = """
    workflow = slot.workflow AND queue = slot.step AND rank <= moment.now + moment.margin
    AND due_at <= moment.now AND epoch >= control.floor
"""
#: Due records, per step at most its room, in order of rank; none that another claim is taking at this moment. The
#: steps are gone through in order, and no more rows are locked than are asked for.
_TAKE = f"""
    SELECT slot.place, {", ".join(f"due.{rows.quoted(name)}" for name in Record._fields)}
    FROM (SELECT {_NOW} AS now, {_MARGIN} AS margin) AS moment
    CROSS JOIN unnest($2::text[], $3::text[], $4::bigint[]) WITH ORDINALITY AS slot (workflow, step, room, place)
    CROSS JOIN LATERAL ({_STOPPED}) AS control
    CROSS JOIN LATERAL (
        SELECT {RECORD} FROM records WHERE {_IS_DUE} AND NOT control.stopped
        ORDER BY rank, record_id LIMIT slot.room FOR UPDATE SKIP LOCKED
    ) AS due
    LIMIT $5
"""
#: May anything be claimed, how urgent is the first of each step that is due, and if none is: when will one be? And why
#: was the worker that asks closed (NULL: it is not known), and is the ledger sealed?
_PEEK = f"""
    SELECT moment.now, bool_or(due.priority IS NOT NULL AND NOT control.stopped), max(due.priority), min(soon.due_at),
        (SELECT coalesce(closed, '') FROM workers WHERE worker_id = $4), (SELECT sealed FROM ledger),
        (SELECT epoch FROM ledger)
    FROM (SELECT {_NOW} AS now, {_MARGIN} AS margin) AS moment
    LEFT JOIN unnest($2::text[], $3::text[]) AS slot (workflow, step) ON true
    LEFT JOIN LATERAL ({_STOPPED}) AS control ON true
    LEFT JOIN LATERAL (SELECT priority FROM records WHERE {_IS_DUE} ORDER BY rank, record_id LIMIT 1) AS due ON true
    LEFT JOIN LATERAL (
        SELECT min(due_at) AS due_at FROM (
            SELECT due_at FROM records
            WHERE due.priority IS NULL AND workflow = slot.workflow AND queue = slot.step AND rank IS NOT NULL
                AND due_at > moment.now
            ORDER BY rank, record_id LIMIT 16
        ) AS first
    ) AS soon ON true
    GROUP BY moment.now
"""
#: Renew a lease unless the worker was closed: one statement, decided under the lock of the worker's row.
_BEAT = f"""
    WITH moment AS (SELECT {_NOW} AS now),
    renewed AS (
        INSERT INTO workers AS known ({rows.columns(Worker)})
        SELECT $2, $3, $4, $5, $6, now, now + $7::float8, $7::float8, NULL, $8 FROM moment, ledger WHERE sealed = ''
        ON CONFLICT (worker_id) DO UPDATE SET
            label = excluded.label, host = excluded.host, boot_id = excluded.boot_id, pid = excluded.pid,
            expires_at = excluded.expires_at, lease_seconds = excluded.lease_seconds, knows = excluded.knows
        WHERE known.closed IS NULL
        RETURNING started_at
    )
    SELECT now, (SELECT started_at FROM renewed),
        (SELECT count(*) FROM records WHERE status = 'RUNNING' AND worker = $2), sealed, {CONTROL}
    FROM moment CROSS JOIN ledger LEFT JOIN controls ON true
"""
_EXPIRED = f"closed IS NULL AND expires_at + {GRACE} * lease_seconds < {{}}"
_OUTDATED = """
    FROM controls JOIN records ON queue IS NOT NULL AND epoch < floor AND (scope = '*' OR workflow = scope)
    WHERE NOT (status = 'NEEDS_APPROVAL' AND open_intents > 0)
"""
_ABANDONED = """
    FROM fanins JOIN records USING (parent_id, generation)
    WHERE abandoned AND "left" > 0 AND (queue IS NOT NULL AND open_intents = 0 OR status = 'RUNNING' AND cancel IS NULL)
"""
#: One look: is there anything to take over or to sweep, and which workers are open?
_NEEDS_RECOVERY = f"""
    SELECT found.needed, {", ".join(f"workers.{name}" for name in Worker._fields)}
    FROM (SELECT {_NOW} AS now) AS moment
    CROSS JOIN LATERAL (
        SELECT EXISTS (SELECT 1 FROM workers WHERE {_EXPIRED.format("moment.now")})
            OR EXISTS (SELECT 1 FROM records WHERE status = 'RUNNING' AND run_until < moment.now)
            OR EXISTS (SELECT 1 {_OUTDATED}) OR EXISTS (SELECT 1 {_ABANDONED}) AS needed
    ) AS found
    LEFT JOIN workers ON closed IS NULL
    ORDER BY workers.started_at, workers.worker_id
"""
_RECOVERABLE = f"""
    SELECT record_id, parent_id FROM records WHERE status = 'RUNNING' AND worker = ANY($2::text[])
    UNION SELECT record_id, parent_id FROM records WHERE status = 'RUNNING' AND run_until < $1::float8
    UNION (SELECT record_id, parent_id {_OUTDATED} LIMIT $3)
    UNION (SELECT record_id, parent_id {_ABANDONED} LIMIT $3)
"""

Decide = Callable[[Draft, View, Writer], T]


class PostgresLedger(PostgresLooks):
    """A ledger in a PostgreSQL database. ``url`` is ``postgresql://…``; ``?schema=NAME`` chooses its schema there."""

    #: The longer the lease, the fewer the beats of an idle worker; a dead one on the same machine is known at once.
    traits = Traits(durable=True, shared=True, remote=True, lease_seconds=60.0, side_by_side=True)

    def __init__(self, url: str, clock: Clock | None = None) -> None:
        super().__init__(url, clock)
        #: For tests: awaited between the locks of a verb and its decision, with the verb's name.
        self.barrier: Callable[[str], Awaitable[None]] | None = None
        self._images: dict[str, Record] = {}
        self._known: Known | None = None
        #: Workers of this process, as they were at their last beat.
        self._beaten: dict[str, Worker] = {}
        self._offset = 0.0
        self._more_is_due = False

    # -- transactions ------------------------------------------------------------------------------------------

    async def _decided(
        self, verb: str, want: Want, decide: Decide[T], *, lane: Lane | None = None, changes: Sequence[Change] = ()
    ) -> T:
        """One transaction: lock, look, decide, write, commit."""

        async def body(wire: Wire) -> T:
            view = await self._locked(wire, want, changes)
            answer, _ = await self._written(wire, verb, view, decide)
            return answer

        return await self._complete(lane or self._commits, body, want, changes)

    async def _complete(
        self, lane: Lane, body: Callable[[Wire], Awaitable[T]], want: Want, changes: Sequence[Change] = ()
    ) -> T:
        """Run the body until nothing is missing: from its start, so that all is locked in its place in the order."""
        while True:
            try:
                return await self._transacted(lane, body)
            except Missing as missing:
                if not want.missed(missing):
                    raise LedgerError(f"the ledger does not find what a rule asks for: {missing}") from missing
                want.everything_of(changes)

    async def _written(self, wire: Wire, verb: str, view: View, decide: Decide[T]) -> tuple[T, list[Answer]]:
        """Decide, write and commit; answers the decision, and what the server said."""
        if self.barrier is not None:
            await self.barrier(verb)
        draft = Draft(view, view.now)
        writer = Writer(wire, view, draft, self.traits.inline_bytes)
        answer = decide(draft, view, writer)
        writer.finish()
        wire.send("COMMIT")
        answers = await wire.flush()
        self._remember(draft.records.values())
        if draft.woke:
            self._bell.ring()
        return answer, answers

    def _remember(self, changed: Iterable[Record]) -> None:
        """Keep the images of records that run: whoever holds them here will change them next."""
        for record in changed:
            if record.status is Status.RUNNING:
                self._images[record.record_id] = record
            else:
                self._images.pop(record.record_id, None)
        while len(self._images) > MOST_IMAGES:
            del self._images[next(iter(self._images))]

    # -- locking and reading -----------------------------------------------------------------------------------

    def _begin(self, wire: Wire, want: Want) -> None:
        wire.send("BEGIN")
        self._lock(wire, want)

    def _lock(self, wire: Wire, want: Want) -> None:
        """The first locks, in the order that all verbs keep."""
        wire.send(_SHARED, self._control_key, self._events_key)
        names = {self._key("cap", workflow, step or "*") for workflow, step in want.caps}
        names |= {self._key("rate", name) for name in want.buckets}
        if names:
            wire.send(_NAMED, array("bigint", sorted(names)))
        self._quieten(wire, want.quiet)

    def _quieten(self, wire: Wire, worker_ids: Iterable[str]) -> None:
        """Nothing is claimed for these workers until the transaction ends."""
        if keys := sorted(self._key("worker", worker_id) for worker_id in worker_ids):
            wire.send(_NAMED, array("bigint", keys))

    async def _locked(self, wire: Wire, want: Want, changes: Sequence[Change] = ()) -> View:
        """Take the locks and read what was wanted, after them."""
        view = View()
        self._begin(wire, want)
        await self._read_into(view, wire, want)
        more = still_wanted(view, changes)
        if more != Want():
            await self._read_into(view, wire, more)
        return view

    async def _read_into(self, view: View, wire: Wire, want: Want) -> list[Answer]:
        """Lock and read in one flush, together with what was sent before; answers what the server said."""
        reading = Reading(view, wire)
        reading.want(want, self._images)
        standing = wire.send(STANDING)
        answers = await reading.done()
        view.take_standing(answers[standing], self._told)
        self._known = Known(view.epoch, view.sealed, view.controls, view.signature)
        self._heard(view.now)
        return answers

    # -- changes -----------------------------------------------------------------------------------------------

    async def commit(self, changes: Sequence[Change]) -> list[Verdict]:
        if not changes:
            return []

        def decide(draft: Draft, _view: View, writer: Writer) -> list[Verdict]:
            verdicts = []
            for number, change in enumerate(changes, 1):
                verdicts.append(draft.change(change))
                if number % STREAM_CHANGES == 0 and number < len(changes):
                    writer.push()
            return verdicts

        try:
            if (verdicts := await self._guessed(changes)) is not None:
                return verdicts
            want = Want()
            for change in changes:
                want.of_change(change)
            return await self._decided("commit", want, decide, changes=changes)
        except (ValueRefused, ValueError) as error:
            return await self._parted(changes, self.commit, error)

    async def _guessed(self, changes: Sequence[Change]) -> list[Verdict] | None:
        """Commit by one flush what needs no look (see ``postgres_guess``); None: nothing was written."""
        known = self._known
        if known is None or self.barrier is not None:
            return None
        now = SYSTEM.boottime() + self._offset if self.clock is None else self.clock.now()
        view = known.view(changes, self._images, self._beaten, now)
        if view is None:
            return None

        async def body(wire: Wire) -> list[Verdict]:
            draft = Draft(view, view.now)
            writer = Writer(wire, view, draft, self.traits.inline_bytes, guess=True)
            self._lock(wire, Want(quiet=set(view.workers)))
            if view.workers:
                wire.send(OPEN, array("text", sorted(view.workers)))
            stands = wire.send(STANDS, known.signature)
            verdicts: list[Verdict] = []
            for number, change in enumerate(changes, 1):
                verdict = draft.change(change)
                if type(verdict) is not Applied or verdict.again:
                    raise Wrong
                verdicts.append(verdict)
                if number % STREAM_CHANGES == 0 and number < len(changes):
                    writer.push()
            writer.finish()
            self._heard((await wire.flush(commits=True))[stands].rows()[0][1])
            self._remember(draft.records.values())
            if draft.woke:
                self._bell.ring()
            return verdicts

        try:
            return await self._transacted(self._commits, body, most=1)
        except (Wrong, Missing, Clash):
            for change in changes:
                self._images.pop(change.record_id, None)
            return None

    def _heard(self, now: float) -> None:
        """The server's clock, as seen from here. Its word has travelled, so the largest difference is the truest."""
        offset = now - SYSTEM.boottime()
        if offset > self._offset or offset < self._offset - 1.0:
            self._offset = offset

    async def send(self, sends: Sequence[Send]) -> list[Verdict]:
        if not sends:
            return []
        want = Want(records={sent.record_id for sent in sends}, signals={sent.signal_id for sent in sends})
        try:
            return await self._decided("send", want, lambda draft, *_: [draft.send(sent) for sent in sends])
        except (ValueRefused, ValueError) as error:
            return await self._parted(sends, self.send, error)

    @staticmethod
    async def _parted(
        batch: Sequence[T], verb: Callable[[Sequence[T]], Awaitable[list[Verdict]]], error: Exception
    ) -> list[Verdict]:
        """A value spoils the batch: halves of it are sent, until the one that holds it stands alone (protocol 14)."""
        if len(batch) == 1:
            return [Refused("value", f"the ledger cannot keep a value of it: {error}")]
        middle = len(batch) // 2
        return await verb(batch[:middle]) + await verb(batch[middle:])

    # -- claims ------------------------------------------------------------------------------------------------

    async def claim(self, claim: Claim) -> Claimed:
        self._bell.still()
        if not claim.again and not self._more_is_due:
            look = await self._asked(_PEEK, self._told, *_named(claim.slots), claim.worker, lane=self._claims)
            ((now, claimable, priority, next_due, closed, sealed, epoch),) = look
            if not sealed:
                may_claim(claim, known=closed is not None, closed=closed or None)
            if not claimable and not sealed:
                return Claimed((), now, next_due, priority, epoch)
        claimed = await self._transacted(self._claims, lambda wire: self._claimed(wire, claim))
        self._more_is_due = bool(claimed.records)
        return claimed

    async def _claimed(self, wire: Wire, claim: Claim) -> Claimed:
        # No other claim of this worker runs meanwhile, such as a first try whose answer was lost, and nobody closes it.
        want = Want(quiet={claim.worker}, held={claim.worker} if claim.again else set())
        for slot in claim.slots:
            want.of_slot(slot)
        view = View()
        self._begin(wire, want)
        limited = bool(want.caps or want.buckets)
        if limited or claim.again:
            await self._read_into(view, wire, want)
            if taken_before := claimed_by(claim, view.held):
                return Claimed(tuple(taken_before), view.now)
            sketch = Draft(view, view.now)
            place = self._take(wire, claim, [sketch.allowance(slot) for slot in claim.slots])
            answers = await wire.flush()
        else:
            place = self._take(wire, claim, [slot.free for slot in claim.slots])
            answers = await self._read_into(view, wire, want)
        reading = Reading(view, wire)
        due = reading.take_due(answers[place])
        await reading.put_blobs()
        peek = -1

        def decide(draft: Draft, view: View, writer: Writer) -> list[Record]:
            nonlocal peek
            taken: list[Record] = []
            for number, slot in enumerate(claim.slots, 1):
                room = min(draft.allowance(slot), claim.limit - len(taken))
                found = [view.records[record_id] for record_id in due.get(number, [])[:room]]
                taken += draft.claim(claim, slot, [row for row in found if row is not None])
            writer.push()
            peek = wire.send(_PEEK, self._told, *_named(claim.slots), claim.worker)
            return taken

        taken, answers = await self._written(wire, "claim", view, decide)
        ((_, _, priority, next_due, _, _, epoch),) = answers[peek].rows()
        return Claimed(tuple(taken), view.now, next_due, priority, epoch)

    def _take(self, wire: Wire, claim: Claim, room: list[int]) -> int:
        return wire.send(_TAKE, self._told, *_named(claim.slots), array("bigint", room), claim.limit)

    # -- workers -----------------------------------------------------------------------------------------------

    async def beat(self, worker: Worker, holding: Holding) -> Beaten:
        """One statement for a worker that holds nothing, two for one that does; none waits for a batch."""

        async def body(wire: Wire) -> Beaten | None:
            view = View()
            wire.send(
                _BEAT,
                self._told,
                worker.worker_id,
                worker.label,
                worker.host,
                worker.boot_id,
                worker.pid,
                worker.lease_seconds,
                worker.knows,
            )
            reading = Reading(view, wire)
            held = bool(holding.versions)
            if held:
                reading.ask(READ_HELD, [worker.worker_id], reading.take_held)
            found = (await reading.done())[0].rows()
            view.now, started_at, count, view.sealed = found[0][:4]
            if started_at is None and not view.sealed:
                raise _closed(worker.worker_id)
            if count and not held:
                reading.ask(READ_HELD, [worker.worker_id], reading.take_held)
                await reading.done()
            view.controls = {row[4]: rows.control_of(row[4:]) for row in found if row[4] is not None}
            view.workers[worker.worker_id] = worker._replace(started_at=started_at, closed=None)
            draft = Draft(view, view.now)
            try:
                beaten = draft.beat(worker, holding, view.held)
            except Missing:  # what is given back touches more than was read: that is decided under the locks
                return None
            return None if draft.records else beaten

        self._beaten.pop(worker.worker_id, None)
        beaten = await self._transacted(self._beats, body) or await self._reconciled(worker, holding)
        self._beaten[worker.worker_id] = worker
        return beaten

    async def _reconciled(self, worker: Worker, holding: Holding) -> Beaten:
        """The ledger gives the worker records that it does not know of: under their locks they are taken back."""
        want = Want(workers={worker.worker_id}, held={worker.worker_id})
        beaten = await self._decided(
            "beat", want, lambda draft, view, _: draft.beat(worker, holding, view.held), lane=self._beats
        )
        if beaten is None:
            raise _closed(worker.worker_id)
        return beaten

    async def farewell(self, worker_id: str) -> None:
        self._beaten.pop(worker_id, None)
        want = Want(quiet={worker_id}, workers={worker_id}, held={worker_id})
        await self._decided("farewell", want, lambda draft, view, _: draft.farewell(worker_id, view.held))

    async def recover(self, limit: int = 500, dead: Sequence[str] = ()) -> Recovered:
        found = await self._asked(_NEEDS_RECOVERY, self._told, lane=self._claims)
        if not found[0][0] and not dead:
            return Recovered(open=tuple(Worker._make(row[1:]) for row in found if row[1] is not None))
        more = Want()
        return await self._complete(self._claims, lambda wire: self._recovered(wire, limit, dead, more), more)

    async def _recovered(self, wire: Wire, limit: int, dead: Sequence[str], more: Want) -> Recovered:
        view = View()
        self._begin(wire, Want())
        await self._read_into(view, wire, Want())
        over = {
            str(row[0])
            for row in await wire.ask(f"SELECT worker_id FROM workers WHERE {_EXPIRED.format('$1')}", view.now)
        }
        over |= set(dead)
        # The workers first: after this none of them claims or beats, and whoever has beaten meanwhile is not expired.
        self._quieten(wire, over)
        await self._read_into(view, wire, Want(workers=over))
        want = Want()
        for record_id, parent_id in await wire.ask(_RECOVERABLE, view.now, array("text", sorted(over)), limit):
            want.records.add(record_id)
            if parent_id is not None:
                want.records.add(parent_id)
        candidates = sorted(want.records)
        want.fanins = want.intents = set(candidates)
        want.records |= more.records
        await self._read_into(view, wire, want)
        if turns := turns_of(view, dict.fromkeys(want.fanins, limit)):
            await self._read_into(view, wire, Want(records=turns))
        alive = wire.send(
            f"SELECT {rows.columns(Worker)} FROM workers WHERE closed IS NULL ORDER BY started_at, worker_id"
        )
        workers = [Worker._make(row) for row in (await wire.flush())[alive].rows()]

        def decide(draft: Draft, view: View, _writer: Writer) -> Recovered:
            found = [row for record_id in candidates if (row := view.records[record_id]) is not None]
            freed = swept = 0
            for worker_id in sorted(over):
                if (worker := view.workers[worker_id]) is not None:
                    held = [row for row in found if row.status is Status.RUNNING and row.worker == worker_id]
                    freed += draft.close(worker, held, dead=worker_id in dead)
            for row in found:
                freed += draft.overdue(draft.record(row.record_id) or row)
                swept += draft.sweep_halted(draft.record(row.record_id) or row)
            for row in found:
                if row.parent_id is not None and row.generation is not None:
                    fanin = draft.fanin(row.parent_id, row.generation)
                    if fanin is not None:
                        swept += draft.sweep_abandoned(draft.record(row.record_id) or row, fanin)
            left = tuple(worker for worker in workers if worker.worker_id not in draft.workers)
            return Recovered(len(draft.workers), freed, swept, swept >= limit, left)

        recovered, _ = await self._written(wire, "recover", view, decide)
        return recovered

    # -- orders ------------------------------------------------------------------------------------------------

    async def order(self, order: Order) -> Standing:
        async def body(wire: Wire) -> None:
            wire.send("BEGIN")
            # Alone: every transaction that began before has ended, and the next will see the order.
            wire.send(EXCLUSIVE, self._control_key)
            view = View()
            await self._read_into(view, wire, Want())

            def decide(draft: Draft, _view: View, _writer: Writer) -> None:
                if order.word in ("seal", "unseal"):
                    target = (order.target or "elsewhere") if order.word == "seal" else ""
                    wire.send("UPDATE ledger SET sealed = $1", target)
                else:
                    draft.order(order)

            await self._written(wire, "order", view, decide)

        await self._transacted(self._claims, body)
        return await self.standing()

    # -- settings and rotation ---------------------------------------------------------------------------------

    async def keep(self, setting: Setting) -> bool:
        if setting.version == 0:
            sql = "INSERT INTO settings VALUES ($1, $2, 1 + $3::bigint) ON CONFLICT DO NOTHING RETURNING 1"
        else:
            sql = "UPDATE settings SET value = $2, version = version + 1 WHERE name = $1 AND version = $3 RETURNING 1"
        return bool(await self._changed(sql, setting.name, setting.value, setting.version))

    async def forget(self, events: Sequence[Event]) -> int:
        sql = (
            "DELETE FROM events USING unnest($1::bigint[], $2::text[]) AS gone (seq, hash) "
            "WHERE events.seq = gone.seq AND events.hash = gone.hash"
        )
        seqs, hashes = [event.seq for event in events], [event.hash for event in events]
        return await self._changed(sql, array("bigint", seqs), array("text", hashes))

    async def tidy(self, before: float) -> Tidied:
        blobs = f"FROM blobs WHERE {rows.unnamed_blobs()}"

        async def body(wire: Wire) -> Tidied:
            # Looked for without the lock first: mostly there are none.
            ((some,),) = await wire.ask(f"SELECT EXISTS (SELECT 1 FROM blobs) AND EXISTS (SELECT 1 {blobs})")
            wire.send("BEGIN")
            # Alone: nobody names a blob, or intends an act, while it is decided that nothing does.
            wire.send(EXCLUSIVE, self._control_key)
            gone = wire.send(f"DELETE {blobs}") if some else None
            workers = wire.send(f"DELETE FROM workers WHERE {rows.OLD_WORKER.format('$1::float8')}", before)
            wire.send("COMMIT")
            answers = await wire.flush()
            return Tidied(answers[gone].count if gone is not None else 0, answers[workers].count)

        return await self._transacted(self._reads, body)

    async def restore(self, type_: type[Row], given: Sequence[Row], epoch: int) -> None:
        async def body(wire: Wire) -> None:
            wire.send("BEGIN")
            wire.send(EXCLUSIVE, self._control_key)
            view = View()
            await self._read_into(view, wire, Want())
            if not view.sealed:
                raise LedgerError(f"the ledger {self._address.shown} is open; rows are copied into a closed one only")
            Restorer(wire, self.traits.inline_bytes).put(type_, given)
            wire.send("UPDATE ledger SET epoch = $1::bigint", epoch)
            wire.send("COMMIT")
            await wire.flush()

        await self._transacted(self._claims, body)


def _closed(worker_id: str) -> WorkerClosed:
    return WorkerClosed(f"worker {worker_id} was closed: its lease ran out")


def _named(slots: Sequence[Slot]) -> tuple[bytes, bytes]:
    return array("text", [slot.workflow for slot in slots]), array("text", [slot.step for slot in slots])
