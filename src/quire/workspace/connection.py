"""Which Google the acts of this process speak to, and as whom. The only place that opens a connection."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit
from weakref import WeakKeyDictionary

from quire.google.calendar import Calendar
from quire.google.credentials import Credentials, StaticToken, default
from quire.google.documents import Documents
from quire.google.drive import Drive
from quire.google.error import (
    AlreadyThere,
    ApiDisabled,
    Changed,
    Invalid,
    Missing,
    MissingScope,
    NoStorage,
    NotShared,
    NotSignedIn,
    Unavailable,
)
from quire.google.gmail import Gmail
from quire.google.transport import Transport
from quire.workflows.effect import Act, NotDone
from quire.workflows.retry import Fail

#: What the acts need. The sheet's own scopes come with the ledger.
SCOPES = tuple(
    f"https://www.googleapis.com/auth/{name}"
    for name in ("drive", "documents", "gmail.compose", "gmail.metadata", "calendar.events")
)
#: Names the emulator for this process: ``http://127.0.0.1:8765?user=ann@example.org``.
VARIABLE = "QUIRE_GOOGLE"


@dataclass(slots=True)
class Google:
    """One account at one endpoint, with the calls of each product."""

    transport: Transport
    drive: Drive = field(init=False)
    documents: Documents = field(init=False)
    gmail: Gmail = field(init=False)
    calendar: Calendar = field(init=False)

    def __post_init__(self) -> None:
        self.drive = Drive(self.transport)
        self.documents = Documents(self.transport)
        self.gmail = Gmail(self.transport)
        self.calendar = Calendar(self.transport)

    @property
    def actor(self) -> dict[str, str]:
        """Who acts: marks and ids at Google hold for this account at this endpoint alone."""
        return {"account": self.transport.credentials.account, "endpoint": self.transport.endpoint or "google"}


#: What these say surely did not happen.
_NOT_DONE = (Unavailable, NotSignedIn, NotShared, MissingScope, ApiDisabled, NoStorage, Missing, Changed, Invalid)

_given: list[tuple[str, Credentials]] = []
_open: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, str], Google]] = WeakKeyDictionary()


@asynccontextmanager
async def connected(
    endpoint: str = "", *, user: str = "", credentials: Credentials | None = None
) -> AsyncIterator[Google]:
    """Let the acts of this process speak to this endpoint as this account, and close the connection at the end.

    Without an ``endpoint`` it is Google itself, with the machine's own credentials unless others are given.
    """
    way = (endpoint, credentials or (StaticToken(user or "me") if endpoint else default(SCOPES)))
    _given.append(way)
    try:
        yield await google()
    finally:
        _given.remove(way)
        for made in _open.pop(asyncio.get_running_loop(), {}).values():
            await made.transport.close()


async def google() -> Google:
    """Return the open connection of this event loop."""
    if _given:
        endpoint, credentials = _given[-1]
    else:
        endpoint, credentials = _of_the_environment()
    kept = _open.setdefault(asyncio.get_running_loop(), {})
    name = (endpoint, credentials.account)
    if name not in kept:
        made = Google(Transport(credentials, endpoint=endpoint, per_minute=None))
        await made.transport.open()
        kept[name] = made
    return kept[name]


def _of_the_environment() -> tuple[str, Credentials]:
    given = os.environ.get(VARIABLE, "")
    if not given:
        return "", default(SCOPES)
    parts = urlsplit(given)
    user = parse_qs(parts.query).get("user", ["me"])[0]
    return f"{parts.scheme}://{parts.netloc}/", StaticToken(user)


async def actor(act: Act[Any]) -> dict[str, str]:
    """Who acts here, for the intent: a probe under another account cannot tell what this one did."""
    return (await google()).actor


@contextmanager
def sure() -> Iterator[None]:
    """What Google refused, or never received, did not happen. Exception: an answer that never came says nothing."""
    try:
        yield
    except _NOT_DONE as error:
        raise NotDone(str(error)) from error
    except AlreadyThere as error:
        raise Fail(str(error)) from error


@contextmanager
def refusing() -> Iterator[None]:
    """What cannot work as it is given fails before there is an intent, and is not tried again."""
    try:
        yield
    except (NotShared, MissingScope, ApiDisabled, Missing, Invalid) as error:
        raise Fail(str(error)) from error
