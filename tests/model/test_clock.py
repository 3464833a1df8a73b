from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.clock import LONGEST_SECONDS, SYSTEM, iso, new_id, new_record_id, seconds
from quire.errors import InputError
from quire.testing import ToldClock
from quire.testing.clock import START


@pytest.mark.parametrize(
    ("span", "length"),
    [
        ("90s", 90),
        ("5m", 300),
        ("5min", 300),
        ("1h30m", 5400),
        ("1h 30m", 5400),
        (" 2d", 172800),
        ("1w", 604800),
        ("250ms", 0.25),
        ("1.5h", 5400),
        ("0s", 0),
        (7, 7),
        (0.5, 0.5),
        (0, 0),
        (timedelta(minutes=2), 120),
    ],
)
def test_a_span_is_so_many_seconds(span: Any, length: float) -> None:
    assert seconds(span) == length


@pytest.mark.parametrize("text", ["5", "5 minutes", "h", "-5s", "1h30", "five", "5m!", "1d2"])
def test_a_text_that_is_no_span_is_refused_with_examples(text: str) -> None:
    with pytest.raises(InputError) as refusal:
        seconds(text)

    assert str(refusal.value) == f"{text!r} is not a span of time; write it like '90s', '5m', '1h30m', '3d'"


@pytest.mark.parametrize("text", ["", "  "])
def test_an_empty_text_is_no_span(text: str) -> None:
    with pytest.raises(InputError, match="is not a span of time"):
        seconds(text)


@pytest.mark.parametrize("span", [-1, float("nan"), float("inf"), timedelta(seconds=-1), 1e11, 10**400])
def test_a_number_that_is_no_span_is_refused(span: Any) -> None:
    with pytest.raises(InputError, match="is not a span of time: it must be zero or more seconds"):
        seconds(span)


@pytest.mark.parametrize("span", ["3000000d", "99999999999d", "9" * 400 + "s", "100000d100000d", LONGEST_SECONDS])
def test_a_span_that_ends_beyond_the_calendar_is_refused_with_the_bound(span: Any) -> None:
    with pytest.raises(InputError, match="and shorter than 300 years"):
        seconds(span)


def test_the_longest_span_ends_on_a_day_that_can_be_written() -> None:
    assert iso(START + seconds("109000d")) == "2324-06-08T00:00:00.000Z"


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (1e18, "9999-12-31T23:59:59.999Z"),
        (260_000_000_000.0, "9999-12-31T23:59:59.999Z"),
        (float("inf"), "9999-12-31T23:59:59.999Z"),
        (-1e18, "0001-01-01T00:00:00.000Z"),
        (float("nan"), "0001-01-01T00:00:00.000Z"),
    ],
)
def test_a_moment_beyond_the_calendar_is_shown_as_its_end(moment: float, text: str) -> None:
    assert iso(moment) == text


@given(st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_spans_add_up(hours: int, minutes: int, rest: int) -> None:
    assert seconds(f"{hours}h{minutes}m{rest}s") == hours * 3600 + minutes * 60 + rest


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (None, ""),
        (0.0, "1970-01-01T00:00:00.000Z"),
        (START, "2026-01-01T00:00:00.000Z"),
        (START + 0.123456, "2026-01-01T00:00:00.123Z"),
        (START + 86399.999, "2026-01-01T23:59:59.999Z"),
    ],
)
def test_people_see_a_moment_as_iso_8601_in_utc(moment: float | None, text: str) -> None:
    assert iso(moment) == text


@given(st.lists(st.floats(0, 4e9), min_size=2, max_size=2))
def test_moments_as_text_sort_as_they_come(moments: list[float]) -> None:
    first, second = sorted(moments)

    assert iso(first) <= iso(second)


def test_ids_are_fresh_and_have_no_look_alikes() -> None:
    ids = {new_id("run_") for _ in range(1000)}

    assert len(ids) == 1000
    assert all(len(made) == 20 and made.startswith("run_") and not set(made[4:]) & set("ilou") for made in ids)


@given(st.sets(st.integers(0, 2**44), min_size=2, max_size=5))
def test_ids_of_records_sort_by_the_moment_of_their_making(milliseconds: set[int]) -> None:
    moments = [(number + 0.5) / 1000 for number in sorted(milliseconds)]

    ids = [new_record_id("flow_", moment) for moment in moments]

    assert ids == sorted(ids)
    assert len({*ids, new_record_id("flow_", moments[0])}) == len(moments) + 1


def test_ids_of_records_that_are_made_within_a_millisecond_sort_by_their_order() -> None:
    ids = [new_record_id("flow_", 1_800_000_000.0005) for _ in range(2000)]

    assert ids == sorted(ids)
    assert len({*ids}) == 2000
    assert {len(made) for made in ids} == {25}


def test_the_system_clock_goes_on() -> None:
    before = SYSTEM.now(), SYSTEM.boottime()

    assert SYSTEM.now() >= before[0]
    assert SYSTEM.boottime() >= before[1]


def test_a_told_clock_stands_still_until_it_is_told() -> None:
    clock = ToldClock()

    assert (clock.now(), clock.boottime(), iso(clock.now())) == (START, 0.0, "2026-01-01T00:00:00.000Z")
    assert clock.advance("1h30m") == START + 5400
    assert (clock.now(), clock.boottime()) == (START + 5400, 5400.0)


async def asleep(clock: ToldClock, *spans: float) -> tuple[list[float], list[asyncio.Task[None]]]:
    """Sleepers of these spans, and the list into which they tell that they woke."""
    woken: list[float] = []

    async def sleeper(span: float) -> None:
        await clock.sleep(span)
        woken.append(span)

    tasks = [asyncio.create_task(sleeper(span)) for span in spans]
    await clock.sleep(0)
    return woken, tasks


async def test_sleepers_wake_in_the_order_of_their_moments() -> None:
    clock = ToldClock()
    woken, tasks = await asleep(clock, 3, 1, 2, 9)

    clock.advance(3)
    await asyncio.gather(*tasks[:3])

    assert woken == [1, 2, 3]
    assert clock.wakes_at == START + 9
    clock.advance(6)
    await tasks[3]
    assert clock.wakes_at is None


async def test_a_sleeper_wakes_at_its_moment_and_not_before() -> None:
    clock = ToldClock()
    woken, tasks = await asleep(clock, 10)

    clock.advance(9.5)
    await clock.sleep(0)
    assert woken == []

    clock.advance(0.5)
    await tasks[0]
    assert woken == [10]


async def test_a_sleeper_that_is_cancelled_is_forgotten() -> None:
    clock = ToldClock()
    _, tasks = await asleep(clock, 10, 20)

    tasks[0].cancel()
    await asyncio.gather(tasks[0], return_exceptions=True)

    assert clock.wakes_at == START + 20
    clock.advance(20)
    await tasks[1]


async def test_a_clock_that_is_wrong_tells_another_time_and_sleeps_as_long() -> None:
    clock = ToldClock()
    wrong = clock.skewed(-3600)
    sleeping = asyncio.create_task(wrong.sleep(5))
    await clock.sleep(0)

    clock.advance(5)
    await sleeping

    assert (wrong.now(), wrong.boottime()) == (START + 5 - 3600, 5.0)


async def test_another_thread_may_tell_the_time() -> None:
    clock = ToldClock()
    _, tasks = await asleep(clock, 5)

    teller = threading.Thread(target=clock.advance, args=(5,))
    teller.start()
    await asyncio.wait_for(tasks[0], 30)
    teller.join()

    assert clock.now() == START + 5
