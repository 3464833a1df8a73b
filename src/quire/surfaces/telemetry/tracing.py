"""Tracing: the log is followed and spans are sent behind the commits. One of many processes does it.

How far it has come lies in the ledger and moves after a collector took the spans: what is not sent now is sent later,
by whichever process. A collector that is away costs nothing but that.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from quire.client.client import Client
from quire.errors import LedgerUnavailable
from quire.ledger.sole import Sole, to_its_end
from quire.ledger.workers import alive
from quire.surfaces.telemetry.following import Following, Traced, last_seq
from quire.surfaces.telemetry.metrics import Sample, standing_samples

log = logging.getLogger("quire.telemetry")

PLACE = "telemetry"
LOOK_SECONDS = 2.0
_LONGEST = 60.0


class Sink(Protocol):
    def send(self, found: list[Traced]) -> bool: ...

    def stands(self, gauges: list[Sample]) -> None: ...


async def standing(client: Client) -> list[Sample]:
    """How the ledger stands, as samples."""
    found = await client.ledger.standing()
    live = [worker for worker in await client.workers() if alive(worker, found.now)]
    return list(standing_samples(await client.counts(), live, found))


class Tracing:
    def __init__(self, client: Client, sink: Sink) -> None:
        self.client = client
        self.sink = sink
        self._following = Following(client.ledger)
        self._place = Sole(client.ledger, PLACE, client.clock, {"value": None})
        self._seq: int | None = None

    async def run(self) -> None:
        usual = max(LOOK_SECONDS, self.client.ledger.traits.poll_seconds)
        pause = usual
        while True:
            arrived = await to_its_end(self.once())
            pause = usual if arrived else min(pause * 2, _LONGEST)
            await self.client.clock.sleep(pause)

    async def once(self) -> bool:
        """Send what became complete; False: something does not answer. It is tried again, and fails no record."""
        try:
            mine, kept = await self._place.take()
            if not mine:
                return True
            if kept is not None and kept["value"] is not None:
                self._seq = int(kept["value"])
            if self._seq is None:
                self._seq = await last_seq(self.client.ledger)  # what was before nobody asked for
                return await self._place.keep({"value": self._seq})
            return await self._caught_up(self._seq)
        except LedgerUnavailable:
            return False

    async def _caught_up(self, seq: int) -> bool:
        self.sink.stands(await standing(self.client))
        more = True
        while more:
            seen = await self._following.look(seq)
            if seen.seq == seq:
                return True
            if not await asyncio.to_thread(self.sink.send, seen.found):
                log.warning("%d spans are not sent: the collector does not take them; trying again", len(seen.found))
                return False
            self._seq = seq = seen.seq
            if not await self._place.keep({"value": seq}):
                return True  # another process goes on
            more = seen.more
        return True

    async def release(self) -> None:
        await self._place.release({"value": self._seq})
