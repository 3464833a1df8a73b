"""The Chat app: a press on a button is a signal, a message is an order; nobody but Google is heard."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx2
import pytest

from quire import Run, Workflow
from quire.clock import SYSTEM
from quire.surfaces.server import app
from quire.testing import ToldClock
from quire.workspace import Clicked, chat
from tests.workspace.test_each_act import space as space_of
from tests.workspace.worlds import CLIENT, ME, World, opened

PROJECT = "1234567890"


def flow() -> Workflow[Any, Any, None]:
    offer: Workflow[Any, Any, None] = Workflow("offer")

    @offer.step
    async def step(run: Run[Any]) -> str:
        card = chat.card("Offer", "Ten?", buttons={"yes": "Yes, please", "no": "No"})
        posted = await run.once(chat.post.using("bot"), run.data["space"], cards=[card])
        pressed = await run.wait(posted.clicked, Clicked)
        answer = await run.ask("Really?")
        return f"{pressed.by} {pressed.choice} {answer.choice} by {answer.by}"

    return offer


async def heard(world: World, do: str, listener: Any, **given: Any) -> tuple[dict[str, str], bytes]:
    """What Google posts to the app when a person does this: its headers and its body."""
    world.person(do, **{"as": CLIENT}, **given)
    return await asyncio.wait_for(listener.get(), 30)


@pytest.fixture
def listener() -> Any:
    return asyncio.Queue()


async def _listening(queue: Any) -> tuple[asyncio.Server, str]:
    """A server that only takes what comes, so that the test hands it on."""

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        headers = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
        length = int({name.lower(): value for name, value in headers.items()}["content-length"])
        queue.put_nowait(({name.lower(): value for name, value in headers.items()}, await reader.readexactly(length)))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    return server, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/google/chat"


async def test_a_chat_app_hears_presses_and_orders(
    world: World, listener: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUIRE_GOOGLE", f"{world.emulator.url}?user={ME}")
    monkeypatch.setenv("QUIRE_CHAT_AUDIENCE", PROJECT)
    server, url = await _listening(listener)
    space = space_of(world)
    world.person("chat.app", url=url, audience=PROJECT)
    now = ToldClock(SYSTEM.now())
    async with server, opened(world, [flow()], now) as client:
        transport = httpx2.ASGITransport(app=app(client))
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:

            async def handed(do: str, **given: Any) -> str:
                headers, body = await heard(world, do, listener, **given)
                sent = {"authorization": headers["authorization"], "content-type": "application/json"}
                answer = await http.post("/google/chat", headers=sent, content=body)
                assert answer.status_code == 200, answer.text
                return str(answer.json().get("text", ""))

            assert (await handed("chat.write", space=space, text="what is stuck?")) == "Nothing is stuck."
            assert "stuck" in await handed("chat.write", space=space, text="hello")
            said = await handed("chat.write", space=space, text=f"start offer space={space}")
            [record] = await client.find(workflow="offer", limit=5)
            assert said == f"started {record.record_id}"
            await client.work()
            [message] = [one for one in world("GET", f"/v1/{space}/messages")["messages"] if one.get("cardsV2")]
            headers, body = await heard(world, "chat.click", listener, message=message["name"], button="Yes, please")
            texts = []
            for _ in range(2):  # Google may call twice
                sent = {"authorization": headers["authorization"], "content-type": "application/json"}
                answer = await http.post("/google/chat", headers=sent, content=body)
                texts.append(answer.json()["text"])
            assert texts == [f"yes: {record.record_id}", "Nobody waits for this any more."]
            await client.work()
            assert "approve" in await handed("chat.write", space=space, text=f"approve {record.record_id}")
            await client.work()
            assert json.loads((await client.get(record.record_id)).result or "") == f"{CLIENT} yes approve by {CLIENT}"

            forged = {"authorization": headers["authorization"][:-4] + "AAAA", "content-type": "application/json"}
            assert (await http.post("/google/chat", headers=forged, content=body)).status_code == 403
            assert (await http.post("/google/chat", content=body)).status_code == 401
            monkeypatch.setenv("QUIRE_CHAT_AUDIENCE", "another")
            assert (await http.post("/google/chat", headers=sent, content=body)).status_code == 403
            monkeypatch.delenv("QUIRE_CHAT_AUDIENCE")
            assert "set QUIRE_CHAT_AUDIENCE" in (await http.post("/google/chat", headers=sent, content=body)).text
