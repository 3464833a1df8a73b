"""Every command with wrong, missing and hostile arguments: no traceback, no change, a documented exit code."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from zlib import crc32

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
#: It hands its words to a program of its own, which has its own tests.
APART = frozenset({"emulate"})
#: Beside those that run until they are stopped: a configuration that is not there ends them before they begin.
ENDLESS = frozenset({"watch"})
#: They need no ledger and make a directory of their own, so any name will do: here they end where they would begin.
DEMOS = ("quire.surfaces.cli.begin.demo.run_demo", "quire.surfaces.cli.missions.demo.run_demo")
#: What a command may end with here.
CODES = frozenset({Exit.OK, Exit.BAD_INPUT, Exit.REFUSED, Exit.NOT_FOUND})


def command(name: str) -> click.Command:
    found = cli.get_command(click.Context(cli), name)
    assert found is not None
    return found


def required(found: click.Command) -> int:
    return sum(isinstance(param, click.Argument) and param.required for param in found.params)


def leaves() -> Iterator[tuple[str, str, click.Command]]:
    """Every command with its group, also those within a command: what is added is tried by itself."""
    for name, entry in COMMANDS.items():
        if name in APART:
            continue
        found = command(name)
        if not isinstance(found, click.Group):
            yield name, entry.group, found
            continue
        for inner, sub in found.commands.items():
            yield f"{name} {inner}", entry.group, sub


def tries(name: str, found: click.Command) -> Iterator[list[str]]:
    """Each hostile word in the place of the arguments, and a few of them for each option."""
    count = max(1, required(found))
    for word in HOSTILE:
        yield [word]
        yield [word] * count
        yield ["known", *[word] * max(1, count - 1)]
    for option in found.params:
        if isinstance(option, click.Option) and not option.is_flag and option.name not in ("file", "ledger"):
            place = crc32(f"{name} {option.name}".encode())
            for turn in range(4):
                yield [*["known"] * count, option.opts[0], HOSTILE[(place + 5 * turn) % len(HOSTILE)]]


@pytest.mark.parametrize("leaf", list(leaves()), ids=lambda leaf: leaf[0])
def test_hostile_arguments_change_nothing(
    project: Project, monkeypatch: pytest.MonkeyPatch, leaf: tuple[str, str, click.Command]
) -> None:
    name, group, found = leaf
    project.quire("start", "publish", "keyword=x", "--id", "known")
    deep = project.path / "some/where"  # so that no file is written outside
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    monkeypatch.setenv("EDITOR", "true")
    for target in DEMOS:
        monkeypatch.setattr(target, lambda *_: Exit.REFUSED)
    endless = group == "run" or name in ENDLESS
    ending = ["--config", "nowhere.toml"] if endless else []
    before = project.contents()
    with closing(sqlite3.connect(project.path / "ledger.db")) as watching:

        def written() -> int:
            """Rises with every commit of another connection."""
            return int(watching.execute("PRAGMA data_version").fetchone()[0])

        version = written()
        for words in tries(name, found):
            result = project.quire(*name.split(), *ending, *words, code=None, given="")
            assert result.exit_code in CODES, (name, words, result.exit_code, result.output[:500])
            assert not endless or result.exit_code, (name, words, result.output[:500])
            if written() == version:
                continue
            now, version = project.contents(), written()
            refused = result.exit_code != Exit.OK or group == "look"
            only_noted = name == "move" and {event.kind for event in now[1][len(before[1]) :]} == {"refused"}
            assert now == before or not refused or only_noted, (name, words, result.output[:500])
            before = now


@pytest.mark.parametrize("name", list(COMMANDS))
def test_a_missing_argument_and_an_unknown_option(project: Project, name: str) -> None:
    if name == "emulate":
        return
    before = project.contents()

    result = project.quire(name, "--no-such-option", code=2)
    assert "No such option '--no-such-option'" in result.stderr
    if required(command(name)):
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
    text = cli.get_help(click.Context(cli, info_name="quire", **cli.context_settings))

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
