"""Which requests a pause of the machine touched."""

from __future__ import annotations

import pytest

from bench.pauses import untouched

Spans = list[tuple[float, float]]


@pytest.mark.parametrize(
    ("pauses", "left"),
    [
        ([], [1.0, 2.0]),
        ([(0.0, 0.5)], [1.0, 2.0]),  # its wake ends where the first begins
        ([(0.0, 0.6)], [2.0]),  # its wake reaches the first
        ([(1.9, 2.0)], [2.0]),  # it touches the end of the first
        ([(2.0, 3.0)], [1.0, 2.0]),  # between the two, its wake as well
        ([(2.0, 3.1)], [1.0]),
        ([(0.9, 1.0), (5.0, 5.1)], []),
        ([(7.0, 9.0)], [1.0, 2.0]),
        ([(2.5, 2.6), (0.5, 0.9), (2.0, 2.1)], [2.0]),  # in any order, one reaching into another
    ],
)
def test_what_a_pause_or_its_wake_touched_is_left_out(pauses: Spans, left: list[float]) -> None:
    assert untouched([(1.0, 2.0), (4.0, 6.0)], pauses) == left
