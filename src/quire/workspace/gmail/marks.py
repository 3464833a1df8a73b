"""How our mails and drafts are found again: by the header that each of them has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quire.google.error import Missing
from quire.workflows.effect import Act
from quire.workspace.connection import google
from quire.workspace.gmail.composing import HEADER
from quire.workspace.values import outside_key

#: How many drafts are looked at for one of ours. The newest come first.
_MOST_DRAFTS = 300


def headers_of(message: Mapping[str, Any]) -> dict[str, str]:
    """The headers of a message, by their names in lower case."""
    found = message.get("payload", {}).get("headers", ())
    return {str(one["name"]).lower(): str(one["value"]) for one in found}


async def our_drafts(act: Act[Any]) -> list[dict[str, Any]]:
    """The drafts of this very act, the oldest first."""
    gmail = (await google(act.connection)).gmail
    ours = []
    for listed in await gmail.drafts_list(_MOST_DRAFTS):
        try:
            draft = await gmail.drafts_get(str(listed["id"]), form="metadata")
        except Missing:
            continue
        if headers_of(draft["message"]).get(HEADER.lower()) == outside_key(act.key):
            ours.append(draft)
    return sorted(ours, key=lambda one: int(one["message"].get("internalDate", 0)))


async def our_draft(act: Act[Any]) -> dict[str, Any] | None:
    """The draft of this act. Twins, which a lost answer may have left and nobody received, are deleted."""
    drafts = await our_drafts(act)
    for twin in drafts[1:]:
        await (await google(act.connection)).gmail.drafts_delete(str(twin["id"]))
    return drafts[0] if drafts else None


async def sent_in(act: Act[Any], thread_id: str) -> dict[str, Any] | None:
    """The mail of this act that was sent in a thread."""
    try:
        thread = await (await google(act.connection)).gmail.threads_get(thread_id)
    except Missing:
        return None
    for message in thread.get("messages", ()):
        ours = headers_of(message).get(HEADER.lower()) == outside_key(act.key)
        if ours and "SENT" in message.get("labelIds", ()):
            return dict(message)
    return None
