"""Callers of the API on a fixed timetable, cheap enough to share a machine with what they measure.

A request is bytes that are made when it is due and one write; its answer is one look for the length. There is no HTTP
library and no task between them: a caller that costs as much as the server would be measured with it.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

#: Records that stand still and are read.
STANDING = 2000
#: Lines that are open before the first request is due; more are opened when all of them are busy.
LINES = 16


@dataclass
class Told:
    """What the callers saw."""

    seconds: float = 0.0
    #: Kind of request → how long each took, from the moment at which it was due.
    took: dict[str, list[float]] = field(default_factory=dict)
    #: When each was due, and answered.
    spans: list[tuple[float, float]] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    #: What went wrong, the first few.
    wrong: list[str] = field(default_factory=list)
    errors: int = 0
    streamed: int = 0
    cpu_seconds: float = 0.0

    @property
    def all(self) -> list[float]:
        return sorted(value for values in self.took.values() for value in values)


@dataclass(slots=True)
class Request:
    kind: str
    content: bytes
    #: The answers that are right.
    right: tuple[int, ...]
    due: float
    record_id: str = ""


class Line(asyncio.Protocol):
    """One connection that is kept alive, and the request that is under way on it."""

    def __init__(self, answered: Callable[[Line, Request, int, bytes], None], lost: Callable[[Line], None]) -> None:
        self.answered = answered
        self.lost = lost
        self.transport: asyncio.Transport | None = None
        self.request: Request | None = None
        self._got = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        if self.request is not None:
            transport.write(self.request.content)

    def send(self, request: Request) -> None:
        self.request = request
        if self.transport is not None:
            self.transport.write(request.content)

    def data_received(self, data: bytes) -> None:
        self._got = got = self._got + data if self._got else data
        end = got.find(b"\r\n\r\n")
        if end < 0:
            return
        at = got.find(b"content-length: ", 0, end)
        length = int(got[at + 16 : got.index(b"\r", at)]) if at >= 0 else 0
        if len(got) >= end + 4 + length:
            self._got = b""
            request, self.request = self.request, None
            if request is not None:
                self.answered(self, request, int(got[9:12]), got[end + 4 :])

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost(self)


class Callers:
    """A timetable of mixed requests over a few lines."""

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
        self.kinds = self.dice.choices([name for name, _ in self.MIX], [share for _, share in self.MIX], k=5000)
        self.free: list[Line] = []
        self.busy: set[Line] = set()
        self.waiting: list[str] = []
        self.number = 0
        self.ended = False
        #: After the last request: all are answered.
        self.idle = asyncio.Event()

    def one(self, place: int, due: float) -> Request:
        """The request of this place in the timetable."""
        kind = self.kinds[place % len(self.kinds)]
        some = f"stands-{self.dice.randrange(STANDING):05}"
        if kind in ("signal", "cancel") and not self.waiting:
            kind = "start"
        match kind:
            case "show":
                return self._get(kind, f"records/{some}", due)
            case "record list":
                return self._get(kind, f"records?workflow=order&limit=50&after={some}", due)
            case "why":
                return self._get(kind, f"records/{some}/why", due)
            case "start":
                self.number += 1
                name = f"o-{os.getpid()}-{self.number}"
                body = f'{{"workflow": "order", "data": {{"n": 1}}, "record_id": "{name}"}}'
                return self._post(kind, "records", body, due, (201,), name)
            case "signal":
                return self._post(kind, f"records/{self._some_order()}/signals/paid", '{"value": 1}', due, (200,))
            case "cancel":
                # It may have ended meanwhile, which is told as 409.
                body = '{"reason": "changed their mind"}'
                return self._post(kind, f"records/{self._some_order()}/cancel", body, due, (200, 409))
            case "priority":
                body = f'{{"priority": {self.dice.randrange(9)}}}'
                return self._post(kind, f"records/{some}/priority", body, due, (200,))
        return self._get(kind, kind, due)

    def _some_order(self) -> str:
        return self.waiting.pop(self.dice.randrange(len(self.waiting)))

    def _get(self, kind: str, path: str, due: float) -> Request:
        return Request(kind, f"GET /api/{path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n\r\n".encode(), (200,), due)

    def _post(self, kind: str, path: str, body: str, due: float, right: tuple[int, ...], name: str = "") -> Request:
        content = (
            f"POST /api/{path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}"
        )
        return Request(kind, content.encode(), right, due, name)

    async def run(self, length: float) -> Told:
        """Send for so long, and wait for what is under way."""
        loop = asyncio.get_running_loop()
        streams = [asyncio.ensure_future(self._listen()) for _ in range(self.streams)]
        for _ in range(LINES):
            line = Line(self._answered, self._lost)
            await loop.create_connection(lambda line=line: line, "127.0.0.1", self.port)  # type: ignore[misc]
            self.free.append(line)
        begun, used = loop.time() + 0.05, sum(os.times()[:2])
        for place in range(int(self.rate * length)):
            due = begun + place / self.rate
            if (wait := due - loop.time()) > 0:
                await asyncio.sleep(wait)
            else:
                await asyncio.sleep(0)  # late: what was answered meanwhile is read first
            self._send(self.one(place, due))
        self.ended = True
        if self.busy:
            with suppress(TimeoutError):
                await asyncio.wait_for(self.idle.wait(), 30)
        self.told.seconds = loop.time() - begun
        for line in self.busy:
            self._wrong(f"{line.request.kind if line.request else '?'}: no answer for half a minute")
        for stream in streams:
            stream.cancel()
        await asyncio.gather(*streams, return_exceptions=True)
        lines, self.free, self.busy = [*self.free, *self.busy], [], set()
        for line in lines:
            if line.transport is not None:
                line.transport.abort()
        self.told.cpu_seconds = sum(os.times()[:2]) - used
        return self.told

    def _send(self, request: Request) -> None:
        if self.free:
            line = self.free.pop()
            self.busy.add(line)
            line.send(request)
            return
        line = Line(self._answered, self._lost)
        line.request = request
        self.busy.add(line)
        connecting = asyncio.ensure_future(
            asyncio.get_running_loop().create_connection(lambda: line, "127.0.0.1", self.port)
        )
        connecting.add_done_callback(lambda done: self._lost(line) if done.exception() else None)

    def _answered(self, line: Line, request: Request, status: int, body: bytes) -> None:
        now = asyncio.get_running_loop().time()
        self.told.took.setdefault(request.kind, []).append(now - request.due)
        self.told.spans.append((request.due, now))
        self.told.statuses[status] += 1
        self.busy.discard(line)
        self.free.append(line)
        if self.ended and not self.busy:
            self.idle.set()
        if status not in request.right:
            self._wrong(f"{request.kind}: {status} {body[:200]!r}")
        elif request.kind == "start":
            self.waiting.append(request.record_id)

    def _lost(self, line: Line) -> None:
        """The server closes what stands idle for half a minute; that is no error unless an answer was due."""
        if line in self.free:
            self.free.remove(line)
        if line in self.busy:
            self.busy.discard(line)
            self._wrong(f"{line.request.kind if line.request else '?'}: the connection was lost")

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
