"""A process in which suspects of a worker run alone: Quire's own, in the world of the simulation."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from quire.client.client import Client
from quire.surfaces import apart
from quire.worker.apart import Spawn
from tests.simulation.real.broken import broken_as_asked
from tests.simulation.real.clock import OwnClock, clock_of
from tests.simulation.real.setup import Setup, ledger_at
from tests.simulation.real.site import RemoteSite
from tests.simulation.steps import workflows


def spawn_of(setup: Setup) -> Spawn:
    return Spawn(
        (sys.executable, "-m", "tests.simulation.real.alone"),
        {"given": list(setup._replace(faults=())), "path": sys.path},
    )


@asynccontextmanager
async def _client(setup: Mapping[str, Any]) -> AsyncIterator[Client]:
    given = Setup(*setup["given"])
    clock = clock_of(given.speed, given.beginning)
    site = RemoteSite(given.target, f"{given.name}+{os.getpid()}", clock, given.poisons)
    await site.open()
    own = OwnClock(clock, given.skew, given.rate)
    ledger = ledger_at(given.ledger, clock)
    async with Client(ledger, workflows=workflows(given.version), deps=site, clock=own) as client:
        yield client


if __name__ == "__main__":
    apart._client = _client
    with broken_as_asked():
        apart.main(*map(int, sys.argv[1:]))
