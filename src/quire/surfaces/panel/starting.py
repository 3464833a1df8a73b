"""Rows become records: what a row stands for is read as its fields want it, and its record is started, once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from quire.client.client import Client
from quire.errors import LedgerUnavailable, QuireError
from quire.google.error import GoogleError
from quire.ledger.definition import Mould
from quire.model.change import Applied, Refused
from quire.model.record import Record
from quire.model.row import replace
from quire.surfaces.panel.binding import cell_at
from quire.surfaces.panel.book import Book, Rows
from quire.surfaces.panel.table import cut
from quire.surfaces.panel.values import typed, wants_text
from quire.worker.schedule import first_record

INCOMPLETE, REFUSED = "INCOMPLETE", "REFUSED"
_ERRORS = frozenset({"#REF", "#N/A", "#VALUE", "#NAME", "#DIV/0", "#NUM", "#NULL", "#ERROR"})


class Source(Protocol):
    """Where rows start records of a workflow: an inbox, or a table."""

    @property
    def workflow(self) -> str: ...
    @property
    def required(self) -> tuple[str, ...]: ...
    @property
    def schema(self) -> Mapping[str, Any] | None: ...


class Given(NamedTuple):
    """What was typed in a row, by field: the values, and how their cells look where that counts."""

    values: dict[str, Any]
    shown: dict[str, Any]


def lacking(source: Source, given: Mapping[str, Any]) -> list[str]:
    """Required fields that are blank, or have no column at all."""
    return [field for field in source.required if str(given.get(field, "")).strip() == ""]


def must_be_shown(source: Source, given: Mapping[str, Any]) -> bool:
    """Whether how the cells look is needed: a number, or what may become one, stands where text is wanted."""
    properties = (source.schema or {}).get("properties", {})
    return any(
        wants_text(properties.get(field, {})) and (not isinstance(value, str) or value.startswith("="))
        for field, value in given.items()
    )


def data_of(source: Source, given: Given, zone: str) -> dict[str, Any]:
    """The data that a row stands for: its filled cells, each as the type that its field wants if it can be one."""
    properties = (source.schema or {}).get("properties", {})
    data = {}
    for field, value in given.values.items():
        if isinstance(value, str) and value.strip() == "":
            continue
        data[field] = typed(value, str(given.shown.get(field, value)), properties.get(field, {}), zone)
    return data


_EDITED = "edited after it was started; the record keeps what it was started with"


def edited(note: str, *, is_edited: bool) -> str:
    """The note of a row that has started: it says that the row was edited, and no longer if it is as it was."""
    bare = note.removesuffix(_EDITED).removesuffix("; ")
    return cut(f"{bare}; {_EDITED}".lstrip("; ")) if is_edited else bare


def says_edited(note: str) -> bool:
    return note.endswith(_EDITED)


def taken_already(record: Record) -> str:
    return f"a record {record.record_id!r} of {record.workflow!r} is there already"


class Reading:
    """The values of a tab, read when they are first needed. A tab without formulas and texts to show needs no reading.

    How the cells look is read first: what does not change from that read to the one of their values looked so.
    """

    def __init__(self, source: Source, book: Book, sheet_id: int, rows: Iterable[Mapping[str, Any]]) -> None:
        self._source = source
        self._book = book
        self._sheet_id = sheet_id
        self._shows = any(must_be_shown(source, given) for given in rows)
        self._values: Rows | None = None
        self._looks: Rows = []

    async def given(
        self, inputs: Mapping[str, int], column: int, record_id: str, before: Mapping[str, Any]
    ) -> Given | None:
        """The values of the row beside which this id stands, if it still says what was read: its copies may not."""
        if self._values is None:
            if self._shows:
                self._looks = await self._book.look(self._sheet_id)
            self._values = await self._book.values(self._sheet_id)
        for number, cells in enumerate(self._values):
            if id_text(cell_at(cells, column)) != record_id:
                continue
            given = {field: cell_at(cells, at) for field, at in inputs.items()}
            if all(_formula(before[field]) or value == before[field] for field, value in given.items()):
                look: Sequence[Any] = self._looks[number] if number < len(self._looks) else ()
                if id_text(cell_at(look, column)) != record_id and must_be_shown(self._source, before):
                    return None
                return Given(given, {field: cell_at(look, at) for field, at in inputs.items()} if look else {})
        return None


class Starter:
    def __init__(self, client: Client, book: Book) -> None:
        self._client = client
        self._book = book

    def reading(self, source: Source, sheet_id: int, rows: Iterable[Mapping[str, Any]]) -> Reading:
        return Reading(source, self._book, sheet_id, rows)

    async def there(self, record_ids: Iterable[str]) -> dict[str, Record]:
        found = await self._client.ledger.load(list(record_ids))
        return {record.record_id: record for record in found}

    async def start(
        self,
        source: Source,
        record_id: str,
        dedupe_key: str,
        given: Given,
        now: float,
        more: Mapping[str, Any] | None = None,
    ) -> tuple[str, str, Record | None]:
        """The record; or why there is none: a word for it, and a sentence. ``more``: data from elsewhere in the row."""
        lacks = [field for field in lacking(source, given.values) if field not in (more or {})]
        if lacks:
            return INCOMPLETE, f"needed, but blank: {', '.join(lacks)}", None
        broken = [field for field, value in given.values.items() if isinstance(value, str) and value.startswith("#")]
        broken = [field for field in broken if str(given.values[field]).partition(" (")[0].rstrip("!?") in _ERRORS]
        if broken:
            return REFUSED, f"the formula in {', '.join(broken)} has no value", None
        try:
            data = {**(more or {}), **data_of(source, given, self._book.time_zone)}
            record = replace(await self._record(source, record_id, data, now), dedupe_key=dedupe_key)
            [verdict] = await self._client.start_records([record])
        except QuireError as error:
            if isinstance(error, LedgerUnavailable | GoogleError):
                raise
            return REFUSED, str(error), None
        if isinstance(verdict, Refused):
            return REFUSED, verdict.reason, None
        return "", "", verdict.record if isinstance(verdict, Applied) else None

    async def _record(self, source: Source, record_id: str, data: dict[str, Any], now: float) -> Record:
        known = self._client.registry.get(source.workflow)
        if known is None:
            mould = Mould(await self._client.definition(source.workflow), now, None, 0)
            return mould.record(record_id, data, "the row")
        return first_record(known, record_id, known.taken(data, "the row"), now)


def id_text(value: Any) -> str:
    """An id as a cell holds it: a whole number is written without its point."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()


def _formula(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("=")
