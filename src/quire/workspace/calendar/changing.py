"""Changes of events, guarded by the etag that was read, with a mark of the act in the same patch.

A mark that is there says that the change was made. If somebody changes the event meanwhile, Calendar refuses the patch:
it is made anew for the event as it is then, or the step hears who changed what.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

from quire.clock import Span
from quire.google.error import Changed, Missing
from quire.workflows.effect import Act, Kept, NotDone, NotPossible, PrepareAgain
from quire.workflows.retry import Fail
from quire.workspace.addresses import one_address
from quire.workspace.calendar.making import as_event, no_guests_of_a_robot
from quire.workspace.calendar.times import PRIMARY, end_of, from_to, same_time, start_of
from quire.workspace.connection import google, refusing, sure
from quire.workspace.declaring import Given, google_effect
from quire.workspace.values import Event, outside_key

Json = dict[str, Any]
EventLike = Event | str | Mapping[str, Any]


def _id(event: EventLike) -> str:
    if isinstance(event, Event):
        return event.id
    return str(event.get("id", "")) if isinstance(event, Mapping) else event


def _calendar(given: Given) -> str:
    if isinstance(given.event, Event):
        return given.event.calendar
    return str(given.event.get("calendar", PRIMARY)) if isinstance(given.event, Mapping) else str(given.calendar)


def _mark(act: Act[Any]) -> str:
    return f"quire_{outside_key(act.key)}"


def _marked(event: Mapping[str, Any], mark: str) -> bool:
    return mark in ((event.get("extendedProperties") or {}).get("private") or {})


async def _read(act: Act[Any], given: Given) -> Json:
    with refusing():
        found = await (await google(act.connection)).calendar.events_get(_calendar(given), _id(given.event))
    if found.get("status") == "cancelled" and not _marked(found, _mark(act)):
        raise Fail(f"the event {found.get('summary', '')!r} has been cancelled")
    return found


def _whole(time: Json) -> Json:
    """A moment for a patch, which merges: a day and a moment may not stand side by side."""
    return {"date": None, "dateTime": None, **time}


def _wanted(given: Given, found: Json) -> Json:
    wanted: Json = {name: getattr(given, name) for name in ("description", "location")}
    wanted["summary"] = given.title
    if given.start is not None or given.lasts is not None:
        start = start_of(found) if given.start is None else given.start
        long = end_of(found) - start_of(found) if given.lasts is None else given.lasts
        times = from_to(str(found.get("summary", "")), start, long, given.zone)
        wanted |= {name: _whole(time) for name, time in times.items()}
    if given.invite:
        guests = list(found.get("attendees", []))
        known = {str(one.get("email", "")).lower() for one in guests}
        new = [one_address(person, "invite") for person in given.invite]
        wanted["attendees"] = [*guests, *({"email": one} for one in new if one.lower() not in known)]
    return {name: value for name, value in wanted.items() if value is not None}


async def _check(act: Act[Any], given: Given) -> Json:
    if given.on_conflict not in ("merge", "stop"):
        raise Fail(f"on_conflict is {given.on_conflict!r}; it may be 'merge' or 'stop'")
    found = await _read(act, given)
    wanted = _wanted(given, found)
    if not wanted:
        raise Fail(f"nothing is to be changed of {found.get('summary', '')!r}: name a field, like title=")
    credentials = (await google(act.connection)).transport.credentials
    if given.invite:
        no_guests_of_a_robot(credentials.account, str(getattr(credentials, "subject", "")), str(found.get("summary")))
    before = {name: found.get(name) for name in wanted}
    return {"etag": str(found["etag"]), "wanted": wanted, "before": before, "calendar": _calendar(given)}


async def _find(act: Act[Any], given: Given) -> Event | NotDone:
    found = await (await google(act.connection)).calendar.events_get(act.prepared["calendar"], _id(given.event))
    if _marked(found, _mark(act)):
        return await as_event(act, found, act.prepared["calendar"], notify=given.notify)
    return PrepareAgain("the event has not the mark of this change")


async def _patch(act: Act[Any], given: Given, body: Json) -> Event:
    calendar = act.prepared["calendar"]
    client = (await google(act.connection)).calendar
    body = {**body, "extendedProperties": {"private": {_mark(act): "1"}}}
    try:
        with sure():
            found = await client.events_patch(
                calendar, _id(given.event), body, notify=given.notify, etag=act.prepared["etag"]
            )
    except NotDone as error:
        if not isinstance(error.__cause__, Changed):
            raise
        if given.on_conflict == "stop":
            raise NotPossible(await _conflict(act, given)) from error
        raise PrepareAgain(str(error)) from error
    return await as_event(act, found, calendar, notify=given.notify)


async def _conflict(act: Act[Any], given: Given) -> str:
    found = await (await google(act.connection)).calendar.events_get(act.prepared["calendar"], _id(given.event))
    other = [name for name, value in act.prepared["before"].items() if not _same(name, found.get(name), value)]
    what = f"its {' and '.join(sorted(other))}" if other else "something else of it"
    return f"the event {found.get('summary', '')!r} was changed meanwhile, {what}; it was not changed here"


def _same(name: str, there: Any, ours: Any) -> bool:
    if name in ("start", "end"):
        return bool(there) and bool(ours) and same_time(_there(there), _there(ours))
    if name == "attendees":
        return _emails(there) == _emails(ours)
    return (there or "") == (ours or "")


def _there(time: Json) -> Json:
    return {name: value for name, value in time.items() if value is not None}


def _emails(guests: Any) -> set[str]:
    return {str(one.get("email", "")).lower() for one in guests or ()}


async def _undo(act: Act[Any], changed: Event) -> Kept | None:
    """Put back the fields that were set here, as far as they are still ours."""
    client = (await google(act.connection)).calendar
    wanted, before = act.prepared["wanted"], act.prepared["before"]
    try:
        found = await client.events_get(changed.calendar, changed.id)
    except Missing:
        return Kept("the event is gone")
    if all(_same(name, found.get(name), value) for name, value in before.items()):
        return None
    ours = [name for name, value in wanted.items() if _same(name, found.get(name), value)]
    back: Json = {name: _back(name, before[name], found) for name in ours}
    if back:
        await client.events_patch(changed.calendar, changed.id, back, notify=changed.invited, etag=str(found["etag"]))
    others = sorted(wanted.keys() - set(ours))
    return Kept(f"somebody has changed the {' and '.join(others)} of the event since; that stays") if others else None


def _back(name: str, before: Any, found: Json) -> Any:
    if name == "attendees":
        kept = _emails(before)
        return [one for one in found.get("attendees", ()) if str(one.get("email", "")).lower() in kept]
    if name in ("start", "end"):
        return _whole(before)
    return before or ""


@google_effect(check=_check, find=_find, undo=_undo, timeout="30s")
async def update(
    act: Act[Any],
    event: EventLike,
    *,
    title: str | None = None,
    start: datetime | date | None = None,
    lasts: Span | None = None,
    zone: str = "",
    invite: Sequence[str] = (),
    description: str | None = None,
    location: str | None = None,
    calendar: str = PRIMARY,
    notify: bool = True,
    on_conflict: str = "merge",
) -> Event:
    """Change an event: only what is named. ``invite`` adds guests.

    If somebody changes it meanwhile, it is changed as it is then, or with ``on_conflict="stop"`` the step fails.
    """
    given = _Arguments(event=event, notify=notify, on_conflict=on_conflict)
    return await _patch(act, given, act.prepared["wanted"])


async def _check_cancel(act: Act[Any], given: Given) -> Json:
    found = await _read(act, given)
    return {"etag": str(found["etag"]), "calendar": _calendar(given), "before": {"status": found.get("status")}}


async def _confirm(act: Act[Any], cancelled: Event) -> Kept | None:
    client = (await google(act.connection)).calendar
    try:
        found = await client.events_get(cancelled.calendar, cancelled.id)
        if found.get("status") == "cancelled":
            body = {"status": act.prepared["before"]["status"] or "confirmed"}
            await client.events_patch(cancelled.calendar, cancelled.id, body, notify=cancelled.invited, etag="")
    except Missing:
        return Kept("the event is gone for good")
    return None


@google_effect(check=_check_cancel, find=_find, undo=_confirm, timeout="30s")
async def cancel(act: Act[Any], event: EventLike, *, calendar: str = PRIMARY, notify: bool = True) -> Event:
    """Cancel an event. Its guests hear of it, unless ``notify=False``."""
    return await _patch(act, _Arguments(event=event, notify=notify, on_conflict="merge"), {"status": "cancelled"})


class _Arguments:
    """The arguments of a change."""

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)
