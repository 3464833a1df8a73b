"""What a person changed by hand is in the log, before and after, and never too long."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.client.client import Client
from quire.explain import words
from quire.model.codec import dump, parse
from quire.model.row import replace
from quire.rules.difference import MOST_CHARACTERS, MOST_OF_A_NAME, Known, before, carried, changes, same
from tests.surfaces.server.conftest import make_publish

TEXT = st.characters(codec="utf-8", exclude_characters="\0")
LONG = "a" * MOST_CHARACTERS

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(TEXT),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(TEXT), inner, max_size=3),
    max_leaves=6,
)
#: Few names, so that two of them often have fields in common; and none that a line would cut.
names = st.sampled_from("abc") | st.text(TEXT, max_size=MOST_OF_A_NAME - 1)
objects = st.dictionaries(names, values | st.just(LONG), max_size=5)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ({"n": 1, "m": 2}, {"n": 1, "m": 3}, {"changes": {"m": [2, 3]}}),
        ({"n": 1}, {"k": 0}, {"changes": {"n": [1, None], "k": [None, 0]}, "came": ["k"], "went": ["n"]}),
        ({"n": None}, {}, {"changes": {"n": [None, None]}, "went": ["n"]}),
        ({"n": 1}, {"n": True}, {"changes": {"n": [1, True]}}),
        ({"n": 1}, {"n": 1}, {}),
        ({"n": {"a": 1, "b": 2}}, {"n": {"b": 2, "a": 1}}, {}),
        ([1], [1], {}),
        ([1], [2], {"changed": []}),
        (
            {"n": 1, "text": "a" * MOST_CHARACTERS},
            {"n": 2, "text": "b"},
            {"changes": {"n": [1, 2]}, "changed": ["text"]},
        ),
    ],
)
def test_the_fields_that_differ(before: Any, after: Any, told: dict[str, Any]) -> None:
    assert changes(dump(before), dump(after)) == told


@given(objects, objects)
def test_what_a_line_tells_undoes_what_was_done(was: dict[str, Any], now: dict[str, Any]) -> None:
    line = parse(dump(changes(dump(was), dump(now))))

    known = before(Known(now), line)
    assert known is not None
    assert known.unknown == set(line.get("changed", ()))
    assert same(dict(known.fields), {name: value for name, value in was.items() if name not in known.unknown})
    # Only what is long is left out.
    assert not line.get("changed") or len(dump([was, now])) > MOST_CHARACTERS


def test_a_name_that_was_cut_is_not_guessed() -> None:
    name = "n" * MOST_OF_A_NAME
    line = changes(dump({}), dump({name: LONG}))
    assert line == {"changed": [name]}
    assert before(Known({name: LONG}), line) is None


@given(objects, objects, objects)
def test_a_line_is_not_undone_on_data_that_it_does_not_lead_to(
    was: dict[str, Any], now: dict[str, Any], other: dict[str, Any]
) -> None:
    line = changes(dump(was), dump(now))
    told = line.get("changes", {})
    fits = all((name in other) == (name in now) and same(other.get(name), now.get(name)) for name in told)
    assert (before(Known(other), line) is not None) == fits


@pytest.mark.parametrize(
    ("saved", "was", "now", "then"),
    [
        ({"sum": 1, "rate": 0}, {"sum": 3, "rate": 0}, {"sum": 3, "rate": 7}, {"sum": 1, "rate": 7}),
        ({"sum": 1, "of": "ann"}, {"sum": 3, "of": "ann"}, {"sum": 3, "to": "bo"}, {"sum": 1, "to": "bo"}),
        ({}, {"rate": 0}, {"rate": False}, {"rate": False}),
        ([1], [1], {"rate": 7}, {"rate": 7}),
    ],
)
def test_what_was_changed_is_changed_in_an_older_state(saved: Any, was: Any, now: dict[str, Any], then: Any) -> None:
    assert same(carried(saved, was, now), then)


def test_it_is_never_long() -> None:
    many = {f"{number:03}" + "x" * 5000: number for number in range(500)}
    assert len(dump(changes("{}", dump(many)))) < 2500


async def test_the_log_tells_what_an_edit_and_an_answer_changed() -> None:
    async with Client("memory:", workflows=[make_publish()], who="ann") as client:
        await client.start("publish", {"keyword": "tea"}, id="a1")
        await client.work()
        await client.edit("a1", {"keyword": "tea", "draft": "Mine."})
        await client.work()
        await client.answer("a1", "approve", edits={"draft": "Yours."})
        log = {event.kind: event for event in await client.events("a1")}

    assert parse(log["edited"].body) == {"by": "ann", "changes": {"draft": ["About tea.", "Mine."]}}
    assert parse(log["answered"].body)["changes"] == {"draft": ["Mine.", "Yours."]}
    mixed = replace(log["edited"], body=dump({"by": "ann"} | changes('{"n":1}', dump({"n": 2, "text": LONG}))))
    assert words.line(mixed) == "edited by ann: n 1 → 2, text"
    assert words.line(log["edited"]) == 'edited by ann: draft "About tea." → "Mine."'
    assert words.line(log["answered"]) == 'answered \'approve\' by ann (python), edited draft "Mine." → "Yours."'
