"""Statements that the SQL stores share, and where their numbered migrations lie."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import resources
from typing import Any

from quire.ledger import columns as rows
from quire.model.change import Query
from quire.model.record import CLAIMABLE, FORGOTTEN, Record, Status
from quire.model.side import Control
from quire.rules.conditions import WAITS, seen_status_sql

#: Records are mostly in other statuses, and those in these have indexes. A statement must name the status itself to be
#: given one, not leave it to an argument or to what a halt makes of it (which is never one of these).
FEW = frozenset({Status.RUNNING, Status.ERROR, Status.NEEDS_APPROVAL})
#: What has not ended. None of these is what a halt makes of another.
OPEN = CLAIMABLE | {Status.RUNNING}
#: So many ids of others are passed over before open records are looked up in their indexes.
PASSED_OVER = 1000
_ORDERS = {
    "updated": "updated_at DESC, record_id",
    "oldest": "updated_at, record_id",
    "place": "place, record_id",
}
#: How a list of ids is asked for in SQLite.
_AMONG = "IN ({})"


def query_sql(
    query: Query, controls: Iterable[Control], mark: str = "?", waits: str = WAITS, among: str = _AMONG
) -> tuple[str, list[Any]]:
    """The statement that finds these records, and its arguments."""
    terms: list[str] = []
    args: list[Any] = []

    def term(sql: str, *values: Any) -> None:
        terms.append(sql)
        args.extend(values)

    if query.workflow:
        term("workflow = ?", query.workflow)
    if query.step:
        term("step = ?", query.step)
    if query.status:
        asked, seen = sorted(set(query.status)), seen_status_sql(controls)
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
    if query.before is not None:
        term(f"updated_at < ? AND attempt <> {FORGOTTEN}", query.before)
    order = _ORDERS.get(query.order, "record_id")
    where = " AND ".join(terms)
    if OPEN.issuperset(query.status) and not FEW.issuperset(query.status) and not query.parent_id:
        ids, args = _open_ids(query, where, args, order, waits)
        where = f"record_id {among.format(ids)}"
    where = where and f"WHERE {where} "
    sql = f"SELECT {rows.columns(Record)} FROM records {where}ORDER BY {order} LIMIT ?"
    return sql.replace("?", mark), [*args, query.limit]


def _open_ids(query: Query, where: str, args: list[Any], order: str, waits: str) -> tuple[str, list[Any]]:
    """The ids of open records. What this costs depends on how many are open, not on how many have ended.

    The indexes of open records are in no order that people ask for: they are read whole, and what they give is sorted.
    For a page in the order of ids that is too much where many are open. So the next ids are tried first, whatever they
    are of, and the indexes only if these do not fill the page.
    """
    indexes = ["status = 'RUNNING'"] if Status.RUNNING in query.status else []
    if not CLAIMABLE.isdisjoint(query.status):
        # Every epoch lies between these, but no planner knows: each takes the index for short, also without statistics.
        indexes.append(f"{waits} AND epoch BETWEEN (SELECT 0) AND {2**63 - 1}")
    select = "SELECT record_id, updated_at, place FROM records WHERE"
    open_ = " UNION ALL ".join(f"{select} {index} AND {where}" for index in indexes)
    ids, given, limit = f"SELECT record_id FROM ({open_}) AS found", args * len(indexes), query.limit
    if order != "record_id":
        return f"{ids} ORDER BY {order} LIMIT ?", [*given, limit]
    last = "SELECT record_id FROM records WHERE record_id > ? ORDER BY record_id LIMIT 1 OFFSET ?"
    last = f"coalesce(({last}), (SELECT max(record_id) FROM records))"
    near = f"{select} {where} AND record_id > ? AND record_id <= {last} ORDER BY record_id LIMIT ?"
    # Not sorted by the id itself: a planner would rather go through all ids than sort.
    missing = "CASE (SELECT count(*) FROM near) WHEN ? THEN 0 ELSE CAST(? AS bigint) END"
    rest = f"{ids} ORDER BY record_id || '' LIMIT {missing}"
    return (
        f"WITH near AS ({near}) SELECT record_id FROM near UNION ALL SELECT record_id FROM ({rest}) AS rest",
        [*args, query.after, query.after, limit + PASSED_OVER, limit, *given, limit, limit],
    )


def migrations(store: str) -> list[str]:
    """Return the numbered migrations of a store, in order."""
    folder = resources.files(f"quire.ledger.{store}") / "schema"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [(folder / name).read_text(encoding="utf-8") for name in names]
