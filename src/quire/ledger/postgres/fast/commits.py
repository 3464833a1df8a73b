"""Commits of one flush: decided over what this process knows, and undone by the server where that is not so any more.

Most changes are moves of records that this very process holds, and nobody else may move those. Their rows are as they
were left here, so they need not be locked and read before the decision: it is made over the images at hand, and every
statement says what it takes for granted. One that finds the ledger otherwise divides by zero, which undoes the whole
transaction; the changes are then decided as usual, under locks (see ``postgres_decide``). So a guess costs a flush when
it is wrong and saves one when it is right; what may land is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from quire.ledger.postgres.view import CLOCK, SIGNATURE, View
from quire.model.change import Change
from quire.model.event import Event
from quire.model.receipt import Kind, Stage
from quire.model.record import Record
from quire.model.row import field_names
from quire.model.side import Control, Worker
from quire.rules.claims import limited

#: The orders are as they were known, the workers under which new records begin are still open; and what time it is.
STANDS = f"""
    SELECT {CLOCK}, 1 / ({SIGNATURE} = $1)::int, (
        SELECT 1 / (count(*) = cardinality($2::text[]))::int FROM workers
        WHERE worker_id = ANY($2::text[]) AND closed IS NULL
    )
"""
#: The columns of the log but ``seq``, which the server draws.
LINE = ", ".join(field_names(Event)[1:])
#: What of a line an update does not know by itself; and the whole of it, as the update answers it.
TOLD = {"told_at": "float8", "told_kind": "text", "told_body": "text", "told_change": "text"}
TELLS = (
    "records.record_id, records.log_seq, records.version, told_at, told_kind, told_body, records.run_id, told_change, "
    "records.log_hash"
)
#: Under these names an update says what its rows were before.
WAS = {"was_version": "bigint", "was_hash": "text", "was_facts": "bigint"}
UNCHANGED = "records.version = new.was_version AND records.log_hash = new.was_hash AND records.facts = new.was_facts"

#: Receipts that look at more than their own key: effects that were done, fan-ins, and places in a loop (written anew).
_LINKED = frozenset({Kind.ONCE, Kind.UNDO, Kind.MAP, Kind.EACH})


def guarded(update: str, count: str, told: str = "") -> str:
    """The update, which undoes everything unless it finds as many rows as it was given.

    ``told``: what it answers of each row, as one line of the log.
    """
    moved = f"moved AS ({update} RETURNING {told or 1})"
    lines = f", lines AS (INSERT INTO events ({LINE}) SELECT * FROM moved)" if told else ""
    return f"WITH {moved}{lines} SELECT 1 / (count(*) = {count})::int FROM moved"


class Known:
    """How the ledger stood when this process heard of it last."""

    def __init__(self, epoch: int, sealed: str, controls: dict[str, Control], signature: str) -> None:
        self.epoch = epoch
        self.sealed = sealed
        self.controls = controls
        self.signature = signature

    def view(
        self, changes: Iterable[Change], images: Mapping[str, Record], workers: Mapping[str, Worker], now: float
    ) -> View | None:
        """What these changes are decided over; None if one of them needs a look at more than is known here."""
        view = View()
        view.epoch, view.sealed, view.controls, view.now = self.epoch, self.sealed, self.controls, now
        records, receipts = view.records, view.receipts
        for change in changes:
            image = change.image
            if change.version == 0:
                records[change.record_id] = None
                if change.keep is not None and change.worker is not None:
                    if change.worker not in workers or limited(change.keep):
                        return None
                    view.workers[change.worker] = workers[change.worker]
            else:
                known = images.get(change.record_id)
                if (
                    known is None
                    or known.version != change.version
                    or known.open_intents
                    or change.worker is None
                    or change.rates
                ):
                    return None
                records[change.record_id] = known
                if known.updated_at > view.now:
                    view.now = known.updated_at  # no line of a log is older than the one before it
                if image is None:
                    if change.cancel is not None or change.priority is not None:
                        return None
                elif (
                    image.waits is not None
                    or image.fanouts
                    or change.children
                    or (image.parent_id is not None and image.ended)
                    or (change.keep is not None and limited(change.keep))
                ):
                    return None
            for receipt in change.receipts:
                if not receipt.open and (receipt.kind in _LINKED or receipt.stage is not Stage.DONE):
                    return None
                receipts[receipt.key] = None
        return view
