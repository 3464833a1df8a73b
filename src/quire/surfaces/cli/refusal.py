"""Errors as users see them: one sentence on stderr, and an exit code. No traceback, unless ``--debug`` asks for it."""

from __future__ import annotations

import json
import sys
import traceback

import click

from quire.errors import (
    AlreadyExists,
    DefinitionError,
    Halted,
    IllegalMove,
    InputError,
    LedgerError,
    LedgerUnavailable,
    Moved,
    NotFound,
    QuireError,
    StaleVersion,
)
from quire.surfaces.cli.command import Exit, Session

#: By name: most commands need neither a folder nor Google.
_BY_NAME = {"FolderError": Exit.BAD_INPUT} | dict.fromkeys(
    ("NotSignedIn", "NotShared", "MissingScope", "ApiDisabled", "NoStorage", "QuotaOver"), Exit.REFUSED
)


def exit_code(error: BaseException) -> Exit:
    """What an error means for scripts."""
    match error:
        case NotFound():
            return Exit.NOT_FOUND
        case IllegalMove() | AlreadyExists() | StaleVersion() | Halted() | Moved():
            return Exit.REFUSED
        case LedgerUnavailable():
            return Exit.UNEXPECTED
        case QuireError() if type(error).__name__ in _BY_NAME:
            return _BY_NAME[type(error).__name__]
        case InputError() | DefinitionError() | LedgerError() | click.ClickException() | OSError():
            return Exit.BAD_INPUT
        case KeyboardInterrupt() | click.Abort():
            return Exit.INTERRUPTED
        case _:
            return Exit.UNEXPECTED


def _sentence(error: BaseException) -> str:
    match error:
        case KeyboardInterrupt() | click.Abort():
            return "stopped"
        case click.ClickException():
            return " ".join(error.format_message().split())
        case QuireError():
            return str(error)
        case OSError(strerror=str(reason)):
            what = f" {str(error.filename)[:200]!r}" if error.filename else ""
            return f"the system refuses{what}: {reason}"
        case _:
            text = str(error).strip().splitlines()
            what = f"{type(error).__name__}: {text[0]}" if text else type(error).__name__
            return f"this should not happen: {what} (the same command with --debug shows the details)"


def say(error: BaseException, session: Session) -> int:
    """Say what went wrong and answer the exit code."""
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else 0
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    code, sentence = exit_code(error), _sentence(error)
    if session.debug and not isinstance(error, KeyboardInterrupt | click.Abort):
        traceback.print_exception(error, file=sys.stderr)
    if session.json:
        kind = "usage" if isinstance(error, click.ClickException) else type(error).__name__
        click.echo(json.dumps({"error": kind, "message": sentence, "exit": int(code)}, ensure_ascii=False), err=True)
    else:
        usage = ""
        if isinstance(error, click.UsageError) and error.ctx is not None:
            usage = f" (see {error.ctx.command_path} --help)"
        click.echo(click.style("quire: ", fg="red", bold=True) + sentence + usage, err=True)
    return int(code)
