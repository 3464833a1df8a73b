"""A write verb on PostgreSQL: one transaction that locks, reads, decides and writes.

Every one is of two flushes. The first *locks*, then reads: the control lock (shared; orders take it exclusively), caps
and rates by name, workers, records by id, fan-ins. Only statements after the locks read what the decision rests on:
a statement sees what was committed before it began, however long it then waits (protocol 4). The second flush writes
the after-images of the ``Draft`` and commits. What a draft asks for and was not read makes the transaction start again
with more to read.

Rows of records that this process holds are not read again: their version and the end of their log say that they are as
they were left. Time is the server's, read after the locks.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import TypeVar

from quire.clock import SYSTEM, Clock
from quire.errors import LedgerError
from quire.ledger.base import Traits
from quire.ledger.postgres.fast.commits import Known
from quire.ledger.postgres.pages import Ends
from quire.ledger.postgres.pool import Lane
from quire.ledger.postgres.reads import WORD, PostgresLooks
from quire.ledger.postgres.view import STANDING, Missing, Reading, View, Want, still_wanted
from quire.ledger.postgres.wire import Answer, Wire, array
from quire.ledger.postgres.writer import Writer
from quire.model.change import Change
from quire.model.record import Record, Status
from quire.rules.draft import Draft

T = TypeVar("T")

#: Images kept of records that run here.
MOST_IMAGES = 20_000

#: The control lock; word to event readers: this transaction's events come after what is numbered now; locks by name.
_LOCKED = f"""
    SELECT pg_advisory_xact_lock_shared($1::bigint), pg_advisory_xact_lock_shared($2::bigint | (last_value & {WORD})),
        pg_advisory_xact_lock(name)
    FROM events_seq_seq LEFT JOIN unnest($3::bigint[]) AS name ON true
"""
_NAMED = "SELECT pg_advisory_xact_lock(name) FROM unnest($1::bigint[]) AS name"

Decide = Callable[[Draft, View], T]


class PostgresDecides(PostgresLooks):
    """What all write verbs stand on."""

    #: The longer the lease, the fewer the beats of an idle worker; a dead one on the same machine is known at once.
    traits = Traits(durable=True, shared=True, lease_seconds=60.0, side_by_side=True)

    def __init__(self, url: str, clock: Clock | None = None) -> None:
        super().__init__(url, clock)
        #: For tests: awaited between the locks of a verb and its decision, with the verb's name.
        self.barrier: Callable[[str], Awaitable[None]] | None = None
        self._images: dict[str, Record] = {}
        self._ends = Ends()
        self._known: Known | None = None
        self._offset = 0.0

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

    async def _written(
        self, wire: Wire, verb: str, view: View, decide: Decide[T], then: Callable[[], int] | None = None
    ) -> tuple[T, Answer | None]:
        """Decide, write and commit; answers the decision, and what the server said to what is to be sent ``then``."""
        if self.barrier is not None:
            await self.barrier(verb)
        draft = Draft(view, view.now)
        answer = decide(draft, view)
        Writer(wire, view, draft, self.traits.inline_bytes).send()
        place = then() if then is not None else None
        wire.send("COMMIT")
        answers = await wire.flush()
        self._remember(draft.records.values())
        if draft.woke:
            self._bell.ring()
        return answer, None if place is None else answers[place]

    def _remember(self, changed: Collection[Record]) -> None:
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
        limits = [self._key("cap", workflow, step or "*") for workflow, step in want.caps]
        limits += [self._key("rate", name) for name in want.buckets]
        names = sorted(limits) + self._of_workers(want.quiet)
        wire.send(_LOCKED, self._control_key, self._events_key, array("bigint", names))

    def _quieten(self, wire: Wire, worker_ids: Iterable[str]) -> None:
        """Nothing is claimed for these workers until the transaction ends."""
        if keys := self._of_workers(worker_ids):
            wire.send(_NAMED, array("bigint", keys))

    def _of_workers(self, worker_ids: Iterable[str]) -> list[int]:
        return sorted([self._key("worker", worker_id) for worker_id in worker_ids])

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
        self._stands(view, answers[standing])
        return answers

    def _stands(self, view: View, standing: Answer) -> None:
        """How the ledger stands, for this decision, and for commits that need no look (see ``postgres_guess``)."""
        view.take_standing(standing, self._told)
        self._known = Known(view.epoch, view.sealed, view.controls, view.signature)
        self._heard(view.now)

    def _heard(self, now: float) -> None:
        """The server's clock, as seen from here. Its word has travelled, so the largest difference is the truest."""
        offset = now - SYSTEM.boottime()
        if offset > self._offset or offset < self._offset - 1.0:
            self._offset = offset
