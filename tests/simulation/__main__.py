"""``python -m tests.simulation``: run many seeds, tell the story of one, or look for each deliberate breakage."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from tests.simulation.breakages import BREAKAGES
from tests.simulation.seeds import STORES, Outcome, run, told

#: Seeds are given to the processes in lots of so many.
LOT = 10


def outcomes(seeds: Iterable[int], store: str, breakage: str = "", processes: int = 0) -> Iterator[Outcome]:
    """What these seeds come to, in their order."""
    count = processes or len(os.sched_getaffinity(0))
    if count == 1:
        yield from (run(seed, store, breakage) for seed in seeds)
        return
    with ProcessPoolExecutor(count) as pool:
        yield from pool.map(partial(run, store=store, breakage=breakage), seeds, chunksize=LOT)


def simulate(seeds: Sequence[int], store: str, processes: int) -> int:
    """Run these seeds and tell the story of the first that shows a violation."""
    begun = time.monotonic()
    failed: list[Outcome] = []
    records = orders = faults = effects = counted = 0
    for outcome in outcomes(seeds, store, processes=processes):
        records, orders = records + outcome.records, orders + outcome.orders
        faults, effects, counted = faults + outcome.faults, effects + outcome.effects, counted + outcome.counts
        if outcome.violations:
            failed.append(outcome)
            print(f"seed {outcome.seed}: {outcome.violations[0].sentence}", flush=True)
    took = time.monotonic() - begun
    ran = (
        f"{len(seeds):,} seeds on {store} in {took:,.0f} s: {records:,} records, {orders:,} orders and looks of people"
    )
    enough = f"{counted:,} seeds had enough of each; {len(failed):,} show a violation"
    print(f"{ran}, {effects:,} effects, {faults:,} faults; {enough}.")
    if failed:
        print(f"\nThe smallest plan found from seed {failed[0].seed} that shows the same:\n")
        print(told(failed[0].seed, store))
    return 1 if failed else 0


def find_breakages(names: Sequence[str], most: int, processes: int) -> int:
    """Look for each breakage: the first seed that finds it."""
    missed = 0
    for breakage in BREAKAGES:
        if names and breakage.name not in names:
            continue
        found = next((one for one in outcomes(range(most), "memory", breakage.name, processes) if one.violations), None)
        missed += found is None
        by = f"seed {found.seed}: {found.violations[0].sentence}" if found else f"not found in {most:,} seeds"
        print(f"{breakage.name}: {by}", flush=True)
    return 1 if missed else 0


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10_000, help="how many seeds (10000)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (0)")
    parser.add_argument("--store", choices=STORES, default="memory")
    parser.add_argument("--processes", type=int, default=0, help="how many processes (one for each processor)")
    parser.add_argument("--tell", type=int, metavar="SEED", help="tell the story of one seed")
    parser.add_argument("--broken", action="store_true", help="look for each deliberate breakage")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="only this breakage")
    asked = parser.parse_args(given)
    if asked.tell is not None:
        print(told(asked.tell, asked.store, *asked.only[:1]))
        return 0
    if asked.broken:
        return find_breakages(asked.only, asked.seeds, asked.processes)
    return simulate(range(asked.first, asked.first + asked.seeds), asked.store, asked.processes)


if __name__ == "__main__":
    sys.exit(main())
