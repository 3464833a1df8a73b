"""What each order does to a record in each state: every cell of ``quire.rules.order_table``.

The cells of one order share a ledger. Their records are brought into their states together, the order is given to each,
and then everything that stands in its way is taken away: runs end, doubts are answered, the halt is taken back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from quire.client.client import Client
from quire.errors import QuireError
from quire.ledger.base import Ledger
from quire.model.change import Change, Claim, Send
from quire.model.receipt import Receipt, Stage
from quire.model.record import ENDED, UNDO, Record, Status
from quire.model.row import replace
from quire.model.wait import On, Wait, load_waits
from quire.rules import moves as transition
from quire.rules.order_table import (
    ASKS,
    GOES_ON,
    IS_UNDONE,
    WAITS,
    Answer,
    Comes,
    Family,
    Lease,
    State,
    Verb,
    comes_to,
    states,
)
from quire.rules.outcome import Broke, Done, Outcome, Stopped, Tried, Waits, Yielded
from quire.testing.clock import ToldClock
from quire.testing.conformance.asking import (
    FLOW,
    STEP,
    applied,
    beat,
    new_facts,
    new_intent,
    new_map,
    new_settle,
    new_start,
    on_signal,
    order,
    slot,
    the_fanin,
)
from quire.testing.conformance.suite import Suite
from quire.workflows import approval
from quire.workflows.workflow import Workflow

#: A worker whose lease outlasts the test, and one that is never heard of again; with their leases.
LIVES, LOST = "lives", "lost"
LEASES = {LIVES: 1e6, LOST: 30.0}

#: After these orders nobody takes the halt back for what it cancelled.
ABOUT_HALTS = (Verb.HALT, Verb.RESUME, Verb.RESUME_CANCELLED)

#: What the whole ledger is told, once for all records.
WIDE: dict[Verb, Callable[[Client], Awaitable[object]]] = {
    Verb.HALT: lambda client: client.halt(),
    Verb.PAUSE: lambda client: client.pause(),
    Verb.RESUME: lambda client: client.resume(),
    Verb.RESUME_CANCELLED: lambda client: client.resume(cancelled=True),
}
#: What is told of one record.
SINGLE: dict[Verb, Callable[[Client, str], Awaitable[object]]] = {
    Verb.CANCEL: lambda client, record_id: client.cancel(record_id),
    Verb.UNDO: lambda client, record_id: client.cancel(record_id, undo=True),
    Verb.RESOLVE: lambda client, record_id: client.resolve(record_id, happened=False),
    Verb.ANSWER: lambda client, record_id: client.answer(record_id, "yes"),
    Verb.MOVE: lambda client, record_id: client.move(record_id, "after"),
    Verb.EDIT: lambda client, record_id: client.edit(record_id, {"edited": True}),
    Verb.RETRY: lambda client, record_id: client.retry(record_id),
    Verb.SIGNAL: lambda client, record_id: client.signal(record_id, "paid"),
    Verb.PRIORITY: lambda client, record_id: client.prioritise(record_id, 7),
}


def _workflow(name: str) -> Workflow[Any, Any, Any]:
    made: Workflow[Any, Any, Any] = Workflow(name)

    async def work(run: Any) -> str:
        return "after"

    async def after(run: Any) -> None:
        await run.wait("paid")

    made.step(then="after")(work)
    made.step(after)
    return made


WORKFLOWS = [_workflow(FLOW), _workflow("child")]


class Cells:
    """The records of these states, one of each, on one ledger."""

    def __init__(self, ledger: Ledger, clock: ToldClock, some: Sequence[State]) -> None:
        self.ledger = ledger
        self.clock = clock
        self.client = Client(ledger, workflows=WORKFLOWS, who="ann")
        self.roots = {state: f"r{number}" for number, state in enumerate(some)}
        #: The record of each state: the root, or its first child.
        self.ids: dict[State, str] = {}
        self.intents: dict[str, Receipt] = {}
        #: What the living worker holds, as it knows it.
        self.held: list[Record] = []

    async def make(self) -> None:
        """Bring each record into its state. Time passes, so that the lease of the lost worker has run out."""
        for worker in (LOST, LIVES):
            await beat(self.ledger, worker, lease=LEASES[worker])
            some = [state for state in self.roots if (state.lease is Lease.RAN_OUT) == (worker == LOST)]
            await self._make(some, worker)
        self.clock.advance(2 * LEASES[LOST])

    async def _intend(self, rows: Sequence[Record]) -> None:
        """Write an intent of each of these rows, which no receipt follows."""
        self.intents |= {row.record_id: new_intent(row) for row in rows}
        await self._commit([new_facts(row, self.intents[row.record_id]) for row in rows])

    async def _make(self, some: list[State], worker: str) -> None:
        now = self.clock.now()
        await self._commit([new_start(self.roots[state], now) for state in some])
        rows = {row.record_id: row for row in await self._claim(worker, FLOW)}
        families = [state for state in some if state.family is not Family.ALONE]
        await self._commit([_split(rows[self.roots[state]], state, now) for state in families])
        parents = [self.roots[state] for state in families if state.family is Family.PARENT]
        for verdict in await self.ledger.send([Send(f"go-{name}", name, "go", "1") for name in parents]):
            applied(verdict)
        rows |= {row.record_id: row for row in await self._claim(worker, FLOW)}
        rows |= {row.record_id: row for row in await self._claim(worker, "child")}
        for state in some:
            self.ids[state] = self._id_of(state, rows)
        await self._intend([rows[self.ids[state]] for state in some if state.doubt])
        self.held += [rows[self.ids[state]] for state in some if state.lease is Lease.RUNS]
        settled = [state for state in some if state.status is not Status.RUNNING]
        await self._commit([new_settle(rows[self.ids[s]], self._outcome(rows[self.ids[s]], s), now) for s in settled])

    async def _claim(self, worker: str, workflow: str) -> tuple[Record, ...]:
        asked = Claim(f"claim-{worker}-{workflow}-{self.clock.now()}", worker, (slot(STEP, workflow),), 1000)
        self.clock.advance(0.001)
        return (await self.ledger.claim(asked)).records

    def _id_of(self, state: State, rows: dict[str, Record]) -> str:
        root = self.roots[state]
        if state.family is not Family.CHILD:
            return root
        return next(row.record_id for row in rows.values() if row.parent_id == root and row.place == 0)

    def _outcome(self, row: Record, state: State) -> Outcome:
        children = tuple(wait for wait in load_waits(row.waits) if wait.on is On.CHILDREN)
        match state.status:
            case Status.PENDING:
                return Tried("no", 0.0)
            case Status.WAITING:
                return Waits((on_signal(row), *children), row.data)
            case Status.NEEDS_APPROVAL if state.doubt:
                return Waits((transition.doubted(self.intents[row.record_id].key, "post"), *children), row.data)
            case Status.NEEDS_APPROVAL:
                return Waits((_question(row, self.clock.now()), *children), row.data)
            case Status.DONE:
                return Done("1", row.data)
            case Status.ERROR:
                return Broke("a bug")
            case _:
                return Stopped("a typo")

    async def _commit(self, changes: Sequence[Change]) -> None:
        for verdict in await self.ledger.commit(changes):
            applied(verdict)

    async def rows(self) -> dict[State, Record]:
        found = {row.record_id: row for row in await self.ledger.load(list(self.ids.values()))}
        return {state: found[record_id] for state, record_id in self.ids.items()}

    async def told(self, verb: Verb) -> dict[State, tuple[Answer, Status]]:
        """Give the order; what was answered for each record, and what it reads as then."""
        before = await self.rows()
        refused: set[State] = set()
        if verb in WIDE:
            await WIDE[verb](self.client)
        else:
            orders = [SINGLE[verb](self.client, record_id) for record_id in self.ids.values()]
            answers = await asyncio.gather(*orders, return_exceptions=True)
            for state, answer in zip(self.ids, answers, strict=True):
                if isinstance(answer, QuireError):
                    refused.add(state)
                elif isinstance(answer, BaseException):
                    raise answer
        told = {}
        for state, row in (await self.rows()).items():
            waits = row.status is before[state].status if verb is Verb.SIGNAL else row.cancel is not None
            heard = Answer.REFUSED if state in refused else Answer.KEPT if waits else Answer.DONE
            told[state] = (heard, row.status)
        return told

    async def play_out(self, *, brings_back: bool) -> dict[State, str]:
        """Take everything away that may stand in an order's way; what becomes of each record."""
        # The worker moves the record that it knows: as it was when the worker claimed it.
        await self._commit([new_settle(row, Yielded("its budget ends"), self.clock.now()) for row in self.held])
        await self._swept()
        open_ = [row for row in (await self.rows()).values() if row.open_intents]
        asked = [row.record_id for row in open_ if row.status is Status.NEEDS_APPROVAL]
        await asyncio.gather(*(self.client.resolve(record_id, happened=False) for record_id in asked))
        late = [row for row in open_ if row.status is not Status.NEEDS_APPROVAL]
        await self._commit([new_facts(row, replace(self.intents[row.record_id], stage=Stage.VOID)) for row in late])
        await self._swept()
        if brings_back:
            await self.client.resume(cancelled=True)
        await self._swept()
        return {state: _word(row) for state, row in (await self.rows()).items()}

    async def _swept(self) -> None:
        while (await self.ledger.recover()).swept:
            pass

    async def odd_families(self, verb: Verb, words: dict[State, str]) -> list[str]:
        """Children that were counted although they go on, or were let go although their parent goes on; or not."""
        odd = []
        for state, word in words.items():
            if state.family is Family.ALONE:
                continue
            fanin = await the_fanin(self.ledger, self.roots[state])
            by_halt = verb in (Verb.HALT, Verb.RESUME) and state.status not in ENDED
            ended = word in ENDED and not by_halt
            if state.family is Family.CHILD and fanin.left != 2 - ended:
                odd.append(f"{state}: {fanin.left} of its parent's two children are left")
            gone = ended or word == IS_UNDONE or (verb is Verb.MOVE and comes_to(verb, state).answer is Answer.DONE)
            if state.family is Family.PARENT and fanin.abandoned != gone:
                odd.append(f"{state}: its children are {'' if fanin.abandoned else 'not '}let go")
        return odd


def _split(row: Record, state: State, now: float) -> Change:
    """The record opens a fan-in of two children, so that its parent waits on when one of them ends."""
    outcome = new_map(row, 2, now, may_fail=2)
    if state.family is Family.PARENT:
        outcome = outcome._replace(waits=(*outcome.waits, on_signal(row, "go")))
    return new_settle(row, outcome, now)


def _question(row: Record, now: float) -> Wait:
    return approval.question(
        key=f"{row.record_id}-ok",
        text="ok?",
        show=None,
        edit=(),
        choices=("yes", "no"),
        by=None,
        quorum=1,
        remind=None,
        escalate=None,
        expires=None,
        now=now,
    )


def _word(row: Record) -> str:
    if row.ended:
        return row.status
    if row.status is Status.PENDING:
        return IS_UNDONE if row.step == UNDO else GOES_ON
    return {Status.WAITING: WAITS, Status.NEEDS_APPROVAL: ASKS}.get(row.status, row.status)


class Ordered(Suite):
    """Each order comes to what the table says, for every state (6, 15, 18)."""

    @pytest.mark.parametrize("halted", [False, True], ids=["free", "halted"])
    @pytest.mark.parametrize("verb", Verb)
    async def test_an_order_comes_to_what_the_table_says_in_every_state(
        self, ledger: Ledger, clock: ToldClock, verb: Verb, halted: bool
    ) -> None:
        cells = Cells(ledger, clock, [state for state in states() if state.halted == halted])
        await cells.make()
        if halted:
            await order(ledger, "halt")

        told = await cells.told(verb)
        words = await cells.play_out(brings_back=halted and verb not in ABOUT_HALTS)

        wrong = []
        for state, (answer, reads) in told.items():
            came, expected = Comes(answer, reads, words[state]), comes_to(verb, state)
            if came != expected:
                wrong.append(f"{state}: it came to {came}, not to {expected}")
        wrong += await cells.odd_families(verb, words)
        assert not wrong, f"{verb}: {len(wrong)} wrong\n" + "\n".join(wrong)
