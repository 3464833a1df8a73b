"""A ledger that lacks what it acknowledged: workers notice it, stop, and nothing is done twice unasked."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from quire import Act, NotDone, Run, Status, Workflow, effect
from quire.client import going_back
from quire.client.client import Client
from quire.errors import InputError
from quire.explain.stuck import look
from quire.ledger.lost import loss_of
from quire.rules import adoption


class Shop:
    """Money that went out, by the key of the act."""

    def __init__(self) -> None:
        self.paid: list[str] = []

    def workflow(self) -> Workflow[dict[str, Any], str, None]:
        shop = self

        async def found(act: Act[Any], order: str) -> str | NotDone:
            if order in shop.paid:
                return order
            return NotDone("no such payment")

        @effect(probe=found, settle=0.001)
        async def pay(act: Act[Any], order: str) -> str:
            shop.paid.append(order)
            return order

        @effect
        async def post(act: Act[Any], order: str) -> str:
            shop.paid.append(f"post {order}")
            return order

        flow: Workflow[dict[str, Any], str, None] = Workflow("order", result=str)

        @flow.step
        async def settle(run: Run[dict[str, Any]]) -> str:
            await run.wait("go")
            return await run.once(pay if run.data.get("probe", True) else post, run.record_id)

        return flow


def client(path: Path, shop: Shop, state: Path) -> Client:
    return Client(f"sqlite:///{path}", workflows=[shop.workflow()], state=str(state))


def copied(path: Path, to: Path) -> None:
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(to)) as target:
        source.backup(target)


def put_back(path: Path, copy: Path) -> None:
    for end in ("-wal", "-shm"):
        Path(f"{path}{end}").unlink(missing_ok=True)
    shutil.copy(copy, path)


async def paid_and_restored(tmp_path: Path, shop: Shop, ids: list[str], **data: Any) -> Path:
    """Start orders, copy the ledger, pay, and put the copy back."""
    path, copy = tmp_path / "ledger.db", tmp_path / "copy.db"
    async with client(path, shop, tmp_path / "state") as one:
        await one.start_many("order", [data] * len(ids), ids=ids)
        await one.work()
    copied(path, copy)
    async with client(path, shop, tmp_path / "state") as one:
        for record_id in ids:
            await one.signal(record_id, "go", signal_id=f"go-{record_id}")
        await one.work()
    assert len(shop.paid) == len(ids)
    put_back(path, copy)
    return path


async def test_a_worker_that_begins_on_a_restored_ledger_stops_it_and_says_why(tmp_path: Path) -> None:
    shop = Shop()
    path = await paid_and_restored(tmp_path, shop, ["a", "b"])
    async with client(path, shop, tmp_path / "state") as one:
        await one.signal("a", "go")
        await one.work()

        loss, _ = await loss_of(one.ledger)
        assert loss is not None and not loss.ended_at and set(loss.records) == {"a", "b"}
        assert shop.paid == ["a", "b"]
        [finding] = [found for found in await look(one.ledger) if found.kind == "paused"]
        assert "went back in time" in finding.sentence and "quire adopt" in finding.sentence


async def test_what_was_done_in_the_lost_part_is_found_and_not_done_again(tmp_path: Path) -> None:
    shop = Shop()
    path = await paid_and_restored(tmp_path, shop, ["a", "b"])
    shop.paid.remove("b")  # as if the provider had not got it
    async with client(path, shop, tmp_path / "state") as one:
        await one.work()
        adopted = await going_back.adopt(one.link, one.acts, "ann")
        assert adopted == (2, 0) == await going_back.adopt(one.link, one.acts, "ann")
        with pytest.raises(InputError, match="still ask"):
            await going_back.end(one.link, "ann")
        for record_id in ("a", "b"):
            assert adoption.asked(await one.get(record_id)) is not None
            await one.answer(record_id, adoption.GO_ON)
            await one.signal(record_id, "go")
        await one.work()
        assert {record.status for record in await one.find()} == {Status.DONE}
        assert sorted(shop.paid) == ["a", "b"]
        await going_back.end(one.link, "ann")
        with pytest.raises(InputError, match="nothing to end"):
            await going_back.end(one.link, "ann")
    async with client(path, shop, tmp_path / "state") as one:  # the marks of before the end do not count any more
        await one.work()
        assert not [found for found in await look(one.ledger) if found.kind == "paused"]


async def test_an_act_that_nobody_can_look_for_is_asked_about(tmp_path: Path) -> None:
    shop = Shop()
    path = await paid_and_restored(tmp_path, shop, ["a"], probe=False)
    async with client(path, shop, tmp_path / "state") as one:
        await one.work()
        await going_back.adopt(one.link, one.acts, "ann")
        await one.answer("a", adoption.GO_ON)
        await one.signal("a", "go")
        await one.work()
        record = await one.get("a")
        assert record.status is Status.NEEDS_APPROVAL and record.open_intents == 1
        assert shop.paid == ["post a"]


async def test_without_a_mark_nobody_can_know_and_adopt_still_helps(tmp_path: Path) -> None:
    shop = Shop()
    path = await paid_and_restored(tmp_path, shop, ["a"])
    async with client(path, shop, tmp_path / "another machine") as one:
        assert (await going_back.adopt(one.link, one.acts, "ann")).asks == 1
        await one.answer("a", adoption.GO_ON)
        await one.signal("a", "go")
        await one.work()
        assert (await one.get("a")).status is Status.DONE and shop.paid == ["a"]


async def test_a_ledger_that_lost_nothing_goes_on(tmp_path: Path) -> None:
    shop = Shop()
    path = tmp_path / "ledger.db"
    for _ in range(3):
        async with client(path, shop, tmp_path / "state") as one:
            await one.start("order")
            await one.work()
            assert await loss_of(one.ledger) == (None, 0)
