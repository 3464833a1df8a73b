"""The Tasks v1 API."""

from __future__ import annotations

import base64
import hashlib
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar

from hectograph.core.clock import stamp
from hectograph.core.error import CALENDAR, ApiError
from hectograph.core.http import Response
from hectograph.core.quota import Charge, Exceeded, Limit
from hectograph.core.service import MethodCall, Play, Service

if TYPE_CHECKING:
    from hectograph.world import World

Json = dict[str, Any]

_SETTABLE = ("title", "notes", "due", "status", "completed", "deleted")
_LONGEST_TITLE, _LONGEST_NOTES = 1024, 8192


@dataclass
class TaskList:
    list_id: str
    title: str
    updated: str
    #: In the order of the list, subtasks among them.
    tasks: list[Json] = field(default_factory=list)

    def find(self, key: str) -> Json | None:
        return next((one for one in self.tasks if one["id"] == key), None)


class TasksApi(Service):
    version = "tasks.v1"
    envelope = CALENDAR
    strict = False
    limits: ClassVar = {"queries": Limit(per_user=600, per_project=50_000)}

    def __init__(self, world: World, base: Callable[[], str]) -> None:
        super().__init__(world, base)
        #: The lists of each account; the first one is its default list.
        self.accounts: dict[str, dict[str, TaskList]] = {}
        self._random = random.Random(17)

    def methods(self) -> Mapping[str, Play]:
        return {
            "tasklists.list": self.lists,
            "tasklists.get": lambda call: self._list_json(self._list(call)),
            "tasklists.insert": self.add_list,
            "tasklists.patch": self.change_list,
            "tasklists.update": self.change_list,
            "tasklists.delete": self.delete_list,
            "tasks.list": self.list_tasks,
            "tasks.get": lambda call: self._json(*self._task(call)),
            "tasks.insert": self.insert,
            "tasks.patch": self.change,
            "tasks.update": self.change,
            "tasks.delete": self.delete,
            "tasks.move": self.move,
            "tasks.clear": self.clear_completed,
        }

    def charges(self, call: MethodCall) -> Iterable[Charge]:
        return [Charge("queries")]

    def over(self, found: Exceeded) -> ApiError:
        reason = "userRateLimitExceeded" if found.scope == "user" else "rateLimitExceeded"
        text = "User Rate Limit Exceeded" if found.scope == "user" else "Rate Limit Exceeded"
        return self.refuse(403, text, reason, domain="usageLimits")

    def dump(self) -> Any:
        return {account: [one.__dict__ for one in lists.values()] for account, lists in self.accounts.items()}

    def load(self, held: Any) -> None:
        self.accounts = {account: {one["list_id"]: TaskList(**one) for one in lists} for account, lists in held.items()}

    def clear(self) -> None:
        self.accounts.clear()

    def _mint(self, size: int = 12) -> str:
        return base64.urlsafe_b64encode(self._random.randbytes(size)).decode().rstrip("=")

    def _now(self) -> str:
        return stamp(self.world.now())

    def _mine(self, call: MethodCall) -> dict[str, TaskList]:
        found = self.accounts.setdefault(call.caller.email, {})
        if not found:
            first = TaskList(self._mint(24), "My Tasks", self._now())
            found[first.list_id] = first
        return found

    def _list(self, call: MethodCall, key: str = "") -> TaskList:
        mine = self._mine(call)
        key = key or call.parts["tasklist"]
        found = next(iter(mine.values())) if key == "@default" else mine.get(key)
        if found is None:
            raise self.refuse(404, "Task list not found.", "notFound")
        return found

    def _task(self, call: MethodCall, key: str = "") -> tuple[TaskList, Json]:
        held = self._list(call)
        found = held.find(key or call.parts["task"])
        if found is None:
            raise self.refuse(404, "Task not found.", "notFound")
        return held, found

    def _etag(self, *words: Any) -> str:
        return f'"{base64.b64encode(hashlib.sha1(repr(words).encode()).digest()[:12]).decode()}"'

    def _list_json(self, held: TaskList) -> Json:
        out = {"kind": "tasks#taskList", "id": held.list_id, "etag": self._etag(held.title, held.updated)}
        link = f"https://www.googleapis.com/tasks/v1/users/@me/lists/{held.list_id}"
        return out | {"title": held.title, "updated": held.updated, "selfLink": link}

    def _json(self, held: TaskList, task: Json) -> Json:
        siblings = [one["id"] for one in held.tasks if one.get("parent") == task.get("parent")]
        link = f"https://www.googleapis.com/tasks/v1/lists/{held.list_id}/tasks/{task['id']}"
        return {
            "kind": "tasks#task",
            **{name: value for name, value in task.items() if value not in ("", None, False)},
            "title": task.get("title", ""),
            "etag": self._etag(task),
            "selfLink": link,
            "position": f"{siblings.index(task['id']):020d}",
            "links": [],
            "webViewLink": f"https://tasks.google.com/task/{task['id'].rstrip('=')}?sa=6",
        }

    # Lists.

    def _page(self, call: MethodCall, kind: str, found: list[Json], usual: int, most: int) -> Json:
        size, token = call.number("maxResults", usual, most), call.text("pageToken")
        start = int(token) if token.isdigit() else 0
        out: Json = {"kind": kind, "etag": self._etag(found), "items": found[start : start + size]}
        return out | ({"nextPageToken": str(start + size)} if start + size < len(found) else {})

    def lists(self, call: MethodCall) -> Any:
        return self._page(
            call, "tasks#taskLists", [self._list_json(one) for one in self._mine(call).values()], 1000, 1000
        )

    def add_list(self, call: MethodCall) -> Any:
        mine = self._mine(call)
        made = TaskList(self._mint(24), call.body(loose=True).get("title", ""), self._now())
        mine[made.list_id] = made
        return self._list_json(made)

    def change_list(self, call: MethodCall) -> Any:
        held = self._list(call)
        held.title, held.updated = call.body(loose=True).get("title", held.title), self._now()
        return self._list_json(held)

    def delete_list(self, call: MethodCall) -> Any:
        mine, held = self._mine(call), self._list(call)
        if held is next(iter(mine.values())):
            raise self.refuse(400, "Invalid Value", "invalid")
        del mine[held.list_id]
        return Response(204)

    # Tasks.

    def _fields(self, given: Mapping[str, Any]) -> Json:
        out = {name: given[name] for name in _SETTABLE if name in given}
        if len(out.get("title", "")) > _LONGEST_TITLE or len(out.get("notes", "")) > _LONGEST_NOTES:
            raise self.refuse(400, "Invalid Value", "invalid")
        if out.get("due"):
            out["due"] = f"{self._moment(out['due']):%Y-%m-%d}T00:00:00.000Z"  # the time of day is not kept
        if out.get("status") not in (None, "needsAction", "completed"):
            raise self.refuse(400, "Invalid Value", "invalid")
        return out

    def _moment(self, text: str) -> datetime:
        try:
            found = datetime.fromisoformat(text)
        except ValueError as error:
            raise self.refuse(400, "Request contains an invalid argument.", "badRequest") from error
        return found if found.tzinfo else found.replace(tzinfo=UTC)

    def insert(self, call: MethodCall) -> Any:
        """Add a task at the head of the list, or below its parent, or after another one."""
        held = self._list(call)
        task: Json = {"id": self._mint(), "updated": self._now(), "status": "needsAction"}
        task |= self._fields(call.body(loose=True))
        self._settle(task, {})
        self._place(held, task, call.text("parent"), call.text("previous"))
        return self._json(held, task)

    def _place(self, held: TaskList, task: Json, parent: str, previous: str) -> None:
        for key in filter(None, (parent, previous)):
            if held.find(key) is None:
                raise self._no(key)
        task.pop("parent", None)
        if parent:
            task["parent"] = parent
        at = 0
        if previous:
            at = next(n for n, one in enumerate(held.tasks) if one["id"] == previous) + 1
        held.tasks.insert(at, task)
        held.updated = self._now()

    def _no(self, key: str) -> ApiError:
        return self.refuse(400, "Invalid task ID", "invalid", location="parent") if key else self.refuse(400, "Invalid")

    def _settle(self, task: Json, before: Json) -> None:
        """Keep ``status`` and ``completed`` together."""
        if task.get("completed") and not before.get("completed"):
            task["status"] = "completed"
        if task.get("status") == "completed":
            task.setdefault("completed", self._now())
        else:
            task.pop("completed", None)
            task.pop("hidden", None)

    def list_tasks(self, call: MethodCall) -> Any:
        held = self._list(call)
        found = [one for one in held.tasks if self._listed(call, one)]
        return self._page(call, "tasks#tasks", [self._json(held, one) for one in found], 20, 100)

    def _listed(self, call: MethodCall, task: Json) -> bool:
        if task.get("deleted") and not call.flag("showDeleted"):
            return False
        if task.get("hidden") and not call.flag("showHidden"):
            return False
        if task["status"] == "completed" and not call.flag("showCompleted", True):
            return False
        for name in ("due", "completed"):
            for bound, low in ((f"{name}Min", True), (f"{name}Max", False)):
                if not call.text(bound):
                    continue
                if not task.get(name):
                    return False
                mine, limit = self._moment(task[name]), self._moment(call.text(bound))
                if (mine < limit) if low else (mine >= limit):
                    return False
        after = call.text("updatedMin")
        return not after or self._moment(task["updated"]) >= self._moment(after)

    def change(self, call: MethodCall) -> Any:
        held, task = self._task(call)
        given, raw = self._fields(call.body(loose=True)), call.request.json()
        before = dict(task)
        if call.name == "tasks.update":
            for name in _SETTABLE:
                task.pop(name, None)
            task["status"] = "needsAction"
        task.update(given)
        for name, value in raw.items():
            if value is None and name in _SETTABLE:
                task.pop(name, None)
        if given.get("status") == "needsAction":
            task.pop("completed", None)
        task.setdefault("status", "needsAction")
        self._settle(task, before)
        task["updated"] = held.updated = self._now()
        return self._json(held, task)

    def delete(self, call: MethodCall) -> Any:
        held, task = self._task(call)
        for one in [task, *(one for one in held.tasks if one.get("parent") == task["id"])]:
            one["deleted"], one["updated"] = True, self._now()
        return Response(204)

    def move(self, call: MethodCall) -> Any:
        held, task = self._task(call)
        there = self._list(call, call.text("destinationTasklist")) if call.text("destinationTasklist") else held
        for key in filter(None, (call.text("parent"), call.text("previous"))):
            if there.find(key) is None or key == task["id"]:
                raise self._no(key)
        held.tasks.remove(task)
        self._place(there, task, call.text("parent"), call.text("previous"))
        task["updated"] = self._now()
        return self._json(there, task)

    def clear_completed(self, call: MethodCall) -> Any:
        held = self._list(call)
        for task in held.tasks:
            if task["status"] == "completed":
                task["hidden"], task["updated"] = True, self._now()
        return Response(204)
