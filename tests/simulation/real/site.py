"""The world as a worker's process reaches it: over a socket, in lines of JSON."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import socket
from collections.abc import Iterable, Sequence
from typing import Any

from quire import Act, NotDone
from quire.clock import Clock
from tests.simulation.world import Deed, Site, Trouble


class RemoteSite(Site):
    """What is asked here is done by the target, whatever becomes of this process."""

    def __init__(self, path: str, process: str, clock: Clock, poisons: Iterable[Sequence[str]] = ()) -> None:
        self.poisons = {tuple(poison) for poison in poisons}
        self.path = path
        self.process = process
        self.clock = clock
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[Any]] = {}

    async def open(self) -> None:
        reader, self._writer = await asyncio.open_unix_connection(self.path)
        self._reading = asyncio.ensure_future(self._read(reader))

    async def _read(self, reader: asyncio.StreamReader) -> None:
        while line := await reader.readline():
            number, value, error, words = json.loads(line)
            answer = self._answers.pop(number, None)
            if answer is None or answer.done():
                continue
            if error:
                answer.set_exception(_raised(error, words))
            else:
                answer.set_result(value)
        os._exit(3)  # whoever started this process is gone

    def _send(self, do: str, *given: Any) -> int:
        number = next(self._numbers)
        self._writer.write(_line(number, do, self.process, given))
        return number

    async def ask(self, do: str, *given: Any) -> Any:
        number = self._send(do, *given)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        return await answer

    def now(self) -> float:
        return self.clock.now()

    async def rest(self, seconds: float) -> None:
        await self.clock.sleep(seconds)

    async def act(
        self, act: Act[Site], what: str, seconds: float, times: int, unclear: bool, *, fenced: bool = False
    ) -> str:
        deed = Deed(act.key, what, seconds, times, unclear, fenced)
        done: str = await self.ask("act", list(deed), self._until(act))
        return done

    def _until(self, act: Act[Site]) -> float:
        return self.clock.boottime() + act.time_left.total_seconds()

    def act_at_once(self, act: Act[Site], what: str) -> str:
        with socket.socket(socket.AF_UNIX) as own:
            own.connect(self.path)
            own.sendall(_line(0, "act", self.process, ([*Deed(act.key, what, 0.0)], self._until(act))))
            with own.makefile() as answers:
                _, value, error, words = json.loads(answers.readline())
        if error:
            raise _raised(error, words)
        return str(value)

    async def comes(self, record: str, visit: int, where: str) -> float:
        return float(await self.ask("comes", record, visit, where, self.now()))

    async def passes(self, record: str, visit: int, where: str, value: Any) -> None:
        if (record, where) in self.poisons and await self.ask("poison", record, where):
            os.kill(os.getpid(), signal.SIGKILL)
        self._send("passes", record, visit, where, value, self.now())

    async def probe(self, act: Act[Site]) -> str | NotDone:
        return await self.ask("probe", act.key) or NotDone()

    async def undo(self, act: Act[Site], what: str) -> None:
        await self.ask("undo", act.key, what)


def _line(number: int, do: str, process: str, given: Any) -> bytes:
    return json.dumps([number, do, process, *given]).encode() + b"\n"


def _raised(error: str, words: str) -> Exception:
    return NotDone(words) if error == "NotDone" else Trouble(words)
