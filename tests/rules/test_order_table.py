"""The table of orders, and its page."""

from __future__ import annotations

import pytest

from quire.model.record import Status
from quire.rules.order_table import Family, Verb, comes_to, states
from tests.rules.order_page import PAGE, folded, page


def test_the_page_shows_the_table() -> None:
    """``python -m tests.rules.order_page`` writes it anew."""
    assert PAGE.read_text(encoding="utf-8") == page()


@pytest.mark.parametrize("verb", Verb)
def test_no_cell_depends_on_the_family(verb: Verb) -> None:
    """The page leaves that column out."""
    for state in states():
        others = [other for other in states() if other == state._replace(family=other.family)]
        assert {comes_to(verb, other) for other in others} == {comes_to(verb, state)}


@pytest.mark.parametrize("verb", Verb)
def test_the_folded_rows_are_all_cells(verb: Verb) -> None:
    rows = [
        {(record, doubt, halted) for record in box[0] for doubt in box[1] for halted in box[2]}
        for box, _ in folded(lambda state: comes_to(verb, state))
    ]

    cells = {((state.status, state.lease), state.doubt, state.halted) for state in states()}
    assert cells <= set().union(*rows)


def test_every_status_and_every_family_is_a_state() -> None:
    assert {state.status for state in states()} == set(Status)
    assert {state.family for state in states()} == set(Family)
    assert len(set(states())) == len(list(states())) == 72
