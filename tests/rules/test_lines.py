"""Every kind of line has its meaning in one place."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from quire.explain import timeline
from quire.folder import runlog
from quire.model.change import Slot
from quire.model.codec import parse
from quire.model.record import UNDO, Record, Status, new_record
from quire.model.row import replace
from quire.model.wait import On, Wait
from quire.rules import lines, moves
from quire.rules.lines import LineKind, Means
from quire.rules.outcome import (
    Broke,
    Done,
    Migrated,
    Next,
    Outcome,
    Saved,
    Stopped,
    Suspect,
    Tried,
    Waits,
    Yielded,
)
from quire.workflows import approval

SRC = Path(lines.__file__).parent.parent
#: Functions that write a line, and at which place they take its kind.
WRITERS = {"Line": 0, "_moved": 2, "_to_undo": 2, "_condemned": 3, "tell": 0}
#: The packages that write lines.
PACKAGES = ("rules", "run", "client", "worker", "agents")
#: Written by `effects.completed` and `effects._before`, by the stage that a receipt comes to.
BY_STAGE = {f"effect.{stage}" for stage in ("done", "void", "undone", "parked", "released", "dropped")}
#: Written by `waits.question`, which `approval.passed` tells what is due.
BY_APPROVAL = {"reminded", "escalated"}


def written() -> Iterator[tuple[str, str]]:
    """The kinds that the code writes, as literals, each with its file."""
    for package in PACKAGES:
        for path in sorted((SRC / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call):
                    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                    place = WRITERS.get(name)
                    if place is not None and len(node.args) > place:
                        for kind in _literals(node.args[place]):
                            yield kind, path.name
                if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "kind":
                    yield from ((kind, path.name) for kind in _literals(node.value) if path.name == "moves.py")


def _literals(node: ast.expr) -> Iterator[str]:
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.IfExp(body=body, orelse=orelse):
            yield from _literals(body)
            yield from _literals(orelse)


def test_every_kind_that_is_written_is_listed_and_every_one_listed_is_written() -> None:
    kinds = dict(written())

    unlisted = {kind: where for kind, where in kinds.items() if kind not in set(LineKind)}
    assert not unlisted, f"give these kinds of lines their meaning in quire/rules/lines.py: {unlisted}"
    assert set(map(str, LineKind)) == kinds.keys() | BY_STAGE | BY_APPROVAL


def test_approval_tells_what_is_listed() -> None:
    source = ast.parse(Path(approval.__file__).read_text(encoding="utf-8"))
    texts = {node.value for node in ast.walk(source) if isinstance(node, ast.Constant)}
    assert texts >= BY_APPROVAL


def test_the_word_that_is_stored_is_the_value() -> None:
    assert [str(kind) for kind in (LineKind.CLAIMED, LineKind.EFFECT_DONE)] == ["claimed", "effect.done"]
    assert LineKind("broke").means == Means.RELEASES | Means.ENDS | Means.FAILS
    assert "a kind of a newer Quire" not in lines.RELEASES | lines.WAKES | lines.ASIDE


def test_no_line_means_two_things_that_exclude_each_other() -> None:
    assert not lines.HELD & lines.FREE
    assert not lines.RELEASES & lines.HELD
    assert lines.ENDS <= lines.RELEASES
    assert lines.RETRIES <= lines.WAKES


def test_every_line_that_releases_a_record_has_its_words() -> None:
    """A new line that releases the record needs a status in the run's log, and what the record waits for since."""
    assert timeline.WAITS.keys() >= lines.RELEASES
    assert runlog.STATUS.keys() >= lines.RELEASES


NOW = 100.0


def _held() -> Record:
    return replace(
        new_record(record_id="r", workflow="w", step="s", data="{}", now=1.0),
        status=Status.RUNNING,
        worker="w1",
        run_id="run_1",
        run_until=200.0,
    )


def _moves() -> dict[str, moves.Move]:
    """What a record that a worker holds may come to."""
    held = _held()
    asks = Wait(On.QUESTION, key="k", name="q", about={"text": "?"})
    outcomes: dict[str, Outcome] = {
        "next": Next("t", "{}"),
        "kept": Next("t", "{}"),
        "rests": Next("t", "{}", rests=True),
        "ends": Next("t", "{}", ends=True),
        "done": Done("1", "{}"),
        "waits": Waits((Wait(On.SIGNAL, key="k", name="n"),), "{}"),
        "asks": Waits((asks,), "{}"),
        "saved": Saved("{}"),
        "migrated": Migrated("{}", 2),
        "tried": Tried("no", 5.0),
        "broke": Broke("no"),
        "broke, undoes": Broke("no", undo=True),
        "yielded": Yielded("why"),
        "suspect": Suspect("why"),
        "stopped": Stopped("why"),
        "stopped, undoes": Stopped("why", undo=True),
    }
    keep = {"kept": Slot("w", "t", 60.0)}
    made = {name: moves.settle(held, outcome, NOW, keep=keep.get(name)) for name, outcome in outcomes.items()}
    return made | {
        "lost": moves.lose(held, NOW, "why"),
        "died": moves.died(held, NOW, "why"),
        "orphan": moves.orphan(held, NOW),
        "apart": moves.apart(held, NOW, "w2", 60.0),
        "undone": moves.undone(replace(held, step=UNDO, ending='{"status": "CANCELLED", "reason": "x"}'), NOW),
    }


@pytest.mark.parametrize(("name", "move"), _moves().items())
def test_a_line_means_what_its_move_does(name: str, move: moves.Move) -> None:
    image, [line] = move.image, move.lines
    undoes = "undo" in parse(line.body)

    if line.kind != LineKind.MOVED:  # a worker may keep the record after it
        assert (line.kind in lines.RELEASES) == (image.status is not Status.RUNNING)
        assert (line.kind in lines.ENDS) == (image.ended or undoes)
        due = image.status is Status.PENDING and image.due_at == NOW
        assert (line.kind in lines.WAKES) == (due and not undoes)
    assert (line.kind in lines.FAILS) == (name in {"tried", "broke", "broke, undoes", "suspect", "lost", "died"})
