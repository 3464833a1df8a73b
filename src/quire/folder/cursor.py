"""How far a projector has come, kept beside the lease of the sole projector of a folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from quire.clock import Clock
from quire.errors import LeaseLost
from quire.ledger.base import Ledger
from quire.ledger.sole import Holder, Sole, read


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


def setting_name(folder_id: str) -> str:
    return f"projector/{folder_id}"


def read_place(value: str) -> Place:
    return _place(read(value)[1])


def _place(fields: Mapping[str, Any]) -> Place:
    return Place(int(fields["seq"]), int(fields["table_seq"]), dict(fields["tables"]), bool(fields["whole"]))


class Cursor:
    """The place of one folder in one ledger, and this projector's lease on it."""

    def __init__(self, ledger: Ledger, folder_id: str, clock: Clock, lease: float) -> None:
        self.ledger = ledger
        self.lease = lease
        self.name = setting_name(folder_id)
        self.place = Place()
        self._sole = Sole(ledger, self.name, clock, asdict(self.place), lease)

    @property
    def held(self) -> bool:
        return self._sole.held

    @property
    def fading(self) -> bool:
        """Whether the lease wants to be renewed."""
        return self._sole.fading

    def fence(self) -> None:
        """Called before each file: a projector that was away for too long writes nothing more."""
        if not self.held:
            raise LeaseLost("another projector writes this folder now, or may soon")

    async def look(self) -> tuple[Place, Holder | None]:
        """Return the place and its holder as the ledger has them."""
        kept = await self.ledger.setting(self.name)
        if kept is None:
            return Place(), None
        holder, fields = read(kept.value)
        return _place(fields), holder

    async def take(self) -> bool:
        """Become the one that projects, if no other process does."""
        mine, fields = await self._sole.take()
        if fields is not None:
            self.place = _place(fields)
        return mine

    async def save(self, place: Place) -> None:
        """Keep that the folder is written, and durable, up to here. The lease begins anew."""
        self.fence()
        if not await self._sole.keep(asdict(place)):
            raise LeaseLost("another projector writes this folder now")
        self.place = place

    async def release(self) -> None:
        """Let another process project. If one has taken over already, nothing changes."""
        await self._sole.release(asdict(self.place))
