"""Mails as steps read them."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from quire.google.gmail import Gmail
from quire.workspace.connection import google, refusing
from quire.workspace.gmail.composing import text_of_html
from quire.workspace.gmail.marks import headers_of
from quire.workspace.values import Mail, MailFile, MailLike, Sent

_TEXTS = ("text/plain", "text/html")
_DAEMON = re.compile(r"mailer-daemon|postmaster", re.IGNORECASE)


def _parts(part: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield part
    for inner in part.get("parts", ()):
        yield from _parts(inner)


def _text(part: Mapping[str, Any]) -> str:
    data = str(part.get("body", {}).get("data", ""))
    return base64.urlsafe_b64decode(data + "=" * (-len(data) % 4)).decode("utf-8", "replace") if data else ""


async def read(gmail: Gmail, message: Mapping[str, Any]) -> Mail:
    """Return a mail with the whole of its text. Gmail shows the text of a long mail only to who asks for that part."""
    for part in _parts(message.get("payload", {})):
        body = part.get("body", {})
        if part.get("mimeType") in _TEXTS and not part.get("filename") and body.get("attachmentId"):
            body["data"] = (await gmail.attachments_get(str(message["id"]), body["attachmentId"]))["data"]
    return as_mail(message)


def as_mail(message: Mapping[str, Any]) -> Mail:
    """The value for a message as Gmail shows it in full."""
    headers, payload = headers_of(message), message.get("payload", {})
    texts = dict.fromkeys(_TEXTS, "")
    files = []
    for part in _parts(payload):
        kind, name = str(part.get("mimeType", "")), str(part.get("filename", ""))
        if name:
            body = part.get("body", {})
            files.append(
                MailFile(name, kind, str(message["id"]), str(body.get("attachmentId", "")), body.get("size", 0))
            )
        elif kind in texts:
            texts[kind] += _text(part)
    bounce = bool(_DAEMON.search(headers.get("from", ""))) or "x-failed-recipients" in headers
    submitted = headers.get("auto-submitted", "no").lower()
    automatic = not submitted.startswith("no") or headers.get("precedence", "").lower() in (
        "bulk",
        "auto_reply",
        "junk",
    )
    return Mail(
        id=str(message["id"]),
        thread=str(message["threadId"]),
        sender=headers.get("from", ""),
        to=headers.get("to", ""),
        subject=headers.get("subject", ""),
        text=(texts["text/plain"] or text_of_html(texts["text/html"])).replace("\r\n", "\n"),
        html=texts["text/html"],
        at=datetime.fromtimestamp(int(message.get("internalDate", 0)) / 1000, UTC),
        files=tuple(files),
        automatic=automatic or bounce,
        bounce=bounce,
    )


async def thread(mail: MailLike, *, using: str = "") -> list[Mail]:
    """Return the mails of a thread, the oldest first. ``mail``: one of them, or the id of the thread."""
    if isinstance(mail, Mail | Sent):
        thread_id = mail.thread
    else:
        thread_id = str(mail.get("thread", "")) if isinstance(mail, Mapping) else mail
    with refusing():
        gmail = (await google(using)).gmail
        found = await gmail.threads_get(thread_id, form="full")
        messages = [one for one in found.get("messages", ()) if "DRAFT" not in one.get("labelIds", ())]
        return [await read(gmail, one) for one in messages]
