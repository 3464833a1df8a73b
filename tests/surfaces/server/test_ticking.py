"""``/tick``: a server that works while it is called."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest

from quire import Run, Workflow
from quire.client.client import Client
from quire.surfaces.server import app, serve
from quire.surfaces.server.auth.tokens import Role, make_token
from quire.surfaces.server.ticking import Ticking
from quire.upkeep import ticks as relay
from tests.surfaces.server.conftest import opened


def calls(client: Client, ticking: Ticking | None, token: str = "", **options: Any) -> httpx2.AsyncClient:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    transport = httpx2.ASGITransport(app(client, ticking=ticking, loopback=False, **options), client=("127.0.0.1", 1))
    return httpx2.AsyncClient(transport=transport, base_url="http://q.example.org", headers=headers)


async def test_a_periodic_caller_needs_a_token_and_a_slice_its_baton(caplog: pytest.LogCaptureFixture) -> None:
    async with opened() as client:
        ticking = Ticking(client, 5.0)
        operator, _ = await make_token(client.ledger, "cron", Role.OPERATOR)
        viewer, _ = await make_token(client.ledger, "vic", Role.VIEWER)
        await client.start("publish", {"keyword": "tea"}, id="tea")
        async with calls(client, ticking) as http:
            stranger = await http.post("/tick")
            forged = await http.post("/tick", headers={"X-Quire-Baton": "0.1." + "0" * 40})
            misshapen = await http.post("/tick", headers={"X-Quire-Baton": "x"})
            foreign = await http.post("/tick", headers=[(b"X-Quire-Baton", "0.1.é".encode("latin-1"))])
        async with calls(client, ticking, viewer) as http:
            looked = await http.post("/tick")
        before = (await client.get("tea")).version
        async with calls(client, ticking, operator) as http:
            ran = await http.post("/tick")
        async with calls(client, None, operator) as http:
            none = await http.post("/tick")
        after = await client.get("tea")
        assert client.keyring is not None
        slot = await relay.take(client.ledger, 1, 30.0)
        assert slot is not None
        following = await relay.hand_on(client.ledger, slot)
        assert following is not None
        baton = str(relay.signed(client.keyring, following.number, following.generation))
        async with calls(client, ticking) as http:
            taken = await http.post("/tick", headers={"X-Quire-Baton": baton})
            replayed = await http.post("/tick", headers={"X-Quire-Baton": baton})

    assert [a.status_code for a in (stranger, forged, misshapen, foreign, looked, none)] == [
        401,
        403,
        403,
        403,
        403,
        404,
    ]
    assert before == 1 and after.step == "review"
    assert ran.json()["ran"] and ran.json()["settled"] > 0
    assert taken.json()["ran"] is True
    assert (replayed.status_code, replayed.json()) == (200, {"ran": False, "reason": "the baton is old"})
    assert "the baton was not signed" in caplog.text and baton not in caplog.text


async def test_a_slice_that_leaves_work_behind_calls_the_next_one_by_itself() -> None:
    """Ten records, a slice that is over before all are done, one call from outside: the chain does the rest."""
    flow: Workflow[dict[str, Any], Any, None] = Workflow("job")
    gate = asyncio.Event()

    @flow.step(cap=1)
    async def work(run: Run[dict[str, Any]]) -> None:
        await run.sleep(0)

    async with Client("memory:", workflows=[flow], who="cron") as client:
        await client.start_many("job", [{}] * 5)
        slices: list[dict[str, Any]] = []

        class Counted(Ticking):
            async def slice(self, baton: relay.Baton | None) -> dict[str, Any]:
                async def worked(slot: relay.Slot) -> int:
                    # One record, and no more time: as if the budget were over.
                    [record] = [r for r in await client.find(limit=100) if not r.ended][:1]
                    await client.work(until=record.record_id)
                    return 1

                url = f"{client.public_url}/tick"
                told = await relay.slice_of(client, worked, 5.0, 1, url, baton, 60.0)
                slices.append(told)
                if not told.get("left"):
                    gate.set()
                return told

        started: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        serving = asyncio.ensure_future(serve(client, port=0, started=started, ticking=Counted(client, 5.0)))
        client.public_url = f"http://127.0.0.1:{await started}"
        async with httpx2.AsyncClient(base_url=client.public_url, timeout=60) as http:
            answer = await http.post("/tick")
        await asyncio.wait_for(gate.wait(), 30)
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        ended = [record.ended for record in await client.find(limit=100)]

    assert answer.status_code == 200 and all(ended)
    assert len(slices) >= 1 and slices[0]["left"] is False
    assert all(told["called"] for told in slices[1:])


@pytest.mark.parametrize("path", ["/mcp", "/a2a/colony", "/tick", "/hooks/shop", "/signal/o1/paid", "/api/many"])
async def test_100_mb_are_refused_at_every_door_before_they_are_read(path: str) -> None:
    async with opened() as client, calls(client, None) as http:
        answer = await http.post(path, content=b"x", headers={"Content-Length": str(100 * 1024 * 1024)})
    assert answer.status_code == 413


async def test_signals_and_priorities_name_who_gave_them() -> None:
    async with opened() as client:
        operator, _ = await make_token(client.ledger, "ann", Role.OPERATOR)
        await client.start("order", {}, id="o1")
        async with calls(client, None, operator) as http:
            await http.post("/api/records/o1/priority", json={"priority": 3})
            await http.post("/api/records/o1/signals/paid", json={"value": 1})
        events = {event.kind: event.body for event in await client.events("o1")}

    assert '"by":"ann"' in events["prioritised"] and '"by":"ann"' in events["signalled"]
