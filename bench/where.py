"""Where Quire's time goes: seconds by module, from a profile that the run itself makes, as groups with a name."""

from __future__ import annotations

from typing import Any

from bench import words

WAITING = "waiting"
EVENT_LOOP = "event loop"
LOOP, OTHERS = "event loop's thread", "other threads"
#: The first beginning that fits names the group of a module.
GROUPS = [
    ("~waiting", WAITING),
    ("~sqlite", "SQLite itself"),
    ("~socket", "socket"),
    ("bench", "step (the bench's own bodies)"),
    ("quire/worker/worker.py", "claim and dispatch (worker/worker)"),
    ("quire/run/passes.py", "pass and settle (run/passes)"),
    ("quire/worker/committer.py", "group commit (worker/committer)"),
    ("quire/run/", "what a step gets (run)"),
    ("quire/worker/", "claim and dispatch (worker/worker)"),
    ("quire/rules/moves.py", "moves (rules/moves)"),
    ("quire/workflows/", "declarations (workflows)"),
    ("quire/rules/", "rules (rules)"),
    ("quire/ledger/postgres/wire", "wire (ledger/postgres/wire)"),
    ("psycopg", "wire (ledger/postgres/wire)"),
    ("quire/ledger/", "store (ledger, but for rules and wire)"),
    ("sqlite3", "store (ledger, but for rules and wire)"),
    ("quire/model/", "rows and JSON (model)"),
    ("json", "rows and JSON (model)"),
    ("generated", "rows and JSON (model)"),
    ("quire/", "the rest of Quire"),
    ("asyncio", EVENT_LOOP),
    ("uvloop", EVENT_LOOP),
    ("selectors", EVENT_LOOP),
    ("concurrent", EVENT_LOOP),
    ("threading", EVENT_LOOP),
    ("", "the rest of Python"),
]


def group_of(module: str) -> str:
    return next(group for start, group in GROUPS if module.startswith(start))


def grouped(profile: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Lane -> group -> share of the call's wall-clock time. Two lanes: the event loop's thread, and all others.

    A profiler does not see inside an event loop that is written in C: what the thread used beyond its functions is the
    loop's own, and what is left of the time is waiting.
    """
    lanes: dict[str, dict[str, float]] = {LOOP: {}, OTHERS: {}}
    for thread, modules in profile["threads"].items():
        lane = lanes[LOOP if thread == "MainThread" else OTHERS]
        for module, seconds in modules.items():
            if (group := group_of(module)) != WAITING:
                lane[group] = lane.get(group, 0.0) + seconds
    loop, seconds = lanes[LOOP], profile["seconds"]
    unseen = max(0.0, profile["loop_cpu"] - sum(loop.values()))
    loop[EVENT_LOOP] = loop.get(EVENT_LOOP, 0.0) + unseen
    loop[WAITING] = max(0.0, seconds - sum(loop.values()))
    return {
        lane: {group: spent / seconds for group, spent in groups.items() if spent > 0} for lane, groups in lanes.items()
    }


def section(results: dict[str, Any]) -> list[str]:
    """The part of the page; nothing when the run has no profile."""
    found = results.get("profiles") or []
    if not found:
        return []
    columns, cells = [], []
    for profile in found:
        label = results["peers"].get(profile["peer"], {}).get("label", profile["peer"])
        for lane, shares in grouped(profile).items():
            if sum(shares.values()) > 0.02:
                columns.append(f"{profile['workload']} {label}, {lane}")
                cells.append(shares)
    lines = [
        "## Where the time goes",
        "",
        words.WHERE,
        "| part | " + " | ".join(columns) + " |",
        "|---|" + "--:|" * len(columns),
    ]
    order = list(dict.fromkeys(group for _, group in GROUPS))
    present = [group for group in order if any(group in cell for cell in cells)]
    weight = {group: sum(cell.get(group, 0.0) for cell in cells) for group in present}
    for group in sorted(present, key=lambda group: (group == WAITING, -weight[group])):
        shown = [f"{100 * cell[group]:.0f} %" if group in cell else "-" for cell in cells]
        lines.append(f"| {group} | " + " | ".join(shown) + " |")
    lines += ["", "CPU without the profiler, median of the measurements above:", ""]
    lines += [f"- {text}" for text in _spent(results)]
    return [*lines, ""]


def _spent(results: dict[str, Any]) -> list[str]:
    """Cores in use: what a rate is bound by."""
    said = []
    for name, peer in results["peers"].items():
        for workload in ("W1", "W2"):
            runs = [
                run["figures"]
                for run in results["runs"]
                if run["peer"] == name and run["workload"] == workload and "cpu" in run.get("figures", {})
            ]
            if peer["kind"] != "quire" or not runs:
                continue
            busy = sorted(_cores(figures) for figures in runs)
            own, server = busy[len(busy) // 2]
            said.append(
                f"{workload}, {peer['label']}: Quire's process used {own:.2f} cores, the server behind it "
                f"{server:.2f}, of {results['machine'].get('cores', '?')}."
            )
    return said


def _cores(figures: dict[str, Any]) -> tuple[float, float]:
    seconds = figures.get("seconds") or figures.get("drain_seconds", 0.0) + figures.get("enqueue_seconds", 0.0)
    return figures["cpu"]["own"] / seconds, figures["cpu"]["server"] / seconds
