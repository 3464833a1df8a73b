"""What these tests ask of a Sheets ledger, in one call each."""

from __future__ import annotations

from quire.clock import new_id
from quire.ledger.base import Ledger
from quire.model.change import Claim, Claimed, Slot
from quire.testing.conformance import slot


async def take(
    ledger: Ledger, *slots: Slot, worker: str = "w1", limit: int = 100, claim_id: str = "", again: bool = False
) -> Claimed:
    """The claim alone, by a worker that has beaten before."""
    return await ledger.claim(Claim(claim_id or new_id("claim-"), worker, slots or (slot(),), limit, again))
