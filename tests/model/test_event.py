from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.model.event import Event, chained, first_break
from quire.model.row import replace


def a_log(count: int = 5) -> list[Event]:
    events: list[Event] = []
    previous = ""
    for n in range(1, count + 1):
        at, body = 1000.0 + n / 3, f'{{"n":{n}}}'
        previous = chained(previous, "r", n, n, at, "saved", body)
        events.append(Event(n * 10, "r", n, n, at, "saved", body, "run_1", f"c{n}", previous))
    return events


def test_a_whole_log_has_no_break() -> None:
    assert first_break(a_log()) is None
    assert first_break([]) is None


@pytest.mark.parametrize(
    "change",
    [{"body": "{}"}, {"kind": "done"}, {"at": 999.0}, {"version": 9}, {"record_id": "s"}, {"hash": "0"}, {"n": 9}],
    ids=lambda change: next(iter(change)),
)
def test_a_changed_line_is_found(change: dict[str, Any]) -> None:
    log = a_log()
    log[2] = replace(log[2], **change)

    assert first_break(log) == log[2]


def test_a_changed_line_with_its_hash_made_anew_is_found_by_the_next() -> None:
    log = a_log()
    forged = replace(log[2], body="{}")
    log[2] = replace(
        forged, hash=chained(log[1].hash, "r", forged.n, forged.version, forged.at, forged.kind, forged.body)
    )

    assert first_break(log) == log[3]


@pytest.mark.parametrize("place", [0, 2])
def test_a_dropped_line_is_found(place: int) -> None:
    log = a_log()
    del log[place]

    assert first_break(log) == log[place]


def test_a_dropped_last_line_is_found_by_the_end_of_the_chain_that_the_record_keeps() -> None:
    log = a_log()
    log_seq, log_hash = len(log), log[-1].hash

    del log[-1]

    assert first_break(log) is None
    assert (len(log), log[-1].hash) != (log_seq, log_hash)


def test_an_inserted_line_is_found() -> None:
    log = a_log()
    extra = replace(log[2], at=5.0, kind="noted", body="{}", hash=chained(log[1].hash, "r", 3, 3, 5.0, "noted", "{}"))
    log.insert(2, extra)

    assert first_break(log) == log[3]


def test_lines_in_another_order_are_found() -> None:
    log = a_log()
    log[1], log[2] = log[2], log[1]

    assert first_break(log) == log[1]


@given(st.integers(0, 4), st.sampled_from(["kind", "body", "record_id"]), st.text(max_size=5))
def test_any_other_text_in_any_line_is_found(place: int, field: str, text: str) -> None:
    log = a_log()
    original = getattr(log[place], field)
    if "\ud800" <= max(text, default="") <= "\udfff" or text == original:
        return

    change: dict[str, Any] = {field: text}
    log[place] = replace(log[place], **change)

    assert first_break(log) == log[place]


def test_text_cannot_move_between_the_parts_of_a_line() -> None:
    assert chained("", "r", 1, 1, 1.0, "a", "b") != chained("", "r", 1, 1, 1.0, "ab", "")
    assert chained("", "r", 1, 11, 1.0, "a", "b") != chained("", "r", 11, 1, 1.0, "a", "b")
    assert chained("", "r", 1, 1, 1.0, "a", "b") != chained("", "r", 2, 1, 1.0, "a", "b")
