"""Writes what was measured: a Markdown page, one SVG for each figure worth a picture, and the raw JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench import plan, plots, where, words
from bench.bars import STORES, Bar, judge, rivals
from bench.figures import METRICS, Metric, Summary, summarise, values

PLOTTED = [
    "w1_drain",
    "w2_steps",
    "w3_p50",
    "w4_seconds",
    "w5_over",
    "w6_1m",
    "w7_statements",
    "w7_import",
    "w8_seconds",
    "w9_4",
]
#: What is drawn as a curve, and its axes.
CURVES = {"W10": ("turns", "MB stored"), "W11": ("transitions", "MB resident")}
GROUPS = {"quire": "Quire", "engine": "Workflow engines", "queue": "Queues (no step checkpoints)", "raw": "Raw limit"}


def brief(run: dict[str, Any]) -> str:
    """One line for the terminal."""
    if "error" in run:
        return f"FAILED: {run['error'][:160]}"
    if "not_offered" in run:
        return f"not offered: {run['not_offered']}"
    digits = {metric.key: metric.digits for metric in METRICS}
    words = [f"{key.split('_', 1)[1]} {value:,.{digits[key]}f}" for key, value in values(run).items()]
    trouble = [
        f"({run['figures'][key]})" for key in ("failure", "error", "wake_error", "not_offered") if key in run["figures"]
    ]
    return " ".join(words + trouble)


def write(results: dict[str, Any], out: Path) -> list[Path]:
    folder = out / "benchmarks"
    folder.mkdir(parents=True, exist_ok=True)
    table = summarise(results)
    drawn = []
    for metric in METRICS:
        if metric.key in PLOTTED and table.get(metric.key):
            title = results["workloads"][metric.workload]["title"]
            path = folder / f"{metric.key.replace('_', '-')}.svg"
            path.write_text(plots.chart(metric, title, table[metric.key], results["peers"], results["quick"]))
            drawn.append(path)
    for workload, axes in CURVES.items():
        if lines := curves_of(workload, results):
            path = folder / f"{workload.lower()}-curve.svg"
            path.write_text(plots.curves(f"{workload}: {results['workloads'][workload]['title']}", axes, lines))
            drawn.append(path)
    raw = folder / "results.json"
    raw.write_text(json.dumps(results, indent=1) + "\n")
    page = out / "benchmarks.md"
    page.write_text(markdown(results, table, drawn))
    return [page, raw, *drawn]


def curves_of(workload: str, results: dict[str, Any]) -> dict[str, list[tuple[float, float]]]:
    """The points of the last run of each peer, by its label."""
    lines = {}
    for run in results["runs"]:
        if run["workload"] == workload and "figures" in run:
            found = run["figures"]
            if workload == "W10":
                points = [(point["turns"], point["bytes"] / 1e6) for point in found["points"]]
            else:
                points = [(count, kilobytes / 1000) for count, kilobytes, *_ in found["samples"]]
            lines[results["peers"][run["peer"]]["label"]] = points
    return lines


def summary(results: dict[str, Any]) -> str:
    """For the terminal: the bars, and how noisy the run was."""
    return "\n".join([noise_line(results), "", *bar_table(judge(results))])


def wins(results: dict[str, Any], table: dict[str, dict[str, Summary]]) -> list[str]:
    """Every figure in which a peer is better than Quire on its store, or on any store if Quire is on none like it."""
    lines = []
    for metric in METRICS:
        if metric.higher_is_better is None:
            continue
        found = table.get(metric.key, {})
        better = []
        for name in rivals(results["peers"]):
            own = f"quire_{results['peers'][name]['store']}"
            mine = found.get(own if own in STORES else "quire_sqlite")
            if name not in found or mine is None:
                continue
            theirs, ours = found[name].median, mine.median
            if theirs > ours if metric.higher_is_better else theirs < ours:
                noisy = ", noisy" if found[name].noisy or mine.noisy else ""
                label = results["peers"][name]["label"]
                better.append(f"{label} {_number(metric, theirs)} against {_number(metric, ours)}{noisy}")
        if better:
            unit = f", {metric.unit}" if metric.unit else ""
            lines.append(f"- {metric.workload} {metric.title}{unit}: {'; '.join(better)}.")
    return lines or ["- In nothing that this run measured."]


def _number(metric: Metric, value: float) -> str:
    return f"{value:,.{metric.digits}f}"


def markdown(results: dict[str, Any], table: dict[str, dict[str, Summary]], drawn: list[Path]) -> str:
    machine = results["machine"]
    lines = [words.HEAD]
    if results["quick"]:
        lines += ["**A quick run: the sizes are too small to say anything about speed.**", ""]
    lines += [noise_line(results), "", *time_line(results)]
    leading = [name for name in plan.LEADING if name in results["workloads"]]
    if leading:
        lines += ["# At default settings", "", words.LEADING]
    for workload in leading:
        lines += workload_section(workload, results["workloads"][workload], results, table, drawn)
    if leading:
        lines += ["# What the engine costs", ""]
    lines += ["## Bars", "", words.BARS, *bar_table(judge(results)), ""]
    lines += ["## Where a peer is better", "", words.WINS, *wins(results, table), ""]
    for workload, about in results["workloads"].items():
        if workload in leading:
            continue
        lines += workload_section(workload, about, results, table, drawn)
    lines += where.section(results)
    lines += ["## Not alike", "", words.NOT_ALIKE]
    lines += ["## Peers", "", *peer_list(results), "", "## Machine", "", *machine_list(machine), ""]
    return "\n".join(lines)


def time_line(results: dict[str, Any]) -> list[str]:
    if "ended_at" not in results:
        return ["**The run was stopped before its end.** What it had measured by then is shown.", ""]
    resumed = f", and resumed {len(results['resumed_at'])} times" if results.get("resumed_at") else ""
    limit = f" It had {results['minutes']:g} minutes." if results.get("minutes") else ""
    return [f"Begun {results['begun_at']}, ended {results['ended_at']}{resumed}.{limit}", ""]


def noise_line(results: dict[str, Any]) -> str:
    runs = [run for run in results["runs"] if "figures" in run]
    noisy = [run for run in runs if run["noise"]["noisy"]]
    if not noisy:
        return f"The machine was quiet: none of {len(runs)} measurements was disturbed."
    clean = {(run["workload"], run["peer"], run["repetition"]) for run in runs if not run["noise"]["noisy"]}
    made_good = sum((run["workload"], run["peer"], run["repetition"]) in clean for run in noisy)
    again = f" {made_good} of them were made again undisturbed." if made_good else ""
    return (
        f"**{len(noisy)} of {len(runs)} measurements were disturbed** by other work on the machine.{again} They are "
        "left out wherever an undisturbed repetition exists; a figure that has none is marked *noisy*."
    )


def bar_table(bars: list[Bar]) -> list[str]:
    lines = ["| figure | bar | measured | |", "|---|---|--:|---|"]
    for bar in bars:
        if bar.found is None:
            lines.append(f"| {bar.figure} | {bar.bar} | - | not measured |")
            continue
        against = f" ({bar.against})" if bar.against else ""
        verdict = "no bar" if bar.beside else "reached" if bar.reached else "**not reached**"
        verdict += ", noisy" if bar.noisy else ""
        lines.append(f"| {bar.figure} | {bar.bar} | {bar.found:,.3g} {bar.unit}{against} | {verdict} |")
    return lines


def workload_section(
    workload: str,
    about: dict[str, Any],
    results: dict[str, Any],
    table: dict[str, dict[str, Summary]],
    drawn: list[Path],
) -> list[str]:
    metrics = [metric for metric in METRICS if metric.workload == workload and table.get(metric.key)]
    lines = [f"## {workload}: {about['title']}", ""]
    if metrics:
        header = " | ".join(f"{metric.title}, {metric.unit}" if metric.unit else metric.title for metric in metrics)
        lines += [f"| | {header} | repetitions |", "|---|" + "--:|" * (len(metrics) + 1)]
        for kind, group in GROUPS.items():
            rows = [row for name in results["peers"] if (row := peer_row(name, kind, metrics, results, table))]
            if rows:
                lines += [f"| *{group}* |" + " |" * (len(metrics) + 1), *rows]
        lines.append("")
    if about.get("left_out"):
        lines += [f"Quire alone. {about['left_out']}", ""]
    if workload in words.ABOUT:
        lines.append(words.ABOUT[workload])
    lines += remarks(workload, about["sizes"], results)
    for metric in metrics:
        for path in drawn:
            if path.stem == metric.key.replace("_", "-"):
                lines += [f"![{metric.title}](benchmarks/{path.name})", ""]
    for path in drawn:
        if path.stem == f"{workload.lower()}-curve":
            lines += [f"![{CURVES[workload][1]}](benchmarks/{path.name})", ""]
    return lines


def peer_row(
    name: str, kind: str, metrics: list[Metric], results: dict[str, Any], table: dict[str, dict[str, Summary]]
) -> str:
    peer = results["peers"][name]
    found = [table.get(metric.key, {}).get(name) for metric in metrics]
    if peer["kind"] != kind or not any(found):
        return ""
    cells = [cell(metric, value) for metric, value in zip(metrics, found, strict=True)]
    present = [value for value in found if value is not None]
    count = f"{present[0].count}" + (", noisy" if present[0].noisy else "")
    return f"| {peer['label']} | {' | '.join(cells)} | {count} |"


def cell(metric: Metric, value: Summary | None) -> str:
    if value is None:
        return "-"
    text = f"{value.median:,.{metric.digits}f}"
    if value.count > 1 and value.low != value.high:
        text += f" ({value.low:,.{metric.digits}f} to {value.high:,.{metric.digits}f})"
    return text


def remarks(workload: str, sizes: dict[str, Any], results: dict[str, Any]) -> list[str]:
    """Other sizes, what a peer does not offer, and what went wrong, each once."""
    said: dict[str, None] = {}
    for run in results["runs"]:
        if run["workload"] != workload:
            continue
        label = results["peers"][run["peer"]]["label"]
        if results["peers"][run["peer"]]["kind"] == "raw":
            continue
        if run["sizes"] != sizes and "figures" in run:
            smaller = ", ".join(f"{name} {value}" for name, value in run["sizes"].items() if sizes.get(name) != value)
            said[f"{label}: smaller size, {smaller}."] = None
        if "not_offered" in run:
            said[f"{label}: not offered, {run['not_offered']}."] = None
        if "error" in run:
            said[f"{label}: failed, {run['error'].splitlines()[0][:200]}."] = None
        for key in ("failure", "error", "wake_error", "not_offered"):
            if key in run.get("figures", {}):
                said[f"{label}: {run['figures'][key].splitlines()[0][:200]}."] = None
    return [*(f"- {text}" for text in said), ""] if said else []


def peer_list(results: dict[str, Any]) -> list[str]:
    lines = []
    for name, peer in results["peers"].items():
        about: dict[str, Any] = next(
            (
                run["figures"]
                for run in results["runs"]
                if run["peer"] == name and run.get("figures", {}).get("settings")
            ),
            {},
        )
        settings = ", ".join(f"{key} {value}" for key, value in about.get("settings", {}).items())
        found = ", ".join(f"{key} {value}" for key, value in about.get("versions", {}).items())
        words = [f"**{peer['label']}**"] + [word for word in (peer["note"], settings, found) if word]
        lines.append("- " + "; ".join(words) + ".")
    lines += [f"- {name}: not measured, {reason}." for name, reason in results["unavailable"].items()]
    return lines


def machine_list(machine: dict[str, Any]) -> list[str]:
    settings = ", ".join(f"{name} {value}" for name, value in machine.get("postgres_settings", {}).items())
    probe = ", ".join(f"{name} {value:.3f}" for name, value in machine.get("best_probe", {}).items())
    plain = {key: value for key, value in machine.items() if key not in ("postgres_settings", "best_probe")}
    lines = [f"- {key.replace('_', ' ')}: {value}" for key, value in plain.items()]
    return [*lines, *([f"- PostgreSQL settings: {settings}"] if settings else []), f"- best noise probe: {probe}"]
