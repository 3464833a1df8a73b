"""The short way of a move on which nothing else bears decides what the whole way decides, whatever stands beside it."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from quire.ledger.memory.tables import Tables
from quire.model.change import Change, Rate
from quire.model.event import Line
from quire.model.record import Record, Status, new_record
from quire.model.side import EVERYWHERE, Control, Fanin, Signal
from quire.rules.draft import Draft
from quire.testing.conformance import FLOW, OUTCOMES, STEP, new_answer, new_settle, slot

NOW = 1000.0
#: What may stand beside a record that runs, or be otherwise than its holder thinks.
ROWS: dict[str, dict[str, Any]] = {
    "plain": {},
    "prioritised meanwhile": {"priority": 3},
    "told of meanwhile": {"log_seq": 9, "log_hash": "other"},
    "to be cancelled": {"cancel": '{"by": "ann@x.eu", "reason": "no", "undo": false}'},
    "to be undone": {"cancel": '{"by": "ann@x.eu", "reason": "no", "undo": true}'},
    "with receipts": {"facts": 2},
    "with an open intent": {"facts": 1, "open_intents": 1},
    "with an open intent of an earlier visit": {"open_intents": 1},
    "another's": {"worker": "w2"},
    "gone on": {"version": 8},
    "given back": {"status": Status.PENDING, "worker": None, "due_at": NOW},
}
IMAGES: dict[str, dict[str, Any]] = {
    "plain": {},
    "of a parent": {"parent_id": "parent", "generation": 1, "place": 0},
    "with fan-ins": {"fanouts": 1},
    "waiting already": {"waits": '[{"on": "signal", "key": "k", "name": "paid"}]'},
}
CHANGES: dict[str, dict[str, Any]] = {
    "plain": {},
    "frees a slot": {"frees": True},
    "of two lines": {"lines": (Line("noted", '{"a":1}'), Line("done"))},
    "without a line": {"lines": ()},
    "by a person": {"worker": None},
    "to stay": {"keep": slot("next")},
    "to stay within a cap": {"keep": slot("next", cap=1)},
    "to stay in a full workflow": {"keep": slot("next", workflow_cap=0)},
    "to stay at a rate": {"keep": slot("next", rate=Rate("mail", 1, 1.0))},
    "with tokens": {"rates": (Rate("mail", 1, 1.0),)},
}
ORDERS = {
    "none": None,
    "halted": Control(FLOW, True, 2, False, "ann@x.eu", NOW, ""),
    "halted before": Control(EVERYWHERE, False, 2, False, "ann@x.eu", NOW, ""),
    "paused": Control(FLOW, False, 0, True, "ann@x.eu", NOW, ""),
}


def _running(**fields: Any) -> Record:
    record = new_record(record_id="r", workflow=FLOW, step=STEP, data="{}", now=0.0, due_at=0.0)
    held: dict[str, Any] = {
        "status": Status.RUNNING,
        "worker": "w1",
        "run_id": "run_c_0",
        "run_until": 9e9,
        "version": 5,
        "epoch": 1,
    }
    return record._replace(**held, log_seq=5, log_hash="hash")._replace(**fields)


def _view(row: Record) -> Tables:
    """The record, a signal that it may be waiting for, and children that it may leave behind."""
    view = Tables()
    view.put_record(row)
    draft = Draft(view, 0.0)
    draft.signals["s"] = Signal("s", row.record_id, "paid", "1", 0.0, 1, None)
    draft.fanins[row.record_id, 1] = Fanin(row.record_id, 1, "key", 2, 2, 0, 0, None, 2, 2, "c", False)
    view.apply(draft)
    return view


def _decided(view: Tables, change: Change) -> tuple[object, ...]:
    draft = Draft(view, NOW)
    verdict = draft.change(change)
    again = draft.change(change)  # over what was decided so far: it has landed, or is refused as before
    assert type(again) is type(verdict)
    running = draft.running(FLOW, STEP), draft.running(FLOW, None)
    rows = draft.records, draft.fanins, draft.signals, draft.receipts, draft.buckets
    return verdict, draft.events, *rows, draft.woke, *running


@pytest.mark.parametrize("sealed", ["", "sqlite:///elsewhere.db"])
@pytest.mark.parametrize("ordered", ORDERS)
def test_the_short_way_and_the_whole_way_decide_the_same(
    monkeypatch: pytest.MonkeyPatch, ordered: str, sealed: str
) -> None:
    short = Draft._simply_moved
    taken = []

    def counted(self: Draft, change: Change, current: Record) -> Record | None:
        row = short(self, change, current)
        taken.append(row is not None)
        return row

    for of_row, of_image, of_change, outcome in product(ROWS, IMAGES, CHANGES, OUTCOMES):
        what = f"{of_row} row, {of_image} image, {of_change} change, {outcome}"
        record = _running(**IMAGES[of_image])
        change = new_settle(record, OUTCOMES[outcome], NOW, change_id="c", **CHANGES[of_change])
        view = _view(record._replace(**ROWS[of_row]))
        view.sealed = sealed
        if (control := ORDERS[ordered]) is not None:
            view.all_controls[control.scope] = control
        monkeypatch.setattr(Draft, "_simply_moved", counted)
        shortly = _decided(view, change)
        monkeypatch.setattr(Draft, "_simply_moved", lambda self, change, current: None)
        assert shortly == _decided(view, change), what
    assert any(taken) is (not sealed and ordered in ("none", "paused"))


def test_a_move_with_receipts_takes_the_whole_way() -> None:
    record = _running()
    view = Tables()
    view.put_record(record)
    draft = Draft(view, NOW)
    answer = new_answer(record, "look")
    draft.change(new_settle(record, OUTCOMES["next"], NOW, change_id="c", receipts=(answer,)))
    assert list(draft.receipts) == [answer.key]


def test_what_runs_is_counted_also_after_moves_the_short_way() -> None:
    view = Tables()
    rows = [_running()._replace(record_id=f"r{number}") for number in range(4)]
    for row in rows:
        view.put_record(row)
    draft = Draft(view, NOW)
    assert draft.running(FLOW, STEP) == 4
    draft.change(new_settle(rows[0], OUTCOMES["done"], NOW))
    assert draft.running(FLOW, STEP) == 3
    draft.change(new_settle(rows[1], OUTCOMES["next"], NOW, keep=slot("next")))
    assert (draft.running(FLOW, STEP), draft.running(FLOW, "next"), draft.running(FLOW, None)) == (2, 1, 3)
    draft.change(new_settle(rows[2], OUTCOMES["saved"], NOW))
    assert draft.running(FLOW, STEP) == 2
