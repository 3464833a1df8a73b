"""Sending: an alert over HTTP or SMTP. What goes wrong is one sentence, and never the address, which is a secret.

A webhook is signed as a call of our own hooks is: with its time and a nonce, so that nobody else can make or repeat it.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import secrets
import smtplib
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from email.message import EmailMessage
from email.utils import formatdate
from urllib.parse import unquote, urlsplit

from quire.errors import QuireError
from quire.surfaces.alerts.channel import Alert, Alerts, Channel, address, body

SECONDS = 10.0


class NotSent(QuireError):
    """The alert did not arrive, as far as anybody knows."""


async def send(alerts: Alerts, channel: Channel, alert: Alert, now: float) -> None:
    """Send it; ``NotSent``, whatever was in the way: the next alert, and the other channels, do not depend on it."""
    try:
        if channel.way == "mailto":
            await asyncio.to_thread(_mailed, alerts, channel, alert, now)
        else:
            await _posted(alerts, channel, alert, now)
    except NotSent:
        raise
    except Exception as error:
        # A password that cannot be written, a port that cannot be: libraries have many words for that.
        raise NotSent(f"{channel.name} cannot be reached as it is configured ({type(error).__name__})") from error


def signed(secret: str, now: float, nonce: str, content: bytes) -> dict[str, str]:
    """The headers by which a receiver knows that the alert is ours, and new."""
    moment = str(int(now))
    made = hmac.new(secret.encode(), f"{moment}.{nonce}.".encode() + content, hashlib.sha256)
    return {"X-Quire-Time": moment, "X-Quire-Nonce": nonce, "X-Quire-Signature": made.hexdigest()}


async def _posted(alerts: Alerts, channel: Channel, alert: Alert, now: float) -> None:
    import httpx2

    content = json.dumps(body(channel, alert)).encode()
    headers = {"X-Quire-Alert": alert.alert_id, "Content-Type": "application/json"}
    if alerts.secret and channel.way == "webhook":
        headers |= signed(alerts.secret, now, secrets.token_hex(16), content)
    try:
        with _unlogged():
            async with httpx2.AsyncClient(timeout=SECONDS, follow_redirects=False) as http:
                answer = await http.post(address(channel, alert), content=content, headers=headers)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise NotSent(f"{channel.name} does not answer ({type(error).__name__})") from error
    if not 200 <= answer.status_code < 300:
        raise NotSent(f"{channel.name} answers {answer.status_code}")


_secret_address: ContextVar[bool] = ContextVar("secret_address", default=False)


def _may_be_logged(_: logging.LogRecord) -> bool:
    return not _secret_address.get()


@contextmanager
def _unlogged() -> Iterator[None]:
    """The library tells the whole address of each request at INFO. Those of chats are secrets: it tells nothing."""
    logging.getLogger("httpx2").addFilter(_may_be_logged)
    before = _secret_address.set(True)
    try:
        yield
    finally:
        _secret_address.reset(before)


def _mailed(alerts: Alerts, channel: Channel, alert: Alert, now: float) -> None:
    message = EmailMessage()
    message["Subject"] = " ".join(alert.title.split())[:200]
    message["From"] = alerts.sender
    message["To"] = ", ".join(channel.target.split(","))
    message["Date"] = formatdate(now)
    message["Message-ID"] = f"<{alert.alert_id}@{alerts.sender.rpartition('@')[2]}>"
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(alert.text)
    where = urlsplit(alerts.smtp)
    port = where.port or (465 if where.scheme == "smtps" else 587)
    host = where.hostname or "localhost"
    try:
        if where.scheme == "smtps":
            made: smtplib.SMTP = smtplib.SMTP_SSL(host, port, timeout=SECONDS, context=ssl.create_default_context())
        else:
            made = smtplib.SMTP(host, port, timeout=SECONDS)
        with made as server:
            server.ehlo()
            if where.scheme == "smtp" and server.has_extn("starttls"):
                server.starttls(context=ssl.create_default_context())
                server.ehlo()
            if where.username and alerts.password:
                if where.scheme == "smtp" and not isinstance(server.sock, ssl.SSLSocket):
                    raise NotSent(f"{channel.name}: the mail server offers no encryption; the password is not sent")
                server.login(unquote(where.username), alerts.password)
            server.send_message(message)
    except (OSError, smtplib.SMTPException) as error:
        raise NotSent(f"{channel.name}: the mail server refuses ({type(error).__name__})") from error
