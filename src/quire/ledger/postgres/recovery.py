"""Recovery: taking over from workers whose lease ran out, and writing down what halts and gone parents cancelled."""

from __future__ import annotations

from collections.abc import Sequence

from quire.ledger import columns as rows
from quire.ledger.base import Recovered
from quire.ledger.postgres.locked import Locked
from quire.ledger.postgres.server import Server
from quire.ledger.postgres.view import NOW, View
from quire.ledger.postgres.want import Want, turns_of
from quire.ledger.postgres.wire import Wire, array
from quire.model.record import Status
from quire.model.row import field_names, from_values
from quire.model.side import Worker
from quire.rules import conditions, returning, sweeps
from quire.rules.draft import Draft
from quire.rules.workers import close, overdue

#: A record that may be claimed has a queue.
_WAITS = "queue IS NOT NULL"
#: Order by order (there are few), so that no record is read where nothing was halted: the planner, left to itself, goes
#: through all open records and asks of each whether it was halted.
_CANCELLED = f"""
    FROM controls CROSS JOIN LATERAL (
        SELECT record_id, parent_id FROM records
        WHERE {conditions.cancelled_sql(_WAITS, scope="scope", floor="floor")} OFFSET 0
    ) AS cancelled
"""
_ABANDONED = f"""
    FROM fanins JOIN records USING (parent_id, generation)
    WHERE {conditions.LEFT_ALONE} AND {conditions.abandoned_sql(_WAITS)}
"""
#: Is there anything to take over or to sweep, and which workers are open?
_NEEDS_RECOVERY = f"""
    SELECT found.needed, {", ".join(f"workers.{name}" for name in field_names(Worker))}
    FROM (SELECT {NOW} AS now) AS moment
    CROSS JOIN LATERAL (
        SELECT EXISTS (SELECT 1 FROM workers WHERE {conditions.expired_sql(now="moment.now")})
            OR EXISTS (SELECT 1 FROM records WHERE {conditions.overdue_sql(now="moment.now")})
            OR EXISTS (SELECT 1 {_CANCELLED}) OR EXISTS (SELECT 1 {_ABANDONED})
            OR EXISTS (SELECT 1 FROM controls WHERE {returning.UNDER_WAY}) AS needed
    ) AS found
    LEFT JOIN workers ON closed IS NULL
    ORDER BY workers.started_at, workers.worker_id
"""
_RECOVERABLE = f"""
    SELECT record_id, parent_id FROM records WHERE status = 'RUNNING' AND worker = ANY($2::text[])
    UNION SELECT record_id, parent_id FROM records WHERE {conditions.overdue_sql(now="$1::float8")}
    UNION (SELECT record_id, parent_id {_CANCELLED} LIMIT $3)
    UNION (SELECT record_id, parent_id {_ABANDONED} LIMIT $3)
"""


class Recovery:
    """The verb ``recover``."""

    def __init__(self, server: Server, locked: Locked) -> None:
        self._server = server
        self._locked = locked

    async def recover(self, limit: int = 500, dead: Sequence[str] = ()) -> Recovered:
        found = await self._server.ask(_NEEDS_RECOVERY, self._server.given_now, pool=self._server.claims)
        if not found[0][0] and not dead:
            return Recovered(open=tuple(from_values(Worker, row[1:]) for row in found if row[1] is not None))
        more = Want()
        return await self._locked.complete(
            self._server.claims, lambda wire: self._recovered(wire, limit, dead, more), more
        )

    async def _recovered(self, wire: Wire, limit: int, dead: Sequence[str], more: Want) -> Recovered:
        view = View()
        self._locked.begin(wire, Want())
        await self._locked.read_into(view, wire, Want())
        expired = f"SELECT worker_id FROM workers WHERE {conditions.expired_sql(now='$1')}"
        over = {str(row[0]) for row in await wire.ask(expired, view.now)}
        over |= set(dead)
        # The workers come first: after this none of them claims or beats, and a worker that has beaten is not expired.
        self._locked.quieten(wire, over)
        await self._locked.read_into(view, wire, Want(workers=over))
        want = Want()
        for record_id, parent_id in await wire.ask(_RECOVERABLE, view.now, array("text", sorted(over)), limit):
            want.records.add(record_id)
            if parent_id is not None:
                want.records.add(parent_id)
        candidates = sorted(want.records)
        want.fanins = want.intents = set(candidates) | more.fanins | more.intents
        want.records |= more.records
        await self._locked.read_into(view, wire, want)
        if turns := turns_of(view, dict.fromkeys(want.fanins, limit)):
            await self._locked.read_into(view, wire, Want(records=turns))
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
                    freed += close(draft, worker, held, dead=worker_id in dead)
            for row in found:
                freed += overdue(draft, draft.record(row.record_id) or row)
                swept += sweeps.halted(draft, draft.record(row.record_id) or row)
            for row in found:
                if row.parent_id is not None and row.generation is not None:
                    fanin = draft.fanin(row.parent_id, row.generation)
                    if fanin is not None:
                        swept += sweeps.abandoned(draft, draft.record(row.record_id) or row, fanin)
            left = tuple(worker for worker in workers if worker.worker_id not in draft.workers)
            back = returning.under_way(view.controls.values())
            return Recovered(len(draft.workers), freed, swept, swept >= limit, left, back)

        recovered, _ = await self._locked.written(wire, "recover", view, decide)
        return recovered
