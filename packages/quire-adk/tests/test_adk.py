"""Sessions and artifacts of Google ADK on a ledger and in a directory, with the real library."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hectograph import Emulator
from quire.errors import InputError
from quire.folder.drive import DriveFolder
from quire.google.drive import FOLDER
from quire.ledger.finding import open_ledger
from quire.ledger.memory.ledger import MemoryLedger

# The library warns of its own experiments.
pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("ignore")]


@asynccontextmanager
async def services(url: str = "memory:") -> AsyncIterator[Any]:
    from quire_adk import QuireSessionService

    ledger = open_ledger(url)
    await ledger.open()
    try:
        yield QuireSessionService(ledger)
    finally:
        await ledger.close()


def event(text: str, **state: Any) -> Any:
    from google.adk.events.event import Event
    from google.adk.events.event_actions import EventActions
    from google.genai import types

    content = types.Content(role="model", parts=[types.Part(text=text)])
    return Event(author="agent", content=content, actions=EventActions(state_delta=state))


WHO: dict[str, Any] = {"app_name": "app/one", "user_id": "ann@x.eu"}


async def test_events_and_state_survive_the_process(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'l.db'}"
    async with services(url) as service:
        session = await service.create_session(**WHO, session_id="s1", state={"a": 1, "user:name": "Ann", "app:v": 2})
        delta = {"a": 2, "b": [1], "user:city": "Bonn", "temp:t": 1}
        await service.append_event(session, event("one", **delta))
        await service.append_event(session, event("two"))

    async with services(url) as service:
        found = await service.get_session(**WHO, session_id="s1")

        assert [one.content.parts[0].text for one in found.events] == ["one", "two"]
        assert found.state == {"a": 2, "b": [1], "user:name": "Ann", "user:city": "Bonn", "app:v": 2}
        assert await service.get_user_state(**WHO) == {"name": "Ann", "city": "Bonn"}


async def test_an_event_that_comes_twice_is_kept_once_and_two_writers_both_succeed() -> None:
    async with services() as service:
        first = await service.create_session(**WHO, session_id="s1")
        second = await service.get_session(**WHO, session_id="s1")
        once = event("once")
        await service.append_event(first, once)
        await service.append_event(second, once)
        await asyncio.gather(
            *(service.append_event(one, event(f"{number}")) for number, one in enumerate([first, second] * 5))
        )
        found = await service.get_session(**WHO, session_id="s1")

    texts = [one.content.parts[0].text for one in found.events]
    assert texts.count("once") == 1
    assert sorted(texts[1:]) == [str(number) for number in range(10)]


async def test_listing_deleting_and_creating_again() -> None:
    from google.adk.errors.already_exists_error import AlreadyExistsError
    from google.adk.errors.session_not_found_error import SessionNotFoundError

    async with services() as service:
        session = await service.create_session(**WHO, session_id="s1")
        await service.create_session(app_name="app/one", user_id="bob", session_id="s2")
        await service.append_event(session, event("old"))

        with pytest.raises(AlreadyExistsError):
            await service.create_session(**WHO, session_id="s1")
        assert [one.id for one in (await service.list_sessions(**WHO)).sessions] == ["s1"]
        assert len((await service.list_sessions(app_name="app/one")).sessions) == 2

        await service.delete_session(**WHO, session_id="s1")
        assert await service.get_session(**WHO, session_id="s1") is None
        with pytest.raises(SessionNotFoundError):
            await service.append_event(session, event("late"))
        again = await service.create_session(**WHO, session_id="s1")

    assert again.events == []


async def test_recent_events_only() -> None:
    from google.adk.sessions.base_session_service import GetSessionConfig

    async with services() as service:
        session = await service.create_session(**WHO, session_id="s1")
        for number in range(5):
            await service.append_event(session, event(f"{number}", n=number))
        config = GetSessionConfig(num_recent_events=2)
        found = await service.get_session(**WHO, session_id="s1", config=config)

    assert [one.content.parts[0].text for one in found.events] == ["3", "4"]
    assert found.state["n"] == 4


async def test_a_runner_of_the_library_goes_on_in_a_new_process(tmp_path: Path) -> None:
    from google.adk.agents import BaseAgent
    from google.adk.runners import Runner
    from google.genai import types

    class Counter(BaseAgent):
        async def _run_async_impl(self, ctx: Any) -> AsyncGenerator[Any, None]:
            said = sum(1 for one in ctx.session.events if one.author == self.name)
            made = event(f"answer {said + 1}", count=said + 1)
            made.author, made.invocation_id = self.name, ctx.invocation_id
            yield made

    url = f"sqlite:///{tmp_path / 'l.db'}"
    for turn in (1, 2):
        async with services(url) as service:
            if turn == 1:
                await service.create_session(app_name="app", user_id="ann", session_id="s1")
            runner = Runner(agent=Counter(name="counter"), app_name="app", session_service=service)
            message = types.Content(role="user", parts=[types.Part(text="go")])
            async for _ in runner.run_async(user_id="ann", session_id="s1", new_message=message):
                pass
            found = await service.get_session(app_name="app", user_id="ann", session_id="s1")

    assert found.state["count"] == 2
    assert [one.author for one in found.events] == ["user", "counter", "user", "counter"]


async def test_artifacts_have_versions_and_scopes(tmp_path: Path) -> None:
    from google.genai import types

    from quire_adk import QuireArtifactService

    service = QuireArtifactService(tmp_path / "folder")
    other = QuireArtifactService(tmp_path / "folder")
    here = {**WHO, "session_id": "s1"}
    blob = types.Part(inline_data=types.Blob(data=b"\x00\x01", mime_type="image/png"))

    assert await service.save_artifact(**here, filename="../a.png", artifact=blob) == 0
    assert await service.save_artifact(**here, filename="../a.png", artifact=types.Part(text="two")) == 1
    await service.save_artifact(**here, filename="user:me.txt", artifact={"text": "mine"}, custom_metadata={"k": 1})

    first = await service.load_artifact(**here, filename="../a.png", version=0)
    assert first is not None and first.inline_data is not None and first.inline_data.data == b"\x00\x01"
    last = await service.load_artifact(**here, filename="../a.png")
    assert last is not None and last.text == "two"
    assert await service.list_artifact_keys(**here) == ["../a.png", "user:me.txt"]
    assert await service.list_artifact_keys(**WHO) == ["user:me.txt"]
    assert await service.list_versions(**here, filename="../a.png") == [0, 1]
    about = await service.get_artifact_version(**here, filename="user:me.txt")
    assert about is not None and (about.version, about.custom_metadata) == (0, {"k": 1})
    assert [one.version for one in await service.list_artifact_versions(**here, filename="../a.png")] == [0, 1]
    assert about.canonical_uri.startswith((tmp_path / "folder").as_uri())
    both = await asyncio.gather(
        *(one.save_artifact(**here, filename="both", artifact={"text": "x"}) for one in [service, other] * 4)
    )
    assert sorted(both) == list(range(8))  # each a number of its own
    long = "a very long name " * 30
    await service.save_artifact(**here, filename=long, artifact={"text": "long"})
    assert long in await other.list_artifact_keys(**here)
    await service.delete_artifact(**here, filename="../a.png")
    assert await service.load_artifact(**here, filename="../a.png") is None
    assert await service.list_versions(**here, filename="../a.png") == []
    with pytest.raises(InputError, match="neither data, nor a file, nor text"):
        await service.save_artifact(**here, filename="x", artifact=types.Part())
    await service.close()
    await other.close()
    assert _names(tmp_path) == ["folder"]  # nothing left the folder


async def test_artifacts_in_drive_have_versions_too() -> None:
    from google.genai import types

    from quire_adk import QuireArtifactService

    with Emulator() as emulator:
        answer = emulator.call("POST", "/drive/v3/files", {"name": "Quire", "mimeType": FOLDER})
        root, ledger = json.loads(answer.body)["id"], MemoryLedger()
        folder = DriveFolder(f"drive://{root}?endpoint={emulator.url}", ledger)
        await folder.open()
        service = QuireArtifactService(folder)
        here = {**WHO, "session_id": "s1"}
        numbers = [
            await service.save_artifact(**here, filename="a.txt", artifact=types.Part(text=text))
            for text in ("one", "two")
        ]
        first = await service.load_artifact(**here, filename="a.txt", version=0)
        keys = await service.list_artifact_keys(**here)
        await service.delete_artifact(**here, filename="a.txt")
        gone = await service.load_artifact(**here, filename="a.txt")
        await folder.close()

    assert numbers == [0, 1]
    assert first is not None and first.text == "one"
    assert (keys, gone) == (["a.txt"], None)


async def test_a_runner_keeps_what_its_agent_saves(tmp_path: Path) -> None:
    from google.adk.agents import BaseAgent
    from google.adk.runners import Runner
    from google.genai import types

    from quire_adk import QuireArtifactService

    class Painter(BaseAgent):
        async def _run_async_impl(self, ctx: Any) -> AsyncGenerator[Any, None]:
            assert ctx.artifact_service is not None
            who = {"app_name": ctx.app_name, "user_id": ctx.user_id, "session_id": ctx.session.id}
            number = await ctx.artifact_service.save_artifact(
                **who, filename="picture.txt", artifact=types.Part(text="a hill")
            )
            made = event(f"painted {number}")
            made.author, made.invocation_id = self.name, ctx.invocation_id
            made.actions.artifact_delta = {"picture.txt": number}
            yield made

    url = f"sqlite:///{tmp_path / 'l.db'}"
    artifacts = QuireArtifactService(tmp_path / "folder")
    async with services(url) as service:
        await service.create_session(app_name="app", user_id="ann", session_id="s1")
        runner = Runner(
            agent=Painter(name="painter"), app_name="app", session_service=service, artifact_service=artifacts
        )
        message = types.Content(role="user", parts=[types.Part(text="paint")])
        async for _ in runner.run_async(user_id="ann", session_id="s1", new_message=message):
            pass
        found = await service.get_session(app_name="app", user_id="ann", session_id="s1")
    part = await artifacts.load_artifact(app_name="app", user_id="ann", session_id="s1", filename="picture.txt")
    await artifacts.close()

    assert found.events[-1].actions.artifact_delta == {"picture.txt": 0}
    assert part is not None and part.text == "a hill"


def _names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]
