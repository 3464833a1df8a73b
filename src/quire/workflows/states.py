"""Workflows that are only states, written as data: who may move a record from which state to which.

``[states.NAME]`` in ``quire.toml`` holds the moves themselves, or the title of a tab of the book in which they stand
(``from | to | who``). The other keys are those of ``Table``: they bind the rows of a tab to the states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

from quire.errors import DefinitionError
from quire.workflows import declared
from quire.workflows.sources import Table
from quire.workflows.workflow import Workflow

#: What a table of the moves names in its header.
HEADER = ("from", "to", "who")
_TABLE = tuple(field.name for field in fields(Table))
_EXAMPLE = '{ from = "PENDING", to = ["IN_PROGRESS", "CANCELLED"] }'


class Move(NamedTuple):
    """One row: a record may go from here to there; ``who`` may move it, or everybody if nobody is named."""

    origin: str
    target: str
    who: tuple[str, ...] = ()


def tab_of(given: Mapping[str, Any]) -> str:
    """Return the title of the tab in which the moves stand; empty: they stand here."""
    moves = given.get("moves")
    return moves if isinstance(moves, str) else ""


def moves_of(given: Mapping[str, Any], whose: str) -> list[Move]:
    """Return the moves that stand in the configuration."""
    rows = given.get("moves")
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise DefinitionError(
            f"moves of {whose} is {rows!r}; it must be the title of a tab, or a list like [{_EXAMPLE}]"
        )
    found = []
    for row in rows:
        declared.options(row, HEADER, f"a move of {whose}")
        if not declared.is_text(row.get("from")):
            raise DefinitionError(f"a move of {whose} is {row!r}; it must say where it begins, like {_EXAMPLE}")
        who = declared.names(row.get("who", ()), f"who of {whose}")
        found += [Move(row["from"], target, who) for target in declared.names(row.get("to"), f"to of {whose}")]
    return found


def moves_in(grid: Sequence[Sequence[Any]], whose: str) -> list[Move]:
    """Return the moves that stand in a tab, below a header that says ``from``, ``to`` and perhaps ``who``."""
    header = next((row for row, cells in enumerate(grid) if {"from", "to"} <= set(_texts(cells))), None)
    if header is None:
        raise DefinitionError(f"{whose} has no header: a row that says from, to and who")
    names = _texts(grid[header])
    if doubled := [name for name in HEADER if names.count(name) > 1]:
        raise DefinitionError(f"{whose} has two columns {doubled[0]!r}: rename one of them")
    found = []
    for number, cells in enumerate(grid[header + 1 :], header + 2):
        row = dict(zip(names, [str(cell).strip() for cell in cells], strict=False))
        origin, targets = row.get("from", ""), _listed(row.get("to", ""))
        if bool(origin) != bool(targets):
            raise DefinitionError(f"row {number} of {whose} says only one of from and to; fill the other cell")
        found += [Move(origin, target, _listed(row.get("who", ""))) for target in targets]
    if not found:
        raise DefinitionError(f"{whose} has no row that says from and to")
    return found


def workflow_of(name: str, given: Mapping[str, Any], moves: Sequence[Move], whose: str) -> Workflow[Any, Any, Any]:
    """Return the workflow of these states, bound to a tab if one is named. A record begins in the first state."""
    declared.options(given, ("moves", *_TABLE), whose)
    on = []
    if options := {key: value for key, value in given.items() if key != "moves"}:
        if "tab" not in options:
            raise DefinitionError(f'{whose} names no tab; write it like tab = "Orders"')
        # A row that may start says the name of the first state, unless the words say otherwise.
        options.setdefault("words", {"ready": moves[0].origin})
        try:
            on.append(Table(options.pop("tab"), **options))
        except TypeError:
            raise DefinitionError(f'{whose} names no status column; write it like status = "Task_Status"') from None
    made: Workflow[Any, Any, Any] = Workflow(name, on=on)
    for state in dict.fromkeys([*(move.origin for move in moves), *(move.target for move in moves)]):
        mine = [move for move in moves if move.origin == state]
        then = list(dict.fromkeys(move.target for move in mine))
        made.state(state, then=then, who={move.target: move.who for move in mine if move.who})
    if problems := made.problems():
        raise DefinitionError(f"{whose} cannot run: {'; '.join(problems)}")
    return made


def _texts(cells: Sequence[Any]) -> list[str]:
    return [str(cell).strip().casefold() for cell in cells]


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
