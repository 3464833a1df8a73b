"""A record as people see it: times and commands in words, its log in sentences, and what the ledger holds as JSON.

Every surface tells of records through here, so that the command line, the API and the sheet say the same.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from quire.clock import iso
from quire.folder.state import dedupe_key
from quire.ledger.workers import alive
from quire.model.change import Reach, Standing
from quire.model.codec import dump, parse
from quire.model.event import Event
from quire.model.fit import needs_value
from quire.model.receipt import Kind, Receipt
from quire.model.record import Record
from quire.model.side import Signal, Worker
from quire.model.wait import On, Wait, load_waits

# -- words -----------------------------------------------------------------------------------------------------


def span(length: float) -> str:
    """Return a length of time in words: 4.2 s, 3 min, 2 h 5 min, 3 d."""
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


def record_link(public_url: str, record_id: str) -> str | None:
    """Return the address of the record's page in the dashboard; None if nobody can reach the server from outside."""
    return f"{public_url.rstrip('/')}/#/record/{quote(record_id, safe='')}" if public_url else None


def command(verb: str, *words: str, options: str = "") -> str:
    """A command as it is typed into a shell: words quoted where they must be, and never taken for options."""
    quoted = " ".join(shlex.quote(word) for word in words if word)
    if any(word.startswith("-") for word in words):
        return " ".join(part for part in ("quire", verb, options, "--", quoted) if part)
    return " ".join(part for part in ("quire", verb, quoted, options) if part)


def counted(count: int, word: str, words: str = "") -> str:
    """Return a number with its word: 1 record, 3 records. ``words``: of more than one, where it is no plain 's'."""
    return f"{count:,} {word if count == 1 else words or f'{word}s'}"


def short(text: object, most: int = 160) -> str:
    """Return the text on one line, cut where it is long."""
    flat = " ".join(str(text).split())
    return flat[: most - 1] + "…" if len(flat) > most else flat


# -- as JSON ---------------------------------------------------------------------------------------------------


@lru_cache(20_000)
def moment_json(moment: float | None) -> str | None:
    """A moment as ISO-8601, or null."""
    return None if moment is None else iso(moment)


def value_json(text: str | None) -> Any:
    """What a stored text says, or null."""
    return None if text is None or text == "" else parse(text)


def record_json(record: Record) -> dict[str, Any]:
    """Return a record with readable names: what ``--json`` and the API answer."""
    return {
        "record_id": record.record_id,
        "workflow": record.workflow,
        "status": str(record.status),
        "next_step": record.step,
        "visit": record.visit,
        "attempt": record.attempt,
        "priority": record.priority,
        "due_at": moment_json(record.due_at),
        "run_until": moment_json(record.run_until),
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
        "cancel": value_json(record.cancel),
        "data": value_json(record.data),
        "result": value_json(record.result),
        "created_at": moment_json(record.created_at),
        "updated_at": moment_json(record.updated_at),
    }


def wait_json(wait: Wait) -> dict[str, Any]:
    about = wait.about or {}
    shown: dict[str, Any] = {"on": str(wait.on), "name": wait.name, "until": moment_json(wait.until)}
    if wait.on in (On.QUESTION, On.DOUBT):
        shown |= {
            "question": about.get("text"),
            "choices": about.get("choices", []),
            "hash": about.get("hash"),
            "show": about.get("show"),
            "edit": about.get("edit", []),
            "by": about.get("by", []),
            "quorum": about.get("quorum", 1),
            "votes": [{**vote, "at": moment_json(vote.get("at"))} for vote in about.get("votes", [])],
            "expires_at": moment_json(about.get("expires_at")),
        }
    if wait.on is On.DOUBT:  # what the effect returns, as a JSON schema, and whether it must be given
        shown |= {"value": about.get("value"), "needs_value": needs_value(about.get("value"))}
    return shown


def event_json(event: Event) -> dict[str, Any]:
    return {
        "seq": event.seq,
        "record_id": event.record_id,
        "n": event.n,
        "version": event.version,
        "at": iso(event.at),
        "kind": event.kind,
        "body": value_json(event.body),
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
        "value": value_json(receipt.value),
        "at": iso(receipt.at),
        "done_at": moment_json(receipt.done_at),
        "act_by": moment_json(receipt.act_by),
        "worker": receipt.worker or None,
        "undoable": bool(receipt.undo),
        "key": receipt.key,
        "act_key": receipt.known_as if receipt.kind in (Kind.ONCE, Kind.UNDO) else None,
        "signature": receipt.signature or None,
    }


def signal_json(signal: Signal) -> dict[str, Any]:
    return {
        "signal_id": signal.signal_id,
        "name": signal.name,
        "value": value_json(signal.value),
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
    } | ({} if standing.returned is None else {"returned": standing.returned})


def held_words(reach: Reach) -> str:
    """Return what halts hold, as ``it holds 436 records, 400 of which ask a person``."""
    verb = "asks" if reach.held_asking == 1 else "ask"
    asking = f", {reach.held_asking:,} of which {verb} a person" if reach.held_asking else ""
    return f"it holds {'at least ' * reach.more}{counted(reach.held, 'record')}{asking}"


# -- the log ---------------------------------------------------------------------------------------------------

_HIDDEN = frozenset({"key", "id", "trace"})
#: How a line tells what it changed of the data.
_CHANGES = frozenset({"changes", "came", "went", "changed"})
#: So many fields are named in words.
_MOST_FIELDS = 6


def _changes(body: Mapping[str, Any]) -> str:
    """What was changed: ``n 1 → 2, title …``."""
    pairs: Mapping[str, Sequence[Any]] = body.get("changes") or {}
    said = [f"{name} {short(dump(pair[0]), 40)} → {short(dump(pair[1]), 40)}" for name, pair in pairs.items()]
    said += map(str, body.get("changed", ()))
    more = [f"{len(said) - _MOST_FIELDS} more"] if len(said) > _MOST_FIELDS else []
    return ", ".join(said[:_MOST_FIELDS] + more)


#: What became of an effect, in words.
_STAGES = {
    "parked": "parked; it acts only if people release it",
    "released": "released by people",
    "dropped": "not to be done",
    "intended": "about to happen",
    "done": "happened",
    "void": "did not happen",
    "kept": "stays as it is",
    "unfit": "what it returned cannot be kept",
}


_OF_EFFECTS = frozenset(f"effect.{stage}" for stage in (*_STAGES, "undone", "twice", "unclear", "unfit"))


def line(event: Event) -> str:
    """What a line of the log says, in words."""
    kept = value_json(event.body)
    body: dict[str, Any] = kept if isinstance(kept, dict) else {}
    changes = _changes(body)
    if changes and event.kind not in ("edited", "answered"):
        return f"{_line(event, body)}; {changes}"
    return _line(event, body)


def _of_effect(stage: str, body: Mapping[str, Any]) -> str:
    reason = body.get("error") or body.get("problem")
    return f"effect {body.get('effect')}: {_STAGES.get(stage, stage)}{f': {short(reason)}' if reason else ''}"


def _line(event: Event, body: Mapping[str, Any]) -> str:
    by = f" by {body['by']}" if body.get("by") else ""
    match event.kind:
        case "started":
            return f"started {body.get('workflow', '')} at {body.get('step', '')}{by}"
        case "claimed":
            return f"claimed by {body.get('worker')} for {body.get('step')}"
        case "moved":
            return f"moved from {body.get('from')} to {body.get('to')}{by}"
        case "done":
            return f"done after {body.get('from')}"
        case "waited" | "asked":
            return f"{event.kind} at {body.get('step')}: {', '.join(body.get('for', []))}"
        case "failed":
            return (
                f"failed at {body.get('step')} (try {body.get('attempt')}), again in {body.get('again_in')} s: "
                + short(body.get("error", ""))
            )
        case "broke":
            return f"broke at {body.get('step')} (try {body.get('attempt')}): {short(body.get('error', ''))}"
        case "answered" | "voted":
            return _answered(event.kind, body, by)
        case "edited":
            return f"edited{by}" + (f": {_changes(body)}" if _changes(body) else "")
        case kind if kind in _OF_EFFECTS:
            return _of_effect(kind.removeprefix("effect."), body)
        case _:
            return event.kind.replace("_", " ") + _rest(body)


def _answered(kind: str, body: Mapping[str, Any], by: str) -> str:
    note = f": {body['note']}" if body.get("note") else ""
    edits = f", edited {', '.join(body['edits'])}" if body.get("edits") else ""
    edits = f", edited {_changes(body)}" if _changes(body) else edits
    via = f" ({body['via']})" if body.get("via") else ""
    return f"{kind} {body.get('choice')!r}{by}{via}{edits}{note}"


def _rest(body: Mapping[str, Any]) -> str:
    """What a line holds that has no sentence of its own."""
    said = ((word, value) for word, value in body.items() if word not in _HIDDEN | _CHANGES)
    rest = ", ".join(f"{word} {short(value, 80)}" for word, value in said if value not in ("", None, []))
    return f": {rest}" if rest else ""
