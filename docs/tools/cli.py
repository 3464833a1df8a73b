"""Prints docs/cli.md, made from the commands' own help: ``python docs/tools/cli.py > docs/cli.md``."""

from __future__ import annotations

import re
import sys
from typing import Any

import click

from quire.surfaces.cli import COMMANDS, GROUPS, cli

_HEAD = """# The command line

*Made by `python docs/tools/cli.py > docs/cli.md`; a test fails when it is stale.*

Configuration: the nearest `quire.toml` (or `[tool.quire]` in `pyproject.toml`) upwards from the current directory. A
flag wins over the environment (`QUIRE_LEDGER`, `QUIRE_FLOWS`, …), the environment over the file, the file over the
default; paths in the file are relative to the file. `quire config` shows each value and where it comes from.

| exit code | means |
|---|---|
| 0 | done; for `start --follow`: the record is DONE |
| 1 | something unexpected; `--debug` shows the details |
| 2 | wrong usage, or an input, a file or a configuration that cannot be accepted |
| 3 | refused: the record or the ledger stands otherwise; for `verify`, `doctor`: something was found |
| 4 | not found |
| 5 | `start --follow`: the record ended in ERROR |
| 6 | `start --follow`: the record ended as CANCELLED |
| 7 | `start --follow`: the record waits for a person |
| 130 | stopped by Ctrl-C (what runs until it is stopped, such as a worker or `logs -f`, ends with 0) |

Every command takes `--json`: one object a line, errors as an object on standard error. On a terminal there are
colours, tables and live progress; piped, plain text. Data is typed as `field=text`, or `field:=JSON`; where the
workflow's schema wants a number, `count=3` is one.
"""


_CONTEXT: dict[str, Any] = {"terminal_width": 100, "max_content_width": 100, "help_option_names": ["-h", "--help"]}
#: What every command takes stands there once.
_COMMON = re.compile(r"\nCommon options:\n(?:  .*\n)*?(?=\n|\Z)", re.MULTILINE)


def markdown() -> str:
    """The whole reference."""
    context = click.Context(cli, info_name="quire", **_CONTEXT)
    text = "\n".join(line.rstrip() for line in cli.get_help(context).splitlines())
    parts = [_HEAD, f"## quire\n\n```text\n{text}\n```\n"]
    for group, title in GROUPS.items():
        names = [name for name, entry in COMMANDS.items() if entry.group == group]
        if names:
            parts.append(f"## {title}\n")
        for name in names:
            command = cli.get_command(context, name)
            assert command is not None
            inner = click.Context(command, info_name=name, parent=context, **_CONTEXT)
            text = _COMMON.sub("", "\n".join(line.rstrip() for line in command.get_help(inner).splitlines()))
            parts.append(f"### quire {name}\n\n```text\n{text}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    sys.stdout.write(markdown())
