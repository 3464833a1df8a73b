"""Where alerts go: the channels that ``[alerts]`` in ``quire.toml`` names, and an alert in the words of each."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote, urlencode, urlsplit, urlunsplit

from quire.clock import seconds
from quire.errors import InputError, did_you_mean

#: What people are alerted to, and the findings (``quire.explain.stuck``) that belong to each.
KINDS = {
    "error": ("error",),
    "approval": ("asks", "doubt"),
    "budget": ("budget",),
    "stuck": ("stranded", "no worker", "late"),
    "halted": ("halted", "paused", "sealed"),
}
#: Words of the table that are no channels.
SETTINGS = ("only", "quiet", "smtp", "sender", "secret")
WAYS = ("gchat", "slack", "webhook", "mailto")
PASSWORD = "QUIRE_SMTP_PASSWORD"


class Channel(NamedTuple):
    name: str
    #: gchat, slack, webhook or mailto
    way: str
    #: An address, or the people to write to.
    target: str


class Alerts(NamedTuple):
    """What ``[alerts]`` says."""

    channels: tuple[Channel, ...]
    kinds: frozenset[str] = frozenset(KINDS)
    #: The same cause is not sent again before this long.
    quiet: float = 3600.0
    smtp: str = ""
    sender: str = ""
    password: str = ""
    #: What webhooks are signed with.
    secret: str = ""


class Alert(NamedTuple):
    """One message to people."""

    #: The same when it is sent again: whoever gets it twice can tell.
    alert_id: str
    kind: str
    text: str
    count: int = 1  # type: ignore[assignment]  # hides tuple.count, which nobody needs
    record_ids: tuple[str, ...] = ()
    workflow: str = ""
    step: str = ""

    @property
    def title(self) -> str:
        where = f" in {self.workflow}" if self.workflow else ""
        some = f" ({self.count})" if self.count > 1 else ""
        return f"Quire: {self.kind}{where}{some}"


def read(table: Mapping[str, str], environ: Mapping[str, str] = os.environ) -> Alerts | None:
    """The channels that are configured; None: there are none. One sentence for whatever is wrong."""
    if not table:
        return None
    channels = tuple(_channel(name, text, environ) for name, text in table.items() if name not in SETTINGS)
    if not channels:
        raise InputError('alerts: no channel is named; write one like ops = "slack:$SLACK_URL"')
    smtp = _resolved("smtp", table.get("smtp", ""), environ)
    mails = any(channel.way == "mailto" for channel in channels)
    if mails and (urlsplit(smtp).scheme not in ("smtp", "smtps") or not _host(smtp)):
        raise InputError('alerts: mail needs smtp = "smtp://user@host:587" or "smtps://user@host"')
    kinds = frozenset(re.split(r"[,\s]+", table["only"].strip())) if table.get("only") else frozenset(KINDS)
    for kind in sorted(kinds):
        if kind not in KINDS:
            raise InputError(f"alerts.only: there is no kind {kind!r}{did_you_mean(kind, KINDS)}")
    quiet = seconds(table["quiet"]) if table.get("quiet") else 3600.0
    if quiet <= 0:
        raise InputError("alerts.quiet must be longer than nothing: the same cause is not sent again before")
    user = unquote(urlsplit(smtp).username or "")
    host = urlsplit(smtp).hostname or "localhost"
    sender = table.get("sender") or (user if "@" in user else f"quire@{host}")
    secret = _resolved("secret", table.get("secret", ""), environ)
    if secret and len(secret) < 16:
        raise InputError("alerts.secret is too short to sign with: take 16 random characters or more")
    return Alerts(channels, kinds, quiet, smtp, sender, environ.get(PASSWORD, ""), secret)


def _channel(name: str, text: str, environ: Mapping[str, str]) -> Channel:
    way, colon, target = text.partition(":")
    if not colon or way not in WAYS:
        raise InputError(
            f"alerts.{name}: {way!r} is not a way to send; write gchat:, slack:, webhook: or mailto: before the address"
        )
    target = _resolved(name, target, environ)
    if way == "mailto":
        people = [person.strip() for person in target.split(",")]
        for person in people:
            if not re.fullmatch(r"[^\s@<>,;:]+@[^\s@<>,;:]+", person):
                raise InputError(f"alerts.{name}: {person!r} is not an e-mail address")
        return Channel(name, way, ",".join(people))
    if urlsplit(target).scheme not in ("http", "https") or not _host(target):
        raise InputError(f"alerts.{name}: after {way}: comes an http address, or $NAME of a variable that holds one")
    return Channel(name, way, target)


def _host(url: str) -> str:
    """Return the host of an address; empty: there is none, or its port is no port."""
    parts = urlsplit(url)
    try:
        return (parts.hostname or "") if parts.port != 0 else ""
    except ValueError:
        return ""


def _resolved(name: str, text: str, environ: Mapping[str, str]) -> str:
    """Addresses of chats are secrets: ``$NAME`` takes one from the environment."""
    if not text.startswith("$"):
        return text
    found = environ.get(text[1:], "")
    if not found:
        raise InputError(f"alerts.{name}: the environment has no {text[1:]}")
    return found


def address(channel: Channel, alert: Alert) -> str:
    """Where the alert is posted. Google Chat makes one message of a request id, however often it comes."""
    if channel.way != "gchat":
        return channel.target
    parts = urlsplit(channel.target)
    query = "&".join(part for part in (parts.query, urlencode({"requestId": alert.alert_id})) if part)
    return urlunsplit(parts._replace(query=query))


def body(channel: Channel, alert: Alert) -> dict[str, Any]:
    """What is posted."""
    match channel.way:
        case "gchat":
            return {"text": f"*{_plain(alert.title)}*\n{_plain(alert.text)}"}
        case "slack":
            return {"text": f"*{_escaped(alert.title)}*\n{_escaped(alert.text)}"}
        case _:
            return alert._asdict() | {"record_ids": list(alert.record_ids), "title": alert.title}


def _escaped(text: str) -> str:
    """The text for Slack, which reads three characters as markup: no record's text pings a channel or hides a link."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


#: Google Chat reads ``<users/all>`` and ``<address|words>`` as markup and has no way to escape them.
_CHAT = str.maketrans("<>", "‹›")


def _plain(text: str) -> str:
    """The text for Google Chat, with brackets that it does not read: no record's text pings people or hides a link."""
    return text.translate(_CHAT)
