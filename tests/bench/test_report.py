"""The page: every part of it from results alone, also from those of a run that was stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from bench import figures, plots, report, where, words
from bench.bars import judge
from tests.bench import made


def page(results: dict[str, Any], out: Path) -> str:
    written = report.write(results, out)
    assert json.loads((out / "benchmarks" / "results.json").read_text()) == results
    for path in written:
        if path.suffix == ".svg":
            ElementTree.fromstring(path.read_text())
    return (out / "benchmarks.md").read_text()


def test_a_page_renders_from_nothing_but_a_beginning(tmp_path: Path) -> None:
    results = made.results()
    del results["ended_at"]
    text = page(results, tmp_path)
    assert "**The run was stopped before its end.**" in text
    assert text.count("| not measured |") == len(judge(results))
    assert "Where the time goes" not in text


def test_a_page_shows_what_there_is_and_names_what_is_missing(tmp_path: Path) -> None:
    failed = {**made.run("W2", "huey_sqlite"), "error": "w2 did not answer in 300 s"}
    del failed["figures"]
    refused = {**made.run("W2", "dbos_sqlite"), "not_offered": "nothing like it"}
    del refused["figures"]
    text = page(
        made.results(
            made.w1("quire_postgres", 5000, cpu={"own": 0.3, "server": 0.2}),
            made.w1("quire_postgres", 7000, 1),
            made.w1("pgqueuer_postgres", 8000, noisy=True),
            made.w2("quire_sqlite", 9000),
            failed,
            refused,
            unavailable={"celery_redis": "pip could not install celery"},
        ),
        tmp_path,
    )
    assert "| Quire, PostgreSQL | 6,000 (5,000 to 7,000) | 2,000 | 300 | 200 | 2 |" in text
    assert "| PgQueuer, PostgreSQL | 8,000 | 2,000 | - | - | 1, noisy |" in text
    assert "- Huey, SQLite: failed, w2 did not answer in 300 s." in text
    assert "- DBOS, SQLite: not offered, nothing like it." in text
    assert "- celery_redis: not measured, pip could not install celery." in text
    assert "![drain](benchmarks/w1-drain.svg)" in text
    assert "- W1 drain, records/s: PgQueuer, PostgreSQL 8,000 against 6,000, noisy." in text
    assert (
        "| W1 drain, PostgreSQL | >= 2 x the best peer | 0.75 x (PgQueuer, PostgreSQL) | **not reached**, noisy |"
        in text
    )
    assert "**1 of 4 measurements were disturbed**" in text


def test_the_page_leads_with_default_settings_and_steps_that_do_something(tmp_path: Path) -> None:
    text = page(
        made.results(
            made.w1("quire_sqlite", 2),
            made.run("W12", "quire_sqlite", seconds=7.5, duplicates=0, lost=0),
            made.run("W0", "quire_sqlite", n=1000, seconds=2.0, alone_ms=[9.0, 8.0, 10.0]),
        ),
        tmp_path,
    )
    parts = [
        "# At default settings",
        "## W0: about W0",
        "## W12: about W12",
        "# What the engine costs",
        "## Bars",
        "## W1:",
    ]
    places = [text.index(f"\n{part}") for part in parts]
    assert places == sorted(places)
    assert "| Quire, SQLite | 500 | 9.0 | 1 |" in text
    assert "| Quire, SQLite | 7.50 | 0 | 0 | 1 |" in text


def test_it_says_if_no_peer_is_better(tmp_path: Path) -> None:
    text = page(made.results(made.w1("quire_sqlite", 2), made.w1("huey_sqlite", 1), made.w1("raw_sqlite", 9)), tmp_path)
    assert "In nothing that this run measured." in text


@pytest.mark.parametrize(
    ("runs", "line"),
    [
        ([made.w1("quire_sqlite", 1)], "The machine was quiet: none of 1 measurements was disturbed."),
        (
            [
                made.w1("quire_sqlite", 1, noisy=True),
                made.w1("quire_sqlite", 1),
                made.w2("quire_sqlite", 1, noisy=True),
            ],
            "**2 of 3 measurements were disturbed** by other work on the machine. 1 of them were made again",
        ),
    ],
)
def test_noise_is_told(runs: list[dict[str, Any]], line: str) -> None:
    assert report.noise_line(made.results(*runs)).startswith(line)


def test_a_line_for_the_terminal() -> None:
    assert report.brief(made.w2("quire_sqlite", 9000)) == "steps 9,000"
    assert report.brief({"error": "gone", "workload": "W1"}) == "FAILED: gone"
    assert report.brief({"not_offered": "no queue", "workload": "W1"}) == "not offered: no queue"
    lost = made.run("W8", "huey_sqlite", seconds=1.0, duplicates=0, lost=4, failure="4 are gone")
    assert report.brief(lost) == "duplicates 0 lost 4 (4 are gone)"


@pytest.mark.parametrize(("values", "scale"), [((10.0, 20.0), False), ((10.0, 2000.0), True), ((0.0, 2000.0), False)])
def test_bars_are_logarithmic_when_they_must_be(values: tuple[float, float], scale: bool) -> None:
    metric = next(metric for metric in figures.METRICS if metric.key == "w1_drain")
    found = {
        name: figures.Summary(median=value, low=value, high=value, count=1, noisy=False)
        for name, value in zip(("huey_sqlite", "quire_sqlite"), values, strict=True)
    }
    drawn = plots.chart(metric, "a <title>", found, made.results()["peers"], quick=False)
    texts = [element.text or "" for element in ElementTree.fromstring(drawn).iter("{http://www.w3.org/2000/svg}text")]
    assert any("logarithmic" in text for text in texts) is scale
    assert texts.index("Quire, SQLite") < texts.index("Huey, SQLite")  # the better one first
    assert "W1: a <title>" in texts


def test_what_grows_is_drawn_as_a_curve(tmp_path: Path) -> None:
    samples = [[0, 50_000, 1], [500_000, 60_000, 1], [1_000_000, 60_000, 1]]
    stored = [{"turns": turns, "bytes": turns * 10_000} for turns in (25, 50, 100)]
    text = page(
        made.results(
            made.run("W11", "quire_sqlite", samples=samples), made.run("W10", "quire_postgres", points=stored)
        ),
        tmp_path,
    )
    assert "![MB resident](benchmarks/w11-curve.svg)" in text
    assert "![MB stored](benchmarks/w10-curve.svg)" in text
    drawn = ElementTree.fromstring((tmp_path / "benchmarks" / "w11-curve.svg").read_text())
    [_, line] = [element.get("d", "") for element in drawn.iter("{http://www.w3.org/2000/svg}path")]
    begin, middle, end = (point.split() for point in line.removeprefix("M").split(" L"))
    assert float(begin[0]) < float(middle[0]) < float(end[0])
    assert float(begin[1]) > float(middle[1]) == float(end[1])  # it rises, then it is flat


def test_time_is_grouped_by_what_a_module_does_and_what_no_function_used_is_the_loop_or_waiting() -> None:
    threads = {
        "MainThread": {"quire/rules/draft.py": 1.0, "quire/model/codec.py": 0.5, "json": 0.5, "~waiting": 3.0},
        "quire-write_0": {"~sqlite": 1.0, "quire/ledger/sqlite/ledger.py": 1.0, "~waiting": 9.0},
        "quire-read_0": {"~sqlite": 1.0},
    }
    assert where.grouped({"seconds": 10.0, "loop_cpu": 3.0, "threads": threads}) == {
        where.LOOP: {"rules (rules)": 0.1, "rows and JSON (model)": 0.1, "event loop": 0.1, "waiting": 0.7},
        where.OTHERS: {"SQLite itself": 0.2, "store (ledger, but for rules and wire)": 0.1},
    }


def test_the_page_says_where_the_time_goes_from_the_profiles_of_the_run(tmp_path: Path) -> None:
    threads = {"MainThread": {"quire/rules/draft.py": 1.0, "~waiting": 3.0}}
    profile = {"peer": "quire_postgres", "workload": "W2", "seconds": 4.0, "loop_cpu": 1.0, "threads": threads}
    measured = made.run("W2", "quire_postgres", steps=10, seconds=2.0, cpu={"own": 1.0, "server": 0.5})
    text = page(made.results(measured, profiles=[profile]), tmp_path)
    assert "| part | W2 Quire, PostgreSQL, event loop's thread |" in text
    assert "| rules (rules) | 25 % |\n| waiting | 75 % |" in text
    assert "- W2, Quire, PostgreSQL: Quire's process used 0.50 cores, the server behind it 0.25, of 2." in text


def test_words_about_a_workload_are_of_one_that_exists() -> None:
    assert set(words.ABOUT) <= set(figures.EXTRACT)
