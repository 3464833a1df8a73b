"""Tasks. Google takes no id for one, so the last line of its notes has the mark of the act."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

from quire.clock import SYSTEM
from quire.google.error import Missing
from quire.workflows.effect import Act, Kept, NotDone
from quire.workflows.retry import Fail
from quire.workspace.connection import google, refusing, sure
from quire.workspace.declaring import Given, google_effect
from quire.workspace.values import Task, outside_key

_MOST_NOTES = 8192


def _mark(act: Act[Any]) -> str:
    return f"quire:{outside_key(act.key)}"


async def _check(act: Act[Any], given: Given) -> dict[str, Any]:
    if not given.title.strip():
        raise Fail("a task needs a title")
    if len(given.title) > 1024 or len(given.notes) > _MOST_NOTES - 50:
        raise Fail(f"the task {given.title[:40]!r} is too long: Google takes 1,024 letters of title and 8,192 of notes")
    with refusing():
        await (await google(act.connection)).tasks.lists_get(given.list)
    since = datetime.fromtimestamp(SYSTEM.now(), UTC) - timedelta(hours=1)
    return {"list": given.list, "since": f"{since:%Y-%m-%dT%H:%M:%S}.000Z"}


async def _find(act: Act[Any], given: Given) -> Task | NotDone:
    """One that somebody has done, hidden or deleted since was added all the same."""
    tasks = (await google(act.connection)).tasks
    for one in await tasks.list(act.prepared["list"], since=act.prepared["since"]):
        if str(one.get("notes", "")).endswith(_mark(act)):
            return Task(str(one["id"]), act.prepared["list"], str(one.get("title", "")))
    return NotDone("no task of the list has the mark of this act")


async def _undo(act: Act[Any], made: Task) -> Kept | None:
    tasks = (await google(act.connection)).tasks
    try:
        there = await tasks.get(made.list, made.id)
        if there.get("status") == "completed":
            return Kept(f"the task {made.title!r} is done; it stays")
        await tasks.delete(made.list, made.id)
    except Missing:
        return None
    return None


@google_effect(check=_check, find=_find, undo=_undo, fenced="settled", timeout="30s")
async def add(act: Act[Any], title: str, *, notes: str = "", due: date | None = None, list: str = "@default") -> Task:
    """Put a task on a list. Its notes end with a line that says which act it is from."""
    body: dict[str, Any] = {"title": title, "notes": f"{notes}\n\n{_mark(act)}".strip()}
    if due is not None:
        body["due"] = f"{due:%Y-%m-%d}T00:00:00.000Z"
    with sure():
        made = await (await google(act.connection)).tasks.insert(act.prepared["list"], body)
    return Task(str(made["id"]), act.prepared["list"], title)
