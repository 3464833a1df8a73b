"""A project of its own for each test: a directory with flows, a ledger, and ``quire`` to type into it."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from click.testing import CliRunner, Result

from quire.client.client import Client
from quire.model.change import Query
from quire.model.event import Event
from quire.model.record import Record
from quire.surfaces.cli import cli

T = TypeVar("T")

FLOWS = """
from typing import Literal

from pydantic import BaseModel

from quire import Act, Fail, Retry, Run, Workflow, effect, workflow


class Article(BaseModel):
    keyword: str
    draft: str = ""
    words: int = 0
    tags: list[str] = []
    hot: bool = False
    score: float | None = None


async def unpost(act: Act, url: str) -> None: ...


@effect(undo=unpost)
async def put_online(act: Act, text: str) -> str:
    return f"https://example.org/{text}"


publish = Workflow("publish", data=Article, result=str)


@publish.step(then="review")
async def draft(run: Run[Article]) -> None:
    run.data.draft = f"About {run.data.keyword}."


@publish.step(then=["post", "draft", "archive"])
async def review(run: Run[Article]) -> Literal["post", "draft", "archive"]:
    answer = await run.ask(
        f"Publish {run.data.keyword!r}?",
        show=run.data.draft,
        edit=["draft", "words"],
        choices=["approve", "rewrite", "reject"],
        by="editors",
        expires="3d",
    )
    return {"approve": "post", "rewrite": "draft"}.get(answer.choice, "archive")


@publish.step(then="archive", retry=Retry(1))
async def post(run: Run[Article]) -> None:
    if run.data.keyword == "broken":
        raise Fail("the site is gone")
    await run.once(put_online, run.data.keyword)


@publish.step
async def archive(run: Run[Article]) -> str:
    return run.data.draft


board = Workflow("board")
board.state("TODO", then=["DOING"])
board.state("DOING", then=["DONE", "TODO"])
board.state("DONE")


@workflow
async def invoice(run: Run[dict]) -> float:
    paid = await run.wait("paid")
    return paid["amount"]
"""

TOML = """flows = ["flows.py"]
ledger = "sqlite:///ledger.db"
who = "ann@x.eu"

[groups]
editors = ["ann@x.eu", "bob@x.eu"]
"""


class Project:
    """A directory with flows and a ledger."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.url = f"sqlite:///{path / 'ledger.db'}"

    def write(self, name: str, text: str) -> Path:
        file = self.path / name
        file.write_text(text, encoding="utf-8")
        return file

    def quire(self, *words: str, code: int | None = 0, given: str | bytes | None = None) -> Result:
        """Type a command, and check its exit code. No traceback is ever shown."""
        result = CliRunner().invoke(cli, list(words), input=given)
        assert "Traceback" not in result.output, result.output
        assert code is None or result.exit_code == code, f"quire {words}: {result.exit_code}\n{result.output}"
        return result

    def json(self, *words: str, code: int | None = 0, given: str | bytes | None = None) -> list[Any]:
        """Type a command with --json and read its lines."""
        result = self.quire(*words, "--json", code=code, given=given)
        return [json.loads(line) for line in result.stdout.splitlines()]

    def error(self, *words: str, code: int) -> str:
        """Type a command that fails: the one sentence that it says, with nothing on standard output."""
        result = self.quire(*words, code=code)
        assert result.stdout == ""
        [line] = result.stderr.strip().splitlines()
        assert line.startswith("quire: ")
        return line.removeprefix("quire: ")

    def work(self) -> None:
        """Work until nothing is due."""
        self.quire("worker", "--until-idle")

    def ask(self, question: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
        """Look into the ledger without the command line."""

        async def inside() -> T:
            async with Client(self.url) as client:
                return await question(client)

        return asyncio.run(inside())

    def record(self, record_id: str) -> Record:
        return self.ask(lambda client: client.get(record_id))

    def contents(self) -> tuple[list[Record], list[Event], list[str]]:
        """All that a command could have changed."""

        async def read(client: Client) -> tuple[list[Record], list[Event], list[str]]:
            records = await client.ledger.find(Query(limit=100_000))
            settings = [f"{s.name} {s.value}" for s in await client.ledger.settings("") if s.name != "doctor"]
            standing = await client.standing()
            settings.append(str((standing.epoch, standing.controls, standing.sealed)))
            return records, await client.events(limit=100_000), settings

        return self.ask(read)

    def process(self, *words: str) -> subprocess.Popen[str]:
        """The same as a process of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "quire.surfaces.cli", *words],
            cwd=self.path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """An empty directory; modules that a command loads are forgotten afterwards."""
    for name in list(os.environ):
        if name.startswith("QUIRE_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    modules, paths = set(sys.modules), list(sys.path)
    yield Project(tmp_path)
    for name in set(sys.modules) - modules:
        file = getattr(sys.modules[name], "__file__", None)
        if file and str(tmp_path) in str(file):
            del sys.modules[name]
    sys.path[:] = paths


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the first test that asks for a project leaves one for the others: to copy it is quicker than to make it."""
    return tmp_path_factory.mktemp("made") / "project"


@pytest.fixture
def project(empty: Project, made: Path) -> Project:
    """A project whose workflows are registered in its ledger."""
    if made.exists():
        shutil.copytree(made, empty.path, dirs_exist_ok=True)
        return empty
    empty.write("flows.py", FLOWS)
    empty.write("quire.toml", TOML)
    empty.work()
    shutil.copytree(empty.path, made)
    return empty
