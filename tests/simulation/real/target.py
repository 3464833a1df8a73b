"""The target of all effects: it serves the world to the processes of workers, and outlives them all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.simulation.history import Happening
from tests.simulation.world import Deed, World

#: What a worker's process says of a fault that strikes it: its name, the kind, what it asks for, for how long.
Strike = Callable[[str, str, str, float], Awaitable[None]]
#: Whether a process, which has come to this place of a record's script, shall end there.
Poison = Callable[[str, str, str], Awaitable[bool]]


class Target:
    def __init__(self, world: World, path: Path, strike: Strike, poison: Poison) -> None:
        self.world = world
        self.path = path
        self._strike = strike
        self._poison = poison
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Target:
        self._server = await asyncio.start_unix_server(self._connected, self.path, limit=2**24)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _begin(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        with suppress(ConnectionError, asyncio.CancelledError):
            while line := await reader.readline():
                number, do, process, *given = json.loads(line)
                self._begin(self._serve(writer, number, do, process, given))
        self._tasks.discard(task)
        writer.close()

    async def _serve(self, writer: asyncio.StreamWriter, number: int, do: str, process: str, given: list[Any]) -> None:
        """Do what was asked, also if the process that asked is gone, and answer."""
        answer: list[Any]
        try:
            answer = [number, await self._done(do, process, given), "", ""]
        except Exception as error:  # noqa: BLE001 - it is raised where it was asked for
            answer = [number, None, type(error).__name__, str(error)]
        with suppress(ConnectionError, RuntimeError):
            writer.write(json.dumps(answer).encode() + b"\n")
            await writer.drain()

    async def _done(self, do: str, process: str, given: list[Any]) -> Any:
        world = self.world
        match do, given:
            case "act", [deed, until]:
                left = until - world.clock.boottime()
                return await world.act(Deed(*deed), max(0.0, left), process, late=left <= 0)
            case "probe", [key]:
                return await world.probe(key)
            case "undo", [key, what]:
                return await world.take_back(key, what, process)
            case "comes", [record, visit, where, at]:
                return world.came.setdefault((record, visit, where), at)
            case "passes", [record, visit, where, value, at]:
                world.happenings.append(Happening(at, "passes", record, visit, where, value, process=process))
                return None
            case "ready", []:
                return await self._strike(process, "ready", "", 0.0)
            case "poison", [record, where]:
                return await self._poison(process, record, where)
            case "strike", [kind, verb, span]:
                return await self._strike(process, kind, verb, span)
        raise ValueError(do)
