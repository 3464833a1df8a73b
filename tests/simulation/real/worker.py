"""A worker's process: it lives until it is killed. A fault of the plan may strike at the nth thing it asks for."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from quire.client.client import Client
from quire.clock import Clock
from quire.errors import LedgerUnavailable
from quire.ledger.base import Ledger
from quire.model.row import replace
from quire.model.side import Worker as WorkerRow
from quire.testing.faults import PassingLedger
from quire.worker.worker import Worker
from tests.simulation.pace import PACE
from tests.simulation.plan import Fault
from tests.simulation.real.alone import spawn_of
from tests.simulation.real.broken import broken_as_asked
from tests.simulation.real.clock import OwnClock, clock_of
from tests.simulation.real.setup import Setup, ledger_at
from tests.simulation.real.site import RemoteSite
from tests.simulation.steps import workflows

T = TypeVar("T")


class Line(PassingLedger):
    """Counts what the worker asks of the store, and lets a fault strike."""

    def __init__(self, ledger: Ledger, site: RemoteSite, faults: tuple[Fault, ...]) -> None:
        super().__init__(ledger)
        self.site = site
        self.calls = 0
        self.traits = ledger.traits._replace(poll_seconds=ledger.traits.poll_seconds * PACE)
        self.faults = {fault.nth: fault for fault in faults}

    async def wait_for_work(self, timeout: float) -> None:
        await self.ledger.wait_for_work(timeout)

    async def open(self) -> None:
        await self.ledger.open()

    async def close(self) -> None:
        await self.ledger.close()

    async def _pass(self, verb: str, call: Callable[[], Awaitable[T]]) -> T:
        self.calls += 1
        fault = self.faults.pop(self.calls, None)
        if fault is None:
            return await call()
        if fault.kind.endswith("after"):
            answer = await call()
            await self._strikes(verb, fault)
            return answer
        await self._strikes(verb, fault)
        return await call()

    async def _strikes(self, verb: str, fault: Fault) -> None:
        await self.site.ask("strike", fault.kind, verb, fault.span)
        if fault.kind.startswith("dies"):
            os.kill(os.getpid(), signal.SIGKILL)
        elif fault.kind.startswith("freezes"):
            os.kill(os.getpid(), signal.SIGSTOP)


class SimulatedWorker(Worker):
    setup: Setup

    def row(self) -> WorkerRow:
        row = super().row()
        return replace(row, host=f"the machine of {self.setup.name}") if self.setup.elsewhere else row


async def work(setup: Setup) -> None:
    clock = clock_of(setup.speed, setup.beginning)
    site = RemoteSite(setup.target, setup.name, clock, setup.poisons)
    await site.open()
    line = Line(ledger_at(setup.ledger, clock), site, setup.faults)
    own = OwnClock(clock, setup.skew, setup.rate)
    client = Client(line, workflows=workflows(setup.version), deps=site, clock=own)
    spawn = spawn_of(setup) if setup.apart else None
    await until_it_answers(clock, client.__aenter__)
    await site.ask("ready")
    options = {"lease": setup.lease, "label": setup.name, "spawn": spawn}
    while True:
        worker = client.made_worker(SimulatedWorker, concurrency=5, **options)
        worker.setup = setup
        try:
            await worker.run()
        except LedgerUnavailable:
            await clock.sleep(1.0)


async def until_it_answers(clock: Clock, ask: Callable[[], Awaitable[object]]) -> None:
    while True:
        try:
            await ask()
        except LedgerUnavailable:
            await clock.sleep(1.0)
        else:
            return


def main(setup: Setup) -> None:
    """Work, in a process that was forked for it."""
    with Path(setup.log).open("a", encoding="utf-8") as log:
        os.dup2(log.fileno(), sys.stdout.fileno())
        os.dup2(log.fileno(), sys.stderr.fileno())
    logging.basicConfig(level=logging.WARNING, force=True, format=f"%(asctime)s {setup.name} %(name)s %(message)s")
    with broken_as_asked():
        asyncio.run(work(setup))
