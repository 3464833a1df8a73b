"""Words about records: why one waits, what its log says, how it took its time; and records as readable JSON.

Every surface tells of records through here, so that the command line, the API and the sheet say the same.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from quire.clock import iso
from quire.errors import NotFound
from quire.ledger.base import Ledger
from quire.ledger.rules import GRACE
from quire.model.change import Standing
from quire.model.codec import dump, parse
from quire.model.event import Event
from quire.model.receipt import Receipt
from quire.model.record import UNDO, Record, Status
from quire.model.side import EVERYWHERE, Control, Fanin, Signal, Worker
from quire.model.wait import On, Wait, load_waits
from quire.runtime import engine

#: A record that is due for so long, and whose step no live worker knows, is stranded.
STRANDED_SECONDS = 300.0


# -- time ------------------------------------------------------------------------------------------------------


def span(length: float) -> str:
    """A length of time in words: 4.2 s, 3 min, 2 h 5 min, 3 d."""
    if length < 0.0995:
        return f"{length * 1000:.0f} ms"
    if length < 60:
        return f"{length:.1f}".rstrip("0").rstrip(".") + " s"
    minutes = int(length // 60)
    if minutes < 60:
        return f"{minutes} min" + (f" {int(length % 60)} s" if minutes < 5 and int(length % 60) else "")
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h" + (f" {minutes} min" if minutes else "")
    return f"{hours // 24} d"


def when(moment: float | None, now: float) -> str:
    """A moment as people read it: the time in UTC, and how far away it is."""
    if moment is None:
        return "never"
    away = f"in {span(moment - now)}" if moment > now else f"{span(now - moment)} ago"
    return f"{iso(moment)[:19].replace('T', ' ')}Z ({away})"


def command(verb: str, *words: str, options: str = "") -> str:
    """A command as it is typed into a shell: words quoted where they must be, and never taken for options."""
    quoted = " ".join(shlex.quote(word) for word in words if word)
    if any(word.startswith("-") for word in words):
        return " ".join(part for part in ("quire", verb, options, "--", quoted) if part)
    return " ".join(part for part in ("quire", verb, quoted, options) if part)


# -- as JSON ---------------------------------------------------------------------------------------------------


@lru_cache(20_000)
def _moment(value: float | None) -> str | None:
    return None if value is None else iso(value)


def _value(text: str | None) -> Any:
    return None if text is None or text == "" else parse(text)


def record_json(record: Record) -> dict[str, Any]:
    """A record with readable names: what ``--json`` and the API answer."""
    return {
        "record_id": record.record_id,
        "workflow": record.workflow,
        "status": str(record.status),
        "next_step": record.step,
        "visit": record.visit,
        "attempt": record.attempt,
        "priority": record.priority,
        "due_at": _moment(record.due_at),
        "run_until": _moment(record.run_until),
        "worker": record.worker,
        "last_run_id": record.run_id,
        "last_error": record.last_error,
        "question": record.question,
        "note": record.note,
        "waits": [wait_json(wait) for wait in load_waits(record.waits)] if not record.ended else [],
        "parent_id": record.parent_id,
        "dedupe_key": dedupe_key(record),
        "version": record.version,
        "workflow_version": record.code_version,
        "epoch": record.epoch,
        "cancel": _value(record.cancel),
        "data": _value(record.data),
        "result": _value(record.result),
        "created_at": _moment(record.created_at),
        "updated_at": _moment(record.updated_at),
    }


def dedupe_key(record: Record) -> str:
    """The key that the state table shows for the record as it stands."""
    return record.dedupe_key or f"{record.workflow}|{record.record_id}|{record.step}"


def wait_json(wait: Wait) -> dict[str, Any]:
    about = wait.about or {}
    told: dict[str, Any] = {"on": str(wait.on), "name": wait.name, "until": _moment(wait.until)}
    if wait.on in (On.QUESTION, On.DOUBT):
        told |= {
            "question": about.get("text"),
            "choices": about.get("choices", []),
            "hash": about.get("hash"),
            "show": about.get("show"),
            "edit": about.get("edit", []),
            "by": about.get("by", []),
            "quorum": about.get("quorum", 1),
            "votes": [{**vote, "at": _moment(vote.get("at"))} for vote in about.get("votes", [])],
            "expires_at": _moment(about.get("expires_at")),
        }
    return told


def event_json(event: Event) -> dict[str, Any]:
    return {
        "seq": event.seq,
        "record_id": event.record_id,
        "n": event.n,
        "version": event.version,
        "at": iso(event.at),
        "kind": event.kind,
        "body": _value(event.body),
        "run_id": event.run_id,
        "hash": event.hash,
    }


def receipt_json(receipt: Receipt) -> dict[str, Any]:
    return {
        "name": receipt.name,
        "kind": str(receipt.kind),
        "stage": str(receipt.stage),
        "step": receipt.step,
        "visit": receipt.visit,
        "value": _value(receipt.value),
        "at": iso(receipt.at),
        "done_at": _moment(receipt.done_at),
        "act_by": _moment(receipt.act_by),
        "worker": receipt.worker or None,
        "undoable": bool(receipt.undo),
        "key": receipt.key,
        "signature": receipt.signature or None,
    }


def signal_json(signal: Signal) -> dict[str, Any]:
    return {
        "signal_id": signal.signal_id,
        "name": signal.name,
        "value": _value(signal.value),
        "at": iso(signal.at),
        "taken": signal.taken_by is not None,
    }


def worker_json(worker: Worker, now: float) -> dict[str, Any]:
    return {
        "worker_id": worker.worker_id,
        "label": worker.label,
        "host": worker.host,
        "pid": worker.pid,
        "alive": alive(worker, now),
        "started_at": iso(worker.started_at),
        "expires_at": iso(worker.expires_at),
        "closed": worker.closed,
    }


def standing_json(standing: Standing) -> dict[str, Any]:
    return {
        "epoch": standing.epoch,
        "halted": [control.scope for control in standing.controls if control.halted],
        "paused": [control.scope for control in standing.controls if control.paused],
        "sealed": standing.sealed or None,
        "under_way": [{"record_id": r.record_id, **receipt_json(r)} for r in standing.under_way],
    }


# -- why -------------------------------------------------------------------------------------------------------


class Around(NamedTuple):
    """What stands around a record and bears on why it does not move."""

    now: float
    standing: Standing
    workers: Sequence[Worker]
    definition: Mapping[str, Any] | None = None
    fanins: Sequence[Fanin] = ()
    #: How many records run in this step, and in this workflow.
    running: tuple[int, int] = (0, 0)
    parent: Record | None = None
    #: The last line of its log that tells of an end.
    ended: Event | None = None


class Why(NamedTuple):
    """Why a record does not move, in one sentence."""

    sentence: str
    #: One word for it: done, error, cancelled, runs, lost, halted, paused, sealed, backs off, scheduled, due, full,
    #: stranded, no worker, sleeps, signal, children, turn, rests, rate, asks, doubt.
    kind: str
    until: float | None = None
    #: The command that changes it; empty where nobody needs to.
    remedy: str = ""


async def around(ledger: Ledger, record: Record, log: Sequence[Event] | None = None) -> Around:
    """Read what bears on this record. ``log``: its lines, if they are at hand."""
    waits = load_waits(record.waits) if not record.ended else ()
    standing, definition, workers, fanins = await asyncio.gather(
        ledger.standing(),
        _known_definition(ledger, record.workflow),
        ledger.workers(),
        _fanins(ledger, record, waits),
    )
    running = (0, 0)
    if record.status is Status.PENDING and definition is not None and _capped(definition, record.step):
        running = await _running(ledger, record)
    parent = None
    if record.parent_id is not None and any(wait.on is On.TURN for wait in waits):
        parent = next(iter(await ledger.load([record.parent_id])), None)
    ended = None
    if record.ended:
        if log is None:
            log = await ledger.events(record_id=record.record_id, limit=100_000)
        ended = log[-1] if log else None
    return Around(standing.now, standing, workers, definition, fanins, running, parent, ended)


async def _known_definition(ledger: Ledger, workflow: str) -> Mapping[str, Any] | None:
    try:
        return await engine.definition(ledger, workflow)
    except NotFound:
        return None


async def _fanins(ledger: Ledger, record: Record, waits: Sequence[Wait]) -> Sequence[Fanin]:
    if any(wait.on is On.CHILDREN for wait in waits):
        return await ledger.fanins(record.record_id)
    return ()


def _capped(definition: Mapping[str, Any], step: str) -> bool:
    return definition.get("cap") is not None or _step(definition, step).get("cap") is not None


async def _running(ledger: Ledger, record: Record) -> tuple[int, int]:
    counts = [c for c in await ledger.counts() if c.workflow == record.workflow and c.status is Status.RUNNING]
    return sum(c.count for c in counts if c.step == record.step), sum(c.count for c in counts)


def _step(definition: Mapping[str, Any] | None, name: str) -> Mapping[str, Any]:
    rows: Sequence[Mapping[str, Any]] = definition["steps"] if definition is not None else ()
    return next((row for row in rows if row["name"] == name or name in row.get("was", ())), {})


def alive(worker: Worker, now: float) -> bool:
    """The worker is open and its lease, with the others' grace, has not run out."""
    return worker.closed is None and worker.expires_at + GRACE * worker.lease_seconds >= now


def knowers(workers: Iterable[Worker], workflow: str, step: str, now: float) -> list[Worker]:
    """The live workers that can run this step."""
    return [worker for worker in workers if alive(worker, now) and [workflow, step] in parse(worker.knows)]


def why(record: Record, seen: Around) -> Why:
    """What the record waits for, until when, and who can change it."""
    match record.status:
        case Status.DONE:
            return Why(
                f"{_id(record)} is done since {when(record.updated_at, seen.now)}; nothing is left to do.", "done"
            )
        case Status.ERROR:
            return _erred(record, seen)
        case Status.CANCELLED:
            return _cancelled(record, seen)
        case Status.RUNNING:
            return _runs(record, seen)
        case _:
            return _waits(record, seen)


def _id(record: Record) -> str:
    return repr(record.record_id)


def _erred(record: Record, seen: Around) -> Why:
    tries = f" after {record.attempt} tries" if record.attempt > 1 else ""
    error = _short(record.last_error or "no reason was given")
    remedy = command("retry", record.record_id)
    text = (
        f"{_id(record)} stopped in ERROR at step {record.step!r}{tries}, {when(record.updated_at, seen.now)}: {error}; "
        f"it moves again only when somebody retries it ({remedy})."
    )
    return Why(text, "error", None, remedy)


def _cancelled(record: Record, seen: Around) -> Why:
    told = parse(seen.ended.body) if seen.ended is not None and seen.ended.kind == "cancelled" else {}
    reason = str(told.get("reason") or record.last_error or "")
    by_halt = reason.startswith("halted") or seen.ended is None or seen.ended.kind not in ("cancelled", "undone")
    if by_halt:
        control = _halt(record, seen.standing)
        by = f" by {control.by}" if control is not None and control.by else ""
        remedy = "quire resume --cancelled"
        text = f"{_id(record)} was cancelled by a halt{by} at step {record.step!r}; it goes on when somebody resumes "
        return Why(f"{text}what the halt cancelled ({remedy}).", "cancelled", None, remedy)
    if record.step == UNDO:
        text = f"{_id(record)} was cancelled and what it did was undone ({_short(reason)}); it starts anew only by hand"
        remedy = command("retry", record.record_id, options="--from STEP")
    else:
        text = f"{_id(record)} was cancelled at step {record.step!r} ({_short(reason or 'no reason was given')}), "
        text += f"{when(record.updated_at, seen.now)}; it goes on only when somebody retries it"
        remedy = command("retry", record.record_id)
    return Why(f"{text} ({remedy}).", "cancelled", None, remedy)


def _runs(record: Record, seen: Around) -> Why:
    worker = next((row for row in seen.workers if row.worker_id == record.worker), None)
    end = when(record.run_until, seen.now)
    step = "its effects are being undone" if record.step == UNDO else f"step {record.step!r} runs"
    try_ = f" (try {record.attempt + 1})" if record.attempt else ""
    if worker is None or not alive(worker, seen.now):
        name = _named(worker) if worker is not None else str(record.worker)
        others = any(alive(row, seen.now) for row in seen.workers)
        then = (
            "a live worker takes it over within seconds" if others else "no worker is alive; start one (quire worker)"
        )
        return Why(
            f"{_id(record)} was being run by worker {name}, which is lost; {then}.", "lost", None, "quire worker"
        )
    if record.run_until is not None and record.run_until < seen.now:
        return Why(f"{_id(record)}: {step} past its end ({end}) on {_named(worker)}; it is being taken over.", "lost")
    if record.cancel is not None:
        wish = parse(record.cancel)
        by = f" by {wish['by']}" if wish.get("by") else ""
        text = f"{_id(record)} is asked{by} to stop and does so at its next await, until {end} at the latest."
        return Why(text, "runs", record.run_until)
    text = f"{_id(record)}: {step}{try_} on worker {_named(worker)}, until {end} at the latest; quire cancel stops it."
    return Why(text, "runs", record.run_until, command("cancel", record.record_id))


def _named(worker: Worker) -> str:
    return f"{worker.worker_id} ({worker.label} on {worker.host.partition(' ')[0]})"


def _halt(record: Record, standing: Standing) -> Control | None:
    return next((c for c in standing.controls if c.halted and c.scope in (EVERYWHERE, record.workflow)), None)


def _pause(record: Record, standing: Standing) -> Control | None:
    return next((c for c in standing.controls if c.paused and c.scope in (EVERYWHERE, record.workflow)), None)


def _held_up(record: Record, seen: Around) -> Why | None:
    """What keeps the whole ledger, or the workflow, from moving."""
    if seen.standing.sealed:
        where = seen.standing.sealed
        return Why(f"{_id(record)} does not move here: this ledger is sealed, its records are at {where}.", "sealed")
    control, word = _halt(record, seen.standing), "halted"
    if control is None:
        control, word = _pause(record, seen.standing), "paused"
    if control is None:
        return None
    what = "the ledger" if control.scope == EVERYWHERE else f"workflow {control.scope!r}"
    by = f" by {control.by}" if control.by else ""
    reason = f" ({control.reason})" if control.reason else ""
    remedy = command("resume", "" if control.scope == EVERYWHERE else control.scope)
    text = f"{_id(record)} at step {record.step!r} does not start: {what} is {word}{by} since "
    text += f"{when(control.at, seen.now)}{reason}; it goes on when somebody resumes it ({remedy})."
    return Why(text, word, None, remedy)


def _waits(record: Record, seen: Around) -> Why:
    waits = load_waits(record.waits)
    due = record.due_at is not None and record.due_at <= seen.now
    if record.status is Status.PENDING or due:
        return _held_up(record, seen) or _due(record, seen)
    asking = [wait for wait in waits if wait.on in (On.QUESTION, On.DOUBT)]
    told = [_wait(record, wait, seen) for wait in (asking or waits)]
    if not told:
        text = f"{_id(record)} is {record.status} at step {record.step!r} and waits for nothing that is named"
        again = command("retry", record.record_id, options=f"--from {shlex.quote(record.step)}")
        return Why(f"{text}; retry it from its step ({again}).", "waits", None, again)
    parts = [text for text, *_ in told]
    joined = (
        parts[0] if len(parts) == 1 else ", or ".join(parts[:3]) + (f", or {len(parts) - 3} more" * (len(parts) > 3))
    )
    sentence = f"{_id(record)} at step {record.step!r} {joined}."
    held = _held_up(record, seen)
    if held is not None and held.kind != "paused":
        return held
    if held is not None:
        sentence = sentence[:-1] + "; the ledger is paused as well."
    _, kind, remedy = told[0]
    return Why(sentence, kind, record.due_at, remedy)


def _due(record: Record, seen: Around) -> Why:
    what = "its effects are to be undone" if record.step == UNDO else f"step {record.step!r}"
    remedy = command("retry", record.record_id)
    if record.due_at is not None and record.due_at > seen.now:
        moment = when(record.due_at, seen.now)
        if record.attempt:
            error = _short(record.last_error or "its worker was lost")
            text = f"{_id(record)} backs off after try {record.attempt} of {what} failed ({error}); "
            return Why(
                text + f"it is tried again {moment}, or at once by {remedy}.", "backs off", record.due_at, remedy
            )
        return Why(f"{_id(record)} starts {what} at {moment}; nobody needs to do anything.", "scheduled", record.due_at)
    since = when(record.due_at, seen.now)
    live = [worker for worker in seen.workers if alive(worker, seen.now)]
    if not live:
        text = (
            f"{_id(record)} is due at {what} since {since}, but no worker is alive; start one (quire up, quire worker)."
        )
        return Why(text, "no worker", None, "quire worker")
    if not knowers(live, record.workflow, record.step, seen.now):
        stranded = "is stranded" if seen.now - (record.due_at or seen.now) > STRANDED_SECONDS else "is due"
        text = f"{_id(record)} {stranded}: none of the {len(live)} live workers knows {what} of {record.workflow!r} "
        text += f"(due since {since}); start a worker with the flow file that has it."
        return Why(text, "stranded", None, "quire worker FILE")
    full = _full(record, seen)
    if full:
        return Why(f"{_id(record)} is due at {what} since {since} and waits for a free slot: {full}.", "full")
    return Why(f"{_id(record)} is due at {what} since {since} and waits for a free worker; nobody needs to act.", "due")


def _full(record: Record, seen: Around) -> str:
    here, all_ = seen.running
    cap = _step(seen.definition, record.step).get("cap")
    if cap is not None and here >= cap:
        return f"{here} of at most {cap} run at this step"
    cap = seen.definition.get("cap") if seen.definition is not None else None
    if cap is not None and all_ >= cap:
        return f"{all_} of at most {cap} run in this workflow"
    return ""


def _wait(record: Record, wait: Wait, seen: Around) -> tuple[str, str, str]:
    """One thing that is waited for: in words, in one word, and what ends it."""
    record_id, about = record.record_id, wait.about or {}
    until = when(wait.until, seen.now) if wait.until is not None else ""
    match wait.on:
        case On.TIMER:
            what = "sleeps" if wait.name == "sleep" else f"waits for {wait.name}"
            return f"{what} until {until}; nobody needs to do anything", "sleeps", ""
        case On.SIGNAL:
            remedy = command("signal", record_id, wait.name)
            limit = f", until {until}" if until else ", without end"
            return f"waits for the signal {wait.name!r}{limit}; anybody may send it ({remedy})", "signal", remedy
        case On.QUESTION:
            return _question(record_id, about, seen.now)
        case On.CHILDREN:
            fanin = next((f for f in seen.fanins if f.generation == wait.generation), None)
            some = f"{fanin.left} of {fanin.total} children" if fanin is not None else "its children"
            failed = f" ({fanin.failed} failed)" if fanin is not None and fanin.failed else ""
            limit = f", until {until}" if until else ""
            remedy = f"quire list --parent={shlex.quote(record_id)}"
            return f"waits for {some}{failed}{limit}; they are listed by {remedy}", "children", remedy
        case On.DOUBT:
            remedy = command("resolve", record_id, options="--happened | --not")
            text = str(about.get("text", f"Did {wait.name!r} happen?"))
            return f"is in doubt and asks a person: {text} Say so with {remedy}", "doubt", remedy
        case On.TURN:
            parent = seen.parent.record_id if seen.parent is not None else record.parent_id
            return f"waits for its turn: its parent {parent!r} lets only some of its children run at once", "turn", ""
        case On.REST:
            then = _step(seen.definition, record.step).get("then", [])
            remedy = command("move", record_id) + " " + ("|".join(map(shlex.quote, then)) if then else "STEP")
            where = ", ".join(map(repr, then)) or "a successor"
            return f"rests until somebody moves it to {where} ({remedy})", "rests", remedy
        case On.RATE:
            return f"waits for the rate {wait.name!r} until {until}; nobody needs to do anything", "rate", ""


def _question(record_id: str, about: Mapping[str, Any], now: float) -> tuple[str, str, str]:
    people = ", ".join(about.get("by", [])) or "anybody"
    choices = about.get("choices", [])
    if "approve" in choices[:1]:
        remedy = command("approve", record_id)
    else:
        remedy = command("answer", record_id) + " " + "|".join(map(shlex.quote, choices))
    end = about.get("expires_at")
    limit = f" until {when(end, now)}" if end is not None else ""
    votes = about.get("votes", [])
    some = f" ({len(votes)} of {about['quorum']} have answered)" if about.get("quorum", 1) > 1 else ""
    return f"asks {people}{some}: {_short(about.get('text', ''))!r}{limit}; answer with {remedy}", "asks", remedy


def _short(text: object, most: int = 160) -> str:
    flat = " ".join(str(text).split())
    return flat[: most - 1] + "…" if len(flat) > most else flat


# -- the log ---------------------------------------------------------------------------------------------------

_HIDDEN = frozenset({"key", "id"})


def _changes(told: Mapping[str, Any]) -> str:
    """What a person changed: ``n 1 → 2, title …``."""
    pairs: Mapping[str, Sequence[Any]] = told.get("changes") or {}
    said = [f"{name} {_short(dump(pair[0]), 40)} → {_short(dump(pair[1]), 40)}" for name, pair in pairs.items()]
    return ", ".join(said or map(str, told.get("changed", ())))


def line(event: Event) -> str:
    """What a line of the log says, in words."""
    told: dict[str, Any] = _value(event.body) or {}
    by = f" by {told['by']}" if told.get("by") else ""
    match event.kind:
        case "started":
            return f"started {told.get('workflow', '')} at {told.get('step', '')}{by}"
        case "claimed":
            return f"claimed by {told.get('worker')} for {told.get('step')}"
        case "moved":
            return f"moved from {told.get('from')} to {told.get('to')}{by}"
        case "done":
            return f"done after {told.get('from')}"
        case "waited" | "asked":
            return f"{event.kind} at {told.get('step')}: {', '.join(told.get('for', []))}"
        case "failed":
            return (
                f"failed at {told.get('step')} (try {told.get('attempt')}), again in {told.get('again_in')} s: "
                + _short(told.get("error", ""))
            )
        case "broke":
            return f"broke at {told.get('step')} (try {told.get('attempt')}): {_short(told.get('error', ''))}"
        case "answered" | "voted":
            note = f": {told['note']}" if told.get("note") else ""
            edits = f", edited {', '.join(told['edits'])}" if told.get("edits") else ""
            edits = f", edited {_changes(told)}" if told.get("changes") else edits
            via = f" ({told['via']})" if told.get("via") else ""
            return f"{event.kind} {told.get('choice')!r}{by}{via}{edits}{note}"
        case "edited":
            return f"edited{by}" + (f": {_changes(told)}" if told.get("changes") or told.get("changed") else "")
        case "effect.intended" | "effect.done" | "effect.void" | "effect.undone" | "effect.twice" | "effect.unclear":
            word = {"intended": "about to happen", "done": "happened", "void": "did not happen"}
            stage = event.kind.removeprefix("effect.")
            return f"effect {told.get('effect')}: {word.get(stage, stage)}"
        case _:
            rest = ", ".join(
                f"{k} {_short(v, 80)}" for k, v in told.items() if k not in _HIDDEN and v not in ("", None)
            )
            return event.kind.replace("_", " ") + (f": {rest}" if rest else "")


# -- report ----------------------------------------------------------------------------------------------------

#: After these a worker no longer holds the record.
_RELEASES = frozenset(
    {"waited", "asked", "failed", "broke", "yielded", "lost", "orphaned", "cancelled", "done", "undone", "doubted"}
)
#: After these the record is due at once.
_WAKES = frozenset(
    {"started", "woken", "answered", "resolved", "retried", "rewound", "revived", "yielded", "lost", "orphaned"}
)
_ENDS = frozenset({"done", "broke", "cancelled", "undone"})


class StepTime(NamedTuple):
    """One visit of a step."""

    step: str
    entered_at: float
    left_at: float | None
    #: How long a worker held the record there.
    running: float
    tries: int


class Report(NamedTuple):
    """Where the time went, computed from the log alone."""

    record_id: str
    started_at: float | None
    ended_at: float | None
    #: From the first claim of the record or a child to the last end of any.
    wall: float | None
    running: float
    steps: tuple[StepTime, ...]
    #: How long each claim came after the record was due.
    hops: tuple[float, ...]
    children: int = 0
    children_running: float = 0.0
    #: The most children that ran at one moment.
    overlap: int = 0


class _Held(NamedTuple):
    """When a worker held a record; and how long it had been due before."""

    spans: tuple[tuple[float, float], ...]
    hops: tuple[float, ...]
    ended_at: float | None


def _held(events: Sequence[Event], now: float) -> _Held:
    spans: list[tuple[float, float]] = []
    hops: list[float] = []
    since: float | None = None
    due: float | None = None
    ended = None
    for place, event in enumerate(events):
        following = events[place + 1].kind if place + 1 < len(events) else ""
        if event.kind == "claimed":
            since = event.at
            if due is not None:
                hops.append(max(0.0, event.at - due))
            due = None
            ended = None
            continue
        released = event.kind in _RELEASES or (event.kind == "moved" and following == "claimed")
        if released and since is not None:
            spans.append((since, event.at))
            since = None
        if event.kind in _WAKES or (event.kind == "moved" and following == "claimed"):
            due = event.at
        elif event.kind == "failed":
            due = event.at + float(parse(event.body).get("again_in", 0.0))
        if event.kind in _ENDS:
            ended = event.at
    if since is not None:
        spans.append((since, now))
    return _Held(tuple(spans), tuple(hops), ended)


def report(events: Sequence[Event], children: Sequence[Sequence[Event]], now: float) -> Report:
    """Compute from the log of a record and the logs of its children."""
    own = _held(events, now)
    others = [_held(log, now) for log in children]
    spans = [*own.spans, *(span for other in others for span in other.spans)]
    starts = [start for start, _ in spans]
    ends = [end for end in (own.ended_at, *(other.ended_at for other in others)) if end is not None]
    first = min(starts, default=None)
    last = max(ends, default=None) if own.ended_at is not None else None
    return Report(
        record_id=events[0].record_id if events else "",
        started_at=first,
        ended_at=last,
        wall=(last if last is not None else now) - first if first is not None else None,
        running=sum(end - start for start, end in own.spans),
        steps=tuple(_steps(events, own)),
        hops=(*own.hops, *(hop for other in others for hop in other.hops)),
        children=len(children),
        children_running=sum(end - start for other in others for start, end in other.spans),
        overlap=_overlap(span for other in others for span in other.spans),
    )


def _overlap(spans: Iterable[tuple[float, float]]) -> int:
    """The most spans that hold one moment in common. An end and a start at the same moment do not overlap."""
    edges = sorted((moment, step) for start, end in spans for moment, step in ((start, 1), (end, -1)))
    most = current = 0
    for _, step in edges:
        current += step
        most = max(most, current)
    return most


def _steps(events: Sequence[Event], held: _Held) -> Iterable[StepTime]:
    step, entered, tries = "", 0.0, 0
    for event in events:
        told = _value(event.body) or {}
        if event.kind == "started":
            step, entered, tries = str(told.get("step", "")), event.at, 0
        elif event.kind == "claimed":
            tries += 1
        elif event.kind in ("moved", "done", "rewound") or (event.kind in _ENDS and told.get("undo")):
            yield StepTime(step, entered, event.at, _within(held.spans, entered, event.at), tries)
            step, entered, tries = str(told.get("to") or told.get("step") or ""), event.at, 0
            if event.kind == "done":
                step = ""
            elif told.get("undo"):
                step = UNDO
    if step:
        ended = held.ended_at
        until = ended if ended is not None else (held.spans[-1][1] if held.spans else entered)
        yield StepTime(step, entered, ended, _within(held.spans, entered, max(until, entered)), tries)


def _within(spans: Iterable[tuple[float, float]], start: float, end: float) -> float:
    return sum(max(0.0, min(b, end) - max(a, start)) for a, b in spans)


def report_json(made: Report) -> dict[str, Any]:
    hops = sorted(made.hops)
    return {
        "record_id": made.record_id,
        "started_at": _moment(made.started_at),
        "ended_at": _moment(made.ended_at),
        "wall_seconds": _rounded(made.wall),
        "running_seconds": _rounded(made.running),
        "steps": [
            {
                "step": row.step,
                "entered_at": iso(row.entered_at),
                "left_at": _moment(row.left_at),
                "running_seconds": _rounded(row.running),
                "claims": row.tries,
            }
            for row in made.steps
        ],
        "hops": len(hops),
        "hop_seconds_median": _rounded(hops[len(hops) // 2]) if hops else None,
        "hop_seconds_most": _rounded(hops[-1]) if hops else None,
        "children": made.children,
        "children_running_seconds": _rounded(made.children_running),
        "children_overlap": made.overlap,
    }


def _rounded(length: float | None) -> float | None:
    return None if length is None else round(length, 4)
