"""The contract of ``quire.ledger.base``, one test per behaviour, for any ledger.

A store proves itself by a subclass and two fixtures::

    class TestMyLedger(LedgerConformance):
        @pytest.fixture
        def ledger(self, clock: ToldClock) -> Ledger:
            return MyLedger(clock)

        @pytest.fixture
        def twin(self, ledger: Ledger, clock: ToldClock) -> Ledger:
            return MyLedger(clock)  # a second process on the same store; leave it out if it cannot be shared

The fixtures give ledgers that are not open yet, empty, and told the time by ``clock``. Each test runs in an event loop
of its own, in which the ledgers are opened before it and closed after it: no plugin for async tests is needed. To see
what a failing test has found, call ``pytest.register_assert_rewrite("quire.testing.conformance")`` in a conftest.py.

Records and changes are built through ``machine.transition``, as the runtime builds them; the builders stand first and
may be used by other tests. Numbers in names and docstrings are the scenarios of the protocol.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Any

import pytest

from quire.clock import new_id
from quire.errors import LedgerError, WorkerClosed
from quire.ledger.base import Ledger
from quire.ledger.memory import MemoryLedger
from quire.ledger.rows import key_of as key_of_row
from quire.machine import fanout, transition
from quire.machine.outcome import Broke, Done, Next, Outcome, Saved, Stopped, Tried, Waits, Yielded
from quire.machine.transition import Move
from quire.model.change import (
    Applied,
    Beaten,
    Change,
    Claim,
    Claimed,
    Conflict,
    Holding,
    Order,
    Query,
    Rate,
    Refused,
    Send,
    Slot,
    Verdict,
)
from quire.model.codec import dump
from quire.model.event import Event, Line, first_break
from quire.model.receipt import Kind, Receipt, Stage, fingerprint, key_of
from quire.model.record import UNDO, Record, Status, new_record
from quire.model.side import EVERYWHERE, Bucket, Control, Fanin, Setting, Signal, Worker
from quire.model.wait import On, Wait, load_waits
from quire.testing.clock import ToldClock

FLOW = "flow"
STEP = "work"


# Builders of what is asked of a ledger.


def slot(step: str = STEP, workflow: str = FLOW, **fields: Any) -> Slot:
    return Slot(workflow, step, **{"timeout": 3600.0, **fields})


def new_start(record_id: str, now: float, *, change_id: str = "", **fields: Any) -> Change:
    """The change that starts a record, due now unless ``fields`` say otherwise."""
    given = {"workflow": FLOW, "step": STEP, "data": "{}", "due_at": now, **fields}
    go = transition.start(new_record(record_id=record_id, now=now, **given), now)
    return Change(change_id or new_id("start-"), record_id, 0, go.image, lines=go.lines)


def new_settle(record: Record, outcome: Outcome, now: float, *, change_id: str = "", **fields: Any) -> Change:
    """The change by which the holder settles the record."""
    go = transition.settle(record, outcome, now, keep=fields.get("keep"))
    image = go.image
    if isinstance(outcome, Waits):
        image = image._replace(fanouts=image.fanouts + len(outcome.fanins))
        fields |= {"children": outcome.children, "fanins": outcome.fanins}
    given = {"worker": record.worker, "lines": go.lines, **fields}
    return Change(change_id or new_id("settle-"), record.record_id, record.version, image, **given)


def new_move(record: Record, go: Move, *, change_id: str = "", **fields: Any) -> Change:
    """The change by which a person moves a record that nobody holds."""
    given = {"lines": go.lines, **fields}
    return Change(change_id or new_id("move-"), record.record_id, record.version, go.image, **given)


def new_facts(record: Record, *receipts: Receipt, change_id: str = "", **fields: Any) -> Change:
    """Receipts and lines that come to stand beside the record."""
    given = {"worker": record.worker, "receipts": receipts, **fields}
    return Change(change_id or new_id("facts-"), record.record_id, record.version, None, **given)


def new_intent(record: Record, name: str = "post", *, act_by: float | None = None, **fields: Any) -> Receipt:
    """The intent of an effect of this visit of this step."""
    key = key_of(record.workflow, record.record_id, record.step, record.visit, "", name)
    given: dict[str, Any] = {
        "key": key,
        "record_id": record.record_id,
        "step": record.step,
        "visit": record.visit,
        "name": name,
        "kind": Kind.ONCE,
        "stage": Stage.INTENDED,
        "fn": "shop:post",
        "args_hash": fingerprint("[]"),
        "args": "[]",
        "value": "",
        "nonce": new_id(),
        "worker": record.worker or "",
        "act_by": act_by,
        "seq": 0,
        "at": 0.0,
        "done_at": None,
        "undo": "",
        "signature": "",
        "key_id": "",
    }
    return Receipt(**given | fields)


def done(intent: Receipt, value: str = '"posted"') -> Receipt:
    return intent._replace(stage=Stage.DONE, value=value)


def new_answer(record: Record, name: str, value: str = "1", kind: Kind = Kind.CALL) -> Receipt:
    """The answer of a call, a sleep or a question, which needs no intent."""
    return done(new_intent(record, name, kind=kind), value)


def a_worker(worker_id: str = "w1", lease: float = 30.0) -> Worker:
    return Worker(worker_id, worker_id, "host", "boot", 1, 0.0, 0.0, lease, None, "[]")


# What is asked of the ledger, in one call each.


async def commit(ledger: Ledger, change: Change) -> Verdict:
    [verdict] = await ledger.commit([change])
    return verdict


def applied(verdict: Verdict) -> Record:
    assert isinstance(verdict, Applied), verdict
    return verdict.record


def refused(verdict: Verdict) -> str:
    """The code of the refusal."""
    assert isinstance(verdict, Refused), verdict
    return verdict.code


async def start(ledger: Ledger, record_id: str = "r", **fields: Any) -> Record:
    return applied(await commit(ledger, new_start(record_id, await ledger.now(), **fields)))


async def start_all(ledger: Ledger, record_ids: Iterable[str], **fields: Any) -> list[Record]:
    now = await ledger.now()
    return [applied(v) for v in await ledger.commit([new_start(record_id, now, **fields) for record_id in record_ids])]


async def settle(ledger: Ledger, record: Record, outcome: Outcome, **fields: Any) -> Verdict:
    return await commit(ledger, new_settle(record, outcome, await ledger.now(), **fields))


async def move(ledger: Ledger, record: Record, go: Move, **fields: Any) -> Verdict:
    return await commit(ledger, new_move(record, go, **fields))


async def the(ledger: Ledger, record_id: str = "r") -> Record:
    [record] = await ledger.load([record_id])
    return record


async def beat(
    ledger: Ledger, worker: str = "w1", *held: Record, claims: tuple[str, ...] = (), lease: float = 30.0
) -> Beaten:
    holding = Holding({record.record_id: record.version for record in held}, claims)
    return await ledger.beat(a_worker(worker, lease), holding)


async def claim(
    ledger: Ledger, *slots: Slot, worker: str = "w1", limit: int = 100, claim_id: str = "", again: bool = False
) -> Claimed:
    return await ledger.claim(Claim(claim_id or new_id("claim-"), worker, slots or (slot(),), limit, again))


async def claimed(ledger: Ledger, *slots: Slot, **fields: Any) -> list[str]:
    """The ids of the records that a claim takes."""
    return [record.record_id for record in (await claim(ledger, *slots, **fields)).records]


async def run(ledger: Ledger, record_id: str = "r", *, worker: str = "w1", **fields: Any) -> Record:
    """A record that is started and runs under a worker that is known."""
    record = await start(ledger, record_id, **fields)
    if worker not in {known.worker_id for known in await ledger.workers()}:
        await beat(ledger, worker)
    taken = await claim(ledger, slot(record.step, record.workflow), worker=worker)
    return next(row for row in taken.records if row.record_id == record_id)


async def intend(ledger: Ledger, record: Record, name: str = "post", **fields: Any) -> Receipt:
    intent = new_intent(record, name, **fields)
    applied(await commit(ledger, new_facts(record, intent)))
    return intent


async def receipt_of(ledger: Ledger, key: str) -> Receipt:
    [receipt] = await ledger.receipts(keys=[key])
    return receipt


async def order(ledger: Ledger, word: str, scope: str = EVERYWHERE, **fields: Any) -> None:
    await ledger.order(Order(word, scope, "ann", **fields))


async def log(ledger: Ledger, record_id: str = "r") -> list[str]:
    """The kinds of the record's lines, after a look at their chain."""
    events = await ledger.events(record_id=record_id)
    [record] = await ledger.load([record_id])
    assert first_break(events) is None
    assert (record.log_seq, record.log_hash) == (len(events), events[-1].hash)
    return [event.kind for event in events]


def on_signal(record: Record, name: str = "paid", until: float | None = None) -> Wait:
    return Wait(On.SIGNAL, key=key_of(record.record_id, record.step, record.visit, name), name=name, until=until)


async def wait_for(ledger: Ledger, record: Record, *waits: Wait, **fields: Any) -> Record:
    return applied(await settle(ledger, record, Waits(waits or (on_signal(record),), record.data), **fields))


def new_map(
    parent: Record, count: int, now: float, *, name: str = "items", limit: int | None = None, may_fail: int = 0
) -> Waits:
    """The outcome of a step that opens a fan-in and waits for it."""
    generation = parent.fanouts + 1
    key = key_of(parent.record_id, name, generation)
    fanin = fanout.opened(parent.record_id, generation, key, name, count, limit=limit, may_fail=may_fail)
    children = tuple(
        new_record(
            record_id=f"{fanin.prefix}{place}",
            workflow="child",
            step=STEP,
            data=str(place),
            now=now,
            parent_id=parent.record_id,
            generation=generation,
            place=place,
            **_first_status(place < fanin.active, now),
        )
        for place in range(count)
    )
    return Waits((Wait(On.CHILDREN, key=key, generation=generation),), parent.data, children, (fanin,))


def _first_status(active: bool, now: float) -> dict[str, Any]:
    if active:
        return {"due_at": now}
    return {"status": Status.WAITING, "waits": dump([{"on": On.TURN}])}


async def map_over(ledger: Ledger, parent: Record, count: int, **fields: Any) -> list[str]:
    """Settle the parent into a map of so many children; answers their ids."""
    outcome = new_map(parent, count, await ledger.now(), **fields)
    applied(await settle(ledger, parent, outcome))
    return [child.record_id for child in outcome.children]


async def run_children(ledger: Ledger, worker: str = "w1") -> dict[str, Record]:
    """All children that are due run now; answers them by their place."""
    taken = (await claim(ledger, slot(STEP, "child"), worker=worker)).records
    return {str(row.place): row for row in taken}


async def the_fanin(ledger: Ledger, parent_id: str = "r") -> Fanin:
    return (await ledger.fanins(parent_id))[-1]


async def lose_worker(ledger: Ledger, clock: ToldClock, worker: str = "w1", lease: float = 30.0) -> None:
    """The worker's lease runs out, and somebody notices."""
    clock.advance(lease * 1.1 + 1)
    assert (await ledger.recover()).workers >= 1


def _with_open_ledgers(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @functools.wraps(test)
    def run_test(self: object, **fixtures: Any) -> None:
        ledgers = [value for value in fixtures.values() if isinstance(value, Ledger)]

        async def opened() -> None:
            try:
                await asyncio.gather(*(ledger.open() for ledger in ledgers))
                await test(self, **fixtures)
            finally:
                await asyncio.gather(*(ledger.close() for ledger in ledgers))

        if not _loop_is_running():
            asyncio.run(opened())
            return
        with ThreadPoolExecutor(1) as other_thread:
            other_thread.submit(lambda: asyncio.run(opened())).result()

    return run_test


def _loop_is_running() -> bool:
    """Whether this thread is taken: some plugins leave a loop of their own running in it."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class Suite:
    """Runs the ``async def`` tests of its subclasses, with their ledgers open."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, test in list(vars(cls).items()):
            if name.startswith("test_") and inspect.iscoroutinefunction(test):
                setattr(cls, name, _with_open_ledgers(test))

    @pytest.fixture
    def clock(self) -> ToldClock:
        return ToldClock()

    @pytest.fixture
    def twin(self) -> Ledger:
        pytest.skip("there is no second instance on this store: the fixture 'twin' gives one")


UNUSUAL_IDS = {
    "long": "r" * 300,
    "unicode": "Änderung-データ-🙂",
    "quotes": """it's "quoted" `so`""",
    "slashes": "a/b\\c/../d",
    "wildcards": "100%_[a-z]*?",
    "sql": "x'); DROP TABLE records; --",
    "spaces": " leading and trailing ",
    "colons": "1:a|b~2#3",
    "newline": "two\nlines",
    "digits": "0012",
}

VALUES = {
    "null": "null",
    "empty-text": '""',
    "empty-list": "[]",
    "false": "false",
    "big-int": "90071992547409930000000001",
    "negative-big-int": "-9007199254740993",
    "float": "0.1",
    "tiny-float": "5e-324",
    "escapes": '"\\"\\\\\\n\\t\\u00e9"',
    "emoji": '"👩‍👩‍👧‍👦 🏳️‍🌈"',
    "null-word": '"NULL"',
    "at-sign": '"@sha256:0"',
    "spaces-in-json": '{"b" :  1,\n "a": [ ]}',
    "deep": "[" * 100 + "]" * 100,
}


class Starts(Suite):
    """Records come into the ledger."""

    async def test_a_started_record_comes_back_as_it_was_given(self, ledger: Ledger, clock: ToldClock) -> None:
        change = new_start("r", clock.now(), data='{"n": 1}', dedupe_key="form:7", priority=3, code_version=4)

        verdict = await commit(ledger, change)

        assert isinstance(verdict, Applied)
        assert change.image is not None
        assert verdict.record == change.image._replace(
            epoch=verdict.record.epoch, log_seq=1, log_hash=verdict.record.log_hash
        )
        assert (verdict.record.version, verdict.record.status, verdict.again) == (1, Status.PENDING, False)
        assert await ledger.load(["r"]) == [verdict.record]
        assert await log(ledger) == ["started"]

    async def test_the_same_start_again_answers_with_the_record_and_changes_nothing(self, ledger: Ledger) -> None:
        """13."""
        first = new_start("r", await ledger.now(), data="1", change_id="s1")
        row = applied(await commit(ledger, first))

        verdicts = await ledger.commit([first, first._replace(change_id="s2")])

        assert [(applied(v), v.again) for v in verdicts if isinstance(v, Applied)] == [(row, True)] * 2
        assert await log(ledger) == ["started"]

    async def test_the_same_start_again_answers_with_the_record_as_it_is_by_now(self, ledger: Ledger) -> None:
        change = new_start("r", await ledger.now())
        await commit(ledger, change)
        [row] = (await claim(ledger)).records
        row = applied(await settle(ledger, row, Done('"end"', "{}")))

        assert await commit(ledger, change) == Applied(row, await ledger.now(), again=True)

    async def test_a_start_with_a_known_id_and_other_data_is_refused(self, ledger: Ledger) -> None:
        row = await start(ledger, data="1")

        verdict = await commit(ledger, new_start("r", await ledger.now(), data="2"))

        assert refused(verdict) == "exists"
        assert await ledger.load(["r"]) == [row]

    async def test_a_start_with_a_known_id_in_another_workflow_is_refused(self, ledger: Ledger) -> None:
        await start(ledger)

        assert refused(await commit(ledger, new_start("r", await ledger.now(), workflow="other"))) == "exists"

    async def test_the_same_start_twice_in_one_batch_is_one_record(self, ledger: Ledger) -> None:
        change = new_start("r", await ledger.now())

        first, second = await ledger.commit([change, change])

        assert isinstance(first, Applied)
        assert not first.again
        assert second == first._replace(again=True)

    async def test_a_batch_of_many_starts_answers_each_in_order(self, ledger: Ledger) -> None:
        ids = [f"r{n:03}" for n in range(ledger.traits.batch_changes)]

        rows = await start_all(ledger, ids)

        assert [row.record_id for row in rows] == ids
        assert len(await ledger.load(ids)) == len(ids)

    async def test_a_start_in_the_past_is_due_now_and_one_in_the_future_later(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        past = await start(ledger, "past", due_at=clock.now() - 3600)
        await start(ledger, "future", due_at=clock.now() + 3600)

        assert past.due_at == clock.now()
        assert await claimed(ledger) == ["past"]
        clock.advance(3600)
        assert await claimed(ledger) == ["future"]

    @pytest.mark.parametrize("record_id", UNUSUAL_IDS.values(), ids=UNUSUAL_IDS)
    async def test_any_text_is_an_id(self, ledger: Ledger, record_id: str) -> None:
        row = await run(ledger, record_id, worker=f"w {record_id}")
        await intend(ledger, row, name=record_id)
        await ledger.send([Send(f"s {record_id}", record_id, record_id, "1")])

        assert await ledger.load([record_id]) == await ledger.find(Query(text=record_id[1:-1] or record_id))
        assert [event.record_id for event in await ledger.events(record_id=record_id)] == [record_id] * 4
        assert [receipt.name for receipt in await ledger.receipts(record_ids=[record_id])] == [record_id]
        assert [signal.name for signal in await ledger.signals(record_id)] == [record_id]
        assert (await beat(ledger, f"w {record_id}", row)).lost == ()

    async def test_ids_that_differ_in_case_or_form_only_are_different(self, ledger: Ledger) -> None:
        ids = ["a", "A", "é", "e\u0301", "a ", " a"]

        await start_all(ledger, ids)

        assert [row.record_id for row in await ledger.load(ids)] == ids

    @pytest.mark.parametrize("text", VALUES.values(), ids=VALUES)
    async def test_any_json_text_comes_back_to_the_letter(self, ledger: Ledger, text: str) -> None:
        row = await run(ledger, data=text)
        intent = await intend(ledger, row, args=text)
        await commit(ledger, new_facts(row, done(intent, text), new_answer(row, "call", text)))
        await ledger.send([Send("s1", "r", "paid", text)])
        applied(await settle(ledger, row, Done(text, text), lines=(Line("done", text),)))

        row = await the(ledger)
        assert (row.data, row.result) == (text, text)
        assert [receipt.value for receipt in await ledger.receipts(record_ids=["r"])] == [text, text]
        assert (await receipt_of(ledger, intent.key)).args == text
        assert [signal.value for signal in await ledger.signals("r")] == [text]
        assert (await ledger.events(record_id="r"))[-1].body == text

    @pytest.mark.parametrize("size", [200_000, 10_000_000])
    async def test_a_large_value_comes_back_to_the_letter(self, ledger: Ledger, size: int) -> None:
        """20."""
        text = dump("é🙂" + "x" * size)

        row = await run(ledger, data=text)
        intent = await intend(ledger, row)
        await commit(ledger, new_facts(row, done(intent, text)))
        row = applied(await settle(ledger, row, Next("next", text)))

        assert row.data == text
        assert (await the(ledger)).data == text
        assert (await receipt_of(ledger, intent.key)).value == text
        assert [found.data for found in await ledger.find(Query())] == [text]
        [row] = (await claim(ledger, slot("next"))).records
        assert row.data == text

    async def test_large_values_of_signals_waits_and_lines_come_back_to_the_letter(self, ledger: Ledger) -> None:
        text = dump("x" * 200_000)
        row = await run(ledger)
        await ledger.send([Send("s1", "r", "other", text)])
        wait = on_signal(row)._replace(about={"text": text})

        row = await wait_for(ledger, row, wait, lines=(Line("waited", text),))

        assert [signal.value for signal in await ledger.signals("r")] == [text]
        assert load_waits(row.waits) == load_waits((await the(ledger)).waits) == (wait,)
        assert (await ledger.events(record_id="r"))[-1].body == text

    async def test_one_value_that_the_store_cannot_keep_does_not_spoil_the_others(self, ledger: Ledger) -> None:
        """14: the codec refuses a NUL before the ledger sees it; if one comes all the same, it fails alone."""
        now = await ledger.now()
        changes = [new_start(f"r{n}", now, data='"\\u0000\x00"' if n == 3 else "{}") for n in range(6)]

        verdicts = await ledger.commit(changes)

        assert [type(verdict) for n, verdict in enumerate(verdicts) if n != 3] == [Applied] * 5
        assert isinstance(verdicts[3], Applied) or refused(verdicts[3]) == "value"
        assert len(await ledger.find(Query())) == 5 + isinstance(verdicts[3], Applied)


OUTCOMES: dict[str, Outcome] = {
    "next": Next("next", '{"a": 1}'),
    "rests": Next("rest", "{}", rests=True),
    "ends": Next("end", "{}", ends=True),
    "done": Done('"result"', "{}"),
    "waits": Waits((Wait(On.SIGNAL, "key", "paid", until=1e10),), '{"b": 2}'),
    "asks": Waits((Wait(On.QUESTION, "key", "ok?", about={"text": "ok?"}),), "{}"),
    "saved": Saved('{"c": 3}'),
    "tried": Tried("a 429", 10.0),
    "broke": Broke("a bug"),
    "broke-undo": Broke("a bug", undo=True),
    "yielded": Yielded("its budget ends"),
    "stopped": Stopped("cancelled"),
    "stopped-undo": Stopped("cancelled", undo=True),
}
#: Those that leave the step, or the record, behind.
LEAVING = {name: OUTCOMES[name] for name in ("next", "rests", "ends", "done", "broke", "broke-undo", "stopped")}
#: Those after which the record would go on.
GOING_ON = {name: OUTCOMES[name] for name in ("next", "rests", "waits", "asks", "saved", "tried", "yielded")}


class Moves(Suite):
    """A change replaces one version, whole or not at all."""

    @pytest.mark.parametrize("outcome", OUTCOMES.values(), ids=OUTCOMES)
    async def test_a_settle_puts_its_image_in_place_of_the_version(self, ledger: Ledger, outcome: Outcome) -> None:
        row = await run(ledger)
        go = transition.settle(row, outcome, await ledger.now())

        after = applied(await settle(ledger, row, outcome))

        assert after == go.image._replace(log_seq=after.log_seq, log_hash=after.log_hash)
        assert after.version == row.version + 1
        assert await ledger.load(["r"]) == [after]
        assert await log(ledger) == ["started", "claimed", go.lines[0].kind]

    async def test_of_two_changes_of_one_version_the_second_is_told_what_is_there(self, ledger: Ledger) -> None:
        row = await run(ledger)
        first = applied(await settle(ledger, row, Saved("1")))

        verdict = await settle(ledger, row, Saved("2"))

        assert verdict == Conflict(first, await ledger.now())
        assert (await the(ledger)).data == "1"

    async def test_two_changes_of_one_version_in_one_batch_and_the_second_is_refused(self, ledger: Ledger) -> None:
        row = await run(ledger)
        now = await ledger.now()

        first, second = await ledger.commit([new_settle(row, Saved("1"), now), new_settle(row, Saved("2"), now)])

        assert second == Conflict(applied(first), now)
        assert (await the(ledger)).data == "1"

    async def test_changes_of_one_record_in_one_batch_land_in_order(self, ledger: Ledger) -> None:
        """14."""
        row, now = await run(ledger), await ledger.now()
        changes: list[Change] = []
        for n in range(4):
            changes.append(new_settle(row, Saved(str(n)), now))
            image = changes[-1].image
            assert image is not None
            row = image

        verdicts = await ledger.commit(changes)

        assert [applied(verdict).data for verdict in verdicts] == ["0", "1", "2", "3"]
        assert (await the(ledger)).version == row.version
        assert await log(ledger) == ["started", "claimed", *["saved"] * 4]

    async def test_a_refused_change_takes_its_successors_with_it_and_nothing_else(self, ledger: Ledger) -> None:
        """14."""
        row, other, now = await run(ledger, "r"), await run(ledger, "other"), await ledger.now()
        stale = new_settle(row._replace(version=row.version + 7), Saved("1"), now)
        after_stale = new_settle(row._replace(version=row.version + 8), Saved("2"), now)

        verdicts = await ledger.commit(
            [
                new_start("new", now),
                stale,
                after_stale,
                new_settle(other, Done("3", "{}"), now),
                new_start("r", now, data="9"),
            ]
        )

        assert [type(verdict) for verdict in verdicts] == [Applied, Conflict, Conflict, Applied, Refused]
        assert await the(ledger) == row
        assert (await the(ledger, "other")).status is Status.DONE

    async def test_a_change_of_a_record_that_is_not_there_is_told_so(self, ledger: Ledger) -> None:
        row = await run(ledger)
        ghost = row._replace(record_id="ghost")

        assert await settle(ledger, ghost, Saved("1")) == Conflict(None, await ledger.now())
        assert await commit(ledger, new_facts(ghost, new_answer(ghost, "a"))) == Conflict(None, await ledger.now())
        assert await ledger.load(["ghost"]) == []

    async def test_only_the_holder_moves_a_running_record(self, ledger: Ledger) -> None:
        row = await run(ledger)

        by_another = await settle(ledger, row._replace(worker="w2"), Saved("1"))
        by_a_person = await settle(ledger, row._replace(worker=None), Saved("1"))

        assert (refused(by_another), refused(by_a_person)) == ("running", "running")
        assert await the(ledger) == row

    async def test_a_worker_moves_only_what_it_holds(self, ledger: Ledger) -> None:
        row = await start(ledger)

        verdict = await settle(ledger, row._replace(worker="w1"), Saved("1"))

        assert verdict == Conflict(row, await ledger.now())

    async def test_a_move_again_answers_as_it_did_first(self, ledger: Ledger) -> None:
        """13."""
        row = await run(ledger)
        change = new_settle(row, Next("next", "{}"), await ledger.now())
        after = applied(await commit(ledger, change))

        assert await commit(ledger, change) == Applied(after, await ledger.now(), again=True)
        assert await log(ledger) == ["started", "claimed", "moved"]

    async def test_a_move_again_answers_as_it_did_first_after_the_record_went_on(self, ledger: Ledger) -> None:
        """13."""
        row = await run(ledger)
        change = new_settle(row, Saved("1"), await ledger.now())
        row = applied(await commit(ledger, change))
        await intend(ledger, row)
        await commit(ledger, new_facts(row, lines=(Line("noted"),)))
        again_at_its_version = await commit(ledger, change)
        row = applied(await settle(ledger, row, Saved("2")))

        again_behind = await commit(ledger, change)

        assert isinstance(again_at_its_version, Applied)
        assert again_at_its_version.again
        assert again_behind == Applied(await the(ledger), await ledger.now(), again=True)
        assert (await the(ledger)).data == "2"

    async def test_another_move_from_the_same_version_is_no_repeat(self, ledger: Ledger) -> None:
        row = await run(ledger)
        applied(await settle(ledger, row, Saved("1"), change_id="mine"))

        assert isinstance(await settle(ledger, row, Saved("1"), change_id="yours"), Conflict)

    async def test_a_move_and_its_repeat_in_one_batch_land_once(self, ledger: Ledger) -> None:
        row = await run(ledger)
        change = new_settle(row, Saved("1"), await ledger.now())

        first, second = await ledger.commit([change, change])

        assert second == Applied(applied(first), await ledger.now(), again=True)

    async def test_an_image_cannot_change_what_stands_beside_it(self, ledger: Ledger) -> None:
        """6."""
        row = await run(ledger, priority=2)
        forged = row._replace(priority=99, cancel="{}", facts=9, open_intents=9, log_seq=0, log_hash="")

        after = applied(await settle(ledger, forged, Saved("1")))

        assert (after.priority, after.cancel, after.facts, after.open_intents) == (2, None, 0, 0)
        assert await log(ledger) == ["started", "claimed", "saved"]

    async def test_facts_stand_beside_the_record_without_raising_its_version(self, ledger: Ledger) -> None:
        row = await run(ledger)

        after = applied(await commit(ledger, new_facts(row, new_answer(row, "a"), lines=(Line("noted", '"hello"'),))))

        assert (after.version, after.facts) == (row.version, 1)
        assert [receipt.value for receipt in await ledger.receipts(record_ids=["r"])] == ["1"]
        assert await log(ledger) == ["started", "claimed", "noted"]

    async def test_facts_again_answer_as_they_did_first(self, ledger: Ledger) -> None:
        """13."""
        row = await run(ledger)
        facts = new_facts(row, new_answer(row, "a"), new_intent(row))
        applied(await commit(ledger, facts))

        after = applied(await commit(ledger, facts))

        assert (after.facts, after.open_intents) == (2, 1)
        assert len(await ledger.receipts(record_ids=["r"])) == 2

    async def test_lines_that_come_with_answers_are_written_once(self, ledger: Ledger) -> None:
        """13."""
        row = await run(ledger)
        facts = new_facts(row, new_answer(row, "a"), lines=(Line("noted", '"hello"'),))

        applied(await commit(ledger, facts))
        applied(await commit(ledger, facts))
        both = await ledger.commit([facts, facts])

        assert [type(verdict) for verdict in both] == [Applied, Applied]
        assert await log(ledger) == ["started", "claimed", "noted"]

    async def test_facts_of_one_who_does_not_hold_the_record_do_not_land(self, ledger: Ledger) -> None:
        row = await run(ledger)

        of_another = await commit(ledger, new_facts(row._replace(worker="w2"), new_answer(row, "a")))
        of_an_older_version = await commit(ledger, new_facts(row._replace(version=1), new_answer(row, "b")))

        assert of_another == of_an_older_version == Conflict(row, await ledger.now())
        assert await ledger.receipts(record_ids=["r"]) == []

    async def test_the_first_answer_under_a_key_stands(self, ledger: Ledger) -> None:
        row = await run(ledger)
        await commit(ledger, new_facts(row, new_answer(row, "a", "1")))

        applied(await commit(ledger, new_facts(row, new_answer(row, "a", "2"))))
        applied(await settle(ledger, row, Saved("{}"), receipts=(new_answer(row, "a", "3"),)))

        assert [receipt.value for receipt in await ledger.receipts(record_ids=["r"])] == ["1"]

    async def test_answers_ride_with_a_move(self, ledger: Ledger) -> None:
        row = await run(ledger)

        after = applied(await settle(ledger, row, Saved("{}"), receipts=(new_answer(row, "a"), new_answer(row, "b"))))

        assert after.facts == 2
        assert [receipt.name for receipt in await ledger.receipts(record_ids=["r"])] == ["a", "b"]

    async def test_a_new_visit_has_no_facts_yet(self, ledger: Ledger) -> None:
        row = await run(ledger)
        await commit(ledger, new_facts(row, new_answer(row, "a")))

        after = applied(await settle(ledger, row, Next("next", "{}"), receipts=(new_answer(row, "b"),)))

        assert after.facts == 0
        assert len(await ledger.receipts(record_ids=["r"])) == 2


class Beside(Suite):
    """What others may do to a record while a worker holds it (6)."""

    @staticmethod
    async def ask_to_cancel(ledger: Ledger, *, undo: bool = False) -> Verdict:
        wish = dump({"by": "ann", "reason": "a typo", "undo": undo})
        return await commit(ledger, Change(new_id(), "r", 0, None, cancel=wish))

    async def test_a_signal_a_priority_and_a_wish_to_cancel_leave_the_holder_its_version(self, ledger: Ledger) -> None:
        row = await run(ledger)

        await ledger.send([Send("s1", "r", "paid", "1")])
        applied(await commit(ledger, Change(new_id(), "r", 0, None, priority=7)))
        applied(await self.ask_to_cancel(ledger))

        assert (await the(ledger)).version == row.version
        after = applied(await settle(ledger, row, Done("1", "{}")))
        assert (after.status, after.priority) == (Status.DONE, 7)

    async def test_late_children_leave_the_holder_its_version(self, ledger: Ledger, clock: ToldClock) -> None:
        """5f."""
        await map_over(ledger, await run(ledger), 2, may_fail=0)
        children = await run_children(ledger)
        await settle(ledger, children["0"], Broke("too bad"))
        [parent] = (await claim(ledger)).records

        applied(await settle(ledger, children["1"], Done("1", "{}")))

        assert (await the(ledger)).version == parent.version
        assert (await the_fanin(ledger)).left == 0
        applied(await settle(ledger, parent, Done("1", "{}")))

    @pytest.mark.parametrize("outcome", GOING_ON.values(), ids=GOING_ON)
    async def test_the_holder_obeys_a_wish_to_cancel_whatever_it_comes_to(
        self, ledger: Ledger, outcome: Outcome
    ) -> None:
        row = await run(ledger)
        await self.ask_to_cancel(ledger)

        after = applied(await settle(ledger, row, outcome))

        assert (after.status, after.worker, after.due_at, after.cancel) == (Status.CANCELLED, None, None, None)
        assert (await log(ledger))[-1] == "cancelled"

    async def test_a_wish_to_cancel_with_undo_leads_to_the_undoing(self, ledger: Ledger, clock: ToldClock) -> None:
        row = await run(ledger)
        await self.ask_to_cancel(ledger, undo=True)

        after = applied(await settle(ledger, row, Tried("late", 5.0)))

        assert (after.status, after.step, after.due_at) == (Status.PENDING, UNDO, clock.now())

    async def test_an_end_that_comes_before_the_wish_is_obeyed_stands(self, ledger: Ledger) -> None:
        row = await run(ledger)
        await self.ask_to_cancel(ledger)

        assert applied(await settle(ledger, row, Done('"it"', "{}"))).result == '"it"'

    async def test_the_holder_learns_of_the_wish_by_its_beat_and_by_its_commits(self, ledger: Ledger) -> None:
        row = await run(ledger)
        await self.ask_to_cancel(ledger)

        told = await beat(ledger, "w1", row)
        after = applied(await commit(ledger, new_facts(row, new_answer(row, "a"))))

        assert (told.cancelled, told.lost) == (("r",), ())
        assert after.cancel is not None

    async def test_no_effect_begins_over_a_wish_to_cancel(self, ledger: Ledger) -> None:
        row = await run(ledger)
        await self.ask_to_cancel(ledger)

        assert refused(await commit(ledger, new_facts(row, new_intent(row)))) == "cancelled"
        assert await ledger.receipts(record_ids=["r"]) == []

    async def test_what_does_not_run_is_not_asked_but_cancelled_by_version(self, ledger: Ledger) -> None:
        row = await start(ledger)

        assert await self.ask_to_cancel(ledger) == Conflict(row, await ledger.now())
        after = applied(await move(ledger, row, transition.cancel(row, await ledger.now(), "ann", "", undo=False)))
        assert after.status is Status.CANCELLED

    @pytest.mark.parametrize("how", ["lost", "orphaned", "farewell"])
    async def test_a_wish_to_cancel_outlives_its_worker(self, ledger: Ledger, clock: ToldClock, how: str) -> None:
        await run(ledger)
        await self.ask_to_cancel(ledger)

        if how == "lost":
            await lose_worker(ledger, clock)
        elif how == "orphaned":
            await beat(ledger, "w1")
        else:
            await ledger.farewell("w1")

        assert (await the(ledger)).status is Status.CANCELLED

    async def test_a_wish_to_cancel_outlives_a_doubt(self, ledger: Ledger, clock: ToldClock) -> None:
        row = await run(ledger)
        intent = await intend(ledger, row)
        await self.ask_to_cancel(ledger)
        applied(await settle(ledger, row, Tried("timeout", 1.0)))
        applied(await commit(ledger, new_facts(row, done(intent))))

        [row] = (await claim(ledger)).records

        assert row.cancel is not None
        assert applied(await settle(ledger, row, Next("next", "{}"))).status is Status.CANCELLED

    async def test_a_new_priority_changes_the_order_of_what_is_due(self, ledger: Ledger) -> None:
        await start_all(ledger, ["a", "b"])

        applied(await commit(ledger, Change(new_id(), "b", 0, None, priority=1)))

        assert await claimed(ledger) == ["b", "a"]


async def _nothing(ledger: Ledger, clock: ToldClock) -> None:
    pass


async def _takeover(ledger: Ledger, clock: ToldClock) -> None:
    await lose_worker(ledger, clock)


async def _another_runs_it(ledger: Ledger, clock: ToldClock) -> None:
    await lose_worker(ledger, clock)
    await beat(ledger, "w2")
    assert await claimed(ledger, worker="w2") == ["r"]


async def _in_doubt(ledger: Ledger, clock: ToldClock) -> None:
    await _another_runs_it(ledger, clock)
    applied(await settle(ledger, await the(ledger), Done("1", "{}")))
    assert (await the(ledger)).status is Status.NEEDS_APPROVAL


async def _cancel_asked(ledger: Ledger, clock: ToldClock) -> None:
    applied(await Beside.ask_to_cancel(ledger))


async def _halt(ledger: Ledger, clock: ToldClock) -> None:
    await order(ledger, "halt")


async def _halt_and_takeover(ledger: Ledger, clock: ToldClock) -> None:
    await order(ledger, "halt")
    await lose_worker(ledger, clock)


async def _pause(ledger: Ledger, clock: ToldClock) -> None:
    await order(ledger, "pause")


async def _seal(ledger: Ledger, clock: ToldClock) -> None:
    await order(ledger, "seal", target="postgresql://elsewhere")


Meanwhile = Callable[[Ledger, ToldClock], Awaitable[None]]
MEANWHILE: list[Meanwhile] = [
    _nothing,
    _takeover,
    _another_runs_it,
    _in_doubt,
    _cancel_asked,
    _halt,
    _halt_and_takeover,
    _pause,
    _seal,
]


class Effects(Suite):
    """Intents and receipts (2, 17, 18)."""

    async def test_an_intent_is_open_until_its_receipt_comes(self, ledger: Ledger, clock: ToldClock) -> None:
        row = await run(ledger)

        intent = await intend(ledger, row, act_by=clock.now() + 20)
        opened = await the(ledger)
        clock.advance(2)
        after = applied(await commit(ledger, new_facts(row, done(intent))))

        assert (opened.open_intents, opened.facts, opened.version) == (1, 1, row.version)
        assert (after.open_intents, after.facts, after.version) == (0, 1, row.version)
        receipt = await receipt_of(ledger, intent.key)
        assert (receipt.stage, receipt.value, receipt.done_at) == (Stage.DONE, '"posted"', clock.now())
        assert (receipt.at, receipt.act_by, receipt.nonce) == (clock.now() - 2, clock.now() + 18, intent.nonce)
        assert await log(ledger) == ["started", "claimed", "effect.intended", "effect.done"]

    @pytest.mark.parametrize("meanwhile", MEANWHILE, ids=lambda happens: happens.__name__.strip("_"))
    async def test_a_receipt_lands_whatever_happened_meanwhile(
        self, ledger: Ledger, clock: ToldClock, meanwhile: Meanwhile
    ) -> None:
        """2."""
        row = await run(ledger)
        intent = await intend(ledger, row)
        await meanwhile(ledger, clock)

        applied(await commit(ledger, new_facts(row, done(intent))))

        assert (await receipt_of(ledger, intent.key)).stage is Stage.DONE
        assert (await the(ledger)).open_intents == 0
        assert "effect.done" in await log(ledger)

    async def test_a_receipt_lands_though_the_move_that_brings_it_is_refused(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        row = await run(ledger)
        intent = await intend(ledger, row)
        await lose_worker(ledger, clock)

        verdict = await settle(ledger, row, Done("1", "{}"), receipts=(done(intent),))

        assert isinstance(verdict, Conflict)
        assert (await receipt_of(ledger, intent.key)).stage is Stage.DONE
        assert (await the(ledger)).open_intents == 0

    async def test_a_receipt_may_ride_with_the_move_that_leaves_the_step(self, ledger: Ledger) -> None:
        row = await run(ledger)
        intent = await intend(ledger, row)

        after = applied(await settle(ledger, row, Done("1", "{}"), receipts=(done(intent),)))

        assert (after.status, after.open_intents) == (Status.DONE, 0)

    async def test_the_same_attempt_may_deliver_its_receipt_any_number_of_times(self, ledger: Ledger) -> None:
        row = await run(ledger)
        intent = await intend(ledger, row)

        for _ in range(3):
            applied(await commit(ledger, new_facts(row, done(intent))))
        applied(await settle(ledger, row, Done("1", "{}"), receipts=(done(intent),)))
        applied(await commit(ledger, new_facts(row, done(intent))))

        assert await log(ledger) == ["started", "claimed", "effect.intended", "effect.done", "done"]
        assert (await the(ledger)).open_intents == 0

    async def test_a_receipt_of_another_attempt_is_told_as_done_twice_and_the_first_stands(
        self, ledger: Ledger
    ) -> None:
        row = await run(ledger)
        intent = await intend(ledger, row)
        await commit(ledger, new_facts(row, done(intent, '"first"')))

        applied(await commit(ledger, new_facts(row, done(intent._replace(nonce="other"), '"second"'))))

        assert (await receipt_of(ledger, intent.key)).value == '"first"'
        assert (await log(ledger))[-1] == "effect.twice"

    async def test_a_receipt_without_an_intent_does_not_land(self, ledger: Ledger) -> None:
        row = await run(ledger)

        verdict = await commit(ledger, new_facts(row, done(new_intent(row))))

        assert verdict == Conflict(row, await ledger.now())
        assert await ledger.receipts(record_ids=["r"]) == []

    async def test_a_late_receipt_resolves_the_doubt_over_it(self, ledger: Ledger, clock: ToldClock) -> None:
        row = await run(ledger)
        intent = await intend(ledger, row)
        await _in_doubt(ledger, clock)

        after = applied(await commit(ledger, new_facts(row, done(intent))))

        assert (after.status, after.due_at, after.question) == (Status.PENDING, clock.now(), None)
        assert await claimed(ledger, worker="w2") == ["r"]

    @pytest.mark.parametrize("stage", [Stage.DONE, Stage.VOID])
    async def test_a_person_says_whether_it_happened(self, ledger: Ledger, clock: ToldClock, stage: Stage) -> None:
        intent = await intend(ledger, await run(ledger))
        await _in_doubt(ledger, clock)
        row = await the(ledger)

        go = transition.resolved(row, clock.now(), intent.key, {"by": "ann"})
        after = applied(await move(ledger, row, go, receipts=(intent._replace(stage=stage, value="1"),)))

        assert (after.status, after.open_intents) == (Status.PENDING, 0)
        assert (await receipt_of(ledger, intent.key)).stage is stage

    async def test_what_happened_cannot_be_said_not_to_have(self, ledger: Ledger, clock: ToldClock) -> None:
        """A late receipt and a person's "it did not" cross: the receipt stands, or the effect is done twice."""
        zombie = await run(ledger)
        intent = await intend(ledger, zombie)
        await _in_doubt(ledger, clock)
        row = await the(ledger)
        go = transition.resolved(row, clock.now(), intent.key, {"by": "ann"})
        applied(await commit(ledger, new_facts(zombie, done(intent))))

        verdict = await move(ledger, row, go, receipts=(intent._replace(stage=Stage.VOID),))

        assert isinstance(verdict, Conflict)
        assert (await receipt_of(ledger, intent.key)).stage is Stage.DONE

    async def test_what_did_not_happen_may_turn_out_to_have(self, ledger: Ledger, clock: ToldClock) -> None:
        row = await run(ledger)
        intent = await intend(ledger, row)
        await commit(ledger, new_facts(row, intent._replace(stage=Stage.VOID)))

        applied(await commit(ledger, new_facts(row, done(intent))))

        assert (await receipt_of(ledger, intent.key)).stage is Stage.DONE
        assert (await the(ledger)).open_intents == 0

    async def test_what_was_undone_stays_undone_when_its_receipt_comes_again(self, ledger: Ledger) -> None:
        row = await run(ledger)
        intent = await intend(ledger, row)
        await commit(ledger, new_facts(row, done(intent)))
        await commit(ledger, new_facts(row, done(intent)._replace(stage=Stage.UNDONE)))

        applied(await commit(ledger, new_facts(row, done(intent))))

        assert (await receipt_of(ledger, intent.key)).stage is Stage.UNDONE

    async def test_an_intent_under_a_key_that_is_taken_is_refused(self, ledger: Ledger) -> None:
        row = await run(ledger)
        intent = await intend(ledger, row)

        while_open = await commit(ledger, new_facts(row, intent._replace(nonce="other")))
        await commit(ledger, new_facts(row, done(intent)))
        when_done = await commit(ledger, new_facts(row, intent._replace(nonce="other")))

        assert (refused(while_open), refused(when_done)) == ("intent", "intent")
        assert (await receipt_of(ledger, intent.key)).nonce == intent.nonce

    async def test_what_did_not_happen_may_be_intended_again(self, ledger: Ledger) -> None:
        row = await run(ledger)
        intent = await intend(ledger, row)
        await commit(ledger, new_facts(row, intent._replace(stage=Stage.VOID)))

        applied(await commit(ledger, new_facts(row, intent._replace(nonce="other"))))

        assert (await receipt_of(ledger, intent.key)).nonce == "other"
        assert (await the(ledger)).open_intents == 1

    async def test_of_two_intents_in_one_change_both_land_or_neither(self, ledger: Ledger, clock: ToldClock) -> None:
        row = await run(ledger)
        taken = await intend(ledger, row, "taken")
        rate = Rate("api", 1, 60)

        verdict = await commit(
            ledger, new_facts(row, new_intent(row, "fresh"), taken._replace(nonce="other"), rates=(rate,))
        )

        assert refused(verdict) == "intent"
        assert [receipt.name for receipt in await ledger.receipts(record_ids=["r"])] == ["taken"]
        assert (await the(ledger)).open_intents == 1
        assert isinstance(await commit(ledger, new_facts(row, new_intent(row, "next"), rates=(rate,))), Applied)

    async def test_one_who_lost_the_record_cannot_intend(self, ledger: Ledger, clock: ToldClock) -> None:
        row = await run(ledger)
        await lose_worker(ledger, clock)

        assert isinstance(await commit(ledger, new_facts(row, new_intent(row))), Conflict)
        assert await ledger.receipts(record_ids=["r"]) == []

    async def test_keys_of_other_visits_scopes_and_names_are_other_effects(self, ledger: Ledger) -> None:
        """17."""
        row = await run(ledger)
        parts = [(1, "", "a"), (2, "", "a"), (1, "x", "a"), (1, "", "xa"), (1, "a", "")]
        intents = [new_intent(row, name, key=key_of("f", "r", visit, scope, name)) for visit, scope, name in parts]

        for intent in intents:
            applied(await commit(ledger, new_facts(row, intent)))

        found = await ledger.receipts(keys=[intent.key for intent in intents])
        assert [receipt.nonce for receipt in found] == [intent.nonce for intent in intents]

    async def test_a_key_of_the_users_own_is_one_for_all_records(self, ledger: Ledger) -> None:
        """17."""
        row, other = await run(ledger), await run(ledger, "other")
        applied(await commit(ledger, new_facts(row, new_intent(row, key="invoice-7"))))

        assert refused(await commit(ledger, new_facts(other, new_intent(other, key="invoice-7")))) == "intent"

    async def test_receipts_come_in_the_order_of_their_intents(self, ledger: Ledger) -> None:
        row = await run(ledger)
        intents = [await intend(ledger, row, name) for name in ("c", "a", "b")]

        for intent in reversed(intents):
            applied(await commit(ledger, new_facts(row, done(intent))))

        found = await ledger.receipts(record_ids=["r"])
        assert [receipt.name for receipt in found] == ["c", "a", "b"]
        assert [receipt.seq for receipt in found] == sorted({receipt.seq for receipt in found})

    async def test_an_effect_beyond_its_rate_is_refused_until_there_is_a_token(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        row = await run(ledger)
        rate = Rate("mail", 2, 60)
        for name in ("a", "b"):
            applied(await commit(ledger, new_facts(row, new_intent(row, name), rates=(rate,))))

        verdict = await commit(ledger, new_facts(row, new_intent(row, "c"), rates=(rate,)))

        assert isinstance(verdict, Refused)
        assert (verdict.code, verdict.until) == ("rate", clock.now() + 30)
        clock.advance(30)
        applied(await commit(ledger, new_facts(row, new_intent(row, "c"), rates=(rate,))))
        assert refused(await commit(ledger, new_facts(row, new_intent(row, "d"), rates=(rate,)))) == "rate"

    @pytest.mark.parametrize("outcome", LEAVING.values(), ids=LEAVING)
    async def test_no_step_is_left_over_an_open_intent(self, ledger: Ledger, outcome: Outcome) -> None:
        """18."""
        row = await run(ledger)
        await intend(ledger, row, "post")

        after = applied(await settle(ledger, row, outcome))

        assert (after.status, after.step, after.visit) == (Status.NEEDS_APPROVAL, row.step, row.visit)
        assert (after.worker, after.due_at, after.result) == (None, None, None)
        assert after.question == "Did 'post' happen?"
        assert (await log(ledger))[-1] == "doubted"

    @pytest.mark.parametrize("outcome", [Tried("429", 5.0), Yielded("budget")], ids=["tried", "yielded"])
    async def test_a_step_that_is_not_left_keeps_its_open_intent(self, ledger: Ledger, outcome: Outcome) -> None:
        row = await run(ledger)
        await intend(ledger, row)

        after = applied(await settle(ledger, row, outcome))

        assert (after.status, after.open_intents) == (Status.PENDING, 1)

    @pytest.mark.parametrize("meanwhile", [_cancel_asked, _halt], ids=["cancelled", "halted"])
    async def test_neither_a_cancel_nor_a_halt_ends_a_record_over_an_open_intent(
        self, ledger: Ledger, clock: ToldClock, meanwhile: Meanwhile
    ) -> None:
        """18, 15."""
        row = await run(ledger)
        await intend(ledger, row)
        await meanwhile(ledger, clock)

        after = applied(await settle(ledger, row, Tried("timeout", 5.0)))

        assert (after.status, after.open_intents) == (Status.NEEDS_APPROVAL, 1)
        assert (await the(ledger)).status is Status.NEEDS_APPROVAL

    async def test_a_worker_lost_too_often_does_not_end_a_record_over_an_open_intent(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        """18, 23."""
        row = await run(ledger)
        await intend(ledger, row)
        for _ in range(transition.MOST_LOSSES - 1):
            await lose_worker(ledger, clock)
            await beat(ledger, worker := new_id())
            assert await claimed(ledger, worker=worker) == ["r"]

        await lose_worker(ledger, clock)

        after = await the(ledger)
        assert (after.status, after.open_intents) == (Status.NEEDS_APPROVAL, 1)
        assert after.last_error is not None

    async def test_a_halt_and_a_lost_worker_do_not_end_a_record_over_an_open_intent(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        """15."""
        await intend(ledger, await run(ledger))

        await _halt_and_takeover(ledger, clock)

        assert (await the(ledger)).status is Status.NEEDS_APPROVAL

    async def test_a_person_does_not_end_a_record_over_an_open_intent(self, ledger: Ledger, clock: ToldClock) -> None:
        await intend(ledger, await run(ledger))
        await lose_worker(ledger, clock)
        row = await the(ledger)

        ended = await move(ledger, row, transition.cancel(row, clock.now(), "ann", "", undo=False))
        undone = await move(ledger, row, transition.cancel(row, clock.now(), "ann", "", undo=True))

        assert refused(ended) == "intent"
        assert (applied(undone).status, applied(undone).open_intents) == (Status.NEEDS_APPROVAL, 1)


class Fanins(Suite):
    """A parent waits for its children (5)."""

    async def end(self, ledger: Ledger, child: Record, outcome: Outcome | None = None) -> Record:
        return applied(await settle(ledger, child, outcome or Done(child.data, child.data)))

    async def test_the_parent_waits_until_its_last_child_has_ended(self, ledger: Ledger, clock: ToldClock) -> None:
        await map_over(ledger, await run(ledger), 3)
        children = await run_children(ledger)
        waiting = await the(ledger)
        for place in ("2", "0"):
            await self.end(ledger, children[place])
        still_waiting = await the(ledger)

        await self.end(ledger, children["1"])

        assert waiting == still_waiting
        assert waiting.status is Status.WAITING
        after = await the(ledger)
        assert (after.status, after.due_at, after.version) == (Status.PENDING, clock.now(), waiting.version + 1)
        fanin = await the_fanin(ledger)
        assert (fanin.total, fanin.left, fanin.failed, fanin.active) == (3, 0, 0, 0)
        assert (await log(ledger))[-1] == "woken"

    async def test_children_are_records_like_any_other(self, ledger: Ledger) -> None:
        parent = await run(ledger)

        ids = await map_over(ledger, parent, 3)

        rows = await ledger.load(ids)
        assert [(row.parent_id, row.generation, row.place, row.version) for row in rows] == [
            ("r", 1, place, 1) for place in range(3)
        ]
        assert await log(ledger, ids[0]) == ["started"]
        assert await ledger.find(Query(parent_id="r", order="place")) == rows

    async def test_two_children_that_end_in_one_batch_count_twice(self, ledger: Ledger) -> None:
        """5a."""
        await map_over(ledger, await run(ledger), 2)
        children, now = await run_children(ledger), await ledger.now()

        await ledger.commit([new_settle(child, Done("1", "{}"), now) for child in children.values()])

        assert (await the_fanin(ledger)).left == 0
        assert (await the(ledger)).status is Status.PENDING
        assert (await log(ledger)).count("woken") == 1

    async def test_a_parent_cancelled_in_the_batch_in_which_its_child_ends_stays_cancelled(
        self, ledger: Ledger
    ) -> None:
        """5b."""
        await map_over(ledger, await run(ledger), 1)
        children, parent, now = await run_children(ledger), await the(ledger), await ledger.now()
        go = transition.cancel(parent, now, "ann", "", undo=False)

        verdicts = await ledger.commit([new_move(parent, go), new_settle(children["0"], Done("1", "{}"), now)])

        assert [type(verdict) for verdict in verdicts] == [Applied, Applied]
        assert (await the(ledger)).status is Status.CANCELLED
        assert (await the_fanin(ledger)).left == 0
        assert "woken" not in await log(ledger)

    async def test_a_parent_that_its_last_child_has_woken_in_the_batch_is_not_cancelled_by_the_old_version(
        self, ledger: Ledger
    ) -> None:
        """5b."""
        await map_over(ledger, await run(ledger), 1)
        children, parent, now = await run_children(ledger), await the(ledger), await ledger.now()
        go = transition.cancel(parent, now, "ann", "", undo=False)

        verdicts = await ledger.commit([new_settle(children["0"], Done("1", "{}"), now), new_move(parent, go)])

        assert [type(verdict) for verdict in verdicts] == [Applied, Conflict]
        assert (await the(ledger)).status is Status.PENDING

    async def test_a_retried_child_counts_again(self, ledger: Ledger) -> None:
        """5c."""
        await map_over(ledger, await run(ledger), 2, may_fail=2)
        children = await run_children(ledger)
        failed = await self.end(ledger, children["0"], Broke("too bad"))
        assert (await the_fanin(ledger))[3:6] == (2, 1, 1)

        again = applied(await move(ledger, failed, transition.retry(failed, await ledger.now(), "ann")))
        assert (await the_fanin(ledger))[3:6] == (2, 2, 0)
        assert not again.counted
        await self.end(ledger, children["1"])
        assert (await the(ledger)).status is Status.WAITING
        await self.end(ledger, (await run_children(ledger))["0"])

        assert (await the_fanin(ledger))[3:6] == (2, 0, 0)
        assert (await the(ledger)).status is Status.PENDING

    async def test_a_child_is_not_retried_after_its_parent_went_on(self, ledger: Ledger) -> None:
        """5c."""
        await map_over(ledger, await run(ledger), 1, may_fail=1)
        failed = await self.end(ledger, (await run_children(ledger))["0"], Broke("too bad"))

        verdict = await move(ledger, failed, transition.retry(failed, await ledger.now(), "ann"))

        assert refused(verdict) == "parent"
        assert (await the(ledger, failed.record_id)) == failed
        assert (await the_fanin(ledger)).left == 0

    async def test_the_last_child_does_not_wake_a_parent_that_has_ended(self, ledger: Ledger) -> None:
        """5d."""
        await map_over(ledger, await run(ledger), 1)
        children, parent = await run_children(ledger), await the(ledger)
        applied(await move(ledger, parent, transition.cancel(parent, await ledger.now(), "ann", "", undo=False)))
        cancelled = await the(ledger)

        await self.end(ledger, children["0"])

        assert await the(ledger) == cancelled
        assert (await the_fanin(ledger)).left == 0

    async def test_the_last_child_does_not_wake_a_parent_that_is_halted(self, ledger: Ledger) -> None:
        """5d, 15."""
        await map_over(ledger, await run(ledger), 1)
        children = await run_children(ledger)
        await order(ledger, "halt", FLOW)

        await self.end(ledger, children["0"])

        assert (await the(ledger)).status is Status.CANCELLED
        assert "woken" not in await log(ledger)

    async def test_a_child_whose_id_is_taken_refuses_the_parents_whole_change(self, ledger: Ledger) -> None:
        """5e."""
        parent = await run(ledger)
        outcome = new_map(parent, 3, await ledger.now())
        await start(ledger, outcome.children[1].record_id, data='"somebody else"')

        verdict = await settle(ledger, parent, outcome)

        assert refused(verdict) == "exists"
        assert await the(ledger) == parent
        assert await ledger.fanins("r") == []
        assert await ledger.load([outcome.children[0].record_id, outcome.children[2].record_id]) == []

    async def test_a_parent_goes_on_at_once_when_too_many_children_have_failed(self, ledger: Ledger) -> None:
        """5f: the policy is met early."""
        await map_over(ledger, await run(ledger), 3, may_fail=1)
        children = await run_children(ledger)
        await self.end(ledger, children["0"], Broke("1"))
        bearable = await the(ledger)

        await self.end(ledger, children["1"], Broke("2"))

        assert bearable.status is Status.WAITING
        assert (await the(ledger)).status is Status.PENDING
        assert (await the_fanin(ledger))[3:6] == (3, 1, 2)

    async def test_late_children_do_not_wake_the_parent_again(self, ledger: Ledger) -> None:
        """5f."""
        await map_over(ledger, await run(ledger), 3)
        children = await run_children(ledger)
        await self.end(ledger, children["0"], Broke("1"))
        [parent] = (await claim(ledger)).records
        parent = await wait_for(ledger, parent)

        await self.end(ledger, children["1"])
        await self.end(ledger, children["2"])

        assert await the(ledger) == parent

    async def test_an_empty_map_is_due_at_once(self, ledger: Ledger) -> None:
        await map_over(ledger, await run(ledger), 0)

        assert (await the(ledger)).status is Status.PENDING

    async def test_a_second_map_of_a_step_counts_for_itself(self, ledger: Ledger) -> None:
        await map_over(ledger, await run(ledger), 1, may_fail=1)
        await self.end(ledger, (await run_children(ledger))["0"])
        [parent] = (await claim(ledger)).records

        await map_over(ledger, parent, 2)
        await self.end(ledger, (await run_children(ledger))["1"])

        assert [(fanin.generation, fanin.left) for fanin in await ledger.fanins("r")] == [(1, 0), (2, 1)]
        assert (await the(ledger)).status is Status.WAITING

    async def test_children_beyond_the_limit_wait_for_their_turn(self, ledger: Ledger) -> None:
        await map_over(ledger, await run(ledger), 4, limit=2)
        first = await run_children(ledger)
        nobody = await run_children(ledger)
        await self.end(ledger, first["1"])

        second = await run_children(ledger)

        assert (set(first), nobody, set(second)) == ({"0", "1"}, {}, {"2"})
        for child in (first["0"], second["2"]):
            await self.end(ledger, child)
        await self.end(ledger, (await run_children(ledger))["3"])
        assert (await the(ledger)).status is Status.PENDING

    async def test_a_child_cancelled_before_its_turn_neither_opens_nor_blocks_the_way(self, ledger: Ledger) -> None:
        ids = await map_over(ledger, await run(ledger), 5, limit=1, may_fail=5)
        running = await run_children(ledger)
        for place in (1, 3):
            row = await the(ledger, ids[place])
            applied(await move(ledger, row, transition.cancel(row, await ledger.now(), "ann", "", undo=False)))
        nobody = await run_children(ledger)

        turns = []
        while running:
            turns.append(list(running))
            for child in running.values():
                await self.end(ledger, child)
            running = await run_children(ledger)

        assert nobody == {}
        assert turns == [["0"], ["2"], ["4"]]
        assert (await the(ledger)).status is Status.PENDING

    async def test_children_of_a_parent_that_ended_are_cancelled_by_the_sweep(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        ids = await map_over(ledger, await run(ledger), 3, limit=2)
        [child] = (await claim(ledger, slot(STEP, "child", free=1))).records
        parent = await the(ledger)
        applied(await move(ledger, parent, transition.cancel(parent, clock.now(), "ann", "", undo=False)))

        swept = await ledger.recover()

        rows = {row.place: row for row in await ledger.load(ids)}
        assert swept.swept == 3
        assert [rows[place].status for place in range(3)] == [Status.RUNNING, Status.CANCELLED, Status.CANCELLED]
        assert (await beat(ledger, "w1", child)).cancelled == (child.record_id,)
        assert applied(await settle(ledger, child, Tried("1", 1.0))).status is Status.CANCELLED
        assert (await the_fanin(ledger)).left == 0
        assert (await ledger.recover()).swept == 0

    async def test_children_of_a_map_that_was_answered_are_cancelled_by_the_sweep(self, ledger: Ledger) -> None:
        ids = await map_over(ledger, await run(ledger), 2)
        children = await run_children(ledger)
        await self.end(ledger, children["0"], Broke("too bad"))
        [parent] = (await claim(ledger)).records
        key = (await the_fanin(ledger)).key
        answer = new_answer(parent, "items", kind=Kind.MAP)._replace(key=key)
        applied(await commit(ledger, new_facts(parent, answer)))

        await ledger.recover()

        assert (await the(ledger, ids[1])).cancel is not None
        assert (await the_fanin(ledger)).abandoned

    async def test_a_lost_child_counts_when_it_ends_in_error(self, ledger: Ledger, clock: ToldClock) -> None:
        await map_over(ledger, await run(ledger), 1)
        for _ in range(transition.MOST_LOSSES):
            await beat(ledger, worker := new_id())
            assert len(await run_children(ledger, worker)) == 1
            await lose_worker(ledger, clock)

        assert (await the_fanin(ledger))[3:6] == (1, 0, 1)
        assert (await the(ledger)).status is Status.PENDING


class Signals(Suite):
    """What is sent to a record."""

    async def send(self, ledger: Ledger, signal_id: str, name: str = "paid", value: str = "1") -> Verdict:
        [verdict] = await ledger.send([Send(signal_id, "r", name, value)])
        return verdict

    async def test_a_signal_wakes_the_record_that_waits_for_it(self, ledger: Ledger, clock: ToldClock) -> None:
        row = await wait_for(ledger, await run(ledger))

        woken = applied(await self.send(ledger, "s1", value='"42"'))

        assert (woken.status, woken.due_at, woken.version) == (Status.PENDING, clock.now(), row.version + 1)
        [receipt] = await ledger.receipts(record_ids=["r"])
        assert (receipt.key, receipt.value, receipt.stage) == (on_signal(row).key, '"42"', Stage.DONE)
        assert [signal.taken_by for signal in await ledger.signals("r")] == [receipt.key]
        assert woken.facts == 1

    async def test_a_signal_that_comes_before_the_wait_is_kept(self, ledger: Ledger) -> None:
        row = await run(ledger)
        applied(await self.send(ledger, "s1", value="7"))

        row = await wait_for(ledger, row)

        assert row.status is Status.PENDING
        assert [receipt.value for receipt in await ledger.receipts(record_ids=["r"])] == ["7"]

    async def test_a_signal_is_taken_once_also_if_it_is_sent_again(self, ledger: Ledger) -> None:
        """13."""
        await wait_for(ledger, await run(ledger))
        woken = applied(await self.send(ledger, "s1"))

        again = await self.send(ledger, "s1")

        assert again == Applied(woken, await ledger.now(), again=True)
        assert len(await ledger.signals("r")) == 1
        assert (await log(ledger)).count("signalled") == 1

    async def test_a_signal_sent_again_after_the_record_has_ended_answers_as_it_did_first(self, ledger: Ledger) -> None:
        row = await run(ledger)
        await self.send(ledger, "s1")
        row = applied(await settle(ledger, row, Done("1", "{}")))

        assert await self.send(ledger, "s1") == Applied(row, await ledger.now(), again=True)
        assert refused(await self.send(ledger, "s2")) == "ended"

    async def test_signals_are_taken_in_the_order_of_their_coming(self, ledger: Ledger, clock: ToldClock) -> None:
        row = await run(ledger)
        for n in ("3", "1", "2"):
            await self.send(ledger, f"s{n}", value=n)

        taken = []
        for visit in range(3):
            row = await wait_for(ledger, row, on_signal(row, "paid")._replace(key=f"wait-{visit}"))
            taken.append((await receipt_of(ledger, f"wait-{visit}")).value)
            [row] = (await claim(ledger)).records

        assert taken == ["3", "1", "2"]

    async def test_two_waits_of_one_name_take_a_signal_each(self, ledger: Ledger) -> None:
        row = await run(ledger)
        await ledger.send([Send("s1", "r", "paid", "1"), Send("s2", "r", "paid", "2")])

        await wait_for(ledger, row, *(on_signal(row)._replace(key=key) for key in ("a", "b")))

        assert [receipt.value for receipt in await ledger.receipts(keys=["a", "b"])] == ["1", "2"]

    async def test_a_signal_of_another_name_wakes_nobody(self, ledger: Ledger) -> None:
        row = await wait_for(ledger, await run(ledger))

        applied(await self.send(ledger, "s1", "other"))

        assert (await the(ledger)).version == row.version
        assert [signal.taken_by for signal in await ledger.signals("r")] == [None]

    async def test_of_two_signals_in_one_batch_one_wakes_and_one_is_kept(self, ledger: Ledger) -> None:
        row = await wait_for(ledger, await run(ledger))

        await ledger.send([Send("s1", "r", "paid", "1"), Send("s2", "r", "paid", "2")])

        assert (await the(ledger)).version == row.version + 1
        assert [signal.taken_by is None for signal in await ledger.signals("r")] == [False, True]
        assert (await log(ledger)).count("woken") == 1

    async def test_the_other_waits_are_remembered_when_one_is_answered(self, ledger: Ledger, clock: ToldClock) -> None:
        row = await run(ledger)
        timer = Wait(On.TIMER, key="timer", until=clock.now() + 60)

        await wait_for(ledger, row, on_signal(row), timer)
        woken = applied(await self.send(ledger, "s1"))

        assert load_waits(woken.waits) == (timer,)

    async def test_a_signal_to_nobody_is_told_so(self, ledger: Ledger) -> None:
        assert await self.send(ledger, "s1") == Conflict(None, await ledger.now())

    async def test_a_timer_makes_the_record_due_without_a_signal(self, ledger: Ledger, clock: ToldClock) -> None:
        row = await run(ledger)
        await wait_for(ledger, row, on_signal(row, until=clock.now() + 60))

        before = await claim(ledger)
        clock.advance(60)

        assert (before.records, before.next_due_at) == ((), clock.now())
        [row] = (await claim(ledger)).records
        assert row.waits is not None


class Claims(Suite):
    """Who gets what is due (16, 23)."""

    async def test_a_claim_makes_due_records_the_workers(self, ledger: Ledger, clock: ToldClock) -> None:
        row = await start(ledger)

        answer = await claim(ledger, slot(timeout=60), claim_id="c1")

        [mine] = answer.records
        assert mine == row._replace(
            status=Status.RUNNING,
            worker="w1",
            run_id=mine.run_id,
            run_until=clock.now() + 60,
            version=row.version + 1,
            log_seq=2,
            log_hash=mine.log_hash,
        )
        assert mine.run_id is not None
        assert await the(ledger) == mine
        assert answer.now == clock.now()

    async def test_a_record_is_claimed_once(self, ledger: Ledger) -> None:
        await start(ledger)

        assert await claimed(ledger) == ["r"]
        assert await claimed(ledger, worker="w2") == []

    async def test_a_claim_sent_again_gives_the_records_of_the_first_time(self, ledger: Ledger) -> None:
        """13."""
        await start_all(ledger, ["a", "b", "c"])
        first = await claim(ledger, limit=2, claim_id="c1")

        again = await claim(ledger, limit=2, claim_id="c1", again=True)

        assert set(again.records) == set(first.records)
        assert await claimed(ledger) == ["c"]

    async def test_a_claim_sent_again_that_never_landed_takes_what_is_due(self, ledger: Ledger) -> None:
        await start(ledger)

        assert await claimed(ledger, claim_id="c1", again=True) == ["r"]

    async def test_a_claim_takes_no_more_than_asked_for(self, ledger: Ledger) -> None:
        await start_all(ledger, [f"{step}{n}" for step in "ab" for n in range(5)])
        await start_all(ledger, ["x1", "x2", "x3"], step="other")

        assert len(await claimed(ledger, slot(free=2), slot("other", free=2))) == 4
        assert len(await claimed(ledger, limit=3)) == 3

    async def test_only_steps_that_the_worker_names_are_claimed(self, ledger: Ledger) -> None:
        await start(ledger, "a", step="old")
        await start(ledger, "b", workflow="other")
        await start(ledger, "c")

        assert await claimed(ledger) == ["c"]
        assert [(row.record_id, row.status) for row in await ledger.load(["a", "b"])] == [
            ("a", Status.PENDING),
            ("b", Status.PENDING),
        ]

    async def test_the_earliest_due_comes_first(self, ledger: Ledger, clock: ToldClock) -> None:
        for n, record_id in enumerate(("late", "middle", "early")):
            await start(ledger, record_id, due_at=clock.now() + 30 - 10 * n)
        clock.advance(60)

        assert await claimed(ledger, limit=2) == ["early", "middle"]

    async def test_a_higher_priority_comes_first_but_does_not_starve_the_others(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        await start(ledger, "plain")
        clock.advance(60)
        await start(ledger, "urgent", priority=5)
        clock.advance(400)
        await start(ledger, "too-late", priority=5)

        assert await claimed(ledger) == ["urgent", "plain", "too-late"]

    async def test_an_empty_claim_tells_when_something_falls_due(self, ledger: Ledger, clock: ToldClock) -> None:
        nothing = await claim(ledger)
        await start(ledger, "b", due_at=clock.now() + 90)
        await start(ledger, "a", due_at=clock.now() + 60, step="other")

        answer = await claim(ledger, slot(), slot("other"))

        assert (nothing.next_due_at, nothing.left_priority) == (None, None)
        assert (answer.records, answer.next_due_at, answer.left_priority) == ((), clock.now() + 60, None)

    async def test_a_claim_tells_the_priority_of_what_it_left(self, ledger: Ledger) -> None:
        await start(ledger, "a", priority=9)
        await start(ledger, "b", priority=4)

        assert (await claim(ledger, limit=1)).left_priority == 4
        assert (await claim(ledger, limit=1)).left_priority is None

    async def test_a_step_with_a_full_cap_does_not_hide_the_others(self, ledger: Ledger, clock: ToldClock) -> None:
        """23."""
        await start_all(ledger, [f"full{n}" for n in range(30)], step="capped")
        assert len(await claimed(ledger, slot("capped", cap=3))) == 3
        clock.advance(1)
        await start_all(ledger, ["free1", "free2"])

        assert await claimed(ledger, slot("capped", cap=3), slot(), limit=5) == ["free1", "free2"]

    @pytest.mark.parametrize(
        "free",
        [Next("next", "{}"), Done("1", "{}"), Tried("1", 9.0), Yielded("x"), Broke("x")],
        ids=lambda outcome: type(outcome).__name__,
    )
    async def test_a_slot_of_a_cap_is_free_again_after_the_settle(self, ledger: Ledger, free: Outcome) -> None:
        await start_all(ledger, ["a", "b", "c"])
        first, _ = (await claim(ledger, slot(cap=2))).records
        full = await claimed(ledger, slot(cap=2))

        applied(await settle(ledger, first, free))

        assert full == []
        assert len(await claimed(ledger, slot(cap=2), worker="w2")) == 1

    async def test_slots_of_a_lost_worker_are_free_again(self, ledger: Ledger, clock: ToldClock) -> None:
        await beat(ledger)
        await start_all(ledger, ["a", "b", "c"])
        assert len(await claimed(ledger, slot(cap=2))) == 2

        await lose_worker(ledger, clock)

        await beat(ledger, "w2")
        assert len(await claimed(ledger, slot(cap=2), worker="w2")) == 2

    async def test_a_cap_of_the_workflow_holds_over_its_steps(self, ledger: Ledger) -> None:
        await start_all(ledger, ["a", "b", "c"])
        await start_all(ledger, ["d", "e", "f"], step="other")
        await start_all(ledger, ["g"], workflow="another")

        taken = await claimed(ledger, slot(workflow_cap=4), slot("other", workflow_cap=4), slot(workflow="another"))

        assert taken == ["a", "b", "c", "d", "g"]
        assert await claimed(ledger, slot("other", workflow_cap=4)) == []

    async def test_a_rate_gives_tokens_as_time_goes_by(self, ledger: Ledger, clock: ToldClock) -> None:
        await start_all(ledger, [f"r{n:02}" for n in range(20)])
        rated = slot(rate=Rate("api", 4, 60))

        first, none = await claimed(ledger, rated), await claimed(ledger, rated)
        clock.advance(30)
        half = await claimed(ledger, rated)
        clock.advance(600)
        full = await claimed(ledger, rated)

        assert [len(taken) for taken in (first, none, half, full)] == [4, 0, 2, 4]

    async def test_steps_may_share_a_rate(self, ledger: Ledger) -> None:
        await start_all(ledger, ["a", "b"])
        await start_all(ledger, ["c", "d"], step="other")
        rate = Rate("api", 3, 60)

        assert await claimed(ledger, slot(rate=rate), slot("other", rate=rate)) == ["a", "b", "c"]
        assert await claimed(ledger, slot("other", rate=Rate("else", 3, 60))) == ["d"]

    async def test_a_record_is_kept_for_its_next_step(self, ledger: Ledger, clock: ToldClock) -> None:
        """16."""
        row = await run(ledger)

        kept = applied(await settle(ledger, row, Next("next", "{}"), keep=slot("next", timeout=99)))

        assert (kept.status, kept.step, kept.worker) == (Status.RUNNING, "next", "w1")
        assert kept.run_until == clock.now() + 99
        assert await claimed(ledger, slot("next", cap=1)) == []

    @pytest.mark.parametrize("why", ["cap", "workflow-cap", "rate", "pause"])
    async def test_keeping_a_record_is_a_claim_with_all_its_checks(self, ledger: Ledger, why: str) -> None:
        """16."""
        row = await run(ledger)
        await start(ledger, "other", step="next")
        kept = {
            "cap": slot("next", cap=1),
            "workflow-cap": slot("next", workflow_cap=2),
            "rate": slot("next", rate=Rate("api", 1, 60)),
            "pause": slot("next"),
        }[why]
        assert await claimed(ledger, kept) == ["other"]
        if why == "workflow-cap":
            kept = kept._replace(workflow_cap=1)
        if why == "pause":
            await order(ledger, "pause")

        after = applied(await settle(ledger, row, Next("next", '"2"'), keep=kept))

        assert (after.status, after.step, after.worker, after.data) == (Status.PENDING, "next", None, '"2"')
        assert after.due_at == await ledger.now()

    async def test_a_record_that_is_kept_takes_a_token(self, ledger: Ledger) -> None:
        """16."""
        rate = Rate("api", 1, 60)
        row = await run(ledger)
        await start(ledger, "other", step="next")

        applied(await settle(ledger, row, Next("next", "{}"), keep=slot("next", rate=rate)))

        assert await claimed(ledger, slot("next", rate=rate)) == []

    async def test_a_record_may_be_kept_within_a_full_workflow(self, ledger: Ledger) -> None:
        """16: it leaves one slot of the workflow and takes one."""
        row = await run(ledger)

        kept = applied(await settle(ledger, row, Next("next", "{}"), keep=slot("next", workflow_cap=1)))

        assert kept.status is Status.RUNNING

    async def test_new_work_wakes_who_waits_for_it(self, ledger: Ledger) -> None:
        await claim(ledger)
        waiting = asyncio.ensure_future(ledger.wait_for_work(3600.0))

        await start(ledger)

        await asyncio.wait_for(waiting, 30)


class Workers(Suite):
    """Leases, beats and takeovers (7, 8, 23)."""

    async def test_a_beat_renews_the_lease_on_the_ledgers_clock(self, ledger: Ledger, clock: ToldClock) -> None:
        first = await ledger.beat(a_worker()._replace(started_at=5.0, expires_at=9e9), Holding({}))
        clock.advance(20)
        await beat(ledger)

        [worker] = await ledger.workers()
        assert first.now == clock.now() - 20
        assert (worker.started_at, worker.expires_at, worker.closed) == (clock.now() - 20, clock.now() + 30, None)

    async def test_a_worker_that_beats_keeps_its_records(self, ledger: Ledger, clock: ToldClock) -> None:
        row = await run(ledger)

        for _ in range(5):
            clock.advance(29)
            assert (await beat(ledger, "w1", row)).lost == ()
            await ledger.recover()

        assert await the(ledger) == row

    async def test_a_beat_gives_back_what_the_worker_does_not_know_that_it_holds(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        """7a: the claim landed, its answer was lost."""
        row = await run(ledger)

        await beat(ledger, "w1")

        after = await the(ledger)
        assert (after.status, after.worker, after.version) == (Status.PENDING, None, row.version + 1)
        assert (after.attempt, after.losses, after.due_at) == (0, 0, clock.now())
        assert await log(ledger) == ["started", "claimed", "orphaned"]

    async def test_a_beat_leaves_the_records_of_a_claim_that_is_still_on_its_way(self, ledger: Ledger) -> None:
        await beat(ledger)
        await start_all(ledger, ["a", "b"])
        await claim(ledger, limit=1, claim_id="c1")
        await claim(ledger, limit=1, claim_id="c2")

        await beat(ledger, "w1", claims=("c2",))

        assert [row.status for row in await ledger.load(["a", "b"])] == [Status.PENDING, Status.RUNNING]

    async def test_a_beat_tells_what_the_worker_holds_no_longer(self, ledger: Ledger, clock: ToldClock) -> None:
        row = await run(ledger)
        ghost = row._replace(record_id="ghost")
        clock.advance(3601)
        await beat(ledger, "w1", row)
        await ledger.recover()

        told = await beat(ledger, "w1", row, ghost)

        assert set(told.lost) == {"r", "ghost"}

    async def test_a_run_past_its_end_is_taken_over_though_its_worker_lives(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        """7."""
        await beat(ledger, lease=1e6)
        await start(ledger)
        [row] = (await claim(ledger, slot(timeout=60))).records
        clock.advance(60)
        too_early = await ledger.recover()
        clock.advance(1)

        recovered = await ledger.recover()

        after = await the(ledger)
        assert (too_early.records, recovered.records, recovered.workers) == (0, 1, 0)
        assert (after.status, after.worker, after.attempt, after.losses) == (Status.PENDING, None, 1, 1)
        assert isinstance(await settle(ledger, row, Done("1", "{}")), Conflict)

    async def test_a_worker_is_closed_only_after_its_lease_and_a_grace(self, ledger: Ledger, clock: ToldClock) -> None:
        """8."""
        await run(ledger)
        clock.advance(32)
        too_early = await ledger.recover()
        clock.advance(2)

        recovered = await ledger.recover()

        assert (too_early.workers, recovered.workers, recovered.records) == (0, 1, 1)
        [worker] = await ledger.workers()
        assert worker.closed is not None
        after = await the(ledger)
        assert (after.status, after.worker, after.attempt, after.losses) == (Status.PENDING, None, 1, 1)
        assert (await log(ledger))[-1] == "lost"

    async def test_a_closed_worker_cannot_beat_nor_claim(self, ledger: Ledger, clock: ToldClock) -> None:
        """8."""
        row = await run(ledger)
        await lose_worker(ledger, clock)

        with pytest.raises(WorkerClosed):
            await beat(ledger, "w1", row)
        with pytest.raises(WorkerClosed):
            await claim(ledger)
        assert (await the(ledger)).status is Status.PENDING

    async def test_of_what_a_closed_worker_writes_only_receipts_land(self, ledger: Ledger, clock: ToldClock) -> None:
        """8."""
        row = await run(ledger)
        intent = await intend(ledger, row)
        await lose_worker(ledger, clock)

        verdicts = await ledger.commit(
            [
                new_settle(row, Saved('"mine"'), clock.now()),
                new_facts(row, new_intent(row, "other")),
                new_facts(row, new_answer(row, "call")),
                new_facts(row, done(intent)),
            ]
        )

        assert [type(verdict) for verdict in verdicts] == [Conflict, Conflict, Conflict, Applied]
        assert [(r.name, r.stage) for r in await ledger.receipts(record_ids=["r"])] == [("post", Stage.DONE)]

    async def test_a_worker_whose_lease_ran_out_lives_on_if_nobody_closed_it(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        row = await run(ledger)
        clock.advance(600)

        told = await beat(ledger, "w1", row)

        assert told.lost == ()
        assert (await ledger.recover()).workers == 0

    async def test_a_record_whose_worker_is_lost_too_often_is_an_error(self, ledger: Ledger, clock: ToldClock) -> None:
        """23."""
        await start(ledger)
        for n in range(transition.MOST_LOSSES):
            await beat(ledger, f"w{n}")
            [row] = (await claim(ledger, worker=f"w{n}")).records
            assert (row.attempt, row.losses) == (n, n)
            await lose_worker(ledger, clock)

        after = await the(ledger)
        assert (after.status, after.due_at, after.worker) == (Status.ERROR, None, None)
        assert after.last_error is not None
        assert "lost 3 times" in after.last_error

    async def test_a_worker_known_to_be_dead_is_closed_before_its_lease_ends(self, ledger: Ledger) -> None:
        row = await run(ledger, "a", worker="dead")
        other = await run(ledger, "b", worker="alive")

        recovered = await ledger.recover(dead=["dead", "unknown"])

        assert (recovered.workers, recovered.records) == (1, 1)
        assert [row.status for row in await ledger.load(["a", "b"])] == [Status.PENDING, Status.RUNNING]
        with pytest.raises(WorkerClosed):
            await beat(ledger, "dead", row)
        assert await the(ledger, "b") == other

    async def test_a_farewell_gives_everything_back_unharmed(self, ledger: Ledger) -> None:
        row = await run(ledger)

        await ledger.farewell("w1")

        after = await the(ledger)
        assert (after.status, after.attempt, after.losses, after.version) == (Status.PENDING, 0, 0, row.version + 1)
        with pytest.raises(WorkerClosed):
            await beat(ledger)
        await ledger.farewell("w1")
        await ledger.farewell("nobody")

    async def test_a_takeover_leaves_the_records_of_living_workers(self, ledger: Ledger, clock: ToldClock) -> None:
        await run(ledger, "a", worker="dead")
        row = await run(ledger, "b", worker="alive")
        clock.advance(20)
        await beat(ledger, "alive", row)
        clock.advance(20)

        recovered = await ledger.recover()

        assert (recovered.workers, recovered.records) == (1, 1)
        assert await the(ledger, "b") == row

    async def test_when_nothing_is_lost_nothing_is_recovered(self, ledger: Ledger) -> None:
        row = await run(ledger)

        recovered = await ledger.recover()

        assert (recovered.workers, recovered.records, recovered.swept, recovered.more) == (0, 0, 0, False)
        assert await the(ledger) == row


class Orders(Suite):
    """Halt, pause and seal (15, 25)."""

    async def test_a_halt_is_acknowledged_with_who_and_why(self, ledger: Ledger, clock: ToldClock) -> None:
        before = await ledger.standing()

        after = await ledger.order(Order("halt", EVERYWHERE, "ann", reason="wrong text"))

        [control] = after.controls
        assert (control.halted, control.by, control.reason, control.at) == (True, "ann", "wrong text", clock.now())
        assert after.epoch == before.epoch + 1
        assert await ledger.standing() == after

    async def test_after_a_halt_nothing_starts(self, ledger: Ledger, clock: ToldClock) -> None:
        row = await run(ledger)
        parent = await run(ledger, "parent")
        await start(ledger, "due")
        await order(ledger, "halt", reason="wrong text")

        assert await claimed(ledger) == []
        assert refused(await commit(ledger, new_start("new", clock.now()))) == "halted"
        assert refused(await commit(ledger, new_facts(row, new_intent(row)))) == "halted"
        [sent] = await ledger.send([Send("s1", "r", "paid", "1")])
        assert refused(sent) == "halted"
        mapped = applied(await settle(ledger, parent, new_map(parent, 2, clock.now())))
        assert (mapped.status, await ledger.find(Query(parent_id="parent"))) == (Status.CANCELLED, [])
        kept = applied(await settle(ledger, row, Next("next", "{}"), keep=slot("next")))
        assert kept.status is Status.CANCELLED

    async def test_the_refusal_names_the_workflow_who_halted_it_and_the_remedy(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        await order(ledger, "halt", FLOW, reason="wrong text")

        verdict = await commit(ledger, new_start("new", clock.now()))

        assert isinstance(verdict, Refused)
        assert verdict.reason == (
            "'flow' is halted by ann (wrong text); nothing starts until somebody resumes it (quire resume)"
        )

    @pytest.mark.parametrize("outcome", GOING_ON.values(), ids=GOING_ON)
    async def test_a_running_record_settles_to_cancelled_under_a_halt(self, ledger: Ledger, outcome: Outcome) -> None:
        row = await run(ledger)
        await order(ledger, "halt")

        after = applied(await settle(ledger, row, outcome))

        assert (after.status, after.worker, after.due_at) == (Status.CANCELLED, None, None)

    @pytest.mark.parametrize("name", ["done", "broke", "stopped", "ends"])
    async def test_an_end_stands_under_a_halt(self, ledger: Ledger, name: str) -> None:
        row = await run(ledger)
        await order(ledger, "halt")

        after = applied(await settle(ledger, row, OUTCOMES[name]))

        assert after.status is transition.settle(row, OUTCOMES[name], 0.0).image.status

    async def test_what_waits_reads_as_cancelled_at_once(self, ledger: Ledger, clock: ToldClock) -> None:
        await wait_for(ledger, await run(ledger, "waits"))
        await wait_for(ledger, await run(ledger, "asks"), Wait(On.QUESTION, "k", "ok?", about={"text": "ok?"}))
        await start(ledger, "due")
        await start(ledger, "later", due_at=clock.now() + 99)
        ids = ["waits", "asks", "due", "later"]

        await order(ledger, "halt")

        cancelled = Query(status=(Status.CANCELLED,))
        assert [row.status for row in await ledger.load(ids)] == [Status.CANCELLED] * 4
        assert [row.record_id for row in await ledger.find(cancelled)] == sorted(ids)
        assert await ledger.find(Query(status=(Status.PENDING, Status.WAITING, Status.NEEDS_APPROVAL))) == []
        assert [(count.status, count.count) for count in await ledger.counts()] == [(Status.CANCELLED, 4)]

    async def test_the_sweep_writes_it_down_in_bounded_batches(self, ledger: Ledger) -> None:
        ids = [f"r{n}" for n in range(5)]
        await start_all(ledger, ids)
        await order(ledger, "halt")
        seen = await ledger.load(ids)

        sweeps = [await ledger.recover(limit=2) for _ in range(4)]

        assert [(sweep.swept, sweep.more) for sweep in sweeps] == [(2, True), (2, True), (1, False), (0, False)]
        rows = await ledger.load(ids)
        assert [(row.status, row.version) for row in rows] == [(Status.CANCELLED, row.version + 1) for row in seen]
        assert await log(ledger, "r0") == ["started", "cancelled"]

    async def test_the_sweep_tells_no_fan_in(self, ledger: Ledger) -> None:
        await map_over(ledger, await run(ledger), 2)
        await order(ledger, "halt")

        await ledger.recover()

        assert {row.status for row in await ledger.find(Query())} == {Status.CANCELLED}
        assert (await the_fanin(ledger)).left == 2

    async def test_the_turn_of_a_halted_child_and_its_sweep_keep_its_log_whole(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        ids = await map_over(ledger, await run(ledger), 2, limit=1)
        await run_children(ledger)
        await order(ledger, "halt", "child")

        await lose_worker(ledger, clock)

        assert [row.status for row in await ledger.load(ids)] == [Status.CANCELLED] * 2
        await log(ledger, ids[1])

    async def test_a_halt_of_one_workflow_leaves_the_others(self, ledger: Ledger) -> None:
        await start(ledger, "a")
        await start(ledger, "b", workflow="other's")

        await order(ledger, "halt", "other's")

        assert [row.status for row in await ledger.load(["a", "b"])] == [Status.PENDING, Status.CANCELLED]
        assert [row.record_id for row in await ledger.find(Query(status=(Status.CANCELLED,)))] == ["b"]
        assert await claimed(ledger, slot(), slot(workflow="other's")) == ["a"]

    async def test_a_resume_opens_a_new_epoch_and_brings_nothing_back(self, ledger: Ledger) -> None:
        await start(ledger, "old")
        await order(ledger, "halt")
        await order(ledger, "resume")

        new = await start(ledger, "new")

        assert new.epoch == (await ledger.standing()).epoch
        assert await claimed(ledger) == ["new"]
        assert (await the(ledger, "old")).status is Status.CANCELLED

    async def test_what_a_halt_cancelled_does_not_stand_in_the_way_of_what_is_new(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        await start_all(ledger, [f"old{n}" for n in range(5)])
        await order(ledger, "halt")
        await order(ledger, "resume")
        clock.advance(1)
        await start(ledger, "new")

        assert await claimed(ledger, limit=1) == ["new"]

    async def test_what_ran_over_a_halt_is_cancelled_also_after_the_resume(self, ledger: Ledger) -> None:
        row = await run(ledger)
        await order(ledger, "halt")
        await order(ledger, "resume")

        told = await beat(ledger, "w1", row)

        assert told.cancelled == ("r",)
        assert applied(await settle(ledger, row, Tried("1", 1.0))).status is Status.CANCELLED

    @pytest.mark.parametrize("swept", [False, True], ids=["unswept", "swept"])
    @pytest.mark.parametrize("stood", ["due", "timer", "signal", "question"])
    async def test_what_a_halt_cancelled_can_be_revived_and_does_not_wait_for_ever(
        self, ledger: Ledger, clock: ToldClock, stood: str, swept: bool
    ) -> None:
        row = await run(ledger)
        waits = {
            "timer": Wait(On.TIMER, "k", until=clock.now() + 60),
            "signal": on_signal(row),
            "question": Wait(On.QUESTION, "k", "ok?", about={"text": "ok?"}),
        }
        if stood == "due":
            applied(await settle(ledger, row, Yielded("budget")))
        else:
            await wait_for(ledger, row, waits[stood])
        await order(ledger, "halt")
        if swept:
            await ledger.recover()
        await order(ledger, "resume")
        epoch = (await ledger.standing()).epoch

        row = await the(ledger)
        after = applied(await move(ledger, row, transition.revive(row, clock.now(), "ann", epoch)))

        assert after.epoch == epoch
        assert await claimed(ledger) == ["r"]

    async def test_a_state_that_rests_rests_again_when_it_is_revived(self, ledger: Ledger, clock: ToldClock) -> None:
        applied(await settle(ledger, await run(ledger), Next("rest", "{}", rests=True)))
        await order(ledger, "halt")
        await order(ledger, "resume")

        row = await the(ledger)
        after = applied(await move(ledger, row, transition.revive(row, clock.now(), "ann", 3)))

        assert (after.status, after.due_at, after.step) == (Status.WAITING, None, "rest")

    async def test_nothing_is_revived_while_the_halt_stands(self, ledger: Ledger, clock: ToldClock) -> None:
        await start(ledger)
        await order(ledger, "halt")
        row = await the(ledger)

        assert refused(await move(ledger, row, transition.revive(row, clock.now(), "ann", 2))) == "halted"

    async def test_a_standing_lists_the_effects_that_are_under_way(self, ledger: Ledger, clock: ToldClock) -> None:
        row = await run(ledger)
        await intend(ledger, row, "soon", act_by=clock.now() + 10)
        await intend(ledger, row, "later", act_by=clock.now() + 20)
        over = await intend(ledger, row, "over", act_by=clock.now() + 20)
        await commit(ledger, new_facts(row, done(over)))
        clock.advance(10)

        standing = await ledger.order(Order("halt", EVERYWHERE, "ann"))

        assert [receipt.name for receipt in standing.under_way] == ["later"]
        clock.advance(10)
        assert (await ledger.standing()).under_way == ()

    async def test_a_doubt_outlives_the_halt_and_its_answer_starts_nothing(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        intent = await intend(ledger, await run(ledger))
        await _in_doubt(ledger, clock)
        await order(ledger, "halt")
        await ledger.recover()
        row = await the(ledger)
        assert row.status is Status.NEEDS_APPROVAL

        go = transition.resolved(row, clock.now(), intent.key, {"by": "ann"})
        after = applied(await move(ledger, row, go, receipts=(done(intent),)))

        assert (after.status, after.open_intents) == (Status.CANCELLED, 0)
        assert (await receipt_of(ledger, intent.key)).stage is Stage.DONE

    async def test_one_of_two_doubts_answered_under_a_halt_leaves_the_other(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        row = await run(ledger)
        first, _ = await intend(ledger, row, "a"), await intend(ledger, row, "b")
        await _in_doubt(ledger, clock)
        await order(ledger, "halt")
        row = await the(ledger)

        go = transition.resolved(row, clock.now(), first.key, {"by": "ann"})
        after = applied(await move(ledger, row, go, receipts=(done(first),)))

        assert (after.status, after.open_intents) == (Status.NEEDS_APPROVAL, 1)

    async def test_a_pause_stops_claims_and_nothing_else(self, ledger: Ledger, clock: ToldClock) -> None:
        row = await run(ledger)
        await start(ledger, "due")
        await order(ledger, "pause")

        assert await claimed(ledger) == []
        await start(ledger, "new")
        await intend(ledger, row)
        assert (await the(ledger, "due")).status is Status.PENDING
        await order(ledger, "resume")
        assert await claimed(ledger) == ["due", "new"]

    async def test_a_pause_of_one_workflow_leaves_the_others(self, ledger: Ledger) -> None:
        await start(ledger, "a")
        await start(ledger, "b", workflow="other")
        await order(ledger, "pause", "other")

        assert await claimed(ledger, slot(), slot(workflow="other")) == ["a"]

    async def test_a_sealed_ledger_takes_nothing_but_receipts(self, ledger: Ledger, clock: ToldClock) -> None:
        """25."""
        row = await run(ledger)
        intent = await intend(ledger, row)
        await start(ledger, "due")
        standing = await ledger.order(Order("seal", EVERYWHERE, "ann", target="postgresql://there"))

        verdicts = await ledger.commit(
            [
                new_start("new", clock.now()),
                new_settle(row, Saved("1"), clock.now()),
                new_facts(row, new_intent(row, "other")),
                new_facts(row, new_answer(row, "call")),
                new_facts(row, done(intent)),
            ]
        )

        assert standing.sealed == "postgresql://there"
        assert [refused(verdict) for verdict in verdicts[:4]] == ["sealed"] * 4
        assert "postgresql://there" in verdicts[0].reason if isinstance(verdicts[0], Refused) else False
        assert isinstance(verdicts[4], Applied)
        assert [refused(verdict) for verdict in await ledger.send([Send("s1", "r", "paid", "1")])] == ["sealed"]
        assert await claimed(ledger) == []

    async def test_a_sealed_ledger_is_not_swept_nor_recovered(self, ledger: Ledger, clock: ToldClock) -> None:
        """25: what is being copied elsewhere stands still."""
        row = await run(ledger)
        await start(ledger, "due")
        await order(ledger, "halt", "other")
        await order(ledger, "seal")
        clock.advance(1e6)

        recovered = await ledger.recover()

        assert (recovered.workers, recovered.records, recovered.swept) == (0, 0, 0)
        assert await the(ledger) == row

    async def test_a_ledger_that_is_unsealed_goes_on(self, ledger: Ledger) -> None:
        await order(ledger, "seal")
        await order(ledger, "unseal")

        await start(ledger)

        assert (await ledger.standing()).sealed == ""


class Log(Suite):
    """Lines, their order and their chain (19)."""

    async def test_the_lines_of_a_record_are_chained_and_numbered(self, ledger: Ledger, clock: ToldClock) -> None:
        row = await run(ledger)
        clock.advance(0.123456)
        await commit(ledger, new_facts(row, lines=(Line("noted", '"one"'), Line("noted", '"two"'))))
        clock.advance(1 / 3)
        await settle(ledger, row, Done("1", "{}"))

        events = await ledger.events(record_id="r")

        assert first_break(events) is None
        assert [event.n for event in events] == [1, 2, 3, 4, 5]
        assert [event.version for event in events] == [1, 2, 2, 2, 3]
        assert [event.run_id for event in events] == [None, *[row.run_id] * 4]
        assert events[-1].at == clock.now()
        assert events[-1].hash == (await the(ledger)).log_hash

    async def test_the_ledgers_log_has_every_line_once_in_the_order_of_commits(self, ledger: Ledger) -> None:
        rows = [await run(ledger, f"r{n}") for n in range(3)]
        for row in reversed(rows):
            await settle(ledger, row, Done("1", "{}"))

        events = await ledger.events()

        assert [(event.record_id, event.kind) for event in events] == [
            *((f"r{n}", kind) for n in range(3) for kind in ("started", "claimed")),
            *((f"r{n}", "done") for n in (2, 1, 0)),
        ]
        assert [event.seq for event in events] == sorted({event.seq for event in events})

    async def test_the_log_is_read_in_pages(self, ledger: Ledger) -> None:
        await start_all(ledger, [f"r{n}" for n in range(7)])

        pages: list[list[Event]] = [await ledger.events(limit=3)]
        while pages[-1]:
            pages.append(await ledger.events(after=pages[-1][-1].seq, limit=3))

        assert [len(page) for page in pages] == [3, 3, 1, 0]
        assert list(chain.from_iterable(pages)) == await ledger.events()

    async def test_exactly_the_given_lines_are_forgotten(self, ledger: Ledger) -> None:
        for record_id in ("a", "b"):
            await settle(ledger, await run(ledger, record_id), Done("1", "{}"))
        events = await ledger.events()
        gone = [events[0], events[4]]

        count = await ledger.forget(gone)

        assert count == 2
        assert await ledger.events() == [event for event in events if event not in gone]
        assert await ledger.events(record_id="a") == [event for event in events if event.record_id == "a"][1:]
        assert await ledger.forget(gone) == 0
        assert await ledger.forget([]) == 0

    async def test_a_line_that_is_not_as_archived_is_not_forgotten(self, ledger: Ledger) -> None:
        await start(ledger)
        [event] = await ledger.events()

        assert await ledger.forget([event._replace(hash="another")]) == 0
        assert await ledger.events() == [event]

    async def test_a_record_goes_on_after_its_lines_were_forgotten(self, ledger: Ledger) -> None:
        row = await run(ledger)
        await ledger.forget(await ledger.events())

        after = applied(await settle(ledger, row, Done("1", "{}")))

        [event] = await ledger.events(record_id="r")
        assert (event.n, event.hash, after.log_seq) == (3, after.log_hash, 3)


class Questions(Suite):
    """What is asked of the ledger by those who only look."""

    async def test_records_are_loaded_in_the_order_asked_for(self, ledger: Ledger) -> None:
        await start_all(ledger, ["a", "b", "c"])

        assert [row.record_id for row in await ledger.load(["c", "x", "a"])] == ["c", "a"]
        assert await ledger.load([]) == []

    async def test_records_are_found_by_what_they_are(self, ledger: Ledger) -> None:
        await start_all(ledger, ["abc", "abd"])
        await start_all(ledger, ["x_c", "xbc", "ABC"], workflow="other", step="first")
        await settle(ledger, await run(ledger, "done"), Done("1", "{}"))

        async def found(**fields: Any) -> list[str]:
            return [row.record_id for row in await ledger.find(Query(**fields))]

        assert await found() == ["ABC", "abc", "abd", "done", "x_c", "xbc"]
        assert await found(workflow="other") == ["ABC", "x_c", "xbc"]
        assert await found(step="first", text="b") == ["xbc"]
        assert await found(text="x_") == ["x_c"]
        assert await found(text="AB") == ["ABC"]
        assert await found(text="%") == []
        assert await found(status=(Status.DONE, Status.ERROR)) == ["done"]
        assert await found(status=(Status.RUNNING,), workflow="other") == []

    async def test_records_are_found_page_by_page(self, ledger: Ledger) -> None:
        ids = sorted(["a", "B", "ä", "Z", "🙂", "_", "-", "10", "9", "a/b", "a b"])
        await start_all(ledger, ids)

        pages: list[list[str]] = [[row.record_id for row in await ledger.find(Query(limit=4))]]
        while pages[-1]:
            query = Query(after=pages[-1][-1], limit=4)
            pages.append([row.record_id for row in await ledger.find(query)])

        assert list(chain.from_iterable(pages)) == ids

    async def test_the_newest_change_comes_first_if_asked(self, ledger: Ledger, clock: ToldClock) -> None:
        for record_id in ("a", "b", "c"):
            clock.advance(1)
            await start(ledger, record_id)
        clock.advance(1)
        applied(await settle(ledger, (await claim(ledger, limit=1)).records[0], Tried("1", 1.0)))

        assert [row.record_id for row in await ledger.find(Query(order="updated", limit=2))] == ["a", "c"]

    async def test_records_are_counted_by_workflow_step_and_status(self, ledger: Ledger) -> None:
        await start_all(ledger, ["a", "b", "c"])
        await start_all(ledger, ["d"], workflow="other")
        await settle(ledger, (await claim(ledger, limit=1)).records[0], Done("1", "{}"))

        counts = await ledger.counts()

        assert sorted(tuple(count) for count in counts) == [
            (FLOW, "", Status.DONE, 1),
            (FLOW, STEP, Status.PENDING, 2),
            ("other", STEP, Status.PENDING, 1),
        ]

    async def test_receipts_are_found_by_record_and_by_key(self, ledger: Ledger) -> None:
        row, other = await run(ledger), await run(ledger, "other")
        mine, theirs = await intend(ledger, row, "a"), await intend(ledger, other, "a")

        assert [receipt.key for receipt in await ledger.receipts(record_ids=["r", "x"])] == [mine.key]
        assert [receipt.key for receipt in await ledger.receipts(keys=[theirs.key, "x"])] == [theirs.key]
        assert await ledger.receipts() == []

    async def test_an_empty_ledger_answers_with_nothing(self, ledger: Ledger) -> None:
        assert await ledger.find(Query()) == []
        assert await ledger.counts() == []
        assert await ledger.events() == []
        assert await ledger.workers() == []
        assert await ledger.signals("r") == []
        assert await ledger.fanins("r") == []
        assert await ledger.commit([]) == []
        assert await ledger.send([]) == []
        assert await ledger.setting("x") is None

    async def test_a_setting_is_replaced_by_compare_and_swap(self, ledger: Ledger) -> None:
        made = await ledger.keep(Setting("cursor", "1", 0))
        made_twice = await ledger.keep(Setting("cursor", "2", 0))
        replaced = await ledger.keep(Setting("cursor", "3", 1))
        stale = await ledger.keep(Setting("cursor", "4", 1))
        unknown = await ledger.keep(Setting("other", "5", 3))

        assert [made, made_twice, replaced, stale, unknown] == [True, False, True, False, False]
        assert await ledger.setting("cursor") == Setting("cursor", "3", 2)
        assert await ledger.setting("other") is None

    async def test_settings_are_found_by_the_start_of_their_names(self, ledger: Ledger) -> None:
        for name in ("a_b", "a.2", "a.1", "ab", "A.3"):
            await ledger.keep(Setting(name, "{}", 0))

        assert [setting.name for setting in await ledger.settings("a.")] == ["a.1", "a.2"]
        assert [setting.name for setting in await ledger.settings("a_")] == ["a_b"]
        assert len(await ledger.settings("")) == 5


class Copies(Suite):
    """A ledger goes through rows into another one (25)."""

    TABLES: tuple[type[Any], ...] = (Record, Receipt, Signal, Fanin, Worker, Control, Bucket, Setting, Event)

    async def copied(self, source: Ledger, target: Ledger) -> None:
        epoch = (await source.standing()).epoch
        await order(target, "seal")
        for type_ in self.TABLES:
            after: tuple[Any, ...] = ()
            while page := await source.dump(type_, after=after, limit=2):
                await target.restore(type_, page, epoch)
                after = key_of_row(page[-1])
        await order(target, "unseal")

    async def all_of(self, ledger: Ledger) -> list[Any]:
        tables = [await ledger.dump(type_) for type_ in self.TABLES]
        return [*tables, (await ledger.standing()).epoch]

    async def fill(self, ledger: Ledger) -> None:
        row = await run(ledger, data=dump("é" * 200_000), priority=3)
        await intend(ledger, row)
        await map_over(ledger, await run(ledger, "parent"), 3, limit=1)
        await wait_for(ledger, await run(ledger, "waits"))
        await ledger.send([Send("s1", "r", "paid", "1")])
        await claimed(ledger, slot(STEP, "child", rate=Rate("api", 2, 60)))
        await ledger.keep(Setting("cursor", "{}", 0))
        await order(ledger, "halt", "other")

    @staticmethod
    def skip_unless_copied(ledger: Ledger) -> None:
        if type(ledger).dump is Ledger.dump:
            pytest.skip("this store gives no rows to copy")

    @pytest.mark.parametrize("way", ["out", "in"])
    async def test_a_copy_has_every_row_and_goes_on_where_the_original_stood(
        self, ledger: Ledger, clock: ToldClock, way: str
    ) -> None:
        self.skip_unless_copied(ledger)
        memory = MemoryLedger(clock)
        source, target = (ledger, memory) if way == "out" else (memory, ledger)
        await self.fill(source)

        await self.copied(source, target)

        assert await self.all_of(target) == await self.all_of(source)
        row = await the(target)
        applied(await commit(target, new_facts(row, lines=(Line("noted"),))))
        assert (await log(target))[-1] == "noted"
        assert (await target.events())[-1].kind == "noted"
        assert refused(await commit(target, new_start("new", clock.now(), workflow="other"))) == "halted"

    async def test_rows_are_not_copied_into_an_open_ledger(self, ledger: Ledger) -> None:
        self.skip_unless_copied(ledger)
        row = await start(ledger)

        with pytest.raises(LedgerError, match="is open"):
            await ledger.restore(Record, [row._replace(record_id="other")], 1)

        assert await ledger.load(["other"]) == []


class Shared(Suite):
    """Two processes on one store, played by two instances."""

    async def test_what_one_commits_the_other_sees(self, ledger: Ledger, twin: Ledger) -> None:
        row = await start(ledger, data='"hello"')

        assert await twin.load(["r"]) == [row]
        [row] = (await claim(twin)).records
        assert await the(ledger) == row
        assert await ledger.events() == await twin.events()

    async def test_one_repeats_what_the_other_sent_and_gets_its_answer(self, ledger: Ledger, twin: Ledger) -> None:
        """13."""
        row = await run(ledger)
        change = new_settle(row, Saved("1"), await ledger.now())
        applied(await commit(ledger, change))

        again = await commit(twin, change)

        assert isinstance(again, Applied)
        assert again.again

    async def test_two_claimers_never_share_a_record(self, ledger: Ledger, twin: Ledger) -> None:
        ids = [f"r{n:02}" for n in range(40)]
        await start_all(ledger, ids)

        async def take(store: Ledger, worker: str) -> list[str]:
            taken: list[str] = []
            while some := await claimed(store, worker=worker, limit=3):
                taken += some
            return taken

        first, second = await asyncio.gather(take(ledger, "w1"), take(twin, "w2"))

        assert sorted(first + second) == ids

    async def test_twenty_claimers_at_once_do_not_exceed_a_cap(self, ledger: Ledger, twin: Ledger) -> None:
        """4."""
        await start_all(ledger, [f"r{n:02}" for n in range(40)])

        answers = await asyncio.gather(
            *(claim(store, slot(cap=5), worker=f"w{n}", limit=3) for n in range(10) for store in (ledger, twin))
        )

        assert sum(len(answer.records) for answer in answers) == 5
        assert len(await ledger.find(Query(status=(Status.RUNNING,)))) == 5

    async def test_twenty_claimers_at_once_do_not_exceed_a_rate(self, ledger: Ledger, twin: Ledger) -> None:
        await start_all(ledger, [f"r{n:02}" for n in range(40)])
        rated = slot(rate=Rate("api", 7, 60))

        answers = await asyncio.gather(
            *(claim(store, rated, worker=f"w{n}", limit=3) for n in range(10) for store in (ledger, twin))
        )

        assert sum(len(answer.records) for answer in answers) == 7

    async def test_of_two_settles_at_once_one_lands(self, ledger: Ledger, twin: Ledger) -> None:
        for n in range(5):
            row = await run(ledger, f"r{n}")

            verdicts = await asyncio.gather(settle(ledger, row, Saved("1")), settle(twin, row, Saved("2")))

            assert sorted(type(verdict).__name__ for verdict in verdicts) == ["Applied", "Conflict"]

    async def test_a_signal_and_a_wait_at_once_always_meet(self, ledger: Ledger, twin: Ledger) -> None:
        """4."""
        for n in range(10):
            row = await run(ledger, f"r{n}")

            await asyncio.gather(wait_for(ledger, row), twin.send([Send(f"s{n}", f"r{n}", "paid", "1")]))

            assert (await the(ledger, f"r{n}")).status is Status.PENDING

    async def test_children_that_end_at_once_wake_their_parent_once(self, ledger: Ledger, twin: Ledger) -> None:
        """5a."""
        await map_over(ledger, await run(ledger), 8)
        children = await run_children(ledger)

        await asyncio.gather(
            *(settle((ledger, twin)[n % 2], child, Done("1", "{}")) for n, child in enumerate(children.values()))
        )

        assert (await the_fanin(ledger)).left == 0
        assert (await log(ledger)).count("woken") == 1

    async def test_the_same_start_at_once_is_one_record(self, ledger: Ledger, twin: Ledger) -> None:
        change = new_start("r", await ledger.now())

        verdicts = await asyncio.gather(
            *(commit(store, change._replace(change_id=f"c{n}")) for n in range(4) for store in (ledger, twin))
        )

        assert sorted(verdict.again for verdict in verdicts if isinstance(verdict, Applied)) == [False] + [True] * 7
        assert await log(ledger) == ["started"]

    async def test_nothing_starts_after_a_halt_was_acknowledged_to_another(self, ledger: Ledger, twin: Ledger) -> None:
        """15."""
        await order(ledger, "halt")
        now = await twin.now()

        verdicts = await asyncio.gather(*(commit(twin, new_start(f"r{n}", now)) for n in range(5)))

        assert [refused(verdict) for verdict in verdicts] == ["halted"] * 5

    async def test_a_beat_and_a_takeover_at_once_agree(self, ledger: Ledger, twin: Ledger, clock: ToldClock) -> None:
        """8: either the worker is closed and its record free, or both live on."""
        for n in range(5):
            row = await run(ledger, f"r{n}", worker=f"w{n}")
            clock.advance(40)

            told, _ = await asyncio.gather(beat(ledger, f"w{n}", row), twin.recover(), return_exceptions=True)

            after = await the(ledger, f"r{n}")
            if isinstance(told, WorkerClosed):
                assert after.status is Status.PENDING
            else:
                assert not isinstance(told, BaseException)
                assert (after.status, after.worker, told.lost) == (Status.RUNNING, f"w{n}", ())
                await ledger.farewell(f"w{n}")

    async def test_batches_in_opposite_orders_both_land(self, ledger: Ledger, twin: Ledger) -> None:
        """14."""
        now = await ledger.now()
        rows = [await run(ledger, f"r{n}") for n in range(20)]

        def changes(some: Sequence[Record]) -> list[Change]:
            return [new_facts(row, lines=(Line("noted"),)) for row in some]

        verdicts = await asyncio.gather(
            *(
                store.commit(changes(rows if store is ledger else rows[::-1]))
                for _ in range(5)
                for store in (ledger, twin)
            )
        )

        assert all(isinstance(verdict, Applied) for batch in verdicts for verdict in batch)
        assert now == await twin.now()
        assert await log(ledger, "r0") == ["started", "claimed", *["noted"] * 10]

    async def test_a_setting_replaced_at_once_is_replaced_by_one(self, ledger: Ledger, twin: Ledger) -> None:
        kept = await asyncio.gather(
            *(store.keep(Setting("lease", str(n), 0)) for n in range(3) for store in (ledger, twin))
        )

        assert sorted(kept) == [False] * 5 + [True]


class LedgerConformance(
    Starts, Moves, Beside, Effects, Fanins, Signals, Claims, Workers, Orders, Log, Questions, Copies, Shared
):
    """The whole contract. Subclass it and give the fixtures ``ledger`` and, if it can be shared, ``twin``."""
