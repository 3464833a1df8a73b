"""How far the journal has been seen, kept where "Restore this version" does not reach: with the book's file in Drive.

A process that starts on a book that was restored to an older version cannot know it from the book. The mark
(generation, seq, token) in the file's properties tells it: a journal that ends before its mark is refused (protocol
11). These are the public properties: private ones show only to the application that wrote them. The mark is a lower
bound: it moves once a minute, and before the first effect of a process may act.

A process that finds the book behind what it has read, or damaged, ends. It first leaves how far it had seen the book,
under a name of its own that the mark of another process does not overwrite. So the process that is started in its place
knows it, too, and so does one that has begun meanwhile: it looks when it moves the mark.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import NamedTuple

from quire.google.drive import Drive
from quire.google.error import GoogleError
from quire.ledger.sheets.journal_rows import seq_of
from quire.ledger.sheets.replica import Replica

log = logging.getLogger(__name__)

_NAME = "quire_mark"
_SEEN = "quire_seen"


class Mark(NamedTuple):
    """An entry that somebody has seen in the journal."""

    generation: int
    seq: int
    #: Its token; empty: another one may have come first at its place.
    token: str
    commit_id: str = ""


class Marks(NamedTuple):
    """How far a book was. None: nobody has noted it, or Drive does not let this account look."""

    #: The mark that moves on.
    mark: Mark | None
    #: What was left by a process that found the book behind this, or damaged.
    seen: Mark | None

    @property
    def seq(self) -> int:
        return max((mark.seq for mark in self if mark is not None), default=0)

    def lost(self, replica: Replica) -> Mark | None:
        """An entry that was seen and is not in the journal any more, or stands there with other content."""
        return next((mark for mark in self if mark is not None and _is_lost(mark, replica)), None)


def _is_lost(mark: Mark, replica: Replica) -> bool:
    last = replica.last
    if mark.seq > replica.seq:
        return True
    if last is not None and mark.seq == last.seq and mark.token not in ("", last.token):
        return True
    return bool(mark.commit_id) and replica.commits.get(mark.seq, mark.commit_id) != mark.commit_id


async def read_marks(drive: Drive, spreadsheet_id: str) -> Marks:
    """Return how far this book was seen."""
    try:
        found = await drive.files_get(spreadsheet_id, fields="id,properties")
        properties = found.get("properties", {})
        return Marks(_parsed(properties.get(_NAME)), _parsed(properties.get(_SEEN)))
    except (GoogleError, ValueError) as error:
        log.warning("how far the book %s was is not known: %s", spreadsheet_id, error)
        return Marks(None, None)


def _parsed(text: str | None) -> Mark | None:
    if not text:
        return None
    generation, seq, token, *rest = text.split(":")
    return Mark(int(generation), int(seq), token, *rest)


async def write_mark(drive: Drive, spreadsheet_id: str, mark: Mark, *, anew: bool = False) -> bool:
    """Remember that the journal is at least so long; False: Drive does not let this account write it.

    ``anew``: the journal begins anew with this entry, and what was seen of the one before does not matter.
    """
    properties: dict[str, str | None] = {_NAME: f"{mark.generation}:{mark.seq}:{mark.token}"}
    if anew:
        properties[_SEEN] = None
    return await _write(drive, spreadsheet_id, properties)


async def leave_seen(drive: Drive, spreadsheet_id: str, seen: Mark) -> bool:
    """Leave for those who come next how far the journal was, when it is behind that or damaged."""
    before = (await read_marks(drive, spreadsheet_id)).seen
    if before is not None and before.seq >= seen.seq:
        return True
    return await _write(drive, spreadsheet_id, {_SEEN: ":".join(map(str, seen))})


async def leave_heads(drive: Drive, spreadsheet_id: str, heads: Iterable[str]) -> None:
    """Leave where the head stands, if nobody can read the journal: the book had accepted that entry."""
    if seqs := [seq for token in heads if (seq := seq_of(token)) is not None]:
        await leave_seen(drive, spreadsheet_id, Mark(0, max(seqs), ""))


async def _write(drive: Drive, spreadsheet_id: str, properties: dict[str, str | None]) -> bool:
    try:
        await drive.files_update(spreadsheet_id, {"properties": properties}, fields="id")
    except GoogleError as error:
        log.warning("how far the book %s is cannot be remembered: %s", spreadsheet_id, error)
        return False
    return True
