"""Which Google the acts of this process speak to, and as whom. The only place that opens a connection."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit
from weakref import WeakKeyDictionary

from quire.errors import NotNow
from quire.google.calendar import Calendar
from quire.google.chat import Chat
from quire.google.credentials import Credentials, StaticToken, default
from quire.google.documents import Documents
from quire.google.drive import Drive
from quire.google.error import (
    AlreadyThere,
    Changed,
    Invalid,
    Missing,
    NotShared,
    Unavailable,
)
from quire.google.forms import Forms
from quire.google.gmail import Gmail
from quire.google.presentations import Presentations
from quire.google.pubsub import PubSub
from quire.google.sheets import Sheets
from quire.google.tasks import Tasks
from quire.google.transport import Transport
from quire.model.change import Rate
from quire.workflows.effect import Act, Effect, NotDone
from quire.workflows.retry import Fail
from quire.workspace import accounts
from quire.workspace.scopes import name_of, needs_of

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
    mail: str = "draft"
    drive: Drive = field(init=False)
    documents: Documents = field(init=False)
    gmail: Gmail = field(init=False)
    calendar: Calendar = field(init=False)
    presentations: Presentations = field(init=False)
    sheets: Sheets = field(init=False)
    chat: Chat = field(init=False)
    tasks: Tasks = field(init=False)
    pubsub: PubSub = field(init=False)
    forms: Forms = field(init=False)

    def __post_init__(self) -> None:
        self.drive = Drive(self.transport)
        self.documents = Documents(self.transport)
        self.gmail = Gmail(self.transport)
        self.calendar = Calendar(self.transport)
        self.presentations = Presentations(self.transport)
        self.sheets = Sheets(self.transport)
        self.chat = Chat(self.transport)
        self.tasks = Tasks(self.transport)
        self.pubsub = PubSub(self.transport)
        self.forms = Forms(self.transport)

    @property
    def actor(self) -> dict[str, str]:
        """Who acts: marks and ids at Google hold for this account at this endpoint alone."""
        credentials = self.transport.credentials
        who = {"account": credentials.account, "endpoint": self.transport.endpoint or "google"}
        return who | ({"client": credentials.client} if credentials.client else {})


#: What these say surely did not happen.
_NOT_DONE = (Unavailable, NotShared, Missing, Changed, Invalid)


@dataclass(frozen=True, slots=True)
class Way:
    """Where a connection leads, and as whom."""

    endpoint: str
    credentials: Credentials
    #: ``send-only``: mail leaves without a draft, because the account may do no more than send.
    mail: str = "draft"
    #: The calls keep to Google's quotas. At an emulator they need not, unless somebody wants to see it.
    quota: bool = False


#: The ways that this process was given, by the name of the connection; the usual one has none.
_given: list[tuple[str, Way]] = []
_open: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, str, str], Google]] = WeakKeyDictionary()


@asynccontextmanager
async def connected(
    endpoint: str = "",
    *,
    user: str = "",
    credentials: Credentials | None = None,
    name: str = "",
    mail: str = "draft",
    quota: bool = False,
) -> AsyncIterator[Google]:
    """Let the acts of this process speak to this endpoint as this account, and close the connection at the end.

    Without an ``endpoint`` it is Google itself, with the machine's own credentials unless others are given. ``name``:
    what ``effect.using(name)`` calls it. ``mail="send-only"``: the account may send mail and do nothing else with it.
    ``quota``: keep to Google's quotas at an emulator, too.
    """
    way = Way(endpoint, credentials or (StaticToken(user or "me") if endpoint else default(SCOPES)), mail, quota)
    given = (name, way)
    _given.append(given)
    try:
        yield await google(name)
    finally:
        _given.remove(given)
        kept = _open.get(asyncio.get_running_loop(), {})
        still = {_key(one) for _, one in _given}
        for key in [key for key in kept if key not in still]:
            await kept.pop(key).transport.close()


def _key(way: Way) -> tuple[str, str, str]:
    return way.endpoint, way.credentials.account, way.mail


async def google(name: str = "") -> Google:
    """Return the open connection of this name in this event loop."""
    way = next((way for given, way in reversed(_given) if given == name), None) or _of_the_environment(name)
    kept = _open.setdefault(asyncio.get_running_loop(), {})
    if _key(way) not in kept:
        quotas = way.quota or not way.endpoint
        made = Google(Transport(way.credentials, endpoint=way.endpoint, per_minute=None, lanes=quotas), way.mail)
        await made.transport.open()
        kept[_key(way)] = made
    kept[_key(way)].transport.credentials = way.credentials  # a person may have signed in anew
    return kept[_key(way)]


async def close() -> None:
    """Close the connections that the acts of this event loop opened. The next act opens its own again."""
    for made in _open.pop(asyncio.get_running_loop(), {}).values():
        await made.transport.close()


def usual() -> Way:
    """Where acts lead that name no connection."""
    return _of_the_environment("")


def connections() -> list[str]:
    """The names of all connections that this process knows; the usual one has none."""
    prefix = f"{VARIABLE}_"
    named = {word.removeprefix(prefix).lower() for word in os.environ if word.startswith(prefix)}
    return ["", *sorted(named | {name for name, _ in _given if name} | set(accounts.names()))]


def _of_the_environment(name: str) -> Way:
    variable = f"{VARIABLE}_{name.upper()}" if name else VARIABLE
    given = os.environ.get(variable, "")
    if not given and (account := accounts.declared(name)) is not None:
        return Way(accounts.endpoint_of(account), accounts.credentials_of(account), account.mail)
    if not given and name:
        raise Fail(
            f"there is no connection {name!r} to Google: set {variable}, write [google.{name}] into quire.toml, or "
            f"give connected(name={name!r}, …)"
        )
    if not given:
        return Way("", default(SCOPES))
    parts = urlsplit(given)
    options = parse_qs(parts.query)
    user, mail = (options.get(word, [usual])[0] for word, usual in (("user", "me"), ("mail", "draft")))
    return Way(f"{parts.scheme}://{parts.netloc}/", StaticToken(user), mail, "quota" in options)


#: What is used up of a quota of a minute, and in which slices: after a pause a slice may come at once, and the minute
#: around it must not have more than the quota.
_USED, _SLICE = 0.85, 10.0


class _Actor:
    """Who acts here, for the intent: a probe under another account cannot tell what this one did."""

    async def __call__(self, act: Act[Any]) -> dict[str, str]:
        return (await google(act.connection)).actor

    def pace(self, effect: Effect[..., Any, Any], who: Mapping[str, str], args: Any, kwargs: Any) -> Rate | None:
        """How often this account may do this act over all workers. An emulator has no quota unless it is wished."""
        if who.get("endpoint", "google") != "google" and not any(way.quota for _, way in _given):
            return None
        if (needs := needs_of(effect)) is None:
            return None
        lane = needs.lane
        whose = str(args[0] if args else kwargs.get("space", "")) if lane.by == "space" else who.get("account", "")
        return Rate(f"{name_of(effect)} {whose}", lane.per_minute / lane.units * _USED * _SLICE / 60.0, _SLICE)


actor = _Actor()


@contextmanager
def sure() -> Iterator[None]:
    """What Google refused, or never received, did not happen. Exception: an answer that never came says nothing."""
    try:
        yield
    except NotNow:
        raise  # the record waits
    except _NOT_DONE as error:
        raise NotDone(str(error)) from error
    except AlreadyThere as error:
        raise Fail(str(error)) from error


@contextmanager
def refusing() -> Iterator[None]:
    """What cannot work as it is given fails before there is an intent, and is not tried again."""
    try:
        yield
    except (NotShared, Missing, Invalid) as error:
        raise Fail(str(error)) from error
