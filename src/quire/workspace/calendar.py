"""Events in a calendar. An event's id is made from the key of the act: the calendar refuses a second one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from quire.clock import Span, seconds
from quire.google.error import AlreadyThere, Missing
from quire.workflows.effect import Act, NotDone, Prepare, effect
from quire.workflows.retry import Fail
from quire.workspace.connection import actor, google, sure
from quire.workspace.values import Event, outside_key

PRIMARY = "primary"


def _body(
    act: Act[Any], title: str, start: datetime, lasts: Span, invite: Sequence[str], description: str, meet: bool
) -> dict[str, Any]:
    key = outside_key(act.key)
    body: dict[str, Any] = {
        "id": key,
        "summary": title,
        "start": {"dateTime": start.isoformat()},
        "end": {"dateTime": (start + timedelta(seconds=seconds(lasts))).isoformat()},
        "extendedProperties": {"private": {"quire": key}},
    }
    if description:
        body["description"] = description
    if invite:
        body["attendees"] = [{"email": person} for person in invite]
    if meet:
        body["conferenceData"] = {"createRequest": {"requestId": key}}
    return body


async def _check(
    act: Act[Any],
    title: str,
    start: datetime,
    *,
    lasts: Span = "1h",
    invite: Sequence[str] = (),
    calendar: str = PRIMARY,
    description: str = "",
    meet: bool = False,
) -> dict[str, Any]:
    if start.tzinfo is None:
        raise Fail(f"the start of {title!r} has no time zone: {start.isoformat()}; give a datetime with tzinfo")
    if seconds(lasts) <= 0:
        raise Fail(f"{title!r} would end when it starts; say how long it lasts, like '1h'")
    for person in invite:
        if "@" not in person:
            raise Fail(f"{person!r} is no e-mail address; nobody can be invited under it")
    body = _body(act, title, start, lasts, invite, description, meet)
    return {"title": title, "start": body["start"]["dateTime"], "end": body["end"]["dateTime"], "invite": list(invite)}


async def _find(
    act: Act[Any],
    title: str,
    start: datetime,
    *,
    lasts: Span = "1h",
    invite: Sequence[str] = (),
    calendar: str = PRIMARY,
    description: str = "",
    meet: bool = False,
) -> Event | NotDone:
    """An event that somebody has deleted since was made all the same."""
    key = outside_key(act.key)
    try:
        found = await (await google(act.connection)).calendar.events_get(calendar, key)
    except Missing as error:
        return NotDone(str(error))
    return _event(found, calendar, invite, key)


def _event(found: dict[str, Any], calendar: str, invite: Sequence[str], key: str) -> Event:
    mark = ((found.get("extendedProperties") or {}).get("private") or {}).get("quire")
    if mark != key:
        raise LookupError(f"the event {key} was not made by this act")
    return Event(str(found["id"]), calendar, str(found.get("htmlLink", "")), bool(invite))


async def _undo(act: Act[Any], made: Event) -> None:
    try:
        with sure():
            await (await google(act.connection)).calendar.events_delete(made.calendar, made.id, notify=made.invited)
    except NotDone as error:
        if not isinstance(error.__cause__, Missing):  # somebody has deleted it already
            raise


@effect(probe=_find, undo=_undo, fenced=True, prepare=Prepare(_check), actor=actor)
async def event(
    act: Act[Any],
    title: str,
    start: datetime,
    *,
    lasts: Span = "1h",
    invite: Sequence[str] = (),
    calendar: str = PRIMARY,
    description: str = "",
    meet: bool = False,
) -> Event:
    """Make an event once. Guests are invited by mail, and hear of it if the event is taken back."""
    client = (await google(act.connection)).calendar
    key = outside_key(act.key)
    body = _body(act, title, start, lasts, invite, description, meet)
    try:
        with sure():
            found = await client.events_insert(calendar, body, notify=bool(invite))
    except Fail as error:
        if not isinstance(error.__cause__, AlreadyThere):
            raise
        found = await client.events_get(calendar, key)
    return _event(found, calendar, invite, key)
