"""The command line ``quire``. Each command lives in a module that is imported only when the command is typed.

A part that brings a command of its own adds one row to ``COMMANDS``: its name, where it stands in the help, one line
of help, and ``module:function`` of a click command (made with ``quire.surfaces.cli.command.verb``, so that it takes
the common options and its errors become sentences).
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple

import click

from quire import __version__
from quire.surfaces.cli.command import COMMON, Exit, Session


class Entry(NamedTuple):
    """A command that is loaded when it is asked for."""

    group: str
    help: str
    #: ``module:function`` of the click command.
    target: str


_HERE = "quire.surfaces.cli"

#: Every command, in the order of the help.
COMMANDS: dict[str, Entry] = {
    "init": Entry("begin", "Write quire.toml and flows.py.", f"{_HERE}.begin.project:init"),
    "demo": Entry(
        "begin", "Watch a worker be killed half-way and nothing be done twice.", f"{_HERE}.begin.project:demo"
    ),
    "check": Entry("begin", "Load the workflows and name what is wrong with them.", f"{_HERE}.begin.project:check"),
    "doctor": Entry("begin", "Examine this machine and the ledger.", f"{_HERE}.begin.doctor:doctor"),
    "connect": Entry("begin", "Sign in to Google with what the flows need.", "quire.surfaces.google.connect:connect"),
    "config": Entry("begin", "Show each setting and where it comes from.", f"{_HERE}.begin.project:config"),
    "up": Entry("run", "Run a worker, the API and the dashboard.", f"{_HERE}.run.up:up"),
    "worker": Entry("run", "Run a worker.", f"{_HERE}.run.up:worker"),
    "serve": Entry("run", "Run the API and the dashboard.", f"{_HERE}.run.up:serve"),
    "mcp": Entry("run", "Serve a chat with tools (Model Context Protocol).", f"{_HERE}.run.chat:mcp"),
    "panel": Entry("run", "Keep a sheet in front of the ledger.", f"{_HERE}.run.panel:panel"),
    "table": Entry("run", "Let rows of a sheet that you have go through a workflow.", f"{_HERE}.run.table:table"),
    "token": Entry("run", "Make, list and revoke tokens for the API.", f"{_HERE}.run.tokens:token"),
    "tick": Entry("run", "Work for one slice of time and hand on.", f"{_HERE}.run.tick:tick"),
    "start": Entry("work", "Start a record, or many.", f"{_HERE}.work.start:start"),
    "mission": Entry("work", "Run networks of agents from a blueprint.", f"{_HERE}.missions.commands:mission"),
    "model": Entry("work", "Fetch a model that answers on this machine.", f"{_HERE}.missions.models:model"),
    "signal": Entry("work", "Send a signal to a record.", f"{_HERE}.work.acts:signal"),
    "google": Entry("work", "Do one act at Google, once.", "quire.surfaces.google.commands:google"),
    "move": Entry("work", "Move a record to a declared successor.", f"{_HERE}.work.acts:move"),
    "edit": Entry("work", "Change the data of a record.", f"{_HERE}.work.acts:edit"),
    "approve": Entry("people", "Answer a question with the choice that goes ahead.", f"{_HERE}.work.people:approve"),
    "reject": Entry("people", "Answer a question with 'reject'.", f"{_HERE}.work.people:reject"),
    "answer": Entry("people", "Answer a question.", f"{_HERE}.work.people:answer"),
    "resolve": Entry("people", "Say whether an effect in doubt happened.", f"{_HERE}.work.people:resolve"),
    "retry": Entry("repair", "Try a record again, or all of a filter.", f"{_HERE}.work.repair:retry"),
    "cancel": Entry("repair", "Cancel a record.", f"{_HERE}.work.repair:cancel"),
    "undo": Entry("repair", "Take back what a record did.", f"{_HERE}.work.repair:undo"),
    "pause": Entry("repair", "Claim nothing more; what runs goes on.", f"{_HERE}.work.repair:pause"),
    "resume": Entry("repair", "End a pause or a halt.", f"{_HERE}.work.repair:resume"),
    "halt": Entry("repair", "Stop everything, durably.", f"{_HERE}.work.repair:halt"),
    "list": Entry("look", "List records.", f"{_HERE}.look.listing:list_"),
    "show": Entry("look", "Show everything about one record.", f"{_HERE}.look.record:show"),
    "why": Entry("look", "Say in one sentence what a record waits for.", f"{_HERE}.look.record:why"),
    "watch": Entry("look", "Watch the ledger move.", f"{_HERE}.look.logs:watch"),
    "logs": Entry("look", "Read the log.", f"{_HERE}.look.logs:logs"),
    "diff": Entry("look", "Show what changed between two versions.", f"{_HERE}.look.record:diff"),
    "graph": Entry("look", "Draw a workflow with its records.", f"{_HERE}.look.graph:graph"),
    "postmortem": Entry(
        "look", "Write all that is known about a record as one page.", f"{_HERE}.look.report:postmortem"
    ),
    "report": Entry("look", "Compute times from a record's log.", f"{_HERE}.look.report:report"),
    "verify": Entry("look", "Check hash chains, receipts, fan-ins and the folder.", f"{_HERE}.keep.commands:verify"),
    "export": Entry("keep", "Write records to a file.", f"{_HERE}.keep.commands:export"),
    "mirror": Entry("keep", "Copy what is new to files or to a database.", f"{_HERE}.keep.commands:mirror"),
    "rotate": Entry("keep", "Move old log lines to an archive.", f"{_HERE}.keep.commands:rotate"),
    "forget": Entry("keep", "Forget what ended long ago.", f"{_HERE}.keep.forget:forget"),
    "backup": Entry("keep", "Copy the ledger to a file.", f"{_HERE}.keep.copies:backup"),
    "restore": Entry("keep", "Put a copy in the place of the ledger.", f"{_HERE}.keep.copies:restore"),
    "adopt": Entry("keep", "Go on with a restored or copied ledger.", f"{_HERE}.keep.copies:adopt"),
    "promote": Entry("keep", "Move a ledger to another store.", f"{_HERE}.keep.commands:promote"),
    "completion": Entry(
        "shell", "Print a script that completes commands and ids.", f"{_HERE}.begin.project:completion"
    ),
    "emulate": Entry("shell", "Run an emulator of the Google APIs.", f"{_HERE}.run.emulator:emulate"),
}

GROUPS = {
    "begin": "Begin",
    "run": "Run",
    "work": "Work",
    "people": "People",
    "repair": "Repair",
    "look": "Look",
    "keep": "Keep",
    "shell": "Shell",
}

_HELP = """Durable workflows whose records never lose their place.

Type quire COMMAND --help for a command's options and an example. Without a command, quire says how the ledger stands.

\b
Exit codes: 0 done · 1 unexpected · 2 wrong usage or input · 3 refused · 4 not found
start --follow also: 5 the record ended in ERROR · 6 CANCELLED · 7 it waits for a person
"""


class Quire(click.Group):
    """The group of all commands: loads them lazily and turns every error into a sentence and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        module, _, name = entry.target.partition(":")
        try:
            command = getattr(import_module(module), name)
        except ModuleNotFoundError as error:
            raise click.ClickException(f"'quire {cmd_name}' is not installed here: {error}") from error
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        word = args[0]
        if word not in COMMANDS and not word.startswith("-"):
            from quire.errors import did_you_mean

            hint = did_you_mean(word, COMMANDS)
            ctx.fail(f"there is no command {word!r}{hint if hint.startswith('; did') else '; see quire --help'}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            answer = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:  # quire list | head
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return Exit.OK
        return answer

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for group, title in GROUPS.items():
            rows = [(name, entry.help) for name, entry in COMMANDS.items() if entry.group == group]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def main(  # type: ignore[override]  # it always leaves by sys.exit, as click's does in its standalone mode
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> None:
        _open_streams()
        words = list(sys.argv[1:] if args is None else args)
        extra.pop("standalone_mode", None)
        options = words[: words.index("--")] if "--" in words else words
        session = Session(json="--json" in options, debug="--debug" in options)
        extra.setdefault("obj", session)
        extra.setdefault("complete_var", "_QUIRE_COMPLETE")
        from quire.surfaces.cli.refusal import say

        try:
            _check_text(words)
            code = super().main(words, "quire", standalone_mode=False, **extra)
        except BaseException as error:  # noqa: BLE001 - no traceback reaches a user
            code = say(error, session)
        sys.exit(int(code) if isinstance(code, int) else 0)


def _open_streams() -> None:
    """A stream that the caller has closed is one to nowhere: what is done is done, though nobody listens."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - for as long as the process


def _check_text(words: Sequence[str]) -> None:
    """Refuse texts that no store, no file name and no terminal takes, before the command begins."""
    for word in words:
        if "\x00" in word or _NO_TEXT.search(word):
            raise click.UsageError(f"{word[:80]!r} is not text: it holds a NUL character, or bytes that are not UTF-8")


_NO_TEXT = re.compile("[\ud800-\udfff]")


@click.group(
    cls=Quire, help=_HELP, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, message="quire %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    if ctx.invoked_subcommand is None:
        from quire.surfaces.cli.look.overview import overview

        ctx.invoke(overview)


cli.params += COMMON


def main() -> None:
    """The entry point ``quire``."""
    cli.main()


def run_file(path: str) -> None:
    """What ``quire.main()`` does: ``python flows.py`` is the same as ``quire up flows.py``."""
    cli.main(["up", path, *sys.argv[1:]])
