"""Every command with wrong, missing and hostile arguments: no traceback, no change, a documented exit code."""

from __future__ import annotations

import click
import pytest

from quire.surfaces.cli import COMMANDS, cli
from quire.surfaces.cli.command import Exit, Verb
from tests.surfaces.cli.conftest import Project

HOSTILE = (
    "",
    " ",
    "nope",
    "-1",
    "--",
    "--nope",
    "../../etc/passwd",
    "'; DROP TABLE records; --",
    "a" * 10_000,
    "💥\u202e",
    "\x1b[31mred",
    "nul\x00byte",
    "\ud800",
    "%s%n%x",
    "$(id)",
    "{",
    "@",
    "-",
    "=",
    "a=b",
    "NaN",
    "1e999",
    "\n",
)
#: These run until they are stopped, or make something of any name they are given.
ENDLESS = frozenset({"up", "worker", "serve", "watch", "tick", "demo", "init", "emulate"})
#: What a command may end with here.
CODES = frozenset({Exit.OK, Exit.BAD_INPUT, Exit.REFUSED, Exit.NOT_FOUND})


def command(name: str) -> click.Command:
    found = cli.get_command(click.Context(cli), name)
    assert found is not None
    return found


def required(name: str) -> int:
    return sum(isinstance(param, click.Argument) and param.required for param in command(name).params)


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in ENDLESS])
def test_hostile_arguments_change_nothing(project: Project, name: str) -> None:
    project.quire("start", "publish", "keyword=x", "--id", "known")
    before, files = project.contents(), sorted(path.name for path in project.path.iterdir())

    for word in HOSTILE:
        for words in ([word], [word] * max(1, required(name)), ["known", word], ["--workflow", word], ["--to", word]):
            if "known" in words and name in ("retry", "cancel", "undo", "signal", "edit"):
                continue  # a known record and any further word may be a legal wish
            if word == "--" and name in ("halt", "pause", "resume"):
                continue  # without a name they mean the whole ledger
            if name == "export" or (name == "graph" and words[0] == "--to"):
                continue  # a file of any name is a legal wish
            result = project.quire(name, *words, code=None, given="")
            assert result.exit_code in CODES, (name, words, result.exit_code, result.output[:500])

    assert project.contents() == before
    extra = {"ledger.db-wal", "ledger.db-shm"}
    assert {path.name for path in project.path.iterdir()} - extra == set(files) - extra


@pytest.mark.parametrize("name", list(COMMANDS))
def test_a_missing_argument_and_an_unknown_option(project: Project, name: str) -> None:
    if name == "emulate":
        return
    before = project.contents()

    result = project.quire(name, "--no-such-option", code=2)
    assert "No such option '--no-such-option'" in result.stderr
    if required(name):
        assert f"(see quire {name} --help)" in project.quire(name, code=2).stderr

    assert project.contents() == before


@pytest.mark.parametrize("word", HOSTILE)
def test_hostile_flags_that_every_command_takes(project: Project, word: str) -> None:
    before = project.contents()

    for words in (("list", "--config", word), ("list", "--as", word), ("--json", word), (word,)):
        result = project.quire(*words, code=None)
        assert result.exit_code in CODES, (words, result.output[:300])

    assert project.contents() == before


@pytest.mark.parametrize(
    "url", ["", "memory:", "ftp://x", "sqlite://", "sqlite:///", "/", "nope/x.db", "\x00", "postgresql://127.0.0.1:1/x"]
)
def test_hostile_ledgers(empty: Project, url: str) -> None:
    result = empty.quire("list", "--ledger", url, code=None)

    assert result.exit_code in {0, 1, 2, 4}
    assert not list(empty.path.iterdir())


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_has_help_with_an_example(name: str) -> None:
    found = command(name)
    if name == "emulate":
        return
    if isinstance(found, click.Group):
        assert found.help and all(sub.help for sub in found.commands.values())
        return
    assert isinstance(found, Verb)
    assert found.help
    assert f"quire {name}" in found.example or found.example.startswith(("eval", "*")) or name == "completion"
    for param in found.own:
        if isinstance(param, click.Option):
            assert param.help or isinstance(param.type, click.Choice), (name, param.name)


def test_the_help_of_the_group_names_every_command() -> None:
    text = cli.get_help(click.Context(cli, info_name="quire"))

    for name, entry in COMMANDS.items():
        assert f"  {name} " in text
        assert entry.help in " ".join(text.split())


@pytest.mark.parametrize("name", ["halt", "pause", "resume", "retry", "list"])
def test_an_empty_name_does_not_mean_all_of_them(project: Project, name: str) -> None:
    project.quire("start", "publish", "keyword=x", "--id", "a")
    project.quire("cancel", "a")
    before = project.contents()

    words = [""] if name in ("halt", "pause", "resume") else ["--workflow", "", "--status", "CANCELLED"]

    assert "it is empty; leave it out to mean all of them" in project.error(name, *words, code=2)
    assert project.contents() == before
