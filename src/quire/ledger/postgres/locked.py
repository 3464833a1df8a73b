"""The locked commit: one transaction that locks, reads, decides and writes.

Each transaction takes two flushes. The first one *locks*, then reads: the control lock (shared; orders take it
exclusively), caps and rates by name, workers, records by id, fan-ins. Only statements after the locks read what the
decision rests on, because a statement sees what was committed before it began, however long it then waits (protocol
4). The second flush writes the after-images of the ``Draft`` and commits. If the draft asks for a row that was not
read, the transaction starts again and reads that row, too.

Rows of records that this process holds are not read again: their version and the end of their log say whether they are
as this process left them. The time is the server's, read after the locks.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from quire.errors import LedgerError
from quire.ledger.postgres.known import Known
from quire.ledger.postgres.notifications import Notifications
from quire.ledger.postgres.pool import Pool
from quire.ledger.postgres.reading import Reading
from quire.ledger.postgres.server import EXCLUSIVE, NUMBER_BITS, Server
from quire.ledger.postgres.view import STANDING, Missing, View
from quire.ledger.postgres.want import Want, still_wanted
from quire.ledger.postgres.wire import Answer, Wire, array
from quire.ledger.postgres.writer import Writer
from quire.model.change import Change, Order, Send, Verdict
from quire.rules import verbs, workers
from quire.rules.draft import Draft

T = TypeVar("T")

#: Take the control lock, say to readers of the log that this transaction's lines come after the last number drawn, and
#: take locks by name.
_LOCK = f"""
    SELECT pg_advisory_xact_lock_shared($1::bigint),
        pg_advisory_xact_lock_shared($2::bigint | (last_value & {NUMBER_BITS})), pg_advisory_xact_lock(name)
    FROM events_seq_seq LEFT JOIN unnest($3::bigint[]) AS name ON true
"""
_LOCK_NAMES = "SELECT pg_advisory_xact_lock(name) FROM unnest($1::bigint[]) AS name"

Decide = Callable[[Draft, View], T]


class Locked:
    """Decides under locks. All verbs that write can go this way, and it alone decides what may land."""

    def __init__(self, server: Server, known: Known, notifications: Notifications, inline_bytes: int) -> None:
        self._server = server
        self._known = known
        self._notifications = notifications
        self._inline_bytes = inline_bytes
        #: For tests: awaited between the locks of a verb and its decision, with the verb's name.
        self.barrier: Callable[[str], Awaitable[None]] | None = None

    # -- verbs -------------------------------------------------------------------------------------------------

    async def commit(self, changes: Sequence[Change]) -> list[Verdict]:
        want = Want()
        for change in changes:
            want.of_change(change)
        return await self.decided("commit", want, lambda draft, _: verbs.commit(draft, changes), changes=changes)

    async def send(self, sends: Sequence[Send]) -> list[Verdict]:
        want = Want(records={sent.record_id for sent in sends}, signals={sent.signal_id for sent in sends})
        return await self.decided("send", want, lambda draft, _: verbs.send(draft, sends))

    async def farewell(self, worker_id: str) -> None:
        want = Want(quiet={worker_id}, workers={worker_id}, held={worker_id})
        await self.decided("farewell", want, lambda draft, view: workers.farewell(draft, worker_id, view.held))

    async def order(self, order: Order) -> None:
        async def body(wire: Wire) -> None:
            view = await self.alone(wire)

            def decide(draft: Draft, view: View) -> None:
                if order.word in ("seal", "unseal"):
                    wire.send("UPDATE ledger SET sealed = $1", order.seal(view.sealed))
                else:
                    verbs.order(draft, order, view.controls.values())

            await self.written(wire, "order", view, decide)

        await self._server.transacted(self._server.claims, body)

    # -- transactions ------------------------------------------------------------------------------------------

    async def decided(
        self, verb: str, want: Want, decide: Decide[T], *, pool: Pool | None = None, changes: Sequence[Change] = ()
    ) -> T:
        """Lock, read, decide, write and commit, in one transaction."""

        async def body(wire: Wire) -> T:
            view = await self._locked(wire, want, changes)
            answer, _ = await self.written(wire, verb, view, decide)
            return answer

        return await self.complete(pool or self._server.commits, body, want, changes)

    async def complete(
        self, pool: Pool, body: Callable[[Wire], Awaitable[T]], want: Want, changes: Sequence[Change] = ()
    ) -> T:
        """Run the body until no row is missing, anew each time, so that all locks are taken in their order."""
        while True:
            try:
                return await self._server.transacted(pool, body)
            except Missing as missing:
                if not want.missed(missing):
                    raise LedgerError(f"the ledger does not find what a rule asks for: {missing}") from missing
                want.everything_of(changes)

    async def written(
        self, wire: Wire, verb: str, view: View, decide: Decide[T], then: Callable[[], int] | None = None
    ) -> tuple[T, Answer | None]:
        """Decide, write and commit. Return the decision, and the server's answer to what ``then`` sends."""
        if self.barrier is not None:
            await self.barrier(verb)
        draft = Draft(view, view.now)
        answer = decide(draft, view)
        Writer(wire, self._inline_bytes).write(view, draft)
        place = then() if then is not None else None
        wire.send("COMMIT")
        answers = await wire.flush()
        self._known.remember(draft.records.values())
        if draft.woke:
            self._notifications.announce()
        return answer, None if place is None else answers[place]

    # -- locking and reading -----------------------------------------------------------------------------------

    async def alone(self, wire: Wire) -> View:
        """Begin a transaction that is alone: every one that began before has ended, and the next sees this one."""
        wire.send("BEGIN")
        wire.send(EXCLUSIVE, self._server.control_key)
        view = View()
        await self.read_into(view, wire, Want())
        return view

    def begin(self, wire: Wire, want: Want) -> None:
        wire.send("BEGIN")
        self.lock(wire, want)

    def lock(self, wire: Wire, want: Want) -> None:
        """Take the first locks, in the order that all verbs keep."""
        limits = [self._server.key("cap", workflow, step or "*") for workflow, step in want.caps]
        limits += [self._server.key("rate", name) for name in want.buckets]
        names = sorted(limits) + self._of_workers(want.quiet)
        wire.send(_LOCK, self._server.control_key, self._server.events_key, array("bigint", names))

    def quieten(self, wire: Wire, worker_ids: Iterable[str]) -> None:
        """Keep these workers from claiming until the transaction ends."""
        if keys := self._of_workers(worker_ids):
            wire.send(_LOCK_NAMES, array("bigint", keys))

    def _of_workers(self, worker_ids: Iterable[str]) -> list[int]:
        return sorted([self._server.key("worker", worker_id) for worker_id in worker_ids])

    async def _locked(self, wire: Wire, want: Want, changes: Sequence[Change] = ()) -> View:
        """Take the locks, and read what is wanted after them."""
        view = View()
        self.begin(wire, want)
        await self.read_into(view, wire, want)
        more = still_wanted(view, changes)
        if more != Want():
            await self.read_into(view, wire, more)
        return view

    async def read_into(self, view: View, wire: Wire, want: Want) -> list[Answer]:
        """Lock and read in one flush, together with what was sent before; return the server's answers."""
        reading = Reading(view, wire)
        reading.want(want, self._known.images)
        standing = wire.send(STANDING)
        answers = await reading.done()
        view.take_standing(answers[standing], self._server.given_now)
        self._known.read(view)
        return answers
