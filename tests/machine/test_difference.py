"""What a person changed by hand is in the log, before and after, and never too long."""

from __future__ import annotations

from typing import Any

import pytest

from quire.machine.difference import MOST_CHARACTERS, changes
from quire.model.codec import dump, parse
from quire.surfaces import telling
from quire.surfaces.client import Client
from tests.surfaces.server.conftest import make_publish


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ({"n": 1, "m": 2}, {"n": 1, "m": 3}, {"changes": {"m": [2, 3]}}),
        ({"n": 1}, {"k": 0}, {"changes": {"n": [1, None], "k": [None, 0]}}),
        ({"n": None}, {}, {"changes": {"n": [None, None]}}),
        ({"n": 1}, {"n": 1}, {}),
        ([1], [2], {}),
        ({"n": 1, "text": "a" * MOST_CHARACTERS}, {"n": 2, "text": "b"}, {"changed": ["n", "text"]}),
    ],
)
def test_the_fields_that_differ(before: Any, after: Any, told: dict[str, Any]) -> None:
    assert changes(dump(before), dump(after)) == told


def test_it_is_never_long() -> None:
    many = {f"{number:03}" + "x" * 5000: number for number in range(500)}
    assert len(dump(changes("{}", dump(many)))) < 2500


async def test_the_log_tells_what_an_edit_and_an_answer_changed() -> None:
    async with Client("memory:", workflows=[make_publish()], who="ann") as client:
        await client.start("publish", {"keyword": "tea"}, id="a1")
        await client.work()
        await client.edit("a1", {"keyword": "tea", "draft": "Mine."})
        await client.answer("a1", "approve", edits={"draft": "Yours."})
        log = {event.kind: event for event in await client.events("a1")}

    assert parse(log["edited"].body) == {"by": "ann", "changes": {"draft": ["About tea.", "Mine."]}}
    assert parse(log["answered"].body)["changes"] == {"draft": ["Mine.", "Yours."]}
    assert telling.line(log["edited"]) == 'edited by ann: draft "About tea." → "Mine."'
    assert telling.line(log["answered"]) == 'answered \'approve\' by ann (python), edited draft "Mine." → "Yours."'
