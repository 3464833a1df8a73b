"""Messages by a webhook, whose address is its secret: it stands in the environment, never in a record.

Whether Google would know a second message of the same request is not known. So after a lost answer a person is asked,
unless ``twice="ok"`` says that a second message does no harm.
"""

from __future__ import annotations

import os
from typing import Any

from quire.workflows.effect import Act, NotDone
from quire.workflows.retry import Fail
from quire.workspace.chat.posting import Cards, body_of
from quire.workspace.connection import google, sure
from quire.workspace.declaring import Given, google_effect
from quire.workspace.values import Posted, outside_key

VARIABLE = "QUIRE_CHAT"


def _address(name: str) -> str:
    variable = f"{VARIABLE}_{name.upper()}"
    address = os.environ.get(variable, "")
    if not address:
        raise Fail(f"the webhook {name!r} has no address: set {variable} to the address that Chat gave for it")
    if "/messages?" not in address or "key=" not in address:
        raise Fail(f"{variable} holds no address of a webhook of Chat; copy it from the space's settings")
    return address


async def _check(act: Act[Any], given: Given) -> dict[str, Any]:
    if given.twice not in ("", "ok"):
        raise Fail(f"twice is {given.twice!r}; it may be 'ok'")
    _address(given.name)
    return body_of(given.text, given.cards)


async def _find(act: Act[Any], given: Given) -> Posted | NotDone:
    if given.twice == "ok":
        return NotDone("a second message does no harm")
    raise LookupError("a webhook shows nothing: whether the message was posted, only people in the space see")


@google_effect(check=_check, find=_find, timeout="30s")
async def webhook(
    act: Act[Any], name: str, text: str = "", *, cards: Cards = (), thread: str = "", twice: str = ""
) -> Posted:
    """Post by the webhook of this name, whose address is in ``QUIRE_CHAT_NAME``."""
    body = {**act.prepared, "thread": {"threadKey": thread or act.record_id}}
    chat = (await google(act.connection)).chat
    with sure():
        found = await chat.webhook(_address(name), body, request_id=outside_key(act.key))
    made = str(found.get("name", ""))
    return Posted(made, made.partition("/messages/")[0], str(found.get("thread", {}).get("name", "")), "")
