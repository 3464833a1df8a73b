"""Every move of a record, and nothing else.

By a worker, which holds the record (``settle``; the status before is RUNNING):

    | outcome  | status after                             | step, visit    | attempt      | due                  |
    |----------|------------------------------------------|----------------|--------------|----------------------|
    | Next     | PENDING, or RUNNING if it is kept        | next, +1       | 0            | now                  |
    | Next     | WAITING, or DONE, at a resting state     | next, +1       | 0            | never by itself      |
    | Done     | DONE                                     | none           | as it is     | never                |
    | Waits    | WAITING, or NEEDS_APPROVAL if one asks   | as it is       | as it is     | earliest timer       |
    | Saved    | RUNNING                                  | as it is       | 0            | –                    |
    | Migrated | RUNNING                                  | as it is       | as it is     | –                    |
    | Tried    | PENDING                                  | as it is       | +1           | now + delay          |
    | Broke    | ERROR, or PENDING at @undo               | as it is/@undo | +1           | never / now          |
    | Yielded  | PENDING                                  | as it is       | as it is     | now                  |
    | Suspect  | PENDING                                  | as it is       | as it is     | now                  |
    | Stopped  | CANCELLED, or PENDING at @undo           | as it is/@undo | as it is     | never / now          |

By the ledger: ``claim`` (PENDING, WAITING, NEEDS_APPROVAL → RUNNING), ``wake`` (WAITING, NEEDS_APPROVAL → PENDING),
``lose`` and ``orphan`` (RUNNING → PENDING), ``turn`` (WAITING → PENDING), ``doubt`` (RUNNING → NEEDS_APPROVAL),
``halted`` (what nobody holds → CANCELLED).

Of a suspect, by the worker that holds it: ``apart`` (RUNNING → RUNNING, alone; or ERROR when it ended its workers too
often), ``died`` (RUNNING → PENDING, or ERROR when its process died too often).

By a person: ``answer``, ``resolve`` (NEEDS_APPROVAL), ``move`` (anything but RUNNING, DONE and CANCELLED), ``retry``
(ERROR, CANCELLED, what backs off; with a step anything but RUNNING), ``cancel`` (anything that has not ended; to undo
also what has), ``revive`` (what a halt cancelled), ``edit`` (anything but RUNNING and DONE; what asks a question is
PENDING then and asks anew), ``adopt`` (anything that has not ended → NEEDS_APPROVAL; its answer puts it back where it
stood, or cancels it).

``_moved`` is the only place that adds one to the version and writes the line, with what it changes of the data: no move
can forget any of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, assert_never

from quire.errors import IllegalMove
from quire.model.change import Slot
from quire.model.codec import dump, parse
from quire.model.event import Line
from quire.model.record import FORGOTTEN, UNDO, Record, Status
from quire.model.row import Row, replace
from quire.model.wait import On, Wait, dump_waits, earliest, load_waits
from quire.rules import adoption
from quire.rules.difference import changes
from quire.rules.outcome import Broke, Done, Migrated, Next, Outcome, Saved, Stopped, Suspect, Tried, Waits, Yielded

#: A record whose worker was lost this often on one step, while other records ran beside it, is a suspect: its step may
#: be what ends workers. It runs alone from then on (protocol 23). One loss is not enough: machines are stopped.
SUSPECT_LOSSES = 2
#: A suspect that ended this many processes in which it ran alone is an ERROR. ``Record.losses`` goes on counting these
#: above ``SUSPECT_LOSSES``.
MOST_DEATHS = 3


class Move(Row, frozen=True):
    """The record's next image and the lines that tell of it."""

    image: Record
    lines: tuple[Line, ...]


#: No field is the same in all moves of this kind.
_NOTHING: Mapping[str, Any] = {}


def _moved(
    record: Record,
    now: float,
    kind: str,
    body: str | dict[str, Any],
    fields: Mapping[str, Any],
    fixed: Mapping[str, Any] = _NOTHING,
) -> Move:
    data = fields.get("data")
    if data is not None and data != record.data:
        body = (parse(body) if isinstance(body, str) else body) | changes(record.data, data)
    line = Line(kind, body if isinstance(body, str) else dump(body))
    return Move(replace(record, **{**fixed, **fields}, version=record.version + 1, updated_at=now), (line,))


@lru_cache(maxsize=4096)
def _way(from_: str, to: str | None) -> str:
    """The text of a move between two steps. There are few, and many records go the same way."""
    return dump({"from": from_} if to is None else {"from": from_, "to": to})


_ENTERED: dict[str, Any] = {
    "entry": None,
    "attempt": 0,
    "losses": 0,
    "waits": None,
    "question": None,
    "last_error": None,
}
_RELEASED: dict[str, Any] = {"worker": None, "run_until": None}
_AT_REST: dict[str, Any] = {**_RELEASED, "due_at": None, "waits": None, "question": None}
_GOES_ON = _ENTERED
_ENDS_WELL = {**_AT_REST, "status": Status.DONE, "step": "", "entry": None, "last_error": None}


def _entered(record: Record, step: str) -> dict[str, Any]:
    return _ENTERED | {"step": step, "visit": record.visit + 1}


def start(record: Record, now: float, by: str = "") -> Move:
    """Let a new record come into the ledger."""
    body = {"workflow": record.workflow, "step": record.step} | ({"by": by} if by else {})
    return _moved(record, now, "started", body, {})


def settle(record: Record, outcome: Outcome, now: float, *, keep: Slot | None = None) -> Move:
    """Turn the outcome of a pass into the record's next image. ``keep`` asks to stay for the next step."""
    match outcome:
        case Next():
            return _next(record, now, outcome, keep)
        case Done(result=result, data=data):
            return _moved(record, now, "done", _way(record.step, None), {"data": data, "result": result}, _ENDS_WELL)
        case Waits(waits=waits_, data=data):
            return _waiting(record, now, waits_, data)
        case Saved(data=data):
            entry = record.data if record.entry is None and data != record.data else record.entry
            until = now + keep.timeout if keep is not None else record.run_until
            fields = {"data": data, "entry": entry, "attempt": 0, "losses": 0, "run_until": until}
            return _moved(record, now, "saved", {"step": record.step}, fields)
        case Migrated(data=data, code_version=code_version):
            versions = {"from": record.code_version, "to": code_version}
            return _moved(record, now, "migrated", versions, {"data": data, "code_version": code_version})
        case Tried(error=error, delay=delay):
            body = _error_of(record, outcome, again_in=round(delay, 3))
            fields = _released(record) | {"attempt": record.attempt + 1, "last_error": error, "due_at": now + delay}
            return _moved(record, now, "failed", body, fields | {"status": Status.PENDING})
        case Broke(error=error, undo=undo):
            body = _error_of(record, outcome)
            tried = replace(record, attempt=record.attempt + 1, last_error=error)
            if undo:
                return _to_undo(tried, now, "broke", body, Status.CANCELLED, error)
            return _moved(tried, now, "broke", body, _AT_REST | {"status": Status.ERROR})
        case Yielded(reason=reason):
            body = {"step": record.step, "reason": reason}
            return _moved(record, now, "yielded", body, _released(record) | {"status": Status.PENDING, "due_at": now})
        case Suspect(reason=reason):
            go = lose(record, now, reason)
            return replace(go, image=replace(go.image, losses=max(record.losses, SUSPECT_LOSSES)))
        case Stopped(reason=reason, undo=undo):
            return stopped(record, now, reason, undo)
        case _:
            assert_never(outcome)


def _next(record: Record, now: float, outcome: Next, keep: Slot | None) -> Move:
    """The record goes to another step: it is due there, rests or ends there, or stays with its worker."""
    fields = {"step": outcome.step, "visit": record.visit + 1, "data": outcome.data}
    if outcome.ends:
        fields |= _AT_REST | {"status": Status.DONE}
    elif outcome.rests:
        fields |= _AT_REST | {"status": Status.WAITING, "waits": dump_waits([Wait(On.REST, name=outcome.step)])}
    elif keep is not None:
        fields |= {"status": Status.RUNNING, "run_until": now + keep.timeout}
    else:
        fields |= _RELEASED | {"status": Status.PENDING, "due_at": now}
    way = _way(record.step, outcome.step)
    return _moved(record, now, "done" if outcome.ends else "moved", way, fields, _GOES_ON)


def _error_of(record: Record, outcome: Tried | Broke, **more: float) -> dict[str, Any]:
    """What the log keeps of a try that failed."""
    body = {"step": record.step, "attempt": record.attempt + 1, "error": outcome.error, **more}
    return body | {"trace": outcome.trace} if outcome.trace else body


def _waiting(record: Record, now: float, waits: tuple[Wait, ...], data: str) -> Move:
    asks = [wait for wait in waits if wait.on in (On.QUESTION, On.DOUBT)]
    status = Status.NEEDS_APPROVAL if asks else Status.WAITING
    question = str((asks[0].about or {}).get("text", "")) if asks else None
    entry = record.data if record.entry is None and data != record.data else record.entry
    body = {"step": record.step, "for": [f"{wait.on} {wait.name}".strip() for wait in waits[:8]]}
    fields = _released(record) | {
        "status": status,
        "due_at": earliest(waits),
        "waits": dump_waits(waits),
        "question": question,
        "data": data,
        "entry": entry,
    }
    return _moved(record, now, "asked" if asks else "waited", body, fields)


def _to_undo(record: Record, now: float, kind: str, body: dict[str, Any], final: Status, reason: str) -> Move:
    ending = dump({"status": final, "reason": reason, "step": record.step})
    fields = _entered(record, UNDO) | _RELEASED | {"status": Status.PENDING, "due_at": now}
    return _moved(record, now, kind, body | {"undo": True}, fields | {"ending": ending})


def stopped(record: Record, now: float, reason: str, undo: bool, by: str = "") -> Move:
    body = {"step": record.step, "reason": reason} | ({"by": by} if by else {})
    if undo and record.step != UNDO:
        return _to_undo(record, now, "cancelled", body, Status.CANCELLED, reason)
    return _moved(record, now, "cancelled", body, _AT_REST | {"status": Status.CANCELLED})


# -- by the ledger ---------------------------------------------------------------------------------------------


def claim(record: Record, now: float, worker: str, run_id: str, timeout: float) -> Move:
    """Give a due record to this worker, until ``run_until`` at the latest."""
    fields = {"status": Status.RUNNING, "worker": worker, "run_id": run_id, "run_until": now + timeout}
    if record.question is not None:  # the pass asks again if it still must
        fields["question"] = None
    return _moved(record, now, "claimed", claim_body(worker, run_id, record.step), fields)


def claim_body(worker: str, run_id: str, step: str) -> str:
    """Return the body of a claim's line. PostgreSQL writes the same by itself (``ledger/postgres/fast/claims``)."""
    return dump({"worker": worker, "run": run_id, "step": step})


def unkept(image: Record, now: float) -> Record:
    """Return the same image, but its worker does not stay for the next step."""
    return replace(image, status=Status.PENDING, due_at=now, **_RELEASED)


def wake(record: Record, now: float, key: str, why: str) -> Move:
    """What the record waited for (under ``key``) has come. Other waits are remembered: their ends do not move."""
    waits = [wait for wait in load_waits(record.waits) if not key or wait.key != key]
    if adoption.asked(record) is not None:  # one doubt less; a person says whether it goes on
        return _moved(record, now, "woken", {"by": why}, _asking(waits))
    fields = {"status": Status.PENDING, "due_at": now, "waits": dump_waits(waits), "question": None}
    return _moved(record, now, "woken", {"by": why}, fields)


def _asking(waits: Sequence[Wait]) -> dict[str, Any]:
    """The record goes on asking a person: the first of these."""
    text = str((waits[0].about or {}).get("text", ""))
    return {"status": Status.NEEDS_APPROVAL, "due_at": None, "waits": dump_waits(waits), "question": text}


def suspected(record: Record) -> bool:
    """Return whether the record's step may be what ends its workers."""
    return record.losses >= SUSPECT_LOSSES


def lose(record: Record, now: float, why: str) -> Move:
    """The record's worker is lost, or its run is past its end. That is no try: nobody knows whose fault it was."""
    body = {"worker": record.worker, "step": record.step, "reason": why}
    losses = max(record.losses, min(record.losses + 1, SUSPECT_LOSSES))
    return _moved(record, now, "lost", body, _RELEASED | {"losses": losses, "status": Status.PENDING, "due_at": now})


def apart(
    record: Record, now: float, worker: str, timeout: float, *, counted: bool = False, undo: bool = False
) -> Move:
    """A suspect begins to run alone, under the worker that is its own process.

    ``counted``: it runs alone in the worker that holds it, and nobody watches that worker. Then its death is counted
    before it happens; the count is taken back when the worker lets go of the record. ``undo``: if it died too often,
    what it did is undone, as after every other failure of its workflow.
    """
    body = {"worker": worker, "step": record.step}
    fields: dict[str, Any] = {"worker": worker, "run_until": now + timeout}
    if counted:
        if record.losses >= SUSPECT_LOSSES + MOST_DEATHS:
            return _condemned(record, now, "its worker was lost each time", body | {"alone": True}, undo)
        fields["losses"] = max(record.losses, SUSPECT_LOSSES) + 1
    return _moved(record, now, "apart", body, fields)


def died(record: Record, now: float, why: str, *, undo: bool = False) -> Move:
    """Count a failed try: the process in which a suspect ran alone has died by itself. ``undo``: see ``apart``."""
    body = {"worker": record.worker, "step": record.step, "reason": why, "alone": True}
    tried = replace(record, attempt=record.attempt + 1, losses=max(record.losses, SUSPECT_LOSSES) + 1)
    if tried.losses >= SUSPECT_LOSSES + MOST_DEATHS:
        return _condemned(tried, now, why, body, undo)
    fields = {"status": Status.PENDING, "due_at": now, "last_error": f"step {record.step!r} ended its process: {why}"}
    return _moved(tried, now, "lost", body, _RELEASED | fields)


def _condemned(record: Record, now: float, why: str, body: dict[str, Any], undo: bool) -> Move:
    error = f"step {record.step!r} ended {MOST_DEATHS} processes in which it ran alone ({why})"
    tried = replace(record, last_error=error, attempt=max(record.attempt, MOST_DEATHS))
    if undo and record.step != UNDO:
        return _to_undo(tried, now, "lost", body, Status.CANCELLED, error)
    return _moved(tried, now, "lost", body, _AT_REST | {"status": Status.ERROR})


def _released(record: Record) -> dict[str, Any]:
    """Its worker lets go of it, and lives: the deaths that were counted are forgotten, the suspicion is not."""
    return _RELEASED if record.losses <= SUSPECT_LOSSES else _RELEASED | {"losses": SUSPECT_LOSSES}


def orphan(record: Record, now: float) -> Move:
    """Give the record back unharmed: the worker that has it in the ledger does not know of it."""
    body = {"worker": record.worker, "step": record.step}
    return _moved(record, now, "orphaned", body, _released(record) | {"status": Status.PENDING, "due_at": now})


def doubt(image: Record, keys: Sequence[tuple[str, str]]) -> Record:
    """Instead of leaving its step over open intents, the record asks whether they happened (protocol 18)."""
    waits = [doubted(key, name) for key, name in keys]
    question = str((waits[0].about or {})["text"]) if waits else "did it happen?"
    fields = _RELEASED | {"due_at": None, "waits": dump_waits(waits), "question": question}
    return replace(image, status=Status.NEEDS_APPROVAL, result=None, **fields)


def doubted(key: str, name: str, why: str = "", value: Mapping[str, Any] | None = None) -> Wait:
    """The question about an effect that may or may not have happened. ``value``: the JSON schema of what it returns."""
    text = f"Did {name!r} happen?" + (f" ({why})" if why else "")
    about: dict[str, Any] = {"text": text, "choices": ["happened", "not"]}
    return Wait(On.DOUBT, key=key, name=name, about=about if value is None else about | {"value": value})


def valueless(key: str, name: str, why: str, value: Mapping[str, Any] | None) -> Wait:
    """Return the question what an effect returned, which surely happened."""
    text = f"{name!r} happened, but what it returned is not known" + (f" ({why})" if why else "") + ". What was it?"
    about: dict[str, Any] = {"text": text, "choices": ["happened"], "value": value, "of": key}
    return Wait(On.DOUBT, key=f"{key}value", name=name, about=about)


def turn(record: Record, now: float) -> Move:
    """Let a child start that waited for its turn."""
    return _moved(record, now, "woken", {"by": "its turn"}, {"status": Status.PENDING, "due_at": now, "waits": None})


def obeyed(record: Record, now: float, request: str) -> Move:
    """What becomes of a record that somebody asked to cancel while it ran (``Record.cancel``)."""
    body = parse(request)
    return stopped(record, now, str(body.get("reason", "")), bool(body.get("undo")), str(body.get("by", "")))


def halted(image: Record) -> Record:
    """What a halted record becomes instead of going on. It keeps its waits: a person may revive it where it stood."""
    return replace(image, status=Status.CANCELLED, due_at=None, **_RELEASED)


# -- by a person -----------------------------------------------------------------------------------------------


def _refuse(record: Record, verb: str, why: str) -> IllegalMove:
    return IllegalMove(f"cannot {verb} {record.record_id!r}: {why}")


def forget(record: Record, now: float, by: str, before: float) -> Move:
    """The record ended long ago: nothing of it stays but what makes it known.

    Its id, dedupe key, status, version, epoch, visit and the end of its log stay: a start under its id is known, and no
    key is made again.
    """
    if not record.ended or record.open_intents:
        raise _refuse(record, "forget", "it has not ended" if not record.ended else "an effect of it is in doubt")
    if record.forgotten:
        raise _refuse(record, "forget", "it is forgotten already")
    body = {"by": by, "before": before, "lines": record.log_seq, "hash": record.log_hash}
    empty = dict.fromkeys(("entry", "result", "waits", "question", "note", "last_error", "run_id", "ending", "due_at"))
    return _moved(record, now, "forgotten", body, empty | {"data": "{}", "attempt": FORGOTTEN})


def cancel(record: Record, now: float, by: str, reason: str, *, undo: bool, halted: bool = False) -> Move:
    """Not for a RUNNING record: that one is asked to stop (``Change.cancel``).

    ``halted``: a halt has cancelled the record. It may be cancelled for good: then no ``resume`` brings it back.
    A record in ERROR may be cancelled, too: nobody will retry it, and it no longer counts among what is stuck.
    """
    if undo and record.step == UNDO:  # to begin again would leave out what is still to be undone
        over = "its undoing was stopped; a retry goes on with it" if record.ending else "it was undone already"
        raise _refuse(record, "undo", over if record.ended else "it is being undone already")
    nothing_left = record.ended and record.status is not Status.ERROR
    if record.status is Status.RUNNING or (nothing_left and not undo and not halted):
        raise _refuse(record, "cancel", f"it is {record.status}")
    move = stopped(record, now, reason or f"cancelled by {by or 'a person'}", undo)
    return replace(move, lines=tuple(Line(line.kind, dump(parse(line.body) | {"by": by})) for line in move.lines))


def retry(record: Record, now: float, by: str, *, step: str = "") -> Move:
    """Try again where it stopped, or, with ``step``, from an earlier step (a new visit: its effects count anew)."""
    if record.forgotten:
        raise _refuse(record, "retry", "its data are forgotten; start it under another id")
    backs_off = record.status is Status.PENDING and record.attempt > 0
    if not (record.status in (Status.ERROR, Status.CANCELLED) or backs_off or step):
        raise _refuse(record, "retry", f"it is {record.status}; only ERROR, CANCELLED and what backs off is retried")
    if record.status is Status.RUNNING:
        raise _refuse(record, "rewind", "it is RUNNING; cancel it first, or wait for its step to end")
    if record.open_intents and step:
        raise _refuse(record, "rewind", f"{record.open_intents} effects are in doubt; resolve them first")
    body = {"by": by, "step": step or record.step, "from": record.step}
    fresh = {"status": Status.PENDING, "due_at": now, "attempt": 0, "losses": 0, "last_error": None, "ending": None}
    if step:
        fields = _entered(record, step) | _RELEASED | fresh | {"result": None}
        return _moved(record, now, "rewound", body, fields)
    if record.step == UNDO and record.ending is None:
        raise _refuse(record, "retry", "what it did was undone; rewind it to a step with --from STEP")
    fields = _RELEASED | fresh | {"ending": record.ending}
    return _moved(record, now, "retried", body, fields)


def move(record: Record, now: float, by: str, step: str, legal: Collection[str], *, rests: bool, ends: bool) -> Move:
    """Move the record, for a person, to a declared successor of where it stands."""
    if record.status is Status.RUNNING:
        raise _refuse(record, "move", "it is RUNNING; wait for its step to end")
    if record.status in (Status.DONE, Status.CANCELLED) or record.step == UNDO:
        here = record.status if record.step in ("", UNDO) else record.step
        raise IllegalMove(
            f"Invalid state transition: Cannot move from {here} to {step}. ({record.record_id!r} is {record.status})"
        )
    if step not in legal:
        where = ", ".join(repr(name) for name in sorted(legal)) or "nowhere"
        raise IllegalMove(
            f"Invalid state transition: Cannot move from {record.step} to {step}. "
            f"({record.record_id!r} may go from {record.step!r} to {where})"
        )
    if record.open_intents:
        raise _refuse(record, "move", f"{record.open_intents} effects are in doubt; resolve them first")
    body = {"from": record.step, "to": step, "by": by}
    fields = _entered(record, step) | _RELEASED
    if ends:
        return _moved(record, now, "moved", body, fields | _AT_REST | {"status": Status.DONE, "step": step})
    if rests:
        waits = dump_waits([Wait(On.REST, name=step)])
        return _moved(record, now, "moved", body, fields | _AT_REST | {"status": Status.WAITING, "waits": waits})
    return _moved(record, now, "moved", body, fields | {"status": Status.PENDING, "due_at": now})


def answered(record: Record, now: float, key: str, body: dict[str, Any], data: str | None = None) -> Move:
    """Make the record due again: its question has an answer. The receipt goes with the change."""
    if record.status is not Status.NEEDS_APPROVAL:
        raise _refuse(record, "answer", f"it asks nothing; it is {record.status}")
    waits = [wait for wait in load_waits(record.waits) if wait.key != key]
    if (asked := adoption.asked(record)) is not None and asked.key == key:
        return _let_go_on(record, now, asked, waits, body)
    fields: dict[str, Any] = {"status": Status.PENDING, "due_at": now, "waits": dump_waits(waits), "question": None}
    if data is not None and data != record.data:
        fields |= {"data": data, "entry": record.data if record.entry is None else record.entry}
    return _moved(record, now, "answered", body, fields)


def voted(record: Record, now: float, waits: Sequence[Wait], body: dict[str, Any]) -> Move:
    """One of several answers that a question needs."""
    return _moved(record, now, "voted", body, {"waits": dump_waits(waits)})


def resolved(record: Record, now: float, key: str, body: dict[str, Any]) -> Move:
    """A person says whether an effect in doubt happened; the record goes on when no other doubt is left."""
    if record.status is not Status.NEEDS_APPROVAL:
        raise _refuse(record, "resolve", f"nothing of it is in doubt; it is {record.status}")
    waits = [wait for wait in load_waits(record.waits) if wait.key != key]
    doubts = [wait for wait in waits if wait.on is On.DOUBT or adoption.stood(wait) is not None]
    if doubts:
        question = str((doubts[0].about or {}).get("text", ""))
        return _moved(record, now, "resolved", body, {"waits": dump_waits(waits), "question": question})
    fields = {"status": Status.PENDING, "due_at": now, "waits": dump_waits(waits), "question": None}
    return _moved(record, now, "resolved", body, fields)


def adopt(
    record: Record, now: float, by: str, why: str, epoch: int, keys: Sequence[tuple[str, str]] = (), number: int = 0
) -> Move:
    """The ledger was copied or restored: a person is asked whether the record goes on, and what of ``keys`` happened.

    ``number``: of this adoption; 0: it has the epoch.
    """
    if record.ended:
        raise _refuse(record, "adopt", f"it is {record.status}")
    asked = adoption.question(record, why, number or epoch, now)
    where = "here, or in the part that is gone" if number else "here or in the other book"
    waits = [asked, *(doubted(key, name, where) for key, name in keys)]
    body = {"by": by, "reason": why, "step": record.step, "was": record.status}
    return _moved(record, now, "adopted", body, _RELEASED | _asking(waits) | {"epoch": epoch})


def _let_go_on(record: Record, now: float, asked: Wait, left: Sequence[Wait], body: dict[str, Any]) -> Move:
    """A person says what becomes of an adopted record: it stands where it stood again, or is cancelled."""
    if body.get("choice") == adoption.CANCEL:
        return cancel(record, now, str(body.get("by", "")), "cancelled when its book was adopted", undo=False)
    before = adoption.stood(asked) or {}
    if left:  # effects in doubt come first; then it starts its step from the top
        waits = [*left, *load_waits(before["waits"])]
        return _moved(record, now, "answered", body, _asking(waits))
    fields = {word: before[word] for word in ("due_at", "waits", "question")}
    return _moved(record, now, "answered", body, fields | {"status": Status(before["status"])})


def edit(record: Record, now: float, by: str, data: str) -> Move:
    """Change the data of a record that nobody holds, for a person."""
    if record.forgotten:
        raise _refuse(record, "edit", "its data are forgotten")
    if record.status in (Status.RUNNING, Status.DONE):
        raise _refuse(record, "edit", f"it is {record.status}")
    fields = {"data": data, "entry": None} | _to_ask_anew(record, now)
    return _moved(record, now, "edited", {"by": by}, fields)


def _to_ask_anew(record: Record, now: float) -> dict[str, Any]:
    """What was asked showed the data as they were: the step asks anew, and keeps the votes if it shows the same.

    Doubts ask of what happened, and adoption of where it goes on: no edit changes these.
    """
    if record.status is not Status.NEEDS_APPROVAL:
        return {}
    waits = load_waits(record.waits)
    if (asked := adoption.asked(record)) is not None:
        return {"waits": dump_waits(adoption.to_ask_anew(wait, now) if wait == asked else wait for wait in waits)}
    if all(wait.on is not On.QUESTION for wait in waits):
        return {}
    doubts = [wait for wait in waits if wait.on is On.DOUBT]
    if doubts:  # they come first; then the step starts from its top and asks
        left = [*doubts, *(wait for wait in waits if wait.on not in (On.DOUBT, On.QUESTION))]
        return _asking(left) | {"due_at": earliest(left)}
    return {"status": Status.PENDING, "due_at": now, "question": None}


def revive(record: Record, now: float, by: str, epoch: int) -> Move:
    """A record that a halt cancelled goes on in the new epoch, where it stood.

    Its step starts again from its top and waits for what it still lacks; only what has no step to start stays at rest.
    """
    if record.forgotten:
        raise _refuse(record, "resume", "its data are forgotten")
    if record.status in (Status.RUNNING, Status.DONE):
        raise _refuse(record, "resume", f"it is {record.status}")
    waits = load_waits(record.waits)
    rests = any(wait.on in (On.REST, On.TURN) for wait in waits)
    if any(adoption.stood(wait) is not None for wait in waits):  # a person still says whether it goes on here at all
        return _moved(record, now, "revived", {"by": by, "epoch": epoch}, _asking(waits) | {"epoch": epoch})
    status, due_at = (Status.WAITING, None) if rests else (Status.PENDING, now)
    fields = {"epoch": epoch, "status": status, "due_at": due_at, "question": None}
    return _moved(record, now, "revived", {"by": by, "epoch": epoch}, fields)


def undone(record: Record, now: float) -> Move:
    """End the record as it was going to: nothing is left to undo."""
    ending = parse(record.ending) if record.ending else {"status": Status.CANCELLED, "reason": "undone"}
    body = {"status": ending["status"], "reason": ending["reason"]}
    fields = _AT_REST | {"ending": None, "last_error": ending["reason"]}
    return _moved(record, now, "undone", body, fields | {"status": Status(ending["status"])})
