"""The bars are those of the issue, read strictly, and one that was not reached says so."""

from __future__ import annotations

from typing import Any

import pytest

from bench.bars import Bar, judge
from tests.bench import made

#: Figure and bar as they were asked for.
ASKED = [
    ("W2 durable steps/s, SQLite", ">= 30 x DBOS on SQLite"),
    ("W2 durable steps/s, SQLite", ">= 10 x the best peer"),
    ("W2 durable steps/s, PostgreSQL", ">= 30 x DBOS on PostgreSQL"),
    ("W2 durable steps/s, PostgreSQL", ">= 10 x the best peer"),
    ("W1 drain, PostgreSQL", ">= 30 x DBOS"),
    ("W1 drain, PostgreSQL", ">= 2 x the best peer"),
    ("W3 p50, PostgreSQL", "<= 1/3 of DBOS's direct start"),
    ("W3 p50, PostgreSQL", "below every peer"),
    ("W4, PostgreSQL", "<= 1/20 of DBOS"),
    ("W5, SQLite", "<= 2 % over the ideal"),
    ("W5, PostgreSQL", "<= 2 % over the ideal"),
    ("W6 with 200,000 finished, SQLite", ">= 0.9 of the empty ledger"),
    ("W6 with 1,000,000 finished, SQLite", ">= 0.9 of the empty ledger"),
    ("W6 with 200,000 finished, PostgreSQL", ">= 0.9 of the empty ledger"),
    ("W6 with 1,000,000 finished, PostgreSQL", ">= 0.9 of the empty ledger"),
    ("W7 statements, idle", "<= 30 a minute"),
    ("W7 woken by NOTIFY, worst", "< 50 ms"),
    ("W7 `import quire`", "<= 150 ms"),
    ("W7 core install", "<= 25 MB"),
    ("W8 restart to all done, SQLite", "within one lease plus one poll"),
    ("W8 duplicates, SQLite", "0"),
    ("W8 lost, SQLite", "0"),
    ("W8 restart to all done, PostgreSQL", "within one lease plus one poll"),
    ("W8 duplicates, PostgreSQL", "0"),
    ("W8 lost, PostgreSQL", "0"),
    ("W9 four processes, PostgreSQL", "not slower than one"),
]


def test_a_run_without_figures_says_of_every_bar_that_was_asked_for_that_it_was_not_measured() -> None:
    bars = judge(made.results())
    assert [(bar.figure, bar.bar) for bar in bars if not bar.beside] == ASKED
    assert all(bar.found is None and bar.reached is None for bar in bars)


def found(figure: str, bar: str, *runs: dict[str, Any]) -> Bar:
    return next(one for one in judge(made.results(*runs)) if (one.figure, one.bar) == (figure, bar))


def w4(peer: str, seconds: float) -> dict[str, Any]:
    return made.run("W4", peer, seconds=seconds)


def w8(peer: str, seconds: float, duplicates: int = 0) -> dict[str, Any]:
    settings = {"lease_seconds": 30.0, "poll_seconds": 5.0}
    return made.run("W8", peer, seconds=seconds, duplicates=duplicates, lost=0, settings=settings)


def w9(one: float, four: float, how: str = "") -> dict[str, Any]:
    rates = ((1, one), (4, four))
    points = [{"processes": count, "n": 100, "seconds": 100 / rate, "how": how} for count, rate in rates]
    return made.run("W9", "quire_postgres", points=points)


def w6(rate: float) -> dict[str, Any]:
    drains = {name: [{"n": 100, "drain_seconds": 100 / speed}] for name, speed in (("drains", rate), ("beside", 100))}
    return made.run("W6", "quire_sqlite", points=[{"finished": 1_000_000, **drains}])


@pytest.mark.parametrize(
    ("figure", "bar", "runs", "reached"),
    [
        (*ASKED[0], [made.w2("quire_sqlite", 3000), made.w2("dbos_sqlite", 100)], True),
        (*ASKED[0], [made.w2("quire_sqlite", 2990), made.w2("dbos_sqlite", 100)], False),
        # The best peer is the best on any store.
        (*ASKED[1], [made.w2("quire_sqlite", 1000), made.w2("huey_sqlite", 100)], True),
        (
            *ASKED[1],
            [made.w2("quire_sqlite", 1000), made.w2("huey_sqlite", 100), made.w2("pgqueuer_postgres", 101)],
            False,
        ),
        (*ASKED[5], [made.w1("quire_postgres", 200), made.w1("pgqueuer_postgres", 100)], True),
        (*ASKED[5], [made.w1("quire_postgres", 199), made.w1("pgqueuer_postgres", 100)], False),
        # The raw limit is no peer.
        (*ASKED[5], [made.w1("quire_postgres", 200), made.w1("dbos_sqlite", 1), made.w1("raw_sqlite", 900)], True),
        (*ASKED[6], [made.w3("quire_postgres", 1.0), made.w3("dbos_postgres", 3.0)], True),
        (*ASKED[6], [made.w3("quire_postgres", 1.1), made.w3("dbos_postgres", 3.0)], False),
        (*ASKED[7], [made.w3("quire_postgres", 1.0), made.w3("huey_sqlite", 1.0)], False),
        (*ASKED[7], [made.w3("quire_postgres", 0.9), made.w3("huey_sqlite", 1.0)], True),
        (*ASKED[8], [w4("quire_postgres", 0.5), w4("dbos_postgres", 10.0)], True),
        (*ASKED[8], [w4("quire_postgres", 0.6), w4("dbos_postgres", 10.0)], False),
        (*ASKED[9], [made.run("W5", "quire_sqlite", seconds=4.89, ideal=4.8)], True),
        (*ASKED[9], [made.run("W5", "quire_sqlite", seconds=4.90, ideal=4.8)], False),
        (*ASKED[12], [w6(90.0)], True),
        (*ASKED[12], [w6(89.0)], False),
        (*ASKED[15], [made.run("W7", "quire_postgres", statements_per_minute=30)], True),
        (*ASKED[15], [made.run("W7", "quire_postgres", statements_per_minute=31)], False),
        (*ASKED[16], [made.run("W7", "quire_postgres", wake_ms=[1.0, 49.9])], True),
        (*ASKED[16], [made.run("W7", "quire_postgres", wake_ms=[1.0, 1.0, 50.0])], False),
        (*ASKED[17], [made.run("W7", "quire_sqlite", import_ms=151)], False),
        (*ASKED[18], [made.run("W7", "quire_sqlite", installed_mb=25)], True),
        # One duplicate in one repetition of three is one too many.
        (*ASKED[20], [w8("quire_sqlite", 1), w8("quire_sqlite", 1, 1), w8("quire_sqlite", 1)], False),
        (*ASKED[20], [w8("quire_sqlite", 1), w8("quire_sqlite", 1)], True),
        (*ASKED[25], [w9(100, 100)], True),
        (*ASKED[25], [w9(100, 99)], False),
    ],
)
def test_a_bar_is_reached_or_not(figure: str, bar: str, runs: list[dict[str, Any]], reached: bool) -> None:
    assert found(figure, bar, *runs).reached is reached


@pytest.mark.parametrize(("seconds", "reached"), [(35.0, True), (35.1, False)])
def test_recovery_is_bound_by_the_lease_and_the_poll_that_the_adapter_tells(seconds: float, reached: bool) -> None:
    bar = found(
        ASKED[19][0], "within one lease plus one poll (35 s)", w8("quire_sqlite", 2.0), w8("quire_sqlite", seconds)
    )
    assert bar.reached is reached


def test_beside_a_strict_bar_stands_the_same_store_alone() -> None:
    runs = [made.w3("quire_postgres", 1.0), made.w3("huey_sqlite", 0.5), made.w3("pgqueuer_postgres", 2.0)]
    assert found("W3 p50, PostgreSQL", "below every peer", *runs).against == "Huey, SQLite"
    beside = found("W3 p50, PostgreSQL", "the same, of the peers on PostgreSQL", *runs)
    assert (beside.beside, beside.found, beside.against) == (True, 0.5, "PgQueuer, PostgreSQL")


@pytest.mark.parametrize(("how", "told"), [("default", "at a worker's defaults"), ("labour", "steps of 1 ms of CPU")])
def test_beside_the_bar_of_four_processes_stands_how_they_fare_otherwise(how: str, told: str) -> None:
    bar = found("W9 four processes, PostgreSQL", f"the same, {told}", w9(100, 170, how))
    assert bar.beside and bar.found == pytest.approx(1.7)
    assert found(*ASKED[25], w9(100, 170, how)).found is None


def test_a_bar_that_rests_on_a_disturbed_figure_says_so() -> None:
    runs = [made.w2("quire_sqlite", 3000), made.w2("dbos_sqlite", 100, noisy=True)]
    assert found(*ASKED[0], *runs).noisy
