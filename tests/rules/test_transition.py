"""Every status × every outcome and verb, against one table."""

from __future__ import annotations

import json
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from quire.errors import IllegalMove
from quire.model.change import Slot
from quire.model.record import UNDO, Record, Status, new_record, with_side_fields
from quire.model.row import replace
from quire.model.wait import On, Wait, dump_waits, load_waits
from quire.rules import moves as transition
from quire.rules.moves import Move
from quire.rules.outcome import Broke, Done, Migrated, Next, Outcome, Saved, Stopped, Suspect, Tried, Waits, Yielded

NOW = 1000.0
LATER = NOW + 60
P, R, W, N = Status.PENDING, Status.RUNNING, Status.WAITING, Status.NEEDS_APPROVAL
D, E, C = Status.DONE, Status.ERROR, Status.CANCELLED

SIGNAL = Wait(On.SIGNAL, "signal", "paid", until=LATER)
QUESTION = Wait(On.QUESTION, "question", "ok", about={"text": "ok?"})
DOUBT = transition.doubted("effect", "post")


def a_record(status: Status, **fields: Any) -> Record:
    """A record in this status, as it comes there."""
    born = new_record(record_id="r", workflow="flow", step="work", data='{"n":1}', now=NOW, due_at=NOW)
    usual: dict[Status, dict[str, Any]] = {
        P: {"attempt": 1, "last_error": "429"},
        R: {"worker": "w1", "run_id": "run_1", "run_until": LATER, "due_at": NOW},
        W: {"waits": dump_waits([SIGNAL]), "due_at": LATER},
        N: {"waits": dump_waits([QUESTION, DOUBT]), "question": "ok?", "due_at": None},
        D: {"step": "", "result": "1", "due_at": None},
        E: {"attempt": 3, "last_error": "a bug", "due_at": None},
        C: {"due_at": None},
    }
    kept_up = {"priority": 2, "log_seq": 7, "log_hash": "hash", "facts": 1}
    return replace(born, version=5, visit=3, status=status, **{**usual[status], **kept_up, **fields})


def settled(outcome: Outcome, keep: Slot | None = None) -> Callable[[Record], Move]:
    return lambda record: transition.settle(record, outcome, LATER, keep=keep)


class Row(NamedTuple):
    """What one outcome or verb does to a record, from each status from which it is asked."""

    name: str
    by: str
    do: Callable[[Record], Move]
    #: The status after; None: refused. A status that is not here is never asked.
    after: dict[Status, Status | None]


NOBODY_HOLDS = {P: None, R: None, W: None, N: None, D: None, E: None, C: None}
KEEP = Slot("flow", "next", 30.0)

TABLE = [
    Row("Next", "worker", settled(Next("next", "{}")), {R: P}),
    Row("Next, kept", "worker", settled(Next("next", "{}"), KEEP), {R: R}),
    Row("Next, to a resting state", "worker", settled(Next("next", "{}", rests=True)), {R: W}),
    Row("Next, to an ending state", "worker", settled(Next("next", "{}", ends=True)), {R: D}),
    Row("Done", "worker", settled(Done("2", "{}")), {R: D}),
    Row("Waits", "worker", settled(Waits((SIGNAL,), "{}")), {R: W}),
    Row("Waits, for a person", "worker", settled(Waits((SIGNAL, QUESTION), "{}")), {R: N}),
    Row("Saved", "worker", settled(Saved("{}")), {R: R}),
    Row("Migrated", "worker", settled(Migrated("{}", 2)), {R: R}),
    Row("Tried", "worker", settled(Tried("429", 9.0)), {R: P}),
    Row("Broke", "worker", settled(Broke("a bug")), {R: E}),
    Row("Broke, to be undone", "worker", settled(Broke("a bug", undo=True)), {R: P}),
    Row("Yielded", "worker", settled(Yielded("budget")), {R: P}),
    Row("Suspect", "worker", settled(Suspect("no memory is left")), {R: P}),
    Row("Stopped", "worker", settled(Stopped("a typo")), {R: C}),
    Row("Stopped, to be undone", "worker", settled(Stopped("a typo", undo=True)), {R: P}),
    Row("undone", "worker, at @undo", lambda r: transition.undone(r, LATER), {R: C}),
    Row("claim", "ledger", lambda r: transition.claim(r, LATER, "w2", "run_2", 30.0), {P: R, W: R, N: R}),
    Row("wake", "ledger", lambda r: transition.wake(r, LATER, "signal", "paid"), {W: P, N: P}),
    Row("turn", "ledger", lambda r: transition.turn(r, LATER), {W: P}),
    Row("lose", "ledger", lambda r: transition.lose(r, LATER, "its lease ran out"), {R: P}),
    Row("apart", "worker, of a suspect", lambda r: transition.apart(r, LATER, "w3", 30.0), {R: R}),
    Row("died", "worker, of a suspect", lambda r: transition.died(r, LATER, "exit code 1"), {R: P}),
    Row(
        "died, too often",
        "worker, of a suspect",
        lambda r: transition.died(replace(r, losses=4), LATER, "again"),
        {R: E},
    ),
    Row("orphan", "ledger", lambda r: transition.orphan(r, LATER), {R: P}),
    Row("answer", "person", lambda r: transition.answered(r, LATER, "question", {"by": "ann"}), {**NOBODY_HOLDS, N: P}),
    Row("vote", "person", lambda r: transition.voted(r, LATER, [QUESTION], {"by": "ann"}), {N: N}),
    Row("resolve", "person", lambda r: transition.resolved(r, LATER, "effect", {"by": "ann"}), {**NOBODY_HOLDS, N: P}),
    Row(
        "move",
        "person",
        lambda r: transition.move(r, LATER, "ann", "next", ["next"], rests=False, ends=False),
        {**NOBODY_HOLDS, P: P, W: P, N: P, E: P},
    ),
    Row(
        "move, to a resting state",
        "person",
        lambda r: transition.move(r, LATER, "ann", "next", ["next"], rests=True, ends=False),
        {**NOBODY_HOLDS, P: W, W: W, N: W, E: W},
    ),
    Row(
        "move, to an ending state",
        "person",
        lambda r: transition.move(r, LATER, "ann", "next", ["next"], rests=False, ends=True),
        {**NOBODY_HOLDS, P: D, W: D, N: D, E: D},
    ),
    Row("retry", "person", lambda r: transition.retry(r, LATER, "ann"), {**NOBODY_HOLDS, P: P, E: P, C: P}),
    Row(
        "retry, from a step",
        "person",
        lambda r: transition.retry(r, LATER, "ann", step="first"),
        {P: P, R: None, W: P, N: P, D: P, E: P, C: P},
    ),
    Row(
        "cancel",
        "person",
        lambda r: transition.cancel(r, LATER, "ann", "", undo=False),
        {**NOBODY_HOLDS, P: C, W: C, N: C, E: C},
    ),
    Row(
        "cancel, to be undone",
        "person",
        lambda r: transition.cancel(r, LATER, "ann", "", undo=True),
        {P: P, R: None, W: P, N: P, D: P, E: P, C: P},
    ),
    Row(
        "edit",
        "person",
        lambda r: transition.edit(r, LATER, "ann", '"new"'),
        {P: P, R: None, W: W, N: N, D: None, E: E, C: C},
    ),
    Row(
        "edit, of what a question shows",
        "person",
        lambda r: transition.edit(replace(r, waits=dump_waits([QUESTION])), LATER, "ann", '"new"'),
        {N: P},
    ),
    Row(
        "revive",
        "person",
        lambda r: transition.revive(r, LATER, "ann", 7),
        {P: P, R: None, W: P, N: P, D: None, E: P, C: P},
    ),
    Row(
        "revive, of what rests",
        "person",
        lambda r: transition.revive(replace(r, waits=dump_waits([Wait(On.REST, name="work")])), LATER, "ann", 7),
        {C: W},
    ),
    Row(
        "adopt",
        "person",
        lambda r: transition.adopt(r, LATER, "ann", "copied", 7),
        {P: N, R: N, W: N, N: N, D: None, E: None, C: None},
    ),
]

CASES = [
    pytest.param(row, status, after, id=f"{row.name}-{status}") for row in TABLE for status, after in row.after.items()
]
LEGAL = [case for case in CASES if case.values[2] is not None]
REFUSED = [case for case in CASES if case.values[2] is None]


def as_markdown() -> str:
    """The table as the docs show it: – for refused, nothing for what is never asked."""
    head = ["what", "by", *(f"from {status}" for status in Status)]
    lines = [head, ["---"] * len(head)]
    for row in TABLE:
        cells = ["" if status not in row.after else str(row.after[status] or "–") for status in Status]
        lines.append([row.name, row.by, *cells])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


@pytest.mark.parametrize(("row", "status", "after"), LEGAL)
def test_a_move_leads_where_the_table_says(row: Row, status: Status, after: Status) -> None:
    assert row.do(a_record(status)).image.status is after


@pytest.mark.parametrize(("row", "status", "after"), REFUSED)
def test_a_move_that_the_table_does_not_know_is_refused_with_its_reason(row: Row, status: Status, after: None) -> None:
    with pytest.raises(IllegalMove) as refusal:
        row.do(a_record(status))

    assert "'r'" in str(refusal.value)
    assert str(status) in str(refusal.value)


@pytest.mark.parametrize(("row", "status", "after"), LEGAL)
def test_every_move_adds_one_to_the_version_and_writes_one_line(row: Row, status: Status, after: Status) -> None:
    record = a_record(status)

    move = row.do(record)

    assert (move.image.version, move.image.updated_at) == (record.version + 1, LATER)
    [line] = move.lines
    assert line.kind
    assert isinstance(json.loads(line.body), dict)


@pytest.mark.parametrize(("row", "status", "after"), LEGAL)
def test_no_move_changes_what_never_changes_or_stands_beside_the_image(row: Row, status: Status, after: Status) -> None:
    record = a_record(status, parent_id="parent", generation=1, place=2, dedupe_key="key")

    image = row.do(record).image

    assert image == with_side_fields(image, record)
    fixed = ("record_id", "workflow", "parent_id", "generation", "place", "dedupe_key", "started_as", "created_at")
    assert all(getattr(image, name) == getattr(record, name) for name in fixed)


@pytest.mark.parametrize(("row", "status", "after"), LEGAL)
def test_a_record_has_a_worker_while_it_runs_and_only_then(row: Row, status: Status, after: Status) -> None:
    image = row.do(a_record(status)).image

    assert (image.worker is not None) is (image.run_until is not None) is (after is R)


@pytest.mark.parametrize(("row", "status", "after"), LEGAL)
def test_a_record_is_due_or_waits_for_something_named_or_has_ended(row: Row, status: Status, after: Status) -> None:
    image = row.do(a_record(status)).image

    if after is P:
        assert image.due_at is not None
    if after in (W, N):
        assert load_waits(image.waits)
    if image.ended:
        assert image.due_at is None


@pytest.mark.parametrize(("row", "status", "after"), LEGAL)
def test_a_visit_begins_exactly_when_another_step_is_entered(row: Row, status: Status, after: Status) -> None:
    record = a_record(status)

    image = row.do(record).image

    entered = image.step not in (record.step, "") or row.name == "retry, from a step"
    assert image.visit == record.visit + entered
    if entered:
        assert (image.attempt, image.losses, image.entry) == (0, 0, None)


def test_the_table_has_every_outcome_and_the_docstring_names_each() -> None:
    outcomes = {outcome.__name__ for outcome in typing.get_args(Outcome)}

    in_the_table = {row.name.partition(",")[0] for row in TABLE if row.by == "worker"}
    in_the_docstring = {
        line.split("|")[1].strip() for line in (transition.__doc__ or "").splitlines() if line.startswith("    | ")
    }

    assert in_the_table == outcomes
    assert in_the_docstring - {"outcome"} == outcomes


def test_the_docs_show_the_table() -> None:
    page = Path(__file__).parents[2] / "docs" / "transitions.md"

    assert as_markdown() in page.read_text(encoding="utf-8")


def settle(outcome: Outcome, **fields: Any) -> Record:
    return transition.settle(a_record(R, attempt=2, losses=1, **fields), outcome, LATER).image


def test_next_enters_the_step_due_now() -> None:
    image = settle(Next("next", '"new"'), last_error="429", entry="{}")

    assert (image.step, image.data, image.entry, image.due_at) == ("next", '"new"', None, LATER)
    assert (image.attempt, image.losses, image.last_error) == (0, 0, None)


def test_next_kept_runs_on_under_a_new_hard_end() -> None:
    image = transition.settle(a_record(R), Next("next", "{}"), LATER, keep=KEEP).image

    assert (image.worker, image.run_id, image.run_until) == ("w1", "run_1", LATER + 30)


def test_an_image_that_is_not_kept_is_the_same_but_pending() -> None:
    kept = transition.settle(a_record(R), Next("next", "{}"), LATER, keep=KEEP).image

    assert transition.unkept(kept, LATER) == transition.settle(a_record(R), Next("next", "{}"), LATER).image


def test_a_resting_state_waits_until_somebody_moves_it() -> None:
    image = settle(Next("rest", "{}", rests=True))

    assert (image.due_at, load_waits(image.waits)) == (None, (Wait(On.REST, name="rest"),))


def test_done_keeps_the_result_and_has_no_next_step() -> None:
    image = settle(Done('"it"', '"data"'), last_error="429")

    assert (image.step, image.result, image.data, image.last_error) == ("", '"it"', '"data"', None)
    assert image.attempt == 2


def test_waits_are_due_at_the_earliest_moment_and_keep_the_data_as_at_entry() -> None:
    image = settle(Waits((SIGNAL, Wait(On.TIMER, "t", until=LATER - 5)), '"new"'))

    assert (image.due_at, image.data, image.entry) == (LATER - 5, '"new"', '{"n":1}')
    assert (image.step, image.attempt, image.question) == ("work", 2, None)


def test_waits_that_do_not_change_the_data_remember_no_entry() -> None:
    assert settle(Waits((SIGNAL,), '{"n":1}')).entry is None


def test_the_data_as_at_entry_is_remembered_once() -> None:
    assert settle(Waits((SIGNAL,), '"newer"'), data='"new"', entry='"old"').entry == '"old"'


def test_a_question_is_shown_in_words() -> None:
    assert settle(Waits((SIGNAL, QUESTION), "{}")).question == "ok?"


def test_saved_forgets_failed_tries() -> None:
    image = settle(Saved('"new"'))

    assert (image.attempt, image.losses, image.data, image.entry) == (0, 0, '"new"', '{"n":1}')
    assert (image.worker, image.run_until) == ("w1", LATER)


def test_tried_is_due_after_its_delay() -> None:
    image = settle(Tried("429", 9.0))

    assert (image.attempt, image.last_error, image.due_at, image.losses) == (3, "429", LATER + 9, 1)


def test_broke_is_the_dead_letter() -> None:
    image = settle(Broke("a bug"))

    assert (image.attempt, image.last_error, image.step) == (3, "a bug", "work")


@pytest.mark.parametrize(
    ("outcome", "reason"), [(Broke("a bug", undo=True), "a bug"), (Stopped("a typo", undo=True), "a typo")]
)
def test_what_is_to_be_undone_goes_to_the_engines_step_and_remembers_how_to_end(outcome: Outcome, reason: str) -> None:
    image = settle(outcome)

    assert (image.step, image.due_at) == (UNDO, LATER)
    assert json.loads(image.ending or "") == {"status": "CANCELLED", "reason": reason, "step": "work"}


def test_what_is_undone_ends_as_it_was_going_to() -> None:
    image = transition.undone(replace(settle(Broke("a bug", undo=True)), worker="w1", run_until=1.0), LATER).image

    assert (image.status, image.ending, image.last_error, image.worker) == (C, None, "a bug", None)


def test_stopping_the_undoing_does_not_undo_again() -> None:
    image = settle(Stopped("enough", undo=True), step=UNDO)

    assert (image.status, image.step) == (C, UNDO)


def test_yielded_is_unharmed() -> None:
    image = settle(Yielded("budget"))

    assert (image.attempt, image.losses, image.due_at, image.visit) == (2, 1, LATER, 3)


def test_a_loss_beside_others_is_no_try_and_the_second_makes_a_suspect() -> None:
    record = a_record(R)
    images = []
    for _ in range(4):
        record = replace(transition.lose(record, LATER, "its lease ran out").image, status=R)
        images.append((record.attempt, record.losses, record.due_at, transition.suspected(record)))

    assert images == [(0, 1, LATER, False), *[(0, 2, LATER, True)] * 3]


def test_what_runs_out_for_all_makes_a_suspect_at_once() -> None:
    image = settle(Suspect("no memory is left"))

    assert (image.attempt, image.losses, image.due_at, image.worker) == (2, 2, LATER, None)


def test_each_death_of_its_own_process_is_a_try_and_the_third_is_an_error_that_says_so() -> None:
    image = a_record(R, losses=2)
    seen = []
    while image.status is not E:
        image = transition.died(replace(image, status=R), LATER, "it ended with exit code 1").image
        seen.append((image.status, image.attempt, image.losses))

    assert seen == [(P, 1, 3), (P, 2, 4), (E, 3, 5)]
    assert image.last_error == "step 'work' ended 3 processes in which it ran alone (it ended with exit code 1)"
    assert image.due_at is None


def test_a_loss_whose_parent_is_lost_too_is_nobodys_fault() -> None:
    image = transition.lose(a_record(R, attempt=1, losses=3), LATER, "its lease ran out").image

    assert (image.status, image.attempt, image.losses) == (P, 1, 3)


def test_a_suspect_that_runs_alone_has_another_worker_and_its_whole_time() -> None:
    image = transition.apart(a_record(R, losses=2), LATER, "w3", 30.0).image

    assert (image.worker, image.run_until, image.losses, image.attempt) == ("w3", LATER + 30.0, 2, 0)


def test_alone_in_a_worker_that_nobody_watches_its_death_is_counted_before() -> None:
    image = a_record(R, losses=2)
    for losses in (3, 4, 5):
        image = transition.apart(replace(image, status=R), LATER, "w", 30.0, counted=True).image
        assert (image.status, image.losses, image.attempt) == (R, losses, 0)
        image = transition.lose(image, LATER, "its process is dead").image
        assert (image.status, image.losses) == (P, losses)

    image = transition.apart(replace(image, status=R), LATER, "w", 30.0, counted=True).image

    assert (image.status, image.attempt) == (E, 3)
    assert image.last_error == "step 'work' ended 3 processes in which it ran alone (its worker was lost each time)"


def test_what_ends_its_processes_is_undone_where_failures_are() -> None:
    lost = a_record(R, losses=5)
    for go in (
        transition.apart(lost, LATER, "w", 30.0, counted=True, undo=True),
        transition.died(lost, LATER, "exit code 1", undo=True),
    ):
        assert (go.image.status, go.image.step, go.image.losses) == (P, UNDO, 0)
        assert "ended 3 processes" in (go.image.ending or "")


@pytest.mark.parametrize("outcome", [Tried("429", 9.0), Waits((SIGNAL,), "{}"), Yielded("the worker ends")])
def test_whoever_lets_go_and_lives_forgets_the_deaths_and_not_the_suspicion(outcome: Outcome) -> None:
    assert transition.settle(a_record(R, losses=5), outcome, LATER).image.losses == 2
    assert transition.settle(a_record(R, losses=1), outcome, LATER).image.losses == 1
    assert transition.orphan(a_record(R, losses=4), LATER).image.losses == 2


def test_a_wake_removes_the_wait_that_was_answered_and_remembers_the_others() -> None:
    record = a_record(W, waits=dump_waits([SIGNAL, QUESTION]))

    assert load_waits(transition.wake(record, LATER, "signal", "").image.waits) == (QUESTION,)
    assert load_waits(transition.wake(record, LATER, "", "").image.waits) == (SIGNAL, QUESTION)


def test_a_doubt_asks_about_every_open_effect() -> None:
    image = transition.doubt(a_record(R), [("k1", "post"), ("k2", "mail")])

    assert (image.status, image.question, image.worker, image.due_at) == (N, "Did 'post' happen?", None, None)
    assert [(wait.on, wait.key, wait.name) for wait in load_waits(image.waits)] == [
        (On.DOUBT, "k1", "post"),
        (On.DOUBT, "k2", "mail"),
    ]


def test_a_halted_record_keeps_its_waits_so_that_it_can_be_revived() -> None:
    image = transition.halted(a_record(W))

    assert (image.status, image.due_at, load_waits(image.waits)) == (C, None, (SIGNAL,))


@pytest.mark.parametrize("on", [On.REST, On.TURN])
def test_what_rests_rests_again_when_it_is_revived(on: On) -> None:
    image = transition.revive(a_record(C, waits=dump_waits([Wait(on)])), LATER, "ann", 7).image

    assert (image.status, image.due_at, image.epoch) == (W, None, 7)


def test_one_of_two_doubts_resolved_leaves_the_other_in_question() -> None:
    record = a_record(N, waits=dump_waits([DOUBT, transition.doubted("other", "mail")]))

    image = transition.resolved(record, LATER, "effect", {}).image

    assert (image.status, image.question) == (N, "Did 'mail' happen?")


def test_an_answer_may_edit_the_data() -> None:
    image = transition.answered(a_record(N), LATER, "question", {}, '"edited"').image

    assert (image.data, image.entry, image.question) == ('"edited"', '{"n":1}', None)


def test_what_is_edited_while_it_asks_is_asked_anew_and_the_step_still_knows_the_votes() -> None:
    record = a_record(N, waits=dump_waits([SIGNAL, QUESTION]), due_at=LATER)

    image = transition.edit(record, NOW, "ann", '"new"').image

    assert (image.status, image.due_at, image.question) == (P, NOW, None)
    assert load_waits(image.waits) == (SIGNAL, QUESTION)


def test_an_edit_leaves_doubts_as_they_are_and_takes_the_question_beside_them_back() -> None:
    doubtful = a_record(N, waits=dump_waits([DOUBT]), question="Did 'post' happen?")
    alone = transition.edit(doubtful, LATER, "ann", '"new"').image
    undoing = transition.edit(replace(doubtful, step=UNDO), LATER, "ann", '"new"').image
    beside = transition.edit(a_record(N, waits=dump_waits([QUESTION, SIGNAL, DOUBT])), NOW, "ann", '"new"').image

    for image in (alone, undoing):
        assert (image.status, image.waits, image.question) == (N, doubtful.waits, doubtful.question)
    assert (beside.status, beside.due_at, beside.question) == (N, LATER, "Did 'post' happen?")
    assert load_waits(beside.waits) == (DOUBT, SIGNAL)


def test_a_vote_is_written_down_and_moves_nothing() -> None:
    image = transition.voted(a_record(N), LATER, [QUESTION], {"by": "ann"}).image

    assert (image.status, load_waits(image.waits)) == (N, (QUESTION,))


def test_a_retry_forgets_what_failed() -> None:
    image = transition.retry(a_record(E, losses=3), LATER, "ann").image

    assert (image.attempt, image.losses, image.last_error, image.due_at, image.visit) == (0, 0, None, LATER, 3)


def test_a_retry_from_a_step_is_a_new_visit_without_a_result() -> None:
    image = transition.retry(a_record(D), LATER, "ann", step="first").image

    assert (image.step, image.visit, image.result) == ("first", 4, None)


def test_a_retry_of_an_interrupted_undoing_goes_on_undoing() -> None:
    record = a_record(C, step=UNDO, ending='{"status":"CANCELLED","reason":"x","step":"work"}')

    assert transition.retry(record, LATER, "ann").image.ending == record.ending


REFUSALS: dict[str, tuple[Callable[[], Move], str]] = {
    "cancel of what runs": (
        lambda: transition.cancel(a_record(R), NOW, "ann", "", undo=False),
        "cannot cancel 'r': it is RUNNING",
    ),
    "cancel of what has ended": (
        lambda: transition.cancel(a_record(D), NOW, "ann", "", undo=False),
        "cannot cancel 'r': it is DONE",
    ),
    "undo of what was undone": (
        lambda: transition.cancel(a_record(C, step=UNDO), NOW, "ann", "", undo=True),
        "cannot undo 'r': it was undone already",
    ),
    "retry of what waits": (
        lambda: transition.retry(a_record(W), NOW, "ann"),
        "cannot retry 'r': it is WAITING; only ERROR, CANCELLED and what backs off is retried",
    ),
    "retry of what pends for the first time": (
        lambda: transition.retry(a_record(P, attempt=0), NOW, "ann"),
        "cannot retry 'r': it is PENDING; only ERROR, CANCELLED and what backs off is retried",
    ),
    "retry of what was undone": (
        lambda: transition.retry(a_record(C, step=UNDO), NOW, "ann"),
        "cannot retry 'r': what it did was undone; rewind it to a step with --from STEP",
    ),
    "rewind of what runs": (
        lambda: transition.retry(a_record(R), NOW, "ann", step="first"),
        "cannot rewind 'r': it is RUNNING; cancel it first, or wait for its step to end",
    ),
    "rewind over a doubt": (
        lambda: transition.retry(a_record(N, open_intents=2), NOW, "ann", step="first"),
        "cannot rewind 'r': 2 effects are in doubt; resolve them first",
    ),
    "move of what runs": (
        lambda: transition.move(a_record(R), NOW, "ann", "next", ["next"], rests=False, ends=False),
        "cannot move 'r': it is RUNNING; wait for its step to end",
    ),
    "move of what has ended": (
        lambda: transition.move(a_record(D), NOW, "ann", "next", ["next"], rests=False, ends=False),
        "Invalid state transition: Cannot move from DONE to next. ('r' is DONE)",
    ),
    "move to a step that is not a successor": (
        lambda: transition.move(a_record(W), NOW, "ann", "nxt", ["next", "archive"], rests=False, ends=False),
        "Invalid state transition: Cannot move from work to nxt. ('r' may go from 'work' to 'archive', 'next')",
    ),
    "move from where nothing leads": (
        lambda: transition.move(a_record(W), NOW, "ann", "next", [], rests=False, ends=False),
        "Invalid state transition: Cannot move from work to next. ('r' may go from 'work' to nowhere)",
    ),
    "move over a doubt": (
        lambda: transition.move(a_record(N, open_intents=1), NOW, "ann", "next", ["next"], rests=False, ends=False),
        "cannot move 'r': 1 effects are in doubt; resolve them first",
    ),
    "answer to what asks nothing": (
        lambda: transition.answered(a_record(W), NOW, "k", {}),
        "cannot answer 'r': it asks nothing; it is WAITING",
    ),
    "resolution of what is not in doubt": (
        lambda: transition.resolved(a_record(P), NOW, "k", {}),
        "cannot resolve 'r': nothing of it is in doubt; it is PENDING",
    ),
    "edit of what runs": (lambda: transition.edit(a_record(R), NOW, "ann", "1"), "cannot edit 'r': it is RUNNING"),
    "revival of what is done": (
        lambda: transition.revive(a_record(D), NOW, "ann", 1),
        "cannot resume 'r': it is DONE",
    ),
}


@pytest.mark.parametrize(("do", "text"), REFUSALS.values(), ids=REFUSALS)
def test_a_refusal_names_the_record_and_the_reason(do: Callable[[], Move], text: str) -> None:
    with pytest.raises(IllegalMove) as refusal:
        do()

    assert str(refusal.value) == text
