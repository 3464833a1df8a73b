from __future__ import annotations

from quire.model.wait import On, Wait, dump_waits, earliest, load_waits

WAITS = (
    Wait(On.TIMER, "k1", until=12.5),
    Wait(On.SIGNAL, "k2", "paid"),
    Wait(On.CHILDREN, "k3", generation=0),
    Wait(On.QUESTION, "k4", "ok", until=3.0, about={"text": "ok?", "choices": ["yes", "no"], "votes": []}),
    Wait(On.REST, name="archive"),
    Wait(On.TURN),
)


def test_waits_come_back_as_they_were() -> None:
    assert load_waits(dump_waits(WAITS)) == WAITS


def test_no_waits_are_no_text() -> None:
    assert dump_waits([]) is None
    assert load_waits(None) == load_waits("") == ()


def test_the_earliest_moment_makes_a_record_due() -> None:
    assert earliest(WAITS) == 3.0
    assert earliest(WAITS[1:3]) is None
