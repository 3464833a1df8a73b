"""Many callers, one ledger: what they do at the same time is one commit, and what they count is counted once.

A commit waits for the store's lock and its disk, whoever asks; while one is under way, the next gathers what comes in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from quire.client.client import Client
from quire.client.link import Link
from quire.model.change import Change, Count, Send, Verdict
from quire.worker.committer import Committer

#: Counting reads every record. It may take a tenth of the time: counts are as old as ten times what they took to count,
#: and never older than this.
OLDEST_SECONDS = 5.0
#: A definition changes when somebody deploys. Whoever starts a record in the second after it starts it as before.
DEFINED_SECONDS = 1.0


class Counting:
    """Counts that everybody shares. In a small ledger they are as fresh as the question."""

    def __init__(self) -> None:
        self.counts: list[Count] = []
        self.good_until = 0.0
        self.lock = asyncio.Lock()


class Sending:
    """Signals of all callers, together."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._waiting: list[tuple[Send, asyncio.Future[Verdict]]] = []
        self._task: asyncio.Task[None] | None = None

    def submit(self, sent: Send) -> asyncio.Future[Verdict]:
        future: asyncio.Future[Verdict] = asyncio.get_running_loop().create_future()
        self._waiting.append((sent, future))
        if self._task is None:
            self._task = asyncio.ensure_future(self._drain())
        return future

    async def _drain(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                sends = [sent for sent, _ in batch]
                verdicts: Sequence[Any]
                try:
                    verdicts = await self._link.send(sends)
                except Exception as error:  # noqa: BLE001 - raised for everyone who waits for it
                    verdicts = [error] * len(batch)
                for (_, future), verdict in zip(batch, verdicts, strict=True):
                    if future.done():
                        continue
                    if isinstance(verdict, Exception):
                        future.set_exception(verdict)
                    else:
                        future.set_result(verdict)
        finally:
            self._task = None


class CrowdedLink(Link):
    """A way that many callers share. Made of another one; a copy for another person shares what is shared."""

    def __init__(self, link: Link) -> None:
        super().__init__(link.ledger, link.clock, link.who, link.groups)
        self.registry = link.registry
        self.keyring = link.keyring
        self.awaited = link.awaited
        self._link = link
        self._committer = Committer(link.ledger, link.clock, patience=10.0)
        self._counting = Counting()
        self._sending = Sending(link)
        self._defined: dict[str, tuple[float, dict[str, Any]]] = {}

    async def counts(self) -> list[Count]:
        counting = self._counting
        async with counting.lock:
            if self.clock.boottime() >= counting.good_until:
                begun = self.clock.boottime()
                counting.counts = await self._link.counts()
                took = self.clock.boottime() - begun
                old = 0.0 if took < 0.02 else min(OLDEST_SECONDS, 10 * took)
                counting.good_until = self.clock.boottime() + old
        return counting.counts

    async def definition(self, workflow: str) -> dict[str, Any]:
        now = self.clock.boottime()
        good_until, found = self._defined.get(workflow, (0.0, {}))
        if now >= good_until:
            found = await self._link.definition(workflow)
            self._defined[workflow] = (now + DEFINED_SECONDS, found)
        return found

    async def send(self, sends: Sequence[Send]) -> list[Verdict]:
        return list(await asyncio.gather(*[self._sending.submit(sent) for sent in sends]))

    async def commit(self, changes: Sequence[Change]) -> list[Verdict]:
        return list(await asyncio.gather(*[self._committer.submit(change) for change in changes]))


def crowd(client: Client) -> Client:
    """Return the same client for many callers."""
    return client.over(CrowdedLink(client.link))
