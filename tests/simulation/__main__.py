"""``python -m tests.simulation``: run many seeds, tell the story of one, or look for each deliberate breakage."""

from __future__ import annotations

import argparse
import os
import re
import statistics
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from tests.simulation.breakages import BREAKAGES, Breakage
from tests.simulation.check import WINDOW
from tests.simulation.outcome import Outcome
from tests.simulation.reach import ALL, Cell
from tests.simulation.real import seeds as real
from tests.simulation.seeds import STORES, run, told

#: Seeds are given to the processes in lots of so many.
LOT = 5
PAGE = Path(__file__).parents[2] / "docs" / "simulation.md"


def outcomes(seeds: Iterable[int], store: str, breakage: str = "", processes: int = 0) -> Iterator[Outcome]:
    """What these seeds come to, in their order."""
    if store in real.PACES:
        assert isinstance(seeds, range)
        yield from real.outcomes(seeds, store)
        return
    count = processes or len(os.sched_getaffinity(0))
    if count == 1:
        yield from (run(seed, store, breakage) for seed in seeds)
        return
    with ProcessPoolExecutor(count) as pool:
        yield from pool.map(partial(run, store=store, breakage=breakage), seeds, chunksize=LOT)


def simulate(seeds: Sequence[int], store: str, processes: int, *, write: bool) -> int:
    """Run these seeds and tell the story of the first that shows a violation."""
    begun = time.monotonic()
    failed: list[Outcome] = []
    reached: set[Cell] = set()
    records = orders = faults = effects = counted = windows = 0
    for outcome in outcomes(seeds, store, processes=processes):
        records, orders = records + outcome.records, orders + outcome.orders
        faults, effects, counted = faults + outcome.faults, effects + outcome.effects, counted + outcome.counts
        if store in real.PACES and sys.stderr.isatty():
            print(f"seed {outcome.seed}: {outcome.records} records, {outcome.faults} faults", file=sys.stderr)
        reached |= outcome.cells
        windows += any(one.kind == WINDOW for one in outcome.violations)
        if any(one.kind != WINDOW for one in outcome.violations):
            failed.append(outcome)
            print(f"seed {outcome.seed}: {outcome.violations[0].sentence}", flush=True)
    took = time.monotonic() - begun
    ran = f"{len(seeds):,} seeds on {store} in {took:,.0f} s: {records:,} records, {orders:,} orders of people"
    enough = f"{counted:,} seeds had enough of each; {len(failed):,} show a violation"
    print(f"{ran}, {effects:,} effects, {faults:,} faults; {enough}.")
    if windows:
        print(f"{windows:,} seeds came through the window that is documented: a process woke past the time of its act.")
    print(f"{len(reached):,} of {len(ALL):,} cells of the table of orders were reached.")
    if missed := sorted({f"{verb}: {state.status}" for verb, state in ALL - reached}):
        print(f"Some were not reached of: {', '.join(missed)}.")
    if write:
        counts = (len(seeds), counted, records, orders, effects, faults, len(reached), len(failed))
        write_row("seeds", store, f"| {store} | " + " | ".join(f"{count:,}" for count in counts) + " |")
    if failed:
        print(_story(failed[0].seed, store))
    return 1 if failed else 0


def _story(seed: int, store: str) -> str:
    if store in real.PACES:
        return real.story(seed, store)
    return f"\nThe smallest plan found from seed {seed} that shows the same:\n\n{told(seed, store)}"


def find_breakages(names: Sequence[str], most: int, times: int, processes: int, *, write: bool) -> int:
    """Look for each breakage until it is found so many times: how many seeds it takes, by the median."""
    missed = 0
    for breakage in BREAKAGES:
        if names and breakage.name not in names:
            continue
        found, first = gaps(breakage, most, times, processes)
        if not found:
            missed += 1
            print(f"{breakage.name}: not found in {most:,} seeds", flush=True)
            continue
        median = statistics.median(found)
        print(f"{breakage.name}: seed {first.seed}, {median:g} seeds by the median: {first.violations[0].sentence}")
        if write:
            write_row("breakages", breakage.name, f"| {breakage.name} | {breakage.wrong} | {median:g} | {first.seed} |")
    return 1 if missed else 0


def gaps(breakage: Breakage, most: int, times: int, processes: int) -> tuple[list[int], Outcome]:
    """How many seeds it took each time until the breakage was found, and the first that found it."""
    found: list[int] = []
    first = last = None
    for outcome in outcomes(range(most), "memory", breakage.name, processes):
        last = outcome
        if outcome.violations:
            first = first or outcome
            found.append(outcome.seed + 1 - sum(found))
            if len(found) == times:
                break
    assert last is not None
    return found, first or last


def write_row(table: str, name: str, row: str) -> None:
    """Put a row into a table of the page, in the place of the row of this name."""
    text = PAGE.read_text(encoding="utf-8")
    begin, end = f"<!-- {table} -->\n", f"<!-- end of {table} -->"
    before, _, rest = text.partition(begin)
    rows, _, after = rest.partition(end)
    kept = [line for line in rows.splitlines() if not re.match(rf"\| {re.escape(name)} \|", line)]
    PAGE.write_text(before + begin + "\n".join([*kept, row]) + "\n" + end + after, encoding="utf-8")


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10_000, help="how many seeds (10000)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (0)")
    parser.add_argument("--store", choices=(*STORES, *real.PACES), default="memory")
    parser.add_argument("--processes", type=int, default=0, help="how many processes (one for each processor)")
    parser.add_argument("--tell", type=int, metavar="SEED", help="tell the story of one seed")
    parser.add_argument("--broken", action="store_true", help="look for each deliberate breakage")
    parser.add_argument("--times", type=int, default=5, help="look for each breakage until it is found so often (5)")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="only this breakage")
    parser.add_argument("--write", action="store_true", help="write the figures into docs/simulation.md")
    asked = parser.parse_args(given)
    if asked.tell is not None:
        real_one = asked.store in real.PACES
        print(real.story(asked.tell, asked.store) if real_one else told(asked.tell, asked.store, *asked.only[:1]))
        return 0
    if asked.broken:
        return find_breakages(asked.only, asked.seeds, asked.times, asked.processes, write=asked.write)
    seeds = range(asked.first, asked.first + asked.seeds)
    return simulate(seeds, asked.store, asked.processes, write=asked.write)


if __name__ == "__main__":
    sys.exit(main())
