"""Files that are put into a folder: each starts a record."""

from __future__ import annotations

from typing import Any

from quire.client.client import Client
from quire.google.error import Invalid, Missing
from quire.workflows.google_sources import Dropped
from quire.workflows.workflow import Workflow
from quire.workspace.connection import google
from quire.workspace.drive.looking import FIELDS, as_file
from quire.workspace.readers.cursor import Fields
from quire.workspace.readers.starting import start
from quire.workspace.values import id_of


async def look(client: Client, workflow: Workflow[Any, Any, Any], source: Dropped, fields: Fields) -> Fields:
    """Start a record for each file that came since the last look. What was there before the first one stays."""
    drive = (await google(source.using)).drive
    folder = id_of(source.folder)
    token = str(fields.get("token", ""))
    if not token:
        held = await drive.files_list(f"'{folder}' in parents", fields="files(id)")
        return {"token": await drive.changes_start(), "before": [str(one["id"]) for one in held]}
    before = [str(one) for one in fields.get("before", ())]
    try:
        changed, after = await drive.changes_list(token, fields=FIELDS)
    except (Missing, Invalid):  # the token is forgotten: the folder itself says what is new
        after = await drive.changes_start()
        changed = list(await drive.files_list(f"'{folder}' in parents", fields=f"files({FIELDS})"))
    for file in changed:
        if folder in (file.get("parents") or ()) and not file.get("trashed") and file["id"] not in before:
            await start(client, workflow, f"{workflow.name}-file-{file['id']}", as_file(file))
    return {"token": after, "before": before}
