"""Steps that fork, and a worker process for them: ``python -m tests.runtime.forking LEDGER STEP``.

Each step returns how its copy ended, which the step waits for.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from quire import Retry, Run, SyncRun, aopen, workflow

Data = dict[str, Any]


def ended(copy: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1])


async def returns(run: Run[Data]) -> int:
    copy = os.fork()
    return ended(copy) if copy else 0


async def raises(run: Run[Data]) -> int:
    copy = os.fork()
    if not copy:
        raise ValueError("in the copy")
    return ended(copy)


async def awaits(run: Run[Data]) -> int:
    copy = os.fork()
    if not copy:
        await run.call(sum, [1, 2])
    return ended(copy)


async def gives_way(run: Run[Data]) -> int:
    copy = os.fork()
    if not copy:
        await asyncio.sleep(0)  # noqa: TID251 - it gives way to the others
    return ended(copy)


def in_a_thread(run: SyncRun[Data]) -> int:
    copy = os.fork()
    return ended(copy) if copy else 0


def fork() -> int:
    copy = os.fork()
    return ended(copy) if copy else 0


async def in_a_call(run: Run[Data]) -> int:
    return await run.call(fork)


async def does_its_own_work(run: Run[Data]) -> int:
    copy = os.fork()
    if not copy:
        os._exit(sum(range(4)))
    return ended(copy)


STEPS = {
    step.__name__: step for step in (returns, raises, awaits, gives_way, in_a_thread, in_a_call, does_its_own_work)
}


@workflow
async def beside(run: Run[Data]) -> int:
    print(os.getpid(), run.record_id, flush=True)  # noqa: T201 - the test reads it
    return os.getpid()


async def main(url: str, step: str) -> None:
    forks = workflow(retry=Retry(1), name="forks")(STEPS[step])
    async with aopen(url, workflows=[forks, beside]) as client:
        await client.start(forks, {}, id="forks")
        await client.start_many(beside, [{}] * 3, ids=["a", "b", "c"])
        await client.work()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
