"""Why a record does not move: one sentence that says what it waits for, until when, and who can change it.

``around`` reads what matters for the record; ``why_of`` decides over it and reads nothing.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from quire.errors import NotFound
from quire.explain.words import command, short, span, when
from quire.ledger import engine
from quire.ledger.base import Ledger
from quire.ledger.workers import alive, knowers
from quire.model.change import Standing
from quire.model.codec import parse
from quire.model.event import Event
from quire.model.fit import needs_value
from quire.model.record import UNDO, Record, Status
from quire.model.side import EVERYWHERE, Control, Fanin, Worker
from quire.model.wait import On, Wait, load_waits
from quire.rules import conditions
from quire.rules import moves as transition
from quire.rules.lines import LineKind
from quire.rules.orders import cancelled_by_halt, undoes
from quire.worker.last_tick import comes, last_tick
from quire.worker.slices import StepTime, step_times, too_long
from quire.workflows.approval import unanswerable

#: A record that is due for so long, and whose step no live worker knows, is stranded.
STRANDED_SECONDS = 300.0


class Around(NamedTuple):
    """What stands around a record and may be why it does not move."""

    now: float
    standing: Standing
    workers: Sequence[Worker]
    definition: Mapping[str, Any] | None = None
    fanins: Sequence[Fanin] = ()
    #: How many records run in this step, and in this workflow.
    running: tuple[int, int] = (0, 0)
    parent: Record | None = None
    #: Groups of people and their members, where they are known.
    groups: Mapping[str, Sequence[str]] | None = None
    #: Of one that is CANCELLED: the last line of its log that tells of an end, and whether a halt cancelled it.
    ended: Event | None = None
    by_halt: bool = False
    #: When the last tick of a periodic caller was, and how often one is expected.
    tick: tuple[float, float] | None = None
    #: What is known of its step, if it is too long for the slices that begin it.
    too_long: StepTime | None = None


class Why(NamedTuple):
    """Why a record does not move, in one sentence."""

    sentence: str
    #: One word for it: done, error, cancelled, runs, lost, halted, paused, sealed, backs off, scheduled, due, full,
    #: stranded, no worker, too long, sleeps, held, signal, children, turn, rests, rate, asks, doubt.
    kind: str
    until: float | None = None
    #: The command that changes it; empty where nobody needs to.
    remedy: str = ""


async def around(
    ledger: Ledger,
    record: Record,
    log: Sequence[Event] | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
) -> Around:
    """Read what matters for this record. ``log``: its lines, if they are at hand; ``groups``: of people, if known."""
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
    ended, by_halt = None, False
    if record.status is Status.CANCELLED:
        if log is None:
            log = await ledger.events(record_id=record.record_id, limit=100_000)
        ended = next((event for event in reversed(log) if event.kind in (LineKind.CANCELLED, LineKind.UNDONE)), None)
        by_halt = cancelled_by_halt(log)
    seen = Around(standing.now, standing, workers, definition, fanins, running, parent, groups, ended, by_halt)
    if record.status is not Status.PENDING or any(alive(worker, standing.now) for worker in workers):
        return seen
    times = too_long(await step_times(ledger, standing.now))
    return seen._replace(tick=await last_tick(ledger), too_long=times.get((record.workflow, record.step)))


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


def why_of(record: Record, seen: Around) -> Why:
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
    error = short(record.last_error or "no reason was given")
    remedy = command("retry", record.record_id)
    text = (
        f"{_id(record)} stopped in ERROR at step {record.step!r}{tries}, {when(record.updated_at, seen.now)}: {error}; "
        f"it moves again only when somebody retries it ({remedy})."
    )
    return Why(text, "error", None, remedy)


def _cancelled(record: Record, seen: Around) -> Why:
    body = parse(seen.ended.body) if seen.ended is not None else {}
    reason = str(body.get("reason") or record.last_error or "")
    if seen.by_halt:
        control = _halt(record, seen.standing)
        by = f" by {control.by}" if control is not None and control.by else ""
        remedy = "quire resume --cancelled"
        text = f"{_id(record)} was cancelled by a halt{by} at step {record.step!r}; it goes on when somebody resumes "
        return Why(f"{text}what the halt cancelled ({remedy}).", "cancelled", None, remedy)
    if record.step == UNDO and record.ending is not None:
        text = (
            f"{_id(record)} was cancelled before all that it did was undone ({short(reason)}); a retry undoes the rest"
        )
        remedy = command("retry", record.record_id)
    elif record.step == UNDO:
        text = f"{_id(record)} was cancelled and what it did was undone ({short(reason)}); it starts anew only by hand"
        remedy = command("retry", record.record_id, options="--from STEP")
    else:
        text = f"{_id(record)} was cancelled at step {record.step!r} ({short(reason or 'no reason was given')}), "
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
    if conditions.overdue(record, seen.now):
        return Why(f"{_id(record)}: {step} past its end ({end}) on {_named(worker)}; it is being taken over.", "lost")
    if record.cancel is not None:
        wish = parse(record.cancel)
        by = f" by {wish['by']}" if wish.get("by") else ""
        text = f"{_id(record)} is asked{by} to stop and does so at its next await, until {end} at the latest."
        return Why(text, "runs", record.run_until)
    alone = ", alone, because workers were lost under it" if transition.suspected(record) else ""
    text = f"{_id(record)}: {step}{try_} on worker {_named(worker)}{alone}, until {end} at the latest; "
    text += "quire cancel stops it."
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
    causes = [_wait(record, wait, seen) for wait in (asking or waits)]
    if not causes:
        text = f"{_id(record)} is {record.status} at step {record.step!r} and waits for nothing that is named"
        again = command("retry", record.record_id, options=f"--from {shlex.quote(record.step)}")
        return Why(f"{text}; retry it from its step ({again}).", "waits", None, again)
    parts = [text for text, *_ in causes]
    joined = (
        parts[0] if len(parts) == 1 else ", or ".join(parts[:3]) + (f", or {len(parts) - 3} more" * (len(parts) > 3))
    )
    sentence = f"{_id(record)} at step {record.step!r} {joined}."
    held = _held_up(record, seen)
    if held is not None and held.kind != "paused":
        return held
    if held is not None:
        sentence = sentence[:-1] + "; the ledger is paused as well."
    if record.cancel is not None:
        what = "its effects are undone" if undoes(record.cancel) else "it is cancelled"
        sentence = f"{sentence[:-1]}; {what} as soon as that is known."
    _, kind, remedy = causes[0]
    return Why(sentence, kind, record.due_at, remedy)


def _due(record: Record, seen: Around) -> Why:
    what = "its effects are to be undone" if record.step == UNDO else f"step {record.step!r}"
    remedy = command("retry", record.record_id)
    if record.due_at is not None and record.due_at > seen.now:
        moment = when(record.due_at, seen.now)
        if record.attempt:
            error = short(record.last_error or "its worker was lost")
            text = f"{_id(record)} backs off after try {record.attempt} of {what} failed ({error}); "
            return Why(
                text + f"it is tried again {moment}, or at once by {remedy}.", "backs off", record.due_at, remedy
            )
        return Why(f"{_id(record)} starts {what} at {moment}; nobody needs to do anything.", "scheduled", record.due_at)
    since = when(record.due_at, seen.now)
    live = [worker for worker in seen.workers if alive(worker, seen.now)]
    if not live and seen.too_long is not None:
        return _does_not_fit(record, seen.too_long)
    if not live and seen.tick is not None and comes(seen.tick, seen.now):
        expected = max(seen.now, seen.tick[0] + seen.tick[1])
        text = f"{_id(record)} is due at {what} since {since}; the next tick takes it, expected at "
        return Why(f"{text}{when(expected, seen.now)}; nobody needs to act.", "due", expected)
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
    if not knowers(live, record.workflow, record.step, seen.now, record.code_version):
        text = f"{_id(record)} is due at {what} since {since}, with data of version {record.code_version} of "
        text += f"{record.workflow!r}, and all live workers have an older one; start a worker with the newer flow file."
        return Why(text, "stranded", None, "quire worker FILE")
    full = _full(record, seen)
    if full:
        return Why(f"{_id(record)} is due at {what} since {since} and waits for a free slot: {full}.", "full")
    return Why(f"{_id(record)} is due at {what} since {since} and waits for a free worker; nobody needs to act.", "due")


def _does_not_fit(record: Record, time: StepTime) -> Why:
    remedy = f"quire tick --budget {time.fitting}s"
    text = f"{_id(record)} is due, but its step {record.step!r} does not fit into a slice of {span(time.slice)}: it "
    text += f"{time.words()}, so no such slice begins it; give it a longer one ({remedy}), or let quire worker run it."
    return Why(text, "too long", None, remedy)


def _full(record: Record, seen: Around) -> str:
    here, all_ = seen.running
    cap = _step(seen.definition, record.step).get("cap")
    if cap is not None and here >= cap:
        return f"{here} of at most {cap} run at this step"
    cap = seen.definition.get("cap") if seen.definition is not None else None
    if cap is not None and all_ >= cap:
        return f"{all_} of at most {cap} run in this workflow"
    return ""


def _children(record_id: str, wait: Wait, until: str, seen: Around) -> tuple[str, str, str]:
    fanin = next((fanin for fanin in seen.fanins if fanin.generation == wait.generation), None)
    some = f"{fanin.left} of {fanin.total} children" if fanin is not None else "its children"
    failed = f" ({fanin.failed} failed)" if fanin is not None and fanin.failed else ""
    limit = f", until {until}" if until else ""
    remedy = f"quire list --parent={shlex.quote(record_id)}"
    return f"waits for {some}{failed}{limit}; they are listed by {remedy}", "children", remedy


def _doubt(record_id: str, wait: Wait) -> tuple[str, str, str]:
    about = wait.about or {}
    happened = "--happened" + (" --value JSON" if needs_value(about.get("value")) else "")
    other = " | --not" if "not" in about.get("choices", ["not"]) else ""
    remedy = command("resolve", record_id, options=happened + other)
    text = str(about.get("text", f"Did {wait.name!r} happen?"))
    return f"is in doubt and asks a person: {text} Say so with {remedy}", "doubt", remedy


def _wait(record: Record, wait: Wait, seen: Around) -> tuple[str, str, str]:
    """Say what one wait is: in a sentence, in one word, and with the command that ends it."""
    record_id, about = record.record_id, wait.about or {}
    until = when(wait.until, seen.now) if wait.until is not None else ""
    match wait.on:
        case On.TIMER:
            return _timer(wait.name, about, until)
        case On.SIGNAL:
            remedy = command("signal", record_id, wait.name)
            limit = f", until {until}" if until else ", without end"
            return f"waits for the signal {wait.name!r}{limit}; anybody may send it ({remedy})", "signal", remedy
        case On.QUESTION:
            return _question(record_id, about, seen)
        case On.CHILDREN:
            return _children(record_id, wait, until, seen)
        case On.DOUBT:
            return _doubt(record_id, wait)
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


def _timer(name: str, about: Mapping[str, Any], until: str) -> tuple[str, str, str]:
    """A moment that is waited for: by itself, or because something cannot be done for now."""
    if "because" not in about:
        what = "sleeps" if name == "sleep" else f"waits for {name}"
        return f"{what} until {until}; nobody needs to do anything", "sleeps", ""
    remedy = str(about.get("remedy", ""))
    helps = f"; {remedy} helps" if remedy else ""
    because = str(about["because"]).rstrip(".")
    return f"cannot do {name!r} now: {because}{helps}; it is tried again {until}, and no try is counted", "held", remedy


def _question(record_id: str, about: Mapping[str, Any], seen: Around) -> tuple[str, str, str]:
    people = ", ".join(about.get("by", [])) or "anybody"
    choices = about.get("choices", [])
    if "approve" in choices[:1]:
        remedy = command("approve", record_id)
    else:
        remedy = command("answer", record_id) + " " + "|".join(map(shlex.quote, choices))
    end = about.get("expires_at")
    limit = f" until {when(end, seen.now)}" if end is not None else ""
    votes = about.get("votes", [])
    some = f" ({len(votes)} of {about['quorum']} have answered)" if about.get("quorum", 1) > 1 else ""
    asks = f"asks {people}{some}: {short(about.get('text', ''))!r}{limit}"
    nobody = unanswerable(about, seen.groups) if seen.groups is not None else ""
    if nobody:
        return f"{asks}, but {nobody}; name the group and its members under [groups] in quire.toml", "asks", remedy
    return f"{asks}; answer with {remedy}", "asks", remedy
