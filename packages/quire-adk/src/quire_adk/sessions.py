"""Sessions of Google's Agent Development Kit on a Quire ledger.

A session is one setting of the ledger, written when it is created, and one for each event, written once under its
number: an append is one write, two processes that append at the same moment both succeed, and an event that comes twice
is kept once. State is what the events add up to. Artifacts are in ``artifacts``.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, unquote

from google.adk.events.event import Event
from google.adk.sessions.base_session_service import (
    BaseSessionService,
    GetSessionConfig,
    ListSessionsResponse,
)
from google.adk.sessions.session import Session

from quire.clock import new_id
from quire.errors import AlreadyExists, NotFound
from quire.ledger.base import Ledger
from quire.model.codec import dump, parse
from quire.model.side import Setting

_APP, _USER, _TEMP = "app:", "user:", "temp:"


def _name(*parts: str) -> str:
    return "/".join(quote(part, safe="") for part in parts)


class QuireSessionService(BaseSessionService):
    """Sessions on an open ledger: ``QuireSessionService(client.ledger)``."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        #: Where the next event of a session is likely to go.
        self._next: dict[str, int] = {}

    async def create_session(
        self, *, app_name: str, user_id: str, state: dict[str, Any] | None = None, session_id: str | None = None
    ) -> Session:
        session_id = (session_id or "").strip() or new_id(length=20)
        name = self._head(app_name, user_id, session_id)
        kept = await self._ledger.setting(name)
        head = parse(kept.value) if kept is not None else None
        if head is not None and not head["deleted"]:
            raise _already_exists(session_id)
        scoped = _by_scope(state or {})
        await self._merge(_name("adk-state", app_name), scoped[_APP])
        await self._merge(_name("adk-state", app_name, user_id), scoped[_USER])
        new = {
            "state": scoped[""],
            "generation": 1 if head is None else head["generation"] + 1,
            "updated": await self._ledger.now(),
            "deleted": False,
        }
        if not await self._ledger.keep(Setting(name, dump(new), kept.version if kept is not None else 0)):
            raise _already_exists(session_id)
        found = await self.get_session(app_name=app_name, user_id=user_id, session_id=session_id)
        assert found is not None
        return found

    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        session_id = session_id.strip()
        kept = await self._ledger.setting(self._head(app_name, user_id, session_id))
        head = parse(kept.value) if kept is not None else None
        if head is None or head["deleted"]:
            return None
        place = self._events(app_name, user_id, session_id, head["generation"])
        rows = await self._ledger.settings(place)
        self._next[place] = len(rows) + 1
        # An event that was delivered twice stands there twice, word for word and with the same id.
        events = [Event.model_validate_json(parse(text)) for text in dict.fromkeys(row.value for row in rows)]
        state = dict(head["state"])
        for event in events:
            state |= _by_scope(event.actions.state_delta if event.actions else {})[""]
        updated = events[-1].timestamp if events else head["updated"]
        if config is not None and config.after_timestamp is not None:
            events = [event for event in events if event.timestamp >= config.after_timestamp]
        if config is not None and config.num_recent_events is not None:
            events = events[-config.num_recent_events :] if config.num_recent_events else []
        state |= await self._shared(app_name, user_id)
        return Session(
            id=session_id, app_name=app_name, user_id=user_id, state=state, events=events, last_update_time=updated
        )

    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        prefix = _name("adk-session", app_name, *([user_id] if user_id is not None else [])) + "/"
        sessions = []
        for row in await self._ledger.settings(prefix):
            head = parse(row.value)
            if head["deleted"]:
                continue
            user, session_id = (unquote(part) for part in row.name.split("/")[2:4])
            state = {**head["state"], **await self._shared(app_name, user)}
            sessions.append(
                Session(id=session_id, app_name=app_name, user_id=user, state=state, last_update_time=head["updated"])
            )
        sessions.sort(key=lambda session: (session.last_update_time, session.user_id, session.id))
        return ListSessionsResponse(sessions=sessions)

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        await self._touch(self._head(app_name, user_id, session_id.strip()), {"deleted": True})

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        kept = await self._ledger.setting(_name("adk-state", app_name, user_id))
        found: dict[str, Any] = parse(kept.value) if kept is not None else {}
        return found

    async def append_event(self, session: Session, event: Event) -> Event:
        if event.partial:
            return event
        head_name = self._head(session.app_name, session.user_id, session.id)
        kept = await self._ledger.setting(head_name)
        head = parse(kept.value) if kept is not None else None
        if head is None or head["deleted"]:
            raise _not_found(session.id)
        event = await super().append_event(session=session, event=event)
        scoped = _by_scope(event.actions.state_delta if event.actions else {})
        await self._merge(_name("adk-state", session.app_name), scoped[_APP])
        await self._merge(_name("adk-state", session.app_name, session.user_id), scoped[_USER])
        place = self._events(session.app_name, session.user_id, session.id, head["generation"])
        await self._append(place, event)
        await self._touch(head_name, {"updated": event.timestamp})
        session.last_update_time = event.timestamp
        return event

    async def _append(self, place: str, event: Event) -> None:
        """Write the event under the first free number."""
        text = dump(event.model_dump_json(exclude_none=True))
        number = self._next.get(place) or len(await self._ledger.settings(place)) + 1
        while not await self._ledger.keep(Setting(f"{place}{number:012d}", text, 0)):
            number += 1
        if len(self._next) > 10_000:
            self._next.clear()  # it is looked up again
        self._next[place] = number + 1

    async def _shared(self, app_name: str, user_id: str) -> dict[str, Any]:
        app = await self._ledger.setting(_name("adk-state", app_name))
        user = await self.get_user_state(app_name=app_name, user_id=user_id)
        found = {_APP + key: value for key, value in (parse(app.value) if app is not None else {}).items()}
        return found | {_USER + key: value for key, value in user.items()}

    async def _merge(self, name: str, delta: dict[str, Any]) -> None:
        while delta:
            kept = await self._ledger.setting(name)
            now = parse(kept.value) if kept is not None else {}
            if await self._ledger.keep(Setting(name, dump(now | delta), kept.version if kept is not None else 0)):
                return

    async def _touch(self, name: str, delta: dict[str, Any]) -> None:
        while (kept := await self._ledger.setting(name)) is not None:
            if await self._ledger.keep(Setting(name, dump(parse(kept.value) | delta), kept.version)):
                return

    @staticmethod
    def _head(app_name: str, user_id: str, session_id: str) -> str:
        return _name("adk-session", app_name, user_id, session_id)

    @staticmethod
    def _events(app_name: str, user_id: str, session_id: str, generation: int) -> str:
        return _name("adk-event", app_name, user_id, session_id, str(generation)) + "/"


def _by_scope(state: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {_APP: {}, _USER: {}, "": {}}
    for key, value in state.items():
        if key.startswith((_APP, _USER)):
            scope, _, word = key.partition(":")
            found[scope + ":"][word] = value
        elif not key.startswith(_TEMP):
            found[""][key] = value
    return found


def _already_exists(session_id: str) -> Exception:
    text = f"Session with id {session_id} already exists."
    try:
        from google.adk.errors.already_exists_error import AlreadyExistsError
    except ImportError:
        return AlreadyExists(text)
    found: Exception = AlreadyExistsError(text)
    return found


def _not_found(session_id: str) -> Exception:
    text = f"Session {session_id} not found."
    try:
        from google.adk.errors.session_not_found_error import SessionNotFoundError
    except ImportError:
        return NotFound(text)
    found: Exception = SessionNotFoundError(text)
    return found
