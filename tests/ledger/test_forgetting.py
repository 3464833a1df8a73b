"""Records that ended long ago are forgotten: small, known, and never done anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from quire import Act, Fail, Run, Status, effect, workflow
from quire.client.client import Client
from quire.clock import SYSTEM
from quire.errors import AlreadyExists, IllegalMove, InputError
from quire.folder.cursor import Cursor
from quire.model.record import Record
from quire.model.row import replace
from quire.model.side import Setting
from quire.surfaces.cli import cli
from quire.upkeep.verify import verify
from quire.worker.forgetting import Forgotten, forget_some
from tests.ledger.conftest import MakeLedger


@effect
async def pay(act: Act[Any], order: str) -> str:
    return "a long receipt " * 50


@effect
async def invoice(act: Act[Any]) -> str:
    return "sent"


@workflow
async def order(run: Run[dict[str, Any]]) -> str:
    await run.once(pay, run.record_id)
    if run.data.get("fails"):
        raise Fail("no")
    if run.data.get("invoice"):
        await run.once(invoice.keyed("the-one-invoice"))
    return "a long result"


async def ended(client: Client) -> float:
    """Let three records end, and one wait; answers a moment after."""
    await client.start_many(order, [{}, {"invoice": True}, {"fails": True}], ids=["a", "b", "c"])
    await client.start(order, {}, id="later", after="1h")
    await client.work()
    return await client.ledger.now() + 1


async def test_what_ended_is_forgotten_and_what_makes_it_known_stays(make_ledger: MakeLedger) -> None:
    async with Client(make_ledger(), workflows=[order]) as client:
        before = await ended(client)
        was = await client.get("a")

        gone = await forget_some(client.ledger, before, "ann")
        assert gone.records == 2 and gone.lines >= 6
        assert await forget_some(client.ledger, before, "ann") == Forgotten()

        row: Record = await client.get("a")
        assert row.forgotten and row.status is Status.DONE and (row.data, row.result) == ("{}", None)
        assert (row.version, row.visit, row.started_as) == (was.version + 1, was.visit, was.started_as)
        [line] = await client.ledger.events(record_id="a")
        assert line.kind == "forgotten" and f'"lines":{was.log_seq}' in line.body and was.log_hash in line.body
        assert [receipt.name for receipt in await client.ledger.receipts(record_ids=["a", "b"])] in (
            ["invoice"],
            ["pay", "pay", "invoice"],  # a store that keeps receipts
        )
        assert (await client.get("c")).result is None and not (await client.get("c")).forgotten
        report = await verify(client)
        assert report.ok, report


async def test_a_forgotten_id_is_known_and_nothing_is_done_again(make_ledger: MakeLedger) -> None:
    async with Client(make_ledger(), workflows=[order]) as client:
        before = await ended(client)
        await forget_some(client.ledger, before, "ann")
        assert (await (await client.start(order, {}, id="a")).record()).forgotten
        with pytest.raises(AlreadyExists):
            await client.start(order, {"other": 1}, id="a")
        with pytest.raises(IllegalMove, match="forgotten"):
            await client.retry("a", step="order")
        await client.work()
        assert (await client.get("a")).forgotten


async def kept(client: Client, name: str) -> Setting:
    found = await client.ledger.setting(name)
    assert found is not None
    return found


def moved(setting: Setting) -> str:
    """The place of a folder that shows all lines."""
    return setting.value.replace('"seq":0', '"seq":1000000000', 1)


async def test_what_a_folder_has_not_shown_and_what_failed_stays(make_ledger: MakeLedger) -> None:
    async with Client(make_ledger(), workflows=[order]) as client:
        before = await ended(client)
        place = Cursor(client.ledger, "f", SYSTEM, 60.0)
        assert await place.take()  # a folder that shows nothing yet
        assert (await forget_some(client.ledger, before, "ann")).records == 0
        await client.ledger.keep(replace(await kept(client, place.name), value=moved(await kept(client, place.name))))
        assert (await forget_some(client.ledger, before, "ann", status=[Status.ERROR])).records == 1
        assert (await client.get("c")).forgotten and not (await client.get("a")).forgotten


async def test_workers_forget_what_is_older_than_the_retention(make_ledger: MakeLedger) -> None:
    async with Client(make_ledger(), workflows=[order]) as client:
        await ended(client)
        with pytest.raises(InputError, match="within the last hour"):
            client.worker(retention="5m")
        worker = client.worker(retention="1h")
        await worker.housekeeping.look_after()
        assert not (await client.get("a")).forgotten
        worker.retention = -1.0  # as if an hour had passed
        await worker.housekeeping.look_after()
        assert (await client.get("a")).forgotten and not (await client.get("c")).forgotten


def test_the_command_says_what_it_forgot_and_refuses_what_is_too_new(tmp_path: Path) -> None:
    at = ["--ledger", f"sqlite:///{tmp_path}/l.db"]
    assert CliRunner().invoke(cli, ["forget", "--older", "5m", *at]).exit_code == 2
    assert "there is no ledger" in CliRunner().invoke(cli, ["forget", "--older", "90d", *at]).output
