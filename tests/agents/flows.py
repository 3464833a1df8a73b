"""Workflows with agents, for the tests that start processes of their own: ``python -m tests.agents.flows LEDGER``.

It loads the libraries once and forks: for each line it reads, a new process works until nothing is due; then it writes
how that process ended.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

# Before the fork: this takes longer than all else together.
import pydantic_ai.models.test  # noqa: F401
from pydantic import BaseModel
from pydantic_ai import Agent

import quire
import quire.agents.receipts
import quire.ledger.sqlite.ledger
from quire import Run, workflow
from quire.agents import converse, durable


class Refund(BaseModel):
    amount: float
    reason: str


class Ticket(BaseModel):
    text: str
    #: Where a payment leaves its trace.
    till: str = ""


support: Agent[Ticket, Refund] = Agent("test", deps_type=Ticket, output_type=Refund, name="support")


@support.tool_plain(requires_approval=True)
async def pay_out(amount: float) -> str:
    """Pay."""
    with Path(TILL[0]).open("a") as till:  # noqa: ASYNC230 - one line
        till.write(f"{amount}\n")
    return "paid"


TILL = [""]


@workflow
async def answer_ticket(run: Run[Ticket, None]) -> Refund:
    TILL[0] = run.data.till
    return await converse(run, support, run.data.text, deps=run.data, approver="finance", expires="2d")


helper = durable(Agent("test", name="helper"), name="helper")


async def work(url: str) -> None:
    async with quire.aopen(url, workflows=[answer_ticket, helper.workflow]) as client:
        await client.work()


def forked(url: str) -> int:
    """How a process that worked ended."""
    if child := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 1
    try:
        asyncio.run(work(url))
        code = 0
    finally:
        os._exit(code)


if __name__ == "__main__":
    for _line in sys.stdin:
        sys.stdout.write(f"{forked(sys.argv[1])}\n")
        sys.stdout.flush()
