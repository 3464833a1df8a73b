"""One event on one calendar, its times, and its checks."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

from hectograph.core.clock import stamp
from hectograph.core.error import CALENDAR, ApiError

Fields = dict[str, Any]

#: Fields that every copy of an event has for itself.
OWN = frozenset({"reminders", "colorId", "transparency", "visibility"})

#: Fields whose change makes ``sequence`` rise: a guest who accepted must look again. A place is not one.
_SCHEDULE = ("start", "end", "recurrence")

_ADDRESS = re.compile(r"[^@\s<>,;]+@[^@\s<>,;.]+(\.[^@\s<>,;.]+)+")


@dataclass
class Event:
    """A copy of an event. Each guest's calendar holds a copy of its own under the same id."""

    event_id: str
    #: What callers set: texts, times, guests, recurrence, properties.
    fields: Fields
    creator: str
    #: The calendar that decides: for the primary one, its account's address.
    organizer: str
    created: datetime
    updated: datetime
    #: The number of its last change. Sync tokens count these.
    change: int
    status: str = "confirmed"
    sequence: int = 0
    uid: str = ""
    #: What remains on the calendar that an event was moved away from.
    stub: bool = False
    #: The id of the event that this one is an exception of.
    series: str = ""
    #: The time at which the exception would have begun.
    original: Fields = field(default_factory=dict)

    @property
    def etag(self) -> str:
        return f'"{int(self.updated.timestamp()) * 2_000_000 + self.updated.microsecond * 2}"'

    @property
    def attendees(self) -> list[Fields]:
        found: list[Fields] = self.fields.get("attendees", [])
        return found

    def attendee(self, email: str) -> Fields | None:
        return next((one for one in self.attendees if one["email"] == email), None)

    def fork(self) -> Event:
        return deepcopy(self)

    def dump(self) -> Fields:
        return {**self.__dict__, "created": self.created.isoformat(), "updated": self.updated.isoformat()}

    @classmethod
    def load(cls, held: Mapping[str, Any]) -> Event:
        times = {name: datetime.fromisoformat(held[name]) for name in ("created", "updated")}
        return cls(**{**held, **times})


@cache
def zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None


def refused(text: str, reason: str = "invalid") -> ApiError:
    return CALENDAR.refusal(400, text, reason)


def empty_range() -> ApiError:
    text = "The specified time range is empty."
    return CALENDAR.refusal(400, text, "timeRangeEmpty", domain="calendar", location="timeMax")


def read_time(given: Mapping[str, Any], word: str, *, repeats: bool) -> Fields:
    """Return a start or end as it is stored: a date, or a moment with its offset and the zone that was named."""
    if not given:
        raise refused(f"Missing {word} time.", "required")
    if given.get("date") and given.get("dateTime"):
        raise refused(f"Invalid {word} time.")
    if given.get("date"):
        try:
            return {"date": date.fromisoformat(str(given["date"])).isoformat()}
        except ValueError as error:
            raise refused(f"Invalid {word} time.") from error
    if not given.get("dateTime"):
        raise refused(f"Missing {word} time.", "required")
    try:
        moment = datetime.fromisoformat(str(given["dateTime"]))
    except ValueError as error:
        raise refused(f"Invalid {word} time.") from error
    name = given.get("timeZone", "")
    found = zone(name) if name else None
    if name and found is None:
        raise refused(f"Invalid time zone definition for {word} time.")
    if (moment.tzinfo is None or repeats) and found is None:
        raise refused(f"Missing time zone definition for {word} time.", "required")
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=found)
    return {"dateTime": moment.astimezone(UTC).isoformat()} | ({"timeZone": name} if name else {})


def moment(stored: Mapping[str, Any], home: str) -> datetime:
    """Return when a stored time is. A date begins at midnight of the calendar's zone."""
    if "dateTime" in stored:
        return datetime.fromisoformat(stored["dateTime"]).astimezone(UTC)
    return datetime.combine(date.fromisoformat(stored["date"]), time(), zone(home) or UTC).astimezone(UTC)


def shown_time(stored: Mapping[str, Any], shown_in: str, home: str) -> Fields:
    """Return a time as answers have it: in the zone of the calendar or of the question, with the zone of the event."""
    if "date" in stored:
        return {"date": stored["date"]}
    local = datetime.fromisoformat(stored["dateTime"]).astimezone(zone(shown_in) or UTC)
    return {"dateTime": rfc3339(local), "timeZone": stored.get("timeZone") or home}


def rfc3339(local: datetime) -> str:
    return local.isoformat(timespec="seconds").replace("+00:00", "Z")


def check_order(start: Mapping[str, Any], end: Mapping[str, Any]) -> None:
    if ("date" in start) != ("date" in end):
        raise refused("Start and end times must either both be date or both be dateTime.")
    if moment(end, "UTC") < moment(start, "UTC"):
        raise empty_range()


def read_attendees(given: list[Fields], organizer: str) -> list[Fields]:
    """Return guests as they are stored. A guest who has not answered needs action."""
    out: dict[str, Fields] = {}
    for one in given:
        email = str(one.get("email", "")).strip()
        if not _ADDRESS.fullmatch(email):
            raise refused("Invalid attendee email.")
        email = email.lower()
        usual = "accepted" if email == organizer else "needsAction"
        kept = {key: value for key, value in one.items() if key not in {"id", "self", "organizer"} and value != ""}
        out[email] = {**kept, "email": email, "responseStatus": one.get("responseStatus") or usual}
    return list(out.values())


def checked(fields: Fields, organizer: str) -> Fields:
    """Return the fields of an event as they are stored, or refuse them."""
    out = {key: value for key, value in fields.items() if value not in ("", [], {}) and key not in _NOT_KEPT}
    repeats = bool(out.get("recurrence"))
    out["start"] = read_time(fields.get("start") or {}, "start", repeats=repeats)
    if out.get("endTimeUnspecified") and not fields.get("end"):
        fields = {**fields, "end": out["start"]}
    out["end"] = read_time(fields.get("end") or {}, "end", repeats=repeats)
    check_order(out["start"], out["end"])
    if "attendees" in out:
        out["attendees"] = read_attendees(out["attendees"], organizer)
    return out


_GOOGLES = (
    "id kind etag status created updated creator organizer iCalUID sequence htmlLink hangoutLink recurringEventId"
    " originalStartTime attendeesOmitted locked privateCopy"
)
#: What only Google sets, or what stands beside the fields.
_NOT_KEPT = frozenset(_GOOGLES.split())


def rescheduled(before: Fields, after: Fields) -> bool:
    """Whether a change is one that guests must hear of anew."""
    return any(before.get(name) != after.get(name) for name in _SCHEDULE)


def span(event: Event, home: str) -> tuple[datetime, datetime]:
    return moment(event.fields["start"], home), moment(event.fields["end"], home)


def lasts(fields: Fields) -> timedelta:
    return moment(fields["end"], "UTC") - moment(fields["start"], "UTC")


def shown(event: Event, calendar_id: str, title: str, shown_in: str, home: str, usual: list[Fields]) -> Fields:
    """Return an event as the API answers it to the owner of a calendar, whose usual reminders are given."""
    out: Fields = {"kind": "calendar#event", "etag": event.etag, "id": event.event_id, "status": event.status}
    out["htmlLink"] = "https://www.google.com/calendar/event?eid=" + link_id(event, calendar_id)
    if event.stub:
        first = {"dateTime": "2000-01-01T00:00:00Z", "timeZone": "UTC"}
        out |= {"updated": stamp(event.updated), "start": first, "end": first | {"dateTime": "2000-01-02T00:00:00Z"}}
        return out | {"transparency": "transparent", "iCalUID": event.uid}
    out |= {"created": event.created.strftime("%Y-%m-%dT%H:%M:%S.000Z"), "updated": stamp(event.updated)}
    fields = deepcopy(event.fields)
    if fields.get("transparency") == "opaque":
        del fields["transparency"]
    if fields.get("visibility") == "default":
        del fields["visibility"]
    out |= {key: value for key, value in fields.items() if value is not False and key not in {"start", "end"}}
    for flag in ("guestsCanInviteOthers", "guestsCanSeeOtherGuests"):
        if fields.get(flag) is False:
            out[flag] = False
        else:
            out.pop(flag, None)
    out["creator"] = _who(event.creator, calendar_id)
    out["organizer"] = _who(event.organizer, calendar_id)
    if title:
        out["organizer"]["displayName"] = title
    out["start"], out["end"] = (shown_time(fields[name], shown_in, home) for name in ("start", "end"))
    if "attendees" in out:
        out["attendees"] = [_guest(one, event.organizer, calendar_id) for one in fields["attendees"]]
    if event.series:
        out["recurringEventId"] = event.series
        out["originalStartTime"] = shown_time(event.original, shown_in, home)
    for one in fields.get("conferenceData", {}).get("entryPoints", ()):
        if one.get("entryPointType") == "video":
            out["hangoutLink"] = one["uri"]
    out |= {"iCalUID": event.uid, "sequence": event.sequence}
    if "reminders" not in out:
        whole_day = "date" in fields["start"]
        out["reminders"] = {"useDefault": not whole_day}
        if whole_day and usual:
            out["reminders"]["overrides"] = deepcopy(usual)
    out.setdefault("eventType", "default")
    return out


def link_id(event: Event, calendar_id: str) -> str:
    """Return what stands in the address of an event's page: its id and its calendar's, encoded."""
    place = calendar_id.replace("@group.calendar.google.com", "@g").replace("@gmail.com", "@m")
    return base64.b64encode(f"{event.event_id} {place}".encode()).decode().rstrip("=")


def _who(email: str, me: str) -> Fields:
    return {"email": email} | ({"self": True} if email == me else {})


def _guest(stored: Fields, organizer: str, me: str) -> Fields:
    out = {key: value for key, value in stored.items() if value is not False}
    if stored["email"] == organizer:
        out["organizer"] = True
    if stored["email"] == me:
        out["self"] = True
    return out
