"""Mail that leaves once: it is written as a draft, and the draft is the token that works once.

`drafts.send` takes a draft away. So a draft that is still there was not sent. One that is gone was sent if its thread
holds a mail with our header; otherwise somebody threw it away, or nobody can know: a person is asked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import getaddresses
from typing import Any

from quire.google.error import Missing
from quire.workflows.effect import Act, NotDone, Prepare, effect
from quire.workflows.retry import Fail
from quire.workspace.connection import actor, google, refusing, sure
from quire.workspace.values import FileLike, Sent, id_of, outside_key

HEADER = "X-Quire-Key"
#: What Gmail takes in one mail, with its attachments.
MOST_BYTES = 25_000_000
_ADDRESS = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s.]+")

People = str | Sequence[str]


def _addresses(people: People, what: str) -> list[Address]:
    given = [people] if isinstance(people, str) else list(people)
    found = []
    for name, address in getaddresses(given):
        if not _ADDRESS.fullmatch(address):
            raise Fail(f"{what} holds {', '.join(map(repr, given))}: that is no e-mail address")
        found.append(Address(name, addr_spec=address))
    return found


def _one_line(text: str, what: str) -> str:
    if "\n" in text or "\r" in text:
        raise Fail(f"the {what} holds a line break; write it on one line")
    return text


async def _mail(
    act: Act[Any], to: People, subject: str, text: str, html: str, cc: People, attach: Sequence[FileLike]
) -> EmailMessage:
    mail = EmailMessage(policy=SMTP)
    mail["To"] = _addresses(to, "to")
    if copied := _addresses(cc, "cc"):
        mail["Cc"] = copied
    mail["Subject"] = _one_line(subject, "subject")
    mail["Auto-Submitted"] = "auto-generated"
    mail[HEADER] = outside_key(act.key)
    mail.set_content(text)
    if html:
        mail.add_alternative(html, subtype="html")
    drive = (await google(act.connection)).drive
    for file in attach:
        about = await drive.files_get(id_of(file), fields="id,name,mimeType")
        main, _, sub = str(about.get("mimeType") or "application/octet-stream").partition("/")
        if sub.startswith("vnd.google-apps."):
            raise Fail(f"{about.get('name', '')!r} is a Google document; make a PDF of it (drive.pdf) and attach that")
        content = await drive.files_get_media(id_of(file))
        mail.add_attachment(content, maintype=main, subtype=sub, filename=str(about.get("name", "")))
    return mail


async def _check(
    act: Act[Any],
    to: People,
    subject: str,
    text: str,
    *,
    html: str = "",
    cc: People = (),
    attach: Sequence[FileLike] = (),
    take_back: str = "",
) -> dict[str, Any]:
    """Build the mail once, so that what cannot be sent is refused, and people see what would leave."""
    with refusing():
        size = len((await _mail(act, to, subject, text, html, cc, attach)).as_bytes())
    if size > MOST_BYTES:
        raise Fail(f"the mail has {size / 1e6:.0f} MB, and Gmail takes 25; give links to the files instead")
    return {"to": [str(one) for one in _addresses(to, "to")], "subject": subject, "bytes": size}


async def _reserve(
    act: Act[Any],
    to: People,
    subject: str,
    text: str,
    *,
    html: str = "",
    cc: People = (),
    attach: Sequence[FileLike] = (),
    take_back: str = "",
) -> dict[str, str]:
    """Write the draft. Nobody outside receives it."""
    mail = await _mail(act, to, subject, text, html, cc, attach)
    draft = await (await google(act.connection)).gmail.drafts_create(mail.as_bytes())
    return {"draft": str(draft["id"]), "thread": str(draft["message"]["threadId"]), "to": str(mail["To"])}


async def _find(
    act: Act[Any],
    to: People,
    subject: str,
    text: str,
    *,
    html: str = "",
    cc: People = (),
    attach: Sequence[FileLike] = (),
    take_back: str = "",
) -> Sent | NotDone:
    gmail = (await google(act.connection)).gmail
    try:
        await gmail.drafts_get(act.prepared["draft"])
    except Missing:
        pass
    else:
        return NotDone("the draft was not sent")
    thread = await gmail.threads_get(act.prepared["thread"])
    for message in thread.get("messages", ()):
        headers = {str(one["name"]).lower(): one["value"] for one in message.get("payload", {}).get("headers", ())}
        if headers.get(HEADER.lower()) == outside_key(act.key) and "SENT" in message.get("labelIds", ()):
            return Sent(str(message["id"]), str(message["threadId"]), act.prepared["to"], subject, take_back)
    raise LookupError("the draft is gone, and no mail with its mark was sent: somebody may have thrown it away")


async def _take_back(act: Act[Any], sent: Sent) -> None:
    """Say in the same thread that the mail does not stand. Without such a text a mail that left stays as it is."""
    if not sent.take_back:
        return
    mail = EmailMessage(policy=SMTP)
    mail["To"], mail["Subject"] = sent.to, f"Re: {sent.subject}"
    mail["Auto-Submitted"] = "auto-generated"
    mail[HEADER] = outside_key(act.key)
    mail.set_content(sent.take_back)
    with sure():
        await (await google(act.connection)).gmail.messages_send(mail.as_bytes(), thread_id=sent.thread)


@effect(probe=_find, undo=_take_back, fenced=True, prepare=Prepare(_check, _reserve), actor=actor, timeout="60s")
async def send(
    act: Act[Any],
    to: People,
    subject: str,
    text: str,
    *,
    html: str = "",
    cc: People = (),
    attach: Sequence[FileLike] = (),
    take_back: str = "",
) -> Sent:
    """Send a mail once. ``attach``: files in Drive. ``take_back``: what is sent after it if it is undone."""
    with sure():
        message = await (await google(act.connection)).gmail.drafts_send(act.prepared["draft"])
    return Sent(str(message["id"]), str(message["threadId"]), act.prepared["to"], subject, take_back)
