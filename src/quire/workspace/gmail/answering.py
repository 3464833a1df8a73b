"""What makes a mail an answer. Gmail puts it into a thread only if thread, references and subject all fit."""

from __future__ import annotations

from collections.abc import Mapping
from email.utils import formataddr, getaddresses
from typing import Any

from quire.workflows.effect import Act
from quire.workspace.connection import google
from quire.workspace.gmail.marks import headers_of
from quire.workspace.values import Mail, MailLike, Sent


def message_of(mail: MailLike) -> str:
    """The id of the mail that is answered."""
    if isinstance(mail, Mail | Sent):
        return mail.id
    return str(mail.get("id", "")) if isinstance(mail, Mapping) else mail


def answer_to(message: Mapping[str, Any]) -> dict[str, Any]:
    """The subject and the headers of an answer to a message."""
    headers = headers_of(message)
    subject = " ".join(headers.get("subject", "").split())
    if not subject.lower().startswith("re:"):
        subject = f"Re: {subject}"
    known = headers.get("message-id", "")
    references = " ".join(f"{headers.get('references', '')} {known}".split())
    return {"subject": subject, "headers": {"In-Reply-To": known, "References": references} if known else {}}


async def checked_reply(act: Act[Any], mail: MailLike, *, everybody: bool) -> dict[str, Any]:
    """Whom an answer goes to, and in which thread. One of our own mails is answered to its receivers."""
    connection = await google(act.connection)
    message = await connection.gmail.messages_get(message_of(mail), form="metadata")
    headers, me = headers_of(message), connection.transport.credentials.account.lower()
    ours = "SENT" in message.get("labelIds", ())
    to = headers.get("to", "") if ours else headers.get("reply-to") or headers.get("from", "")
    people = [headers.get("cc", ""), *([] if ours else [headers.get("to", "")])] if everybody else []
    first = {address.lower() for _, address in getaddresses([to])}
    rest = [(name, one) for name, one in getaddresses(people) if one and one.lower() not in {me, *first}]
    return {
        **answer_to(message),
        "thread": str(message["threadId"]),
        "to": [formataddr(one) for one in getaddresses([to])],
        "cc": [formataddr(one) for one in dict.fromkeys(rest)],
    }
