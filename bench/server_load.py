"""The API under load: mixed reads and acts at a steady rate while workers run.

    .venv/bin/python bench/server_load.py [--seconds 60] [--rate 200] [--workers 4] [--ledger sqlite|postgres|URL] ...

Four runs of a minute, each after a few seconds that are not counted, seven minutes in all (more if the machine is
disturbed): SQLite and PostgreSQL, with steps of 0.2 s and with steps that take no time. Workers, server and callers are
processes of their own; PostgreSQL flushes every commit. Requests leave on a fixed timetable, whatever the answers do,
and are timed from the moment at which they were due, so a server that stalls cannot hide it. The workers' speed, in
steps a second, is taken before, during and after.
*Stolen* is the processors' time that the machine's host gave to other machines; *without pauses* is of the requests
that no such moment touched (``pauses``). What is printed is the table of docs/server.md; ``--json`` prints all figures.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import signal
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal

from callers import STANDING, Callers, Told
from pauses import untouched, watched

from quire import Run, Workflow
from quire.client.client import Client
from quire.ledger import process

SPAWN = multiprocessing.get_context("spawn")
#: Records that go round for ever: the workers never run out of work.
ROUNDS = 200
#: How long a step takes in the two kinds of runs: it waits for something, or the workers run flat out.
KINDS = {"steps of 0.2 s": 0.2, "steps that take no time": 0.0}
#: A server that has just begun opens its connections and makes its plans; that is not counted.
WARM_UP_SECONDS = 5.0
#: With more of the processors' time stolen a run says little: it is repeated, so often at the most.
DISTURBED = 0.03
TRIES = 3
LEDGERS = {"sqlite": "SQLite", "postgres": "PostgreSQL"}


def workflows(done: Any = None, takes: float = 0.0) -> list[Workflow[Any, Any, Any]]:
    """``round`` goes from step to step for ever, each taking so long; ``order`` waits for a signal and ends."""

    async def worked() -> None:
        if takes:
            await asyncio.sleep(takes)
        count()

    def count() -> None:
        if done is not None:
            done.value += 1

    rounds: Workflow[dict[str, Any], Any, None] = Workflow("round")

    @rounds.step(then="there")
    async def here(run: Run[dict[str, Any]]) -> None:
        await worked()

    @rounds.step(then=["here", "home"])
    async def there(run: Run[dict[str, Any]]) -> Literal["here", "home"]:
        await worked()
        return "here"

    @rounds.step
    async def home(run: Run[dict[str, Any]]) -> None:
        """Where nobody gets to: a machine must have an end."""

    order: Workflow[dict[str, Any], Any, None] = Workflow("order")

    @order.step
    async def wait(run: Run[dict[str, Any]]) -> Any:
        count()
        return await run.wait("paid", type=Any)

    return [rounds, order]


# -- the processes ---------------------------------------------------------------------------------------------


def work(url: str, done: Any, takes: float) -> None:
    """A worker, until SIGTERM; it gives way as ``quire worker`` does."""

    async def main() -> None:
        async with Client(url, workflows=workflows(done, takes)) as client:
            worker = client.worker(concurrency=25)
            worker.grace = 1.0
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.stop)
            await worker.run()

    with process.giving_way():
        process.run(main())


def serve_it(url: str, port: Any) -> None:
    """The server, until SIGTERM."""
    from quire.surfaces.server import serve

    async def main() -> None:
        loop = asyncio.get_running_loop()
        async with Client(url) as client:
            started: asyncio.Future[int] = loop.create_future()
            serving = asyncio.ensure_future(serve(client, port=0, started=started))
            loop.add_signal_handler(signal.SIGTERM, serving.cancel)
            port.value = await started
            await asyncio.gather(serving, return_exceptions=True)

    process.run(main())


def call(port: int, rate: float, length: float, streams: int, told: Any) -> None:
    """The callers: requests on a timetable for so long."""
    told.put(asyncio.run(Callers(port, rate, streams).run(length)))


@contextmanager
def beside(target: Any, *args: Any) -> Iterator[Any]:
    """A process of its own."""
    made = SPAWN.Process(target=target, args=args)
    made.start()
    try:
        yield made
    finally:
        made.terminate()
        made.join(20)
        if made.is_alive():
            made.kill()
            made.join(5)


def cpu_seconds(pid: int) -> float:
    """What a process has used so far, by /proc."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def machine_time() -> tuple[int, int]:
    """Of all processors: the time that passed, and how much of it the host took for somebody else."""
    counted = [int(value) for value in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return sum(counted), counted[7]


# -- measuring -------------------------------------------------------------------------------------------------


def share(values: list[float], part: float) -> float:
    return values[min(len(values) - 1, int(len(values) * part))] if values else 0.0


async def seed(url: str) -> None:
    async with Client(url, workflows=workflows()) as client:
        names = [f"stands-{n:05}" for n in range(STANDING)]
        await client.start_many("order", [{"n": n} for n in range(STANDING)], ids=names)
        await client.start_many("round", [{}] * ROUNDS, ids=[f"round-{n:03}" for n in range(ROUNDS)])


def total(done: Sequence[Any]) -> int:
    return sum(one.value for one in done)


def pace(done: Sequence[Any], length: float) -> float:
    """Steps a second over so long."""
    before, begun = total(done), time.monotonic()
    time.sleep(length)
    return (total(done) - before) / (time.monotonic() - begun)


def measure(
    url: str, seconds: float, rate: float, workers: int, takes: float = 0.0, streams: int = 1
) -> dict[str, Any]:
    """One run; its figures."""
    asyncio.run(seed(url))
    port, told = SPAWN.Value("i", 0), SPAWN.Queue()
    # One counter for each: a lock that they share would be one more thing to wait for.
    done = [SPAWN.Value("q", 0, lock=False) for _ in range(workers)]
    quiet = max(2.0, seconds / 8)
    with ExitStack() as running:
        server = running.enter_context(beside(serve_it, url, port))
        held = [running.enter_context(beside(work, url, one, takes)) for one in done]
        # The standing records come to their waits first; then the workers only go round.
        while port.value == 0 or (workers and total(done) < STANDING + 2 * ROUNDS):
            time.sleep(0.05)
        with beside(call, port.value, rate, WARM_UP_SECONDS, streams, told) as warming:
            told.get(timeout=WARM_UP_SECONDS + 90)
            warming.join(20)  # one that is ended while it still holds the queue would keep it
        before = pace(done, quiet)
        processes = [server, *held]
        used = [cpu_seconds(one.pid) for one in processes]
        passed, stolen = machine_time()
        steps, begun = total(done), time.monotonic()
        with watched(SPAWN) as pauses:
            running.enter_context(beside(call, port.value, rate, seconds, streams, told))
            answer: Told = told.get(timeout=seconds + 90)
        took = time.monotonic() - begun
        during = (total(done) - steps) / took
        passed, stolen = (now - then for now, then in zip(machine_time(), (passed, stolen), strict=True))
        server_cpu, *worker_cpu = [
            (cpu_seconds(one.pid) - before) / took for one, before in zip(processes, used, strict=True)
        ]
        after = pace(done, quiet)
    alone = statistics.mean([before, after]) or 1.0
    p50, p99 = share(answer.all, 0.5), share(answer.all, 0.99)
    quiet = [] if pauses.hidden else untouched(answer.spans, pauses.spans)
    return {
        "requests": len(answer.all),
        "rate": round(len(answer.all) / answer.seconds, 1),
        "errors": answer.errors,
        "wrong": answer.wrong,
        "statuses": dict(answer.statuses),
        "p50_ms": round(p50 * 1000, 1),
        "p90_ms": round(share(answer.all, 0.9) * 1000, 1),
        "p99_ms": round(p99 * 1000, 1),
        "most_ms": round(max(answer.all, default=0.0) * 1000, 1),
        "p99_by_p50": round(p99 / p50, 1) if p50 else 0.0,
        "quiet_requests": len(quiet),
        "quiet_p50_ms": round(share(quiet, 0.5) * 1000, 1),
        "quiet_p99_ms": round(share(quiet, 0.99) * 1000, 1),
        "by_kind_p50_ms": {kind: round(share(sorted(all_), 0.5) * 1000, 1) for kind, all_ in answer.took.items()},
        "by_kind_p99_ms": {kind: round(share(sorted(all_), 0.99) * 1000, 1) for kind, all_ in answer.took.items()},
        "stolen": round(stolen / passed, 3) if passed else 0.0,
        "server_cores": round(server_cpu, 2),
        "callers_cores": round(answer.cpu_seconds / took, 2),
        "workers_cores": round(sum(worker_cpu), 2),
        "steps_alone": round(alone),
        "steps_under_load": round(during),
        "workers_lost": round(1 - during / alone, 3),
        "streamed_bytes": answer.streamed,
    }


def undisturbed(name: str, *told: Any) -> dict[str, Any]:
    """The figures of the run of which the host took the least; the first that it hardly disturbed is the last."""
    tried: list[dict[str, Any]] = []
    while len(tried) < TRIES and all(found["stolen"] > DISTURBED for found in tried):
        with ledger(name) as url:
            tried.append(measure(url, *told))
    return min(tried, key=lambda found: found["stolen"]) | {"tries": len(tried)}


# -- telling ---------------------------------------------------------------------------------------------------

HEAD = """\
| ledger, {workers} workers, {seconds:.0f} s | answered | errors | p50 | p90 | p99 | p99 ÷ p50 | server | \
steps a second, alone → under load | stolen | without pauses: p50, p99 |
|---|---|---|---|---|---|---|---|---|---|---|"""


def row(name: str, found: dict[str, Any]) -> str:
    """A row of the table in docs/server.md."""
    cells = [
        name,
        f"{found['rate']:.0f}/s",
        f"{found['errors']} of {found['requests'] + found['errors']:,}",
        *(_ms(found[f"{part}_ms"]) for part in ("p50", "p90", "p99")),
        f"{found['p99_by_p50']:.1f}",
        f"{found['server_cores']:.2f} of a core",
        f"{found['steps_alone']:,} → {found['steps_under_load']:,} ({-found['workers_lost']:+.0%})".replace("-", "−"),
        f"{found['stolen']:.0%}" + (f", try {found['tries']}" if found["tries"] > 1 else ""),
        _quiet(found),
    ]
    return f"| {' | '.join(cells)} |"


def _quiet(found: dict[str, Any]) -> str:
    p50, p99, count = (found[f"quiet_{name}"] for name in ("p50_ms", "p99_ms", "requests"))
    return f"{_ms(p50)}, {_ms(p99)}: {p99 / p50:.1f} ({count:,})" if count else "not seen"


def _ms(value: float) -> str:
    return f"{value / 1000:.1f} s" if value >= 1000 else f"{value:.0f} ms" if value >= 10 else f"{value:.1f} ms"


@contextmanager
def ledger(name: str) -> Iterator[str]:
    """A new ledger of this kind, or the one at this address."""
    if name == "postgres":
        from quire.testing.postgres import PostgresServer

        with PostgresServer(durable=True) as server:
            yield server.create_database()
    elif name == "sqlite":
        with tempfile.TemporaryDirectory(prefix="quire-load-") as folder:
            yield f"sqlite:///{folder}/ledger.db"
    else:
        yield name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ledger", action="append", help="sqlite, postgres, or the address of an empty ledger")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rate", type=float, default=200.0)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--step-seconds", type=float, action="append", help="how long a step waits; 0: flat out")
    parser.add_argument("--json", action="store_true", help="all figures, as JSON")
    given = parser.parse_args()
    kinds = KINDS
    if given.step_seconds is not None:
        kinds = {f"steps of {takes:g} s" if takes else "steps that take no time": takes for takes in given.step_seconds}
    figures = {}
    if not given.json:
        print(HEAD.format(workers=given.workers, seconds=given.seconds), flush=True)
    for name in given.ledger or list(LEDGERS):
        for kind, takes in kinds.items():
            found = undisturbed(name, given.seconds, given.rate, given.workers, takes)
            called = f"{LEDGERS.get(name, 'ledger')}, {kind}"
            figures[called] = found | {"load_average": os.getloadavg()[0], "cores": os.cpu_count()}
            if not given.json:
                print(row(called, found), *found["wrong"], sep="\n  wrong: ", flush=True)
    if given.json:
        print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
