"""A setting of the ledger that one process at a time may write: of many beside each other, one does the work.

The lease lies in the same setting as the value, so whoever was overtaken cannot write it any more. Whoever ends
gives it back; that of a process that died is taken at once where its death can be seen, or when it has run out.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine
from typing import Any, TypeVar

from quire.client.client import Client
from quire.clock import new_id
from quire.folder.cursor import Holder
from quire.ledger import process
from quire.model.codec import dump, parse
from quire.model.side import Setting

LEASE_SECONDS = 300.0

T = TypeVar("T")


async def to_its_end(look: Coroutine[Any, Any, T]) -> T:
    """Await it; who is cancelled meanwhile lets it end first, lest what it sent and did not note be sent again."""
    task = asyncio.ensure_future(look)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


class Leased:
    def __init__(self, client: Client, name: str) -> None:
        self.client = client
        self.name = name
        self.owner = new_id("l_")
        self._version = 0
        self._end = 0.0

    async def take(self) -> tuple[bool, Any]:
        """Whether this process may write, and the value (None: there is none yet) where it was read anew."""
        if self._version and self.client.clock.boottime() < self._end:
            return True, None
        ledger = self.client.ledger
        for _ in range(3):  # a write of our own that was cut off may land after the reading
            kept = await ledger.setting(self.name)
            told: dict[str, Any] = parse(kept.value) if kept is not None else {"owner": "", "value": None}
            if told["owner"] not in ("", self.owner):
                holder = Holder(told["owner"], told["until"], told["host"], told["boot_id"], told["pid"])
                if not holder.gone(await ledger.now(), LEASE_SECONDS):
                    return False, None
            self._version = kept.version if kept is not None else 0
            if await self.keep(told["value"]):
                return True, told["value"]
        return False, None

    async def keep(self, value: Any, *, owner: str | None = None) -> bool:
        """Write the value, and begin the lease anew; False: another process may write now."""
        # Until the answer is there it is not known what the ledger has: whoever is cut off here reads it anew.
        version, self._version = self._version, 0
        sent = self.client.clock.boottime()
        told = {
            "owner": self.owner if owner is None else owner,
            "until": await self.client.ledger.now() + LEASE_SECONDS,
            "host": process.host(),
            "boot_id": process.identity(),
            "pid": os.getpid(),
            "value": value,
        }
        if not await self.client.ledger.keep(Setting(self.name, dump(told), version)):
            return False
        self._version = version + 1
        self._end = sent + LEASE_SECONDS / 2
        return True

    async def release(self, value: Any) -> None:
        """Let another process write."""
        if self._version:
            await self.keep(value, owner="")
            self._version = 0
