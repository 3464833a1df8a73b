"""Writes an optimistic commit: every statement says what it takes for granted of the rows that it replaces.

A statement that finds the ledger otherwise divides by zero, which undoes the whole transaction. Where each record has
one line, as in most batches of moves, one statement writes both: what they have in common is sent to the server, and
taken apart there, once. Many lines become a page of lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from quire.ledger.postgres import pages
from quire.ledger.postgres.fast.last_pages import LastPages
from quire.ledger.postgres.pages import COLUMNS, ROOM
from quire.ledger.postgres.statements import STORED, Given, Statement, names_of
from quire.ledger.postgres.view import View
from quire.ledger.postgres.writer import Writer, assignments, changed_records, updated_types
from quire.model.event import Event
from quire.model.record import Record
from quire.rules.draft import Draft

#: What an update says of its rows as they were before.
_WAS = {"was_version": "bigint", "was_hash": "text", "was_facts": "bigint"}
_SAME = (
    "records.record_id = new.record_id AND records.version = new.was_version AND records.log_hash = new.was_hash "
    "AND records.facts = new.was_facts"
)
#: The columns of a line that the update of its record does not have itself; and a line, as the update returns it.
_LINE = {"line_at": "float8", "line_kind": "text", "line_body": "text", "line_change": "text"}
_RETURNED_LINE = (
    "records.record_id, records.log_seq, records.version, line_at, line_kind, line_body, records.run_id, line_change, "
    "records.log_hash"
)
#: The columns of a page that the records do not have themselves. The names differ from those of records.
_PAGE = {
    "line_at": "float8",
    "line_kind": "text",
    "line_body": "text",
    "line_run": "text",
    "line_change": "text",
    "line_before": "bigint",
}


def _page(given: Given) -> str:
    """SQL: write the page, as a table ``page`` of its number."""
    named = ["record_id", "log_seq", "version", "line_at", "line_kind", "line_body", "line_run", "line_change"]
    arrays = ", ".join(given[name] for name in [*named, "log_hash", "line_before"])
    return f"page AS (INSERT INTO leaves ({', '.join(COLUMNS)}, before) VALUES ({arrays}) RETURNING seq)"


@cache
def _add_with_page(names: tuple[str, ...]) -> Statement:
    """New records, and their lines as a page. The statement returns the number of the page."""
    types = {name: STORED[name] for name in names}

    def text(new: str, _: str, given: Given) -> str:
        adds = f"INSERT INTO records ({names_of(types)}, log_at) SELECT *, (SELECT seq FROM page) FROM {new}"
        return f"WITH {_page(given)}, added AS ({adds}) SELECT seq FROM page"

    return Statement(types | _PAGE, text, _PAGE)


@cache
def _update(names: tuple[str, ...], with_lines: bool) -> Statement:
    """Changed records, and if each has one line, these lines as rows."""

    def text(new: str, count: str, _: Given) -> str:
        moved = f"UPDATE records SET {assignments(names)} FROM {new} WHERE {_SAME}"
        returned = _RETURNED_LINE if with_lines else "1"
        lines = f", lines AS (INSERT INTO events ({', '.join(COLUMNS)}) SELECT * FROM moved)" if with_lines else ""
        return f"WITH moved AS ({moved} RETURNING {returned}){lines} SELECT 1 / (count(*) = {count})::int FROM moved"

    return Statement(updated_types(names) | _WAS | (_LINE if with_lines else {}), text)


@cache
def _update_with_page(names: tuple[str, ...]) -> Statement:
    """Changed records, and their lines as a page. The statement returns the number of the page."""

    def text(new: str, count: str, given: Given) -> str:
        moved = f"UPDATE records SET {assignments(names)}, log_at = (SELECT seq FROM page) FROM {new} WHERE {_SAME}"
        checked = f"SELECT (SELECT seq FROM page), 1 / (count(*) = {count})::int FROM moved"
        return f"WITH {_page(given)}, moved AS ({moved} RETURNING 1) {checked}"

    return Statement(updated_types(names) | _WAS | _PAGE, text, _PAGE)


class OptimisticWriter:
    """Writes one draft over rows that were not locked."""

    def __init__(self, writer: Writer, last_pages: LastPages) -> None:
        self._writer = writer
        self._last_pages = last_pages
        #: Where the answer is that has the number of the page; None: no page was written.
        self.page: int | None = None

    def write(self, view: View, draft: Draft) -> None:
        new, pairs = changed_records(view, draft)
        lines = draft.events
        if pairs:
            self._update(pairs, lines, alone=not new)
        elif (one_each := _one_each([row.record_id for row in new], lines)) is not None and self._is_page(one_each):
            names, columns = self._writer.filled_columns(new)
            page = _page_columns(one_each, [None] * len(one_each))
            self.page = self._writer.send(_add_with_page(names), columns + page)
            new = []
        else:
            self._writer.add_lines(lines)
        if new:
            self._writer.add_records(new)
        self._writer.write_others(view, draft)

    def _update(self, pairs: Sequence[tuple[Record, Record]], lines: Sequence[Event], *, alone: bool) -> None:
        """Write the changed records and all lines. ``alone``: no new record comes with them."""
        names, columns = self._writer.changed_columns(pairs)
        before = [row for row, _ in pairs]
        was = [row.version for row in before], [row.log_hash for row in before], [row.facts for row in before]
        columns += zip(_WAS.values(), was, strict=True)
        one_each = _one_each([row.record_id for row in before], lines) if alone else None
        if one_each is None:
            self._writer.send(_update(names, False), columns)
            self._writer.add_lines(lines)
            return
        last_pages = self._last_pages.of(before) if self._is_page(one_each) else None
        if last_pages is not None:
            page = _page_columns(one_each, last_pages)
            self.page = self._writer.send(_update_with_page(names), columns + page)
            return
        columns += [
            ("float8", [line.at for line in one_each]),
            ("text", [line.kind for line in one_each]),
            ("text", self._writer.with_references([line.body for line in one_each])),
            ("text", [line.change_id for line in one_each]),
        ]
        self._writer.send(_update(names, True), columns)

    def _is_page(self, lines: Sequence[Event]) -> bool:
        """Return whether these lines are enough for a page, and none of them is long."""
        return pages.FEW <= len(lines) <= ROOM and max([len(line.body) for line in lines]) <= self._writer.limit


def _one_each(record_ids: Sequence[str], lines: Sequence[Event]) -> list[Event] | None:
    """Return the lines in the order of these records, if each record has exactly one."""
    if len(lines) != len(record_ids):
        return None
    known = {line.record_id: line for line in lines}
    return [known[record_id] for record_id in record_ids] if len(known) == len(lines) else None


def _page_columns(lines: Sequence[Event], last_pages: Sequence[int | None]) -> list[tuple[str, Sequence[Any]]]:
    columns: list[Sequence[Any]] = [
        [line.at for line in lines],
        [line.kind for line in lines],
        [line.body for line in lines],
        [line.run_id for line in lines],
        [line.change_id for line in lines],
        last_pages,
    ]
    return list(zip(_PAGE.values(), columns, strict=True))
