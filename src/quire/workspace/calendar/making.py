"""Events in a calendar. An event's id is made from the key of the act: the calendar refuses a second one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

from quire.clock import Span
from quire.google.error import AlreadyThere, Missing
from quire.workflows.effect import Act, NotDone
from quire.workflows.retry import Fail
from quire.workspace.addresses import one_address
from quire.workspace.calendar.times import PRIMARY, from_to
from quire.workspace.connection import google, sure
from quire.workspace.declaring import Given, google_effect
from quire.workspace.values import Event, outside_key


def no_guests_of_a_robot(account: str, subject: str, title: str) -> None:
    """Refuse guests where a service account acts by itself: Google lets it invite nobody."""
    if account.endswith(".gserviceaccount.com") and not subject:
        raise Fail(
            f"{account} is a service account and can invite nobody to {title!r}; let it act for a person "
            "(domain-wide delegation, subject = …), or sign in as one"
        )


async def _check(act: Act[Any], given: Given) -> dict[str, Any]:
    """The whole event, so that people see what will be made, and the act makes just that."""
    if not given.title.strip():
        raise Fail("an event needs a title")
    guests = [one_address(person, "invite") for person in given.invite]
    body = {"summary": given.title, **from_to(given.title, given.start, given.lasts, given.zone)}
    credentials = (await google(act.connection)).transport.credentials
    if guests:
        no_guests_of_a_robot(credentials.account, str(getattr(credentials, "subject", "")), given.title)
        body["attendees"] = [{"email": guest} for guest in guests]
    body |= {name: value for name in ("description", "location") if (value := getattr(given, name))}
    if given.meet:
        body["conferenceData"] = {"createRequest": {"requestId": outside_key(act.key)}}
    return body


async def as_event(act: Act[Any], found: Mapping[str, Any], calendar: str, *, notify: bool) -> Event:
    """The value for an event as Calendar shows it."""
    account = (await google(act.connection)).transport.credentials.account
    link, meeting = str(found.get("htmlLink", "")), str(found.get("hangoutLink", ""))
    return Event(str(found["id"]), calendar, link, notify, str(found.get("summary", "")), meeting, account)


async def _find(act: Act[Any], given: Given) -> Event | NotDone:
    """An event that somebody has deleted since was made all the same."""
    try:
        found = await (await google(act.connection)).calendar.events_get(given.calendar, outside_key(act.key))
    except Missing as error:
        return NotDone(str(error))
    return await _ours(act, found, given.calendar, notify=bool(given.invite) and given.notify)


async def _ours(act: Act[Any], found: Mapping[str, Any], calendar: str, *, notify: bool) -> Event:
    key = outside_key(act.key)
    if ((found.get("extendedProperties") or {}).get("private") or {}).get("quire") != key:
        raise LookupError(f"the event {key} was not made by this act")
    return await as_event(act, found, calendar, notify=notify)


async def _undo(act: Act[Any], made: Event) -> None:
    try:
        await (await google(act.connection)).calendar.events_delete(made.calendar, made.id, notify=made.invited)
    except Missing:
        return  # somebody has deleted it already


@google_effect(check=_check, find=_find, undo=_undo, timeout="30s")
async def event(
    act: Act[Any],
    title: str,
    start: datetime | date,
    *,
    lasts: Span = "1h",
    zone: str = "",
    invite: Sequence[str] = (),
    calendar: str = PRIMARY,
    description: str = "",
    location: str = "",
    meet: bool = False,
    notify: bool = True,
) -> Event:
    """Make an event once. Guests are invited by mail, and hear of it if the event is taken back.

    ``start``: a moment with its time zone, or in ``zone``; a ``date`` is a whole day. ``notify=False``: no mails.
    """
    client = (await google(act.connection)).calendar
    key, mails = outside_key(act.key), bool(invite) and notify
    body = {**act.prepared, "id": key, "extendedProperties": {"private": {"quire": key}}}
    try:
        with sure():
            found = await client.events_insert(calendar, body, notify=mails)
    except Fail as error:
        if not isinstance(error.__cause__, AlreadyThere):
            raise
        found = await client.events_get(calendar, key)
    return await _ours(act, found, calendar, notify=mails)
