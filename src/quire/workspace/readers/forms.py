"""Answers to a form: each starts a record.

Forms promises no order, and its clock is not ours. So each look goes back five minutes before the newest answer that is
in the ledger, and takes all pages; an answer that is there already is the same record.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from quire.client.client import Client
from quire.workflows.google_sources import Form
from quire.workflows.workflow import Workflow
from quire.workspace.connection import google
from quire.workspace.forms import as_response, questions
from quire.workspace.readers.cursor import Fields
from quire.workspace.readers.starting import start
from quire.workspace.values import FormResponse, id_of

_BACK = timedelta(minutes=5)
#: A response that nobody has edited has two times that differ by less than this.
_TOLERANCE = timedelta(seconds=1)


async def look(client: Client, workflow: Workflow[Any, Any, Any], source: Form, fields: Fields) -> Fields:
    """Start a record for each new answer. Return the cursor after it."""
    forms = (await google(source.using)).forms
    form = id_of(source.form)
    titles = questions(await forms.get(form))
    since = str(fields.get("since", ""))
    after = ""
    if since:
        after = f"{datetime.fromisoformat(since).astimezone(UTC) - _BACK:%Y-%m-%dT%H:%M:%S.%f}Z"
    found = [as_response(one, titles) for one in await forms.responses_list(form, since=after)]
    for response in sorted(found, key=lambda one: (one.submitted_at, one.id)):
        await _brought(client, workflow, source, response)
    newest = max((one.submitted_at.isoformat() for one in found), default=since)
    return {"since": max(newest, since)}


def _data(source: Form, response: FormResponse) -> Mapping[str, Any]:
    if not source.fields:
        return response.answers
    return {name: response.answers[title] for title, name in source.fields.items() if title in response.answers}


async def _brought(client: Client, workflow: Workflow[Any, Any, Any], source: Form, response: FormResponse) -> None:
    record_id = f"{workflow.name}-form-{response.id}"
    edited = response.submitted_at - response.created_at >= _TOLERANCE
    data = _data(source, response)
    new = await start(client, workflow, record_id, data)
    if new or not edited or source.on_edit == "ignore":
        return
    when = f"{response.submitted_at.timestamp():.6f}"
    if source.on_edit == "start":
        await start(client, workflow, f"{record_id}-{when}", data)
    elif not (await client.get(record_id)).ended:
        await client.signal(record_id, "edited", dict(data), signal_id=f"form-{response.id}-{when}")
