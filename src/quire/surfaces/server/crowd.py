"""Many callers, one ledger: what they do at the same time is one commit, and what they count is counted once.

A commit waits for the store's lock and its disk, whoever asks; while one is under way, the next gathers what comes in.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Sequence
from typing import Any

from quire.client.client import Client
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

    def __init__(self, client: Client) -> None:
        self._client = client
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
                    verdicts = await self._client.send(sends)
                except Exception as error:  # noqa: BLE001 - told to everyone who waits for it
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


class Crowd(Client):
    """A client as the server has it. Made of another client by ``crowd``; a copy shares what is shared."""

    committer: Committer
    counting: Counting
    sending: Sending
    defined: dict[str, tuple[float, dict[str, Any]]]

    async def counts(self) -> list[Count]:
        async with self.counting.lock:
            if self.clock.boottime() >= self.counting.good_until:
                begun = self.clock.boottime()
                self.counting.counts = await super().counts()
                took = self.clock.boottime() - begun
                old = 0.0 if took < 0.02 else min(OLDEST_SECONDS, 10 * took)
                self.counting.good_until = self.clock.boottime() + old
        return self.counting.counts

    async def definition(self, workflow: str) -> dict[str, Any]:
        now = self.clock.boottime()
        good_until, found = self.defined.get(workflow, (0.0, {}))
        if now >= good_until:
            found = await super().definition(workflow)
            self.defined[workflow] = (now + DEFINED_SECONDS, found)
        return found

    async def _send(self, sent: Send) -> Verdict:
        return await self.sending.submit(sent)

    async def _commit(self, changes: Sequence[Change]) -> list[Verdict]:
        return list(await asyncio.gather(*[self.committer.submit(change) for change in changes]))


def crowd(client: Client) -> Crowd:
    """The same client for many."""
    made = Crowd.__new__(Crowd)
    made.__dict__.update(copy.copy(client).__dict__)
    made.committer = Committer(client.ledger, client.clock, patience=10.0)
    made.counting = Counting()
    made.sending = Sending(client)
    made.defined = {}
    return made
