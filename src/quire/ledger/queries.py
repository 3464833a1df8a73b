"""Statements that the SQL stores share, and where their numbered migrations lie."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import resources
from typing import Any

from quire.ledger import rows
from quire.model.change import Query
from quire.model.record import Record, Status
from quire.model.side import Control

#: Records are mostly in other statuses, and those in these have indexes. A statement must name the status itself to be
#: given one, not leave it to an argument or to what a halt makes of it (which is never one of these).
FEW = frozenset({Status.RUNNING, Status.ERROR, Status.NEEDS_APPROVAL})


def seen_status(controls: Iterable[Control]) -> str:
    """SQL for the status as people see it: what a halt cancelled by definition is CANCELLED."""
    floors = [control for control in controls if control.floor]
    if not floors:
        return "status"
    outdated = " OR ".join(
        f"epoch < {control.floor}" + ("" if control.scope == "*" else f" AND workflow = '{_escaped(control.scope)}'")
        for control in floors
    )
    waiting = "(status IN ('PENDING', 'WAITING') OR status = 'NEEDS_APPROVAL' AND open_intents = 0)"
    return f"CASE WHEN {waiting} AND ({outdated}) THEN 'CANCELLED' ELSE status END"


def _escaped(text: str) -> str:
    return text.replace("'", "''")


def query_sql(query: Query, controls: Iterable[Control], mark: str = "?") -> tuple[str, list[Any]]:
    """The statement that finds these records, and its arguments."""
    terms: list[str] = []
    args: list[Any] = []

    def term(sql: str, *values: Any) -> None:
        terms.append(sql.replace("?", mark))
        args.extend(values)

    if query.workflow:
        term("workflow = ?", query.workflow)
    if query.step:
        term("step = ?", query.step)
    if query.status:
        asked, seen = sorted(set(query.status)), seen_status(controls)
        if FEW.issuperset(asked):
            term("(" + " OR ".join(f"status = '{status}'" for status in asked) + ")")
        if seen != "status" or not FEW.issuperset(asked):
            term(f"{seen} IN ({', '.join('?' * len(asked))})", *map(str, asked))
    if query.parent_id:
        term("parent_id = ?", query.parent_id)
    if query.generation is not None:
        term("generation = ?", query.generation)
    if query.text:
        # Not LIKE: whether that tells capitals from small letters depends on the store.
        term("replace(record_id, ?, '') <> record_id", query.text)
    if query.after:
        term("record_id > ?", query.after)
    where = f"WHERE {' AND '.join(terms)} " if terms else ""
    order = {"updated": "updated_at DESC, record_id", "place": "place, record_id"}.get(query.order, "record_id")
    args.append(query.limit)
    return f"SELECT {rows.columns(Record)} FROM records {where}ORDER BY {order} LIMIT {mark}", args


def migrations(store: str) -> list[str]:
    """The numbered migrations of a store, in order."""
    folder = resources.files("quire.ledger") / "schema" / store
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [(folder / name).read_text(encoding="utf-8") for name in names]
