"""From raw figures to the numbers that are shown: one or more named values for each run, then medians and spread."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    key: str
    workload: str
    title: str
    unit: str
    #: None: neither is.
    higher_is_better: bool | None
    digits: int = 0


MORE, LESS, NEITHER = True, False, None


def _metric(key: str, title: str, unit: str, higher_is_better: bool | None, digits: int = 0) -> Metric:
    workload = key.partition("_")[0].upper()
    return Metric(key=key, workload=workload, title=title, unit=unit, higher_is_better=higher_is_better, digits=digits)


METRICS = [
    _metric("w0_records", "one call and one effect each", "records/s", MORE),
    _metric("w0_alone", "one record alone, p50", "ms", LESS, 1),
    _metric("w12_seconds", "restart to all done", "s", LESS, 2),
    _metric("w12_duplicates", "duplicates", "", LESS),
    _metric("w12_lost", "lost", "", LESS),
    _metric("w1_drain", "drain", "records/s", MORE),
    _metric("w1_enqueue", "enqueue", "records/s", MORE),
    _metric("w1_cpu", "CPU of its process", "us a record", LESS),
    _metric("w1_server", "CPU of the server", "us a record", LESS),
    _metric("w2_steps", "durable steps", "steps/s", MORE),
    _metric("w2_cpu", "CPU of its process", "us a step", LESS),
    _metric("w2_server", "CPU of the server", "us a step", LESS),
    _metric("w3_p50", "p50", "ms", LESS, 2),
    _metric("w3_p99", "p99", "ms", LESS, 2),
    _metric("w3_body_p50", "p50 to the end of the body", "ms", LESS, 2),
    _metric("w3_queue_p50", "p50 through the queue", "ms", LESS, 2),
    _metric("w4_seconds", "map and reduce", "s", LESS, 3),
    _metric("w4_cpu", "CPU of its process", "s", LESS, 2),
    _metric("w4_server", "CPU of the server", "s", LESS, 2),
    _metric("w5_seconds", "total", "s", LESS, 3),
    _metric("w5_over", "over the ideal", "%", LESS, 1),
    _metric("w6_empty", "drain, empty ledger", "records/s", MORE),
    _metric("w6_drain_200k", "drain at 200,000", "records/s", MORE),
    _metric("w6_drain_1m", "drain at 1,000,000", "records/s", MORE),
    _metric("w6_200k", "200,000 against empty", "x", MORE, 2),
    _metric("w6_1m", "1,000,000 against empty", "x", MORE, 2),
    _metric("w6_quick", "filled against empty", "x", MORE, 2),
    _metric("w7_statements", "statements", "a minute", LESS),
    _metric("w7_cpu", "CPU", "s a minute", LESS, 2),
    _metric("w7_wake", "woken, p50", "ms", LESS, 1),
    _metric("w7_wake_worst", "woken, worst", "ms", LESS, 1),
    _metric("w7_rss", "resident", "MB", LESS),
    _metric("w7_import", "import", "ms", LESS),
    _metric("w7_size", "installed, without bytecode", "MB", LESS, 1),
    _metric("w8_seconds", "restart to all done", "s", LESS, 2),
    _metric("w8_duplicates", "duplicates", "", LESS),
    _metric("w8_lost", "lost", "", LESS),
    _metric("w9_1", "1 process", "records/s", MORE),
    _metric("w9_2", "2 processes", "records/s", MORE),
    _metric("w9_4", "4 processes", "records/s", MORE),
    _metric("w9_default_1", "1 process by default", "records/s", MORE),
    _metric("w9_default_4", "4 processes by default", "records/s", MORE),
    _metric("w9_labour_1", "1 process, steps of 1 ms of CPU", "records/s", MORE),
    _metric("w9_labour_4", "4 processes, steps of 1 ms of CPU", "records/s", MORE),
    _metric("w9_cpu_1", "CPU of 1 worker", "us a record", LESS),
    _metric("w9_cpu_4", "CPU of 4 workers", "us a record", LESS),
    _metric("w9_server_1", "CPU of server and client with 1", "us a record", LESS),
    _metric("w9_server_4", "CPU of server and client with 4", "us a record", LESS),
    _metric("w9_busy_1", "processors busy with 1", "%", NEITHER),
    _metric("w9_busy_4", "processors busy with 4", "%", NEITHER),
    _metric("w10_mb", "stored", "MB", LESS, 2),
    _metric("w10_growth", "bytes when turns double", "x", LESS, 2),
    _metric("w11_transitions", "transitions", "", MORE),
    _metric("w11_first_mb", "resident after a tenth", "MB", LESS, 1),
    _metric("w11_last_mb", "resident at the end", "MB", LESS, 1),
    _metric("w11_growth", "growth in the second half", "kB per 1,000 transitions", LESS, 3),
    _metric("w11_objects", "Python objects in the second half", "more per 1,000 transitions", LESS, 3),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    median: float
    low: float
    high: float
    #: How many repetitions stand behind it, and whether none of them was undisturbed.
    count: int
    noisy: bool


def values(run: dict[str, Any]) -> dict[str, float]:
    """The named values of one run."""
    found = run.get("figures")
    if not found:
        return {}
    extract = EXTRACT.get(run["workload"])
    return extract(found) if extract else {}


def _w1(found: dict[str, Any]) -> dict[str, float]:
    drained = {"w1_drain": found["n"] / found["drain_seconds"]}
    if found.get("enqueue_seconds"):
        drained["w1_enqueue"] = found["n"] / found["enqueue_seconds"]
    return drained | _cpu("w1", found, found["n"])


def _w2(found: dict[str, Any]) -> dict[str, float]:
    return {"w2_steps": found["steps"] / found["seconds"]} | _cpu("w2", found, found["steps"])


def _w4(found: dict[str, Any]) -> dict[str, float]:
    return {"w4_seconds": found["seconds"]} | _cpu("w4", found, 1e6)


def _cpu(workload: str, found: dict[str, Any], units: float) -> dict[str, float]:
    """Microseconds of CPU for one unit: of the peer's own processes, and of the server behind it."""
    # The system counts in hundredths of a second: less than a few of them is no figure.
    if "cpu" not in found or sum(found["cpu"].values()) < 0.05:
        return {}
    own, server = found["cpu"]["own"], found["cpu"]["server"]
    # Nothing but a few ticks: there is no server behind this one.
    behind = {f"{workload}_server": server * 1e6 / units} if server > 0.02 * own else {}
    return {f"{workload}_cpu": own * 1e6 / units, **behind}


def _w3(found: dict[str, Any]) -> dict[str, float]:
    result = {"w3_p50": quantile(found["latencies_ms"], 0.5), "w3_p99": quantile(found["latencies_ms"], 0.99)}
    for part in ("body", "queue"):
        if found.get(f"{part}_latencies_ms"):
            result[f"w3_{part}_p50"] = quantile(found[f"{part}_latencies_ms"], 0.5)
    return result


def _w5(found: dict[str, Any]) -> dict[str, float]:
    return {"w5_seconds": found["seconds"], "w5_over": (found["seconds"] / found["ideal"] - 1) * 100}


def _w6(found: dict[str, Any]) -> dict[str, float]:
    """Of each point the median drain; against the empty ledger beside it the median of all pairs that were drained one
    after the other, which see the same machine."""

    def rate(drains: list[dict[str, Any]]) -> float:
        return float(statistics.median(drain["n"] / drain["drain_seconds"] for drain in drains))

    names = {200_000: "200k", 1_000_000: "1m"}
    result = {"w6_empty": rate([drain for point in found["points"] for drain in point["beside"]])}
    for point in found["points"]:
        name = names.get(point["finished"], "quick")
        if name != "quick":
            result[f"w6_drain_{name}"] = rate(point["drains"])
        pairs = zip(point["drains"], point["beside"], strict=True)
        result[f"w6_{name}"] = statistics.median(rate([drain]) / rate([beside]) for drain, beside in pairs)
    return result


def _w7(found: dict[str, Any]) -> dict[str, float]:
    names = {
        "statements_per_minute": "w7_statements", "cpu_seconds_per_minute": "w7_cpu", "resident_mb": "w7_rss",
        "import_ms": "w7_import", "installed_mb": "w7_size",
    }  # fmt: skip
    result = {names[key]: float(value) for key, value in found.items() if key in names}
    if found.get("wake_ms"):
        result["w7_wake"] = quantile(found["wake_ms"], 0.5)
        result["w7_wake_worst"] = max(found["wake_ms"])
    return result


def _w8(found: dict[str, Any]) -> dict[str, float]:
    result = {"w8_duplicates": float(found["duplicates"]), "w8_lost": float(found["lost"])}
    # A peer that never finishes has no time; its losses are the figure.
    return result if "failure" in found else {"w8_seconds": found["seconds"], **result}


def _w12(found: dict[str, Any]) -> dict[str, float]:
    return {key.replace("w8", "w12"): value for key, value in _w8(found).items()}


def _w0(found: dict[str, Any]) -> dict[str, float]:
    alone = {"w0_alone": quantile(found["alone_ms"], 0.5)} if found["alone_ms"] else {}
    return {"w0_records": found["n"] / found["seconds"], **alone}


def _w9(found: dict[str, Any]) -> dict[str, float]:
    result: dict[str, float] = {}
    for point in found["points"]:
        count, rate = point["processes"], point["n"] / point["seconds"]
        if point.get("how"):
            result[f"w9_{point['how']}_{count}"] = rate
            continue
        result[f"w9_{count}"] = rate
        if "cpu" in point and count in (1, 4):
            own, server = point["cpu"]["own"], point["cpu"]["server"]
            result[f"w9_cpu_{count}"] = own * 1e6 / point["n"]
            result[f"w9_server_{count}"] = server * 1e6 / point["n"]
            if "processors" in point:
                result[f"w9_busy_{count}"] = 100 * (own + server) / (point["seconds"] * point["processors"])
    return result


def _w10(found: dict[str, Any]) -> dict[str, float]:
    *_, half, full = found["points"]
    return {"w10_mb": full["bytes"] / 1e6, "w10_growth": full["bytes"] / max(half["bytes"], 1)}


def _w11(found: dict[str, Any]) -> dict[str, float]:
    """Growth over the second half: the first half fills caches."""
    samples = found["samples"]
    early, late = samples[len(samples) // 10], samples[len(samples) // 2 :] if len(samples) > 3 else samples
    span = late[-1][0] - late[0][0]
    result = {
        "w11_transitions": float(samples[-1][0]),
        "w11_first_mb": early[1] / 1000,
        "w11_last_mb": samples[-1][1] / 1000,
    }
    if span:
        result["w11_growth"] = (late[-1][1] - late[0][1]) / span * 1000
        result["w11_objects"] = (late[-1][2] - late[0][2]) / span * 1000
    return result


EXTRACT: dict[str, Callable[[dict[str, Any]], dict[str, float]]] = {
    "W0": _w0,
    "W1": _w1,
    "W2": _w2,
    "W3": _w3,
    "W4": _w4,
    "W5": _w5,
    "W6": _w6,
    "W7": _w7,
    "W8": _w8,
    "W9": _w9,
    "W10": _w10,
    "W11": _w11,
    "W12": _w12,
}


def quantile(numbers: Iterable[float], part: float) -> float:
    ordered = sorted(numbers)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def summarise(results: dict[str, Any]) -> dict[str, dict[str, Summary]]:
    """metric key -> peer -> summary. Disturbed repetitions are left out wherever an undisturbed one exists."""
    gathered: dict[str, dict[str, list[tuple[float, bool]]]] = {}
    for run in results["runs"]:
        noisy = bool(run["noise"]["noisy"])
        for key, value in values(run).items():
            gathered.setdefault(key, {}).setdefault(run["peer"], []).append((value, noisy))
    return {key: {peer: _summary(entries) for peer, entries in by_peer.items()} for key, by_peer in gathered.items()}


def _summary(entries: list[tuple[float, bool]]) -> Summary:
    clean = [value for value, noisy in entries if not noisy]
    used = clean or [value for value, _ in entries]
    return Summary(median=statistics.median(used), low=min(used), high=max(used), count=len(used), noisy=not clean)
