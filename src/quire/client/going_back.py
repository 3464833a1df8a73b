"""A ledger that went back in time, or that was restored: its open records are adopted (protocol 11).

Each open record asks a person whether it goes on. What it then does outside may have been done before: until somebody
ends the adoption, each act without a receipt is probed, or asked about.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from quire.client.acts import Acts
from quire.client.link import Link
from quire.errors import IllegalMove, InputError
from quire.ledger.lost import REASON, Lost, keep_loss, loss_of
from quire.model.change import Order, Query
from quire.model.record import ENDED, Record, Status
from quire.model.side import EVERYWHERE, Control
from quire.rules import adoption, moves

_PAGE = 200
_OPEN = tuple(status for status in Status if status not in ENDED)


class Adopted(NamedTuple):
    """What an adopted ledger asks."""

    #: Open records that ask whether they go on, and those of them with effects in doubt.
    asks: int
    in_doubt: int


async def adopt(link: Link, acts: Acts, by: str) -> Adopted:
    """Let each open record ask whether it goes on. Killed in the middle, the same again goes on where it was."""
    ledger = link.ledger
    known, version = await loss_of(ledger)
    now = await ledger.now()
    if known is None or known.ended_at:
        known = Lost(now, now, by)
        await keep_loss(ledger, known, version)
        known, version = await loss_of(ledger)
        assert known is not None
    if not known.adopted_at:
        await ledger.order(Order("pause", EVERYWHERE, by, f"{REASON}; quire adopt is under way"))
        await ledger.recover(dead=[row.worker_id for row in await ledger.workers() if row.closed is None])
        await _ask_all(link, acts, by, known.sentence, version)
        await keep_loss(ledger, known._replace(adopted_at=await ledger.now()), version)
    if any(c.paused and c.scope == EVERYWHERE and c.reason.startswith(REASON) for c in await _controls(link)):
        await ledger.order(Order("resume", EVERYWHERE, by))
    return await _asked(link)


async def _controls(link: Link) -> Sequence[Control]:
    return (await link.ledger.standing()).controls


async def _pages(link: Link) -> list[Record]:
    after, found = "", []
    while page := await link.ledger.find(Query(status=_OPEN, after=after, limit=_PAGE)):
        found += page
        after = page[-1].record_id
    return found


async def _ask_all(link: Link, acts: Acts, by: str, why: str, number: int) -> None:
    """Children ask, too: each stands for itself."""
    for record in await _pages(link):
        if adoption.asked(record) is None:
            intents = await link.ledger.receipts(record_ids=[record.record_id])
            keys = [(receipt.key, receipt.name) for receipt in intents if receipt.open]
            await _ask(acts, record.record_id, by, why, number, keys)


async def _ask(acts: Acts, record_id: str, by: str, why: str, number: int, keys: list[tuple[str, str]]) -> None:
    def decide(row: Record) -> tuple[moves.Move, tuple[()]]:
        return moves.adopt(row, row.updated_at, by, why, row.epoch, keys, number), ()

    try:
        await acts.change(record_id, decide)
    except IllegalMove:  # it ended meanwhile, by its cancellation
        return


async def _asked(link: Link) -> Adopted:
    asking = [record for record in await _pages(link) if adoption.asked(record) is not None]
    return Adopted(len(asking), sum(record.open_intents > 0 for record in asking))


async def end(link: Link, by: str) -> Lost:
    """End the adoption: from now on acts without a receipt are done as usual."""
    known, version = await loss_of(link.ledger)
    if known is None or known.ended_at:
        raise InputError("this ledger has not gone back in time, and was not adopted: there is nothing to end")
    asks = (await _asked(link)).asks
    if not known.adopted_at or asks:
        left = f"{asks} records still ask whether they go on" if known.adopted_at else "its records were not adopted"
        raise InputError(f"it cannot end yet: {left}; quire adopt, then quire adopt --all go-on | cancel")
    ended = known._replace(ended_at=await link.ledger.now())
    await keep_loss(link.ledger, ended, version)
    return ended
