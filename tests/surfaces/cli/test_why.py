"""Why a record does not move: one sentence for every status and everything that can be waited for."""

from __future__ import annotations

import os
from typing import Any

import pytest

from quire.explain.report import report_of
from quire.explain.why import Around, why_of
from quire.explain.words import command, span, when
from quire.ledger import process
from quire.ledger.workers import alive
from quire.model.change import Standing
from quire.model.codec import dump
from quire.model.event import Event
from quire.model.record import UNDO, Record, Status, new_record
from quire.model.row import replace
from quire.model.side import Control, Fanin, Worker
from quire.model.wait import On, Wait, dump_waits

NOW = 1_800_000_000.0

DEFINITION = {
    "name": "w",
    "cap": None,
    "steps": [
        {"name": "post", "then": ["archive"], "cap": 2, "was": ["publish"]},
        {"name": "TODO", "then": ["DOING", "DONE"], "cap": None, "was": []},
    ],
}


def worker(
    worker_id: str = "w_1",
    *,
    lease_left: float = 20.0,
    closed: str | None = None,
    step: str = "post",
    version: int | None = None,
) -> Worker:
    told = [] if version is None else [version]
    knows = dump([["w", step, *told], ["w", UNDO, *told]])
    return Worker(worker_id, "night", "host ns", "boot 1", 17, NOW - 99, NOW + lease_left, 30.0, closed, knows)


def record(**fields: Any) -> Record:
    made = new_record(record_id="r", workflow="w", step="post", data="{}", now=NOW - 100, due_at=NOW - 10)
    return replace(made, updated_at=NOW - 60, **fields)


def standing(*controls: Control, sealed: str = "") -> Standing:
    return Standing(NOW, 1, controls, (), sealed)


def told(row: Record, *, workers: tuple[Worker, ...] = (worker(),), **around: Any) -> tuple[str, str]:
    seen = Around(
        NOW,
        around.pop("standing", standing()),
        workers,
        around.pop("definition", DEFINITION),
        **around,
    )
    found = why_of(row, seen)
    assert found.sentence.endswith(".")
    assert "\n" not in found.sentence
    assert found.sentence.startswith("'r'")
    return found.kind, found.sentence


HALT = Control("*", True, 2, False, "ann@x.eu", NOW - 30, "wrong prices")
PAUSE = Control("w", False, 0, True, "", NOW - 30, "")


def ended(kind: str, **body: Any) -> Event:
    return Event(1, "r", 9, 9, NOW - 60, kind, dump(body), None, "c", "h")


def waiting(*waits: Wait, status: Status = Status.WAITING, **fields: Any) -> Record:
    until = [wait.until for wait in waits if wait.until is not None]
    return record(status=status, waits=dump_waits(waits), due_at=min(until, default=None), **fields)


QUESTION = Wait(
    On.QUESTION,
    key="k",
    name="abcd",
    until=NOW + 60,
    about={
        "text": "Publish?",
        "by": ["editors"],
        "choices": ["approve", "reject"],
        "quorum": 1,
        "votes": [],
        "expires_at": NOW + 7200,
    },
)


@pytest.mark.parametrize(
    ("row", "around", "kind", "words"),
    [
        (record(status=Status.DONE, step=""), {}, "done", ["is done since", "nothing is left to do"]),
        (
            record(status=Status.ERROR, attempt=5, last_error="boom"),
            {},
            "error",
            ["ERROR at step 'post' after 5 tries", "boom", "quire retry r"],
        ),
        (
            record(status=Status.CANCELLED),
            {"ended": ended("cancelled", reason="wrong client", by="ann")},
            "cancelled",
            ["(wrong client)", "quire retry r"],
        ),
        (
            record(status=Status.CANCELLED),
            {"ended": ended("cancelled", reason="halted"), "by_halt": True, "standing": standing(HALT)},
            "cancelled",
            ["by a halt by ann@x.eu", "quire resume --cancelled"],
        ),
        (record(status=Status.CANCELLED), {"by_halt": True}, "cancelled", ["by a halt"]),
        (
            record(status=Status.CANCELLED, step=UNDO, last_error="too late"),
            {"ended": ended("undone", reason="too late")},
            "cancelled",
            ["what it did was undone", "too late", "--from STEP"],
        ),
        (
            record(status=Status.RUNNING, worker="w_1", run_until=NOW + 600, attempt=1),
            {},
            "runs",
            ["step 'post' runs (try 2) on worker w_1 (night on host)", "(in 10 min)", "quire cancel"],
        ),
        (
            record(status=Status.RUNNING, worker="w_1", run_until=NOW + 600, cancel=dump({"by": "ann"})),
            {},
            "runs",
            ["is asked by ann to stop"],
        ),
        (record(status=Status.RUNNING, worker="w_1", run_until=NOW - 5), {}, "lost", ["past its end", "taken over"]),
        (
            record(status=Status.RUNNING, worker="w_1", run_until=NOW + 600),
            {"workers": (worker(lease_left=-10), worker("w_2"))},
            "lost",
            ["which is lost", "a live worker takes it over"],
        ),
        (
            record(status=Status.RUNNING, worker="w_1", run_until=NOW + 600),
            {"workers": ()},
            "lost",
            ["no worker is alive; start one (quire worker)"],
        ),
        (record(), {}, "due", ["is due at step 'post'", "waits for a free worker"]),
        (record(), {"workers": ()}, "no worker", ["no worker is alive", "quire worker"]),
        (record(), {"running": (2, 2)}, "full", ["2 of at most 2 run at this step"]),
        (
            record(),
            {"running": (1, 3), "definition": {**DEFINITION, "cap": 3}},
            "full",
            ["3 of at most 3 run in this workflow"],
        ),
        (record(), {"workers": (worker(step="other"),)}, "stranded", ["is due: none of the 1 live workers knows"]),
        (
            record(due_at=NOW - 400),
            {"workers": (worker(step="other"),)},
            "stranded",
            ["is stranded", "knows step 'post' of 'w'"],
        ),
        (
            record(code_version=3),
            {"workers": (worker(version=2),)},
            "stranded",
            ["with data of version 3 of 'w'", "all live workers have an older one"],
        ),
        (
            record(code_version=3),
            {"workers": (worker(version=2), worker(version=3))},
            "due",
            ["waits for a free worker"],
        ),
        (
            record(due_at=NOW + 30, attempt=2, last_error="429"),
            {},
            "backs off",
            ["backs off after try 2", "429", "(in 30 s)", "quire retry r"],
        ),
        (record(due_at=NOW + 30), {}, "scheduled", ["starts step 'post' at", "(in 30 s)"]),
        (record(step=UNDO), {}, "due", ["its effects are to be undone"]),
        (record(), {"standing": standing(HALT)}, "halted", ["the ledger is halted by ann@x.eu", "(wrong prices)"]),
        (record(), {"standing": standing(PAUSE)}, "paused", ["workflow 'w' is paused", "quire resume w"]),
        (record(), {"standing": standing(sealed="postgresql://h/d")}, "sealed", ["sealed", "postgresql://h/d"]),
        (
            waiting(Wait(On.TIMER, key="k", name="sleep", until=NOW + 3600)),
            {},
            "sleeps",
            ["sleeps until", "(in 1 h)", "nobody needs to do anything"],
        ),
        (
            waiting(Wait(On.TIMER, key="k", name="put_online to settle", until=NOW + 30)),
            {},
            "sleeps",
            ["waits for put_online to settle until"],
        ),
        (
            waiting(Wait(On.SIGNAL, key="k", name="paid", until=NOW + 60)),
            {},
            "signal",
            ["the signal 'paid', until", "quire signal r paid"],
        ),
        (waiting(Wait(On.SIGNAL, key="k", name="paid")), {}, "signal", ["without end"]),
        (
            waiting(Wait(On.CHILDREN, key="k", generation=1)),
            {"fanins": (Fanin("r", 1, "k", 20, 3, 2, 0, None, 3, 20, "r/x~1/", False),)},
            "children",
            ["3 of 20 children (2 failed)", "quire list --parent=r"],
        ),
        (waiting(Wait(On.CHILDREN, key="k", generation=1)), {}, "children", ["waits for its children"]),
        (
            waiting(Wait(On.TURN), parent_id="p"),
            {},
            "turn",
            ["waits for its turn", "'p'"],
        ),
        (
            waiting(Wait(On.REST, name="TODO"), step="TODO"),
            {},
            "rests",
            ["rests until somebody moves it to 'DOING', 'DONE'", "quire move r DOING|DONE"],
        ),
        (
            waiting(Wait(On.RATE, key="k", name="mail", until=NOW + 9)),
            {},
            "rate",
            ["the rate 'mail' until", "(in 9 s)"],
        ),
        (
            waiting(QUESTION, status=Status.NEEDS_APPROVAL),
            {},
            "asks",
            ["asks editors: 'Publish?' until", "(in 2 h)", "quire approve r"],
        ),
        (
            waiting(
                Wait(On.DOUBT, key="k", name="pay", about={"text": "Did 'pay' happen?"}), status=Status.NEEDS_APPROVAL
            ),
            {},
            "doubt",
            ["Did 'pay' happen?", "quire resolve r --happened | --not"],
        ),
        (
            waiting(Wait(On.SIGNAL, key="k", name="paid"), Wait(On.TIMER, key="t", name="sleep", until=NOW + 5)),
            {},
            "signal",
            ["the signal 'paid'", ", or sleeps until"],
        ),
        (waiting(QUESTION, status=Status.NEEDS_APPROVAL), {"standing": standing(PAUSE)}, "asks", ["paused as well"]),
        (record(status=Status.WAITING, due_at=None), {}, "waits", ["waits for nothing that is named", "quire retry r"]),
        (waiting(Wait(On.TIMER, key="k", name="sleep", until=NOW - 5)), {}, "due", ["is due at step 'post'"]),
    ],
)
def test_one_sentence(row: Record, around: dict[str, Any], kind: str, words: list[str]) -> None:
    found, sentence = told(row, **around)

    assert found == kind
    for word in words:
        assert word in sentence


def test_every_kind_of_wait_has_its_words() -> None:
    sentences = []
    for on in On:
        about = QUESTION.about if on is On.QUESTION else None
        status = Status.NEEDS_APPROVAL if on in (On.QUESTION, On.DOUBT) else Status.WAITING
        sentences.append(told(waiting(Wait(on, key="k", name="x", about=about), status=status))[1])

    assert len(set(sentences)) == len(On)
    assert not [sentence for sentence in sentences if "nothing that is named" in sentence]


def test_a_lease_counts_with_the_grace_that_others_give_it() -> None:
    assert alive(worker(lease_left=-2), NOW)
    assert not alive(worker(lease_left=-4), NOW)
    assert not alive(worker(closed="farewell"), NOW)


def test_a_worker_whose_process_is_known_to_be_dead_is_not_alive() -> None:
    boot, _, _ = process.identity().rpartition(" ")
    here = replace(worker(), host=process.host(), boot_id=process.identity(), pid=os.getpid())

    assert alive(here, NOW)
    assert not alive(replace(here, boot_id=f"{boot} 1"), NOW)  # another process that had this number before


def test_spans_and_moments_in_words() -> None:
    assert [span(s) for s in (0.004, 0.5, 4, 59.96, 61, 240, 301, 3600, 7500, 200_000)] == [
        "4 ms",
        "0.5 s",
        "4 s",
        "60 s",
        "1 min 1 s",
        "4 min",
        "5 min",
        "1 h",
        "2 h 5 min",
        "2 d",
    ]
    assert when(NOW - 3, NOW) == "2027-01-15 07:59:57Z (3 s ago)"
    assert when(None, NOW) == "never"


def test_commands_are_quoted() -> None:
    assert command("retry", "a b", options="--from x") == "quire retry 'a b' --from x"
    assert command("retry", "-x", options="--from x") == "quire retry --from x -- -x"
    assert command("resume", "") == "quire resume"


# -- the report ----------------------------------------------------------------------------------------------------


def log(*lines: tuple[float, str, dict[str, Any]]) -> list[Event]:
    return [
        Event(n, "r", n, n, NOW + at, kind, dump(body), None, "c", "h") for n, (at, kind, body) in enumerate(lines, 1)
    ]


def test_a_report_of_waits_retries_and_steps_kept_in_place() -> None:
    events = log(
        (0, "started", {"step": "a"}),
        (1, "claimed", {"step": "a"}),
        (3, "failed", {"step": "a", "again_in": 2.0}),
        (5.5, "claimed", {"step": "a"}),
        (6, "moved", {"from": "a", "to": "b"}),
        (7, "asked", {"step": "b"}),
        (20, "answered", {}),
        (20.5, "claimed", {"step": "b"}),
        (21, "moved", {"from": "b", "to": "c"}),
        (22, "claimed", {"step": "c"}),
        (24, "done", {"from": "c"}),
    )

    made = report_of(events, [], NOW + 100)

    assert (made.wall, made.running) == (23.0, 2 + 1.5 + 0.5 + 2)
    assert made.hops == (1.0, 0.5, 0.5, 1.0)
    assert [(s.step, s.running, s.tries) for s in made.steps] == [("a", 2.5, 2), ("b", 1.5, 1), ("c", 2.0, 1)]


def test_a_report_of_children_that_overlap() -> None:
    events = log(
        (0, "started", {"step": "m"}),
        (1, "claimed", {}),
        (2, "waited", {}),
        (9, "woken", {}),
        (10, "claimed", {}),
        (11, "done", {}),
    )
    children = [
        log((2, "started", {"step": "x"}), (3, "claimed", {}), (5, "done", {})),
        log((2, "started", {"step": "x"}), (4, "claimed", {}), (6, "done", {})),
        log((2, "started", {"step": "x"}), (5, "claimed", {}), (9, "done", {})),
    ]

    made = report_of(events, children, NOW + 100)

    assert (made.children, made.overlap, made.children_running) == (3, 2, 8.0)
    assert made.wall == 10.0


def test_a_report_of_one_that_still_runs() -> None:
    made = report_of(log((0, "started", {"step": "a"}), (1, "claimed", {})), [], NOW + 11)

    assert (made.wall, made.running, made.ended_at) == (10.0, 10.0, None)
    assert report_of(log((0, "started", {"step": "a"})), [], NOW).wall is None
