"""Writes what a ``Draft`` decided: few statements, each for many rows, or for one.

Long values are put aside as blobs, and rows name them by their hash.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from quire.ledger import columns as rows
from quire.ledger.blobs import BASES
from quire.ledger.postgres.statements import (
    MOST_SHAPES,
    STORED,
    Statement,
    insert,
    types_of,
    upsert,
)
from quire.ledger.postgres.view import View
from quire.ledger.postgres.wire import Wire, array, single
from quire.model.event import Event
from quire.model.receipt import Receipt
from quire.model.record import CLAIMABLE, Record
from quire.model.row import field_names, field_values
from quire.model.side import Bucket, Control, Fanin, Setting, Signal, Worker
from quire.rules.draft import Draft

#: The columns that claims look for.
_QUEUED = ("queue", "rank")
_LONG = frozenset(rows.LONG[Record])

_PUT: dict[Any, Statement] = {
    type_: upsert(type_, types_of(type_)) for type_ in (Receipt, Signal, Fanin, Worker, Control, Bucket, Setting, Event)
}
_RESTORE_RECORDS = upsert(Record, STORED)
_ADD = {type_: insert(rows.TABLES[type_][0], types_of(type_)) for type_ in (Receipt, Signal)}
EVENT = {name: sql for name, sql in types_of(Event).items() if name != "seq"}
_ADD_EVENTS = insert("events", EVENT)
_ADD_BLOBS = insert("blobs", {"hash": "text", "text": "text"}, "ON CONFLICT DO NOTHING")

#: By the columns that are sent. A third of a new record's columns are NULL, and the server need not read those.
_ADD_RECORDS: dict[tuple[str, ...], Statement] = {}


def filled(columns: Mapping[str, Sequence[Any]], count: int) -> tuple[str, ...]:
    """Return the columns of new records that have values; all columns, if there are too many kinds of such records."""
    names = tuple([name for name, values in columns.items() if values.count(None) < count])
    if names not in _ADD_RECORDS and len(_ADD_RECORDS) >= MOST_SHAPES:
        names = tuple(STORED)
    if names not in _ADD_RECORDS:
        _ADD_RECORDS[names] = insert("records", {name: STORED[name] for name in names})
    return names


@cache
def _update(names: tuple[str, ...]) -> Statement:
    sql = f"UPDATE records SET {assignments(names)} FROM {{}} WHERE records.record_id = new.record_id"
    return Statement(updated_types(names), lambda new, *_: sql.format(new))


def updated_types(names: tuple[str, ...]) -> dict[str, str]:
    return {"record_id": "text"} | {name: STORED[name] for name in names}


def assignments(names: tuple[str, ...]) -> str:
    return ", ".join(f"{rows.quoted(name)} = new.{rows.quoted(name)}" for name in names)


def queued(records: Sequence[Record]) -> dict[str, Sequence[Any]]:
    """Return the columns that claims look for. They are set while the record may be claimed."""
    open_ = [row if row.status in CLAIMABLE else None for row in records]
    return {
        "queue": [None if row is None else row.step for row in open_],
        "rank": [None if row is None else row.rank for row in open_],
    }


def by_column(type_: type[Any], given: Sequence[Any]) -> dict[str, Sequence[Any]]:
    """Return the values of these rows by the names of their columns."""
    return dict(zip(field_names(type_), zip(*map(field_values, given), strict=True), strict=True))


def changed_records(view: View, draft: Draft) -> tuple[list[Record], list[tuple[Record, Record]]]:
    """Return the new records, and the changed ones before and after, in the order of their ids.

    All transactions write in this order, so that no two of them wait for each other.
    """
    new, pairs = [], []
    for record_id, after in sorted(draft.records.items()):
        if draft.is_new(record_id):
            new.append(after)
        else:
            pairs.append((view.records[record_id] or after, after))
    return new, pairs


class Writer:
    """Writes on one connection. Texts longer than ``limit`` become blobs."""

    def __init__(self, wire: Wire, limit: int) -> None:
        self.wire = wire
        self.limit = limit
        self._blobs: dict[str, str] = {}

    def write(self, view: View, draft: Draft) -> None:
        """Write all rows that the draft changed, and its lines. Every row that it replaces is locked."""
        new, pairs = changed_records(view, draft)
        if pairs:
            names, columns = self.changed_columns(pairs)
            self.send(_update(names), columns)
        self.add_lines(draft.events)
        if new:
            self.add_records(new)
        self.write_others(view, draft)

    def restore(self, type_: type[Any], given: Sequence[Any]) -> None:
        """Write rows of another ledger as they are."""
        if not given:
            return
        if type_ is Record:
            self.add(_RESTORE_RECORDS, Record, STORED, given, queued(given))
        else:
            self.put(type_, given)
        if type_ is Event:
            # The next event comes after these.
            sql = "SELECT setval('events_seq_seq', greatest(last_value, $1::bigint)) FROM events_seq_seq"
            self.wire.send(sql, max(event.seq for event in given))
        self.add_blobs()

    def changed_columns(
        self, pairs: Sequence[tuple[Record, Record]]
    ) -> tuple[tuple[str, ...], list[tuple[str, Sequence[Any]]]]:
        """Return the names of the columns to write, and the ids of the records followed by these columns."""
        before = by_column(Record, [row for row, _ in pairs])
        after = by_column(Record, [row for _, row in pairs])
        names = list(rows.EVERY_TIME)
        for family in rows.FAMILIES:
            if any(before[name] != after[name] for name in family):
                names += family
        if "status" in names or not CLAIMABLE.isdisjoint(after["status"]):
            names += _QUEUED
            after |= queued([row for _, row in pairs])
        columns: list[tuple[str, Sequence[Any]]] = [("text", after["record_id"])]
        for name in names:
            column = after[name]
            if name in _LONG:
                column = self.with_references(column)
            columns.append((STORED[name], column))
        return tuple(names), columns

    def add_lines(self, events: Sequence[Event]) -> None:
        self.add(_ADD_EVENTS, Event, EVENT, events)

    def add_records(self, new: Sequence[Record]) -> None:
        names, columns = self.filled_columns(new)
        self.send(_ADD_RECORDS[names], columns)

    def filled_columns(self, new: Sequence[Record]) -> tuple[tuple[str, ...], list[tuple[str, Sequence[Any]]]]:
        """Return the columns of new records that have values: their names, then they themselves."""
        columns = self.columns(Record, new) | queued(new)
        names = filled(columns, len(new))
        return names, [(STORED[name], columns[name]) for name in names]

    def write_others(self, view: View, draft: Draft) -> None:
        """Write all but records and lines."""
        self._add_or_put(Receipt, draft.receipts, {key for key, row in view.receipts.items() if row is None})
        self._add_or_put(Signal, draft.signals, {key for key, row in view.known_signals.items() if row is None})
        self.put(Fanin, [draft.fanins[place] for place in sorted(draft.fanins)])
        self.put(Worker, [draft.workers[worker_id] for worker_id in sorted(draft.workers)])
        self.put(Control, [draft.controls[scope] for scope in sorted(draft.controls)])
        self.put(Bucket, [draft.buckets[name] for name in sorted(draft.buckets)])
        self.add_blobs()
        if draft.epoch != view.epoch:
            self.wire.send("UPDATE ledger SET epoch = $1::bigint", draft.epoch)

    def _add_or_put(self, type_: Any, changed: dict[str, Any], new: set[str]) -> None:
        """Insert the rows that were absent, and nothing else, so that a row made elsewhere meanwhile is not lost."""
        keys = sorted(changed)
        self.add(_ADD[type_], type_, types_of(type_), [changed[key] for key in keys if key in new])
        self.put(type_, [changed[key] for key in keys if key not in new])

    # -- rows --------------------------------------------------------------------------------------------------

    def put(self, type_: Any, changed: Sequence[Any]) -> None:
        self.add(_PUT[type_], type_, types_of(type_), changed)

    def add(
        self,
        statement: Statement,
        type_: type[Any],
        types: dict[str, str],
        changed: Sequence[Any],
        more: dict[str, Sequence[Any]] | None = None,
    ) -> None:
        if not changed:
            return
        columns = self.columns(type_, changed) | (more or {})
        self.send(statement, [(sql_type, columns[name]) for name, sql_type in types.items()])

    def columns(self, type_: type[Any], changed: Sequence[Any]) -> dict[str, Sequence[Any]]:
        columns = by_column(type_, changed)
        for name in rows.LONG.get(type_, ()):
            columns[name] = self.with_references(columns[name])
        return columns

    def send(self, statement: Statement, columns: Sequence[tuple[str, Sequence[Any]]]) -> int:
        count = len(columns[0][1])
        if count == 1:
            return self.wire.send(statement.one, *[single(sql_type, values[0]) for sql_type, values in columns])
        # The first column is the key, or part of it: the statement counts the rows by it.
        alike = (False, *[values.count(values[0]) == count for _, values in columns[1:]])
        sql = statement.many(alike)
        if sql is None:
            alike = (False,) * len(columns)
            sql = statement.many(alike)
            assert sql is not None
        given = [
            single(sql_type, values[0]) if same else array(sql_type, values)
            for same, (sql_type, values) in zip(alike, columns, strict=True)
        ]
        return self.wire.send(sql, *given)

    def with_references(self, column: Sequence[str | None]) -> Sequence[str | None]:
        """Put the long values of a column aside."""
        if max(map(len, filter(None, column)), default=0) <= self.limit:
            return column
        short: list[str | None] = []
        for text in column:
            if text is None or len(text) <= self.limit:
                short.append(text)
            else:
                short.append(BASES.kept_apart(text, self._blobs))
        return short

    def add_blobs(self) -> None:
        if self._blobs:
            hashes = sorted(self._blobs)
            texts = [self._blobs[hash_] for hash_ in hashes]
            self.send(_ADD_BLOBS, [("text", hashes), ("text", texts)])
