"""The replica of a Sheets ledger: tables in memory that change only by applying journal entries, also our own."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from quire.ledger.columns import references
from quire.ledger.memory.tables import Tables
from quire.ledger.sheets.journal_rows import Entry, decoded, files_of, opened, rows_with_references
from quire.model.event import Event
from quire.model.receipt import Receipt
from quire.model.record import Record
from quire.model.side import Bucket, Control, Fanin, Setting, Signal, Worker
from quire.rules.draft import Draft

#: The types of a snapshot, in the order in which they are put back.
_TYPES: tuple[type[Any], ...] = (Record, Receipt, Signal, Fanin, Worker, Control, Bucket, Setting, Event)
#: Whose commit stands at a sequence number is remembered for this many.
REMEMBERED = 2000


class Replica:
    """All that the entries up to ``last`` say."""

    def __init__(self) -> None:
        self.tables = Tables()
        self.last: Entry | None = None
        #: The spreadsheet in which the journal began.
        self.book = ""
        #: Long values by their reference, and the ids of those that are files in Drive.
        self.blobs: dict[str, str] = {}
        self.files: dict[str, str] = {}
        #: The folder of these files; empty: there is none yet.
        self.home = ""
        #: Whose commit stands where: seq to commit id.
        self.commits: dict[int, str] = {}
        #: Tokens of entries that do not count, since Google accepted another one first. The head may stand on one.
        self.void: list[str] = []
        #: The row of each record in the tab ``state``, counted from 0; the header is row 0.
        self.places: dict[str, int] = {}
        self.woke = False
        #: Characters in the journal since the snapshot, and its length.
        self.written = 0
        self.snapshot_size = 0

    @property
    def seq(self) -> int:
        return 0 if self.last is None else self.last.seq

    def apply(self, entry: Entry, texts: Mapping[str, str]) -> frozenset[str]:
        """Take over one entry, which follows the last. Answers whose it is. ``texts``: of the files that it names."""
        size, outer = len(entry.body), entry
        entry = opened(entry, texts)
        texts = ChainMap(dict(texts), self.blobs)
        if entry.snapshot:
            self.tables, self.blobs, self.files, self.places = Tables(), {}, files_of(outer), {}
            self.void = []
        rows, others = decoded(entry.body, self.blobs, self.files, texts)
        tables = self.tables
        if entry.snapshot:
            self._begin(rows, others)
            self.written, self.snapshot_size = 0, size
        elif "restored" in others:
            for type_, given in rows.items():
                tables.put_rows(type_, given, others["epoch"])
        else:
            tables.apply(_draft(tables, rows, others.get("epoch", tables.epoch)))
            tables.all_settings |= {row.name: row for row in rows.get(Setting, ())}
        self.home = others.get("home", self.home)
        if "sealed" in others:
            tables.sealed = others["sealed"]
        if "forgotten" in others:
            self._forget(others["forgotten"])
        for record in rows.get(Record, ()):
            self.places.setdefault(record.record_id, len(self.places) + 1)
        self.woke |= bool(others.get("woke")) or entry.snapshot or "restored" in others
        self.written += size
        self.last = entry._replace(body="")
        if entry.commit_id:
            self.commits[entry.seq] = entry.commit_id
        if len(self.commits) > 2 * REMEMBERED:
            self.commits = dict(list(self.commits.items())[-REMEMBERED:])
        alive = () if entry.snapshot else (row.worker_id for row in rows.get(Worker, ()) if row.closed is None)
        return frozenset({entry.worker, *alive} - {""})

    def _begin(self, rows: dict[type[Any], list[Any]], others: dict[str, Any]) -> None:
        for type_ in _TYPES:
            self.tables.put_rows(type_, rows.get(type_, ()), others["epoch"])
        self.tables.last_seq = others["last_seq"]
        self.book = others["book"]
        self.commits |= {int(seq): commit_id for seq, commit_id in others["commits"]}

    def _forget(self, gone: Iterable[Sequence[Any]]) -> None:
        places = {(seq, hash_) for seq, hash_ in gone}
        self.tables.forget([event for event in self.tables.all_events if (event.seq, event.hash) in places])

    def snapshot(self, book: str) -> tuple[dict[str, list[Any]], dict[str, str], dict[str, str], dict[str, Any]]:
        """What an entry that says it all says: rows, long values, those of them that are files, and the rest."""
        tables = self.tables
        rows: dict[type[Any], Sequence[Any]] = {type_: tables.rows_of(type_) for type_ in _TYPES}
        # The order of their coming is the order of their rows in the tab ``state``.
        rows[Record] = list(tables.all_records.values())
        rows[Receipt] = list(tables.all_receipts.values())
        others = {
            "book": book,
            "epoch": tables.epoch,
            "sealed": tables.sealed,
            "last_seq": tables.last_seq,
            "commits": list(self.commits.items())[-200:],
        }
        if self.home:
            others["home"] = self.home
        short, blobs = rows_with_references(rows)
        lost = {reference for type_, given in rows.items() for reference in references(given, type_)}
        files = {reference: self.files[reference] for reference in (*blobs, *sorted(lost)) if reference in self.files}
        return short, {name: text for name, text in blobs.items() if name not in files}, files, others


def _draft(tables: Tables, rows: Mapping[type[Any], Any], epoch: int) -> Draft:
    """Return the after-images of one entry, as a draft that the tables take over."""
    draft = Draft(tables, 0.0)
    draft.epoch = epoch
    draft.records = {row.record_id: row for row in rows.get(Record, ())}
    draft.receipts = {row.key: row for row in rows.get(Receipt, ())}
    draft.fanins = {(row.parent_id, row.generation): row for row in rows.get(Fanin, ())}
    draft.signals = {row.signal_id: row for row in rows.get(Signal, ())}
    draft.workers = {row.worker_id: row for row in rows.get(Worker, ())}
    draft.buckets = {row.name: row for row in rows.get(Bucket, ())}
    draft.controls = {row.scope: row for row in rows.get(Control, ())}
    draft.events = rows.get(Event, [])
    return draft
