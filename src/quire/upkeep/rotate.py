"""Rotation: lines of ended records move from the ledger to the archive. Never dropped: archive, verify, then trim.

A segment is written; read back; compared line by line with the ledger; named in the ledger's setting ``archive``; and
only then exactly its lines are forgotten, but for the last line of each record: that one stays as the chain's link. A
rotation that is killed anywhere is finished by the next one. In the end what nothing names any more is deleted: long
values, and workers that were closed long ago.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple

from quire.client.client import Client
from quire.clock import SYSTEM, Clock, Span, iso, seconds
from quire.errors import LedgerError
from quire.folder.base import Folder, FolderError, Once
from quire.folder.segment import SETTING, Segment, follows, path_of, read_segment, segment_file
from quire.ledger.base import Ledger
from quire.model.codec import dump, parse
from quire.model.event import Event
from quire.model.side import Setting
from quire.upkeep.projecting import projector_of

#: A segment ends at so many lines.
SEGMENT_LINES = 20_000
#: What ended more recently stays: a worker may still repeat its last change.
LEAST_SECONDS = 3600.0
#: A worker that was closed is remembered at least so long: should it wake, it hears that it was closed.
WORKER_SECONDS = 7 * 86400.0
PAGE = 1000


class Archive(NamedTuple):
    """What the ledger knows of its archive."""

    #: How many segments there are.
    segments: int
    #: The SHA-256 of the last one.
    head: str
    #: The last segment's lines are not all forgotten yet.
    pending: bool
    folder_id: str
    version: int


class Rotated(NamedTuple):
    """What a rotation did."""

    segments: int
    lines: int
    #: Lines that left the ledger: all but the last of each record.
    forgotten: int
    #: What nothing named any more and was deleted.
    blobs: int = 0
    workers: int = 0


async def archive_of(ledger: Ledger) -> Archive:
    kept = await ledger.setting(SETTING)
    if kept is None:
        return Archive(0, "", False, "", 0)
    value = parse(kept.value)
    return Archive(int(value["segments"]), value["head"], bool(value["pending"]), value["folder_id"], kept.version)


async def rotate(
    source: Client | Ledger,
    folder: Folder,
    *,
    older_than: Span = "30d",
    clock: Clock = SYSTEM,
    segment_lines: int = SEGMENT_LINES,
) -> Rotated:
    """Move the logs of records that ended longer ago than this into the folder's archive.

    The folder is brought up to date first: what leaves the ledger is in the files before.
    """
    ledger = source.ledger if isinstance(source, Client) else source
    age = max(LEAST_SECONDS, seconds(older_than))
    archive = await archive_of(ledger)
    if archive.segments and archive.folder_id != folder.folder_id:
        raise FolderError(
            f"the archive of this ledger is in another folder ({archive.folder_id}); rotate into that one, so that "
            f"its segments stay together"
        )
    archive, forgotten = await _finish(ledger, folder, archive)
    await projector_of(ledger, folder, clock).catch_up()
    cutoff = await ledger.now() - age
    segments = total = 0
    async for lines in _segments(ledger, cutoff, segment_lines):
        archive, gone = await _archived(ledger, folder, archive, lines, iso(await ledger.now()))
        segments, total, forgotten = segments + 1, total + len(lines), forgotten + gone
    tidied = await ledger.tidy(await ledger.now() - max(age, WORKER_SECONDS))
    return Rotated(segments, total, forgotten, tidied.blobs, tidied.workers)


async def _segments(ledger: Ledger, cutoff: float, most: int) -> AsyncIterator[list[Event]]:
    """The lines that may go, a segment at a time; those of one record stay together."""
    lines: list[Event] = []
    after, looked_at = 0, set[str]()
    while page := await ledger.events(after=after, limit=PAGE):
        after = page[-1].seq
        fresh = {event.record_id: event for event in reversed(page) if event.record_id not in looked_at}
        looked_at |= fresh.keys()
        for record in await ledger.load(list(fresh)):
            first = fresh[record.record_id]
            if not record.ended or record.updated_at >= cutoff or record.open_intents or first.n == record.log_seq:
                continue
            own = await whole_log(ledger, record.record_id)
            if own[-1].n != record.log_seq or own[-1].hash != record.log_hash:
                continue  # it goes on at this very moment
            lines += own[1:] if own[0].n > 1 else own  # the first is the link to what was archived before
            if len(lines) >= most:
                yield lines
                lines = []
    if lines:
        yield lines


async def whole_log(ledger: Ledger, record_id: str) -> list[Event]:
    """All lines of one record that the ledger has."""
    return (await ledger.logs([record_id]))[record_id]


async def _archived(
    ledger: Ledger, folder: Folder, archive: Archive, lines: Sequence[Event], made_at: str
) -> tuple[Archive, int]:
    number = archive.segments + 1
    content = segment_file(number, archive.head, lines, made_at)
    await folder.write([Once(path_of(number), content)])
    return await _named(ledger, folder, archive)


async def _named(ledger: Ledger, folder: Folder, archive: Archive) -> tuple[Archive, int]:
    """The next segment is in the folder: read it back, compare it with the ledger, name it there, then trim."""
    number = archive.segments + 1
    [content] = await folder.read(path_of(number))
    segment = read_segment(number, content)
    if segment.previous != archive.head:
        raise FolderError(f"{path_of(number)!r} does not follow from the segment before it; another rotation wrote it?")
    await _compare(ledger, segment)
    value = {"segments": number, "head": segment.sha256, "pending": True, "folder_id": folder.folder_id}
    if not await ledger.keep(Setting(SETTING, dump(value), archive.version)):
        raise LedgerError("another rotation is under way; nothing was removed")
    named = Archive(number, segment.sha256, True, folder.folder_id, archive.version + 1)
    return await _trim(ledger, named, segment)


async def _compare(ledger: Ledger, segment: Segment) -> None:
    for record_id, lines in segment.records():
        there = {event.n: event for event in await whole_log(ledger, record_id)}
        before = there.get(lines[0].n - 1)
        wrong = next((event for event in lines if there.get(event.n) != event), None) or follows(lines, before)
        if wrong is not None:
            raise FolderError(
                f"{path_of(segment.number)!r} is not what the ledger has: line {wrong.n} of {record_id!r} differs; "
                f"nothing was removed. Move that file away and rotate again"
            )


async def _trim(ledger: Ledger, archive: Archive, segment: Segment) -> tuple[Archive, int]:
    """Forget exactly the lines of this segment, but for the last of each record, and say that it is done."""
    gone = [event for _, lines in segment.records() for event in lines[:-1]]
    # The line that was the link until now is in an earlier segment.
    for _, lines in segment.records():
        if lines[0].n > 1:
            earlier = await ledger.events(record_id=lines[0].record_id, limit=1)
            gone += [event for event in earlier if event.n == lines[0].n - 1]
    count = 0
    for place in range(0, len(gone), PAGE):
        count += await ledger.forget(gone[place : place + PAGE])
    value = {"segments": archive.segments, "head": archive.head, "pending": False, "folder_id": archive.folder_id}
    await ledger.keep(Setting(SETTING, dump(value), archive.version))
    return archive._replace(pending=False, version=archive.version + 1), count


async def _finish(ledger: Ledger, folder: Folder, archive: Archive) -> tuple[Archive, int]:
    """What a killed rotation left: a segment that is named but not trimmed, or one that is not named yet."""
    forgotten = 0
    if archive.pending:
        [content] = await folder.read(path_of(archive.segments))
        segment = read_segment(archive.segments, content)
        if hashlib.sha256(content or b"").hexdigest() != archive.head:
            raise FolderError(f"{path_of(archive.segments)!r} was altered since it was written; nothing is removed")
        archive, forgotten = await _trim(ledger, archive, segment)
    [content] = await folder.read(path_of(archive.segments + 1))
    if content is not None:
        archive, gone = await _named(ledger, folder, archive)
        forgotten += gone
    return archive, forgotten
