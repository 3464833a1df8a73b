"""What many callers do at the same time is one commit; what they count is counted once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from quire.errors import LedgerError, NotFound
from quire.ledger.engine import DEFINITION
from quire.model.change import Change, Count, Send, Verdict
from quire.model.side import Setting
from quire.surfaces.server.crowd import DEFINED_SECONDS, crowd
from quire.testing.clock import ToldClock
from tests.surfaces.server.conftest import opened


async def test_acts_at_the_same_time_share_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened() as client:
        await client.start_many("order", [{}] * 20, ids=[f"o{n}" for n in range(20)])
        sizes: list[int] = []
        commit = client.ledger.commit

        async def counted(changes: Sequence[Change]) -> list[Verdict]:
            sizes.append(len(changes))
            return await commit(changes)

        monkeypatch.setattr(client.ledger, "commit", counted)
        many = crowd(client)
        told = await asyncio.gather(*[many.cancel(f"o{n}") for n in range(20)])

        assert {str(record.status) for record in told} == {"CANCELLED"}
        assert sum(sizes) == 20
        assert len(sizes) <= 3


async def test_one_that_is_refused_spoils_no_other() -> None:
    async with opened() as client:
        await client.start("order", {}, id="o1")
        many = crowd(client)
        good, bad = await asyncio.gather(many.cancel("o1"), many.cancel("nobody"), return_exceptions=True)

        assert not isinstance(good, BaseException)
        assert isinstance(bad, NotFound)


async def test_counts_are_fresh_while_counting_is_cheap_and_shared_when_it_is_not(monkeypatch: Any) -> None:
    async with opened() as client:
        many = crowd(client)
        now, takes, times = 100.0, 0.001, 0

        async def counts() -> list[Count]:
            nonlocal now, times
            now, times = now + takes, times + 1
            return []

        monkeypatch.setattr(client.ledger, "counts", counts)
        monkeypatch.setattr(many.link, "clock", SimpleNamespace(boottime=lambda: now))
        for _ in range(3):
            await many.counts()
        assert times == 3

        takes = 0.2
        await asyncio.gather(*[many.counts() for _ in range(5)])
        assert times == 4
        now += 3.0
        await many.counts()
        assert times == 5


async def test_signals_at_the_same_time_are_sent_together_and_a_wrong_one_spoils_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with opened() as client:
        await client.start_many("order", [{}] * 20, ids=[f"o{n}" for n in range(20)])
        sizes: list[int] = []
        send = client.ledger.send

        async def counted(sends: Sequence[Send]) -> list[Verdict]:
            sizes.append(len(sends))
            return await send(sends)

        monkeypatch.setattr(client.ledger, "send", counted)
        many = crowd(client)
        names = [*(f"o{n}" for n in range(20)), "nobody"]
        *good, bad = await asyncio.gather(*[many.signal(name, "paid", 1) for name in names], return_exceptions=True)

        assert [getattr(record, "record_id", record) for record in good] == names[:-1]
        assert isinstance(bad, NotFound)
        assert sum(sizes) == 20 and len(sizes) <= 2, "what is sent to nobody is refused before it is sent"

        async def broken(_: Sequence[Send]) -> list[Verdict]:
            raise LedgerError("the disk is gone")

        monkeypatch.setattr(client.ledger, "send", broken)
        lost = await asyncio.gather(*[many.signal("o1", "paid") for _ in range(2)], return_exceptions=True)
        assert [str(error) for error in lost] == ["the disk is gone"] * 2
        monkeypatch.setattr(client.ledger, "send", send)
        assert (await many.signal("o1", "paid")).record_id == "o1"


async def test_a_definition_is_read_once_in_a_second() -> None:
    clock = ToldClock()
    async with opened(clock=clock) as client:
        await client.ledger.keep(Setting(f"{DEFINITION}new", '{"name": "new"}', 0))
        many = crowd(client)
        assert (await many.definition("new"))["name"] == "new"
        await client.ledger.keep(Setting(f"{DEFINITION}new", '{"name": "newer"}', 1))
        assert (await many.definition("new"))["name"] == "new"
        clock.advance(DEFINED_SECONDS)
        assert (await many.definition("new"))["name"] == "newer"
        with pytest.raises(NotFound):
            await many.definition("none")
