"""The states and the three messages of the source document, word for word: in a cell, by command, over HTTP."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import httpx2
import pytest
from click.testing import CliRunner

from quire import open as open_client
from quire.client.client import Client
from quire.ledger.busy import BUSY
from quire.surfaces.cli import cli
from quire.surfaces.server import app
from tests.panel.conftest import Sheet
from tests.panel.test_bound import LEGAL, PATHS, STATES, by_id, fill, opened, say, settled, tasks


def moved_by_command(ledger: str, record_id: str, target: str) -> tuple[bool, str]:
    done = CliRunner().invoke(cli, ["--ledger", ledger, "move", record_id, target])
    return done.exit_code == 0, done.output


async def moved_over_http(client: Client, record_id: str, target: str) -> tuple[bool, str]:
    transport = httpx2.ASGITransport(app(client), client=("127.0.0.1", 1))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
        answer = await http.post(f"/api/records/{record_id}/move", json={"step": target})
    return answer.status_code == 200, answer.text


def refusal(a: str, b: str) -> str:
    return f"Invalid state transition: Cannot move from {a} to {b}."


def test_the_25_pairs_by_command(tmp_path: Path) -> None:
    ledger = f"sqlite:///{tmp_path}/ledger.db"
    with open_client(ledger, workflows=[tasks()]) as client:
        for a in STATES:
            for b in STATES:
                client.start("tasks", {}, id=f"{a}-{b}")
        client.work()
        for a in STATES:
            for step in PATHS[a]:
                for b in STATES:
                    client.move(f"{a}-{b}", step)
    pairs = set()
    for a in STATES:
        for b in STATES:
            done, said = moved_by_command(ledger, f"{a}-{b}", b)
            pairs |= {(a, b)} if done else set()
            assert done or refusal(a, b) in said, (a, b, said)
    assert pairs == {(a, b) for a in STATES for b in LEGAL[a]} and len(pairs) == 5


async def test_the_25_pairs_over_http() -> None:
    async with Client("memory:", workflows=[tasks()]) as client:
        for a in STATES:
            for b in STATES:
                await client.start("tasks", {}, id=f"{a}-{b}")
        await client.work()
        for a in STATES:
            for step in PATHS[a]:
                for b in STATES:
                    await client.move(f"{a}-{b}", step)
        pairs = set()
        for a in STATES:
            for b in STATES:
                done, said = await moved_over_http(client, f"{a}-{b}", b)
                pairs |= {(a, b)} if done else set()
                assert done or refusal(a, b) in said, (a, b, said)
                refused = [line for line in await client.events(f"{a}-{b}") if line.kind == "refused"]
                assert bool(refused) is not done
    assert pairs == {(a, b) for a in STATES for b in LEGAL[a]} and len(pairs) == 5


async def test_an_unknown_record_is_refused_in_the_same_words_everywhere(sheet: Sheet, tmp_path: Path) -> None:
    import asyncio

    ledger = f"sqlite:///{tmp_path}/other.db"
    async with Client(ledger, workflows=[tasks()]) as client:
        text = "Record with ID orders-A-1 not found."
        assert text in (await moved_over_http(client, "orders-A-1", "CANCELLED"))[1]
    assert text in (await asyncio.to_thread(moved_by_command, ledger, "orders-A-1", "CANCELLED"))[1]
    fill(sheet, [["A-1", "x", "1", "", "PENDING"]])
    async with opened(sheet, tasks()) as panel:
        await settled(panel)
        await panel.lease.release()
    async with opened(sheet, tasks(), ledger=ledger) as panel:  # the ledger of before is not there any more
        await panel.look()
        say(sheet, "A-1", "CANCELLED")
        await settled(panel)
        assert by_id(sheet)["A-1"]["Quire_Note"] == text


@pytest.mark.parametrize("door", ["command", "http", "cell"])
async def test_a_ledger_that_is_locked_for_too_long_says_that_the_system_is_busy(
    sheet: Sheet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, door: str
) -> None:
    import asyncio

    from quire.errors import LedgerUnavailable

    path = tmp_path / "ledger.db"
    ledger = f"sqlite:///{path}"
    monkeypatch.setenv("QUIRE_LOCK_TIMEOUT", "0.2")
    fill(sheet, [["A-1", "x", "1", "", "PENDING"]])
    async with opened(sheet, tasks(), ledger=ledger) as panel:
        await settled(panel)
        other: Any = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        try:
            if door == "command":
                done, said = await asyncio.to_thread(moved_by_command, ledger, "orders-A-1", "IN_PROGRESS")
            elif door == "http":
                done, said = await moved_over_http(panel.client, "orders-A-1", "IN_PROGRESS")
            else:
                say(sheet, "A-1", "IN_PROGRESS")
                with pytest.raises(LedgerUnavailable) as refused:
                    await panel.look()
                done, said = False, str(refused.value)
        finally:
            other.execute("ROLLBACK")
            other.close()
        assert not done and BUSY in said, said
        assert (await panel.client.get("orders-A-1")).step == "PENDING"
        if door == "cell":  # the word stands there still: the next look obeys it
            await settled(panel)
            assert by_id(sheet)["A-1"]["Task_Status"] == "IN_PROGRESS"
        else:
            assert (await moved_over_http(panel.client, "orders-A-1", "IN_PROGRESS"))[0]


def test_the_time_for_a_lock_must_be_a_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with open_client(f"sqlite:///{tmp_path}/l.db") as client:
        client.find()
    for given in ("soon", "0", "-1", "1e9"):
        done = CliRunner().invoke(
            cli, ["--ledger", f"sqlite:///{tmp_path}/l.db", "move", "a", "B"], env={"QUIRE_LOCK_TIMEOUT": given}
        )
        assert done.exit_code == 2 and "give seconds, like QUIRE_LOCK_TIMEOUT=10" in done.output, done.output
