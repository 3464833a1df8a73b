"""Slices of work on call: how a server that is asleep between requests moves records (protocol 24)."""

from __future__ import annotations

from typing import Any, NamedTuple

from quire.client.client import Client
from quire.model.receipt import Keyring
from quire.upkeep import ticks as relay


class Ticking(NamedTuple):
    #: Knows the workflows.
    client: Client
    budget: float
    #: How often the periodic caller is expected.
    period: float = 60.0
    chains: int = 1

    @property
    def keyring(self) -> Keyring:
        assert self.client.keyring is not None
        return self.client.keyring

    async def slice(self, baton: relay.Baton | None) -> dict[str, Any]:
        """One slice; what it leaves behind wakes the next one by a call of our own address."""
        client = self.client

        async def worked(slot: relay.Slot) -> int:
            worker = client.worker(label=f"tick {slot.number}")
            count = 0

            def watch(_: Any) -> None:
                nonlocal count
                count += 1

            worker.watchers.append(watch)
            await worker.run(budget=self.budget, until_idle=True)
            return count

        url = f"{client.public_url.rstrip('/')}/tick" if client.public_url else None
        return await relay.slice_of(client, worked, self.budget, self.chains, url, baton, self.period)
