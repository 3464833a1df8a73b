"""What is known of a ledger that went back in time: it lacks changes that it had acknowledged.

This happens after a fail-over to a standby that was behind, and after a restore of an older copy. The loss is kept as a
setting of the ledger. While it is not ended, each record that was open then is *adopted*: a person says whether it goes
on, and what it does outside may have been done already, so each act without a receipt is probed, or asked about.
"""

from __future__ import annotations

from typing import NamedTuple

from quire.clock import iso
from quire.ledger.base import Ledger
from quire.model.change import Order
from quire.model.codec import dump, parse
from quire.model.side import EVERYWHERE, Setting

LOST = "ledger.lost"
#: So begins the reason of the pause that a worker orders when it finds a loss.
REASON = "the ledger went back in time"


class Lost(NamedTuple):
    """One loss."""

    #: When it was found, on the ledger's clock.
    at: float
    #: Nothing that was acknowledged before this moment is known to be missing.
    since: float
    by: str
    #: Records whose newest changes are missing, as far as marks name them, and acts whose intents are missing.
    records: tuple[str, ...] = ()
    acts: tuple[str, ...] = ()
    #: The server before and after.
    servers: tuple[str, str] = ("", "")
    #: When the open records were adopted; 0: they were not yet. When somebody ended it; 0: it goes on.
    adopted_at: float = 0.0
    ended_at: float = 0.0

    @property
    def sentence(self) -> str:
        """What people read."""
        if not self.records and not self.acts:
            return f"{REASON}: it was restored, and adopted {iso(self.adopted_at)}"
        return (
            f"{REASON}: at least {len(self.records)} changes and {len(self.acts)} acts since {iso(self.since)} were "
            "acknowledged and are not in it any more"
        )


async def loss_of(ledger: Ledger) -> tuple[Lost | None, int]:
    """Return the last loss, ended or not, and the version of its setting."""
    kept = await ledger.setting(LOST)
    if kept is None:
        return None, 0
    found = parse(kept.value)
    lists = {name: tuple(found[name]) for name in ("records", "acts", "servers")}
    return Lost(**{**found, **lists}), kept.version


async def keep_loss(ledger: Ledger, loss: Lost, version: int) -> bool:
    """Replace what is known; False: somebody else was faster."""
    return await ledger.keep(Setting(LOST, dump(loss._asdict()), version))


async def declare(ledger: Ledger, found: Lost) -> Lost:
    """Write a loss down, and pause the ledger. A loss that goes on already is left as it is."""
    while True:
        known, version = await loss_of(ledger)
        if known is not None and not known.ended_at:
            return known
        if await keep_loss(ledger, found, version):
            reason = f"{found.sentence}; run quire adopt"
            await ledger.order(Order("pause", EVERYWHERE, "quire", reason))
            return found
