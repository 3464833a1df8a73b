"""The examples at the ends of ``--help``, typed as printed into a shell, in a project in which such records are."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from quire.surfaces.cli import cli
from quire.surfaces.cli.command import Verb
from tests.pages import Block, reading

EXAMPLES = Path(__file__).parents[3] / "examples"

FLOWS = """
from pathlib import Path

from pydantic import BaseModel

from quire import Act, Fail, Retry, Run, Workflow, effect, workflow


class Article(BaseModel):
    keyword: str
    draft: str = ""
    count: int = 0


async def unpost(act: Act, url: str) -> None: ...


@effect(undo=unpost)
async def put_online(act: Act, text: str) -> str:
    return "https://example.org/1"


@effect
async def book(act: Act, amount: float) -> str:
    raise RuntimeError("the answer never came")


seo_publish = Workflow("seo_publish", data=Article, result=str)


@seo_publish.step(then="review")
async def draft(run: Run[Article]) -> None:
    run.data.draft = f"About {run.data.keyword}."


@seo_publish.step(then=["post", "draft", "drop"])
async def review(run: Run[Article]) -> str:
    choices = ["approve", "rewrite", "reject"]
    answer = await run.ask("Publish?", show=run.data.draft, edit=["draft", "count"], choices=choices)
    return {"approve": "post", "rewrite": "draft"}.get(answer.choice, "drop")


@seo_publish.step(then="drop", retry=Retry(1))
async def post(run: Run[Article]) -> None:
    await run.once(put_online, run.data.draft)
    if Path("broken").exists():
        raise Fail("the site is gone")


@seo_publish.step
async def drop(run: Run[Article]) -> str:
    return run.data.draft


tasks = Workflow("tasks")
tasks.state("TODO", then=["IN_REVIEW"])
tasks.state("IN_REVIEW")


@workflow(retry=Retry(5, first="10ms"))
async def invoice(run: Run[dict]) -> str:
    paid = await run.wait("paid")
    return await run.once(book, paid["amount"])
"""

#: What is there before each example is typed.
SCENE = """
$ quire init
$ quire worker --until-idle
$ quire start seo_publish keyword="analytics dashboard" --id kw_analytics
$ quire start seo_publish keyword=quires --id kw_quires
$ quire start seo_publish keyword=missions --id mission_7
$ quire start invoice --id inv_17
$ quire start tasks --id task_3
$ quire worker --until-idle
$ quire mission run mars-colony.yaml --model scripted --id mars_4kd0
$ quire mission run startup-roadmap.yaml topic=tea --model scripted --id startup-roadmap_4kd0
"""

APPROVED = "quire approve kw_analytics; quire approve kw_quires; quire worker --until-idle"
BROKEN = "touch broken; " + APPROVED
DOUBT = "quire signal inv_17 paid amount:=120.5; quire worker --until-idle"


class Shown(NamedTuple):
    """How an example differs from a command that ends with 0 in the scene as it is."""

    before: str = ""
    code: int = 0
    goes_on: bool = False
    beside: str = ""


SHOWN = {
    "quire adopt --all": Shown("quire adopt"),
    "quire adopt --end": Shown("quire adopt && quire adopt --all go-on"),
    "quire cancel kw_analytics": Shown(BROKEN),
    "quire demo sheet": Shown(goes_on=True),
    "quire demo onboarding": Shown(goes_on=True),
    "quire connect": Shown(code=2),  # here is no client file of a person
    "quire diff kw_analytics": Shown(APPROVED),
    "quire edit kw_analytics\n": Shown(code=2),  # it opens an editor, and here is no terminal
    "quire export records.xlsx": Shown(APPROVED),
    "quire google": Shown(code=2),  # nobody has signed in here
    "quire google work": Shown(),
    "quire list --stuck": Shown(BROKEN),
    "quire logs -f": Shown(goes_on=True),
    "quire mcp --http": Shown(goes_on=True),
    "quire resolve inv_17": Shown(DOUBT),
    "quire restore": Shown("quire backup copy.db"),
    "quire resume": Shown("quire pause"),
    "quire resume seo_publish": Shown("quire halt seo_publish"),
    "quire retry": Shown(BROKEN),
    "quire serve": Shown("quire token create ann --role admin", goes_on=True),
    "quire start seo_publish keyword": Shown("rm -r .quire; quire worker --until-idle"),
    "quire rotate": Shown("export QUIRE_FOLDER=shared"),
    "quire start seo_publish --data": Shown(beside="quire worker", code=7),  # it waits for a worker
    "quire token revoke": Shown(code=4),  # the id is one of yours
    "quire undo kw_analytics": Shown(APPROVED),
    "quire up": Shown(goes_on=True),
    "quire watch": Shown(goes_on=True),
    "quire worker": Shown(goes_on=True),
}

#: Examples that cannot be typed here, by how they begin, and why.
NOT_HERE = {
    "quire table": "it needs a Google account",
    'quire mirror "postgresql://localhost/shop': "it needs a PostgreSQL at that address",
    "quire init shop --ledger postgresql://localhost/shop": "it needs a PostgreSQL at that address",
    "quire promote sqlite:///.quire/ledger.db postgresql://localhost/shop": "it needs a PostgreSQL at that address",
    "quire init https://docs.google.com": "it needs a Google account",
    "quire panel run": "it needs a Google account",
    "quire mission run startup-roadmap.yaml topic": "it needs a provider's key",
    "quire mission run mars-colony.yaml --model openai": "it needs a server with a model",
    "quire mission replay mars_4kd0 --what-if --turn 3": "it needs a provider's key",
    "quire model fetch": "it downloads a model",
    "quire demo mission --model local": "it needs that model",
    "quire mission demo --model local": "it needs that model",
}


def verbs(command: click.Command, context: click.Context) -> Iterator[Verb]:
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from verbs(found, click.Context(found, info_name=name, parent=context))
    elif isinstance(command, Verb):
        yield command


LINES = [
    line.strip().removeprefix("* * * * *").strip()
    for verb in verbs(cli, click.Context(cli, info_name="quire"))
    for line in verb.example.strip().splitlines()
]


@pytest.fixture(scope="session")
def scene(fresh: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that is made once, by all test processes together."""
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "help"
    shared.mkdir(exist_ok=True)
    with open(shared / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = shared / "scene"
        if not (shared / "made").exists():
            shutil.copytree(EXAMPLES / "missions", made)
            (made / "flows.py").write_text(FLOWS)
            (made / "keywords.csv").write_text("keyword\none\ntwo\n")
            (made / "article.json").write_text('{"keyword": "three"}')
            with reading("", fresh, made) as reader:
                reader.do(Block("console", SCENE.strip(), 1))
            (shared / "made").touch()
    return made


@pytest.mark.parametrize("line", [line for line in LINES if not line.startswith(tuple(NOT_HERE))])
def test_an_example_of_the_help_works_as_printed(line: str, fresh: Path, scene: Path, tmp_path: Path) -> None:
    home = tmp_path / "project"
    shutil.copytree(scene, home)
    starts = sorted((start for start in SHOWN if f"{line}\n".startswith(start)), key=len)
    shown = SHOWN[starts[-1]] if starts else Shown()
    typed = f"$ {line}" + ("   # until Ctrl-C" if shown.goes_on else "")

    with reading(typed, fresh, home) as reader:
        if shown.before:
            code, said = reader.answer(shown.before)
            assert code == 0, said
        if shown.beside:
            reader.do(Block("console", f"$ {shown.beside}   # until Ctrl-C\n", 1))
        reader.do(Block("console", typed + (f"   # exit {shown.code}" if shown.code else ""), 1))


def test_every_command_has_an_example_and_every_exception_a_use() -> None:
    silent = [verb.name for verb in verbs(cli, click.Context(cli, info_name="quire")) if not verb.example.strip()]
    assert silent == []
    beginnings = [*NOT_HERE, *SHOWN]
    assert [start for start in beginnings if not any(f"{line}\n".startswith(start) for line in LINES)] == []
