"""Beats: a worker renews its lease and agrees with the ledger on what it holds.

A beat waits for no lock, unless the worker has to give records back.
"""

from __future__ import annotations

from quire.errors import Full, WorkerClosed
from quire.ledger import columns as rows
from quire.ledger.postgres.claims import Claims
from quire.ledger.postgres.known import Known
from quire.ledger.postgres.locked import Locked
from quire.ledger.postgres.reading import READ_HELD, Reading
from quire.ledger.postgres.server import Server
from quire.ledger.postgres.view import CONTROL, NOW, Missing, View
from quire.ledger.postgres.want import Want
from quire.ledger.postgres.wire import Wire
from quire.model.change import Beaten, Holding
from quire.model.row import replace
from quire.model.side import Worker
from quire.rules.draft import Draft
from quire.rules.workers import beat

#: Renew a lease unless the worker was closed: one statement, decided under the lock of the worker's row.
_BEAT = f"""
    WITH moment AS (SELECT {NOW} AS now),
    renewed AS (
        INSERT INTO workers AS known ({rows.columns(Worker)})
        SELECT $2, $3, $4, $5, $6, now, now + $7::float8, $7::float8, NULL, $8
        FROM moment CROSS JOIN ledger WHERE sealed = ''
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


class Beats:
    """The verb ``beat``."""

    def __init__(self, server: Server, known: Known, locked: Locked, claims: Claims) -> None:
        self._server = server
        self._known = known
        self._locked = locked
        self._claims = claims

    async def beat(self, worker: Worker, holding: Holding) -> Beaten:
        """Send one statement for a worker that holds nothing, and two for one that holds records."""

        async def body(wire: Wire) -> Beaten | None:
            view = View()
            wire.send(
                _BEAT,
                self._server.given_now,
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
                beaten = beat(draft, worker, holding, view.held)
            except Missing:  # giving records back needs more rows than were read: that is decided under locks
                return None
            return None if draft.records else beaten

        pool = self._server.beats
        if self._known.workers.pop(worker.worker_id, None) is None:
            # A worker that begins finds what has gathered: its first claim need not peek.
            self._claims.more_is_due = self._claims.limited_is_due = True
            if not holding.versions:
                pool = (
                    self._server.claims
                )  # its first claim comes there next, so the worker needs no other connection yet
        try:
            agreed = await self._server.transacted(pool, body)
        except Full:  # a beat goes before everything else: it takes the connection of the claims
            agreed = await self._server.transacted(self._server.claims, body)
        beaten = agreed or await self._reconciled(worker, holding)
        self._known.workers[worker.worker_id] = worker
        return beaten

    async def _reconciled(self, worker: Worker, holding: Holding) -> Beaten:
        """Take back, under locks, the records that the ledger gives to the worker and the worker does not know of."""
        want = Want(workers={worker.worker_id}, held={worker.worker_id})
        beaten = await self._locked.decided(
            "beat", want, lambda draft, view: beat(draft, worker, holding, view.held), pool=self._server.beats
        )
        if beaten is None:
            raise _closed(worker.worker_id)
        return beaten


def _closed(worker_id: str) -> WorkerClosed:
    return WorkerClosed(f"worker {worker_id} was closed: its lease ran out")
