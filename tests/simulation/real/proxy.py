"""The line between one process and the store. It can be cut, go silent, lose an answer, or be slow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType

from quire.clock import Clock


class _Connection:
    def __init__(self, near: asyncio.StreamWriter, far: asyncio.StreamWriter) -> None:
        self.near, self.far = near, far
        #: What is said in this direction does not arrive.
        self.deaf_there = self.deaf_back = False

    def cut(self) -> None:
        for writer in (self.near, self.far):
            writer.transport.abort()


class Proxy:
    """Passes on what goes between a free port of this machine and the store."""

    def __init__(self, host: str, port: int, clock: Clock) -> None:
        self._target = (host, port)
        self._clock = clock
        self._connections: set[_Connection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._slow_until = 0.0
        self._silent = 0

    async def __aenter__(self) -> Proxy:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # -- what goes wrong -------------------------------------------------------------------------------------------

    def cut(self) -> None:
        """End all connections at once."""
        for connection in list(self._connections):
            connection.cut()

    def be_silent(self, span: float) -> None:
        """Nothing arrives for so long, in either direction, and nobody hears that; then all connections are cut."""
        self._silent += 1
        self._deaf(there=True)

        def over() -> None:
            self._silent -= 1
            self.cut()

        self._after(span, over)

    def lose_answers(self, span: float) -> None:
        """What is asked from now on arrives, its answer does not; after the span the connections are cut."""
        connections = self._deaf(there=False)

        def over() -> None:
            for connection in connections:
                connection.cut()

        self._after(span, over)

    def _deaf(self, *, there: bool) -> list[_Connection]:
        for connection in self._connections:
            connection.deaf_there = connection.deaf_there or there
            connection.deaf_back = True
        return list(self._connections)

    def be_slow(self, span: float) -> None:
        """What is said within this time arrives when it is over."""
        self._slow_until = max(self._slow_until, self._clock.boottime() + span)

    def _after(self, span: float, do: Callable[[], None]) -> None:
        async def waited() -> None:
            await self._clock.sleep(span)
            do()

        self._keep(asyncio.ensure_future(waited()))

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # -- passing on ------------------------------------------------------------------------------------------------

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, far = await asyncio.open_connection(*self._target)
        except OSError:
            writer.transport.abort()
            return
        connection = _Connection(writer, far)
        connection.deaf_there = connection.deaf_back = self._silent > 0
        self._connections.add(connection)
        ways = (
            asyncio.ensure_future(self._forward(reader, far, connection, back=False)),
            asyncio.ensure_future(self._forward(there, writer, connection, back=True)),
        )
        for way in ways:
            self._keep(way)
        await asyncio.wait(ways)
        self._connections.discard(connection)

    async def _forward(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, connection: _Connection, *, back: bool
    ) -> None:
        with suppress(ConnectionError):
            while data := await source.read(65536):
                while (wait := self._slow_until - self._clock.boottime()) > 0:
                    await self._clock.sleep(wait)
                if connection.deaf_back if back else connection.deaf_there:
                    continue
                sink.write(data)
                await sink.drain()
        with suppress(ConnectionError):
            sink.close()
