"""A process for suspects as its parent sees it: two pipes, one line for each thing said, and how it ended.

The parent writes the setup, then one line for each record. The process writes ``ready``, ``alive`` as long as its event
loop turns, and ``left`` when the record has left it. The end of the parent's pipe tells it to end.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

READY, ALIVE, LEFT = "ready", "alive", "left"


class Ended(NamedTuple):
    """How a process ended."""

    text: str
    #: This process asked it to end, or ended it for no fault of its own.
    asked: bool


class Child:
    """One process. It must be made, and used, within one event loop."""

    def __init__(self, command: Sequence[str], setup: Mapping[str, Any]) -> None:
        reads, self._in = os.pipe()
        self._out, writes = os.pipe()
        try:
            self._process = subprocess.Popen(
                [*command, str(reads), str(writes)],
                stdin=subprocess.DEVNULL,
                pass_fds=(reads, writes),
                start_new_session=True,  # its parent passes Ctrl-C in the terminal on to it
            )
        except BaseException:
            os.close(self._in)
            os.close(self._out)
            raise
        finally:
            os.close(reads)
            os.close(writes)
        self.pid = self._process.pid
        #: It has served nobody yet: its end is the doing of the one that it serves.
        self.alone = True
        self.ended: Ended | None = None
        self._asked = False
        self._why = ""
        self._said: set[str] = set()
        self._rest = b""
        self._news = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._gone = threading.Thread(target=self._wait, name="quire-child", daemon=True)
        os.set_blocking(self._out, False)
        self._loop.add_reader(self._out, self._read)
        self.send(setup)
        self._gone.start()

    # -- what it says ------------------------------------------------------------------------------------------

    def _read(self) -> None:
        with suppress(BlockingIOError):
            while found := os.read(self._out, 65536):
                *lines, self._rest = (self._rest + found).split(b"\n")
                self._said.update(line.decode() for line in lines)
                self._news.set()
            self._loop.remove_reader(self._out)  # its end; how it ended becomes known by itself

    def _wait(self) -> None:
        code = self._process.wait()
        with suppress(RuntimeError):  # the loop has ended before it
            self._loop.call_soon_threadsafe(self._over, code)

    def _over(self, code: int) -> None:
        if self.ended is not None:
            return
        self._read()
        self._loop.remove_reader(self._out)
        os.close(self._out)
        self._close_in()
        self.ended = Ended(self._why or _described(code), self._asked)
        self._news.set()

    async def _heard(self, word: str, patience: float) -> bool | None:
        """Wait until it has said this (True) or ended (False); None: it said nothing at all for so long."""
        while True:
            if self.ended is None:
                self._read_now()
            if word in self._said:
                self._said.discard(word)
                return True
            if self.ended is not None:
                return False
            self._news.clear()
            try:
                await asyncio.wait_for(self._news.wait(), patience)
            except TimeoutError:
                self._read_now()
                if not self._news.is_set() and self.ended is None:
                    return None

    def _read_now(self) -> None:
        """What it said while this process could not listen counts."""
        if self.ended is None:
            self._read()

    # -- what it is sent ---------------------------------------------------------------------------------------

    def send(self, given: Mapping[str, Any]) -> None:
        """Write one line. A process that does not read it is one that does not answer."""
        line = json.dumps(given).encode() + b"\n"
        if self._in < 0:
            return
        own = os.dup(self._in)  # it stays open while a thread writes

        def write() -> None:
            left = memoryview(line)
            try:
                with suppress(OSError):  # the process has ended
                    while left:
                        left = left[os.write(own, left) :]
            finally:
                os.close(own)

        if len(line) <= 4096:  # what a pipe takes at once
            write()
        else:
            self._loop.run_in_executor(None, write)

    async def ready(self, patience: float) -> bool:
        """Return whether it has begun to work."""
        found = await self._heard(READY, patience)
        if found is None:
            self.kill(asked=True)
        return bool(found)

    async def served(self, patience: float) -> Ended | None:
        """Wait until the record has left it (None), or it ended; it is ended if it says nothing for so long."""
        self._said.discard(LEFT)
        found = await self._heard(LEFT, patience)
        if found is None:
            self.kill(why=f"it did not answer for {patience:g} s")
            await self.gone(None)
        if found:
            self.alone = False
            return None
        return self.ended

    def close(self, *, at_once: bool = False) -> None:
        """Ask it to end; ``at_once``: without the grace period."""
        if self.ended is not None:
            return
        self._asked = True
        if at_once:
            self._signal(signal.SIGTERM)
        self._close_in()

    def kill(self, *, asked: bool = False, why: str = "") -> None:
        if self.ended is None:
            self._asked |= asked
            self._why = self._why or why
            self._signal(signal.SIGKILL)

    async def gone(self, patience: float | None) -> None:
        """Wait for its end; after so long it is ended."""
        try:
            async with asyncio.timeout(patience):
                await self._until_ended()
        except TimeoutError:
            self.kill(asked=True)
            await self._until_ended()

    async def _until_ended(self) -> None:
        while self.ended is None:
            self._news.clear()
            await self._news.wait()

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError, OSError):
            self._process.send_signal(number)

    def _close_in(self) -> None:
        if self._in >= 0:
            os.close(self._in)
            self._in = -1


def _described(code: int) -> str:
    if code >= 0:
        return f"it ended with exit code {code}"
    try:
        return f"it was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"it was ended by signal {-code}"
