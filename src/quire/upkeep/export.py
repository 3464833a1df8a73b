"""Export: the records as CSV, as a workbook, or as an evidence pack."""

from __future__ import annotations

import csv
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from quire.client.client import Client
from quire.clock import iso
from quire.errors import InputError, did_you_mean
from quire.folder.base import Folder
from quire.folder.layout import Layout
from quire.folder.names import Names
from quire.folder.state import COLUMNS, row, safe
from quire.ledger.base import Ledger
from quire.model.change import Query
from quire.model.codec import parse
from quire.model.event import Event
from quire.model.record import Record, Status
from quire.model.row import replace
from quire.upkeep.evidence import Pack, all_events, all_receipts, source_of, zipped
from quire.upkeep.workbook import Workbook

FORMS = ("csv", "xlsx", "evidence")
PAGE = 500

#: The state table, then what else a record has.
RECORD_COLUMNS = (*COLUMNS[:-1], "workflow", "priority", "parent_id", "data", "result")
EVENT_COLUMNS = ("seq", "record_id", "n", "version", "at", "kind", "body", "run_id", "hash")
RECEIPT_COLUMNS = ("record_id", "step", "visit", "name", "kind", "stage", "value", "at", "done_at", "key", "signature")


class Exported(NamedTuple):
    path: Path
    form: str
    records: int
    #: SHA-256 of an evidence pack's manifest: note it elsewhere, and nobody can exchange the pack unseen.
    fingerprint: str = ""


async def export(
    source: Client | Ledger,
    to: str | Path,
    *,
    form: str = "",
    workflow: str = "",
    status: Sequence[Status | str] = (),
    folder: Folder | None = None,
) -> Exported:
    """Write the records to a file, or all evidence to a zip or a directory.

    ``form``: csv, xlsx or evidence; without it the file's ending says it (``.zip`` or a directory: evidence).
    ``folder``: where the archive is, for a ledger whose log was rotated.
    """
    ledger = source.ledger if isinstance(source, Client) else source
    target = Path(to)
    form = form or _form_of(target)
    if form not in FORMS:
        raise InputError(f"{form!r} is not a form of export{did_you_mean(form, FORMS)}")
    query = Query(workflow=workflow, status=tuple(map(Status, status)), limit=PAGE)
    try:
        return await _exported(ledger, target, form, query, folder)
    except OSError as error:
        raise InputError(f"{str(target)!r} cannot be written: {error.strerror or error}") from error


async def _exported(ledger: Ledger, target: Path, form: str, query: Query, folder: Folder | None) -> Exported:
    target.parent.mkdir(parents=True, exist_ok=True)
    if form == "evidence":
        return await _evidence(ledger, target, query, folder)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".quire-") as directory:
        part = Path(directory) / "part"
        if form == "csv":
            count = await _csv(part, ledger, query)
        else:
            count = await _workbook(part, ledger, query, folder)
        part.replace(target)
    return Exported(target, form, count)


def _form_of(target: Path) -> str:
    ending = target.suffix.lower()
    return "evidence" if ending in (".zip", "") else ending.removeprefix(".")


async def _records(ledger: Ledger, query: Query) -> AsyncIterator[Record]:
    after = ""
    while records := await ledger.find(replace(query, after=after)):
        for record in records:
            yield record
        after = records[-1].record_id


def _cells(record: Record) -> list[Any]:
    file = Layout(record.workflow, Names()).state(record.record_id)
    more = [safe(record.parent_id or ""), safe(record.data), safe(record.result or "")]
    return [*row(record, file)[:-1], record.workflow, record.priority, *more]


def _opened(path: Path) -> TextIO:
    return open(path, "w", encoding="utf-8", newline="")


async def _csv(path: Path, ledger: Ledger, query: Query) -> int:
    count = 0
    with _opened(path) as file:
        writer = csv.writer(file, lineterminator="\r\n")
        writer.writerow(RECORD_COLUMNS)
        async for record in _records(ledger, query):
            writer.writerow(_cells(record))
            count += 1
    return count


async def _workbook(path: Path, ledger: Ledger, query: Query, folder: Folder | None, pack: Pack | None = None) -> int:
    """Return the three sheets, and with them the three files of a pack: of the same records, up to the same lines."""
    ends: dict[str, int] = {}
    acts: set[str] = set()

    async def records() -> AsyncIterator[Record]:
        async for record in _records(ledger, query):
            ends[record.record_id] = record.log_seq
            yield record

    async def events() -> AsyncIterator[Event]:
        async for event in all_events(ledger, folder, ends):
            if event.kind.startswith("effect."):
                acts.add(str(parse(event.body).get("key")))
            yield event

    book = Workbook(path)
    try:
        table = records() if pack is None else pack.lines("records.jsonl", records())
        count = await book.sheet("state_table", RECORD_COLUMNS, _table_rows(table))
        lines = events() if pack is None else pack.lines("events.jsonl", events())
        await book.sheet("log", EVENT_COLUMNS, _rows(lines, EVENT_COLUMNS))
        kept = all_receipts(ledger, ends, acts)
        kept = kept if pack is None else pack.lines("receipts.jsonl", kept)
        await book.sheet("receipts", RECEIPT_COLUMNS, _rows(kept, RECEIPT_COLUMNS))
    finally:
        book.close()
    return count


async def _table_rows(records: AsyncIterator[Record]) -> AsyncIterator[list[Any]]:
    async for record in records:
        cells = row(record, "", text=str)[:-1]  # text stays text in a workbook
        yield [*cells, record.workflow, record.priority, record.parent_id, record.data, record.result]


async def _rows(items: AsyncIterator[Any], columns: Iterable[str]) -> AsyncIterator[list[Any]]:
    async for item in items:
        yield [
            iso(value) if name in ("at", "done_at") else value
            for name, value in ((name, getattr(item, name)) for name in columns)
        ]


async def _evidence(ledger: Ledger, target: Path, query: Query, folder: Folder | None) -> Exported:
    _check_free(target)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".quire-") as directory:
        pack = Pack(Path(directory) / "pack")
        pack.path.mkdir()
        await _workbook(pack.path / "evidence.xlsx", ledger, query, folder, pack)
        fingerprint = pack.finish(source_of(ledger.url), iso(await ledger.now()))
        if target.suffix.lower() == ".zip":
            zipped(pack.path, target)
        else:
            shutil.copytree(pack.path, target, dirs_exist_ok=True)
    return Exported(target, "evidence", pack.counts["records"], fingerprint)


def _check_free(target: Path) -> None:
    if target.is_file() or (target.is_dir() and any(target.iterdir())):
        raise InputError(f"{str(target)!r} is there already; an evidence pack is written once")
