"""Prints docs/errors.md, made from the classes of the errors: ``python docs/tools/errors.py > docs/errors.md``."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator

from quire import errors
from quire.errors import QuireError
from quire.folder.base import FolderError
from quire.folder.config import SecretFound
from quire.surfaces.cli.flows import FlowError
from quire.surfaces.cli.refusal import exit_code
from quire.surfaces.config import ConfigError
from quire.workflows.effect import NotDone
from quire.workflows.retry import Fail

_HEAD = """# Errors

*Made by `python docs/tools/errors.py > docs/errors.md`; a test fails when it is stale.*

Every error that Quire raises on purpose is a `quire.QuireError`; families are by what the caller can do. The command
line says one sentence on standard error (with `--json` an object: `error`, `message`, `exit`) and ends with the code;
nothing was changed then, unless its line says so. Whoever catches a family catches all that belong to it.
"""

_RAISED = """
## What your steps raise

| raise | means |
|---|---|
"""

#: Beside those of ``quire.errors``.
ALSO: tuple[type[QuireError], ...] = (ConfigError, FlowError, SecretFound, FolderError)


def classes() -> list[type[QuireError]]:
    """Every error that a user may see, each after its family."""
    own = [kind for kind in vars(errors).values() if inspect.isclass(kind) and issubclass(kind, QuireError)]
    return list(_below(QuireError, [*own, *ALSO]))


def _below(family: type[QuireError], known: list[type[QuireError]]) -> Iterator[type[QuireError]]:
    yield family
    for kind in known:
        if kind.__base__ is family:
            yield from _below(kind, known)


def when_and_remedy(kind: type[Exception]) -> tuple[str, str]:
    """When it is raised, and what to do then."""
    text = " ".join((inspect.getdoc(kind) or "").split()).replace("``", "`")
    when, _, remedy = text.partition(". ")
    return when.rstrip(".") + ".", remedy


def markdown() -> str:
    """The whole reference."""
    rows = ["| error | belongs to | exit | when | what to do |", "|---|---|---|---|---|"]
    for kind in classes():
        if kind is QuireError:
            continue
        when, remedy = when_and_remedy(kind)
        names = f"`{kind.__name__}` | `{kind.__mro__[1].__name__}`"
        rows.append(f"| {names} | {int(exit_code(kind('')))} | {_cell(when)} | {_cell(remedy)} |")
    raised = [f"| `{kind.__name__}` | {_cell(' '.join(when_and_remedy(kind)).strip())} |" for kind in (Fail, NotDone)]
    raised.append("| any other exception | A try failed; `Retry` says whether and when there is another. |")
    return f"{_HEAD}\n" + "\n".join(rows) + f"\n{_RAISED}" + "\n".join(raised) + "\n"


def _cell(text: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", text)


if __name__ == "__main__":
    sys.stdout.write(markdown())
