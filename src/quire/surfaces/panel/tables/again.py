"""Run again: a row whose record has ended gets a new record, under an id that says which run it is. Pure.

The ledger keeps which run of a row counts (``Kept.runs``). So a second run starts once, whoever dies in between, and a
lost hidden tab does not bring the first one back.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from quire.surfaces.panel.tables.lines import NEW, Line, TableRow

#: What a person types over a word that is an end; the menu of the sheet's script types the same.
AGAIN = "Run again"

_RUN = re.compile(r"(.+)_run(\d+)", re.DOTALL)


def run_of(record_id: str) -> tuple[str, int]:
    """Return the id of the first run's record, and which run this is."""
    found = _RUN.fullmatch(record_id)
    return (found[1], int(found[2])) if found is not None else (record_id, 1)


def id_of(first: str, run: int) -> str:
    return first if run == 1 else f"{first}_run{run}"


def next_run(record_id: str) -> dict[str, int]:
    first, run = run_of(record_id)
    return {first: run + 1}


def current(record_id: str, runs: Mapping[str, int]) -> str:
    """Return the id of the record that counts for a row."""
    first, run = run_of(record_id)
    return id_of(first, max(run, runs.get(first, 1)))


def dedupe_key(book: str, sheet_id: int, row: TableRow) -> str:
    """Return what tells the start of this row's record from every other start."""
    _, run = run_of(row.record_id)
    return f"table|{book}|{sheet_id}|{row.key}" + (f"|{run}" if run > 1 else "")


def rebound(row: TableRow, line: Line, record_id: str, word: str, was: str) -> TableRow:
    """Return the hidden row of a row that is about to start its next record."""
    key = record_id if row.key == row.record_id else row.key
    blank: dict[str, Any] = {"note": "", "version": "", "code": "", "slots": ()}
    return row._replace(
        record_id=record_id, key=key, word=word, mark=NEW, was=was, fingerprint=line.fingerprint, **blank
    )
