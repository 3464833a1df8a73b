"""The evidence pack: everything about the records in files that a stranger can open and check without Quire."""

from __future__ import annotations

import hashlib
import json
import shutil
import zipfile
from collections.abc import AsyncIterator, Container, Mapping
from pathlib import Path
from typing import Final, TextIO, TypeVar
from urllib.parse import urlsplit

from quire.errors import InputError
from quire.folder.base import Folder
from quire.folder.segment import path_of, read_segment
from quire.folder.text import compact
from quire.ledger.base import Ledger
from quire.model.event import Event
from quire.model.receipt import Receipt
from quire.model.record import Record
from quire.model.row import as_dict
from quire.upkeep import check
from quire.upkeep.rotate import archive_of

T = TypeVar("T", Record, Event, Receipt)

FORMAT: Final = 1
PAGE: Final = 500

RULE: Final = (
    "events.jsonl holds one line per event. The lines of one record are numbered by n = 1, 2, 3, … without a gap. "
    "The hash of a line is the SHA-256, in hex, of these seven texts in UTF-8, joined by single line feeds: the hash "
    "of the record's line before (empty for n = 1), record_id, n, version, at (seconds since 1970 as a floating point "
    "number in its shortest form, such as 1767225600.25 or 1767225600.0), kind, body (the JSON text exactly as it "
    "stands in the string). Each record in records.jsonl holds log_seq, the number of its last line, and log_hash, the "
    "hash of it. So a line that was changed, dropped, added or moved is found by computing the hashes again. The "
    "signature of a receipt of kind once or undo is the HMAC-SHA-256, in hex, with the owner's key of that key_id, "
    "over these eleven texts, each preceded by its length in characters and a colon: key, record_id, step, visit, "
    "name, kind, fn, args_hash, the SHA-256 in hex of value, nonce, key_id; and, if act_key is not empty, over "
    "act_key, prepared and actor after them. "
    "files lists the SHA-256 of every file; the fingerprint of the pack is the SHA-256 of this manifest."
)


class Pack:
    """A directory that is being filled."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.counts: dict[str, int] = {}

    async def lines(self, name: str, rows: AsyncIterator[T]) -> AsyncIterator[T]:
        """Write these rows, one a line, and hand them on."""
        count = 0
        with self._opened(name) as file:
            async for row in rows:
                file.write(compact(as_dict(row)) + "\n")
                count += 1
                yield row
        self.counts[name.partition(".")[0]] = count

    def _opened(self, name: str) -> TextIO:
        return open(self.path / name, "w", encoding="utf-8", errors="surrogatepass", newline="\n")

    def finish(self, source: str, made_at: str) -> str:
        """Write the checking program and the manifest; answer the fingerprint."""
        shutil.copyfile(check.__file__, self.path / "check.py")
        (self.path / "README.txt").write_text(_README, encoding="utf-8")
        names = sorted(path.name for path in self.path.iterdir())
        files = []
        for name in names:
            content = (self.path / name).read_bytes()
            files.append({"name": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()})
        manifest = {
            "format": FORMAT,
            "made_at": made_at,
            "ledger": source,
            "counts": self.counts,
            "rule": RULE,
            "files": files,
        }
        text = json.dumps(manifest, ensure_ascii=False, indent=2) + "\n"
        (self.path / "manifest.json").write_text(text, encoding="utf-8")
        return hashlib.sha256(text.encode()).hexdigest()


async def all_events(ledger: Ledger, folder: Folder | None, ends: Mapping[str, int]) -> AsyncIterator[Event]:
    """Yield the lines of these records, up to these, from the archive too; in order within each record."""
    archive = await archive_of(ledger)
    if archive.segments and folder is None:
        raise InputError("the first lines of some records are in the archive; give the folder that it is in")
    done: dict[str, int] = {}

    def fits(event: Event) -> bool:
        if not done.get(event.record_id, 0) < event.n <= ends.get(event.record_id, 0):
            return False
        done[event.record_id] = event.n
        return True

    for number in range(1, archive.segments + 1):
        assert folder is not None
        [content] = await folder.read(path_of(number))
        for event in filter(fits, read_segment(number, content).lines):
            yield event
    after = 0
    while page := await ledger.events(after=after, limit=5000):
        after = page[-1].seq
        for event in filter(fits, page):
            yield event


async def all_receipts(ledger: Ledger, ends: Mapping[str, int], acts: Container[str]) -> AsyncIterator[Receipt]:
    """The receipts of these records; of a record that went on meanwhile, those that its lines (``acts``) tell of."""
    ids = list(ends)
    for place in range(0, len(ids), PAGE):
        part = ids[place : place + PAGE]
        receipts = await ledger.receipts(record_ids=part)
        still = {record.record_id for record in await ledger.load(part) if record.log_seq == ends[record.record_id]}
        for receipt in receipts:
            if receipt.record_id in still or receipt.key in acts:
                yield receipt


def source_of(url: str) -> str:
    """Return the ledger's address without who and with what password."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}{parts.path}" if parts.hostname else f"{parts.scheme}:"


def zipped(directory: Path, target: Path) -> None:
    """The directory as one file, the manifest first."""
    names = sorted((path.name for path in directory.iterdir()), key=lambda name: (name != "manifest.json", name))
    part = directory.parent / "part.zip"
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.write(directory / name, f"{target.stem}/{name}")
    part.replace(target)


_README: Final = """Evidence: records, their logs and their receipts

manifest.json    what is in this pack, with the SHA-256 of each file and the rule of the hash chain in words
records.jsonl    every record as it is, one a line
events.jsonl     every line of every record's log, chained by hash
receipts.jsonl   every receipt and answer
evidence.xlsx    the same as a workbook: state table, log, receipts
check.py         checks all of it; needs Python 3.8 or newer and nothing else

    python3 check.py

prints what is wrong, naming the file and line, and exits with 1; or says that all is in order, and exits with 0.
"""
