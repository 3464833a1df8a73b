"""Workflows with agents, for the tests that start processes of their own."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from pydantic import BaseModel
from pydantic_ai import Agent

import quire
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


async def main(url: str) -> None:
    async with quire.aopen(url, workflows=[answer_ticket, helper.workflow]) as client:
        await client.work()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
