"""A record as a task: its state in one word, what it asks, what it came to; and a message as inputs or an answer.

The task's id is the record's, so a task is as durable as a record: whoever asks, whatever process answers, sees where
the work stands. The same message sent again is the same task.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from quire.client.client import Client
from quire.errors import InputError, NotFound
from quire.model.codec import dump, parse
from quire.model.record import Record, Status
from quire.model.side import Setting
from quire.model.wait import On, Wait, load_waits

CONTEXT = "a2a/"


class Asked(NamedTuple):
    """A question of a task, and the record that asks it: the mission itself, or one of its agents."""

    record: Record
    wait: Wait

    @property
    def about(self) -> Mapping[str, Any]:
        return self.wait.about or {}


class Seen(NamedTuple):
    """A task as it is now."""

    record: Record
    context_id: str
    #: submitted, working, input_required, completed, failed, canceled
    state: str
    asked: tuple[Asked, ...]


_STATES = {Status.DONE: "completed", Status.ERROR: "failed", Status.CANCELLED: "canceled"}
#: A task in one of these states does not go on by itself.
RESTING = frozenset({"completed", "failed", "canceled", "input_required"})


def state_of(record: Record, asked: Sequence[Asked]) -> str:
    if record.status in _STATES:
        return _STATES[record.status]
    if asked:
        return "input_required"
    return "submitted" if record.version == 1 else "working"


async def see(client: Client, mission: str, task_id: str) -> Seen:
    """Return the task of this id, if it is one of this mission."""
    found = await client.ledger.load([task_id])
    if not found or found[0].workflow != mission or found[0].parent_id is not None:
        raise NotFound(f"{mission!r} has no task {task_id!r}")
    [record] = found
    asked: list[Asked] = []
    if not record.ended:
        parts = await client.find(parent_id=task_id, status=Status.NEEDS_APPROVAL, limit=100)
        for one in (record, *parts):
            if one.status is Status.NEEDS_APPROVAL:
                asked += [Asked(one, wait) for wait in load_waits(one.waits) if wait.on is On.QUESTION]
    kept = await client.ledger.setting(CONTEXT + task_id)
    context_id = str(parse(kept.value)) if kept is not None else task_id
    return Seen(record, context_id, state_of(record, asked), tuple(asked))


class Said(NamedTuple):
    """What one agent of a mission said in one turn."""

    agent: str
    turn: int
    text: str


async def marks(client: Client, seen: Seen) -> frozenset[tuple[str, int]]:
    """Return the versions of a task's parts: while these stay, nothing new was said."""
    parts = await client.find(parent_id=seen.record.record_id, limit=1000)
    return frozenset((part.record_id, part.version) for part in parts)


async def said(client: Client, seen: Seen) -> list[Said]:
    """Return what the agents of a task have said by now, turn by turn."""
    from quire.agents.missions import story as stories

    try:
        story = await stories.read(client.ledger, seen.record.record_id)
    except InputError:  # it has not begun
        return []
    order = [spec.id for spec in story.blueprint.agents]
    found = [Said(agent, turn, text) for agent, turns in story.said.items() for turn, text in turns.items()]
    return sorted(found, key=lambda one: (one.turn, order.index(one.agent)))


def task_id(mission: str, caller: str, message_id: str) -> str:
    """The id of the task that this message starts: the caller's message sent again is the same task."""
    if not 0 < len(message_id) <= 200:
        raise InputError("a message has a messageId of 1 to 200 characters, the same when it is sent again")
    made = hashlib.sha256(json.dumps([caller, message_id]).encode()).hexdigest()[:20]
    return f"{mission}_{made}"


async def keep_context(client: Client, task: str, context_id: str) -> None:
    """Remember the context that the caller gave; what was kept first stays."""
    if context_id and context_id != task:
        await client.ledger.keep(Setting(CONTEXT + task, dump(context_id[:500]), 0))


def inputs_of(about: Mapping[str, Any], texts: Sequence[str], data: Sequence[Any]) -> dict[str, Any]:
    """What a message brings to a mission: its data, or its text where one input is wanted."""
    made: dict[str, Any] = {}
    for part in data:
        if not isinstance(part, dict):
            raise InputError("a data part must be an object of named inputs")
        made |= part
    text = "\n".join(text for text in texts if text.strip()).strip()
    open_ = [name for name in about.get("inputs", []) if name not in made]
    if text:
        if len(open_) > 1:
            raise InputError(
                f"this mission needs {', '.join(open_)}: send them as a data part, a text cannot say which"
            )
        made[open_[0] if open_ else "message"] = text
        open_ = []
    if open_:
        raise InputError(f"this mission needs {', '.join(open_)}: send them as a data part")
    return made


class Reply(NamedTuple):
    """An answer to a question of a task."""

    record_id: str
    choice: str
    seen: str
    note: str
    edits: dict[str, Any]


def reply_of(asked: Sequence[Asked], data: Sequence[Any]) -> Reply:
    """The answer that a message brings. It names the hash of the question: nothing is approved unseen."""
    answer = next((part for part in data if isinstance(part, dict) and "choice" in part), None)
    if answer is None:
        raise InputError("answer with a data part: choice, and the hash that came with the question")
    seen = str(answer.get("hash", ""))
    one = next((one for one in asked if one.about.get("hash") == seen), None)
    if one is None:
        raise InputError("this task does not ask that any more; read the task again, then answer with its hash")
    edits = answer.get("edits") or {}
    if not isinstance(edits, dict):
        raise InputError("edits is an object of named fields")
    return Reply(one.record.record_id, str(answer["choice"]), seen, str(answer.get("note", ""))[:2000], edits)


def question_json(one: Asked) -> dict[str, Any]:
    about = one.about
    return {
        "record_id": one.record.record_id,
        "question": about.get("text"),
        "choices": list(about.get("choices", [])),
        "show": about.get("show"),
        "edit": list(about.get("edit", [])),
        "hash": about.get("hash"),
    }
