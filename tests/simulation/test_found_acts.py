"""What the simulation found about acts, each as the smallest plan that shows it."""

from __future__ import annotations

import pytest

from tests.simulation.check import check
from tests.simulation.plan import Fault, Plan, Root
from tests.simulation.script import Do, How, Script, Word
from tests.simulation.seeds import history_of

BLIND = Do(Word.ACT, "a1", 6.0, How.BLIND)
UNDONE = Do(Word.ACT, "a1", 0.2, How.UNDONE)


@pytest.mark.parametrize("seed", range(8))
def test_nobody_is_asked_about_an_act_that_a_dead_worker_had_sent_and_that_is_still_on_its_way(seed: int) -> None:
    """Before, a person was asked at once, found nothing, said so, and the act was done twice."""
    script = Script(((BLIND,),))
    kill = Fault("w1", "dies", at=1.3, span=0.5, record="r1")
    plan = Plan(seed, roots=[Root(1.0, "ann", "r1", script)], faults=[kill])

    history = history_of(plan)

    assert check(plan, history) == []
    [acted] = [one for one in history.happenings if one.kind == "acts"]
    assert all(order.asked_at > acted.at for order in history.orders if order.verb == "resolve")


def test_what_a_step_did_that_ends_its_processes_is_undone_where_failures_are() -> None:
    """Before, the record was an ERROR, although its workflow takes back what failed records did."""
    script = Script(((UNDONE, Do(Word.POISON, "p1", times=-1)),), workflow="undoing")
    plan = Plan(1, workers=2, versions=(1, 1), roots=[Root(1.0, "ann", "r1", script)])

    history = history_of(plan)

    assert check(plan, history) == []
    assert [one.kind for one in history.happenings if one.kind in ("acts", "undoes")] == ["acts", "undoes"]


def test_a_plain_step_lives_by_its_script() -> None:
    script = Script(((BLIND, Do(Word.SLEEP, "s1", 3.0), Do(Word.EACH, "e1", times=3)),), workflow="threaded")
    plan = Plan(1, roots=[Root(1.0, "ann", "r1", script)])

    history = history_of(plan)

    assert check(plan, history) == []
    assert [one.name for one in history.happenings if one.kind == "acts"] == ["a1", "e1x0", "e1x1", "e1x2"]
