"""Verification: whatever was altered, forged, lost or added is named, first things first."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from quire.client.client import Client
from quire.clock import SYSTEM
from quire.folder.projector import Projector
from quire.upkeep.verify import Verified, verify
from tests.folder.flows import opened, publish, steps

BASE = "folder/Workflows/seo_publish"


async def published(client: Client, record_id: str) -> None:
    await client.start(publish, {"keyword": record_id}, id=record_id)
    await client.work()
    await client.answer(record_id, "approve")
    await client.work()


def edited(path: Path, **fields: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | fields, indent=2))


async def after(where: Path, harm: Callable[[Path], object]) -> Verified:
    """What verification finds in a folder that was in order before this was done to it."""
    async with opened(where) as (client, folder):
        await published(client, "a")
        await published(client, "b")
        await Projector(client.ledger, folder, client.clock).catch_up()
        before = await verify(client, folder)
        assert before.ok and before.as_dict()["differences"] == []
        harm(where / BASE)
        return await verify(client, folder)


def log_of(base: Path) -> Path:
    return min((base / "logs").rglob("*.json"))


@pytest.mark.parametrize(
    ("harm", "kind", "where", "what"),
    [
        (lambda b: edited(b / "state/state_a.json", status="ERROR"), "state", "state_a.json", "'status' is 'ERROR'"),
        (lambda b: edited(b / "state/state_a.json", version=99), "state", "state_a.json", "'version' is 99"),
        (lambda b: (b / "state/state_a.json").unlink(), "missing", "state_a.json", "is not there"),
        (lambda b: (b / "state/state_a.json").write_text("oops"), "state", "state_a.json", "not a JSON object"),
        (
            lambda b: edited(b / "artifacts/receipt_a_PUBLISH.json", published_url="https://evil.example"),
            "receipt",
            "receipt_a_PUBLISH.json",
            "altered or forged: 'published_url' is 'https://evil.example'",
        ),
        (
            lambda b: edited(b / "artifacts/receipt_a_PUBLISH.json", value={"published_url": "x"}),
            "receipt",
            "receipt_a_PUBLISH.json",
            "altered or forged: 'value'",
        ),
        (
            lambda b: edited(b / "artifacts/receipt_a_PUBLISH.json", key="other"),
            "receipt",
            "receipt_a_PUBLISH.json",
            "altered or forged: 'key' is 'other'",
        ),
        (lambda b: (b / "artifacts/receipt_a_PUBLISH.json").unlink(), "missing", "receipt_a_PUBLISH", "is not there"),
        (
            lambda b: (b / "artifacts/receipt_c_PUBLISH.json").write_text(
                '{"record_id": "c", "key": "k", "nonce": "n"}'
            ),
            "receipt",
            "receipt_c_PUBLISH.json",
            "forged",
        ),
        (
            lambda b: (b / "artifacts/receipt_a_archive.json").write_bytes(
                (b / "artifacts/receipt_a_PUBLISH.json").read_bytes()
            ),
            "receipt",
            "receipt_a_archive.json",
            "forged",
        ),
        (lambda b: edited(log_of(b), status="DONE", errors=[1]), "log", "logs/", "'"),
        (lambda b: log_of(b).unlink(), "missing", "logs/", "is not there"),
        (lambda b: (b / "locks/lock_x.lock").write_text("{}"), "extra", "lock_x.lock", "no act is under way"),
        (lambda b: (b / "state/state_z.json").write_text("{}"), "extra", "state_z.json", "nothing in the ledger"),
        (lambda b: (b / "state/state_table.csv").unlink(), "missing", "state_table.csv", "is not there"),
        (
            lambda b: (b / "state/state_table.csv").write_text(
                (b / "state/state_table.csv").read_text().replace("DONE", "ERROR", 1)
            ),
            "table",
            "state_table.csv",
            "'a' differs: 'status' is 'ERROR'",
        ),
        (
            lambda b: (b / "state/state_table.csv").write_text(
                (b / "state/state_table.csv").read_text() + "ghost,DONE" + "," * 14 + "\n"
            ),
            "table",
            "state_table.csv",
            "'ghost'",
        ),
        (
            lambda b: (b / "config/keys.env").write_text("CMS_PASSWORD=hunter2\n"),
            "config",
            "keys.env",
            "looks like a secret, at line 1",
        ),
    ],
)
async def test_one_harm_is_one_difference(
    tmp_path: Path, harm: Callable[[Path], object], kind: str, where: str, what: str
) -> None:
    found = await after(tmp_path, harm)

    assert found.first is not None
    assert (found.first.kind, where in found.first.where, what in found.first.what) == (kind, True, True), found.first
    assert len(found.differences) == 1, found.differences
    assert found.as_dict()["ok"] is False
    assert json.dumps(found.as_dict())


async def test_peoples_own_files_are_no_difference(tmp_path: Path) -> None:
    def add(base: Path) -> None:
        (base / "notes.txt").write_text("mine")
        (base / "artifacts/drafts/idea.md").write_text("mine")
        (base / "artifacts/picture.png").write_bytes(b"\x89")
        (base / "config/constants.json").write_text('{"words": 900}')
        (base.parent / "STOP").write_text("")

    assert (await after(tmp_path, add)).ok


async def test_only_so_many_are_named(tmp_path: Path) -> None:
    async with opened(tmp_path) as (client, folder):
        await client.start_many(steps, [{} for _ in range(10)])
        await Projector(client.ledger, folder, client.clock).catch_up()
        for path in (tmp_path / "folder/Workflows/steps/state").glob("*.json"):
            path.unlink()

        found = await verify(client, folder, limit=3)

    assert (len(found.differences), found.more) == (3, True)


async def test_what_the_projector_has_not_come_to_is_behind_and_no_difference(tmp_path: Path) -> None:
    async with opened(tmp_path) as (client, folder):
        await published(client, "a")
        await Projector(client.ledger, folder, client.clock).catch_up()
        await published(client, "b")
        await client.prioritise("a", 5)

        found = await verify(client, folder)

    assert found.ok, found.differences
    assert found.behind > 1


async def test_a_halt_that_is_not_swept_yet_is_no_difference(tmp_path: Path) -> None:
    async with opened(tmp_path) as (client, folder):
        await client.start(publish, {"keyword": "x"}, id="a")
        await Projector(client.ledger, folder, client.clock).catch_up()
        await client.halt()
        assert (await client.get("a")).status == "CANCELLED"
        assert (await verify(client, folder)).ok

        await client.ledger.recover()
        await Projector(client.ledger, folder, client.clock).catch_up()
        assert (await verify(client, folder)).ok


@pytest.mark.parametrize(
    ("sql", "kind", "what"),
    [
        ("UPDATE events SET body = '{}' WHERE record_id = 'a' AND n = 3", "chain", "line 3 ("),
        ("DELETE FROM events WHERE record_id = 'a' AND n = 3", "chain", "line 4 ("),
        ("DELETE FROM events WHERE record_id = 'a' AND n < 3", "chain", "lines 1 to 2 are gone"),
        (
            "DELETE FROM events WHERE record_id = 'a' AND n = (SELECT max(n) FROM events WHERE record_id = 'a')",
            "chain",
            "but the record's chain ends at line",
        ),
        ("UPDATE receipts SET value = '\"forged\"' WHERE kind = 'once' AND record_id = 'a'", "receipt", "not verify"),
        ("UPDATE receipts SET signature = '' WHERE kind = 'once' AND record_id = 'a'", "receipt", "does not verify"),
    ],
)
async def test_harm_in_the_ledger_itself_is_named_first(tmp_path: Path, sql: str, kind: str, what: str) -> None:
    async with opened(tmp_path, SYSTEM) as (client, folder):
        await published(client, "a")
        await published(client, "b")
        await Projector(client.ledger, folder, client.clock).catch_up()
        with sqlite3.connect(tmp_path / "ledger.db") as db:
            db.execute(sql)
        db.close()

        alone, both = await verify(client), await verify(client, folder)
        one = await verify(client, record_id="b")

    for found in (alone, both):
        assert found.first is not None
        assert (found.first.kind, found.first.where) == (kind, "a")
        assert what in found.first.what, found.first.what
    assert one.ok and one.records == 1


async def test_verifying_changes_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path) as (client, folder):
        await published(client, "a")
        settings = await client.ledger.settings("")

        await verify(client, folder)

        assert await client.ledger.settings("") == settings
        assert await folder.paths("Workflows") == []
