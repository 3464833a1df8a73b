"""What a process that finds the journal damaged leaves behind: all that it knew, as a file in Drive.

It stops then, since it cannot tell what others have seen. ``quire doctor --repair`` writes the file into the book if
the head still stands on the entry with which it ends: then nobody has written since, and nothing is lost (protocol 11).
"""

from __future__ import annotations

import hashlib
import json
import logging

from quire.google.drive import Drive
from quire.google.error import GoogleError
from quire.ledger.sheets_replica import Replica
from quire.ledger.sheets_rows import body_of

log = logging.getLogger(__name__)

_NAME = "quire_rescue"


async def leave_rescue(drive: Drive, spreadsheet_id: str, replica: Replica) -> bool:
    """Keep what this replica says beside the book; False: Drive does not let this account do so."""
    last = replica.last
    if last is None:
        return False
    short, blobs, files, others = replica.snapshot(spreadsheet_id)
    where = {"generation": last.generation, "seq": last.seq, "token": last.token, "at": last.at}
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
        await drive.files_update(spreadsheet_id, {"properties": {_NAME: file_id}}, fields="id")
    except GoogleError as error:
        log.warning("what is known of the damaged journal of %s cannot be kept: %s", spreadsheet_id, error)
        return False
    log.error("what is known of the damaged journal of %s is kept; 'quire doctor --repair' uses it", spreadsheet_id)
    return True


async def read_rescue(drive: Drive, spreadsheet_id: str) -> tuple[dict[str, str], str] | None:
    """Where the rescued journal ends (generation, seq, token), and the body of a snapshot that says it all."""
    try:
        about = await drive.files_get(spreadsheet_id, fields="id,properties")
        file_id = str(about.get("properties", {}).get(_NAME, ""))
        if not file_id:
            return None
        found = json.loads(await drive.files_get_media(file_id))
        return found["last"], str(found["body"])
    except (GoogleError, ValueError, KeyError) as error:
        log.warning("there is no rescue for %s: %s", spreadsheet_id, error)
        return None
