"""Calls of Tasks v1 under Google's own names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from quire.google.budget import Urgency
from quire.google.transport import Transport

TASKS = "https://tasks.googleapis.com/"


class Tasks:
    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    async def lists_get(self, list_id: str) -> dict[str, Any]:
        return await self._call("GET", f"users/@me/lists/{quote(list_id, safe='@')}", f"looking at the list {list_id}")

    async def list(self, list_id: str, *, since: str) -> list[dict[str, Any]]:
        """The tasks that were changed since, also hidden, done and deleted ones, all pages."""
        found: list[dict[str, Any]] = []
        params = {"maxResults": 100, "updatedMin": since}
        params |= {"showHidden": "true", "showCompleted": "true", "showDeleted": "true"}
        while True:
            answer = await self._call("GET", self._path(list_id), f"reading the list {list_id}", params=params)
            found += answer.get("items", [])
            if not (page := str(answer.get("nextPageToken", ""))):
                return found
            params["pageToken"] = page

    async def get(self, list_id: str, task_id: str) -> dict[str, Any]:
        return await self._call("GET", self._path(list_id, task_id), f"looking at the task {task_id}")

    async def insert(self, list_id: str, task: Mapping[str, Any]) -> dict[str, Any]:
        """A new task. Nothing tells a second one from the first."""
        what = f"adding the task {task.get('title', '')!r}"
        return await self._call("POST", self._path(list_id), what, write=True, repeatable=False, body=dict(task))

    async def delete(self, list_id: str, task_id: str) -> None:
        await self._call("DELETE", self._path(list_id, task_id), f"deleting the task {task_id}", write=True)

    def _path(self, list_id: str, task_id: str = "") -> str:
        rest = f"/{quote(task_id, safe='')}" if task_id else ""
        return f"lists/{quote(list_id, safe='@')}/tasks{rest}"

    async def _call(
        self, method: str, path: str, what: str, *, write: bool = False, repeatable: bool = True, **given: Any
    ) -> dict[str, Any]:
        answer = await self.transport.call(
            method,
            f"{self.transport.endpoint or TASKS}tasks/v1/{path}",
            what=what,
            urgency=Urgency.SETTLE,
            write=write,
            repeatable=repeatable,
            metered=False,
            **given,
        )
        return answer.json
