"""Sums that must come out even in a ledger: open intents, fan-ins, and no log without its record.

Chains, receipts, archive and folder are compared by ``quire.upkeep.verify``. Workers may go on meanwhile: what looks
wrong is read once more by itself, and only what stays wrong is reported.
"""

from __future__ import annotations

from quire.ledger.base import Ledger
from quire.model.change import Query
from quire.model.receipt import Receipt
from quire.model.record import Record
from quire.upkeep.verify import Difference

_PAGE = 500


class Sums:
    """Counts what belongs together; ``fanins`` says how many were looked at."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.fanins = 0

    async def first_difference(self) -> Difference | None:
        seen: set[str] = set()
        after = ""
        while page := await self.ledger.find(Query(after=after, limit=_PAGE)):
            after = page[-1].record_id
            seen |= {record.record_id for record in page}
            receipts: dict[str, list[Receipt]] = {}
            for receipt in await self.ledger.receipts(record_ids=[record.record_id for record in page]):
                receipts.setdefault(receipt.record_id, []).append(receipt)
            for record in page:
                wrong = await self._wrong(record, receipts.get(record.record_id, []))
                if wrong and (wrong := await self._again(record.record_id)):
                    return Difference("sum", record.record_id, wrong)
        return await self._orphans(seen)

    async def _orphans(self, seen: set[str]) -> Difference | None:
        after = 0
        while events := await self.ledger.events(after=after, limit=5000):
            after = events[-1].seq
            for record_id in {event.record_id for event in events} - seen:
                seen.add(record_id)
                if not await self.ledger.load([record_id]):
                    return Difference("sum", record_id, "it has a log, but the record is not there")
        return None

    async def _again(self, record_id: str) -> str:
        """Look at one record by itself: it may have moved while the others were read."""
        wrong = ""
        for _ in range(3):
            found = await self.ledger.load([record_id])
            receipts = await self.ledger.receipts(record_ids=[record_id])
            wrong = await self._wrong(found[0], receipts) if found else ""
            if not wrong:
                break
        return wrong

    async def _wrong(self, record: Record, receipts: list[Receipt]) -> str:
        intents = sum(receipt.open for receipt in receipts)
        if intents != record.open_intents:
            return f"it has {intents} open intents, the record says {record.open_intents}"
        return await self._fanins(record) if record.fanouts else ""

    async def _fanins(self, record: Record) -> str:
        children = await self.ledger.find(Query(parent_id=record.record_id, limit=1_000_000))
        for fanin in await self.ledger.fanins(record.record_id):
            self.fanins += 1
            mine = [child for child in children if child.generation == fanin.generation]
            if len(mine) != fanin.total:
                return f"its fan-out {fanin.generation} has {len(mine)} children, {fanin.total} were started"
            left = sum(not child.counted for child in mine)
            if left != fanin.left:
                return f"its fan-out {fanin.generation} has {left} open children, the fan-in says {fanin.left}"
        return ""
