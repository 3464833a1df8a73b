"""A machine with a worker's process on it, which is started, killed, frozen, and started again."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from quire.clock import SYSTEM
from tests.simulation.pace import PACE
from tests.simulation.real import worker
from tests.simulation.real.proxy import Proxy
from tests.simulation.real.setup import Setup

if TYPE_CHECKING:
    from tests.simulation.real.system import System

#: Processes are forked off one that has loaded everything already.
CONTEXT = multiprocessing.get_context("forkserver")

#: A process that ends by itself is started again after so long.
SYSTEMD_SECONDS = 5.0


class Machine:
    def __init__(self, system: System, name: str, version: int, proxy: Proxy) -> None:
        self.system = system
        self.name = name
        self.version = version
        self.proxy = proxy
        own = [fault for fault in system.plan.faults if fault.process == name]
        self.at_calls = [fault for fault in own if fault.nth]
        self.skew = sum(fault.span for fault in own if fault.kind == "clock is set") if system.store.skews else 0.0
        drift = sum(fault.span for fault in own if fault.kind == "clock drifts") if system.store.skews else 0.0
        self.rate = 1.0 + max(-0.03, min(0.03, drift))
        self.elsewhere = system.dice.random() < 0.5
        self.apart = system.dice.random() < 0.5
        self.starts = 0
        #: For so long the machine is off once its process has died.
        self.off_for = 0.0
        #: The process was told to die, or to freeze, and has not yet done it.
        self.expected = False
        self.freezing = False
        self.process: multiprocessing.process.BaseProcess | None = None
        self.ready = asyncio.Event()
        self._gone = asyncio.Event()
        self._living: asyncio.Task[None] | None = None

    def tell(self, what: str) -> None:
        self.system.strikes(f"{self.name} {what}")

    # -- its life --------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        self._living = asyncio.ensure_future(self._live())

    async def _live(self) -> None:
        """Start one process after the other."""
        while True:
            self._start()
            await self._gone.wait()
            self._reap()
            if self.system.ending:
                return
            if not self.expected:
                words = f"the process of {self.name} ended by itself: {self._last_words()}"
                self.system.history.differences.append(words)
                self.off_for = SYSTEMD_SECONDS * PACE
            self.expected = False
            await self.system.clock.sleep(self.off_for)

    def _start(self) -> None:
        system = self.system
        self.starts += 1
        self._gone = asyncio.Event()
        setup = Setup(
            f"{self.name}.{self.starts}",
            system.store.address(self.proxy.port),
            str(system.folder / "target"),
            self.version,
            system.lease,
            system.store.speed,
            system.store.beginning,
            self.elsewhere,
            self.apart,
            self.skew,
            self.rate,
            tuple(self.at_calls) if not system.quiet else (),
            tuple(system.poisons),
            str(self._log),
        )
        process = CONTEXT.Process(target=worker.main, args=(setup,), daemon=True)
        process.start()
        self.process = process
        asyncio.get_running_loop().add_reader(process.sentinel, self._gone.set)

    def _reap(self) -> None:
        process, self.process = self.process, None
        assert process is not None
        asyncio.get_running_loop().remove_reader(process.sentinel)
        process.join()
        process.close()

    @property
    def _log(self) -> Path:
        return self.system.folder / f"{self.name}.log"

    def _last_words(self) -> str:
        lines = self._log.read_text(encoding="utf-8").splitlines() if self._log.exists() else []
        return (lines or ["it said nothing"])[-1]

    @property
    def down(self) -> bool:
        return self.process is None or self.expected or self.freezing

    # -- faults ----------------------------------------------------------------------------------------------------

    def signal(self, number: signal.Signals) -> None:
        if self.process is not None and self.process.pid is not None:
            with suppress(ProcessLookupError):
                os.kill(self.process.pid, number)

    def die(self, span: float) -> None:
        if self.process is None or self.expected:
            return
        self.tell(f"is killed, and comes back after {span:g} s")
        self.expected, self.off_for = True, span
        self.signal(signal.SIGKILL)

    async def freeze(self, span: float) -> None:
        if self.down:
            return
        self.tell(f"freezes for {span:g} s")
        self.freezing = True
        self.signal(signal.SIGSTOP)
        await self.thaw(span)

    async def thaw(self, span: float) -> None:
        await self.system.clock.sleep(span)
        self.freezing = False
        self.signal(signal.SIGCONT)

    async def struck(self, kind: str, verb: str, span: float) -> None:
        """The process comes to the place where a fault strikes it. It waits for this answer."""
        self.at_calls = [fault for fault in self.at_calls if fault.kind != kind or fault.span != span]
        self.tell(f"asks for {verb!r}: {kind}, for {span:g} s")
        match kind:
            case "dies before" | "dies after":
                self.expected, self.off_for = True, span
            case "freezes before" | "freezes after":
                self.freezing = True
                self.system.later(self._stopped_and_thawed(span))
            case _:
                strike(self.proxy, kind, span)

    async def _stopped_and_thawed(self, span: float) -> None:
        process = self.process
        while process is not None and process is self.process and not _is_stopped(process.pid):
            await SYSTEM.sleep(0.01)
        await self.thaw(span)

    async def end(self) -> None:
        if self._living is None:
            return
        self.signal(signal.SIGKILL)
        if self.process is None:
            self._living.cancel()
        await asyncio.gather(self._living, return_exceptions=True)


def _is_stopped(pid: int | None) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] in "TZ"
    except OSError:
        return True


def strike(proxy: Proxy, kind: str, span: float) -> None:
    """What goes wrong on the line of one process."""
    match kind:
        case "request lost" | "half-open":
            proxy.be_silent(span)
        case "answer lost":
            proxy.lose_answers(span)
        case "slow":
            proxy.be_slow(span)
        case "cut":
            proxy.cut()
