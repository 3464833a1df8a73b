"""Orders in a sheet that a team has: rows that say Ready are confirmed, large ones after somebody agrees.

quire demo sheet                                                # the book and the worker, without an account
quire up examples/orders/flows.py --panel sheets://BOOK_ID      # your own book
"""

import asyncio
from datetime import date
from decimal import Decimal

from pydantic import BaseModel

from quire import Act, Fail, Run, Table, effect, workflow


class Order(BaseModel):
    client: str
    amount: Decimal
    due: date | None = None
    confirmation: str | None = None


@effect(repeat=True)
async def book(act: Act, client: str, amount: Decimal) -> str:
    await asyncio.sleep(2)
    return f"{client[:3].upper()}-{amount}"


@workflow(
    on=[Table("Orders", status="Task_Status", id="Order No", write_back=["confirmation"], show={"asks": "Question"})]
)
async def orders(run: Run[Order]) -> None:
    if run.data.amount > 1000:
        answer = await run.ask(f"Take an order of {run.data.amount}?", choices=["approve", "reject"])
        if answer.choice == "reject":
            raise Fail("nobody wanted this order")
    number = await run.once(book, run.data.client, run.data.amount)
    run.data.confirmation = number
