"""People: each gives one order after the other, and a clerk answers what Quire asks and says what is true.

What they do is the same wherever the system runs. How their requests reach the store is the business of the system.
"""

from __future__ import annotations

import random
from typing import Any, Protocol

from quire.client.client import Client
from quire.errors import LedgerUnavailable, QuireError
from quire.ledger.base import Ledger
from quire.model.change import Query
from quire.model.codec import parse
from quire.model.receipt import Kind, fingerprint
from quire.model.record import Record, Status
from quire.model.wait import On, Wait, load_waits
from tests.simulation.history import History, Order
from tests.simulation.plan import Plan
from tests.simulation.script import as_data
from tests.simulation.world import World


class House(Protocol):
    """What people see of the system that they use."""

    plan: Plan
    history: History
    world: World
    #: The store as it is, without what goes wrong on the way to it.
    ledger: Ledger

    @property
    def now(self) -> float: ...


def todo_of(name: str, plan: Plan) -> list[tuple[float, str, str, str, Any]]:
    """What a person does by the plan: when, the verb, the record, what, and the value."""
    todo: list[tuple[float, str, str, str, Any]] = [
        (root.at, "start", root.record, root.script.workflow, as_data(root.script))
        for root in plan.roots
        if root.person == name
    ]
    todo += [(wish.at, wish.verb, wish.record, wish.what, None) for wish in plan.wishes if wish.person == name]
    return sorted(todo, key=lambda one: one[:4])


class Person:
    """Somebody with a client."""

    client: Client

    def __init__(self, house: House, name: str) -> None:
        self.house = house
        self.name = name

    async def order(self, verb: str, record: str = "", what: str = "", value: Any = None) -> Order:
        """Give one order, and write down what came of it."""
        house = self.house
        orders = house.history.orders
        order = Order(len(orders) + 1, self.name, verb, record, house.now, what, value)
        orders.append(order)
        if verb == "signal":
            order.value = f"signal {order.number}"
        try:
            answer = await self._ask(order)
        except LedgerUnavailable:
            return order  # nobody knows
        except QuireError as error:
            order.answer, order.words = type(error).__name__, str(error)
        else:
            order.answer = str(answer.status) if isinstance(answer, Record) else "ok"
            if verb == "halt":
                order.value = sorted(receipt.key for receipt in answer.under_way)
        order.answered_at = house.now
        return order

    async def _ask(self, order: Order) -> Any:
        client, record, what = self.client, order.record, order.what
        match order.verb:
            case "start":
                return (await client.start(what, order.value, id=record)).started
            case "look":
                return await client.get(record)
            case "cancel":
                return await client.cancel(record)
            case "cancel --undo":
                return await client.cancel(record, undo=True)
            case "halt":
                return await client.halt(what)
            case "pause":
                return await client.pause(what)
            case "resume":
                return await client.resume(what)
            case "resume --cancelled":
                return await client.resume(what, cancelled=True)
            case "signal":
                return await client.signal(record, what, order.value)
            case "retry":
                return await client.retry(record)
            case "move":
                return await client.move(record, "work")
            case "rewind":
                return await client.retry(record, step="work")
            case "priority":
                return await client.prioritise(record, order.number)
            case "edit":
                seen = await client.get(record)
                data = parse(seen.data) | {"edited": order.number}
                return await client.edit(record, data, version=seen.version)
            case "answer":
                return await client.answer(
                    record, order.value, question=what, by=f"voter {random.Random(order.number).randrange(2)}"
                )
            case "resolve":
                return await client.resolve(record, effect=what, happened=order.value is not None, value=order.value)
        raise AssertionError(order.verb)


class Clerk(Person):
    """The one who looks after everything. ``dice`` decide what the clerk answers."""

    def __init__(self, house: House, name: str, dice: random.Random) -> None:
        super().__init__(house, name)
        self.dice = dice

    async def resume_all(self) -> None:
        standing = await self.house.ledger.standing()
        verb = "resume --cancelled" if self.house.plan.brings_back else "resume"
        for control in sorted(standing.controls, key=lambda one: one.scope):
            if control.halted or control.paused:
                await self.order(verb, "", control.scope if control.scope != "*" else "")

    async def look_after(self, *, seldom: bool = False) -> int:
        """Answer what records ask, say of doubts what is true, and move on what rests. The answer: how many."""
        asked = 0
        for row in await self.house.ledger.find(Query(limit=10_000)):
            if row.status not in (Status.WAITING, Status.NEEDS_APPROVAL):
                continue
            if seldom and self.dice.random() < 0.5:
                continue
            asked += await self._attend(row)
        return asked

    async def _attend(self, row: Record) -> int:
        for wait in load_waits(row.waits):
            if wait.on is On.QUESTION:
                await self.order("answer", row.record_id, wait.name, self.dice.choice(_choices(wait)))
                return 1
            if wait.on is On.DOUBT:
                await self.order("resolve", row.record_id, wait.name, await self._truth(wait.key))
                return 1
            if wait.on is On.REST:
                await self.order("move", row.record_id)
                return 1
        return 0

    async def _truth(self, key: str) -> str | None:
        """What the effect behind this key came to in the world; None: it did not happen."""
        world = self.house.world
        [receipt] = await self.house.ledger.receipts(keys=[key.removesuffix("value")])
        if receipt.kind is Kind.UNDO:
            own = fingerprint(receipt.key)
            return "undone" if any(one.kind == "undoes" and one.key == own for one in world.happenings) else None
        what = f"{receipt.record_id}|{receipt.visit}|{receipt.name}"
        return what if what in world.done.values() else None


def _choices(wait: Wait) -> list[str]:
    """What may be answered; the first goes ahead."""
    return list((wait.about or {}).get("choices", ("yes", "no")))
