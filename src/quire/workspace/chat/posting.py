"""Messages of a Chat app. The id of a message is made from the key of the act: Google returns the first one again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from quire.google.error import AlreadyThere, Invalid, Missing
from quire.workflows.effect import Act, Kept, NotDone
from quire.workflows.retry import Fail
from quire.workspace.connection import google, refusing, sure
from quire.workspace.declaring import Given, google_effect
from quire.workspace.values import Posted, outside_key

MOST_BYTES = 32_000
Json = dict[str, Any]
Cards = Sequence[Mapping[str, Any]]


def body_of(text: str, cards: Cards) -> Json:
    """The body of a message. What Chat would not take is refused."""
    if not text.strip() and not cards:
        raise Fail("the message is empty: give a text or cards")
    body: Json = {"text": text} if text else {}
    if cards:
        body["cardsV2"] = [{"cardId": f"card-{number}", "card": dict(one)} for number, one in enumerate(cards, 1)]
    size = len(json.dumps(body, ensure_ascii=False).encode())
    if size > MOST_BYTES:
        raise Fail(f"the message has {size:,} bytes, and Chat takes {MOST_BYTES:,}; send a link to the rest")
    return body


def space_of(space: str) -> str:
    """The name of a space, as ``spaces/AAA``, from that, its id, or its address in the browser."""
    name = space.rstrip("/").split("/")[-1]
    if not name or any(letter in name for letter in " ?#@"):
        raise Fail(f"{space!r} is no space of Chat; write it like 'spaces/AAAA1234', or copy its address")
    return f"spaces/{name}"


async def _check_cards(act: Act[Any], cards: Cards) -> None:
    account = (await google(act.connection)).transport.credentials.account
    if cards and not account.endswith(".gserviceaccount.com"):
        raise Fail(
            f"{account} is a person, and Chat takes cards from apps alone; post a text, or as the Chat app (using)"
        )


async def _check(act: Act[Any], given: Given) -> Json:
    body = body_of(given.text, given.cards)
    await _check_cards(act, given.cards)
    with refusing():
        await (await google(act.connection)).chat.spaces_get(space_of(given.space))
    return {"space": space_of(given.space), **body}


def _posted(found: Json, account: str) -> Posted:
    thread = str(found.get("thread", {}).get("name", ""))
    return Posted(str(found["name"]), str(found["name"]).partition("/messages/")[0], thread, account)


async def _account(act: Act[Any]) -> str:
    return (await google(act.connection)).transport.credentials.account


async def _find(act: Act[Any], given: Given) -> Posted | NotDone:
    name = f"{space_of(given.space)}/messages/client-{outside_key(act.key)}"
    try:
        return _posted(await (await google(act.connection)).chat.messages_get(name), await _account(act))
    except Missing as error:
        return NotDone(str(error))


async def _undo(act: Act[Any], made: Posted) -> Kept | None:
    """Delete the message. One that people have answered says instead that it does not stand."""
    chat = (await google(act.connection)).chat
    try:
        await chat.messages_delete(made.name)
    except Missing:
        return None
    except Invalid:
        await chat.messages_patch(made.name, {"text": "(withdrawn)", "cardsV2": []})
        return Kept("people have answered the message: it says now that it is withdrawn")
    return None


@google_effect(check=_check, find=_find, undo=_undo, timeout="30s")
async def post(act: Act[Any], space: str, text: str = "", *, cards: Cards = (), thread: str = "") -> Posted:
    """Post a message. Those of one record stand in one thread, unless ``thread`` names another."""
    chat = (await google(act.connection)).chat
    body = {**body_of(text, cards), "thread": {"threadKey": thread or act.record_id}}
    key = outside_key(act.key)
    try:
        with sure():
            found = await chat.messages_create(space_of(space), body, request_id=key, message_id=f"client-{key}")
    except Fail as error:
        if not isinstance(error.__cause__, AlreadyThere):
            raise
        found = await chat.messages_get(f"{space_of(space)}/messages/client-{key}")
    return _posted(found, await _account(act))


async def _check_update(act: Act[Any], given: Given) -> Json:
    body = body_of(given.text, given.cards)
    await _check_cards(act, given.cards)
    with refusing():
        found = await (await google(act.connection)).chat.messages_get(given.posted.name)
    before = {"text": found.get("text", ""), "cardsV2": found.get("cardsV2", [])}
    return {"before": before, "wanted": {"text": "", "cardsV2": [], **body}}


def _is(found: Json, wanted: Json) -> bool:
    return bool(found.get("text", "") == wanted["text"] and len(found.get("cardsV2", [])) == len(wanted["cardsV2"]))


async def _find_update(act: Act[Any], given: Given) -> Posted | NotDone:
    found = await (await google(act.connection)).chat.messages_get(given.posted.name)
    if _is(found, act.prepared["wanted"]):
        return _posted(found, await _account(act))
    return NotDone("the message says something else")


async def _undo_update(act: Act[Any], changed: Posted) -> Kept | None:
    chat = (await google(act.connection)).chat
    try:
        found = await chat.messages_get(changed.name)
    except Missing:
        return Kept("the message is gone")
    if not _is(found, act.prepared["wanted"]):
        return None if _is(found, act.prepared["before"]) else Kept("somebody has changed the message since; it stays")
    await chat.messages_patch(changed.name, act.prepared["before"])
    return None


@google_effect(check=_check_update, find=_find_update, undo=_undo_update, timeout="30s")
async def update(act: Act[Any], posted: Posted, text: str = "", *, cards: Cards = ()) -> Posted:
    """Let a message say something else. Saying it twice is saying it once."""
    with sure():
        found = await (await google(act.connection)).chat.messages_patch(posted.name, act.prepared["wanted"])
    return _posted(found, await _account(act))
