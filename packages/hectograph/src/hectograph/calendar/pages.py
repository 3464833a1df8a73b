"""The page ``/calendar``: an account's events, and buttons by which an invited person answers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from hectograph.calendar.event import Event, moment, span
from hectograph.calendar.store import Calendar
from hectograph.core.html import back, button, escape, form, given, link, page, quoted
from hectograph.core.http import Request, Response

if TYPE_CHECKING:
    from hectograph.calendar.api import CalendarApi

_ANSWERS = (("accepted", "yes"), ("tentative", "maybe"), ("declined", "no"))


def show(api: CalendarApi, request: Request) -> Response:
    _, _, rest = request.path.strip("/").partition("/")
    if request.method == "POST":
        sent = given(request)
        api.world.act({**sent, "do": "calendar.answer"})
        return back("/calendar/" + quoted(sent["as"]))
    with api.world.lock:
        if rest:
            return _account(api, rest.lower())
        people = sorted(one.calendar_id for one in api.store.held.values() if one.primary)
    lines = "".join(f"<li>{link('/calendar/' + quoted(one), one)}</li>" for one in people)
    return page("Calendars", f"<ul>{lines}</ul>" if lines else "<p class=quiet>No calendars yet.</p>", "/calendar")


def _account(api: CalendarApi, account: str) -> Response:
    out = ""
    for calendar in api.store.listed(account):
        low = api.world.now() - timedelta(days=31)
        found = [one for one in _events(calendar, low) if one.status != "cancelled"]
        found.sort(key=lambda one: moment(one.fields["start"], calendar.time_zone))
        if not found and calendar.calendar_id != account:
            continue
        if calendar.calendar_id != account:
            out += f"<h2>{escape(calendar.summary)}</h2>"
        out += "".join(_card(calendar, one, account) for one in found) or "<p class=quiet>Nothing here.</p>"
    return page(account, out, "/calendar")


def _events(calendar: Calendar, low: datetime) -> list[Event]:
    out: list[Event] = []
    for event in calendar.events.values():
        if event.fields.get("recurrence") and event.status != "cancelled":
            out += [one for one in calendar.instances(event, low + timedelta(days=92)) if _ends(calendar, one) >= low]
        elif not event.series and not event.stub:
            out.append(event)
    return out


def _ends(calendar: Calendar, event: Event) -> datetime:
    return span(event, calendar.time_zone)[1]


def _card(calendar: Calendar, event: Event, account: str) -> str:
    fields = event.fields
    if "date" in fields["start"]:
        when = fields["start"]["date"]
    else:
        first, last = (one.astimezone(calendar.zone or UTC) for one in span(event, calendar.time_zone))
        when = f"{first:%a %d %b %Y %H:%M} – {last:%H:%M} ({calendar.time_zone})"
    guests = ", ".join(f"{escape(one['email'])} ({_word(one['responseStatus'])})" for one in event.attendees)
    texts = [fields.get("location", ""), fields.get("description", ""), f"by {event.organizer}"]
    mine = event.attendee(account)
    answers = ""
    if mine is not None and event.organizer != account:
        words = "".join(
            button(word, "answer", value, "on" if mine["responseStatus"] == value else "plain")
            for value, word in _ANSWERS
        )
        answers = form(
            "/calendar", f"<div class=row><span>Going?</span>{words}</div>", {"as": account, "event": event.event_id}
        )
    return (
        f"<div class=card><b>{escape(fields.get('summary', '(no title)'))}</b><div>{escape(when)}</div>"
        + "".join(f"<div class=quiet>{escape(text)}</div>" for text in texts if text)
        + (f"<div>{guests}</div>" if guests else "")
        + answers
        + "</div>"
    )


def _word(answer: str) -> str:
    return {"needsAction": "no answer yet", "tentative": "maybe"}.get(answer, answer)
