"""Tools of MCP servers: real servers, over stdio and HTTP; each call a receipt, and nothing is done twice."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from quire.agents.blueprint.reading import load
from quire.agents.missions.replay import replay
from quire.agents.missions.story import TOOLS, read
from quire.errors import DefinitionError
from quire.model.record import Status
from tests.agents.conftest import Serve
from tests.agents.missions import opened, started
from tests.agents.stand_in import Answer, Asked

ROOT = Path(__file__).parents[2]
SCRIPT = str(Path(__file__).with_name("notebook_server.py"))


def plan(model: Any, mcp: Any, **more: Any) -> Any:
    return load(
        {
            "mission": "colony",
            "model": model,
            "agents": [{"id": "clerk", "prompt": "[clerk] go", "mcp": [mcp], **more}],
            "reducer": {"id": "editor", "prompt": "[editor] all"},
        }
    )


def answer(asked: Asked) -> Answer:
    """Notes one, notes two, burns; then says what came of it."""
    results = [row["content"] for row in asked.body["messages"] if row["role"] == "tool"]
    if "editor" in asked.prompts[0] or len(results) == 3:
        return Answer(f"then {results}")
    calls: list[tuple[str, dict[str, Any]]] = [("note", {"text": "one"}), ("note", {"text": "two"}), ("burn", {})]
    return Answer(tool=calls[len(results)])


@pytest.mark.slow
async def test_tools_over_stdio_are_done_once_over_an_approval_and_a_new_process(serve: Serve, tmp_path: Path) -> None:
    server, book = serve(answer), tmp_path / "book"
    mcp = {"command": sys.executable, "args": [SCRIPT], "env": {"NOTEBOOK": str(book)}}
    made = plan(server.model(), mcp, approve=["burn"], approver="ann")
    url = f"sqlite:///{tmp_path / 'l.db'}"

    async with opened(made, url) as client:
        await started(client)
        [part] = await client.find(status=Status.NEEDS_APPROVAL)
        assert part.question == "May clerk do burn()?"
        assert book.read_text() == "one\ntwo\n"
        await client.answer(part.record_id, "approve", by="ann")

    async with opened(made, url) as client:  # somebody else goes on
        await client.work()
        story = await read(client.ledger, "m1")
        book.rename(tmp_path / "kept")
        done = await replay(client.ledger, "m1")

    assert story.report is not None and "burnt" in story.report.agents[0].text
    assert (tmp_path / "kept").read_text() == "one\ntwo\nburnt\n"
    assert len(server.log) == 5  # three calls for tools, the answer, the reducer
    receipts = [receipt.name.split()[3] for receipt in story.receipts if receipt.fn in TOOLS]
    assert receipts == ["note", "note", "burn"]
    assert done.same
    assert not book.exists()  # a replay asks neither models nor servers


async def test_tools_over_http_with_a_header_from_the_environment(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, book = serve(answer), tmp_path / "book"
    monkeypatch.setenv("NOTEBOOK_TOKEN", "s3cret-of-the-notebook")
    with notebook(book) as address:
        mcp = {"url": address, "headers": {"Authorization": "$NOTEBOOK_TOKEN"}}
        async with opened(plan(server.model(), mcp), f"sqlite:///{tmp_path / 'l.db'}") as client:
            report = await (await started(client)).result()

    assert "noted one" in report.agents[0].text
    assert book.read_text() == "one\ntwo\nburnt\n"
    assert all(b"s3cret-of-the-notebook" not in raw for raw in _files(tmp_path))


async def test_a_server_that_is_not_there_fails_its_agent_in_words(serve: Serve, tmp_path: Path) -> None:
    server = serve(answer)
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]

    async with opened(plan(server.model(), f"http://127.0.0.1:{port}/mcp")) as client:
        await started(client)
        part = await client.get("m1/colony~1/0")

    assert part.status in (Status.ERROR, Status.PENDING)
    assert part.last_error is not None and "connect" in part.last_error.lower()
    assert server.log == []


def test_a_server_is_at_an_address_or_started_and_nothing_else() -> None:
    with pytest.raises(DefinitionError, match="either a url or a command"):
        plan("scripted", {"url": "http://x", "command": "y"})
    with pytest.raises(DefinitionError, match="there is no such word; did you mean 'args'"):
        plan("scripted", {"command": "y", "arg": []})


def _files(folder: Path) -> list[bytes]:
    return [file.read_bytes() for file in folder.rglob("*") if file.is_file()]


@contextmanager
def notebook(book: Path) -> Iterator[str]:
    """The server over HTTP, in a process of its own."""
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "NOTEBOOK": str(book)}
    process = subprocess.Popen(
        [sys.executable, SCRIPT, str(port)], cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if "running on" in line:
                break
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()
