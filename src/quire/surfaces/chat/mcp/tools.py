"""The tools of the chat: what each takes, who may use it, and what it does. One client call each; no protocol here.

A model acts for a person, so what cannot be taken back asks twice: an answer names the hash of what was shown, and a
halt is done only with the word that asking for it gave.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from quire.client.client import Client
from quire.clock import iso
from quire.errors import IllegalMove, InputError, NotFound
from quire.explain import stuck, words
from quire.explain.why import around, why_of
from quire.ledger import engine
from quire.model.codec import parse
from quire.model.record import ENDED, Record, Status
from quire.model.side import EVERYWHERE
from quire.model.wait import On, Wait, load_waits
from quire.run.waits import signature
from quire.surfaces.server.auth.tokens import Role

#: So much of a record's log is shown.
SHOWN_EVENTS = 30
SHOWN_CHILDREN = 50
#: So many records of a finding get a link.
SHOWN_LINKS = 5


@dataclass(frozen=True, slots=True)
class Desk:
    """Whoever talks, and with what."""

    #: Acts in the person's name.
    client: Client
    role: Role
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    #: Writes the audit line of an act: act, target, and what else the line says.
    audit: Callable[..., None] = lambda *_, **__: None
    #: Which acts at Google it offers besides.
    google: Sequence[str] = ()


class Given(BaseModel):
    """What a tool takes. A field that is not there is refused, so that no wish is dropped in silence."""

    model_config = ConfigDict(extra="forbid")


RecordId = Annotated[str, Field(min_length=1, max_length=500, description="The record's id.")]
WorkflowName = Annotated[str, Field(min_length=1, max_length=500, description="The workflow's name.")]


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    title: str
    what: str
    role: Role
    takes: type[Given]
    act: Callable[[Desk, Any], Awaitable[dict[str, Any]]]
    #: It may end or take back something.
    destructive: bool = False


TOOLS: dict[str, Tool] = {}


def tools_of(desk: Desk) -> Mapping[str, Tool]:
    """The tools that are offered at this desk."""
    if not desk.google:
        return TOOLS
    from quire.surfaces.chat.mcp.google import offered

    return {**TOOLS, **offered(desk.google)}


def _tool(title: str, role: Role, *, destructive: bool = False) -> Callable[[Any], Any]:
    def declare(function: Callable[[Desk, Any], Awaitable[dict[str, Any]]]) -> Any:
        takes = function.__annotations__["given"]
        kind = globals()[takes] if isinstance(takes, str) else takes
        name = function.__name__.rstrip("_")
        what = " ".join((function.__doc__ or "").split())
        TOOLS[name] = Tool(name, title, what, role, kind, function, destructive)
        return function

    return declare


# -- looking ---------------------------------------------------------------------------------------------------


class Nothing(Given):
    pass


@_tool("What is stuck", Role.VIEWER)
async def what_is_stuck(desk: Desk, given: Nothing) -> dict[str, Any]:
    """What does not go on by itself, and why: errors grouped by cause, questions to people, effects in doubt, steps
    that no worker runs, halts and pauses; with the counts of all records."""
    found = await stuck.look(desk.client.ledger, desk.groups)
    counts: dict[str, int] = {}
    for count in await desk.client.counts():
        counts[str(count.status)] = counts.get(str(count.status), 0) + count.count
    return {
        "stuck": [stuck.finding_json(finding) | {"links": _links(desk, finding.record_ids)} for finding in found[:200]],
        "left_out": max(0, len(found) - 200),
        "counts": counts,
    }


def _links(desk: Desk, record_ids: Sequence[str]) -> list[str]:
    """Where a person sees the first of these records; empty if the server has no address outside."""
    links = [words.record_link(desk.client.public_url, record_id) for record_id in record_ids[:SHOWN_LINKS]]
    return [link for link in links if link is not None]


class ListIn(Given):
    workflow: Annotated[str, Field("", max_length=500)]
    status: Annotated[list[Status], Field(default_factory=list, description="Any of these; empty: all.")]
    text: Annotated[str, Field("", max_length=500, description="Part of the id.")]
    parent_id: Annotated[str, Field("", max_length=500)]
    limit: Annotated[int, Field(50, ge=1, le=500)]


@_tool("List records", Role.VIEWER)
async def list_records(desk: Desk, given: ListIn) -> dict[str, Any]:
    """List records by workflow, status, parent or part of their id, the newest first."""
    found = await desk.client.find(
        workflow=given.workflow,
        status=given.status,
        text=given.text,
        parent_id=given.parent_id,
        limit=given.limit,
        order="updated",
    )
    return {"records": [_row(desk, record) for record in found]}


def _row(desk: Desk, record: Record) -> dict[str, Any]:
    return {
        "record_id": record.record_id,
        "workflow": record.workflow,
        "status": str(record.status),
        "step": record.step,
        "error": record.last_error,
        "question": record.question,
        "run_id": record.run_id,
        "link": words.record_link(desk.client.public_url, record.record_id),
        "updated_at": iso(record.updated_at),
    }


class RecordIn(Given):
    record_id: RecordId


@_tool("Show a record", Role.VIEWER)
async def show(desk: Desk, given: RecordIn) -> dict[str, Any]:
    """Show a record: why it does not move, its data, what it asks with the hash that an answer needs, its log."""
    shown = await desk.client.show(given.record_id)
    record = shown.record
    why = why_of(record, await around(desk.client.ledger, record, groups=desk.groups))
    row = words.record_json(record)
    kept = ("record_id", "workflow", "status", "next_step", "attempt", "version", "last_error", "parent_id", "data")
    return {
        **{name: row[name] for name in (*kept, "result", "created_at", "updated_at")},
        "run_id": record.run_id,
        "link": words.record_link(desk.client.public_url, record.record_id),
        "why": why.sentence,
        "remedy": why.remedy or None,
        "asks": [words.wait_json(wait) for wait in _asking(record)],
        "log": [f"{iso(event.at)} {words.line(event)}" for event in shown.events[-SHOWN_EVENTS:]],
        "effects": [f"{r.kind} {r.name}: {r.stage}" for r in shown.receipts[-SHOWN_EVENTS:]],
        "children": [_row(desk, child) for child in shown.children[:SHOWN_CHILDREN]],
        "children_total": len(shown.children),
    }


def _asking(record: Record) -> list[Wait]:
    if record.status is not Status.NEEDS_APPROVAL:
        return []
    return [wait for wait in load_waits(record.waits) if wait.on in (On.QUESTION, On.DOUBT)]


@_tool("Workflows and missions", Role.VIEWER)
async def workflows(desk: Desk, given: Nothing) -> dict[str, Any]:
    """The workflows of this ledger: their steps, the schema of their data, and which of them are missions."""
    found = []
    for definition in await engine.definitions(desk.client.ledger):
        mission = (definition.get("about") or {}).get("mission")
        found.append(
            {
                "workflow": definition["name"],
                "steps": {step["name"]: step["then"] for step in definition["steps"]},
                "schema": definition["schema"],
                "mission": mission,
            }
        )
    return {"workflows": found}


# -- acting ----------------------------------------------------------------------------------------------------


class StartIn(Given):
    workflow: WorkflowName
    data: Annotated[dict[str, Any], Field(default_factory=dict, description="As the workflow's schema says.")]
    record_id: Annotated[
        str | None, Field(None, max_length=500, description="The same id again is the same record, not a second one.")
    ]


@_tool("Start a record", Role.OPERATOR)
async def start(desk: Desk, given: StartIn) -> dict[str, Any]:
    """Start a record of a workflow. Give it an id of your own, so that a repeated call starts nothing twice."""
    handle = await desk.client.start(given.workflow, given.data, id=given.record_id)
    desk.audit("start", handle.record_id, workflow=given.workflow)
    return _row(desk, await handle.record())


class ApproveIn(Given):
    record_id: RecordId
    hash: Annotated[
        str, Field(min_length=8, max_length=200, description="The hash that 'show' gave with the question.")
    ]
    choice: Annotated[
        str, Field("", max_length=200, description="One of those offered; empty: the one that goes ahead.")
    ]
    note: Annotated[str, Field("", max_length=2000, description="Why, for the log.")]
    edits: Annotated[dict[str, Any], Field(default_factory=dict, description="Fields that the question lets change.")]


@_tool("Answer a question", Role.OPERATOR)
async def approve(desk: Desk, given: ApproveIn) -> dict[str, Any]:
    """Answer what a record asks, in the person's name and only after they have seen it. The hash says what they saw:
    if the record asks anything else by now, the answer is refused."""
    record = await desk.client.get(given.record_id)
    asked = next((wait for wait in _asking(record) if wait.on is On.QUESTION), None)
    choice = given.choice or (str((asked.about or {})["choices"][0]) if asked is not None else "approve")
    record = await desk.client.answer(
        given.record_id, choice, note=given.note, edits=given.edits, seen=given.hash, via="mcp", groups=desk.groups
    )
    desk.audit("answer", given.record_id, choice=choice, seen=given.hash)
    return _row(desk, record) | {"answered": choice}


class ResolveIn(Given):
    record_id: RecordId
    happened: Annotated[bool, Field(description="True only if the person has looked outside and it happened.")]
    value: Annotated[Any, Field(None, description="What came of it, as the step expects it.")]
    effect: Annotated[str, Field("", max_length=500, description="Which effect, where several are in doubt.")]


@_tool("Resolve a doubt", Role.OPERATOR)
async def resolve(desk: Desk, given: ResolveIn) -> dict[str, Any]:
    """Say whether an effect in doubt happened. What is said is believed: ask the person to look outside first."""
    record = await desk.client.resolve(given.record_id, happened=given.happened, value=given.value, effect=given.effect)
    desk.audit("resolve", given.record_id, happened=given.happened)
    return _row(desk, record)


class RetryIn(Given):
    record_id: RecordId
    step: Annotated[str, Field("", max_length=500, description="From this step anew; empty: where it stopped.")]


@_tool("Retry a record", Role.OPERATOR)
async def retry(desk: Desk, given: RetryIn) -> dict[str, Any]:
    """Try a record again where it stopped, or from a step anew."""
    record = await desk.client.retry(given.record_id, step=given.step)
    desk.audit("retry", given.record_id, step=given.step)
    return _row(desk, record)


class CancelIn(Given):
    record_id: RecordId
    reason: Annotated[str, Field("", max_length=2000)]
    undo: Annotated[bool, Field(False, description="Take back what it did.")]


@_tool("Cancel a record", Role.OPERATOR, destructive=True)
async def cancel(desk: Desk, given: CancelIn) -> dict[str, Any]:
    """Cancel a record; one that runs is asked to stop."""
    record = await desk.client.cancel(given.record_id, undo=given.undo, reason=given.reason)
    desk.audit("cancel", given.record_id, undo=given.undo, reason=given.reason)
    return _row(desk, record)


class SignalIn(Given):
    record_id: RecordId
    signal: Annotated[str, Field(min_length=1, max_length=500)]
    value: Annotated[Any, Field(None, description="What the wait gets.")]


@_tool("Send a signal", Role.OPERATOR)
async def signal(desk: Desk, given: SignalIn) -> dict[str, Any]:
    """Send a signal to a record that waits for it, or will."""
    record = await desk.client.signal(given.record_id, given.signal, given.value)
    desk.audit("signal", given.record_id, signal=given.signal)
    return _row(desk, record)


class HaltIn(Given):
    reason: Annotated[str, Field(min_length=1, max_length=2000, description="For everybody who finds it halted.")]
    workflow: Annotated[str, Field("", max_length=500, description="Only this workflow; empty: everything.")]
    confirm: Annotated[str, Field("", max_length=100, description="The word that the first call gave.")]


@_tool("Halt", Role.OPERATOR, destructive=True)
async def halt(desk: Desk, given: HaltIn) -> dict[str, Any]:
    """Stop everything, or one workflow, durably. Call it first without 'confirm': nothing is stopped, and the answer
    says what would be, and the word. Tell the person, and only if they want it call again with that word."""
    client = desk.client
    if given.workflow:
        await engine.definition(client.ledger, given.workflow)
    standing = await client.standing()
    scope = given.workflow or EVERYWHERE
    assert client.keyring is not None
    # Bound to the person, the scope and the epoch: a word of yesterday, or of somebody else, halts nothing.
    word = "halt-" + signature(client.keyring, "halt", scope, str(standing.epoch), client.who)[:10]
    if not given.confirm:
        open_ = [
            count
            for count in await client.counts()
            if count.status not in ENDED  # what asks a person is cancelled, too
            and given.workflow in ("", count.workflow)
        ]
        return {
            "halted": False,
            "would_stop": sum(count.count for count in open_),
            "effects_under_way": len(standing.under_way),
            "confirm": word,
            "message": f"nothing is halted yet; {'everything' if scope == EVERYWHERE else repr(scope)} would be",
        }
    if given.confirm != word:
        raise IllegalMove("this word does not confirm this halt now; call halt without 'confirm' and ask the person")
    standing = await client.halt(given.workflow, reason=given.reason)
    desk.audit("halt", scope, reason=given.reason)
    return {"halted": True, **words.standing_json(standing)}


class ResumeIn(Given):
    workflow: Annotated[str, Field("", max_length=500, description="Only this workflow; empty: everything.")]
    cancelled: Annotated[bool, Field(False, description="What the halt cancelled goes on where it stood.")]


@_tool("Resume", Role.OPERATOR)
async def resume(desk: Desk, given: ResumeIn) -> dict[str, Any]:
    """End a pause or a halt."""
    standing = await desk.client.resume(given.workflow, cancelled=given.cancelled)
    desk.audit("resume", given.workflow or EVERYWHERE, cancelled=given.cancelled)
    return words.standing_json(standing)


# -- missions --------------------------------------------------------------------------------------------------


class MissionIn(Given):
    mission: WorkflowName
    inputs: Annotated[dict[str, Any], Field(default_factory=dict, description="What 'workflows' says that it needs.")]
    record_id: Annotated[str | None, Field(None, max_length=500, description="The same id again goes on with it.")]


@_tool("Run a mission", Role.OPERATOR)
async def mission_run(desk: Desk, given: MissionIn) -> dict[str, Any]:
    """Start a mission, a network of agents. It runs in the workers and survives this chat; look with mission_show."""
    about = await mission_of(desk.client, given.mission)
    check_inputs(given.mission, about, given.inputs)
    handle = await desk.client.start(given.mission, given.inputs, id=given.record_id)
    desk.audit("start mission", handle.record_id, workflow=given.mission)
    return _row(desk, await handle.record())


async def mission_of(client: Client, name: str) -> dict[str, Any]:
    """Return what callers may know of a mission; refuse a workflow that is none."""
    definition = await engine.definition(client.ledger, name)
    about = (definition.get("about") or {}).get("mission")
    if about is None:
        raise InputError(f"{name!r} is a workflow, not a mission; start it with 'start'")
    found: dict[str, Any] = about
    return found


def check_inputs(name: str, about: Mapping[str, Any], inputs: Mapping[str, Any]) -> None:
    missing = [word for word in about.get("inputs", []) if word not in inputs]
    if missing:
        raise InputError(f"{name!r} needs {', '.join(map(repr, missing))}")


@_tool("Show a mission", Role.VIEWER)
async def mission_show(desk: Desk, given: RecordIn) -> dict[str, Any]:
    """Show a mission: what each agent said last, what it asks, and its result once it has ended."""
    client = desk.client
    shown = await client.show(given.record_id)
    record = shown.record
    data = parse(record.data)
    if record.parent_id is not None or not (data.get("agents") or record.step == "begin"):
        raise NotFound(f"{given.record_id!r} is not a mission; see it with 'show'")
    result = parse(record.result) if record.result else None
    return {
        **_row(desk, record),
        "spent": data.get("spent"),
        "agents": [_row(desk, child) | {"agent": _agent(child)} for child in shown.children[:SHOWN_CHILDREN]],
        "asks": [
            {"record_id": other.record_id, **words.wait_json(wait)}
            for other in (record, *shown.children)
            for wait in _asking(other)
        ],
        "result": result.get("text") if isinstance(result, dict) else result,
    }


def _agent(child: Record) -> str:
    part = parse(child.data).get("part")
    return str(part.get("agent", "")) if isinstance(part, dict) else ""
