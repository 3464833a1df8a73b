"""One panel at a time, so that two processes do not draw the same rows.

The lease only spares doubled work. The ledger itself prevents that anything happens twice: commands by their change
ids, starts by their record ids.
"""

from __future__ import annotations

from quire.clock import Clock
from quire.ledger.base import Ledger
from quire.ledger.sole import Sole, holder_of


class Lease:
    """The lease on one panel, and the tabs of its inboxes, which are kept beside it."""

    def __init__(self, ledger: Ledger, book: str, clock: Clock) -> None:
        self._sole = Sole(ledger, _name(book), clock, {"tabs": {}})
        self._renewed = False
        self._new = False
        #: The tabs of inboxes by their names, so that a renamed tab stays the inbox.
        self.tabs: dict[str, int] = {}

    async def held(self) -> bool:
        """Whether this process draws the panel; takes or renews the lease if it is time."""
        before = self._sole.takeovers
        mine, fields = await self._sole.take()
        if fields is not None:
            tabs = {str(name): int(sheet_id) for name, sheet_id in fields.get("tabs", {}).items()}
            if not self.tabs:
                self.tabs = tabs
            elif self.tabs != tabs:
                await self._sole.keep({"tabs": self.tabs})
            self._renewed = True
            self._new |= self._sole.takeovers > before
        return mine

    async def save(self, tabs: dict[str, int]) -> None:
        if tabs != self.tabs:
            self.tabs = dict(tabs)
            await self._sole.keep({"tabs": self.tabs})

    def new(self) -> bool:
        """Whether another process may have drawn before the lease was taken last."""
        new, self._new = self._new, False
        return new

    def renewed(self) -> bool:
        """Whether the lease was renewed since this was asked last: every so often, for what is seldom looked at."""
        renewed, self._renewed = self._renewed, False
        return renewed

    async def release(self) -> None:
        await self._sole.release({"tabs": self.tabs})


async def drawn_by(ledger: Ledger, book: str) -> str:
    """Say which process keeps the panel of this book up; empty: none does."""
    holder = await holder_of(ledger, _name(book))
    return "" if holder is None else f"process {holder.pid} on {holder.host.partition(' ')[0]}"


def _name(book: str) -> str:
    return f"panel/{book}"
