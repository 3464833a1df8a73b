"""Drafts for people, who may edit them in Gmail before they are sent. Nobody outside receives one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from quire.google.error import Missing
from quire.workflows.effect import Act, Kept, NotDone
from quire.workflows.retry import Fail
from quire.workspace.addresses import People, addresses
from quire.workspace.connection import google, refusing, sure
from quire.workspace.declaring import Given, google_effect
from quire.workspace.gmail.composing import Attachment, arguments, composed
from quire.workspace.gmail.marks import our_draft
from quire.workspace.values import Draft


async def check_sender(act: Act[Any], given: Given) -> None:
    """Refuse a sender that Gmail would put the account's own address over."""
    if not given.from_:
        return
    wanted = [one.addr_spec.lower() for one in addresses(given.from_, "from_")]
    listed = await (await google(act.connection)).gmail.send_as_list()
    known = [str(one["sendAsEmail"]) for one in listed]
    if wanted[0] not in (one.lower() for one in known):
        raise Fail(f"this account cannot send as {wanted[0]}; it may as {', '.join(known)}")


async def _check(act: Act[Any], given: Given) -> dict[str, Any]:
    with refusing():
        await check_sender(act, given)
        _, summary = await composed(act, given)
    return summary


async def _draft(act: Act[Any], found: Mapping[str, Any]) -> Draft:
    account = (await google(act.connection)).transport.credentials.account
    message = found["message"]
    about = act.prepared
    return Draft(
        str(found["id"]), str(message["id"]), str(message["threadId"]), about.get("to", ""), about["subject"], account
    )


async def _find(act: Act[Any], given: Given) -> Draft | NotDone:
    found = await our_draft(act)
    return NotDone("there is no draft with the mark of this act") if found is None else await _draft(act, found)


async def _undo(act: Act[Any], made: Draft) -> Kept | None:
    gmail = (await google(act.connection)).gmail
    try:
        there = await gmail.drafts_get(made.id)
    except Missing:
        return None  # it was sent, or thrown away
    if str(there["message"]["id"]) != made.message:
        return Kept(f"somebody has edited the draft {made.subject!r}; it stays")
    try:
        await gmail.drafts_delete(made.id)
    except Missing:
        return None
    return None


@google_effect(check=_check, find=_find, undo=_undo, fenced="settled")
async def draft(
    act: Act[Any],
    to: People,
    subject: str,
    text: str = "",
    *,
    html: str = "",
    cc: People = (),
    bcc: People = (),
    attach: Sequence[Attachment] = (),
    inline: Mapping[str, Attachment] = {},
    from_: str = "",
    headers: Mapping[str, str] = {},
    as_person: bool = False,
) -> Draft:
    """Write a draft, which a person may edit in Gmail. ``gmail.send_draft`` sends it as it is then."""
    given = arguments(to, subject, text, html, cc, bcc, attach, inline, from_, headers, as_person)
    with sure():
        source, _ = await composed(act, given)
        made = await (await google(act.connection)).gmail.drafts_create(source)
    return await _draft(act, made)
