"""Which Google an act speaks to, as whom, and what it needs there."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hectograph import Emulator
from quire import Fail, Run, Workflow
from quire.client.client import Client
from quire.errors import DefinitionError
from quire.testing import ToldClock
from quire.workflows.effect import _DECLARED, Effect
from quire.workspace import connected, drive
from quire.workspace.connection import google
from quire.workspace.scopes import NEEDS, full, name_of, needs_of

both: Workflow[Any, Any, None] = Workflow("both", on_failure="undo")


@both.step
async def step(run: Run[Any]) -> None:
    await run.once(drive.folder.named("mine"), "Mine")
    await run.once(drive.folder.using("support").named("theirs"), "Theirs")
    if run.data:
        raise Fail("not so")


async def played(emulator: Emulator, data: Any) -> tuple[Any, list[Any]]:
    async with (
        connected(emulator.url, user="ann@example.org"),
        connected(emulator.url, user="support@example.org", name="support"),
        Client("memory:", workflows=[both], who="ann", clock=ToldClock()) as client,
    ):
        await client.start("both", data, id="r")
        await client.work()
        return await client.get("r"), list(await client.ledger.receipts(record_ids=["r"]))


async def test_an_act_under_another_connection_says_so_in_its_intent() -> None:
    with Emulator(account="ann@example.org") as emulator:
        record, receipts = await played(emulator, None)

    assert str(record.status) == "DONE", record.last_error
    actors = {receipt.name: json.loads(receipt.actor) for receipt in receipts if receipt.actor}
    assert actors["mine"]["account"] == "ann@example.org" and "connection" not in actors["mine"]
    assert actors["theirs"]["account"] == "support@example.org" and actors["theirs"]["connection"] == "support"


async def test_what_was_done_over_a_connection_is_undone_over_it() -> None:
    with Emulator(account="ann@example.org") as emulator:
        record, _ = await played(emulator, {"fails": True})
        files = json.loads(emulator.call("GET", "/drive/v3/files?q=trashed%20=%20true").body)["files"]

    assert str(record.status) == "CANCELLED", record.question
    assert sorted(file["name"] for file in files) == ["Mine", "Theirs"]


async def test_a_connection_that_nobody_defined_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QUIRE_GOOGLE_SALES", raising=False)
    with pytest.raises(Fail, match="there is no connection 'sales' to Google: set QUIRE_GOOGLE_SALES"):
        await google("sales")
    with pytest.raises(DefinitionError, match="a connection has a name"):
        drive.folder.using("")


def test_every_act_says_what_it_needs() -> None:
    ours: list[Effect[..., Any, Any]] = [one for one in _DECLARED.values() if name_of(one)]
    assert ours and [name_of(one) for one in ours if needs_of(one) is None] == []
    assert all(group for needs in NEEDS.values() for group in needs.scopes)
    assert full("drive").endswith("/auth/drive") and full("https://mail.google.com/") == "https://mail.google.com/"
