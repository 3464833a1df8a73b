"""What changes, as it does, over a real connection."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from quire.client.client import Client
from quire.surfaces.server import serve
from quire.surfaces.server import stream as streaming
from quire.surfaces.server.auth.gate import Limits
from quire.surfaces.server.history import History
from quire.surfaces.server.refusal import Refusal
from quire.surfaces.server.stream import Feed
from tests.surfaces.server.conftest import opened


@asynccontextmanager
async def served(client: Client, **options: Any) -> AsyncIterator[httpx2.AsyncClient]:
    started: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    serving = asyncio.ensure_future(serve(client, port=0, started=started, **options))
    try:
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{await started}", timeout=20) as http:
            yield http
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


class Listener:
    """Reads a stream message by message."""

    def __init__(self, answer: httpx2.Response) -> None:
        self.lines = answer.aiter_lines()

    async def next(self, *kinds: str) -> tuple[str, Any, int | None]:
        """The next message of one of these kinds: kind, data, id."""
        kind, data, id_ = "", "", None
        async with asyncio.timeout(20):
            async for line in self.lines:
                name, _, value = line.partition(": ")
                if name == "event":
                    kind = value
                elif name == "data":
                    data = value
                elif name == "id":
                    id_ = int(value)
                elif not line and kind:
                    if not kinds or kind in kinds:
                        return kind, json.loads(data), id_
                    kind, data, id_ = "", "", None
        raise AssertionError("the stream ended")


async def test_a_listener_hears_of_changes_counts_and_halts() -> None:
    async with opened() as client, served(client) as http, http.stream("GET", "/api/stream") as answer:
        listener = Listener(answer)
        hello = await listener.next()
        await client.start("order", {}, id="o1")
        changes = await listener.next("changes")
        counts = await listener.next("counts")
        await client.halt(reason="smoke")
        standing = await listener.next("standing")

        assert answer.headers["content-type"].startswith("text/event-stream")
        assert hello[0] == "hello"
        assert [row[:4] for row in changes[1]["rows"]] == [["o1", "order", "PENDING", "wait"]]
        assert changes[2] == (await client.events("o1"))[-1].seq
        assert counts[1] == [["order", "wait", "PENDING", 1]]
        assert standing[1][0]["reason"] == "smoke"


async def test_a_halt_right_after_a_listener_came_is_told_to_it() -> None:
    async with opened() as client:
        feed = Feed(client)
        async with feed.listening(None) as messages:
            for _ in range(4):
                await anext(messages)
            await client.halt(reason="smoke")
            async with asyncio.timeout(20):
                while b"smoke" not in await anext(messages):
                    pass
        await feed.close()


async def test_a_listener_that_comes_again_misses_nothing() -> None:
    async with opened() as client, served(client) as http:
        await client.start("order", {}, id="o1")
        last = (await client.events("o1"))[-1].seq
        await client.start("order", {}, id="o2")
        await client.start("order", {}, id="o3")
        async with http.stream("GET", "/api/stream", headers={"Last-Event-ID": str(last)}) as answer:
            missed = await Listener(answer).next()
        async with http.stream("GET", "/api/stream", headers={"Last-Event-ID": "999999"}) as answer:
            unknown = await Listener(answer).next()

        assert missed[0] == "changes"
        assert [row[0] for row in missed[1]["rows"]] == ["o2", "o3"]
        assert unknown[0] == "reset"


async def test_many_changes_of_one_record_are_told_once(tmp_path: Path) -> None:
    async with opened(f"sqlite:///{tmp_path}/ledger.db") as client:
        feed = Feed(client)
        await client.start("order", {}, id="o1")
        kinds = []
        async with feed.listening(None) as messages:
            await anext(messages)
            await anext(messages)
            for priority in range(20):
                await client.prioritise("o1", priority)
            async with asyncio.timeout(20):
                async for text in messages:
                    kinds.append(text)
                    if b"event: changes" in text and b'"o1","order","PENDING","wait",0,19' in text:
                        break
        await feed.close()

        assert sum(text.count(b'"o1"') for text in kinds) <= 3


async def test_a_slow_listener_is_reset_and_holds_up_nobody(monkeypatch: Any) -> None:
    monkeypatch.setattr(streaming, "BEHIND", 3)
    async with opened() as client:
        feed = Feed(client)
        async with feed.listening(None) as messages:
            for _ in range(2):
                await anext(messages)
            for number in range(10):
                feed._tell(b"event: changes\ndata: %d\n\n" % number)
            told = [await anext(messages) for _ in range(3)]
        await feed.close()

        assert any(b"event: reset" in text for text in told)


async def test_the_server_ends_although_somebody_listens() -> None:
    async with opened() as client:
        async with served(client) as http:
            answer = await http.send(http.build_request("GET", "/api/stream"), stream=True)
            listener = Listener(answer)
            await listener.next()
            begun = asyncio.get_running_loop().time()
        assert asyncio.get_running_loop().time() - begun < 5
        await answer.aclose()


async def test_of_a_burst_of_listeners_no_more_are_let_in_than_may_listen() -> None:
    async with opened() as client, served(client, limits=Limits(streams=3)) as http, AsyncExitStack() as stack:
        asked = [http.send(http.build_request("GET", "/api/stream"), stream=True) for _ in range(30)]
        answers = await asyncio.gather(*asked)
        for answer in answers:
            stack.push_async_callback(answer.aclose)
        refused = [answer for answer in answers if answer.status_code != 200]
        for answer in refused:
            await answer.aread()

        assert sorted(answer.status_code for answer in answers) == [200] * 3 + [503] * 27
        assert all("streams are open" in answer.json()["message"] for answer in refused)


async def test_a_listener_that_goes_leaves_its_place_also_if_it_never_read() -> None:
    async with opened() as client:
        feed = Feed(client, most=1)
        for _ in range(3):
            async with feed.listening(None):
                with pytest.raises(Refusal, match="1 streams are open"):
                    async with feed.listening(None):
                        raise AssertionError("a second one was let in")
        await feed.close()


async def test_a_listener_hears_although_the_one_before_went_while_it_came() -> None:
    async with opened() as client:
        feed = Feed(client)
        async with AsyncExitStack() as stack:
            old = await stack.enter_async_context(feed.listening(None))
            await anext(old)
            async with feed.listening(None) as new:
                await stack.aclose()
                for _ in range(4):
                    await anext(new)
                await client.start("order", {}, id="x")
                async with asyncio.timeout(20):
                    assert b"changes" in await anext(new)
        await feed.close()


def test_the_history_keeps_an_hour_in_even_steps() -> None:
    history = History()
    for second in range(5000):
        history.add(float(second), [["order", "wait", "PENDING", second], ["order", "", "PENDING", 1]])

    assert len(history.samples) == 360
    assert history.samples[-1] == [4999.0, {"PENDING": 5000}, [["order", "wait", 4999]]]
    steps = [after[0] - before[0] for before, after in zip(history.samples, list(history.samples)[1:], strict=False)]
    assert all(9 <= step <= 11 for step in steps[:-1])


async def test_listeners_that_come_at_once_share_one_look() -> None:
    async with opened() as client, AsyncExitStack() as stack:
        feed = Feed(client)
        before = asyncio.all_tasks()
        listeners = [stack.enter_async_context(feed.listening(None)) for _ in range(5)]
        tasks = [asyncio.ensure_future(entering) for entering in listeners]
        opened_ = await asyncio.gather(*tasks)
        looks = asyncio.all_tasks() - before
        for messages in opened_:
            await anext(messages)
        await feed.close()

        assert len(looks) == 1
