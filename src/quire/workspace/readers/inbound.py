"""Mails that come in: each starts a record, and gets a label when the record exists."""

from __future__ import annotations

from typing import Any

from quire.client.client import Client
from quire.workflows.google_sources import Inbound
from quire.workflows.workflow import Workflow
from quire.workspace.connection import google
from quire.workspace.gmail.reading import read
from quire.workspace.readers.cursor import Fields
from quire.workspace.readers.starting import start


async def look(client: Client, workflow: Workflow[Any, Any, Any], source: Inbound, fields: Fields) -> Fields:
    """Start a record for each mail that has not the label. Mails from before the first look stay what they are."""
    gmail = (await google(source.using)).gmail
    label = await gmail.label(source.label)
    since = int(fields.get("since") or int(client.clock.now()))
    words = f"to:{source.address} -in:sent after:{since} -label:{source.label.replace('/', '-').replace(' ', '-')}"
    for listed in reversed(await gmail.messages_list(f"{words} {source.query}".strip())):
        message = await gmail.messages_get(str(listed["id"]), form="full")
        if label in message.get("labelIds", ()):
            continue
        await start(client, workflow, f"{workflow.name}-mail-{listed['id']}", await read(gmail, message))
        await gmail.messages_modify(str(listed["id"]), add=[label])
    return {"since": since}
