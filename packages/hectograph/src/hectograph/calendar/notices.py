"""The mails that a calendar sends: invitations, updates and cancellations to guests, answers to the organiser."""

from __future__ import annotations

from datetime import UTC, datetime
from email.message import EmailMessage

from hectograph.calendar.event import Event, moment, zone
from hectograph.core.outgoing import Outgoing

_HEADS = {"REQUEST": "Invitation", "UPDATE": "Updated invitation", "CANCEL": "Canceled event"}
_ANSWERS = {"accepted": "Accepted", "declined": "Declined", "tentative": "Tentatively Accepted"}


def notify(outgoing: Outgoing, event: Event, home: str, method: str, to: list[str]) -> None:
    """Mail guests what became of an event: ``REQUEST``, ``UPDATE`` or ``CANCEL``."""
    for email in to:
        head = f"{_HEADS[method]}: {_title(event)} @ {_when(event, home)}"
        _send(outgoing, event, home, event.organizer, email, head, "REQUEST" if method == "UPDATE" else method)


def answered(outgoing: Outgoing, event: Event, home: str, guest: str, answer: str, comment: str) -> None:
    """Mail the organiser what a guest answered."""
    head = f"{_ANSWERS.get(answer, 'Answered')}: {_title(event)} @ {_when(event, home)}"
    _send(outgoing, event, home, guest, event.organizer, head, "REPLY", comment)


def _title(event: Event) -> str:
    return " ".join(str(event.fields.get("summary", "(no title)")).split())


def _when(event: Event, home: str) -> str:
    start, end = event.fields["start"], event.fields["end"]
    if "date" in start:
        day = datetime.fromisoformat(start["date"])
        return f"{day:%a %b} {day.day}, {day.year}"
    local = zone(start.get("timeZone", home)) or UTC
    first, last = (moment(at, home).astimezone(local) for at in (start, end))
    return f"{first:%a %b} {first.day}, {first:%Y %H:%M} - {last:%H:%M} ({first:%Z})"


def _send(
    outgoing: Outgoing, event: Event, home: str, sender: str, to: str, head: str, method: str, comment: str = ""
) -> None:
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = sender, to, head
    mail["Auto-Submitted"] = "auto-generated"
    lines = [head, "", comment, event.fields.get("location", ""), event.fields.get("description", "")]
    mail.set_content("\n".join(line for line in lines if line is not None) + "\n")
    mail.add_alternative(_ics(event, home, method), subtype="calendar", params={"method": method})
    outgoing.send("invitation", sender, (to,), head, mail.as_string())


def _ics(event: Event, home: str, method: str) -> str:
    """Return the event as iCalendar text."""

    def at(name: str) -> str:
        stored = event.fields[name]
        if "date" in stored:
            return f"DT{name.upper()};VALUE=DATE:{stored['date'].replace('-', '')}"
        return f"DT{name.upper()}:{moment(stored, home):%Y%m%dT%H%M%SZ}"

    lines = ["BEGIN:VCALENDAR", "PRODID:-//Google Inc//Google Calendar 70.9054//EN", "VERSION:2.0", f"METHOD:{method}"]
    lines += ["BEGIN:VEVENT", at("start"), at("end"), f"DTSTAMP:{event.updated:%Y%m%dT%H%M%SZ}", f"UID:{event.uid}"]
    lines += [f"ORGANIZER;CN={event.organizer}:mailto:{event.organizer}", *event.fields.get("recurrence", ())]
    lines += [
        f"ATTENDEE;PARTSTAT={_STATES.get(one['responseStatus'], 'NEEDS-ACTION')}:mailto:{one['email']}"
        for one in event.attendees
    ]
    for name in ("summary", "description", "location"):
        lines.append(f"{name.upper()}:{_escaped(str(event.fields.get(name, '')))}")
    status = "CANCELLED" if method == "CANCEL" else "CONFIRMED"
    lines += [f"SEQUENCE:{event.sequence}", f"STATUS:{status}", "END:VEVENT", "END:VCALENDAR"]
    return "\n".join(lines) + "\n"


_STATES = {"accepted": "ACCEPTED", "declined": "DECLINED", "tentative": "TENTATIVE"}


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace(";", "\\;").replace(",", "\\,").replace("\n", "\\n")
