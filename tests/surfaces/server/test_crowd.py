"""What many callers do at the same time is one commit; what they count is counted once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from quire.errors import NotFound
from quire.model.change import Change, Count, Verdict
from quire.surfaces.server.crowd import crowd
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
        monkeypatch.setattr(many, "clock", SimpleNamespace(boottime=lambda: now))
        for _ in range(3):
            await many.counts()
        assert times == 3

        takes = 0.2
        await asyncio.gather(*[many.counts() for _ in range(5)])
        assert times == 4
        now += 3.0
        await many.counts()
        assert times == 5
