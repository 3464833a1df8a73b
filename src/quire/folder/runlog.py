"""A run as a file: one worker's hold on a record, from claim to release, made of the record's log.

A run ends with the line that releases the record. ``moved`` alone does not say whether the worker stayed for the next
step: then what follows decides, or the record itself. A run whose worker was lost is ended by the line of whoever took
the record over; its status is CRASHED. So every run has exactly one log, written once, when its end is known:

    | outcome              | status         |
    |----------------------|----------------|
    | moved, done, undone  | DONE           |
    | waited               | WAITING        |
    | asked, doubted       | NEEDS_APPROVAL |
    | yielded, orphaned    | PENDING        |
    | failed, broke        | ERROR          |
    | cancelled            | CANCELLED      |
    | lost                 | CRASHED        |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from quire.clock import iso
from quire.folder.secret import redacted
from quire.folder.text import laid_out
from quire.model.codec import parse
from quire.model.event import Event
from quire.model.receipt import Kind, Receipt
from quire.model.record import Record, Status
from quire.rules.lines import FREE, HELD, LineKind

CRASHED: Final = "CRASHED"

STATUS: Final[dict[str, str]] = {
    LineKind.MOVED: "DONE",
    LineKind.DONE: "DONE",
    LineKind.UNDONE: "DONE",
    LineKind.WAITED: "WAITING",
    LineKind.ASKED: "NEEDS_APPROVAL",
    LineKind.DOUBTED: "NEEDS_APPROVAL",
    LineKind.YIELDED: "PENDING",
    LineKind.ORPHANED: "PENDING",
    LineKind.FAILED: "ERROR",
    LineKind.BROKE: "ERROR",
    LineKind.CANCELLED: "CANCELLED",
    LineKind.LOST: CRASHED,
}
#: Shown values are cut here; the ledger has them whole.
_MOST: Final = 2000


class Run(NamedTuple):
    """The lines of one run that has ended, from ``claimed`` to the one that released the record."""

    lines: tuple[Event, ...]

    @property
    def run_id(self) -> str:
        return str(parse(self.lines[0].body).get("run") or self.lines[0].run_id)

    @property
    def started_at(self) -> float:
        return self.lines[0].at

    @property
    def outcome(self) -> str:
        last = self.lines[-1]
        return "lost" if last.change_id.startswith("lost-") else last.kind


def split(lines: Sequence[Event], record: Record | None) -> tuple[list[Run], list[Event]]:
    """The runs in these lines of one record that have ended, and the lines of the one that has not.

    ``record``: the row as it is now; it decides about a last ``moved`` if it is as old as the last of the lines.
    """
    ended: list[Run] = []
    open_: list[Event] = []
    moved = 0  # where in the open run the worker may have let go
    for event in lines:
        if event.kind == LineKind.CLAIMED:
            if open_:
                ended.append(Run(tuple(open_[: moved or len(open_)])))
            open_, moved = [event], 0
            continue
        if not open_:
            continue
        free = event.kind in FREE or _by_others(event)
        if moved and free:
            ended.append(Run(tuple(open_[:moved])))
            open_, moved = [], 0
            continue
        open_.append(event)
        if event.kind in HELD:
            moved = 0
        elif event.kind == LineKind.MOVED:
            moved = len(open_)
        elif event.kind in STATUS and not free:
            ended.append(Run(tuple(open_)))
            open_, moved = [], 0
    if moved and record is not None and record.version == lines[-1].version:
        held = record.status is Status.RUNNING and record.run_id == Run(tuple(open_)).run_id
        if not held:
            ended.append(Run(tuple(open_[:moved])))
            open_ = []
    return ended, open_


def _by_others(event: Event) -> bool:
    """A person's move or cancel, or a sweep's: nobody held the record then."""
    if event.kind not in (LineKind.MOVED, LineKind.CANCELLED):
        return False
    return event.change_id.startswith(("halt-", "abandon-")) or "by" in parse(event.body)


def fields(
    run: Run,
    record: Record,
    receipts: Iterable[Receipt],
    *,
    files: Callable[[Receipt], str] = lambda _: "",
    links: Callable[[str], bool] = lambda _: False,
    config: str = "",
) -> dict[str, Any]:
    """The run as its log shows it. ``receipts``: all of the record's; those of this run are found by their place."""
    first, last = run.lines[0], run.lines[-1]
    claim = parse(first.body)
    own = [r for r in receipts if first.n <= r.seq <= last.n and r.worker == claim.get("worker")]
    done = {parse(e.body).get("key") for e in run.lines if e.kind == LineKind.EFFECT_DONE}
    kept = [receipt for receipt in own if receipt.key in done or receipt.kind not in (Kind.ONCE, Kind.UNDO)]
    return {
        "run_id": run.run_id,
        "workflow_name": record.workflow,
        "started_at": iso(first.at),
        "ended_at": iso(last.at),
        "status": STATUS[run.outcome] if run.outcome in STATUS else run.outcome.upper(),
        "outcome": run.outcome,
        "seconds": round(last.at - first.at, 6),
        "inputs": {
            "record_id": record.record_id,
            "step": claim.get("step"),
            "version": first.version,
            "code_version": record.code_version,
            "config_version": config,
            "worker": claim.get("worker"),
        },
        "actions": _actions(run, own),
        "outputs": {
            "receipts": [name for r in kept if r.key in done and (name := files(r))],
            "artifacts": sorted({link for r in kept for link in _strings(r.value) if links(link)}),
        },
        "errors": _errors(run),
        "lines": {"first": first.n, "last": last.n, "hash": last.hash},
    }


def _actions(run: Run, receipts: Sequence[Receipt]) -> list[dict[str, Any]]:
    """One entry per call, effect and line, in order, each with its time."""
    first = run.lines[0].n
    shown: list[tuple[float, dict[str, Any]]] = []
    effects: dict[str, dict[str, Any]] = {}
    for event in run.lines[1:]:
        body: dict[str, Any] = parse(event.body)
        key = body.get("key")
        if event.kind == LineKind.EFFECT_INTENDED:
            entry = {"at": iso(event.at), "action": "effect", "name": body.get("effect"), "stage": "intended"}
            effects[str(key)] = entry | {"_at": event.at}
            shown.append((event.n, effects[str(key)]))
        elif event.kind.startswith("effect.") and str(key) in effects:
            entry = effects[str(key)]
            entry |= {"stage": event.kind.removeprefix("effect."), "ended_at": iso(event.at)}
            entry["seconds"] = round(event.at - entry["_at"], 6)
        else:
            body = {name: _shown(value) for name, value in body.items() if name != "trace"}  # it stands in ``errors``
            shown.append((event.n, {"at": iso(event.at), "action": event.kind} | body))
    for receipt in receipts:
        if receipt.kind in (Kind.CALL, Kind.SLEEP, Kind.WAIT, Kind.ASK):
            entry = {"at": iso(receipt.at), "action": receipt.kind, "name": receipt.name}
            shown.append((max(receipt.seq, first) - 0.5, entry))  # it came with the line, so it was before it
    shown.sort(key=lambda pair: pair[0])
    return [{name: value for name, value in entry.items() if name != "_at"} for _, entry in shown]


def _errors(run: Run) -> list[dict[str, Any]]:
    errors = []
    for event in run.lines:
        body: dict[str, Any] = parse(event.body)
        text = body.get("error")
        if text is None and event.kind in (LineKind.LOST, LineKind.EFFECT_TWICE):
            text = body.get("reason") or f"the effect {body.get('effect')!r} was done twice"
        if text is None and event.change_id.startswith("lost-"):
            text = body.get("reason")
        if text:
            entry = {"at": iso(event.at), "event": event.kind, "error": redacted(str(text))}
            errors.append(entry | ({"trace": body["trace"]} if body.get("trace") else {}))
    return errors


def _shown(value: Any) -> Any:
    if isinstance(value, str):
        value = redacted(value)
        return value if len(value) <= _MOST else f"{value[:_MOST]}… ({len(value)} characters)"
    return value


def _strings(text: str) -> Iterable[str]:
    """Yield the texts within a JSON value."""
    if not text or '"' not in text:
        return
    todo = [parse(text)]
    while todo:
        value = todo.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            todo += value
        elif isinstance(value, dict):
            todo += value.values()


def run_log(shown: dict[str, Any]) -> bytes:
    """Return the content of ``logs/<date>/<run_id>.json``."""
    return laid_out(shown)
