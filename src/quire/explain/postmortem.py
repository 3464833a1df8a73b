"""The post-mortem of a record: all that is known about it, as one page of Markdown. Pure.

The page is written from the ledger: where the record stands, what it was given, its log, each failed try with its
trace, its effects with their receipts, its children. Links lead to the files that show the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from quire.clock import iso
from quire.explain import words
from quire.model.event import Event
from quire.model.receipt import Receipt
from quire.model.record import Record
from quire.model.trace import trace_lines

#: Of more children than this, the page counts the rest.
MOST_CHILDREN = 100


def postmortem(
    record: Record,
    why: str,
    events: Sequence[Event],
    receipts: Sequence[Receipt],
    children: Sequence[Record],
    *,
    files: Mapping[str, str] | None = None,
    link: str | None = None,
) -> str:
    """Return the page. ``files``: what each file of the folder is, and where it is; ``link``: the record's page."""
    parts = [
        f"# {_inline(record.record_id)}: {record.status}",
        _standing(record, why, link),
        f"## What it holds\n\n{_code(words.value_json(record.data), 'json')}",
        *([f"## Its result\n\n{_code(words.value_json(record.result), 'json')}"] if record.result is not None else []),
        _failures(events),
        _timeline(events),
        _effects(receipts),
        _children(children),
        _files(files),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _standing(record: Record, why: str, link: str | None) -> str:
    rows = [
        ("workflow", record.workflow),
        ("step", record.step or "ended"),
        ("started", iso(record.created_at)),
        ("last change", iso(record.updated_at)),
        ("tries at this step", str(record.attempt)),
        ("version", str(record.version)),
        ("parent", record.parent_id or ""),
        ("last run", record.run_id or ""),
        ("page", link or ""),
    ]
    return f"{_inline(why)}\n\n" + _table(("", ""), [row for row in rows if row[1]])


def _failures(events: Sequence[Event]) -> str:
    failed = [event for event in events if event.kind in ("failed", "broke", "lost")]
    parts = []
    for number, event in enumerate(failed, 1):
        trace = trace_lines(event)
        shown = f"\n\n{_code(chr(10).join(trace))}" if trace else ""
        parts.append(f"### {number}. {iso(event.at)}\n\n{_inline(words.line(event))}{shown}")
    return "## What failed\n\n" + "\n\n".join(parts) if parts else ""


def _timeline(events: Sequence[Event]) -> str:
    rows = [(iso(event.at), str(event.version), words.line(event), event.run_id or "") for event in events]
    return "## What happened\n\n" + _table(("at", "version", "what", "run"), rows)


def _effects(receipts: Sequence[Receipt]) -> str:
    rows = [
        (
            receipt.name,
            str(receipt.kind),
            str(receipt.stage),
            f"{receipt.step}/{receipt.visit}",
            iso(receipt.done_at or receipt.at),
            words.short(receipt.value or ""),
            receipt.key,
        )
        for receipt in receipts
    ]
    return "## What it did\n\n" + _table(("name", "kind", "stage", "step", "at", "value", "key"), rows) if rows else ""


def _children(children: Sequence[Record]) -> str:
    if not children:
        return ""
    failed_first = sorted(children, key=lambda child: child.last_error is None)
    rows = [(child.record_id, str(child.status), child.step, child.last_error or "") for child in failed_first]
    left = len(rows) - MOST_CHILDREN
    more = f"\n\nand {words.counted(left, 'child') if left == 1 else f'{left:,} children'} more" if left > 0 else ""
    return "## Its children\n\n" + _table(("child", "status", "step", "error"), rows[:MOST_CHILDREN]) + more


def _files(files: Mapping[str, str] | None) -> str:
    if files is None:
        return ""
    rows = [(what, where) for where, what in files.items()]
    return "## Evidence\n\n" + (_table(("what", "file"), rows) if rows else "The folder holds no file of this record.")


# -- Markdown ------------------------------------------------------------------------------------------------------


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *([_inline(cell) for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _inline(text: str) -> str:
    """Return the text on one line, so that nothing in it is taken for Markdown or ends a cell."""
    flat = " ".join(text.split())
    return "".join("\\" + char if char in "\\`*[]<>|" else char for char in flat)


def _code(value: object, language: str = "") -> str:
    """Return a block of code; its fence is longer than any in the text."""
    text = value if isinstance(value, str) and not language else json.dumps(value, ensure_ascii=False, indent=2)
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}"
