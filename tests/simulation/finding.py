"""What is found at the end of a simulation: the records, their logs, and what ``verify`` says."""

from __future__ import annotations

from collections import Counter

from quire.explain.why import around, why_of
from quire.ledger.base import Ledger
from quire.model.change import Query
from quire.model.codec import parse
from quire.model.receipt import Kind
from quire.model.record import Record, Status
from quire.rules.moves import MOST_DEATHS
from quire.upkeep.verify import verify
from tests.simulation.history import Found, Happening, History

#: Lines of a log by which a worker holds a record, or lets it go.
_HOLDS = {"claimed": "is claimed"} | dict.fromkeys(
    (
        "moved",
        "waited",
        "asked",
        "failed",
        "broke",
        "done",
        "yielded",
        "lost",
        "orphaned",
        "cancelled",
        "doubted",
        "undone",
    ),
    "is let go",
)


def moves(row: Record) -> bool:
    """Whether a record goes on by itself."""
    return row.status in (Status.PENDING, Status.RUNNING) or (not row.ended and row.due_at is not None)


async def find(ledger: Ledger, history: History, now: float) -> None:
    """Write down how all records ended, and what their logs say."""
    history.ended_at = now
    for row in await ledger.find(Query(limit=10_000)):
        why = why_of(row, await around(ledger, row))
        history.found[row.record_id] = Found(
            row.record_id,
            row.parent_id or "",
            row.workflow,
            parse(row.data),
            row.status,
            why.kind,
            why.sentence,
            parse(row.result) if row.result else None,
            row.last_error or "",
        )
    checked = await verify(ledger)
    history.differences = [str(difference) for difference in checked.differences]
    receipts = {receipt.key: receipt for receipt in await ledger.receipts(record_ids=list(history.found))}
    ended = {found.record for found in history.found.values() if found.status in ("DONE", "ERROR", "CANCELLED")}
    history.left_open = [(one.record_id, one.name) for one in receipts.values() if one.open and one.record_id in ended]
    log = await ledger.events(limit=1_000_000)
    alone = Counter(event.record_id for event in log if event.kind == "apart")
    history.killers = frozenset(record for record, count in alone.items() if count >= MOST_DEATHS)
    for event in log:
        if event.kind == "effect.intended":
            receipt = receipts[parse(event.body)["key"]]
            kind = "begins" if receipt.kind is Kind.ONCE else "begins to undo"
            history.happenings.append(
                Happening(event.at, kind, receipt.record_id, receipt.visit, receipt.name, key=receipt.key)
            )
        elif event.kind in _HOLDS:
            history.happenings.append(Happening(event.at, _HOLDS[event.kind], event.record_id, 0, event.kind))
    history.happenings.sort(key=lambda one: one.at)
