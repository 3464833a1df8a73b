"""A record as a file and as a line of the table. Only what comes with an event is in it, so that both can be compared.

The file begins with its rank: the record's version, and how many lines its log has.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from quire.clock import iso
from quire.folder.base import Rank
from quire.folder.text import laid_out
from quire.model.record import Record, Status
from quire.model.state import shown_status

#: The first seven are the state table as people know it.
COLUMNS: Final = (
    "record_id",
    "status",
    "next_step",
    "dedupe_key",
    "last_run_id",
    "last_error",
    "updated_at",
    "step",
    "version",
    "visit",
    "attempt",
    "due_at",
    "question",
    "note",
    "created_at",
    "file",
)

_RANK = re.compile(rb'\{\s*"version": (\d+),\s*"lines": (\d+),')
#: A cell that a spreadsheet would take for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def next_step(record: Record) -> str:
    """Where the record goes on; empty once it is DONE."""
    return "" if record.status is Status.DONE else record.step


def dedupe_key(record: Record) -> str:
    """Return the record's own, or that of its current step."""
    return record.dedupe_key or f"{record.workflow}|{record.record_id}|{record.step}"


def rank(record: Record) -> Rank:
    return Rank(record.version, record.log_seq)


def rank_of(content: bytes) -> Rank:
    """The rank that a state file says it has; the lowest if it says none."""
    found = _RANK.match(content)
    return Rank(int(found[1]), int(found[2])) if found is not None else Rank(0, 0)


def fields(record: Record) -> dict[str, Any]:
    """The record as its state file shows it, but for the values that are JSON already."""
    return {
        "version": record.version,
        "lines": record.log_seq,
        "record_id": record.record_id,
        "workflow": record.workflow,
        "status": record.status,
        "next_step": next_step(record),
        "dedupe_key": dedupe_key(record),
        "last_run_id": record.run_id,
        "last_error": record.last_error,
        "updated_at": iso(record.updated_at),
        "step": record.step,
        "visit": record.visit,
        "attempt": record.attempt,
        "due_at": iso(record.due_at) or None,
        "worker": record.worker,
        "question": record.question,
        "note": record.note,
        "priority": record.priority,
        "parent_id": record.parent_id,
        "code_version": record.code_version,
        "epoch": record.epoch,
        "created_at": iso(record.created_at),
        "under_way": record.open_intents,
        "log_hash": record.log_hash,
    }


def state_file(record: Record) -> bytes:
    """Return the content of ``state_<record>.json``: a field a line; data and result exactly as the ledger has them."""
    raw = {"cancel": record.cancel, "waits": record.waits, "data": record.data, "result": record.result}
    return laid_out(fields(record), {name: text or "null" for name, text in raw.items()})


def row(
    record: Record,
    file: str,
    *,
    text: Callable[[str], str] | None = None,
    status: Callable[[Record], str] = shown_status,
) -> list[str]:
    """Return the record's line in the table, in the order of ``COLUMNS``. ``text`` guards it, instead of ``safe``."""
    text = text or safe
    return [
        text(record.record_id),
        text(status(record)),
        next_step(record),
        text(dedupe_key(record)),
        record.run_id or "",
        text(record.last_error or ""),
        iso(record.updated_at),
        record.step,
        str(record.version),
        str(record.visit),
        str(record.attempt),
        iso(record.due_at),
        text(record.question or ""),
        text(record.note or ""),
        iso(record.created_at),
        text(file),
    ]


def status_before(record: Record) -> str:
    """The status as tables were written before: a declared state in which a record ended was shown as DONE."""
    return record.status.value


def safe(text: str) -> str:
    """Text that a spreadsheet shows and does not compute: what looks like a formula gets an apostrophe before it.

    So does what begins with one: no two texts become the same.
    """
    return "'" + text if text.startswith((*_FORMULA, "'")) else text


def safe_before(text: str) -> str:
    """The same as tables were written before: what began with an apostrophe was left as it was."""
    return "'" + text if text.startswith(_FORMULA) else text
