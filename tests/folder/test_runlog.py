"""Runs out of a record's log: each begins with its claim and ends with the line that let go of the record."""

from __future__ import annotations

import pytest

from quire.folder.runlog import Run, fields, split
from quire.model.codec import dump
from quire.model.event import Event
from quire.model.record import Record, Status, new_record
from quire.model.row import replace


def lines(*told: str | tuple[str, dict[str, object]] | tuple[str, dict[str, object], str]) -> list[Event]:
    """A log of these kinds; a claim opens the next run."""
    made, run = [], 0
    for n, entry in enumerate(told, 1):
        kind, body, *change = (entry, {}) if isinstance(entry, str) else entry
        if kind == "claimed":
            run += 1
            body = {"worker": "w", "run": f"run_{run}", "step": "a"}
        change_id = str(change[0]) if change else f"c{n}"
        made.append(Event(n, "r", n, n, float(n), str(kind), dump(body), f"run_{run}", change_id, f"h{n}"))
    return made


def record(status: Status = Status.PENDING, version: int = 0, run_id: str = "run_1") -> Record:
    made = new_record(record_id="r", workflow="w", step="a", data="{}", now=0.0)
    return replace(made, status=status, version=version, run_id=run_id)


def outcomes(events: list[Event], row: Record | None = None) -> list[tuple[str, str, int, int]]:
    runs, _ = split(events, row)
    return [(run.run_id, run.outcome, run.lines[0].n, run.lines[-1].n) for run in runs]


@pytest.mark.parametrize(
    "end",
    ["done", "waited", "asked", "failed", "broke", "yielded", "lost", "orphaned", "doubted", "undone", "cancelled"],
)
def test_a_line_that_releases_the_record_ends_its_run(end: str) -> None:
    assert outcomes(lines("started", "claimed", end, "signalled", "effect.done")) == [("run_1", end, 2, 3)]


def test_a_worker_that_stays_for_the_next_step_is_one_run() -> None:
    log = lines("started", "claimed", "moved", "moved", "effect.intended", "effect.done", "done")

    assert outcomes(log) == [("run_1", "done", 2, 7)]


def test_a_move_that_let_go_is_told_by_the_next_claim() -> None:
    log = lines("started", "claimed", "moved", "signalled", "claimed", "done")

    assert outcomes(log) == [("run_1", "moved", 2, 3), ("run_2", "done", 5, 6)]


def test_a_last_move_is_told_by_the_record_if_it_is_as_old_as_the_log() -> None:
    log = lines("started", "claimed", "moved")

    assert outcomes(log, record(Status.PENDING, version=3)) == [("run_1", "moved", 2, 3)]
    assert outcomes(log, record(Status.RUNNING, version=3)) == []
    assert outcomes(log, record(Status.PENDING, version=5)) == [], "more lines come, and they tell"
    assert outcomes(log, None) == []


@pytest.mark.parametrize(
    "after",
    [("cancelled", {"by": "ann"}), ("cancelled", {"reason": "halted"}, "halt-r-3"), ("moved", {"by": "ann"}), "edited"],
)
def test_what_others_do_to_a_free_record_is_no_part_of_its_run(after: str | tuple[str, dict[str, object]]) -> None:
    assert outcomes(lines("started", "claimed", "moved", after)) == [("run_1", "moved", 2, 3)]


def test_a_settle_under_a_halt_ends_with_the_cancel_in_the_same_change() -> None:
    log = lines("started", "claimed", ("moved", {}, "c"), ("cancelled", {"reason": "halted"}, "c"))

    assert outcomes(log) == [("run_1", "cancelled", 2, 4)]


def test_a_takeover_under_a_halt_is_a_crash_too() -> None:
    log = lines("started", "claimed", ("cancelled", {"reason": "halted; its lease ran out"}, "lost-run_1"))
    [run], _ = split(log, None)
    shown = fields(run, record(), [])

    assert (shown["status"], shown["outcome"]) == ("CRASHED", "lost")
    assert shown["errors"][0]["error"] == "halted; its lease ran out"


def test_a_log_without_a_claim_has_no_run() -> None:
    assert split(lines("started", "signalled", "cancelled"), record()) == ([], [])


def test_the_open_run_is_handed_back_so_that_it_can_be_continued() -> None:
    log = lines("started", "claimed", "moved", "effect.intended")
    _, rest = split(log[:3], record(Status.RUNNING, version=3))
    runs, left = split([*rest, *log[3:], *lines("x", "x", "x", "x", "failed")[4:]], None)

    assert [event.n for event in runs[0].lines] == [2, 3, 4, 5]
    assert left == []
    assert Run(runs[0].lines).started_at == 2.0
