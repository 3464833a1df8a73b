"""Writes what a ``Draft`` decided into SQLite: few statements, each of many rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import chain
from operator import attrgetter, ne
from typing import Any

from quire.ledger import columns as rows
from quire.ledger.blobs import BASES
from quire.ledger.sqlite.view import View
from quire.model.event import Event
from quire.model.receipt import Receipt
from quire.model.record import Record
from quire.model.row import field_names, field_values
from quire.model.side import Bucket, Control, Fanin, Signal, Worker
from quire.rules.draft import Draft


def _marks(width: int, count: int) -> str:
    one = f"({', '.join('?' * width)})"
    return ", ".join([one] * count)


@cache
def _put(type_: type[Any], count: int) -> str:
    """The statement that writes so many rows, over those of the same keys. A record's rank follows its fields."""
    table, keys = rows.TABLES[type_]
    names = [*field_names(type_), *(["rank"] if type_ is Record else [])]
    updates = ", ".join(f"{rows.quoted(n)} = excluded.{rows.quoted(n)}" for n in names if n not in keys)
    return (
        f"INSERT INTO {table} ({', '.join(map(rows.quoted, names))}) VALUES {_marks(len(names), count)} "
        f"ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {updates}"
    )


@cache
def _add_events(count: int) -> str:
    names = rows.LINE_COLUMNS
    return f"INSERT INTO events ({', '.join(names)}) VALUES {_marks(len(names), count)}"


#: What is written of a line.
_line_values = attrgetter(*rows.LINE_COLUMNS)


#: Which families of a record changed.
_Families = tuple[bool, ...]


@cache
def _families_of(fields: tuple[bool, ...]) -> _Families:
    """Return which families changed. ``fields``: whether each field did, in their order."""
    changed = dict(zip(field_names(Record), fields, strict=True))
    return tuple(any(changed[name] for name in family) for family in rows.FAMILIES)


def _names_of(families: _Families) -> list[str]:
    written = [family for family, changed in zip(rows.FAMILIES, families, strict=True) if changed]
    return [*rows.EVERY_TIME, *(name for family in written for name in family)]


@cache
def _values_of(families: _Families) -> Callable[[Record], tuple[Any, ...]]:
    """What an update of these families takes of a record, before its rank and its id."""
    return attrgetter(*_names_of(families))


@cache
def _update(families: _Families, count: int) -> str:
    names = [*_names_of(families), "rank"]
    sets = ", ".join(f"{rows.quoted(name)} = new.column{place}" for place, name in enumerate(names, 1))
    width = len(names) + 1
    return f"UPDATE records SET {sets} FROM (VALUES {_marks(width, count)}) AS new WHERE record_id = new.column{width}"


#: The most rows that one statement writes; what is left is written by statements of half, a quarter … of it.
MOST_ROWS = 64


def _write_many(db: sqlite3.Connection, sql: Callable[[int], str], values: Sequence[Sequence[Any]]) -> None:
    """Write rows by few statements: each gives Python's lock to the other threads once, not once for each row."""
    start, count = 0, MOST_ROWS
    while start < len(values):
        while count > len(values) - start:
            count //= 2
        db.execute(sql(count), list(chain.from_iterable(values[start : start + count])))
        start += count


#: A row with its long values put aside.
_short = partial(rows.put_aside, keep=BASES.kept_apart)


def write(db: sqlite3.Connection, view: View, draft: Draft, limit: int) -> None:
    """Write what a draft decided; texts longer than the limit are put aside as blobs."""
    blobs: dict[str, str] = {}
    if draft.records:
        _write_records(db, view, draft, limit, blobs)
    if draft.events:
        _write_many(db, _add_events, [_line_values(_short(event, Event, limit, blobs)) for event in draft.events])
    for type_, changed in (
        (Receipt, draft.receipts),
        (Signal, draft.signals),
        (Fanin, draft.fanins),
        (Worker, draft.workers),
        (Control, draft.controls),
        (Bucket, draft.buckets),
    ):
        if changed:
            short = [field_values(_short(row, type_, limit, blobs)) for row in changed.values()]
            _write_many(db, partial(_put, type_), short)
    if blobs:
        db.executemany("INSERT OR IGNORE INTO blobs VALUES (?, ?)", list(blobs.items()))
    if draft.epoch != draft.view.epoch:
        db.execute("UPDATE ledger SET epoch = ?", (draft.epoch,))


def _write_records(db: sqlite3.Connection, view: View, draft: Draft, limit: int, blobs: dict[str, str]) -> None:
    new: list[tuple[Any, ...]] = []
    known: dict[_Families, list[tuple[Any, ...]]] = {}
    for record_id, record in draft.records.items():
        row = _short(record, Record, limit, blobs)
        before = None if draft.is_new(record_id) else view.known(record_id)
        if before is None:
            new.append((*field_values(row), record.rank))
        else:
            families = _families_of(tuple(map(ne, field_values(before), field_values(record))))
            known.setdefault(families, []).append((*_values_of(families)(row), record.rank, record_id))
    _write_many(db, partial(_put, Record), new)
    for families, values in known.items():
        _write_many(db, partial(_update, families), values)
