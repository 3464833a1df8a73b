"""``events.list`` and ``events.instances``: bounds, order, search, pages and sync tokens."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from hectograph.calendar.event import Event, Fields, empty_range, moment, refused, rfc3339, span
from hectograph.calendar.store import Calendar, digest, reminders
from hectograph.core.clock import stamp
from hectograph.core.error import CALENDAR, ApiError
from hectograph.core.service import MethodCall

if TYPE_CHECKING:
    from hectograph.calendar.api import CalendarApi

#: What a sync token forbids beside it.
_NOT_WITH_SYNC = (
    "iCalUID",
    "orderBy",
    "privateExtendedProperty",
    "q",
    "sharedExtendedProperty",
    "timeMin",
    "timeMax",
    "updatedMin",
)

#: A first look with one of these gives no sync token: a later look could not be compared with it.
_NO_TOKEN = ("iCalUID", "orderBy", "privateExtendedProperty", "q", "sharedExtendedProperty", "updatedMin")

#: An event without an end of its series is followed so far.
_HORIZON = timedelta(days=3 * 366)


def listed(api: CalendarApi, call: MethodCall, calendar: Calendar) -> Fields:
    """Answer ``events.list``."""
    size = call.number("maxResults", 250, 2500)
    if size < 1:
        raise refused("Invalid value for maxResults.")
    page = _read(call.text("pageToken"), "Invalid page token value.") if call.text("pageToken") else None
    token = page.get("sync") if page else _sync(api, call)
    order = call.text("orderBy")
    if order == "startTime" and not call.flag("singleEvents"):
        raise CALENDAR.refusal(
            400, "The requested ordering is not available for the particular query.", "invalid", location="orderBy"
        )
    asked = token["asked"] if token else _asked(call)
    until = page["until"] if page else api.store.changes
    found = _found(api, call, calendar, asked, token)
    if order == "startTime":
        found.sort(key=lambda one: (moment(one.fields["start"], calendar.time_zone), one.event_id))
    elif order == "updated" or token:
        found.sort(key=lambda one: one.change)
    start = page["at"] if page else 0
    out = _head(call, calendar)
    bare = token is not None and not call.flag("showDeleted")
    out["items"] = [_item(api, call, calendar, one, bare) for one in found[start : start + size]]
    if start + size < len(found):
        out["nextPageToken"] = _token({"at": start + size, "until": until, "sync": token})
    elif not any(call.text(name) for name in _NO_TOKEN):
        at = api.world.now().timestamp()
        out["nextSyncToken"] = _token({"change": until, "made": at, "asked": asked, "calendar": calendar.calendar_id})
    return out


def _item(api: CalendarApi, call: MethodCall, calendar: Calendar, event: Event, bare: bool) -> Fields:
    shown = api.shown(call, calendar, event)
    if event.status == "cancelled" and not event.stub and (bare or event.series):
        kept = ("kind", "etag", "id", "status", "recurringEventId", "originalStartTime")
        return {key: shown[key] for key in kept if key in shown}
    return shown


def _head(call: MethodCall, calendar: Calendar) -> Fields:
    account = call.caller.email.lower()
    return {
        "kind": "calendar#events",
        "etag": digest(calendar, calendar.updated),
        "summary": calendar.summary,
        "description": calendar.description,
        "updated": stamp(calendar.updated),
        "timeZone": call.text("timeZone") or calendar.time_zone,
        "accessRole": calendar.role(account),
        "defaultReminders": reminders(calendar, account),
    }


def _asked(call: MethodCall) -> Fields:
    """Return what a look asks for that later looks with its sync token ask for, too."""
    bounds = {name: call.text(name) for name in ("timeMin", "timeMax") if call.text(name)}
    for name, text in bounds.items():
        bounds[name] = bound(text, name).isoformat()
    if len(bounds) == 2 and bounds["timeMax"] <= bounds["timeMin"]:
        raise empty_range()
    return {"single": call.flag("singleEvents"), **bounds}


def bound(text: str, name: str) -> datetime:
    """Read a bound of a query: it needs an offset."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise CALENDAR.refusal(400, "Bad Request", "badRequest")
    return found.astimezone(UTC)


def _found(api: CalendarApi, call: MethodCall, calendar: Calendar, asked: Fields, token: Fields | None) -> list[Event]:
    low, high = (datetime.fromisoformat(asked[n]) if n in asked else None for n in ("timeMin", "timeMax"))
    since = int(token["change"]) if token else -1
    deleted = call.flag("showDeleted") or token is not None
    if call.text("updatedMin"):
        newest = _updated_min(api, call)
        deleted = True
    else:
        newest = None
    out = []
    for event in _expanded(api, calendar, bool(asked["single"]), high, since):
        if event.change <= since or (event.status == "cancelled" and not deleted):
            continue
        if newest is not None and event.updated < newest:
            continue
        if event.stub and not deleted:
            continue
        first, last = span(event, calendar.time_zone)
        repeats = bool(event.fields.get("recurrence"))
        if not repeats and ((low and last <= low) or (high and first >= high)):
            continue
        if repeats and (low or high) and not _any_between(calendar, event, low, high):
            continue
        if _matches(call, event):
            out.append(event)
    return out


def _expanded(api: CalendarApi, calendar: Calendar, single: bool, high: datetime | None, since: int) -> Iterator[Event]:
    limit = min(high or api.world.now() + _HORIZON, api.world.now() + 4 * _HORIZON) if single else None
    for event in list(calendar.events.values()):
        if not single or not event.fields.get("recurrence") or event.status == "cancelled":
            if single and event.series and event.status != "cancelled":
                continue  # the series yields it
            yield event
            continue
        for one in calendar.instances(event, limit):
            if one.status != "cancelled":
                yield one


def _any_between(calendar: Calendar, event: Event, low: datetime | None, high: datetime | None) -> bool:
    return any(low is None or span(one, calendar.time_zone)[1] > low for one in calendar.instances(event, high))


def _matches(call: MethodCall, event: Event) -> bool:
    fields = event.fields
    if call.text("iCalUID") and event.uid != call.text("iCalUID"):
        return False
    kinds = call.texts("eventTypes")
    if kinds and fields.get("eventType", "default") not in kinds:
        return False
    for name, part in (("privateExtendedProperty", "private"), ("sharedExtendedProperty", "shared")):
        held = fields.get("extendedProperties", {}).get(part, {})
        for wanted in call.texts(name):
            key, equals, value = wanted.partition("=")
            if not equals:
                raise refused(f"Invalid value for {name}.")
            if held.get(key) != value:
                return False
    text = call.text("q").casefold()
    if not text:
        return True
    people = [word for one in event.attendees for word in (one["email"], one.get("displayName", ""))]
    words = [fields.get(name, "") for name in ("summary", "description", "location")] + people + [event.organizer]
    whole = " ".join(words).casefold()
    return all(word in whole for word in text.split())


def _updated_min(api: CalendarApi, call: MethodCall) -> datetime:
    found = bound(call.text("updatedMin"), "updatedMin")
    if found < api.world.now() - timedelta(days=float(api.world.switches["sync_days"])):
        text = "The requested minimum modification time lies too far in the past."
        raise CALENDAR.refusal(410, text, "updatedMinTooLongAgo", domain="calendar", location="updatedMin")
    return found


def _sync(api: CalendarApi, call: MethodCall) -> Fields | None:
    """Return what a sync token says, or refuse one that is too old or does not go with the rest."""
    text = call.text("syncToken")
    if not text:
        return None
    if any(call.text(name) for name in _NOT_WITH_SYNC):
        raise CALENDAR.refusal(
            400, "Sync token cannot be used with other query restrictions.", "badRequest", location="syncToken"
        )
    token = _read(text, "Invalid sync token value.")
    age = api.world.now().timestamp() - float(token.get("made", 0))
    if age > float(api.world.switches["sync_days"]) * 86400 or int(token.get("change", 0)) > api.store.changes:
        raise full_sync()
    if "singleEvents" in call.request.query and call.flag("singleEvents") != token["asked"]["single"]:
        raise CALENDAR.refusal(400, "Invalid sync token value.", "invalid", location="syncToken")
    return token


def full_sync() -> ApiError:
    text = "Sync token is no longer valid, a full sync is required."
    return CALENDAR.refusal(410, text, "fullSyncRequired", domain="calendar", location="syncToken")


def _token(held: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(held, separators=(",", ":")).encode()).decode().rstrip("=")


def _read(text: str, wrong: str) -> Fields:
    try:
        found: Fields = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        found["at" if "at" in found else "change"] += 0
    except (ValueError, KeyError, TypeError, binascii.Error) as error:
        raise refused(wrong) from error
    return found


def instances(api: CalendarApi, call: MethodCall, calendar: Calendar, event: Event) -> Fields:
    """Answer ``events.instances``."""
    asked = _asked(call)
    low, high = (datetime.fromisoformat(asked[n]) if n in asked else None for n in ("timeMin", "timeMax"))
    until = high or api.world.now() + _HORIZON
    found = []
    for one in calendar.instances(event, until):
        if one.status == "cancelled" and not call.flag("showDeleted"):
            continue
        if low is not None and span(one, calendar.time_zone)[1] <= low:
            continue
        if call.text("originalStart") and _original(one, calendar) != _plain(call.text("originalStart")):
            continue
        found.append(one)
    size = call.number("maxResults", 250, 2500)
    start = _read(call.text("pageToken"), "Invalid page token value.")["at"] if call.text("pageToken") else 0
    out = _head(call, calendar)
    out["items"] = [api.shown(call, calendar, one) for one in found[start : start + size]]
    if start + size < len(found):
        out["nextPageToken"] = _token({"at": start + size})
    elif not asked.keys() - {"single"}:
        out["nextSyncToken"] = _token(
            {"change": api.store.changes, "made": api.world.now().timestamp(), "asked": asked}
        )
    return out


def _original(event: Event, calendar: Calendar) -> str:
    return event.original.get("date") or rfc3339(moment(event.original, calendar.time_zone))


def _plain(text: str) -> str:
    if len(text) == 10:
        return text
    return rfc3339(bound(text, "originalStart"))


def busy(api: CalendarApi, calendar: Calendar, low: datetime, high: datetime, shown_in: Any) -> list[Fields]:
    """Return the busy times between two moments, joined where they touch."""
    spans = []
    for event in _expanded(api, calendar, True, high, -1):
        first, last = span(event, calendar.time_zone)
        free = event.status == "cancelled" or event.stub or event.fields.get("transparency") == "transparent"
        me = event.attendee(calendar.calendar_id)
        declined = me is not None and me["responseStatus"] == "declined"
        if not free and not declined and last > low and first < high:
            spans.append((max(first, low), min(last, high)))
    out: list[list[datetime]] = []
    for first, last in sorted(spans):
        if out and first <= out[-1][1]:
            out[-1][1] = max(out[-1][1], last)
        else:
            out.append([first, last])
    return [
        {name: rfc3339(at.astimezone(shown_in)) for name, at in zip(("start", "end"), pair, strict=True)}
        for pair in out
    ]
