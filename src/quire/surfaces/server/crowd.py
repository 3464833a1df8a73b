"""Many callers, one ledger: what they do at the same time is one commit, and what they count is counted once.

A commit waits for the store's lock and its disk, whoever asks; while one is under way, the next gathers what comes in.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Sequence

from quire.model.change import Change, Count, Verdict
from quire.runtime.committer import Committer
from quire.surfaces.client import Client

#: Counting reads every record. It may take a tenth of the time: counts are as old as ten times what they took to count,
#: and never older than this.
OLDEST_SECONDS = 5.0


class Counting:
    """Counts that everybody shares. In a small ledger they are as fresh as the question."""

    def __init__(self) -> None:
        self.counts: list[Count] = []
        self.good_until = 0.0
        self.lock = asyncio.Lock()


class Crowd(Client):
    """A client as the server has it. Made of another client by ``crowd``; a copy shares what is shared."""

    committer: Committer
    counting: Counting

    async def counts(self) -> list[Count]:
        async with self.counting.lock:
            if self.clock.boottime() >= self.counting.good_until:
                begun = self.clock.boottime()
                self.counting.counts = await super().counts()
                took = self.clock.boottime() - begun
                old = 0.0 if took < 0.02 else min(OLDEST_SECONDS, 10 * took)
                self.counting.good_until = self.clock.boottime() + old
        return self.counting.counts

    async def _commit(self, changes: Sequence[Change]) -> list[Verdict]:
        return list(await asyncio.gather(*[self.committer.submit(change) for change in changes]))


def crowd(client: Client) -> Crowd:
    """The same client for many."""
    made = Crowd.__new__(Crowd)
    made.__dict__.update(copy.copy(client).__dict__)
    made.committer = Committer(client.ledger, client.clock, patience=10.0)
    made.counting = Counting()
    return made
