"""The Calendar v3 API: which method does what."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from hectograph.calendar import listing, notices, pages, recurrence
from hectograph.calendar.event import (
    Event,
    Fields,
    checked,
    refused,
    rescheduled,
    rfc3339,
    shown,
    zone,
)
from hectograph.calendar.lists import Lists
from hectograph.calendar.quick import meeting, words
from hectograph.calendar.rest import Rest
from hectograph.calendar.store import ROLES, Calendar, Calendars, reminders
from hectograph.core.error import CALENDAR, ApiError
from hectograph.core.http import Request, Response
from hectograph.core.quota import PROJECT, Charge, Exceeded, Limit
from hectograph.core.service import Act, MethodCall, Play, Service

if TYPE_CHECKING:
    from hectograph.world import World

_ID = re.compile(r"[a-v0-9]{5,1024}")


class CalendarApi(Service):
    version = "calendar.v3"
    envelope = CALENDAR
    strict = False
    pages = ("/calendar",)
    limits: ClassVar = {"queries": Limit(per_user=600, per_project=10_000)}
    switches: ClassVar = {
        # For how many days a sync token and ``updatedMin`` are good.
        "sync_days": (28.0,),
        # Whether ``quickAdd`` reads words for times, or takes the next full hour.
        "quick_add": ("words", "next_hour"),
        # Whether a secondary calendar names its ``dataOwner``, as answers of 2026 do and those of 2025 do not.
        "calendar_data_owner": (False, True),
    }

    def __init__(self, world: World, base: Callable[[], str]) -> None:
        super().__init__(world, base)
        self.store = Calendars(world.now, world.time_zone)
        self.outgoing = world.outgoing
        self.lists = Lists(self)
        self.rest = Rest(self)

    def methods(self) -> Mapping[str, Play]:
        return {
            **{f"events.{name}": play for name, play in self._of_events().items()},
            **self.lists.methods(),
            **self.rest.methods(),
            "settings.watch": lambda call: self._watched(call, "users/me/settings"),
            "calendarList.watch": lambda call: self._watched(call, "users/me/calendarList"),
            "acl.watch": lambda call: self._watched(call, f"calendars/{self.calendar(call, 'owner').calendar_id}/acl"),
            "channels.stop": self.stop,
        }

    def _of_events(self) -> Mapping[str, Play]:
        return {
            "insert": self.insert,
            "import": self.import_,
            "get": self.get,
            "list": lambda call: listing.listed(self, call, self.calendar(call)),
            "instances": self.instances,
            "patch": self.patch,
            "update": self.update,
            "delete": self.delete,
            "move": self.move,
            "quickAdd": self.quick_add,
            "watch": self.watch,
        }

    def acts(self) -> Mapping[str, Act]:
        return {"calendar.answer": self.answer}

    def charges(self, call: MethodCall) -> Iterable[Charge]:
        return [Charge("queries")]

    def over(self, found: Exceeded) -> ApiError:
        reason = "userRateLimitExceeded" if found.scope == "user" else "rateLimitExceeded"
        text = "User Rate Limit Exceeded" if found.scope == "user" else "Rate Limit Exceeded"
        return self.refuse(403, text, reason, domain="usageLimits")

    def dump(self) -> Any:
        return self.store.dump()

    def load(self, held: Any) -> None:
        self.store.load(held)

    def clear(self) -> None:
        self.store = Calendars(self.world.now, self.world.time_zone)

    def show(self, request: Request) -> Response:
        return pages.show(self, request)

    # What many methods need.

    def calendar(self, call: MethodCall, role: str = "freeBusyReader") -> Calendar:
        """Return the calendar that the path names, where the caller has the role on it."""
        account = call.caller.email.lower()
        found = self.store.find(call.parts["calendarId"], account)
        if found is None:
            raise self.refuse(404, "Not Found", "notFound")
        if ROLES.index(found.role(account)) < ROLES.index(role):
            text = f"You need to have {role} access to this calendar."
            raise self.refuse(403, text, "requiredAccessLevel", domain="calendar")
        return found

    def event(self, call: MethodCall, calendar: Calendar) -> Event:
        found = calendar.find(call.parts["eventId"])
        if found is None:
            raise self.refuse(404, "Not Found", "notFound")
        return found

    def shown(self, call: MethodCall, calendar: Calendar, event: Event) -> Fields:
        account = call.caller.email.lower()
        where = call.text("timeZone") or calendar.time_zone
        return self.seen(calendar, event, account, where)

    def seen(self, calendar: Calendar, event: Event, account: str, where: str) -> Fields:
        title, usual = self.store.title(event.organizer), reminders(calendar, account)
        return shown(event, calendar.calendar_id, title, where, calendar.time_zone, usual)

    def _answered(self, found: Any, call: MethodCall) -> Response:
        answer = super()._answered(found, call)
        if isinstance(found, dict) and "etag" in found:
            answer.headers["ETag"] = found["etag"]
        return answer

    def _check_match(self, call: MethodCall, event: Event) -> None:
        wanted = call.request.headers.get("if-match", "")
        if wanted and wanted != "*" and event.etag not in {one.strip().removeprefix("W/") for one in wanted.split(",")}:
            raise self.refuse(
                412, "Precondition Failed", "conditionNotMet", location="If-Match", location_type="header"
            )

    def _sends(self, call: MethodCall, event: Event) -> list[str]:
        """Return the guests who get a mail about a change."""
        mode = call.text("sendUpdates") or ("all" if call.flag("sendNotifications") else "none")
        guests = [one["email"] for one in event.attendees if one["email"] != event.organizer]
        if mode == "externalOnly":
            home = event.creator.rpartition("@")[2]
            return [one for one in guests if one.rpartition("@")[2] != home]
        return guests if mode == "all" else []

    def tell(self, calendar: Calendar) -> None:
        self.world.channels.tell(f"calendar/calendars/{calendar.calendar_id}/events")

    def _land(self, calendar: Calendar, event: Event) -> None:
        """Store a change on the organiser's calendar, and in the copies of the guests."""
        self.store.put(calendar, event)
        if event.organizer == calendar.calendar_id:
            self.store.share(calendar, event)
        self.tell(calendar)

    # Events.

    def insert(self, call: MethodCall) -> Any:
        calendar = self.calendar(call, "writer")
        given = call.body(loose=True)
        event = self._made(call, calendar, given)
        self._land(calendar, event)
        notices.notify(self.outgoing, event, calendar.time_zone, "REQUEST", self._sends(call, event))
        return self.shown(call, calendar, event)

    def _made(self, call: MethodCall, calendar: Calendar, given: Fields) -> Event:
        event_id = given.get("id") or self.store.mint()
        if not _ID.fullmatch(event_id):
            raise refused("Invalid resource id value.")
        uid = given.get("iCalUID")
        if "id" in given and uid and uid.partition("@")[0] != event_id:
            raise refused("The id and the iCalUID of an event cannot both be given, unless they are of one event.")
        if event_id in calendar.events:
            raise self.refuse(409, "The requested identifier already exists.", "duplicate")
        fields = self._fields(call, calendar, given)
        now = self.store.moment()
        account = call.caller.email.lower()
        status = given.get("status", "confirmed")
        return Event(
            event_id,
            fields,
            account,
            calendar.calendar_id,
            now,
            now,
            0,
            status,
            int(given.get("sequence", 0)),
            uid or f"{event_id}@google.com",
        )

    def _fields(self, call: MethodCall, calendar: Calendar, given: Fields, before: Fields | None = None) -> Fields:
        """Return the fields of a new or changed event as they are stored."""
        fields = checked(self._conference(call, given, before or {}), calendar.calendar_id)
        if fields.get("attendees") and call.caller.robot and not (before or {}).get("attendees"):
            text = "Service accounts cannot invite attendees without Domain-Wide Delegation of Authority."
            raise self.refuse(403, text, "forbiddenForServiceAccounts", domain="calendar")
        if "recurrence" in fields:
            recurrence.read(fields["recurrence"], zone(fields["start"].get("timeZone", "")) or UTC)
        return fields

    def _conference(self, call: MethodCall, given: Fields, before: Fields) -> Fields:
        """Return the fields with a video conference, where one is asked for: the same request, the same conference."""
        out = dict(given)
        data = out.pop("conferenceData", None)
        if call.number("conferenceDataVersion", 0) < 1:
            data = before.get("conferenceData")
        elif data and "createRequest" in data:
            data = meeting(call.caller.email, data["createRequest"])
        return out | ({"conferenceData": data} if data else {})

    def import_(self, call: MethodCall) -> Any:
        """Add somebody else's event by its iCalUID; the second time changes the first."""
        calendar = self.calendar(call, "writer")
        given = call.body(loose=True)
        uid = given.get("iCalUID")
        if not uid:
            raise refused("Missing iCalUID.", "required")
        given.pop("id", None)
        held = next((one for one in calendar.events.values() if one.uid == uid), None)
        event = self._made(call, calendar, given)
        event.event_id = "_" + base64.b32hexencode(uid.encode()).decode().rstrip("=").lower()
        if held is not None:
            event.event_id, event.created = held.event_id, held.created
        event.organizer = str(given.get("organizer", {}).get("email", calendar.calendar_id)).lower()
        self.store.put(calendar, event)
        self.tell(calendar)
        return self.shown(call, calendar, event)

    def get(self, call: MethodCall) -> Any:
        calendar = self.calendar(call, "reader")
        event = self.event(call, calendar)
        if event.etag in call.request.headers.get("if-none-match", ""):
            return Response(304, b"", {"ETag": event.etag})
        return self.shown(call, calendar, event)

    def instances(self, call: MethodCall) -> Any:
        calendar = self.calendar(call, "reader")
        return listing.instances(self, call, calendar, self.event(call, calendar))

    def patch(self, call: MethodCall) -> Any:
        calendar = self.calendar(call, "writer")
        event = self.event(call, calendar)
        self._check_match(call, event)
        new = merged(self._raw(calendar, event), call.body(loose=True), call.request.json())
        return self._changed(call, calendar, event, new)

    def update(self, call: MethodCall) -> Any:
        calendar = self.calendar(call, "writer")
        event = self.event(call, calendar)
        self._check_match(call, event)
        return self._changed(call, calendar, event, call.body(loose=True))

    def _raw(self, calendar: Calendar, event: Event) -> Fields:
        """Return an event as a caller would send it."""
        return {**event.fork().fields, "status": event.status}

    def _changed(self, call: MethodCall, calendar: Calendar, event: Event, given: Fields) -> Any:
        new = event.fork()
        new.fields = self._fields(call, calendar, given, event.fields)
        new.status = given.get("status", event.status)
        new.stub = False
        before = self.shown(call, calendar, event)
        if self.shown(call, calendar, new) == before and not event.stub:
            return before  # nothing changed: the etag stays, too
        if event.organizer != calendar.calendar_id and self.store.organizing(event) is not None:
            return self.shown(call, calendar, self._guest_changed(calendar, event, new, call))
        if rescheduled(event.fields, new.fields):
            new.sequence += 1
        if "sequence" in given and int(given["sequence"]) > new.sequence:
            new.sequence = int(given["sequence"])
        self._land(calendar, new)
        method = "CANCEL" if new.status == "cancelled" and event.status != "cancelled" else "UPDATE"
        fresh = {one["email"] for one in new.attendees} - {one["email"] for one in event.attendees}
        for email in self._sends(call, new):
            how = "REQUEST" if method == "UPDATE" and email in fresh else method
            notices.notify(self.outgoing, new, calendar.time_zone, how, [email])
        left = [one for one in self._sends(call, event) if new.attendee(one) is None]
        notices.notify(self.outgoing, new, calendar.time_zone, "CANCEL", left)
        return self.shown(call, calendar, new)

    def _guest_changed(self, calendar: Calendar, event: Event, new: Event, call: MethodCall) -> Event:
        """Take what a guest may change of an event: the own answer, and what every copy has for itself."""
        before, after = dict(event.fields), dict(new.fields)
        mine, was = new.attendee(calendar.calendar_id), event.attendee(calendar.calendar_id)
        for fields in (before, after):
            for name in ("reminders", "colorId", "transparency", "visibility", "extendedProperties", "attendees"):
                fields.pop(name, None)
        if before != after and not event.fields.get("guestsCanModify"):
            text = "Shared properties can only be changed by the organizer of the event."
            raise self.refuse(403, text, "forbiddenForNonOrganizer", domain="calendar")
        self.store.put(calendar, new)
        if mine is not None and mine != was:
            self._spread_answer(calendar, new, mine, notify=call.text("sendUpdates") in {"all", "externalOnly"})
        self.tell(calendar)
        return calendar.events[event.event_id]

    def _spread_answer(self, calendar: Calendar, event: Event, mine: Fields, *, notify: bool) -> None:
        """Bring a guest's answer to the organiser's copy, and from there to all others."""
        home = self.store.organizing(event)
        if home is None:
            return
        there = home.events[event.event_id].fork()
        for one in there.attendees:
            if one["email"] == calendar.calendar_id:
                one.update({k: v for k, v in mine.items() if k in {"responseStatus", "comment", "additionalGuests"}})
        self._land(home, there)
        if notify:
            answer, comment = mine["responseStatus"], mine.get("comment", "")
            notices.answered(self.outgoing, there, home.time_zone, calendar.calendar_id, answer, comment)

    def answer(self, given: Mapping[str, Any]) -> Any:
        """A person accepts, declines or doubts an invitation."""
        email, answer = str(given["as"]).lower(), str(given["answer"])
        if answer not in {"accepted", "declined", "tentative", "needsAction"}:
            raise ValueError(f"an answer is accepted, declined, tentative or needsAction, not {answer!r}")
        calendar = self.store.primary(email)
        event = calendar.find(str(given["event"]))
        mine = None if event is None else event.attendee(email)
        if event is None or mine is None:
            raise ValueError(f"{email} is not invited to {given['event']}")
        new = event.fork()
        mine = new.attendee(email)
        assert mine is not None
        mine["responseStatus"] = answer
        if given.get("comment"):
            mine["comment"] = str(given["comment"])
        self.store.put(calendar, new)
        self._spread_answer(calendar, new, mine, notify=bool(given.get("mail", True)))
        self.tell(calendar)
        self.world.dirty()
        return {"event": event.event_id, "answer": answer}

    def delete(self, call: MethodCall) -> Any:
        calendar = self.calendar(call, "writer")
        event = self.event(call, calendar)
        self._check_match(call, event)
        if event.status == "cancelled":
            raise self.refuse(410, "Resource has been deleted", "deleted")
        new = event.fork()
        new.status, new.sequence = "cancelled", event.sequence + 1
        if event.organizer != calendar.calendar_id and self.store.organizing(event) is not None:
            self.store.put(calendar, new)
            mine = new.attendee(calendar.calendar_id)
            if mine is not None:
                self._spread_answer(calendar, new, {**mine, "responseStatus": "declined"}, notify=False)
                self.store.put(calendar, new)
            self.tell(calendar)
            return Response(204)
        self._land(calendar, new)
        for other in calendar.exceptions(event.event_id).values():
            if other.status != "cancelled":
                gone = other.fork()
                gone.status = "cancelled"
                self._land(calendar, gone)
        notices.notify(self.outgoing, new, calendar.time_zone, "CANCEL", self._sends(call, event))
        return Response(204)

    def move(self, call: MethodCall) -> Any:
        """Give an event to another calendar. The answer is the old organiser's view of it."""
        calendar = self.calendar(call, "writer")
        event = self.event(call, calendar)
        there = self.store.find(call.text("destination"), call.caller.email.lower())
        if there is None:
            raise self.refuse(404, "Not Found", "notFound")
        if event.status == "cancelled" or event.series:
            raise self.refuse(400, "Cannot change the organizer of an instance.", "cannotChangeOrganizerOfInstance")
        if event.organizer != calendar.calendar_id:
            text = "Cannot change the organizer of this event."
            raise self.refuse(403, text, "cannotChangeOrganizer", domain="calendar")
        moved, left, answer = event.fork(), event.fork(), event.fork()
        moved.organizer = left.organizer = answer.organizer = there.calendar_id
        left.stub, left.status, answer.status = True, "cancelled", "cancelled"
        self.store.put(calendar, left)
        self._land(there, moved)
        self.tell(calendar)
        return self.shown(call, calendar, answer)

    def quick_add(self, call: MethodCall) -> Any:
        calendar = self.calendar(call, "writer")
        now = self.world.now().astimezone(calendar.zone)
        text, start = call.text("text"), now.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
        if self.world.switches["quick_add"] == "words":
            text, start = words(text, now, start)
        times = {
            name: {"dateTime": rfc3339(at), "timeZone": calendar.time_zone}
            for name, at in (("start", start), ("end", start + timedelta(hours=1)))
        }
        event = self._made(call, calendar, {"summary": text, **times})
        self._land(calendar, event)
        return self.shown(call, calendar, event)

    def watch(self, call: MethodCall) -> Any:
        calendar = self.calendar(call, "reader")
        key = f"calendars/{calendar.calendar_id}/events"
        return self._watched(call, key, f"calendars/{call.parts['calendarId']}/events")

    def _watched(self, call: MethodCall, key: str, place: str = "") -> Any:
        address = f"https://www.googleapis.com/calendar/v3/{place or key}?alt=json"
        return self.world.channels.open(f"calendar/{key}", call.body(), address)

    def stop(self, call: MethodCall) -> Any:
        given = call.body()
        if not self.world.channels.close(str(given.get("id")), str(given.get("resourceId"))):
            raise self.refuse(404, f"Channel '{given.get('id')}' not found for project '{PROJECT}'", "notFound")
        return Response(204)


def merged(old: Any, new: Any, raw: Any) -> Any:
    """Return an object with what a patch changes: objects are merged, lists replaced, null takes away."""
    if not isinstance(old, dict) or not isinstance(raw, dict):
        return new
    out = dict(old)
    for key, sent in raw.items():
        if sent is None:
            out.pop(key, None)
        elif isinstance(sent, dict) and isinstance(new, dict):
            out[key] = merged(out.get(key, {}), new.get(key, {}), sent)
        elif isinstance(new, dict) and key in new:
            out[key] = new[key]
    return out
