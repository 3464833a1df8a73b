"""Many records from a file: the lines of a CSV or JSONL, each with its number, or with what is wrong with it."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from quire.errors import InputError
from quire.model.fit import Fit
from quire.surfaces.cli.values import Schema, fitted, kinds

#: A cell may be this long.
_CELL = 16 * 1024 * 1024
#: Bytes that are no UTF-8, as ``opened`` reads them.
_BYTES = re.compile("[\udc80-\udcff]")
_NO_UTF8 = "not UTF-8: save the file as UTF-8 and give it again"


class Row(NamedTuple):
    """One line of the file: its data, or its problem."""

    line: int
    data: dict[str, Any]
    record_id: str | None = None
    problem: str = ""


@contextmanager
def opened(name: str) -> Iterator[TextIO]:
    """The file, or standard input (``-``). A byte that is no UTF-8 spoils its line, not the file."""
    if name == "-":
        yield io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8-sig", errors="surrogateescape", newline="")
        return
    try:
        file = Path(name).open(encoding="utf-8-sig", errors="surrogateescape", newline="")  # noqa: SIM115
    except (OSError, ValueError) as error:
        raise InputError(f"{name!r} cannot be read: {error}") from error
    with file:
        yield file


def count_lines(name: str) -> int | None:
    """About how many rows the file has, for the progress bar; None: nobody can tell."""
    if name == "-":
        return None
    with Path(name).open("rb") as file:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))


def format_of(name: str, asked: str | None) -> str:
    """csv or jsonl: as asked, or by the file's name; empty: by its first character."""
    if asked:
        return asked
    return {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl"}.get(Path(name).suffix.lower(), "")


def rows(file: TextIO, form: str, schema: Schema, id_field: str | None) -> Iterator[Row]:
    """Yield the rows of the file, in order."""
    lines: Iterable[str] = file
    if not form:
        first = file.readline()
        form = "jsonl" if first.lstrip()[:1] == "{" else "csv"
        lines = _again(first, file)
    return _jsonl(lines, schema, id_field) if form == "jsonl" else _csv(lines, schema, id_field)


def _again(first: str, rest: Iterable[str]) -> Iterator[str]:
    yield first
    yield from rest


def _jsonl(lines: Iterable[str], schema: Schema, id_field: str | None) -> Iterator[Row]:
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        if _BYTES.search(text):
            yield Row(number, {}, problem=_NO_UTF8)
            continue
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            yield Row(number, {}, problem=f"no JSON: {error}")
            continue
        if not isinstance(data, dict):
            yield Row(number, {}, problem=f"an object of named fields is wanted, not {type(data).__name__}")
            continue
        yield _identified(Row(number, data), schema, id_field)


def _csv(lines: Iterable[str], schema: Schema, id_field: str | None) -> Iterator[Row]:
    csv.field_size_limit(_CELL)
    reader = csv.reader(lines, strict=True)
    header = _header(reader, id_field)
    fields = (schema or {}).get("properties") or {}
    columns = [(name, _reader(name, kinds(fields.get(name), schema), schema)) for name in header]
    by = _id_name(schema, id_field)
    id_place = header.index(by) if by in header else None
    if id_place is not None and by not in fields:
        columns[id_place] = ("", None)
    if problem := Fit(schema, "").unknown(dict.fromkeys(name for name, _ in columns if name)):
        raise InputError(f"line 1: {problem} (nothing was started)")
    while True:
        number = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield Row(number, {}, problem=f"no CSV: {error}")
            continue
        if not cells:
            continue
        row = _row(number, cells, columns, id_place)
        yield row._replace(record_id=None, problem=f"its {by!r} is empty") if row.record_id == "" else row


def _row(number: int, cells: list[str], columns: Sequence[tuple[str, Any]], id_place: int | None) -> Row:
    """One line of the file. A function of ``columns`` reads a cell for the field; None takes the text as it is."""
    if _BYTES.search("".join(cells)):
        return Row(number, {}, problem=_NO_UTF8)
    if len(cells) != len(columns):
        return Row(number, {}, problem=f"it has {len(cells)} cells, the header has {len(columns)}")
    read = zip(columns, cells, strict=True)
    data = {name: cell if reads is None else reads(cell) for (name, reads), cell in read if name}
    return Row(number, data, cells[id_place] if id_place is not None else None)


def _header(reader: Iterator[list[str]], id_field: str | None) -> list[str]:
    """The names of the columns, from the first line; refused if they cannot be read, or lack the column of the ids."""
    try:
        header = [name.strip() for name in next(reader)]
    except StopIteration:
        raise InputError("the file is empty: its first line must name the columns") from None
    except csv.Error as error:
        raise InputError(f"line 1 is not CSV: {error}") from error
    if any(map(_BYTES.search, header)):
        raise InputError(f"line 1 is {_NO_UTF8}")
    _check_header(header)
    if id_field is not None and id_field not in header:
        raise InputError(f"there is no column {id_field!r} for the ids; there are {', '.join(header)}")
    return header


def _reader(name: str, wanted: set[str], schema: Schema) -> Callable[[str], Any] | None:
    """What makes a value of a cell; None: the text is the value."""
    return None if not wanted or "string" in wanted else lambda text: fitted(name, text, schema)


def _id_name(schema: Schema, id_field: str | None) -> str:
    """The field that holds the ids: as asked; otherwise record_id, where the workflow has no such field itself."""
    fields = (schema or {}).get("properties") or {}
    return id_field or ("record_id" if "record_id" not in fields else "")


def _check_header(header: list[str]) -> None:
    if not all(header):
        raise InputError(f"column {header.index('') + 1} has no name: the first line must name the columns")
    twice = next((name for place, name in enumerate(header) if name in header[:place]), None)
    if twice is not None:
        raise InputError(f"the column {twice!r} stands twice in the header")


def _identified(row: Row, schema: Schema, id_field: str | None) -> Row:
    """Return the row with its record id, which is no part of the data unless the workflow knows the field."""
    fields = (schema or {}).get("properties") or {}
    name = _id_name(schema, id_field)
    if name not in row.data:
        return row if id_field is None else row._replace(problem=f"it has no {id_field!r}")
    record_id = row.data[name]
    if not isinstance(record_id, str | int) or isinstance(record_id, bool) or record_id == "":
        return row._replace(problem=f"{record_id!r} in {name!r} is not a record id")
    data = row.data if name in fields else {key: value for key, value in row.data.items() if key != name}
    return row._replace(data=data, record_id=str(record_id))
