"""The bars that Quire must reach, computed from the figures of one run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from figures import Summary, summarise

Table = dict[str, dict[str, Summary]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    figure: str
    bar: str
    #: None: a figure is missing, so nothing can be said.
    found: float | None
    reached: bool | None
    against: str = ""
    noisy: bool = False
    unit: str = ""


def judge(results: dict[str, Any]) -> list[Bar]:
    table = summarise(results)
    peers = results["peers"]
    bars = []
    for store, own in (("SQLite", "quire_sqlite"), ("PostgreSQL", "quire_postgres")):
        dbos = "dbos_sqlite" if store == "SQLite" else "dbos_postgres"
        bars.append(
            _faster(
                table, "w2_steps", own, [dbos], 30, f"W2 durable steps/s, {store}", ">= 30 x DBOS on the same store"
            )
        )
        bars.append(
            _faster(
                table,
                "w2_steps",
                own,
                _rivals(peers, store),
                10,
                f"W2 durable steps/s, {store}",
                ">= 10 x the best peer",
            )
        )
    rivals = _rivals(peers, "PostgreSQL")
    bars += [
        _faster(table, "w1_drain", "quire_postgres", ["dbos_postgres"], 30, "W1 drain, PostgreSQL", ">= 30 x DBOS"),
        _faster(table, "w1_drain", "quire_postgres", rivals, 2, "W1 drain, PostgreSQL", ">= 2 x the best peer"),
        _shorter(
            table,
            "w3_p50",
            "quire_postgres",
            ["dbos_postgres"],
            1 / 3,
            "W3 p50, PostgreSQL",
            "<= 1/3 of DBOS started directly",
        ),
        _shorter(
            table,
            "w3_p50",
            "quire_postgres",
            _everyone(peers),
            1.0,
            "W3 p50, PostgreSQL",
            "below every peer",
            strict=True,
        ),
        _shorter(table, "w4_seconds", "quire_postgres", ["dbos_postgres"], 1 / 20, "W4, PostgreSQL", "<= 1/20 of DBOS"),
    ]
    for own in ("quire_sqlite", "quire_postgres"):
        label = own.removeprefix("quire_").replace("sqlite", "SQLite").replace("postgres", "PostgreSQL")
        bars.append(_limit(table, "w5_over", own, 2.0, f"W5, {label}", "<= 2 % over the ideal", unit="%"))
        for key, many in (("w6_200k", "200,000"), ("w6_1m", "1,000,000")):
            title = f"W6 with {many} finished, {label}"
            bars.append(_limit(table, key, own, 0.9, title, ">= 0.9 of the empty ledger", at_least=True, unit="x"))
    bars += [
        _limit(table, "w7_statements", "quire_postgres", 30, "W7 idle statements", "<= 30 a minute"),
        _limit(table, "w7_wake", "quire_postgres", 50, "W7 woken by NOTIFY", "< 50 ms", unit="ms"),
        _limit(table, "w7_import", "quire_sqlite", 150, "W7 import quire", "<= 150 ms", unit="ms"),
        _limit(table, "w7_size", "quire_sqlite", 25, "W7 core install", "<= 25 MB", unit="MB"),
    ]
    for own in ("quire_sqlite", "quire_postgres"):
        label = own.removeprefix("quire_").replace("sqlite", "SQLite").replace("postgres", "PostgreSQL")
        bars.append(_recovery(results, table, own, label))
        bars.append(_limit(table, "w8_duplicates", own, 0, f"W8 duplicates, {label}", "0"))
        bars.append(_limit(table, "w8_lost", own, 0, f"W8 lost, {label}", "0"))
    bars.append(_processes(table))
    return bars


def _rivals(peers: dict[str, Any], store: str) -> list[str]:
    kind = {"SQLite": "sqlite", "PostgreSQL": "postgres"}[store]
    return [name for name, peer in peers.items() if peer["store"] == kind and peer["kind"] in ("engine", "queue")]


def _everyone(peers: dict[str, Any]) -> list[str]:
    return [name for name, peer in peers.items() if peer["kind"] in ("engine", "queue")]


def _faster(table: Table, key: str, own: str, others: list[str], factor: float, figure: str, bar: str) -> Bar:
    mine = table.get(key, {}).get(own)
    best, name = _best(table, key, others, highest=True)
    if mine is None or best is None:
        return Bar(figure=figure, bar=bar, found=None, reached=None)
    ratio = mine.median / best.median
    return Bar(
        figure=figure,
        bar=bar,
        found=ratio,
        reached=ratio >= factor,
        against=name,
        noisy=mine.noisy or best.noisy,
        unit="x",
    )


def _shorter(
    table: Table, key: str, own: str, others: list[str], factor: float, figure: str, bar: str, strict: bool = False
) -> Bar:
    mine = table.get(key, {}).get(own)
    best, name = _best(table, key, others, highest=False)
    if mine is None or best is None:
        return Bar(figure=figure, bar=bar, found=None, reached=None)
    ratio = mine.median / best.median
    reached = ratio < factor if strict else ratio <= factor
    return Bar(
        figure=figure, bar=bar, found=ratio, reached=reached, against=name, noisy=mine.noisy or best.noisy, unit="x"
    )


def _best(table: Table, key: str, others: list[str], *, highest: bool) -> tuple[Summary | None, str]:
    found = [(table[key][name], name) for name in others if name in table.get(key, {})]
    if not found:
        return None, ""
    pick = max if highest else min
    return pick(found, key=lambda pair: pair[0].median)


def _limit(
    table: Table, key: str, own: str, limit: float, figure: str, bar: str, at_least: bool = False, unit: str = ""
) -> Bar:
    mine = table.get(key, {}).get(own)
    if mine is None:
        return Bar(figure=figure, bar=bar, found=None, reached=None)
    # What must not happen is judged by its worst repetition, the rest by the median.
    value = mine.high if limit == 0 else mine.median
    reached = value >= limit if at_least else value <= limit
    return Bar(figure=figure, bar=bar, found=value, reached=reached, noisy=mine.noisy, unit=unit)


def _recovery(results: dict[str, Any], table: Table, own: str, label: str) -> Bar:
    """The adapter says how long its lease and its poll are; the bar is their sum."""
    figure, bar = f"W8 restart to all done, {label}", "within one lease plus one poll"
    mine = table.get("w8_seconds", {}).get(own)
    runs = [run for run in results["runs"] if run["peer"] == own and run["workload"] == "W8" and "figures" in run]
    settings = runs[0]["figures"].get("settings", {}) if runs else {}
    if mine is None or "lease_seconds" not in settings or "poll_seconds" not in settings:
        return Bar(figure=figure, bar=bar, found=None, reached=None)
    limit = settings["lease_seconds"] + settings["poll_seconds"]
    return Bar(
        figure=figure,
        bar=f"{bar} ({limit:g} s)",
        found=mine.high,
        reached=mine.high <= limit,
        noisy=mine.noisy,
        unit="s",
    )


def _processes(table: Table) -> Bar:
    figure, bar = "W9 four processes, PostgreSQL", "not slower than one"
    one, four = (table.get(key, {}).get("quire_postgres") for key in ("w9_1", "w9_4"))
    if one is None or four is None:
        return Bar(figure=figure, bar=bar, found=None, reached=None)
    ratio = four.median / one.median
    return Bar(figure=figure, bar=bar, found=ratio, reached=ratio >= 1.0, noisy=one.noisy or four.noisy, unit="x")
