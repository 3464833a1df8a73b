"""Rows: what is stored, typed. The only module that knows msgspec.

A row is a frozen `msgspec.Struct`. It is replaced, never changed: `replace(row, status=…)`. A struct is built and
replaced several times faster than a named tuple or a dataclass, and its fields have names everywhere. A struct is not a
tuple: code that needs the columns of a row in their order says so with `field_names` and `field_values`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import asdict, astuple
from msgspec.structs import replace as replace


class Row(Struct, frozen=True):
    """A row of a table, or a value that rows and changes are made of. Its fields are in the order of the columns."""


R = TypeVar("R", bound=Row)


def field_names(type_: type[Row]) -> tuple[str, ...]:
    """Return the names of a row's fields, in the order of the table's columns."""
    return type_.__struct_fields__


def field_places(type_: type[Row]) -> dict[str, int]:
    """Return where the column of each field stands in what a store answers."""
    return {name: place for place, name in enumerate(field_names(type_))}


def field_values(row: Row) -> tuple[Any, ...]:
    """Return the values of a row, in the order of the table's columns."""
    return astuple(row)


def as_dict(row: Row) -> dict[str, Any]:
    """Return the row as a dictionary: the name of each field, with its value."""
    return asdict(row)


def from_values(type_: type[R], given: Iterable[Any]) -> R:
    """Make a row from all of its values, in the order of the table's columns."""
    return type_(*given)
