"""How far a projector has come, and that it is the only one: one setting of the ledger, moved by compare-and-swap.

The lease lies in the same setting as the place, so a projector that was overtaken cannot move it. Whoever holds it may
write until two thirds of the lease are over, counted on a clock that nobody can set back; others take over when the
ledger's clock says that the lease ran out, or at once when its holder's process is known to be dead.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from quire.clock import Clock, new_id
from quire.errors import LeaseLost
from quire.ledger import process
from quire.ledger.base import Ledger
from quire.model.codec import dump, parse
from quire.model.side import Setting, Worker
from quire.rules.workers import GRACE


@dataclass(frozen=True, slots=True)
class Place:
    """Up to where the folder is written, and durable."""

    #: The last line that is in the folder.
    seq: int = 0
    #: The last line that is in the tables.
    table_seq: int = 0
    #: The hash of each table as it was written last, by workflow.
    tables: dict[str, str] = field(default_factory=dict)
    #: Records whose first lines were in an archive already when the folder was new have been written too.
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Holder:
    """Who projects."""

    owner: str
    until: float
    host: str
    boot_id: str
    pid: int

    def gone(self, now: float, lease: float) -> bool:
        if not self.owner or self.until + GRACE * lease < now:
            return True
        return process.known_dead(Worker(self.owner, "", self.host, self.boot_id, self.pid, 0.0, 0.0, 0.0, None, ""))


def setting_name(folder_id: str) -> str:
    return f"projector/{folder_id}"


def read_place(value: str) -> Place:
    kept = parse(value)
    return Place(int(kept["seq"]), int(kept["table_seq"]), dict(kept["tables"]), bool(kept["whole"]))


class Cursor:
    """The place of one folder in one ledger, and this projector's lease on it."""

    def __init__(self, ledger: Ledger, folder_id: str, clock: Clock, lease: float) -> None:
        self.ledger = ledger
        self.clock = clock
        self.lease = lease
        self.name = setting_name(folder_id)
        self.owner = new_id("p_")
        self.place = Place()
        self._version = -1
        self._end = 0.0

    @property
    def held(self) -> bool:
        return self._version >= 0 and self.clock.boottime() < self._end

    @property
    def fading(self) -> bool:
        """The lease wants to be renewed."""
        return self._end - self.clock.boottime() < self.lease / 3

    def fence(self) -> None:
        """Called before each file: whoever was away for too long writes nothing more."""
        if not self.held:
            raise LeaseLost("another projector writes this folder now, or may soon")

    async def look(self) -> tuple[Place, Holder | None]:
        """The place and its holder as the ledger has them."""
        kept = await self.ledger.setting(self.name)
        if kept is None:
            return Place(), None
        return read_place(kept.value), _holder(kept.value)

    async def take(self) -> bool:
        """Become the one who projects, if nobody else is."""
        kept = await self.ledger.setting(self.name)
        if kept is not None:
            holder = _holder(kept.value)
            if holder.owner != self.owner and not holder.gone(await self.ledger.now(), self.lease):
                return False
        place = Place() if kept is None else read_place(kept.value)
        return await self._write(place, kept.version if kept is not None else 0)

    async def save(self, place: Place) -> None:
        """The folder is written, and durable, up to here. The lease begins anew."""
        self.fence()
        if not await self._write(place, self._version):
            self._version = -1
            raise LeaseLost("another projector writes this folder now")

    async def release(self) -> None:
        """Let another one project. Quietly: whoever has taken over already stays."""
        if self._version >= 0:
            await self.ledger.keep(Setting(self.name, self._value(self.place, ""), self._version))
            self._version = -1

    async def _write(self, place: Place, version: int) -> bool:
        sent = self.clock.boottime()
        until = await self.ledger.now() + self.lease
        if not await self.ledger.keep(Setting(self.name, self._value(place, self.owner, until), version)):
            return False
        self.place, self._version, self._end = place, version + 1, sent + self.lease * 2 / 3
        return True

    def _value(self, place: Place, owner: str, until: float = 0.0) -> str:
        kept: dict[str, Any] = {"seq": place.seq, "table_seq": place.table_seq, "tables": place.tables}
        kept |= {"whole": place.whole, "owner": owner, "until": until}
        kept |= {"host": process.host(), "boot_id": process.identity(), "pid": os.getpid()}
        return dump(kept)


def _holder(value: str) -> Holder:
    kept = parse(value)
    return Holder(str(kept["owner"]), float(kept["until"]), str(kept["host"]), str(kept["boot_id"]), int(kept["pid"]))
