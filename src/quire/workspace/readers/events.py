"""Answers to invitations: one reader for each calendar, by its sync token.

A token is forgotten after some time. Then, and for every wait that this process has not seen yet, the events themselves
are looked at: nothing is missed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from quire.client.client import Client
from quire.google.calendar import Calendar
from quire.google.error import Missing
from quire.workspace.readers.cursor import Fields
from quire.workspace.readers.waiting import Waiting
from quire.workspace.values import Answered


class EventReader:
    """Brings what the guests of events say that records wait for."""

    def __init__(self, client: Client, calendar: Calendar, calendar_id: str) -> None:
        self._client = client
        self._calendar = calendar
        self._id = calendar_id
        self._seen: set[Waiting] = set()

    async def look(self, waits: Sequence[Waiting], fields: Fields) -> Fields:
        """Signal each wait what the guests of its event said. Return the cursor after it."""
        events: dict[str, list[Waiting]] = defaultdict(list)
        for wait in waits:
            events["/".join(wait.parts[2:])].append(wait)
        new = {"/".join(wait.parts[2:]) for wait in waits if wait not in self._seen}
        said: dict[str, str] = dict(fields.get("said", {}))
        try:
            changed, token = await self._calendar.events_sync(self._id, str(fields.get("token", "")))
        except Missing:
            changed, token = await self._calendar.events_sync(self._id, "")
            new = set(events)
        for event_id in sorted(new):
            try:
                changed.append(await self._calendar.events_get(self._id, event_id))
            except Missing:
                continue
        for event in changed:
            for wait in events.get(str(event.get("id", "")), ()):
                await self._bring(event, wait, said)
        self._seen = set(waits)
        kept = {key: value for key, value in said.items() if key.split(" ")[0] in events}
        return {"token": token, "said": kept}

    async def _bring(self, event: dict[str, Any], wait: Waiting, said: dict[str, str]) -> None:
        for guest in event.get("attendees", ()):
            who, response = str(guest.get("email", "")), str(guest.get("responseStatus", ""))
            key = f"{event['id']} {who} {wait.record_id}"
            if response in ("", "needsAction") or guest.get("organizer") or said.get(key) == response:
                continue
            answer = Answered(str(event["id"]), who, response, str(guest.get("comment", "")))
            etag = str(event.get("etag", "")).strip('"')
            await self._client.signal(
                wait.record_id, wait.signal, answer, signal_id=f"event-{event['id'][:24]}-{etag}-{who}", by=who
            )
            said[key] = response
