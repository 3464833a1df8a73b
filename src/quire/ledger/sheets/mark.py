"""How far the journal has been seen, kept where "Restore this version" does not reach: with the book's file in Drive.

A process that starts on a book that was restored to an older version cannot know it from the book. The mark
(generation, seq, token) in the file's properties tells it: a journal that ends before its mark is refused (protocol
11). These are the public properties: private ones show only to the application that wrote them. The mark is a lower
bound: it moves once a minute, and before the first effect of a process may act.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from quire.google.drive import Drive
from quire.google.error import GoogleError

log = logging.getLogger(__name__)

_NAME = "quire_mark"


class Mark(NamedTuple):
    generation: int
    seq: int
    token: str


async def read_mark(drive: Drive, spreadsheet_id: str) -> Mark | None:
    """The mark of this book; None: it has none, or Drive does not let this account look."""
    try:
        found = await drive.files_get(spreadsheet_id, fields="id,properties")
        text = str(found.get("properties", {}).get(_NAME, ""))
        generation, seq, token = text.split(":") if text else ("0", "0", "")
        return Mark(int(generation), int(seq), token) if text else None
    except (GoogleError, ValueError) as error:
        log.warning("how far the book %s was is not known: %s", spreadsheet_id, error)
        return None


async def write_mark(drive: Drive, spreadsheet_id: str, mark: Mark) -> bool:
    """Remember that the journal is at least so long; False: Drive does not let this account write it."""
    properties = {_NAME: f"{mark.generation}:{mark.seq}:{mark.token}"}
    try:
        await drive.files_update(spreadsheet_id, {"properties": properties}, fields="id")
    except GoogleError as error:
        log.warning("how far the book %s is cannot be remembered: %s", spreadsheet_id, error)
        return False
    return True
