"""Calls of Calendar v3 under Google's own names. Events carry an id that was made before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from quire.google.budget import Urgency
from quire.google.transport import Transport

CALENDAR = "https://www.googleapis.com/"


class Calendar:
    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    async def events_insert(self, calendar: str, event: Mapping[str, Any], *, notify: bool) -> dict[str, Any]:
        """A new event. With an ``id`` a repeat makes no twin: the second one is refused as already there."""
        params = {"sendUpdates": "all" if notify else "none", "conferenceDataVersion": 1}
        what = f"making the event {event.get('summary', '')!r}"
        return await self._call(
            "POST", calendar, "", what, write=True, repeatable="id" in event, params=params, body=dict(event)
        )

    async def events_get(self, calendar: str, event_id: str) -> dict[str, Any]:
        """The event; a deleted one is there, too, and its status is ``cancelled``."""
        return await self._call("GET", calendar, event_id, f"looking at the event {event_id}", repeatable=True)

    async def events_patch(
        self, calendar: str, event_id: str, event: Mapping[str, Any], *, notify: bool, etag: str
    ) -> dict[str, Any]:
        """Change what is named. With an ``etag`` only if the event is as it was: so a repeat is refused."""
        params = {"sendUpdates": "all" if notify else "none"}
        what = f"changing the event {event_id}"
        headers = {"If-Match": etag} if etag else {}
        return await self._call(
            "PATCH",
            calendar,
            event_id,
            what,
            write=True,
            repeatable=False,
            params=params,
            body=dict(event),
            headers=headers,
        )

    async def events_sync(self, calendar: str, token: str) -> tuple[list[dict[str, Any]], str]:
        """The events that have changed since the token, and the next token. Without one: none, and the first token.

        ``Missing``: the token is forgotten.
        """
        params: dict[str, Any] = {"maxResults": 2500, "showDeleted": "true"}
        params |= {"syncToken": token} if token else {}
        found: list[dict[str, Any]] = []
        while True:
            answer = await self._call(
                "GET", calendar, "", "reading what has changed in a calendar", repeatable=True, params=params
            )
            found += answer.get("items", []) if token else []
            if not (page := str(answer.get("nextPageToken", ""))):
                return found, str(answer.get("nextSyncToken", ""))
            params["pageToken"] = page

    async def freebusy(self, start: str, end: str, calendars: Sequence[str]) -> dict[str, Any]:
        """When these are busy."""
        answer = await self.transport.call(
            "POST",
            f"{self.transport.endpoint or CALENDAR}calendar/v3/freeBusy",
            what="looking who is busy",
            urgency=Urgency.VIEW,
            write=False,
            repeatable=True,
            metered=False,
            body={"timeMin": start, "timeMax": end, "items": [{"id": one} for one in calendars]},
        )
        return answer.json

    async def events_delete(self, calendar: str, event_id: str, *, notify: bool) -> None:
        params = {"sendUpdates": "all" if notify else "none"}
        what = f"deleting the event {event_id}"
        await self._call("DELETE", calendar, event_id, what, write=True, repeatable=True, params=params)

    async def _call(
        self, method: str, calendar: str, event_id: str, what: str, *, write: bool = False, **given: Any
    ) -> dict[str, Any]:
        rest = f"/{quote(event_id, safe='')}" if event_id else ""
        url = f"{self.transport.endpoint or CALENDAR}calendar/v3/calendars/{quote(calendar, safe='')}/events{rest}"
        answer = await self.transport.call(
            method, url, what=what, urgency=Urgency.SETTLE, write=write, metered=False, **given
        )
        return answer.json
