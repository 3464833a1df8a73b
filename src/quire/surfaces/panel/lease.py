"""One panel at a time: a lease in the ledger, so that two processes do not draw the same rows.

It only spares doubled work. What must not happen twice is kept from it by the ledger: commands by their change ids,
starts by their record ids.
"""

from __future__ import annotations

import os

from quire.clock import Clock, new_id
from quire.ledger import process
from quire.ledger.base import Ledger
from quire.model.codec import dump, parse
from quire.model.row import replace
from quire.model.side import Setting, Worker

#: Long, since on a sheet each renewal is a write; a process that is known to be dead is not waited for.
LEASE_SECONDS = 300.0


class Lease:
    def __init__(self, ledger: Ledger, book: str, clock: Clock) -> None:
        self._ledger = ledger
        self._clock = clock
        self._name = f"panel/{book}"
        self._owner = new_id("v_")
        self._renew_at = 0.0
        self._renewed = False
        self._new = False
        #: The tabs of inboxes by their names, so that a renamed tab stays the inbox.
        self.tabs: dict[str, int] = {}

    async def held(self) -> bool:
        """Whether this process draws the panel; takes or renews the lease if it is time."""
        boot = self._clock.boottime()
        if boot < self._renew_at:
            return True
        return await self._take()

    async def save(self, tabs: dict[str, int]) -> None:
        if tabs != self.tabs:
            self.tabs = dict(tabs)
            await self._take()

    async def _take(self) -> bool:
        boot, now = self._clock.boottime(), await self._ledger.now()
        kept = await self._ledger.setting(self._name)
        told = parse(kept.value) if kept is not None else {}
        owner = told.get("owner", "")
        if owner and owner != self._owner and now < float(told["until"]) and not _dead(told):
            return False
        if not self.tabs:
            self.tabs = {str(name): int(sheet_id) for name, sheet_id in told.get("tabs", {}).items()}
        mine = {"owner": self._owner, "until": now + LEASE_SECONDS, "tabs": self.tabs, **_here()}
        if not await self._ledger.keep(Setting(self._name, dump(mine), kept.version if kept is not None else 0)):
            return False
        self._renew_at = boot + LEASE_SECONDS * 0.4
        self._renewed = True
        self._new |= owner != self._owner
        return True

    def new(self) -> bool:
        """Whether somebody else had it, or nobody, before it was taken last."""
        new, self._new = self._new, False
        return new

    def renewed(self) -> bool:
        """Whether it was renewed since this was asked last: every so often, for what need not be looked at more."""
        renewed, self._renewed = self._renewed, False
        return renewed

    async def release(self) -> None:
        kept = await self._ledger.setting(self._name)
        if kept is not None and parse(kept.value).get("owner") == self._owner:
            gone = parse(kept.value) | {"owner": "", "until": 0.0}
            await self._ledger.keep(replace(kept, value=dump(gone)))
        self._renew_at = 0.0


async def drawn_by(ledger: Ledger, book: str) -> str:
    """Which process keeps the panel of this book up, in words; empty: none."""
    kept = await ledger.setting(f"panel/{book}")
    told = parse(kept.value) if kept is not None else {}
    if not told.get("owner") or await ledger.now() >= float(told["until"]) or _dead(told):
        return ""
    return f"process {told.get('pid')} on {str(told.get('host')).partition(' ')[0]}"


def _here() -> dict[str, object]:
    return {"host": process.host(), "boot_id": process.identity(), "pid": os.getpid()}


def _dead(told: dict[str, object]) -> bool:
    """The holder is a process of this machine that has ended."""
    try:
        who = Worker("", "", str(told["host"]), str(told["boot_id"]), int(str(told["pid"])), 0.0, 0.0, 0.0, None, "")
    except (KeyError, ValueError):
        return False
    return process.known_dead(who)
