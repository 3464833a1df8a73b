"""The sole process of many that does something now: a lease in a setting of the ledger, beside what the process keeps.

The lease lies in the same setting as the kept fields, and both are written by compare-and-swap. So a process that was
overtaken cannot write them any more. A process that ends gives the lease back. Others take over when the ledger's clock
says that the lease ran out, or at once if the process of the holder is known to be dead.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Mapping
from typing import Any, NamedTuple, TypeVar

from quire.clock import Clock, new_id
from quire.ledger import process
from quire.ledger.base import Ledger
from quire.model.codec import dump, parse
from quire.model.side import Setting, Worker
from quire.rules.conditions import GRACE

T = TypeVar("T")

LEASE_SECONDS = 300.0
#: The holder writes within the first part of its lease, on a clock that nobody can set back, and renews it after the
#: second.
_SAFE, _FRESH = 2 / 3, 0.4
_LEASE = ("owner", "until", "host", "boot_id", "pid")


class Holder(NamedTuple):
    """The process that holds the lease; ``owner`` is empty if none does."""

    owner: str = ""
    until: float = 0.0
    host: str = ""
    boot_id: str = ""
    pid: int = 0

    def gone(self, now: float, lease: float) -> bool:
        """Return whether nobody holds the lease any more: it was given back, it ran out, or its holder is dead."""
        if not self.owner or self.until + GRACE * lease < now:
            return True
        return process.known_dead(Worker(self.owner, "", self.host, self.boot_id, self.pid, 0.0, 0.0, 0.0, None, ""))


def read(value: str) -> tuple[Holder, dict[str, Any]]:
    """Return the holder that a setting names, and the fields beside the lease."""
    kept: dict[str, Any] = parse(value)
    fields = {name: field for name, field in kept.items() if name not in _LEASE}
    holder = Holder(
        str(kept.get("owner", "")),
        float(kept.get("until", 0.0)),
        str(kept.get("host", "")),
        str(kept.get("boot_id", "")),
        int(kept.get("pid", 0)),
    )
    return holder, fields


async def holder_of(ledger: Ledger, name: str, lease: float = LEASE_SECONDS) -> Holder | None:
    """Return the process that holds this setting now; None: no process does."""
    kept = await ledger.setting(name)
    if kept is None:
        return None
    holder, _ = read(kept.value)
    return None if holder.gone(await ledger.now(), lease) else holder


class Sole:
    """One setting, as one process that wants to be the only one sees it."""

    def __init__(
        self, ledger: Ledger, name: str, clock: Clock, first: Mapping[str, Any], lease: float = LEASE_SECONDS
    ) -> None:
        self.name = name
        self.lease = lease
        self.owner = new_id("o_")
        #: The fields while nothing was kept yet.
        self._first = dict(first)
        self._ledger = ledger
        self._clock = clock
        #: How often this process took the lease from another one, or from nobody.
        self.takeovers = 0
        #: None: it is not known what the ledger has, because the answer to a write was lost.
        self._version: int | None = None
        self._begun = float("-inf")

    @property
    def held(self) -> bool:
        """Whether this process may write, as far as it knows."""
        return self._clock.boottime() < self._begun + self.lease * _SAFE

    @property
    def fading(self) -> bool:
        """Whether the lease wants to be renewed."""
        return self._clock.boottime() >= self._begun + self.lease * _FRESH

    async def take(self) -> tuple[bool, dict[str, Any] | None]:
        """Take the lease, or renew it. Return whether this process holds it, and the kept fields.

        The fields are None if they were not read: this process knows them, or another one holds the lease.
        """
        if self._version is not None and not self.fading:
            return True, None
        for _ in range(3):  # a write of this process whose answer was lost may land after the reading
            kept = await self._ledger.setting(self.name)
            holder, fields = read(kept.value) if kept is not None else (Holder(), self._first)
            if holder.owner != self.owner and not holder.gone(await self._ledger.now(), self.lease):
                return False, None
            self._version = kept.version if kept is not None else 0
            if await self.keep(fields):
                self.takeovers += holder.owner != self.owner
                return True, fields
        return False, None

    async def keep(self, fields: Mapping[str, Any]) -> bool:
        """Write the fields, and begin the lease anew. False: another process may write now."""
        return await self._put(fields, self.owner)

    async def release(self, fields: Mapping[str, Any]) -> None:
        """Write the fields a last time, and let another process take the lease. A process that has it keeps it."""
        if self._version is not None:
            await self._put(fields, "")
        self._lost()

    async def _put(self, fields: Mapping[str, Any], owner: str) -> bool:
        version = self._version if self._version is not None else await self._own_version()
        if version is None:
            return False
        self._version = None  # known again when the answer is there
        sent = self._clock.boottime()
        until = await self._ledger.now() + self.lease if owner else 0.0
        here = Holder(owner, until, process.host(), process.identity(), os.getpid())
        if not await self._ledger.keep(Setting(self.name, dump({**fields, **here._asdict()}), version)):
            self._lost()
            return False
        self._version, self._begun = version + 1, sent
        return True

    async def _own_version(self) -> int | None:
        """Return the version of the setting, if this process is still the one that it names."""
        kept = await self._ledger.setting(self.name)
        if kept is None or read(kept.value)[0].owner != self.owner:
            self._lost()
            return None
        return kept.version

    def _lost(self) -> None:
        self._version, self._begun = None, float("-inf")


async def to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Await it. If the caller is cancelled meanwhile, let it end first, so that nothing that it sent is sent again."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise
