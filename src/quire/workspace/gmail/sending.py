"""Mails that leave: sent, sent from a draft of people, sent as an answer; and taken back by a second mail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from email.message import EmailMessage
from email.policy import SMTP
from typing import Any

from quire.google.error import Missing
from quire.workflows.effect import Act, Kept, NotDone
from quire.workflows.retry import Fail
from quire.workspace.addresses import People
from quire.workspace.connection import google, refusing, sure
from quire.workspace.declaring import Given, google_effect
from quire.workspace.gmail.answering import answer_to, checked_reply
from quire.workspace.gmail.composing import HEADER, Attachment, arguments, composed
from quire.workspace.gmail.drafting import check_sender
from quire.workspace.gmail.marks import headers_of, our_draft, sent_in
from quire.workspace.values import Draft, MailLike, Sent, outside_key

SEND_ONLY = "send-only"


async def _sent(act: Act[Any], message: Mapping[str, Any], take_back: str) -> Sent:
    account = (await google(act.connection)).transport.credentials.account
    about = act.prepared
    ids = str(message["id"]), str(message["threadId"])
    return Sent(*ids, about.get("to", ""), about["subject"], take_back, account, about.get("hash", ""))


# -- what all of them have in common -----------------------------------------------------------------------------


async def _check(act: Act[Any], given: Given) -> dict[str, Any]:
    """Build the mail once, so that what cannot be sent is refused, and people see what would leave."""
    with refusing():
        await check_sender(act, given)
        _, summary = await composed(act, given)
    return summary


async def _reserve(act: Act[Any], given: Given) -> dict[str, Any]:
    """Write the draft. Nobody outside receives it. An account that may only send writes none."""
    connection = await google(act.connection)
    if connection.mail == SEND_ONLY:
        return {**act.prepared, "draft": ""}
    source, _ = await composed(act, given, act.prepared.get("headers"))
    draft = await connection.gmail.drafts_create(source, thread_id=act.prepared.get("thread", ""))
    return {**act.prepared, "draft": str(draft["id"]), "thread": str(draft["message"]["threadId"])}


async def _find(act: Act[Any], given: Given) -> Sent | NotDone:
    if not act.prepared["draft"]:
        raise LookupError("this account may only send mail, so nobody can look whether it left")
    try:
        await (await google(act.connection)).gmail.drafts_get(act.prepared["draft"])
    except Missing:
        pass
    else:
        return NotDone("the draft was not sent")
    if message := await sent_in(act, act.prepared["thread"]):
        return await _sent(act, message, given.take_back)
    raise LookupError("the draft is gone, and no mail with its mark was sent: somebody may have thrown it away")


async def _send(act: Act[Any], given: Given) -> Sent:
    gmail = (await google(act.connection)).gmail
    with sure():
        if act.prepared["draft"]:
            message = await gmail.drafts_send(act.prepared["draft"])
        else:
            source, _ = await composed(act, given, act.prepared.get("headers"))
            message = await gmail.messages_send(source, thread_id=act.prepared.get("thread", ""))
    return await _sent(act, message, given.take_back)


async def _take_back(act: Act[Any], sent: Sent) -> Kept | None:
    """Say in the same thread that the mail does not stand, once. Without such a text a mail that left stays."""
    connection = await google(act.connection)
    gmail = connection.gmail
    if not sent.take_back:
        return Kept(f"the mail {sent.subject!r} has left, and no text to take it back was given")
    if connection.mail == SEND_ONLY:
        return Kept(f"this account may only send mail: nobody could know whether {sent.subject!r} was taken back twice")
    if await sent_in(act, sent.thread):
        return None
    draft = await our_draft(act)
    if draft is None:
        draft = await gmail.drafts_create(await _apology(act, sent), thread_id=sent.thread)
    await gmail.drafts_send(str(draft["id"]))
    return None


async def _apology(act: Act[Any], sent: Sent) -> bytes:
    answer = answer_to(await (await google(act.connection)).gmail.messages_get(sent.id, form="metadata"))
    mail = EmailMessage(policy=SMTP)
    mail["To"], mail["Subject"] = sent.to, answer["subject"]
    for name, value in answer["headers"].items():
        mail[name] = value
    mail["Auto-Submitted"] = "auto-generated"
    mail[HEADER] = outside_key(act.key)
    mail.set_content(sent.take_back)
    return mail.as_bytes()


# -- the acts ------------------------------------------------------------------------------------------------------


@google_effect(check=_check, reserve=_reserve, find=_find, undo=_take_back, fenced="settled")
async def send(
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
    take_back: str = "",
) -> Sent:
    """Send a mail once. ``attach``: files in Drive, Google's own as PDF, or (name, bytes). ``take_back``: what is
    sent after it in the same thread if it is undone."""
    given = arguments(to, subject, text, html, cc, bcc, attach, inline, from_, headers, as_person, take_back)
    return await _send(act, given)


async def _check_reply(act: Act[Any], given: Given) -> dict[str, Any]:
    with refusing():
        await check_sender(act, given)
        answer = await checked_reply(act, given.mail, everybody=given.everybody)
        given.to, given.cc, given.bcc, given.subject = answer["to"], answer["cc"], (), answer["subject"]
        _, summary = await composed(act, given, answer["headers"])
    return {**summary, "thread": answer["thread"], "headers": answer["headers"]}


async def _reserve_reply(act: Act[Any], given: Given) -> dict[str, Any]:
    _address(act, given)
    return await _reserve(act, given)


def _address(act: Act[Any], given: Given) -> None:
    given.to, given.cc, given.bcc = act.prepared.get("to", ""), act.prepared.get("cc", ()), ()
    given.subject = act.prepared["subject"]


@google_effect(check=_check_reply, reserve=_reserve_reply, find=_find, undo=_take_back, fenced="settled")
async def reply(
    act: Act[Any],
    mail: MailLike,
    text: str = "",
    *,
    html: str = "",
    everybody: bool = False,
    attach: Sequence[Attachment] = (),
    inline: Mapping[str, Attachment] = {},
    from_: str = "",
    headers: Mapping[str, str] = {},
    as_person: bool = False,
    take_back: str = "",
) -> Sent:
    """Answer a mail in its thread: one that came, or one that was sent here. ``everybody``: with all in copy."""
    given = arguments("", "", text, html, (), (), attach, inline, from_, headers, as_person, take_back)
    _address(act, given)
    return await _send(act, given)


async def _check_draft(act: Act[Any], given: Given) -> dict[str, Any]:
    """Read the draft as it is now: people may have edited it."""
    gmail = (await google(act.connection)).gmail
    draft_id = given.draft.id if isinstance(given.draft, Draft) else str(given.draft)
    try:
        with refusing():
            message = (await gmail.drafts_get(draft_id, form="metadata"))["message"]
            thread = await gmail.threads_get(str(message["threadId"]))
    except Fail as error:
        if not isinstance(error.__cause__, Missing):
            raise
        raise Fail(f"the draft {draft_id} is gone: somebody has sent it, or thrown it away") from error
    headers = headers_of(message)
    if not any(headers.get(name) for name in ("to", "cc", "bcc")):
        raise Fail(f"the draft {headers.get('subject', '')!r} has no receiver; write one into it in Gmail")
    return {
        "draft": draft_id,
        "message": str(message["id"]),
        "thread": str(message["threadId"]),
        "to": headers.get("to", ""),
        "subject": headers.get("subject", ""),
        "before": [str(one["id"]) for one in thread.get("messages", ())],
    }


async def _find_draft(act: Act[Any], given: Given) -> Sent | NotDone:
    """A mail of the thread that was not there before is the draft: who else sent it, sent it once."""
    gmail = (await google(act.connection)).gmail
    try:
        await gmail.drafts_get(act.prepared["draft"])
    except Missing:
        thread = await gmail.threads_get(act.prepared["thread"])
        for message in thread.get("messages", ()):
            if str(message["id"]) not in act.prepared["before"] and "SENT" in message.get("labelIds", ()):
                return await _sent(act, message, given.take_back)
        raise LookupError("the draft is gone, and nothing was sent in its thread: somebody threw it away") from None
    return NotDone("the draft was not sent")


@google_effect(check=_check_draft, find=_find_draft, undo=_take_back, fenced="settled")
async def send_draft(act: Act[Any], draft: Draft | str, *, take_back: str = "") -> Sent:
    """Send a draft as it is now, once. People may have edited it: what is sent is in the receipt."""
    with sure():
        message = await (await google(act.connection)).gmail.drafts_send(act.prepared["draft"])
    return await _sent(act, message, take_back)
