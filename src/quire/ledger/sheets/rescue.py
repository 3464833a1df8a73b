"""What a process that finds the journal damaged leaves behind: all that it knew, as a file in Drive.

It stops then, since it cannot tell what others have seen. ``quire doctor --repair`` writes the file into the book if
the head still stands on the entry with which it ends: then nobody has written since, and nothing is lost (protocol 11).
Several processes may find the damage, each at another entry, the newest first or last: so the files of entries next to
each other stand under several names, and none takes the place of another.
"""

from __future__ import annotations

import hashlib
import json
import logging
from typing import Any, NamedTuple

from quire.google.drive import Drive
from quire.google.error import GoogleError
from quire.ledger.sheets.journal_rows import body_of
from quire.ledger.sheets.replica import Replica

log = logging.getLogger(__name__)

_NAME = "quire_rescue"
#: Files that are kept under a name of their own; one file has room for thirty names of everybody's.
_NAMES = 8


async def leave_rescue(drive: Drive, spreadsheet_id: str, replica: Replica) -> bool:
    """Keep what this replica says beside the book; False: Drive does not let this account do so."""
    last = replica.last
    if last is None:
        return False
    short, blobs, files, others = replica.snapshot(spreadsheet_id)
    where = {"generation": last.generation, "seq": last.seq, "token": last.token, "at": last.at, "void": replica.void}
    text = json.dumps({"last": where, "body": body_of(short, blobs, files, others)})
    try:
        about = await drive.files_get(spreadsheet_id, fields="id,name,parents,properties")
        [file_id] = await drive.files_generate_ids(1)
        made = {"id": file_id, "name": f"{about.get('name', '')} (rescue).json", "mimeType": "application/json"}
        made |= {"parents": about["parents"]} if about.get("parents") else {}
        content = text.encode()
        kept = await drive.files_create(made, content, fields="id,sha256Checksum")
        if kept.get("sha256Checksum") != hashlib.sha256(content).hexdigest():
            return False
        properties = {f"{_NAME}_{last.seq % _NAMES}": file_id}
        await drive.files_update(spreadsheet_id, {"properties": properties}, fields="id")
    except GoogleError as error:
        log.warning("what is known of the damaged journal of %s cannot be kept: %s", spreadsheet_id, error)
        return False
    log.error("what is known of the damaged journal of %s is kept; 'quire doctor --repair' uses it", spreadsheet_id)
    return True


class Rescue(NamedTuple):
    """What a process left behind."""

    #: Where it ends: generation, seq, token, at; and ``void``, the tokens of entries that do not count.
    last: dict[str, Any]
    #: Of a snapshot that says it all.
    body: str

    @property
    def heads(self) -> tuple[str, ...]:
        """Where the head stands if nothing was committed since."""
        return (self.last["token"], *reversed(self.last.get("void", ())))


async def read_rescues(drive: Drive, spreadsheet_id: str) -> list[Rescue]:
    """All that was left for this book, in no order."""
    try:
        about = await drive.files_get(spreadsheet_id, fields="id,properties")
    except GoogleError as error:
        log.warning("whether there is a rescue for %s is not known: %s", spreadsheet_id, error)
        return []
    found = []
    for file_id in (text for name, text in about.get("properties", {}).items() if name.startswith(_NAME)):
        try:
            kept = json.loads(await drive.files_get_media(str(file_id)))
            found.append(Rescue(kept["last"], str(kept["body"])))
        except (GoogleError, ValueError, KeyError) as error:
            log.warning("a rescue for %s cannot be read: %s", spreadsheet_id, error)
    return found
