"""Writes what a ``Draft`` decided into PostgreSQL: few statements, each of many rows, or of one."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from quire.ledger import columns as rows
from quire.ledger.blobs import spilled
from quire.ledger.postgres import pages as leaves
from quire.ledger.postgres.fast.commits import TELLS, TOLD, UNCHANGED, WAS, guarded
from quire.ledger.postgres.pages import Ends
from quire.ledger.postgres.view import View
from quire.ledger.postgres.wire import Wire, array, single
from quire.model.event import Event
from quire.model.receipt import Receipt
from quire.model.record import CLAIMABLE, Record
from quire.model.row import field_names, field_values
from quire.model.side import Bucket, Control, Fanin, Setting, Signal, Worker
from quire.rules.draft import Draft

#: Of one statement so many kinds are made, by the columns in which rows are alike; others take all columns apart.
MOST_SHAPES = 20

#: The columns of a statement as SQL, each an array.
Given = Mapping[str, str]

_SQL_TYPES = {"int": "bigint", "float": "float8", "bool": "boolean"}


@cache
def _types(type_: type[Any]) -> dict[str, str]:
    """The columns of a row type with their SQL types."""
    written = {name: getattr(hint, "__forward_arg__", str(hint)) for name, hint in type_.__annotations__.items()}
    return {name: _SQL_TYPES.get(written[name].removesuffix(" | None"), "text") for name in field_names(type_)}


_STORED = _types(Record) | {"queue": "text", "rank": "float8"}
_QUEUED = ("queue", "rank")
_LONG = frozenset(rows.LONG[Record])


class _Statement:
    """A statement over rows, which it reads from a table ``new``.

    Many rows go as an array for each column. To take these apart is a good part of the server's work, so a column that
    has the same value in all rows goes as that value: in a batch most have. One row goes by its values.
    """

    def __init__(
        self, types: Mapping[str, str], text: Callable[[str, str, Given], str], apart: Container[str] = ()
    ) -> None:
        self._types = types
        #: Makes the statement, given the table, how many rows it has, and its columns as arrays, all of it as SQL.
        self._text = text
        #: Columns that are no part of the table: they are used as arrays only.
        self._apart = apart
        self.one = self._made((True,) * len(types), "1")
        self._many: dict[tuple[bool, ...], str] = {}

    def many(self, alike: tuple[bool, ...]) -> str | None:
        """The statement for rows that are alike in these columns; None if there are too many of its kind already."""
        made = self._many.get(alike)
        if made is None and (len(self._many) < MOST_SHAPES or not any(alike)):
            made = self._many[alike] = self._made(alike, "cardinality($1::text[])")
        return made

    def _made(self, alike: tuple[bool, ...], count: str) -> str:
        columns = zip(self._types.items(), alike, strict=True)
        places = [(place, name, sql, same) for place, ((name, sql), same) in enumerate(columns, 1)]
        given = {name: f"ARRAY[${place}::{sql}]" if same else f"${place}::{sql}[]" for place, name, sql, same in places}
        table = self._table([column for column in places if column[1] not in self._apart])
        return self._text(table, count, given)

    @staticmethod
    def _table(places: Sequence[tuple[int, str, str, bool]]) -> str:
        arrays = ", ".join(f"${place}::{sql}[]" for place, _, sql, same in places if not same)
        single = _names([name for _, name, _, same in places if not same])
        if not any(same for *_, same in places):
            return f"unnest({arrays}) AS new ({single})"
        values = ", ".join(f"${place}::{sql}" if same else rows.quoted(name) for place, name, sql, same in places)
        names = _names([name for _, name, _, _ in places])
        if not arrays:
            return f"(VALUES ({values})) AS new ({names})"
        return f"(SELECT {values} FROM unnest({arrays}) AS each ({single})) AS new ({names})"


def _names(names: Iterable[str]) -> str:
    return ", ".join(map(rows.quoted, names))


def _insert(table: str, types: dict[str, str], conflict: str = "") -> _Statement:
    return _Statement(types, lambda new, *_: f"INSERT INTO {table} ({_names(types)}) SELECT * FROM {new} {conflict}")


def _upsert(type_: Any, types: dict[str, str]) -> _Statement:
    table, keys = rows.TABLES[type_]
    updates = ", ".join(f"{rows.quoted(n)} = excluded.{rows.quoted(n)}" for n in types if n not in keys)
    return _insert(table, types, f"ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {updates}")


_PUT: dict[Any, _Statement] = {
    type_: _upsert(type_, _types(type_)) for type_ in (Receipt, Signal, Fanin, Worker, Control, Bucket, Setting, Event)
}
_RESTORE_RECORDS = _upsert(Record, _STORED)
_ADD = {type_: _insert(rows.TABLES[type_][0], _types(type_)) for type_ in (Receipt, Signal)}
_EVENT = {name: sql for name, sql in _types(Event).items() if name != "seq"}
_ADD_EVENTS = _insert("events", _EVENT)
_ADD_BLOBS = _insert("blobs", {"hash": "text", "text": "text"}, "ON CONFLICT DO NOTHING")

#: What of a leaf its records do not say themselves; the names are parted from those of the records.
LEAF = {
    "told_at": "float8",
    "told_kind": "text",
    "told_body": "text",
    "told_run": "text",
    "told_change": "text",
    "told_before": "bigint",
}


def _leaf(given: Given) -> str:
    """A table ``leaf`` of the leaf's number."""
    named = ["record_id", "log_seq", "version", "told_at", "told_kind", "told_body", "told_run", "told_change"]
    arrays = ", ".join(given[name] for name in [*named, "log_hash", "told_before"])
    return f"leaf AS (INSERT INTO leaves ({', '.join(leaves.COLUMNS)}, before) VALUES ({arrays}) RETURNING seq)"


def _leaf_of(told: Sequence[Event], ends: Sequence[int | None]) -> list[tuple[str, Sequence[Any]]]:
    columns: list[Sequence[Any]] = [
        [event.at for event in told],
        [event.kind for event in told],
        [event.body for event in told],
        [event.run_id for event in told],
        [event.change_id for event in told],
        ends,
    ]
    return list(zip(LEAF.values(), columns, strict=True))


#: By the columns that are given. A new record has NULL in every third, and what is not sent need not be read.
_ADD_RECORDS: dict[tuple[str, ...], _Statement] = {}


def _filled(columns: Mapping[str, Sequence[Any]], count: int) -> tuple[str, ...]:
    """The columns of new records that have values; all of them, if there are too many kinds of such records already."""
    names = tuple([name for name, values in columns.items() if values.count(None) < count])
    if names not in _ADD_RECORDS and len(_ADD_RECORDS) >= MOST_SHAPES:
        names = tuple(_STORED)
    if names not in _ADD_RECORDS:
        _ADD_RECORDS[names] = _insert("records", {name: _STORED[name] for name in names})
    return names


@cache
def _add_with_leaf(names: tuple[str, ...]) -> _Statement:
    """New records, and their lines as a leaf; answers the leaf's number."""
    types = {name: _STORED[name] for name in names}

    def text(new: str, _: str, given: Given) -> str:
        adds = f"INSERT INTO records ({_names(types)}, log_at) SELECT *, (SELECT seq FROM leaf) FROM {new}"
        return f"WITH {_leaf(given)}, added AS ({adds}) SELECT seq FROM leaf"

    return _Statement(types | LEAF, text, LEAF)


@cache
def _update(names: tuple[str, ...], guess: bool, tells: bool) -> _Statement:
    types = _updated(names) | (WAS if guess else {}) | (TOLD if tells else {})

    def text(new: str, count: str, _: Given) -> str:
        update = f"UPDATE records SET {_sets(names)} FROM {new} WHERE records.record_id = new.record_id"
        return guarded(f"{update} AND {UNCHANGED}", count, TELLS if tells else "") if guess else update

    return _Statement(types, text)


@cache
def _update_and_leaf(names: tuple[str, ...]) -> _Statement:
    """A guess whose lines are a leaf; answers the leaf's number."""

    def text(new: str, count: str, given: Given) -> str:
        sets = f"{_sets(names)}, log_at = (SELECT seq FROM leaf)"
        update = f"UPDATE records SET {sets} FROM {new} WHERE records.record_id = new.record_id AND {UNCHANGED}"
        checks = f"SELECT (SELECT seq FROM leaf), 1 / (count(*) = {count})::int FROM moved"
        return f"WITH {_leaf(given)}, moved AS ({update} RETURNING 1) {checks}"

    return _Statement(_updated(names) | WAS | LEAF, text, LEAF)


def _updated(names: tuple[str, ...]) -> dict[str, str]:
    return {"record_id": "text"} | {name: _STORED[name] for name in names}


def _sets(names: tuple[str, ...]) -> str:
    return ", ".join(f"{rows.quoted(name)} = new.{rows.quoted(name)}" for name in names)


def _queued(records: Sequence[Record]) -> dict[str, Sequence[Any]]:
    """The columns that a claim looks for: set while the record may be claimed."""
    open_ = [row if row.status in CLAIMABLE else None for row in records]
    return {
        "queue": [None if row is None else row.step for row in open_],
        "rank": [None if row is None else row.rank for row in open_],
    }


def _by_column(type_: type[Any], given: Sequence[Any]) -> dict[str, Sequence[Any]]:
    """Return the values of these rows by the names of their columns."""
    return dict(zip(field_names(type_), zip(*map(field_values, given), strict=True), strict=True))


class _Rows:
    """Sends rows, and their long values as blobs beside them."""

    def __init__(self, wire: Wire, limit: int) -> None:
        self.wire = wire
        self.limit = limit
        self._blobs: dict[str, str] = {}

    def _put(self, type_: Any, changed: Sequence[Any]) -> None:
        self._add(_PUT[type_], type_, _types(type_), changed)

    def _add(
        self,
        statement: _Statement,
        type_: type[Any],
        types: dict[str, str],
        changed: Sequence[Any],
        more: dict[str, Sequence[Any]] | None = None,
    ) -> None:
        if not changed:
            return
        columns = self._columns(type_, changed) | (more or {})
        self._send(statement, [(sql_type, columns[name]) for name, sql_type in types.items()])

    def _columns(self, type_: type[Any], changed: Sequence[Any]) -> dict[str, Sequence[Any]]:
        columns = _by_column(type_, changed)
        for name in rows.LONG.get(type_, ()):
            columns[name] = self._shortened(columns[name], None)
        return columns

    def _send(self, statement: _Statement, columns: Sequence[tuple[str, Sequence[Any]]]) -> int:
        count = len(columns[0][1])
        if count == 1:
            return self.wire.send(statement.one, *[single(sql_type, values[0]) for sql_type, values in columns])
        # The first column is the key, or part of it: by it the rows are counted.
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

    def _shortened(self, column: Sequence[str | None], before: Sequence[str | None] | None) -> Sequence[str | None]:
        """The column with its long values put aside as blobs; what the row had before is in the ledger already."""
        if max(map(len, filter(None, column)), default=0) <= self.limit:
            return column
        short: list[str | None] = []
        for place, text in enumerate(column):
            if text is None or len(text) <= self.limit:
                short.append(text)
            else:
                known = before is not None and before[place] == text
                short.append(spilled(text, {} if known else self._blobs))
        return short

    def _add_blobs(self) -> None:
        if self._blobs:
            hashes = sorted(self._blobs)
            texts = [self._blobs[hash_] for hash_ in hashes]
            self._send(_ADD_BLOBS, [("text", hashes), ("text", texts)])


class Restorer(_Rows):
    """Sends rows of another ledger as they are."""

    def put(self, type_: type[Any], given: Sequence[Any]) -> None:
        if not given:
            return
        if type_ is Record:
            self._add(_RESTORE_RECORDS, Record, _STORED, given, _queued(given))
        else:
            self._put(type_, given)
        if type_ is Event:
            # The next event comes after these.
            sql = "SELECT setval('events_seq_seq', greatest(last_value, $1::bigint)) FROM events_seq_seq"
            self.wire.send(sql, max(event.seq for event in given))
        self._add_blobs()


class Writer(_Rows):
    """Sends what a draft decided; with ``ends`` as a guess, over rows that were not locked."""

    def __init__(self, wire: Wire, view: View, draft: Draft, limit: int, ends: Ends | None = None) -> None:
        super().__init__(wire, limit)
        self.view = view
        self.draft = draft
        self.guess = ends is not None
        self.ends = ends
        #: The place of the answer that tells the number of the leaf which was written.
        self.leaf: int | None = None

    def send(self) -> None:
        """Rows go in the order of their keys, lest two transactions wait for each other."""
        draft, known = self.draft, self.view.records
        new, pairs = [], []
        for record_id, after in sorted(draft.records.items()):
            if draft.is_new(record_id):
                new.append(after)
            else:
                pairs.append((known[record_id] or after, after))
        events = self._update(pairs, draft.events) if pairs else draft.events
        told = self._told([row.record_id for row in new], events) if new and not pairs else None
        is_leaf = told is not None and self._is_leaf(told)
        if not is_leaf:
            self._add(_ADD_EVENTS, Event, _EVENT, events)
        if new:
            columns = self._columns(Record, new) | _queued(new)
            names = _filled(columns, len(new))
            given = [(_STORED[name], columns[name]) for name in names]
            if told is not None and is_leaf:
                self.leaf = self._send(_add_with_leaf(names), given + _leaf_of(told, [None] * len(told)))
            else:
                self._send(_ADD_RECORDS[names], given)
        receipts = self.view.receipts
        self._add_or_put(Receipt, draft.receipts, {key for key, row in receipts.items() if row is None})
        signals = self.view.known_signals
        self._add_or_put(Signal, draft.signals, {key for key, row in signals.items() if row is None})
        self._put(Fanin, [draft.fanins[place] for place in sorted(draft.fanins)])
        self._put(Worker, [draft.workers[worker_id] for worker_id in sorted(draft.workers)])
        self._put(Control, [draft.controls[scope] for scope in sorted(draft.controls)])
        self._put(Bucket, [draft.buckets[name] for name in sorted(draft.buckets)])
        self._add_blobs()
        if draft.epoch != self.view.epoch:
            self.wire.send("UPDATE ledger SET epoch = $1::bigint", draft.epoch)

    def _update(self, pairs: list[tuple[Record, Record]], events: list[Event]) -> list[Event]:
        """Sends the rows that change; answers the lines that are still to be sent.

        Where each row has one line, as in most batches of moves, one statement writes both: what they have in common
        goes to the server, and is taken apart there, once.
        """
        before = _by_column(Record, [row for row, _ in pairs])
        after = _by_column(Record, [row for _, row in pairs])
        names = list(rows.EVERY_TIME)
        for family in rows.FAMILIES:
            if any(before[name] != after[name] for name in family):
                names += family
        if "status" in names or not CLAIMABLE.isdisjoint(after["status"]):
            names += _QUEUED
            after |= _queued([row for _, row in pairs])
        columns: list[tuple[str, Sequence[Any]]] = [("text", after["record_id"])]
        for name in names:
            column = after[name]
            if name in _LONG:
                column = self._shortened(column, before[name])
            columns.append((_STORED[name], column))
        if self.guess:
            columns += zip(WAS.values(), (before["version"], before["log_hash"], before["facts"]), strict=True)
        told = self._told(after["record_id"], events) if not self.draft.has_new else None
        if told is None:
            self._send(_update(tuple(names), self.guess, False), columns)
            return events
        ends = self.ends.before([row for row, _ in pairs]) if self.ends is not None and self._is_leaf(told) else None
        if ends is not None:
            self.leaf = self._send(_update_and_leaf(tuple(names)), columns + _leaf_of(told, ends))
            return []
        columns += [
            ("float8", [event.at for event in told]),
            ("text", [event.kind for event in told]),
            ("text", self._shortened([event.body for event in told], None)),
            ("text", [event.change_id for event in told]),
        ]
        self._send(_update(tuple(names), self.guess, True), columns)
        return []

    def _told(self, record_ids: Sequence[str], events: list[Event]) -> list[Event] | None:
        """The lines, if this is a guess and each of these records has one, in their order."""
        if not self.guess or len(events) != len(record_ids):
            return None
        lines = {event.record_id: event for event in events}
        return [lines[record_id] for record_id in record_ids] if len(lines) == len(events) else None

    def _is_leaf(self, told: list[Event]) -> bool:
        """So many, and none of them long."""
        many = leaves.FEW <= len(told) <= leaves.ROOM
        return many and max([len(event.body) for event in told]) <= self.limit

    def _add_or_put(self, type_: Any, changed: dict[str, Any], new: set[str]) -> None:
        """Rows that were not there are inserted and nothing else, so that one made elsewhere meanwhile is not lost."""
        keys = sorted(changed)
        self._add(_ADD[type_], type_, _types(type_), [changed[key] for key in keys if key in new])
        self._put(type_, [changed[key] for key in keys if key not in new])
