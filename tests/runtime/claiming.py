"""Many processes that claim and give back what they can under a cap, round by round, all at the same moment.

``python -m tests.runtime.claiming LEDGER PROCESSES ROUNDS`` prints, for each round, how many each process holds.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import sys
from collections.abc import MutableSequence
from multiprocessing.synchronize import Barrier

from quire.clock import new_id
from quire.ledger.finding import open_ledger
from quire.model.change import Applied, Change, Claim, Holding, Slot
from quire.model.record import Record
from quire.model.side import Worker
from quire.rules import moves as transition
from quire.rules.outcome import Yielded

#: Nothing takes this long, unless a process has ended and left the others at the barrier.
PATIENCE_SECONDS = 90.0


async def take_turns(url: str, place: int, rounds: int, barrier: Barrier, held: MutableSequence[int]) -> None:
    """In each round either claim or give back, at the same moment as all others."""
    ledger = open_ledger(url)
    await ledger.open()
    worker = Worker(new_id("w_"), "", "", "", 0, 0.0, 0.0, 600.0, None, "[]")
    await ledger.beat(worker, Holding({}))
    slot = Slot("capped", "work", 600.0, cap=5)
    records: list[Record] = []
    for number in range(rounds):
        barrier.wait(PATIENCE_SECONDS)
        if records and (place + number) % 2:
            now = await ledger.now()
            moves = [transition.settle(record, Yielded("its turn is over"), now) for record in records]
            verdicts = await ledger.commit(
                [
                    Change(new_id(), record.record_id, record.version, move.image, worker.worker_id, move.lines)
                    for record, move in zip(records, moves, strict=True)
                ]
            )
            assert all(isinstance(verdict, Applied) for verdict in verdicts), verdicts
            records = []
        else:
            records += (await ledger.claim(Claim(new_id(), worker.worker_id, (slot,), 2))).records
        held[place] = len(records)
        if barrier.wait(PATIENCE_SECONDS) == 0:
            print(*held, flush=True)  # noqa: T201 - the test reads it
    await ledger.close()


def take_turns_in_a_process(url: str, place: int, rounds: int, barrier: Barrier, held: MutableSequence[int]) -> None:
    asyncio.run(take_turns(url, place, rounds, barrier, held))


def main(url: str, count: int, rounds: int) -> int:
    fork = multiprocessing.get_context("fork")  # nothing runs here yet, and twenty interpreters take long to start
    barrier, held = fork.Barrier(count), fork.Array("i", count, lock=False)
    processes = [
        fork.Process(target=take_turns_in_a_process, args=(url, place, rounds, barrier, held)) for place in range(count)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    return sum(process.exitcode != 0 for process in processes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
