"""The bars that Quire must reach, computed from the figures of one run.

Each is read strictly: "the best peer" and "every peer" are those on any store, and what must not happen is judged by
its worst repetition. Beside such a bar stands the same comparison with the peers on the same store alone, or in other
circumstances, which is no bar of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bench.figures import Summary, summarise

Table = dict[str, dict[str, Summary]]
STORES = {"quire_sqlite": "SQLite", "quire_postgres": "PostgreSQL"}
KINDS = {"SQLite": "sqlite", "PostgreSQL": "postgres"}
#: W9: the bar, by the figures that it compares; and what stands beside it.
PROCESSES = {
    "w9": "not slower than one",
    "w9_default": "the same, at a worker's defaults",
    "w9_labour": "the same, steps of 1 ms of CPU",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    figure: str
    bar: str
    #: None: a figure is missing, so nothing can be said.
    found: float | None = None
    reached: bool | None = None
    against: str = ""
    noisy: bool = False
    unit: str = ""
    #: Stands beside a bar and is none itself.
    beside: bool = False


def judge(results: dict[str, Any]) -> list[Bar]:
    table = summarise(results)
    peers = results["peers"]
    everyone = rivals(peers)
    bars = []
    for own, store in STORES.items():
        figure, dbos = f"W2 durable steps/s, {store}", f"dbos_{KINDS[store]}"
        bars += [
            ratio(table, peers, "w2_steps", own, [dbos], 30, figure, f">= 30 x DBOS on {store}"),
            ratio(table, peers, "w2_steps", own, everyone, 10, figure, ">= 10 x the best peer"),
            ratio(table, peers, "w2_steps", own, rivals(peers, store), 10, figure, "", beside=store),
        ]
    own, near = "quire_postgres", rivals(peers, "PostgreSQL")
    bars += [
        ratio(table, peers, "w1_drain", own, ["dbos_postgres"], 30, "W1 drain, PostgreSQL", ">= 30 x DBOS"),
        ratio(table, peers, "w1_drain", own, everyone, 2, "W1 drain, PostgreSQL", ">= 2 x the best peer"),
        ratio(
            table, peers, "w3_p50", own, ["dbos_postgres"], 1 / 3, "W3 p50, PostgreSQL", "<= 1/3 of DBOS's direct start"
        ),
        ratio(table, peers, "w3_p50", own, everyone, 1, "W3 p50, PostgreSQL", "below every peer", strict=True),
        ratio(table, peers, "w3_p50", own, near, 1, "W3 p50, PostgreSQL", "", strict=True, beside="PostgreSQL"),
        ratio(table, peers, "w4_seconds", own, ["dbos_postgres"], 1 / 20, "W4, PostgreSQL", "<= 1/20 of DBOS"),
    ]
    for own, store in STORES.items():
        bars.append(limit(table, "w5_over", own, 2.0, f"W5, {store}", "<= 2 % over the ideal", unit="%"))
    for own, store in STORES.items():
        for key, many in (("w6_200k", "200,000"), ("w6_1m", "1,000,000")):
            figure = f"W6 with {many} finished, {store}"
            bars.append(limit(table, key, own, 0.9, figure, ">= 0.9 of the empty ledger", at_least=True, unit="x"))
    bars += [
        limit(table, "w7_statements", "quire_postgres", 30, "W7 statements, idle", "<= 30 a minute"),
        limit(
            table, "w7_wake_worst", "quire_postgres", 50, "W7 woken by NOTIFY, worst", "< 50 ms", unit="ms", strict=True
        ),
        limit(table, "w7_import", "quire_sqlite", 150, "W7 `import quire`", "<= 150 ms", unit="ms"),
        limit(table, "w7_size", "quire_sqlite", 25, "W7 core install", "<= 25 MB", unit="MB"),
    ]
    for own, store in STORES.items():
        bars += [
            recovery(results, table, own, store),
            limit(table, "w8_duplicates", own, 0, f"W8 duplicates, {store}", "0"),
            limit(table, "w8_lost", own, 0, f"W8 lost, {store}", "0"),
        ]
    return [*bars, *(processes(table, key, bar) for key, bar in PROCESSES.items())]


def rivals(peers: dict[str, Any], store: str = "") -> list[str]:
    """Engines and queues; those on one store, or all."""
    return [
        name
        for name, peer in peers.items()
        if peer["kind"] in ("engine", "queue") and (not store or peer["store"] == KINDS[store])
    ]


def ratio(
    table: Table,
    peers: dict[str, Any],
    key: str,
    own: str,
    others: list[str],
    factor: float,
    figure: str,
    bar: str,
    *,
    strict: bool = False,
    beside: str = "",
) -> Bar:
    """Quire's median against that of the best of the others. A factor above one is a rate, one or less a duration."""
    bar = f"the same, of the peers on {beside}" if beside else bar
    mine = table.get(key, {}).get(own)
    found = [(table[key][name], name) for name in others if name in table.get(key, {})]
    if mine is None or not found:
        return Bar(figure=figure, bar=bar, beside=bool(beside))
    more = factor > 1
    best, name = (max if more else min)(found, key=lambda pair: pair[0].median)
    value = mine.median / best.median
    reached = value >= factor if more else value < factor if strict else value <= factor
    return Bar(
        figure=figure,
        bar=bar,
        found=value,
        reached=reached,
        against=peers[name]["label"],
        noisy=mine.noisy or best.noisy,
        unit="x",
        beside=bool(beside),
    )


def limit(
    table: Table,
    key: str,
    own: str,
    most: float,
    figure: str,
    bar: str,
    *,
    at_least: bool = False,
    strict: bool = False,
    unit: str = "",
) -> Bar:
    mine = table.get(key, {}).get(own)
    if mine is None:
        return Bar(figure=figure, bar=bar)
    # What must not happen at all is judged by its worst repetition, the rest by the median.
    value = mine.high if most == 0 else mine.median
    reached = value >= most if at_least else value < most if strict else value <= most
    return Bar(figure=figure, bar=bar, found=value, reached=reached, noisy=mine.noisy, unit=unit)


def recovery(results: dict[str, Any], table: Table, own: str, store: str) -> Bar:
    """The adapter says how long its lease and its poll are; the bar is their sum."""
    figure, bar = f"W8 restart to all done, {store}", "within one lease plus one poll"
    mine = table.get("w8_seconds", {}).get(own)
    runs = [run for run in results["runs"] if run["peer"] == own and run["workload"] == "W8" and "figures" in run]
    settings = runs[0]["figures"].get("settings", {}) if runs else {}
    if mine is None or "lease_seconds" not in settings or "poll_seconds" not in settings:
        return Bar(figure=figure, bar=bar)
    most = settings["lease_seconds"] + settings["poll_seconds"]
    return Bar(
        figure=figure,
        bar=f"{bar} ({most:g} s)",
        found=mine.high,
        reached=mine.high <= most,
        noisy=mine.noisy,
        unit="s",
    )


def processes(table: Table, key: str, bar: str) -> Bar:
    figure, beside = "W9 four processes, PostgreSQL", key != "w9"
    one, four = (table.get(f"{key}_{count}", {}).get("quire_postgres") for count in (1, 4))
    if one is None or four is None:
        return Bar(figure=figure, bar=bar, beside=beside)
    value, noisy = four.median / one.median, one.noisy or four.noisy
    return Bar(figure=figure, bar=bar, found=value, reached=value >= 1.0, noisy=noisy, unit="x", beside=beside)
