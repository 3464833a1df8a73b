"""Statements over rows: made once, for many rows or for one."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from quire.ledger import columns as rows
from quire.model.record import Record
from quire.model.row import field_names

#: How many kinds of one statement are made, by the columns in which rows are alike. Other rows use the kind in which
#: every column is an array.
MOST_SHAPES = 20

#: The columns of a statement as SQL, each an array.
Given = Mapping[str, str]

_SQL_TYPES = {"int": "bigint", "float": "float8", "bool": "boolean"}


@cache
def types_of(type_: type[Any]) -> dict[str, str]:
    """Return the columns of a row type with their SQL types."""
    written = {name: getattr(hint, "__forward_arg__", str(hint)) for name, hint in type_.__annotations__.items()}
    return {name: _SQL_TYPES.get(written[name].removesuffix(" | None"), "text") for name in field_names(type_)}


#: The columns of a stored record, with their SQL types.
STORED = types_of(Record) | {"queue": "text", "rank": "float8"}


class Statement:
    """A statement over rows, which it reads from a table ``new``.

    Many rows are sent as an array for each column. Taking the arrays apart is a good part of the server's work, so a
    column that has the same value in all rows is sent as that value: in a batch, most columns are. One row is sent as
    its values.
    """

    def __init__(
        self, types: Mapping[str, str], text: Callable[[str, str, Given], str], apart: Container[str] = ()
    ) -> None:
        self._types = types
        #: Makes the statement, given the table, how many rows it has, and its columns as arrays, all of it as SQL.
        self._text = text
        #: Columns that are not in the table: the statement uses them as arrays only.
        self._apart = apart
        self.one = self._made((True,) * len(types), "1")
        self._many: dict[tuple[bool, ...], str] = {}

    def many(self, alike: tuple[bool, ...]) -> str | None:
        """Return the statement for rows that are alike in these columns; None if there are too many kinds already."""
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
        single = names_of([name for _, name, _, same in places if not same])
        if not any(same for *_, same in places):
            return f"unnest({arrays}) AS new ({single})"
        values = ", ".join(f"${place}::{sql}" if same else rows.quoted(name) for place, name, sql, same in places)
        names = names_of([name for _, name, _, _ in places])
        if not arrays:
            return f"(VALUES ({values})) AS new ({names})"
        return f"(SELECT {values} FROM unnest({arrays}) AS each ({single})) AS new ({names})"


def names_of(names: Iterable[str]) -> str:
    return ", ".join(map(rows.quoted, names))


def insert(table: str, types: dict[str, str], conflict: str = "") -> Statement:
    return Statement(types, lambda new, *_: f"INSERT INTO {table} ({names_of(types)}) SELECT * FROM {new} {conflict}")


def upsert(type_: Any, types: dict[str, str]) -> Statement:
    table, keys = rows.TABLES[type_]
    updates = ", ".join(f"{rows.quoted(n)} = excluded.{rows.quoted(n)}" for n in types if n not in keys)
    return insert(table, types, f"ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {updates}")
