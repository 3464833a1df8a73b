"""A process that claims what it can under a cap, again and again, and says what it held.

``python -m tests.runtime.claiming LEDGER GATE``: waits for the file GATE, so that all start at once.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from quire.clock import SYSTEM, new_id
from quire.ledger.opening import open_ledger
from quire.machine import transition
from quire.machine.outcome import Yielded
from quire.model.change import Applied, Change, Claim, Holding, Slot
from quire.model.side import Worker


async def main(url: str, gate: Path) -> None:
    ledger = open_ledger(url)
    await ledger.open()
    worker = Worker(new_id("w_"), "", "", "", 0, 0.0, 0.0, 60.0, None, "[]")
    await ledger.beat(worker, Holding({}))
    slot = Slot("capped", "work", 60.0, cap=5)
    print("ready", flush=True)  # noqa: T201 - the test waits for it
    while not gate.exists():  # noqa: ASYNC240 - nothing else runs here
        await SYSTEM.sleep(0.005)
    most, total = 0, 0
    for _ in range(8):
        claimed = await ledger.claim(Claim(new_id(), worker.worker_id, (slot,), 10))
        standing = await ledger.counts()
        most = max(most, sum(count.count for count in standing if count.status == "RUNNING"))
        changes = []
        for record in claimed.records:
            made = transition.settle(record, Yielded("its turn is over"), claimed.now)
            change = Change(new_id(), record.record_id, record.version, made.image, worker.worker_id, made.lines)
            changes.append(change)
        if changes:
            verdicts = await ledger.commit(changes)
            total += sum(isinstance(verdict, Applied) for verdict in verdicts)
    print(most, total, flush=True)  # noqa: T201
    await ledger.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
