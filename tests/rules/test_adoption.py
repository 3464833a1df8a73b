"""A record of an adopted book: it asks, and stands where it stood when it may go on."""

from __future__ import annotations

import pytest

from quire.model.record import Record, Status
from quire.model.wait import On, Wait, dump_waits, load_waits
from quire.rules import adoption
from quire.rules import moves as transition
from tests.rules.test_transition import DOUBT, LATER, NOW, QUESTION, SIGNAL, C, N, P, R, W, a_record


def adopted(record: Record, *keys: tuple[str, str]) -> Record:
    return transition.adopt(record, NOW, "ann", "this book is a copy", 7, keys).image


def answered(record: Record, choice: str = adoption.GO_ON) -> Record:
    asked = adoption.asked(record)
    assert asked is not None
    return transition.answered(record, LATER, asked.key, {"choice": choice, "by": "ann"}).image


@pytest.mark.parametrize("status", [P, W])
def test_it_goes_on_as_it_stood(status: Status) -> None:
    before = a_record(status)
    asks = adopted(before)

    after = answered(asks)

    assert (asks.status, asks.due_at, asks.epoch) == (N, None, 7)
    assert (after.status, after.due_at, after.waits) == (before.status, before.due_at, before.waits)
    assert adoption.asked(after) is None


def test_one_that_ran_is_due_and_its_worker_is_gone() -> None:
    asks = adopted(a_record(R))

    assert (asks.worker, asks.run_until) == (None, None)
    assert (answered(asks).status, answered(asks).due_at) == (P, NOW)


def test_what_it_asked_before_it_asks_again() -> None:
    question = Wait(On.QUESTION, "question", "ok", about={"text": "ok?"})
    before = a_record(N, waits=dump_waits([question]), question="ok?")

    after = answered(adopted(before))

    assert (after.status, after.question, load_waits(after.waits)) == (N, "ok?", (question,))


def test_what_was_edited_meanwhile_is_not_asked_as_it_was() -> None:
    asks = adopted(a_record(N, waits=dump_waits([QUESTION, SIGNAL])))

    edited = transition.edit(asks, LATER, "ann", '"new"').image
    after = answered(edited)

    assert (edited.status, edited.question) == (N, asks.question)
    assert (after.status, after.due_at, after.question) == (P, LATER, None)
    assert load_waits(after.waits) == (SIGNAL,)


def test_a_copy_of_a_copy_asks_once_and_knows_where_the_first_stood() -> None:
    before = a_record(W)

    twice = adopted(adopted(before))

    assert len(load_waits(twice.waits)) == 1
    assert (answered(twice).status, answered(twice).waits) == (W, before.waits)


def test_nothing_but_the_answer_wakes_it_and_doubts_are_asked_of_as_well() -> None:
    asks = adopted(a_record(R), ("effect", "post"))

    woken = transition.wake(asks, LATER, "effect", "its receipt").image
    resolved = transition.resolved(asks, LATER, "effect", {}).image
    going = answered(asks)

    assert woken.status is resolved.status is N
    assert adoption.asked(woken) is not None and adoption.asked(resolved) is not None
    assert (going.status, [wait.on for wait in load_waits(going.waits)]) == (N, [On.DOUBT])
    assert transition.resolved(going, LATER, "effect", {}).image.status is P


def test_a_doubt_of_before_is_not_asked_twice() -> None:
    asks = adopted(a_record(N, waits=dump_waits([DOUBT, SIGNAL]), open_intents=1), ("effect", "post"))

    assert [wait.on for wait in load_waits(asks.waits)] == [On.QUESTION, On.DOUBT]
    assert [wait.on for wait in load_waits(answered(asks).waits)] == [On.DOUBT, On.SIGNAL]


def test_it_may_be_cancelled_instead() -> None:
    after = answered(adopted(a_record(W)), adoption.CANCEL)

    assert (after.status, after.waits) == (C, None)
