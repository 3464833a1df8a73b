"""A mirror: records, lines of the log and receipts, copied to where people analyse them.

A mirror follows the log by a cursor, as the folder does. The cursor is a setting of the ledger that one process at a
time may write (`Sole`). It moves after the target is durable. So a process that dies in between copies the same lines
once more, and the target keeps them once: by the record's version, by the line's number, by the receipt's key.

There are two targets. Files of JSON lines, one row a line, are read by nearly everything; beside them lies the schema
that BigQuery's loader takes. Tables of a PostgreSQL database are for those who ask by SQL. Nothing reads a mirror back.
"""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from quire.client.client import Client
from quire.clock import iso, new_id
from quire.errors import InputError, LedgerError
from quire.ledger.sole import Sole
from quire.model.codec import parse
from quire.model.event import Event
from quire.model.receipt import Receipt
from quire.model.record import Record

BATCH: Final = 2000
SCHEMAS: Final = ("postgresql://", "postgres://")


class Column(NamedTuple):
    name: str
    #: STRING, INTEGER, TIMESTAMP or JSON: the words of BigQuery.
    kind: str
    of: Callable[[Any], Any]
    required: bool = False


class Table(NamedTuple):
    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    #: The column that says which of two rows with one key is the newer one; empty: a row never changes.
    newer: str = ""

    def row(self, row: Any) -> dict[str, Any]:
        """Return the row under the names of its columns, as JSON keeps it."""
        found = {}
        for name, kind, of, _ in self.columns:
            value = of(row)
            if value is not None and kind == "TIMESTAMP":
                value = iso(value)
            elif value is not None and kind == "JSON":
                value = parse(value) if value else None
            elif value is not None and kind == "STRING":
                value = str(value)
            found[name] = value
        return found


def _column(name: str, kind: str = "STRING", *, required: bool = False) -> Column:
    return Column(name, kind, lambda row: getattr(row, name), required)


RECORDS: Final = Table(
    "records",
    (
        _column("record_id", required=True),
        _column("workflow", required=True),
        _column("status", required=True),
        Column("next_step", "STRING", lambda record: record.step),
        _column("visit", "INTEGER"),
        _column("attempt", "INTEGER"),
        _column("priority", "INTEGER"),
        _column("data", "JSON"),
        _column("result", "JSON"),
        _column("last_error"),
        _column("question"),
        _column("note"),
        _column("parent_id"),
        Column("last_run_id", "STRING", lambda record: record.run_id),
        Column("workflow_version", "INTEGER", lambda record: record.code_version),
        _column("version", "INTEGER", required=True),
        _column("created_at", "TIMESTAMP", required=True),
        _column("updated_at", "TIMESTAMP", required=True),
    ),
    ("record_id",),
    "version",
)
EVENTS: Final = Table(
    "events",
    (
        _column("record_id", required=True),
        _column("n", "INTEGER", required=True),
        _column("version", "INTEGER", required=True),
        _column("at", "TIMESTAMP", required=True),
        _column("kind", required=True),
        _column("body", "JSON"),
        _column("run_id"),
        _column("hash", required=True),
    ),
    ("record_id", "n"),
)
RECEIPTS: Final = Table(
    "receipts",
    (
        Column("receipt_key", "STRING", lambda receipt: receipt.key, required=True),
        _column("nonce", required=True),
        _column("record_id", required=True),
        _column("step"),
        _column("visit", "INTEGER"),
        _column("name"),
        _column("kind", required=True),
        _column("stage", required=True),
        _column("value", "JSON"),
        _column("at", "TIMESTAMP", required=True),
        _column("done_at", "TIMESTAMP"),
    ),
    ("receipt_key", "nonce"),
    "done_at",
)
TABLES: Final = (RECORDS, EVENTS, RECEIPTS)


class Target(ABC):
    """Where a mirror is written. What it is given a second time it keeps once."""

    @abstractmethod
    async def open(self) -> str:
        """Make what is missing, and return the name that tells this mirror from any other."""

    @abstractmethod
    async def write(self, after: int, last: int, rows: dict[str, list[dict[str, Any]]]) -> None:
        """Keep the rows that the lines after ``after`` up to ``last`` concern. They are durable when this returns."""

    async def close(self) -> None:
        return None


class Copied(NamedTuple):
    lines: int
    records: int
    #: The last line that is in the mirror.
    seq: int


async def mirror(client: Client, target: Target, *, batch: int = BATCH) -> Copied:
    """Copy all that is new, and return how much that was. Refused while another process writes this mirror."""
    ledger = client.ledger
    sole = Sole(ledger, f"mirror/{await target.open()}", client.clock, {"value": None})
    held, kept = await sole.take()
    if not held:
        raise LedgerError("another process writes this mirror now; try again when it has ended")
    seq, lines, touched = int(((kept or {}).get("value") or {}).get("seq", 0)), 0, 0
    try:
        while events := await ledger.events(after=seq, limit=batch):
            ids = list(dict.fromkeys(event.record_id for event in events))
            rows: dict[str, Sequence[Record | Event | Receipt]] = {
                "events": events,
                "records": await ledger.load(ids),
                "receipts": await ledger.receipts(record_ids=ids),
            }
            last = events[-1].seq
            await target.write(seq, last, {table.name: [table.row(r) for r in rows[table.name]] for table in TABLES})
            if not await sole.keep({"value": {"seq": last}}):
                raise LedgerError(
                    "another process writes this mirror now; what it has not copied comes with its next run"
                )
            seq, lines, touched = last, lines + len(events), touched + len(ids)
    finally:
        await sole.release({"value": {"seq": seq}})
    return Copied(lines, touched, seq)


def target_of(to: str) -> Target:
    """Return the target that an address or a path names."""
    if to.startswith(SCHEMAS):
        from quire.upkeep.mirror_postgres import PostgresTarget

        return PostgresTarget(to)
    if "://" in to:
        raise InputError(
            f"{to!r} is no place for a mirror: give a directory for JSON lines, or postgresql://…; "
            "for BigQuery load the JSON lines, and Firestore is not supported"
        )
    return JsonLines(Path(to))


class JsonLines(Target):
    """A directory: ``records/``, ``events/`` and ``receipts/``, a file for each batch, and ``schema/``.

    A file is named after the lines that it covers. What stands there from the cursor on was written by a process that
    died before the cursor moved; it is replaced.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    async def open(self) -> str:
        try:
            for table in TABLES:
                (self.path / table.name).mkdir(parents=True, exist_ok=True)
            (self.path / "schema").mkdir(exist_ok=True)
            for table in TABLES:
                text = json.dumps(bigquery_schema(table), indent=2) + "\n"
                (self.path / "schema" / f"{table.name}.json").write_text(text, encoding="utf-8")
            about = self.path / "mirror.json"
            if not about.exists():
                _durably(about, json.dumps({"mirror": new_id("m_")}) + "\n")
            return str(json.loads(about.read_text(encoding="utf-8"))["mirror"])
        except (OSError, ValueError, KeyError) as error:
            raise InputError(f"{str(self.path)!r} cannot hold a mirror: {error}") from error

    async def write(self, after: int, last: int, rows: dict[str, list[dict[str, Any]]]) -> None:
        for table in TABLES:
            folder = self.path / table.name
            for path in folder.glob("*.jsonl"):
                if int(path.stem.partition("-")[0]) > after:
                    path.unlink()
            text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows[table.name])
            _durably(folder / f"{after + 1:012d}-{last:012d}.jsonl", text)


def bigquery_schema(table: Table) -> list[dict[str, str]]:
    """Return the table's schema as BigQuery's loader takes it (``bq load --source_format=NEWLINE_DELIMITED_JSON``)."""
    return [
        {"name": name, "type": kind, "mode": "REQUIRED" if required else "NULLABLE"}
        for name, kind, _, required in table.columns
    ]


def _durably(path: Path, text: str) -> None:
    """Write the file so that after a crash it is there whole, or not at all."""
    part = path.with_suffix(".part")
    with open(part, "w", encoding="utf-8", errors="surrogatepass", newline="\n") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)
