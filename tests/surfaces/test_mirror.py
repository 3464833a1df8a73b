"""A mirror: what is copied is there once, whatever dies in between, and fits the schema that lies beside it."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

from quire import Fail, Run, Workflow
from quire.client.client import Client
from quire.errors import InputError, LedgerError
from quire.ledger.sole import Sole
from quire.testing import ToldClock
from quire.upkeep.mirror import TABLES, JsonLines, Target, mirror, target_of

flow: Workflow[dict[str, Any], Any, None] = Workflow("job")


@flow.step(then="count")
async def note(run: Run[dict[str, Any]]) -> None:
    run.data["text"] = await run.call(str.upper, run.data["text"])


@flow.step
async def count(run: Run[dict[str, Any]]) -> int:
    if run.data["text"] == "BAD":
        raise Fail("bad text")
    return len(run.data["text"])


def lines(path: Path, table: str) -> list[dict[str, Any]]:
    return [
        json.loads(line) for file in sorted((path / table).glob("*.jsonl")) for line in file.read_text().splitlines()
    ]


def fits(row: dict[str, Any], schema: list[dict[str, str]]) -> None:
    """Whether BigQuery's loader takes the row: the fields of the schema and no others, each of its type."""
    assert row.keys() <= {field["name"] for field in schema}
    for field in schema:
        value = row.get(field["name"])
        if value is None:
            assert field["mode"] == "NULLABLE", field
        elif field["type"] == "TIMESTAMP":
            datetime.fromisoformat(value)
        elif field["type"] != "JSON":
            assert type(value) is {"STRING": str, "INTEGER": int}[field["type"]], field


async def worked(client: Client, *ids: str, text: str = "hello") -> None:
    for record_id in ids:
        await client.start("job", {"text": text}, id=record_id)
    await client.work()


class Dies(JsonLines):
    """The process dies when the files are written and the cursor has not moved."""

    async def write(self, after: int, last: int, rows: dict[str, list[dict[str, Any]]]) -> None:
        await super().write(after, last, rows)
        raise KeyboardInterrupt


async def test_each_run_goes_on_and_what_is_copied_twice_stands_there_once(tmp_path: Path) -> None:
    async with Client("memory:", workflows=[flow], who="ann", clock=ToldClock()) as client:
        await worked(client, "a", "b")
        with pytest.raises(KeyboardInterrupt):
            await mirror(client, Dies(tmp_path), batch=3)
        await worked(client, "c", text="bad")
        first = await mirror(client, JsonLines(tmp_path), batch=4)
        again = await mirror(client, JsonLines(tmp_path))
        await worked(client, "d")
        more = await mirror(client, JsonLines(tmp_path))
        events = await client.events(limit=1000)

    written = lines(tmp_path, "events")
    assert [(line["record_id"], line["n"], line["hash"]) for line in written] == [
        (event.record_id, event.n, event.hash) for event in events
    ]
    assert (first.lines + more.lines, again.lines, more.records) == (len(events), 0, 1)
    newest = {row["record_id"]: row for row in lines(tmp_path, "records")}
    assert {record_id: row["status"] for record_id, row in newest.items()} == {
        "a": "DONE",
        "b": "DONE",
        "c": "ERROR",
        "d": "DONE",
    }
    assert newest["a"]["data"] == {"text": "HELLO"} and newest["a"]["result"] == 5


async def test_the_files_fit_the_schema_that_lies_beside_them(tmp_path: Path) -> None:
    async with Client("memory:", workflows=[flow], who="ann") as client:
        await worked(client, "a")
        await mirror(client, JsonLines(tmp_path))

    for table in TABLES:
        schema = json.loads((tmp_path / "schema" / f"{table.name}.json").read_text())
        rows = lines(tmp_path, table.name)
        assert rows
        for row in rows:
            fits(row, schema)


@pytest.mark.parametrize("text", ["hello", "a backslash \\u0000, 'quotes' and ü"])
async def test_tables_of_a_database_hold_each_row_once(postgres_url: str, text: str) -> None:
    url = f"{postgres_url}?schema=seen"
    async with Client("memory:", workflows=[flow], who="ann") as client:
        await worked(client, "a", text=text)
        for _ in range(2):  # the second time everything is copied again, as after a death before the cursor moved
            target = target_of(url)
            made = await mirror(client, target, batch=2)
            kept = await client.ledger.setting(f"mirror/{await target.open()}")
            await target.close()
            assert kept is not None
            leased = Sole(client.ledger, kept.name, client.clock, {})
            await leased.take()
            await leased.release({"value": {"seq": 0}})
        record = await client.get("a")

    with psycopg.connect(postgres_url) as db:
        counts = [db.execute(f"SELECT count(*) FROM seen.{table.name}").fetchone() for table in TABLES]
        row = db.execute("SELECT status, version, data->>'text', updated_at FROM seen.records").fetchone()
    assert counts == [(1,), (made.lines,), (1,)]
    assert row is not None and row[:2] == ("DONE", record.version)
    assert row[2] == text.upper()
    assert row[3].timestamp() == pytest.approx(record.updated_at, abs=0.001)


async def test_two_processes_do_not_write_one_mirror(tmp_path: Path) -> None:
    async with Client("memory:", workflows=[flow], who="ann") as client:
        await worked(client, "a")
        name = await JsonLines(tmp_path).open()
        await Sole(client.ledger, f"mirror/{name}", client.clock, {}).take()

        with pytest.raises(LedgerError, match="another process writes this mirror now"):
            await mirror(client, JsonLines(tmp_path))

    assert lines(tmp_path, "events") == []


@pytest.mark.parametrize("to", ["bigquery://project/set", "firestore://project", "postgresql://x?schema=A-b"])
def test_what_is_no_place_for_a_mirror_is_refused(to: str) -> None:
    with pytest.raises(InputError):
        target_of(to)


async def test_a_ledger_is_not_taken_for_a_mirror(postgres_url: str) -> None:
    async with Client(f"{postgres_url}?schema=quire"):
        target: Target = target_of(f"{postgres_url}?schema=quire")
        with pytest.raises(InputError, match="holds a ledger"):
            await target.open()
        await target.close()
