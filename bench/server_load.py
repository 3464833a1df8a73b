"""The API under load: mixed reads and acts at a steady rate while workers run flat out.

    .venv/bin/python bench/server_load.py [--ledger URL] [--seconds 60] [--rate 200] [--workers 4]

Workers, server and callers are processes of their own. Requests leave on a fixed timetable, whatever the answers do,
and are timed from the moment at which they were due, so a server that stalls cannot hide it. The workers' speed (steps
a second) is taken before, during and after. What is printed is what docs/server.md cites.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import signal
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from quire import Run, Workflow
from quire.surfaces.client import Client

SPAWN = multiprocessing.get_context("spawn")
#: Records that go round for ever: the workers never run out of work.
ROUNDS = 200
#: Records that stand still and are read.
STANDING = 2000


def workflows(done: Any = None, takes: float = 0.0) -> list[Workflow[Any, Any, Any]]:
    """``round`` goes from step to step for ever, each taking so long; ``order`` waits for a signal and ends."""

    async def worked() -> None:
        if takes:
            await asyncio.sleep(takes)
        count()

    def count() -> None:
        if done is not None:
            with done.get_lock():
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
    """A worker, until SIGTERM."""

    async def main() -> None:
        async with Client(url, workflows=workflows(done, takes)) as client:
            worker = client.worker(concurrency=25)
            worker.grace = 1.0
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.stop)
            await worker.run()

    asyncio.run(main())


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

    asyncio.run(main())


def call(port: int, rate: float, length: float, streams: int, told: Any) -> None:
    """The callers: requests on a timetable for so long."""
    told.put(asyncio.run(Callers(port, rate, streams).run(length)))


@contextmanager
def process(target: Any, *args: Any) -> Iterator[Any]:
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


# -- the callers -----------------------------------------------------------------------------------------------


@dataclass
class Told:
    """What the callers saw."""

    seconds: float = 0.0
    late: float = 0.0
    #: Kind of request → how long each took, from the moment at which it was due.
    took: dict[str, list[float]] = field(default_factory=dict)
    statuses: Counter[int] = field(default_factory=Counter)
    #: What went wrong, the first few.
    wrong: list[str] = field(default_factory=list)
    errors: int = 0
    streamed: int = 0

    @property
    def all(self) -> list[float]:
        return sorted(value for values in self.took.values() for value in values)


class Line:
    """One connection that is kept alive; a small HTTP client that costs little."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.reader: asyncio.StreamReader | None = None
        self.writer: asyncio.StreamWriter | None = None

    async def open(self) -> None:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)

    async def request(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        if self.writer is None or self.reader is None or self.reader.at_eof() or self.writer.is_closing():
            # The server closes what stands idle for half a minute; a client looks before it uses a line again.
            self.close()
            await self.open()
        assert self.reader is not None and self.writer is not None
        content = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nContent-Length: {len(content)}\r\n"
        if body is not None:
            head += "Content-Type: application/json\r\n"
        self.writer.write(head.encode() + b"\r\n" + content)
        top = await self.reader.readuntil(b"\r\n\r\n")
        length = int(top.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or b"0")
        return int(top[9:12]), await self.reader.readexactly(length)

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()


class Callers:
    """A timetable of mixed requests over a few connections."""

    #: Of a hundred requests; two of three read.
    MIX = (
        ("show", 20),
        ("record list", 14),
        ("why", 8),
        ("counts", 6),
        ("approvals", 5),
        ("errors", 4),
        ("workflows", 4),
        ("standing", 4),
        ("start", 15),
        ("signal", 10),
        ("priority", 6),
        ("cancel", 4),
    )

    def __init__(self, port: int, rate: float, streams: int) -> None:
        self.port = port
        self.rate = rate
        self.streams = streams
        self.told = Told()
        self.dice = random.Random(7)
        self.free: asyncio.LifoQueue[Line] = asyncio.LifoQueue()
        self.waiting: list[str] = []
        self.number = 0

    def one(self) -> tuple[str, str, str, Any, tuple[int, ...]]:
        """The next request: kind, method, path, body, and the answers that are right."""
        [kind] = self.dice.choices([name for name, _ in self.MIX], [share for _, share in self.MIX])
        some = f"stands-{self.dice.randrange(STANDING):05}"
        if kind in ("signal", "cancel") and not self.waiting:
            kind = "start"
        match kind:
            case "show":
                return kind, "GET", f"/api/records/{some}", None, (200,)
            case "record list":
                return kind, "GET", f"/api/records?workflow=order&limit=50&after={some}", None, (200,)
            case "why":
                return kind, "GET", f"/api/records/{some}/why", None, (200,)
            case "start":
                self.number += 1
                name = f"o-{os.getpid()}-{self.number}"
                return kind, "POST", "/api/records", {"workflow": "order", "data": {"n": 1}, "record_id": name}, (201,)
            case "signal":
                name = self.waiting.pop(self.dice.randrange(len(self.waiting)))
                return kind, "POST", f"/api/records/{name}/signals/paid", {"value": 1}, (200,)
            case "cancel":
                # It may have ended meanwhile, which is told as 409.
                name = self.waiting.pop(self.dice.randrange(len(self.waiting)))
                return kind, "POST", f"/api/records/{name}/cancel", {"reason": "changed their mind"}, (200, 409)
            case "priority":
                return kind, "POST", f"/api/records/{some}/priority", {"priority": self.dice.randrange(9)}, (200,)
        return kind, "GET", f"/api/{kind}", None, (200,)

    async def run(self, length: float) -> Told:
        streams = [asyncio.ensure_future(self._listen()) for _ in range(self.streams)]
        for _ in range(16):
            line = Line(self.port)
            await line.open()
            self.free.put_nowait(line)
        loop, under_way = asyncio.get_running_loop(), set()
        begun = loop.time()
        for place in range(int(self.rate * length)):
            due = begun + place / self.rate
            wait = due - loop.time()
            if wait > 0:
                await asyncio.sleep(wait)
            task = asyncio.ensure_future(self._send(due))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
        if under_way:
            await asyncio.wait(under_way, timeout=30)
        self.told.seconds = loop.time() - begun
        self.told.late = max(0.0, self.told.seconds - length)
        for stream in streams:
            stream.cancel()
        await asyncio.gather(*streams, return_exceptions=True)
        while not self.free.empty():
            self.free.get_nowait().close()
        return self.told

    async def _send(self, due: float) -> None:
        line = self.free.get_nowait() if not self.free.empty() else Line(self.port)
        kind, method, path, body, right = self.one()
        try:
            status, answer = await line.request(method, path, body)
        except (OSError, EOFError, ValueError) as error:
            self._wrong(f"{kind}: {type(error).__name__}: {error}")
            line.close()
            return
        self.free.put_nowait(line)
        self.told.took.setdefault(kind, []).append(asyncio.get_running_loop().time() - due)
        self.told.statuses[status] += 1
        if status not in right:
            self._wrong(f"{kind}: {status} {answer[:200]!r}")
        elif kind == "start":
            self.waiting.append(body["record_id"])

    def _wrong(self, text: str) -> None:
        self.told.errors += 1
        if len(self.told.wrong) < 10:
            self.told.wrong.append(text)

    async def _listen(self) -> None:
        """Somebody has the dashboard open."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(f"GET /api/stream HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n\r\n".encode())
            while got := await reader.read(65536):
                self.told.streamed += len(got)
        finally:
            writer.close()


# -- measuring -------------------------------------------------------------------------------------------------


def share(values: list[float], part: float) -> float:
    return values[min(len(values) - 1, int(len(values) * part))] if values else 0.0


async def seed(url: str) -> None:
    async with Client(url, workflows=workflows()) as client:
        names = [f"stands-{n:05}" for n in range(STANDING)]
        await client.start_many("order", [{"n": n} for n in range(STANDING)], ids=names)
        await client.start_many("round", [{}] * ROUNDS, ids=[f"round-{n:03}" for n in range(ROUNDS)])


def pace(done: Any, length: float) -> float:
    """Steps a second over so long."""
    before, begun = done.value, time.monotonic()
    time.sleep(length)
    return float(done.value - before) / (time.monotonic() - begun)


def measure(
    url: str, seconds: float, rate: float, workers: int, takes: float = 0.0, streams: int = 1
) -> dict[str, Any]:
    """One run; its figures."""
    asyncio.run(seed(url))
    done, port, told = SPAWN.Value("q", 0), SPAWN.Value("i", 0), SPAWN.Queue()
    quiet = max(2.0, seconds / 4)
    with process(serve_it, url, port) as server:
        held = [process(work, url, done, takes) for _ in range(workers)]
        for one in held:
            one.__enter__()
        try:
            # The standing records come to their waits first; then the workers only go round.
            while port.value == 0 or (workers and done.value < STANDING + 2 * ROUNDS):
                time.sleep(0.05)
            before = pace(done, quiet)
            used, steps, begun = cpu_seconds(server.pid), done.value, time.monotonic()
            with process(call, port.value, rate, seconds, streams, told) as caller:
                answer: Told = told.get(timeout=seconds + 90)
                caller_cpu = cpu_seconds(caller.pid)
            took = time.monotonic() - begun
            during = (done.value - steps) / took
            server_cpu = (cpu_seconds(server.pid) - used) / took
            after = pace(done, quiet)
        finally:
            for one in held:
                one.__exit__(None, None, None)
    alone = statistics.mean([before, after]) or 1.0
    return {
        "requests": len(answer.all),
        "rate": round(len(answer.all) / answer.seconds, 1),
        "errors": answer.errors,
        "wrong": answer.wrong,
        "statuses": dict(answer.statuses),
        "p50_ms": round(share(answer.all, 0.5) * 1000, 1),
        "p90_ms": round(share(answer.all, 0.9) * 1000, 1),
        "p99_ms": round(share(answer.all, 0.99) * 1000, 1),
        "most_ms": round(max(answer.all, default=0.0) * 1000, 1),
        "by_kind_p50_ms": {
            kind: round(statistics.median(took) * 1000, 1) for kind, took in sorted(answer.took.items())
        },
        "server_cores": round(server_cpu, 2),
        "callers_cores": round(caller_cpu / took, 2),
        "steps_alone": round(alone),
        "steps_under_load": round(during),
        "workers_lost": round(1 - during / alone, 3),
        "streamed_bytes": answer.streamed,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ledger", default="", help="a ledger of its own in a scratch directory, if left out")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rate", type=float, default=200.0)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--step-seconds", type=float, default=0.0, help="how long a step waits; 0: workers flat out")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="quire-load-") as folder:
        url = given.ledger or f"sqlite:///{folder}/ledger.db"
        figures = measure(url, given.seconds, given.rate, given.workers, given.step_seconds)
    figures["cores"] = os.cpu_count()
    figures["load_average"] = os.getloadavg()[0]
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
