"""Mail by SMTP, and replies by IMAP.

SMTP has no key of any kind. The mail carries a Message-ID that is made from the key of the act, and a copy goes into
the folder of sent mail. A process that comes after a kill looks there: found means sent. Not found proves nothing,
because the copy comes after the mail: then a person is asked.
"""

from __future__ import annotations

import email
import hashlib
import imaplib
import os
import smtplib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from email.message import EmailMessage
from email.policy import SMTP, default
from email.utils import formatdate, getaddresses, parseaddr
from typing import Any
from urllib.parse import unquote, urlsplit

from quire.clock import Span, seconds
from quire.run.run import Run
from quire.workflows.effect import Act, NotDone, Prepare, effect
from quire.workflows.retry import Fail

#: Where mail goes out, where it is read, and who sends: ``smtps://user:password@host:465``.
SMTP_VARIABLE, IMAP_VARIABLE, FROM_VARIABLE = "QUIRE_SMTP", "QUIRE_IMAP", "QUIRE_MAIL_FROM"
PORTS = {"smtp": 587, "smtps": 465, "imap": 143, "imaps": 993}
SENT_FOLDER = "Sent"


@dataclass(frozen=True, slots=True)
class Sent:
    """A mail that left."""

    id: str
    to: str
    subject: str
    #: What is sent after it if it is undone; empty: it stays.
    take_back: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """A mail that answers one of ours."""

    id: str
    sender: str
    subject: str
    text: str
    #: A machine wrote it.
    automatic: bool = False


def _address(variable: str) -> Any:
    given = os.environ.get(variable, "")
    parts = urlsplit(given)
    if parts.scheme not in PORTS or not parts.hostname:
        raise Fail(
            f"{variable} is {(given and parts.hostname) or 'not set'!r}; write it like smtps://user:password@host"
        )
    return parts


@contextmanager
def _smtp(left: float) -> Iterator[smtplib.SMTP]:
    parts = _address(SMTP_VARIABLE)
    kind = smtplib.SMTP_SSL if parts.scheme == "smtps" else smtplib.SMTP
    try:
        server = kind(parts.hostname, parts.port or PORTS[parts.scheme], timeout=left)
    except OSError as error:
        raise NotDone(f"the mail server {parts.hostname} cannot be reached: {error}") from error
    try:
        with suppress(smtplib.SMTPNotSupportedError):
            if parts.scheme == "smtp":
                server.starttls()
        if parts.username:
            server.login(unquote(parts.username), unquote(parts.password or ""))
        yield server
    finally:
        with suppress(smtplib.SMTPException, OSError):
            server.quit()
        server.close()


@contextmanager
def _imap() -> Iterator[imaplib.IMAP4]:
    parts = _address(IMAP_VARIABLE)
    kind = imaplib.IMAP4_SSL if parts.scheme == "imaps" else imaplib.IMAP4
    server = kind(parts.hostname, parts.port or PORTS[parts.scheme], timeout=30)
    try:
        if parts.username:
            server.login(unquote(parts.username), unquote(parts.password or ""))
        yield server
    finally:
        with suppress(imaplib.IMAP4.error, OSError):
            server.logout()


def _message_id(key: str, sender: str) -> str:
    domain = parseaddr(sender)[1].rpartition("@")[2] or "quire.invalid"
    return f"<{hashlib.sha256(key.encode()).hexdigest()[:32]}@{domain}>"


def _sender() -> str:
    given = os.environ.get(FROM_VARIABLE, "")
    if "@" not in parseaddr(given)[1]:
        raise Fail(f"{FROM_VARIABLE} is {given!r}; set it to the address that sends")
    return given


def _composed(key: str, to: str | Sequence[str], subject: str, text: str, html: str, after: str = "") -> EmailMessage:
    people = [to] if isinstance(to, str) else list(to)
    for _, address in getaddresses(people):
        if "@" not in address or address.startswith("@") or address.endswith("@"):
            raise Fail(f"{address or ', '.join(people)!r} is no e-mail address")
    if "\n" in subject or "\r" in subject:
        raise Fail("the subject holds a line break; write it on one line")
    mail = EmailMessage(policy=SMTP)
    mail["From"], mail["To"], mail["Subject"] = _sender(), ", ".join(people), subject
    mail["Message-ID"], mail["Date"] = _message_id(key, _sender()), formatdate(usegmt=True)
    mail["Auto-Submitted"] = "auto-generated"
    if after:
        mail["In-Reply-To"] = mail["References"] = after
    mail.set_content(text)
    if html:
        mail.add_alternative(html, subtype="html")
    return mail


def _deliver(act: Act[Any], mail: EmailMessage) -> None:
    """Hand a mail to the server. What it refuses was not sent; a connection that breaks off says nothing."""
    with _smtp(max(1.0, act.time_left.total_seconds())) as server:
        try:
            server.send_message(mail)
        except (smtplib.SMTPRecipientsRefused, smtplib.SMTPSenderRefused, smtplib.SMTPDataError) as error:
            raise NotDone(f"the mail server refused it: {error}") from error
    if os.environ.get(IMAP_VARIABLE):
        with suppress(imaplib.IMAP4.error, OSError), _imap() as box:  # it was sent, whatever becomes of the copy
            if not _found(box, SENT_FOLDER, "Message-ID", str(mail["Message-ID"])):
                box.append(SENT_FOLDER, "(\\Seen)", "", mail.as_bytes())


def _found(box: imaplib.IMAP4, folder: str, header: str, value: str) -> list[bytes]:
    status, _ = box.select(folder, readonly=True)
    if status != "OK":
        return []
    _, data = box.search(None, "HEADER", header, f'"{value}"')
    numbers: list[bytes] = (data[0] or b"").split()
    return numbers


async def _check(
    act: Act[Any], to: str | Sequence[str], subject: str, text: str, *, html: str = "", take_back: str = ""
) -> dict[str, Any]:
    mail = _composed(act.key, to, subject, text, html)
    return {"to": str(mail["To"]), "subject": subject, "bytes": len(mail.as_bytes())}


def _look(
    act: Act[Any], to: str | Sequence[str], subject: str, text: str, *, html: str = "", take_back: str = ""
) -> Sent | NotDone:
    wanted = _message_id(act.key, _sender())
    with _imap() as box:
        if _found(box, SENT_FOLDER, "Message-ID", wanted):
            return Sent(wanted, str(act.prepared["to"]), subject, take_back)
    raise LookupError(f"there is no copy of it in {SENT_FOLDER!r}; it may have been sent before the copy was kept")


def _take_back(act: Act[Any], sent: Sent) -> None:
    if sent.take_back:
        _deliver(act, _composed(act.key, sent.to, f"Re: {sent.subject}", sent.take_back, "", sent.id))


@effect(probe=_look, undo=_take_back, prepare=Prepare(_check), timeout="60s")
def send(
    act: Act[Any], to: str | Sequence[str], subject: str, text: str, *, html: str = "", take_back: str = ""
) -> Sent:
    """Send a mail. ``take_back``: what is sent after it if it is undone; without it the mail stays."""
    mail = _composed(act.key, to, subject, text, html)
    _deliver(act, mail)
    return Sent(str(mail["Message-ID"]), str(mail["To"]), subject, take_back)


# -- replies -------------------------------------------------------------------------------------------------------


def replies(sent: Sent) -> list[Reply]:
    """Return the mails in the inbox that answer this one, the oldest first. For ``run.call``."""
    with _imap() as box:
        numbers = {*_found(box, "INBOX", "In-Reply-To", sent.id), *_found(box, "INBOX", "References", sent.id)}
        return [_read(box, number) for number in sorted(numbers, key=int)]


def _read(box: imaplib.IMAP4, number: bytes) -> Reply:
    _, data = box.fetch(number.decode(), "(RFC822)")
    raw = next(part[1] for part in data if isinstance(part, tuple))
    mail = email.message_from_bytes(raw, policy=default)
    body = mail.get_body(("plain", "html"))
    automatic = str(mail.get("Auto-Submitted", "no")).lower() != "no"
    text = body.get_content() if body is not None else ""
    return Reply(str(mail["Message-ID"] or ""), str(mail["From"]), str(mail["Subject"]), str(text), automatic)


async def replied(
    run: Run[Any, Any], sent: Sent, *, timeout: Span = "14d", every: Span = "1m", most: Span = "1h"
) -> Reply | None:
    """Wait for the first reply that no machine wrote; None: nobody replied in time.

    The inbox is read ``every`` minute at first, and less and less often, at least once in ``most``.
    """
    waited, pause = 0.0, seconds(every)
    while True:
        found: list[Reply] = await run.call(replies, sent)
        if person := next((reply for reply in found if not reply.automatic), None):
            return person
        if waited >= seconds(timeout):
            return None
        await run.sleep(pause)
        waited, pause = waited + pause, min(pause * 1.5, seconds(most))
