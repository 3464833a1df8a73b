"""Verification: ledger, hash chains, archive and folder are compared; the first difference is named first.

The ledger is judged by itself: each record's lines are chained by hash, the record holds the chain's end, and receipts
are signed. The archive goes before the ledger's lines: each segment is bound to the one before, and the ledger holds
the last one's hash. The folder is judged by the ledger: a file is as the ledger says, missing, altered or extra. A
receipt file that was altered or forged is named here, and nothing ever believes it. Verification only reads.
"""

from __future__ import annotations

import json
from collections import ChainMap
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from quire.client.client import Client
from quire.folder import lock, receipt, runlog, state, table
from quire.folder.base import Folder, FolderError
from quire.folder.config import secret_in
from quire.folder.cursor import Place, read_place, setting_name
from quire.folder.layout import WORKFLOWS, Layout
from quire.folder.segment import follows, path_of, read_segment
from quire.ledger import engine
from quire.ledger.base import Ledger
from quire.model.change import Query
from quire.model.event import Event
from quire.model.receipt import Keyring, Kind, Receipt
from quire.model.record import Record
from quire.rules.lines import LineKind
from quire.upkeep.rotate import archive_of

PAGE = 500


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not as it should be."""

    #: archive, record, chain, receipt, state, log, lock, table, config, missing, extra
    kind: str
    #: The record or the file.
    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.where}: {self.what}"


@dataclass(slots=True)
class Verified:
    """What verification found. ``ok`` only if nothing differs."""

    records: int = 0
    lines: int = 0
    receipts: int = 0
    files: int = 0
    #: Lines that the folder does not show yet: its projector lags. Their records' files are not judged.
    behind: int = 0
    differences: list[Difference] = field(default_factory=list)
    #: There are more than are listed.
    more: bool = False

    @property
    def ok(self) -> bool:
        return not self.differences

    @property
    def first(self) -> Difference | None:
        return self.differences[0] if self.differences else None

    def as_dict(self) -> dict[str, Any]:
        """For machines."""
        return {
            "ok": self.ok,
            "records": self.records,
            "lines": self.lines,
            "receipts": self.receipts,
            "files": self.files,
            "behind": self.behind,
            "differences": [{"kind": d.kind, "where": d.where, "what": d.what} for d in self.differences],
            "more": self.more,
        }


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


class _Enough(Exception):
    """As many differences as were asked for are found."""


async def verify(
    source: Client | Ledger, folder: Folder | None = None, *, record_id: str = "", limit: int = 100
) -> Verified:
    """Compare everything, or one record. With a folder, its files and its archive too. At most ``limit`` are named."""
    ledger = source.ledger if isinstance(source, Client) else source
    keyring = await engine.shared_keyring(ledger) if await ledger.setting(engine.KEYRING) is not None else None
    verification = _Verification(ledger, folder, keyring, limit)
    try:
        await verification.all(record_id)
    except _Enough:
        verification.found.more = True
    return verification.found


class _Verification:
    def __init__(self, ledger: Ledger, folder: Folder | None, keyring: Keyring | None, limit: int) -> None:
        self.ledger = ledger
        self.folder = folder
        self.keyring = keyring
        self.limit = limit
        self.found = Verified()
        #: Of each record with archived lines, the last of them.
        self.archived: dict[str, Event] = {}
        #: Under which run each effect's receipt came, by key, as archived lines tell.
        self.run_ids: dict[str, str | None] = {}
        #: The ledger has an archive; its last segment is not trimmed off yet.
        self.rotated = self.trimming = False
        #: Records of which the files, and the table, do not show the last lines yet.
        self.late: set[str] = set()
        self.late_rows: set[str] = set()
        self.expected: set[str] = set()
        #: Files of the records that are looked at now, read beforehand.
        self.read: dict[str, bytes | None] = {}
        self.layouts: dict[str, Layout] = {}

    def differs(self, kind: str, where: str, what: str) -> None:
        self.found.differences.append(Difference(kind, where, what))
        if len(self.found.differences) >= self.limit:
            raise _Enough

    async def all(self, record_id: str) -> None:
        await self._behind()
        await self._archive()
        tables: dict[str, dict[str, Record]] = {}
        async for records in self._records(record_id):
            receipts = await self._receipts(records)
            logs = await self.ledger.logs([record.record_id for record in records])
            await self._ahead(records, receipts, logs)
            for record in records:
                await self._record(record, receipts.get(record.record_id, []), logs[record.record_id])
                tables.setdefault(record.workflow, {})[record.record_id] = record
        if self.folder is not None and not record_id:
            for workflow, rows in tables.items():
                await self._table(workflow, rows)
            await self._rest(tables)

    async def _records(self, record_id: str) -> AsyncIterator[list[Record]]:
        if record_id:
            yield await self.ledger.load([record_id])
            return
        after = ""
        while records := await self.ledger.find(Query(after=after, limit=PAGE)):
            yield records
            after = records[-1].record_id

    async def _receipts(self, records: Sequence[Record]) -> dict[str, list[Receipt]]:
        found: dict[str, list[Receipt]] = {}
        for kept in await self.ledger.receipts(record_ids=[record.record_id for record in records]):
            found.setdefault(kept.record_id, []).append(kept)
        return found

    async def _behind(self) -> None:
        if self.folder is None:
            return
        kept = await self.ledger.setting(setting_name(self.folder.folder_id))
        place = read_place(kept.value) if kept is not None else Place()
        after = min(place.seq, place.table_seq)
        while page := await self.ledger.events(after=after, limit=5000):
            after = page[-1].seq
            late = [event.record_id for event in page if event.seq > place.seq]
            self.found.behind += len(late)
            self.late.update(late)
            self.late_rows |= {event.record_id for event in page if event.seq > place.table_seq}

    # -- the ledger --------------------------------------------------------------------------------------------

    async def _archive(self) -> None:
        """The segments in order: bound to each other, and each record's lines following from those before."""
        archive = await archive_of(self.ledger)
        self.rotated, self.trimming = archive.segments > 0, archive.pending
        if not archive.segments or self.folder is None:
            return
        if archive.folder_id != self.folder.folder_id:
            self.differs("archive", self.folder.url, f"the archive is in another folder, {archive.folder_id}")
            return
        previous = ""
        for number in range(1, archive.segments + 1):
            where = path_of(number)
            self.expected.add(where)
            try:
                [content] = await self.folder.read(where)
                segment = read_segment(number, content)
            except FolderError as error:
                self.differs("archive", where, str(error))
                continue
            if segment.previous != previous:
                self.differs("archive", where, "it does not follow from the segment before it")
            previous = segment.sha256
            await self._segment(where, dict(segment.records()))
        if previous != archive.head:
            self.differs("archive", path_of(archive.segments), "it is not the segment that the ledger remembers")

    async def _segment(self, where: str, logs: Mapping[str, list[Event]]) -> None:
        for record_id, lines in logs.items():
            wrong = follows(lines, self.archived.get(record_id))
            if wrong is not None:
                self.differs("archive", where, f"line {wrong.n} of {record_id!r} does not follow from the one before")
            self.archived[record_id] = lines[-1]
            self.run_ids |= _run_ids(lines)
            self.found.lines += len(lines)
        ids = list(logs)
        for place in range(0, len(ids), PAGE):
            records = await self.ledger.load(ids[place : place + PAGE])
            receipts = await self._receipts(records)
            for record in records:
                await self._logs(record, receipts.get(record.record_id, []), logs[record.record_id])

    async def _record(self, record: Record, receipts: Sequence[Receipt], log: list[Event]) -> None:
        self.found.records += 1
        for name in ("data", "entry", "result", "waits"):
            text = getattr(record, name)
            if text and not _is_json(text):
                self.differs("record", record.record_id, f"its {name} is not JSON: {text[:60]!r}")
        lines = await self._chain(record, log)
        for kept in receipts:
            if receipt.has_file(kept):
                self.found.receipts += 1
                if self.keyring is None or not self.keyring.verifies(kept):
                    name = f"{kept.name!r} of {record.record_id!r}"
                    self.differs("receipt", record.record_id, f"the ledger's receipt of {name} does not verify")
        if self.folder is None:
            return
        late = record.record_id in self.late
        self._expect(record, receipts, lines)
        if not late:
            await self._state(record)
            await self._receipt_files(record, receipts, lines)
            await self._locks(record, receipts)
            await self._logs(record, receipts, lines)

    async def _chain(self, record: Record, lines: list[Event]) -> list[Event]:
        """Return the record's lines in the ledger; one that does not follow, also from the archived ones, is named."""
        where = record.record_id
        before = self.archived.get(where)
        if before is not None and self.trimming:
            lines = [event for event in lines if event.n >= before.n]  # the rest is archived, and about to be removed
        self.found.lines += len(lines) - (before is not None)
        if before is None and lines and lines[0].n > 1:
            if lines[0].kind == LineKind.FORGOTTEN or (self.rotated and self.folder is None):
                before = lines[0]  # what was before it is in the archive: that is for the folder to show
            else:
                self.differs(
                    "chain", where, f"its log begins at line {lines[0].n}; lines 1 to {lines[0].n - 1} are gone"
                )
                return lines
        wrong = follows(lines, before)
        if wrong is not None:
            what = f"line {wrong.n} ({wrong.kind!r}, seq {wrong.seq}) does not follow from the one before it"
            self.differs("chain", where, what)
        end = lines[-1] if lines else None
        if end is None or (end.n, end.hash) != (record.log_seq, record.log_hash):
            newest = next(iter(await self.ledger.load([where])), record)
            if end is not None and newest.log_seq > record.log_seq:
                return lines  # it has moved on between the two looks
            had = f"ends at line {end.n}" if end is not None else "is empty"
            self.differs("chain", where, f"its log {had}, but the record's chain ends at line {record.log_seq}")
        return lines

    # -- the folder --------------------------------------------------------------------------------------------

    def _layout(self, workflow: str) -> Layout:
        assert self.folder is not None
        if workflow not in self.layouts:
            self.layouts[workflow] = self.folder.layout(workflow)
        return self.layouts[workflow]

    def _expect(self, record: Record, receipts: Iterable[Receipt], lines: Sequence[Event]) -> None:
        """Files that may be there because of this record: whatever else is there is extra."""
        layout = self._layout(record.workflow)
        self.expected |= {layout.readme, layout.table, layout.state(record.record_id)}
        for kept in receipts:
            if kept.kind in receipt.KINDS and (kept.open or record.record_id in self.late):
                self.expected.add(layout.lock(kept))
        for run in runlog.split(lines, record)[0]:
            self.expected.add(layout.log(run.run_id, run.started_at))

    async def _ahead(
        self, records: Sequence[Record], receipts: Mapping[str, list[Receipt]], logs: Mapping[str, list[Event]]
    ) -> None:
        """Read the files of a page of records at once: one by one, most of the time is waiting."""
        if self.folder is None:
            return
        paths: dict[str, None] = {}
        for record in records:
            if record.record_id in self.late:
                continue
            layout = self._layout(record.workflow)
            paths[layout.state(record.record_id)] = None
            for run in runlog.split(logs[record.record_id], record)[0]:
                paths[layout.log(run.run_id, run.started_at)] = None
            for kept in receipts.get(record.record_id, ()):
                if receipt.has_file(kept):
                    paths[layout.receipt(kept.record_id, kept.step)] = None
                    paths[layout.receipt_beside(kept)] = None
        self.read = dict(zip(paths, await self.folder.read(*paths), strict=True))

    async def _read(self, path: str) -> bytes | None:
        assert self.folder is not None
        if path in self.read:
            content = self.read[path]
        else:
            [content] = await self.folder.read(path)
        self.found.files += content is not None
        return content

    async def _state(self, record: Record) -> None:
        path = self._layout(record.workflow).state(record.record_id)
        content = await self._read(path)
        if content is None:
            self.differs("missing", path, f"the state of {record.record_id!r} at version {record.version} is not there")
            return
        if content == state.state_file(record):
            return
        shown, right = _parsed(content), _parsed(state.state_file(record)) or {}
        if shown is not None and _swept_later(shown, right):
            return
        self.differs("state", path, _first_difference(shown, right))

    async def _receipt_files(self, record: Record, receipts: Iterable[Receipt], lines: Sequence[Event]) -> None:
        layout = self._layout(record.workflow)
        run_ids = ChainMap(_run_ids(lines), self.run_ids)
        for kept in receipts:
            if not receipt.has_file(kept):
                continue
            right = json.loads(receipt.receipt_file(kept, record.workflow, run_ids.get(kept.key)))
            places = (layout.receipt(kept.record_id, kept.step), layout.receipt_beside(kept))
            found = False
            for path in places:
                content = await self._read(path)
                if content is None:
                    continue
                own = (kept.key, kept.nonce)
                if receipt.key_in(content) != own and (path != places[0] or self._of_another(content, receipts, own)):
                    continue
                found = True
                self.expected.add(path)
                shown = _parsed(content)
                loose = {"run_id"} if shown is None or shown.get("run_id") is None or kept.key not in run_ids else set()
                if kept.stage != "done":
                    loose |= {"done_at", "published_at"}  # undoing it has moved the ledger's
                if _without(shown, loose) != _without(right, loose):
                    self.differs("receipt", path, f"it was altered or forged: {_first_difference(shown, right, loose)}")
            if not found:
                self.differs("missing", places[0], f"the receipt of {kept.name!r} of {record.record_id!r} is not there")

    @staticmethod
    def _of_another(content: bytes, receipts: Iterable[Receipt], own: tuple[str, str]) -> bool:
        """The plain name belongs to another receipt of this record, or of one whose name reads the same."""
        there = receipt.key_in(content)
        if there is None:
            return False
        if any((kept.key, kept.nonce) == there for kept in receipts):
            return True
        shown = _parsed(content) or {}
        return bool(own[0] != there[0] and shown.get("record_id") not in {kept.record_id for kept in receipts})

    async def _locks(self, record: Record, receipts: Iterable[Receipt]) -> None:
        layout = self._layout(record.workflow)
        for kept in receipts:
            if not kept.open or kept.kind not in (Kind.ONCE, Kind.UNDO):
                continue
            path = layout.lock(kept)
            content = await self._read(path)
            if content is None:
                self.differs(
                    "missing", path, f"{kept.name!r} of {record.record_id!r} is under way, but has no lock file"
                )
                continue
            loose = {"run_id", "expires_at"}
            shown, right = _parsed(content), _parsed(lock.lock_file(kept, None)) or {}
            if _without(shown, loose) != _without(right, loose):
                self.differs("lock", path, _first_difference(shown, right, loose))

    async def _logs(self, record: Record, receipts: Sequence[Receipt], lines: Sequence[Event]) -> None:
        layout = self._layout(record.workflow)
        runs, _ = runlog.split(lines, record)
        for run in runs:
            path = layout.log(run.run_id, run.started_at)
            self.expected.add(path)
            content = await self._read(path)
            if content is None:
                self.differs("missing", path, f"the log of {run.run_id!r} of {record.record_id!r} is not there")
                continue
            loose = {"inputs", "outputs"}
            shown, right = _parsed(content), runlog.fields(run, record, receipts)
            if _without(shown, loose) != _without(json.loads(json.dumps(right)), loose):
                self.differs("log", path, _first_difference(shown, json.loads(json.dumps(right)), loose))

    async def _table(self, workflow: str, records: Mapping[str, Record]) -> None:
        layout = self._layout(workflow)
        content = await self._read(layout.table)
        if content is None:
            if any(record_id not in self.late_rows for record_id in records):
                self.differs("missing", layout.table, "the table is not there")
            return
        rows = {row["record_id"]: row for row in table.rows_of(content) if row.get("record_id") is not None}
        for record in records.values():
            if record.record_id in self.late_rows:
                continue
            file = layout.state(record.record_id).rpartition("/")[2]
            old = state.status_before
            written = [
                state.row(record, file),
                state.row(record, file, text=state.safe_before, status=old),
                state.row(record, file, status=old),
            ]
            right, before, by_status = table.rows_of(table.table(written))
            shown = rows.get(right["record_id"])
            if (
                shown is None
                and (older := rows.get(before["record_id"])) is not None
                and older["file"] == before["file"]
            ):
                shown = older
            if shown is None:
                self.differs("table", layout.table, f"{record.record_id!r} is missing in it")
            elif not any(shown == each or _swept_later(shown, each) for each in (right, before, by_status)):
                what = f"{record.record_id!r} differs: {_first_difference(shown, right)}"
                self.differs("table", layout.table, what)
        known = {guarded(record_id) for record_id in records for guarded in (state.safe, state.safe_before)}
        for record_id in rows:
            if record_id not in known and not await self.ledger.load([record_id]):
                self.differs("table", layout.table, f"it has a line for {record_id!r}, which is in no ledger")

    async def _rest(self, workflows: Iterable[str]) -> None:
        """Files that nothing in the ledger stands behind, and secrets where everybody looks."""
        assert self.folder is not None
        bases = {self._layout(workflow).base for workflow in workflows}
        for path in await self.folder.paths(WORKFLOWS):
            parts = path.split("/")
            base, part = "/".join(parts[:2]), parts[2] if len(parts) > 3 else ""
            if part == "config":
                content = await self._read(path)
                if content is not None and (where := secret_in(path, content)) is not None:
                    self.differs("config", path, f"it holds what looks like a secret, at {where}")
            elif path in self.expected or base not in bases or self._free(parts):
                continue
            else:
                await self._extra(path, part)

    @staticmethod
    def _free(parts: Sequence[str]) -> bool:
        """People's own: artifacts that steps made, and whatever lies beside the engine's directories."""
        if len(parts) < 4 or parts[2] not in ("state", "artifacts", "logs", "locks"):
            return parts[-1] != "README.md" and len(parts) < 4
        return parts[2] == "artifacts" and (len(parts) > 4 or not parts[3].startswith("receipt_"))

    async def _extra(self, path: str, part: str) -> None:
        content = await self._read(path)
        shown = _parsed(content or b"") or {}
        if str(shown.get("record_id", "")) in self.late:
            return
        if part == "artifacts":
            what = "no receipt in the ledger stands behind it: it is forged, or of another ledger; nothing believes it"
            self.differs("receipt", path, what)
        elif part == "locks":
            self.differs("extra", path, "no act is under way for it")
        else:
            self.differs("extra", path, "nothing in the ledger stands behind it")


def _run_ids(lines: Iterable[Event]) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for event in lines:
        if event.kind == LineKind.EFFECT_DONE:
            found[str(json.loads(event.body).get("key"))] = event.run_id
    return found


def _parsed(content: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(content)
    except (ValueError, UnicodeError):
        return None
    return value if isinstance(value, dict) else None


def _without(fields: Mapping[str, Any] | None, loose: Collection[str]) -> dict[str, Any] | None:
    return None if fields is None else {name: value for name, value in fields.items() if name not in loose}


def _swept_later(shown: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    """A halt has cancelled the record by definition, and the sweep that writes it down has not come yet."""
    names = {name for name in right if shown.get(name) != right[name]}
    return right.get("status") == "CANCELLED" and names <= {"status", "due_at"} and shown.keys() == right.keys()


def _first_difference(shown: Mapping[str, Any] | None, right: Mapping[str, Any], loose: Collection[str] = ()) -> str:
    if shown is None:
        return "it is not a JSON object any more"
    for name, value in right.items():
        if name not in loose and shown.get(name) != value:
            return f"{name!r} is {_short(shown.get(name))}, the ledger says {_short(value)}"
    added = next((name for name in shown if name not in right and name not in loose), None)
    return f"{added!r} was added" if added is not None else "its text was altered"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "…'"
