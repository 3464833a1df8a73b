"""The ledger in PostgreSQL: many machines, one truth.

Commits are decided over what this process knows, where that is enough (``postgres_guess``), and under locks where it is
not (``postgres_decide``). Beats, but for a worker's first, and reads have connections of their own
and never wait for a batch.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from quire.clock import SYSTEM, Clock
from quire.errors import LedgerError, ValueRefused, WorkerClosed
from quire.ledger import columns as rows
from quire.ledger.base import Recovered, Row, Tidied
from quire.ledger.postgres import pages as leaves
from quire.ledger.postgres.fast.claims import PostgresClaims
from quire.ledger.postgres.fast.commits import STANDS
from quire.ledger.postgres.server import EXCLUSIVE
from quire.ledger.postgres.view import (
    CONTROL,
    NOW,
    READ_HELD,
    Missing,
    Reading,
    View,
    Want,
    turns_of,
)
from quire.ledger.postgres.wire import Clash, Wire, Wrong, array
from quire.ledger.postgres.writer import Restorer, Writer
from quire.model.change import (
    Applied,
    Beaten,
    Change,
    Holding,
    Order,
    Refused,
    Send,
    Standing,
    Verdict,
)
from quire.model.event import Event
from quire.model.record import UNDO, Status
from quire.model.row import field_names, from_values, replace
from quire.model.side import Setting, Worker
from quire.rules.draft import GRACE, Draft

T = TypeVar("T")

#: So many changes go behind others on the same connection.
MANY = 50

# -- statements --------------------------------------------------------------------------------------------------

#: Renew a lease unless the worker was closed: one statement, decided under the lock of the worker's row.
_BEAT = f"""
    WITH moment AS (SELECT {NOW} AS now),
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
#: Order by order (there are few), so that where nothing was halted no record is looked at: the planner, left to itself,
#: goes through all open records and asks for each whether it was.
_OUTDATED = """
    FROM controls CROSS JOIN LATERAL (
        SELECT record_id, parent_id FROM records
        WHERE queue IS NOT NULL AND epoch < floor AND (scope = '*' OR workflow = scope)
            AND NOT (status = 'NEEDS_APPROVAL' AND open_intents > 0)
        OFFSET 0
    ) AS outdated
"""
_ABANDONED = f"""
    FROM fanins JOIN records USING (parent_id, generation)
    WHERE abandoned AND "left" > 0 AND step <> '{UNDO}' AND (
        queue IS NOT NULL AND (open_intents = 0 OR cancel IS NULL) OR status = 'RUNNING' AND cancel IS NULL
    )
"""
#: One look: is there anything to take over or to sweep, and which workers are open?
_NEEDS_RECOVERY = f"""
    SELECT found.needed, {", ".join(f"workers.{name}" for name in field_names(Worker))}
    FROM (SELECT {NOW} AS now) AS moment
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


class PostgresLedger(PostgresClaims):
    """A ledger in a PostgreSQL database. ``url`` is ``postgresql://…``; ``?schema=NAME`` chooses its schema there."""

    def __init__(self, url: str, clock: Clock | None = None) -> None:
        super().__init__(url, clock)
        #: Workers of this process, as they were at their last beat.
        self._beaten: dict[str, Worker] = {}

    # -- changes -----------------------------------------------------------------------------------------------

    async def commit(self, changes: Sequence[Change]) -> list[Verdict]:
        if not changes:
            return []

        try:
            if (verdicts := await self._guessed(changes)) is not None:
                return verdicts
            want = Want()
            for change in changes:
                want.of_change(change)
            return await self._decided("commit", want, lambda draft, _: draft.commit(changes), changes=changes)
        except (ValueRefused, ValueError) as error:
            if any(change.whole for change in changes):
                return [Refused("value", f"the ledger cannot keep a value of one of them: {error}")] * len(changes)
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
        # Of many the server has work for a while. They go behind the claim that is under way, and the next claim behind
        # them: the server's one process finds its next work when it is done. Few wait for the disk only.
        many = len(changes) >= MANY
        lane = self._claims if many and self._claims.free else self._commits

        async def body(wire: Wire) -> list[Verdict]:
            draft = Draft(view, view.now)
            self._lock(wire, Want(quiet=set(view.workers)))
            stands = wire.send(STANDS, known.signature, array("text", sorted(view.workers)))
            verdicts: list[Verdict] = []
            for change in changes:
                verdict = draft.change(change)
                if type(verdict) is not Applied or verdict.again:
                    raise Wrong
                verdicts.append(verdict)
            writer = Writer(wire, view, draft, self.traits.inline_bytes, self._ends)
            writer.send()
            answers = await wire.flush(commits=True, last=many)
            self._heard(answers[stands].rows()[0][0])
            leaf = None if writer.leaf is None else answers[writer.leaf].rows()[0][0]
            self._ends.moved(view.records, draft.records, leaf)
            self._remember(draft.records.values())
            if draft.woke:
                self._bell.ring()
            return verdicts

        try:
            return await self._transacted(lane, body, once=True, behind=many)
        except (Wrong, Missing, Clash):
            for change in changes:
                self._images.pop(change.record_id, None)
            return None

    async def send(self, sends: Sequence[Send]) -> list[Verdict]:
        if not sends:
            return []
        want = Want(records={sent.record_id for sent in sends}, signals={sent.signal_id for sent in sends})
        try:
            return await self._decided("send", want, lambda draft, _: [draft.send(sent) for sent in sends])
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

    # -- workers -----------------------------------------------------------------------------------------------

    async def beat(self, worker: Worker, holding: Holding) -> Beaten:
        """One statement for a worker that holds nothing, two for one that does; but for the first none waits."""

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
            view.workers[worker.worker_id] = replace(worker, started_at=started_at, closed=None)
            draft = Draft(view, view.now)
            try:
                beaten = draft.beat(worker, holding, view.held)
            except Missing:  # what is given back touches more than was read: that is decided under the locks
                return None
            return None if draft.records else beaten

        lane = self._beats
        if self._beaten.pop(worker.worker_id, None) is None:
            # A worker that begins finds what has gathered: its first claim needs no look.
            self._more_is_due = self._limited_is_due = True
            if not holding.versions:
                lane = self._claims  # where its first claim comes next: it needs no other connection yet
        beaten = await self._transacted(lane, body) or await self._reconciled(worker, holding)
        self._beaten[worker.worker_id] = worker
        return beaten

    async def _reconciled(self, worker: Worker, holding: Holding) -> Beaten:
        """The ledger gives the worker records that it does not know of: under their locks they are taken back."""
        want = Want(workers={worker.worker_id}, held={worker.worker_id})
        beaten = await self._decided(
            "beat", want, lambda draft, view: draft.beat(worker, holding, view.held), lane=self._beats
        )
        if beaten is None:
            raise _closed(worker.worker_id)
        return beaten

    async def farewell(self, worker_id: str) -> None:
        self._beaten.pop(worker_id, None)
        want = Want(quiet={worker_id}, workers={worker_id}, held={worker_id})
        await self._decided("farewell", want, lambda draft, view: draft.farewell(worker_id, view.held))

    async def recover(self, limit: int = 500, dead: Sequence[str] = ()) -> Recovered:
        found = await self._asked(_NEEDS_RECOVERY, self._told, lane=self._claims)
        if not found[0][0] and not dead:
            return Recovered(open=tuple(from_values(Worker, row[1:]) for row in found if row[1] is not None))
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
        want.fanins = want.intents = set(candidates) | more.fanins | more.intents
        want.records |= more.records
        await self._read_into(view, wire, want)
        if turns := turns_of(view, dict.fromkeys(want.fanins, limit)):
            await self._read_into(view, wire, Want(records=turns))
        alive = wire.send(
            f"SELECT {rows.columns(Worker)} FROM workers WHERE closed IS NULL ORDER BY started_at, worker_id"
        )
        workers = [from_values(Worker, row) for row in (await wire.flush())[alive].rows()]

        def decide(draft: Draft, view: View) -> Recovered:
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

            def decide(draft: Draft, view: View) -> None:
                if order.word in ("seal", "unseal"):
                    wire.send("UPDATE ledger SET sealed = $1", order.seal(view.sealed))
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
        if not events:
            return 0
        sql = (
            "DELETE FROM events USING unnest($1::bigint[], $2::text[]) AS gone (seq, hash) "
            "WHERE events.seq = gone.seq AND events.hash = gone.hash"
        )
        seqs, hashes = [event.seq for event in events], [event.hash for event in events]
        given = array("bigint", seqs), array("text", hashes)

        async def body(wire: Wire) -> int:
            wire.send("BEGIN")
            gone = wire.send(sql, *given)
            marked = wire.send(leaves.FORGET, *given)
            answers = await wire.flush()
            forgotten: int = answers[gone].count + sum(count for (count,) in answers[marked].rows())
            empty = bool(answers[marked].rows())
            while empty:
                place = wire.send(leaves.EMPTY, min(seqs), max(seqs))
                empty = bool((await wire.flush())[place].count)
            wire.send("COMMIT")
            await wire.flush()
            return forgotten

        return await self._transacted(self._claims, body)

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
