"""Optimistic commits: decided over what this process knows, and undone by the server if that is no longer true.

Most changes are moves of records that this very process holds, and nobody else may move those. Their rows are as this
process left them, so they need not be locked and read before the decision: it is made over the images at hand, and
every statement says what it takes for granted. A statement that finds the ledger otherwise divides by zero, which
undoes the whole transaction; the changes are then decided by a locked commit. An optimistic commit costs a flush if it
fails and saves one if it succeeds; what may land is the same (docs/decisions/008).
"""

from __future__ import annotations

from collections.abc import Sequence

from quire.ledger.postgres.fast.writer import OptimisticWriter
from quire.ledger.postgres.known import Known
from quire.ledger.postgres.locked import Locked
from quire.ledger.postgres.notifications import Notifications
from quire.ledger.postgres.server import Server
from quire.ledger.postgres.view import CLOCK, SIGNATURE, Missing, View
from quire.ledger.postgres.want import Want
from quire.ledger.postgres.wire import Clash, Wire, Wrong, array
from quire.ledger.postgres.writer import Writer
from quire.model.change import Applied, Change, Verdict
from quire.model.receipt import Kind, Stage
from quire.model.record import Record
from quire.rules import verbs
from quire.rules.claims import limited
from quire.rules.draft import Draft

#: From this many changes on, a commit goes behind others on the connection of the claims.
MANY = 50

#: What time it is; and the orders are as they were known, and the workers under which new records begin are still open.
_STILL = f"""
    SELECT {CLOCK}, 1 / ({SIGNATURE} = $1)::int, (
        SELECT 1 / (count(*) = cardinality($2::text[]))::int FROM workers
        WHERE worker_id = ANY($2::text[]) AND closed IS NULL
    )
"""
#: Receipts whose rules read more than their own key: effects that were done, fan-ins, and places in a loop.
_LINKED = frozenset({Kind.ONCE, Kind.UNDO, Kind.MAP, Kind.EACH})


class OptimisticCommits:
    """Commits by one flush."""

    def __init__(
        self, server: Server, known: Known, locked: Locked, notifications: Notifications, inline_bytes: int
    ) -> None:
        self._server = server
        self._known = known
        self._locked = locked
        self._notifications = notifications
        self._inline_bytes = inline_bytes

    async def commit(self, changes: Sequence[Change]) -> list[Verdict] | None:
        """Commit these changes; None: nothing was written, and a locked commit decides."""
        known = self._known
        view = known_view(changes, known)
        if view is None or known.orders is None:
            return None
        signature = known.orders.signature
        # Many changes keep the server busy for a while. They go behind the claim that is under way, and the next claim
        # goes behind them: the server's one process finds its next work when it is done. Few only wait for the disk.
        many = len(changes) >= MANY
        pool = self._server.claims if many and self._server.claims.free else self._server.commits

        async def body(wire: Wire) -> list[Verdict]:
            draft = Draft(view, view.now)
            self._locked.lock(wire, Want(quiet=set(view.workers)))
            still = wire.send(_STILL, signature, array("text", sorted(view.workers)))
            verdicts: list[Verdict] = []
            for change in changes:
                verdict = verbs.change(draft, change)
                if type(verdict) is not Applied or verdict.again:
                    raise Wrong
                verdicts.append(verdict)
            writer = OptimisticWriter(Writer(wire, self._inline_bytes), known.last_pages)
            writer.write(view, draft)
            answers = await wire.flush(commits=True, last=many)
            known.heard(answers[still].rows()[0][0])
            page = None if writer.page is None else answers[writer.page].rows()[0][0]
            known.last_pages.moved(view.records, draft.records, page)
            known.remember(draft.records.values())
            if draft.woke:
                self._notifications.announce()
            return verdicts

        try:
            return await self._server.transacted(pool, body, once=True, behind=many)
        except (Wrong, Missing, Clash):
            for change in changes:
                known.images.pop(change.record_id, None)
            return None


def known_view(changes: Sequence[Change], known: Known) -> View | None:
    """Return the rows that these changes are decided over; None if a change needs rows that are not known here."""
    if known.orders is None:
        return None
    view = View()
    view.epoch, view.sealed, view.controls, _ = known.orders
    view.now = known.now
    for change in changes:
        if change.version == 0:
            view.records[change.record_id] = None
            if change.keep is not None and change.worker is not None:
                if change.worker not in known.workers or limited(change.keep):
                    return None
                view.workers[change.worker] = known.workers[change.worker]
        else:
            row = known.images.get(change.record_id)
            if row is None or _needs_more(change, row):
                return None
            view.records[change.record_id] = row
            if row.updated_at > view.now:
                view.now = row.updated_at  # no line of a log is older than the one before it
        for receipt in change.receipts:
            if not receipt.open and (receipt.kind in _LINKED or receipt.stage is not Stage.DONE):
                return None
            view.receipts[receipt.key] = None
    return view


def _needs_more(change: Change, row: Record) -> bool:
    """Return whether the rules read more rows than the record's own to decide about this change of it."""
    if row.version != change.version or row.open_intents or change.worker is None or change.rates:
        return True
    image = change.image
    if image is None:
        return change.cancel is not None or change.priority is not None
    return bool(
        image.waits is not None
        or image.fanouts
        or change.children
        or (image.parent_id is not None and image.ended)
        or (change.keep is not None and limited(change.keep))
    )
