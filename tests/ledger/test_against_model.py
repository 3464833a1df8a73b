"""Every store does what the memory ledger does, for any order of verbs; and the promises hold after each of them."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from quire.clock import new_id
from quire.errors import IllegalMove, WorkerClosed
from quire.ledger.base import Ledger
from quire.ledger.memory.ledger import MemoryLedger
from quire.ledger.sqlite.ledger import SqliteLedger
from quire.model.change import Change, Claim, Claimed, Holding, Order, Query, Rate, Send, Slot
from quire.model.event import Event, Line, first_break
from quire.model.receipt import Receipt, Stage
from quire.model.record import UNDO, Record, Status
from quire.model.row import field_values, replace
from quire.model.side import EVERYWHERE
from quire.model.wait import On, Wait
from quire.rules import moves as transition
from quire.rules.moves import Move
from quire.rules.outcome import Done, Next, Saved, Tried, Waits
from quire.testing import ToldClock
from quire.testing.conformance import (
    FLOW,
    OUTCOMES,
    STEP,
    a_worker,
    new_answer,
    new_facts,
    new_intent,
    new_map,
    new_move,
    new_settle,
    new_start,
    on_signal,
)
from tests.ledger.conftest import EmptiedDatabase, postgres_ledgers

T = TypeVar("T")

#: A context in which a fresh, empty store is open to connections.
Subject = Callable[[ToldClock], AbstractContextManager[Ledger]]

RECORDS = [f"r{n}" for n in range(4)]
WORKERS = [f"w{n}" for n in range(3)]
CAP, WORKFLOW_CAP = 2, 3
RATE = Rate("api", 3, 60)
#: What a run of each step takes, the same in every claim: so the caps can be checked at every moment.
SLOTS = {
    (FLOW, STEP): Slot(FLOW, STEP, 100.0, workflow_cap=WORKFLOW_CAP),
    (FLOW, "next"): Slot(FLOW, "next", 50.0, cap=CAP, workflow_cap=WORKFLOW_CAP, rate=RATE),
    (FLOW, UNDO): Slot(FLOW, UNDO, 100.0, workflow_cap=WORKFLOW_CAP),
    ("child", STEP): Slot("child", STEP, 100.0, cap=CAP),
    ("child", "next"): Slot("child", "next", 100.0),
}
#: What may become of a receipt; an intent may follow what did not happen and what was undone.
STAGES = {
    None: {Stage.INTENDED, Stage.DONE},
    Stage.INTENDED: {Stage.INTENDED, Stage.DONE, Stage.VOID},
    Stage.DONE: {Stage.DONE, Stage.UNDONE},
    Stage.VOID: set(Stage),
    Stage.UNDONE: {Stage.UNDONE, Stage.INTENDED},
}

places = st.integers(0, 11)
few = st.integers(0, 2)


class SameAsTheModel(RuleBasedStateMachine):
    subject_in: Subject

    def __init__(self) -> None:
        super().__init__()
        self.clock = ToldClock()
        self.model = MemoryLedger(self.clock)
        self.loop = asyncio.new_event_loop()
        self.context = self.subject_in(self.clock)
        self.subject: Ledger = self.context.__enter__()
        #: Images as they were once seen: whoever holds an old one acts on it.
        self.images: list[Record] = []
        self.intents: list[Receipt] = []
        self.changes: list[Change] = []
        self.claims: list[Claim] = []
        self.versions: dict[str, int] = {}
        self.stages: dict[str, Stage] = {}
        #: The incarnation of each worker.
        self.alive = {worker: worker for worker in WORKERS}
        self.lines: dict[str, list[Event]] = {}
        self.last_lines = [0, 0]

    @initialize(parents=few, mapped=st.integers(0, 3), limit=st.sampled_from([None, 1, 2]))
    def opened(self, parents: int, mapped: int, limit: int | None) -> None:
        """Begin in the middle: workers live, records run, some of them wait for children that run."""
        self.run(self.subject.open())
        for worker in WORKERS:
            self.beat(worker, True)
        self.commit(*(new_start(record_id, self.now) for record_id in RECORDS))
        self.claim(WORKERS[0], 3, 0)
        for row in self.images[-parents:] if parents else []:
            outcome = new_map(row, mapped, self.now, limit=limit, may_fail=mapped // 2)
            self.commit(new_settle(row, outcome, self.now))
        self.claim(WORKERS[1], 4, 3)

    def teardown(self) -> None:
        self.run(self.subject.close())
        self.context.__exit__(None, None, None)
        self.loop.close()

    # Asking both.

    def both(
        self, ask: Callable[[Ledger], Coroutine[Any, Any, T]], same: Callable[[T], Any] = lambda answer: answer
    ) -> T | None:
        """Ask the model and the subject the same; their answers are the same."""

        told = _answer(_at_once, ask(self.model))
        found = _answer(self.run, ask(self.subject))
        if isinstance(told, WorkerClosed):
            assert isinstance(found, WorkerClosed)
            return None
        assert not isinstance(found, WorkerClosed)
        assert same(found) == same(told)
        return told

    def run(self, ask: Awaitable[T]) -> T:
        return self.loop.run_until_complete(ask)

    def commit(self, *changes: Change) -> None:
        self.changes += changes
        verdicts = self.both(lambda ledger: ledger.commit(changes))
        for verdict in verdicts or []:
            record = getattr(verdict, "record", None)
            if record is not None:
                self.images.append(record)

    @property
    def now(self) -> float:
        return self.clock.now()

    def any_of(self, place: int, *statuses: Status) -> Record | None:
        """One of the records as they are, if there is one in these statuses."""
        rows = [row for row in self.model.tables.all_records.values() if row.status in statuses]
        return rows[place % len(rows)] if rows else None

    def current(self, place: int) -> Record:
        rows = list(self.model.tables.all_records.values())
        return rows[place % len(rows)]

    @property
    def runs(self) -> bool:
        return self.any_of(0, Status.RUNNING) is not None

    def running(self, place: int) -> Record:
        row = self.any_of(place, Status.RUNNING)
        assert row is not None
        return row

    def image(self, place: int) -> Record:
        """A record as somebody has seen it lately; place 0 is the last one seen."""
        return self.images[-1 - place % len(self.images)]

    # What workers, people and time do.

    @rule(record_id=st.sampled_from(RECORDS), data=few, priority=few, delay=st.sampled_from([0, 0, 40]))
    def start(self, record_id: str, data: int, priority: int, delay: int) -> None:
        due_at = self.now + delay
        self.commit(new_start(record_id, self.now, data=str(data // 2), priority=priority, due_at=due_at))

    @precondition(lambda self: any(row.due_at is not None for row in self.model.tables.all_records.values()))
    @rule(worker=st.sampled_from(WORKERS), limit=st.integers(1, 4), first=places)
    def claim(self, worker: str, limit: int, first: int) -> None:
        slots = list(SLOTS.values())
        turned = (*slots[first % len(slots) :], *slots[: first % len(slots)])
        self._claim(Claim(new_id(), self.alive[worker], turned, limit))

    @rule(place=few)
    def claim_again(self, place: int) -> None:
        self._claim(replace(self.claims[-1 - place % len(self.claims)], again=True))

    def _claim(self, claim: Claim) -> None:
        priorities = any(row.priority for row in self.model.tables.all_records.values())

        def same(answer: Claimed) -> object:
            rows = sorted(answer.records, key=field_values) if claim.again else answer.records
            # When something is left, it is due already; among priorities the moment is a guess.
            next_due = answer.next_due_at if answer.left_priority is None and not priorities else None
            return rows, answer.now, answer.left_priority is None, next_due

        self.claims.append(claim)
        told = self.both(lambda ledger: ledger.claim(claim), same)
        if told is not None:
            self.images += told.records
        else:
            self.closed(claim.worker)

    @precondition(lambda self: self.runs)
    @rule(place=places, outcome=st.sampled_from(sorted(OUTCOMES)), keep=st.booleans(), receipts=few)
    def settle(self, place: int, outcome: str, keep: bool, receipts: int) -> None:
        self._settle(self.running(place), outcome, keep, receipts)

    @rule(place=places, outcome=st.sampled_from(sorted(OUTCOMES)))
    def settle_what_may_be_stale(self, place: int, outcome: str) -> None:
        row = self.image(place)
        if row.worker is not None:
            self._settle(row, outcome, False, 1)

    def _settle(self, row: Record, name: str, keep: bool, receipts: int) -> None:
        outcome = OUTCOMES[name]
        if isinstance(outcome, Waits) and receipts == 0:
            outcome = Waits((on_signal(row, until=self.now + 30), Wait(On.TIMER, "t", until=self.now + 20)), "{}")
        slot = SLOTS.get((row.workflow, "next")) if keep and isinstance(outcome, Next) and name == "next" else None
        mine = [intent for intent in self.intents if intent.record_id == row.record_id]
        carried = tuple(replace(intent, stage=Stage.DONE, value="1") for intent in mine[-receipts:] if receipts)
        if receipts == 2:
            carried += (new_answer(row, "ride"),)
        self.commit(new_settle(row, outcome, self.now, keep=slot, receipts=carried))

    @precondition(lambda self: self.runs)
    @rule(place=places, count=st.integers(0, 4), limit=st.sampled_from([None, 1, 2]), may_fail=few)
    def map(self, place: int, count: int, limit: int | None, may_fail: int) -> None:
        row = self.running(place)
        if row.workflow == FLOW:
            self.commit(new_settle(row, new_map(row, count, self.now, limit=limit, may_fail=may_fail), self.now))

    @precondition(lambda self: self.model.tables.running("child", None))
    @rule(broke=st.booleans())
    def end_all_children_in_one_batch(self, broke: bool) -> None:
        rows = self.model.tables.all_records.values()
        running = [row for row in rows if row.status is Status.RUNNING and row.parent_id is not None]
        outcome = OUTCOMES["broke"] if broke else Done("1", "{}")
        self.commit(*(new_settle(row, outcome, self.now) for row in running))

    @precondition(lambda self: self.runs)
    @rule(place=places, name=st.sampled_from(["post", "mail"]), two=st.booleans(), rated=st.booleans())
    def intend(self, place: int, name: str, two: bool, rated: bool) -> None:
        row = self.running(place)
        names = [name, "both"] if two else [name]
        made = [new_intent(row, each, act_by=self.now + 30) for each in names]
        self.intents += made
        self.commit(new_facts(row, *made, rates=(RATE,) if rated else ()))

    @precondition(lambda self: self.intents)
    @rule(place=places, stage=st.sampled_from([Stage.DONE, Stage.DONE, Stage.VOID, Stage.UNDONE]), other=st.booleans())
    def deliver(self, place: int, stage: Stage, other: bool) -> None:
        intent = self.intents[-1 - place % len(self.intents)]
        if stage is Stage.UNDONE and self.stages.get(intent.key) is not Stage.DONE:
            return
        receipt = replace(intent, stage=stage, value="1", nonce="other" if other else intent.nonce)
        record = self.model.tables.all_records[intent.record_id]
        self.commit(new_facts(record, receipt))

    @rule(place=places, name=st.sampled_from(["a", "b"]), line=st.booleans())
    def answer_a_call(self, place: int, name: str, line: bool) -> None:
        row = self.image(place)
        self.commit(new_facts(row, new_answer(row, name), lines=(Line("noted"),) if line else ()))

    @rule(record_id=st.sampled_from(RECORDS), number=st.integers(0, 5), name=st.sampled_from(["paid", "paid", "else"]))
    def send(self, record_id: str, number: int, name: str) -> None:
        sends = [Send(f"s{number}", record_id, name, str(number)), Send(f"t{number}", record_id, name, "2")]
        self.both(lambda ledger: ledger.send(sends[: 1 + number % 2]))

    @rule(place=places, undo=st.booleans(), priority=few)
    def ask(self, place: int, undo: bool, priority: int) -> None:
        row = self.current(place)
        wish = f'{{"reason": "a typo", "undo": {str(undo).lower()}}}'
        beside = {"priority": priority} if priority == 2 else {"cancel": wish}
        self.commit(Change(new_id(), row.record_id, row.version, None, **beside))

    @rule(place=places, verb=st.sampled_from(["cancel", "undo", "retry", "rewind", "revive", "edit", "move", "answer"]))
    def person(self, place: int, verb: str) -> None:
        [row] = self.run(self.model.load([self.current(place).record_id]))
        try:
            go = self._by_person(row, verb)
        except IllegalMove:
            return
        self.commit(new_move(row, go))

    def _by_person(self, row: Record, verb: str) -> Move:
        match verb:
            case "cancel" | "undo":
                return transition.cancel(row, self.now, "ann", "", undo=verb == "undo")
            case "retry":
                return transition.retry(row, self.now, "ann")
            case "rewind":
                return transition.retry(row, self.now, "ann", step=STEP)
            case "revive":
                return transition.revive(row, self.now, "ann", self.model.tables.epoch)
            case "edit":
                return transition.edit(row, self.now, "ann", '"edited"')
            case "move":
                return transition.move(row, self.now, "ann", "next", ["next"], rests=False, ends=False)
            case _:
                return transition.answered(row, self.now, "key", {})

    @precondition(lambda self: self.any_of(0, Status.NEEDS_APPROVAL) is not None)
    @rule(place=places, happened=st.booleans())
    def resolve(self, place: int, happened: bool) -> None:
        row = self.any_of(place, Status.NEEDS_APPROVAL)
        assert row is not None
        for intent in self.model.tables.intents(row.record_id):
            stage = Stage.DONE if happened else Stage.VOID
            go = transition.resolved(row, self.now, intent.key, {})
            self.commit(new_move(row, go, receipts=(replace(intent, stage=stage),)))
            return

    @rule(worker=st.sampled_from(WORKERS), knows=st.booleans())
    def beat(self, worker: str, knows: bool) -> None:
        worker = self.alive[worker]
        held = {row.record_id: row.version for row in self.model.tables.held_by(worker)}
        holding = Holding(held if knows else {"ghost": 1}, tuple(claim.claim_id for claim in self.claims[-1:]))
        told = self.both(
            lambda ledger: ledger.beat(a_worker(worker), holding),
            lambda told: (told.now, told.lost, set(told.cancelled)),
        )
        if told is None:
            self.closed(worker)

    def closed(self, worker: str) -> None:
        """The next incarnation takes its place."""
        for name, incarnation in self.alive.items():
            if incarnation == worker:
                self.alive[name] += "'"

    @rule(worker=st.sampled_from(WORKERS), seldom=few)
    def farewell(self, worker: str, seldom: int) -> None:
        if seldom == 0:
            self.both(lambda ledger: ledger.farewell(self.alive[worker]))
            self.closed(self.alive[worker])

    @rule()
    def a_worker_is_lost(self) -> None:
        self.clock.advance(34)
        self.recover(500)

    @rule(limit=st.sampled_from([1, 500]))
    def recover(self, limit: int) -> None:
        if limit == 1 and any(control.floor for control in self.model.tables.all_controls.values()):
            limit = 500  # which rows a short sweep takes first is the store's own affair
        if limit == 1 and sum(fanin.abandoned for fanin in self.model.tables.all_fanins.values()):
            limit = 500
        self.both(
            lambda ledger: ledger.recover(limit),
            lambda told: (told.workers, told.records, told.swept, told.more, set(told.open)),
        )

    @rule(
        word=st.sampled_from(["halt", "pause", "resume", "resume", "resume", "seal", "unseal"]),
        scope=st.sampled_from([EVERYWHERE, FLOW, "child"]),
        seldom=few,
    )
    def order(self, word: str, scope: str, seldom: int) -> None:
        if word in ("resume", "unseal") or seldom == 0:
            self.both(
                lambda ledger: ledger.order(Order(word, scope, "ann")),
                lambda told: (told.epoch, set(told.controls), {r.key for r in told.under_way}, told.sealed),
            )
            if word == "seal":
                self.both(lambda ledger: ledger.order(Order("unseal", scope, "ann")), lambda told: told.sealed)

    @rule(span=st.sampled_from([0.1, 1, 10, 20, 34, 120]))
    def advance(self, span: float) -> None:
        self.clock.advance(span)

    @rule(places=st.lists(places, min_size=1, max_size=3))
    def send_changes_again(self, places: list[int]) -> None:
        again = [self.changes[-1 - place % len(self.changes)] for place in places]
        self.both(lambda ledger: ledger.commit(again))

    @precondition(lambda self: self.runs)
    @rule(place=places)
    def save_twice_in_one_batch(self, place: int) -> None:
        row = self.running(place)
        first = new_settle(row, Saved("1"), self.now)
        assert first.image is not None
        self.commit(first, new_settle(first.image, Tried("2", 5.0), self.now))

    # What holds after each of them.

    @invariant()
    def the_promises_hold(self) -> None:
        self.everything_reads_the_same()
        self.the_new_lines_are_the_same_and_follow_from_the_old()
        self.versions_only_grow()
        self.every_record_is_due_or_runs_or_waits_for_something_named_or_has_ended()
        self.open_intents_are_counted_and_no_record_has_ended_over_one()
        self.what_was_done_stays_done()
        self.fan_ins_count_their_children()
        self.caps_hold()

    def everything_reads_the_same(self) -> None:
        ids = list(self.model.tables.all_records)
        parents = {fanin.parent_id for fanin in self.model.tables.all_fanins.values()}
        sent = {signal.record_id for signal in self.model.tables.all_signals.values()}

        async def look(ledger: Ledger) -> list[Any]:
            return [
                await ledger.find(Query(limit=1000)),
                sorted(await ledger.counts(), key=field_values),
                sorted(await ledger.receipts(record_ids=ids), key=field_values),
                sorted(await ledger.workers(), key=field_values),
                [sorted(await ledger.fanins(record_id), key=field_values) for record_id in parents],
                [await ledger.signals(record_id) for record_id in sent],
            ]

        self.both(look)

    def the_new_lines_are_the_same_and_follow_from_the_old(self) -> None:
        news = []
        for n, ledger in enumerate((self.model, self.subject)):
            some = self.run(ledger.events(after=self.last_lines[n]))
            self.last_lines[n] = some[-1].seq if some else self.last_lines[n]
            # Which of several lost records is written down first is the store's own affair.
            news.append(sorted((replace(event, seq=0) for event in some), key=lambda event: (event.record_id, event.n)))
        assert news[0] == news[1]
        for event in news[0]:
            self.lines.setdefault(event.record_id, []).append(event)
        for record_id in {event.record_id for event in news[0]}:
            row, lines = self.model.tables.all_records[record_id], self.lines[record_id]
            assert first_break(lines) is None
            assert (row.log_seq, row.log_hash) == (len(lines), lines[-1].hash)

    def versions_only_grow(self) -> None:
        for row in self.model.tables.all_records.values():
            assert row.version >= self.versions.get(row.record_id, 0)
            self.versions[row.record_id] = row.version

    def every_record_is_due_or_runs_or_waits_for_something_named_or_has_ended(self) -> None:
        """Promises 1 and 7."""
        for row in self.model.tables.all_records.values():
            running = row.status is Status.RUNNING
            assert (row.worker is not None, row.run_until is not None) == (running, running), row
            if row.status is Status.PENDING:
                assert row.due_at is not None, row
            if row.status in (Status.WAITING, Status.NEEDS_APPROVAL):
                assert row.waits is not None, row
            if row.ended:
                assert (row.due_at, row.cancel) == (None, None), row

    def open_intents_are_counted_and_no_record_has_ended_over_one(self) -> None:
        """Promise 3."""
        tables = self.model.tables
        for row in tables.all_records.values():
            assert row.open_intents == len(tables.intents(row.record_id)), row
            if row.ended and row.open_intents:
                # A halt cancels by definition what pends, also over an open intent.
                assert row.status is Status.CANCELLED, row
                # What was done of its other intents, and what people say of it, may be told after that.
                made = next(line for line in self.lines[row.record_id] if line.version == row.version)
                assert made.body == '{"reason":"halted"}', row
            if not row.facts:
                assert all(receipt.visit != row.visit for receipt in tables.receipts_of(row.record_id)), row

    def what_was_done_stays_done(self) -> None:
        """Promise 3."""
        for receipt in self.model.tables.all_receipts.values():
            assert receipt.stage in STAGES[self.stages.get(receipt.key)]
            self.stages[receipt.key] = receipt.stage

    def fan_ins_count_their_children(self) -> None:
        """Promise 4."""
        tables = self.model.tables
        for fanin in tables.all_fanins.values():
            children = [row for row in tables.children_of(fanin.parent_id) if row.generation == fanin.generation]
            left = [row for row in children if not row.counted]
            assert len(children) == fanin.total
            assert fanin.left == len(left)
            # What an ended child did may be undone when its parent has gone on: it stays counted as what it was.
            undone = any(row.counted and row.step == UNDO for row in children)
            assert undone or fanin.failed == sum(row.counted and row.status is not Status.DONE for row in children)
            assert fanin.active == sum((row.place or 0) < fanin.next_place for row in left)
            assert all(row.ended or row.step == UNDO for row in children if row.counted)

    def caps_hold(self) -> None:
        """Promise 5."""
        tables = self.model.tables
        assert tables.running(FLOW, None) <= WORKFLOW_CAP
        assert tables.running(FLOW, "next") <= CAP
        assert tables.running("child", STEP) <= CAP


def _at_once(coroutine: Coroutine[Any, Any, T]) -> T:
    """The answer of the memory ledger, which waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        answer: T = end.value
        return answer
    raise AssertionError("the memory ledger waited for something")


def _answer(run: Callable[[Coroutine[Any, Any, T]], T], ask: Coroutine[Any, Any, T]) -> T | WorkerClosed:
    try:
        return run(ask)
    except WorkerClosed as error:
        return error


@contextmanager
def sqlite(clock: ToldClock) -> Iterator[Ledger]:
    with tempfile.TemporaryDirectory() as folder:
        yield SqliteLedger(Path(folder) / "quire.db", clock)


def in_postgres(emptied_database: EmptiedDatabase) -> Subject:
    @contextmanager
    def postgres(clock: ToldClock) -> Iterator[Ledger]:
        yield postgres_ledgers(emptied_database(), clock)()

    return postgres


def check(subject: Subject, examples: int) -> None:
    class Machine(SameAsTheModel):
        subject_in = staticmethod(subject)

    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=60,
            # A failure is told as it was found: making it smaller takes longer than a test may.
            phases=(Phase.explicit, Phase.reuse, Phase.generate),
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        ),
    )


def test_sqlite_does_what_the_model_does() -> None:
    check(sqlite, 30)


def test_postgres_does_what_the_model_does(emptied_database: EmptiedDatabase) -> None:
    check(in_postgres(emptied_database), 15)
