"""What is asked of a ledger, as the runtime builds it: the builders, and the questions in one call each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from quire.clock import new_id
from quire.ledger.base import Ledger
from quire.model.change import (
    Applied,
    Beaten,
    Change,
    Claim,
    Claimed,
    Holding,
    Order,
    Refused,
    Slot,
    Verdict,
)
from quire.model.codec import dump
from quire.model.event import first_break
from quire.model.receipt import Kind, Receipt, Stage, fingerprint, key_of
from quire.model.record import Record, Status, new_record
from quire.model.row import replace
from quire.model.side import EVERYWHERE, Fanin, Worker
from quire.model.wait import On, Wait
from quire.rules import moves as transition
from quire.rules.moves import Move
from quire.rules.outcome import Outcome, Waits
from quire.testing.clock import ToldClock
from quire.workflows import fanout

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
        image = replace(image, fanouts=image.fanouts + len(outcome.fanins))
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
        "act_key": fingerprint(name),
        "prepared": '{"draft":7}',
        "actor": '{"account":"ann"}',
    }
    return Receipt(**given | fields)


def done(intent: Receipt, value: str = '"posted"') -> Receipt:
    return replace(intent, stage=Stage.DONE, value=value)


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


async def make_known(ledger: Ledger, worker: str) -> None:
    """A worker beats before it claims."""
    if worker not in {known.worker_id for known in await ledger.workers()}:
        await beat(ledger, worker)


async def claim(
    ledger: Ledger, *slots: Slot, worker: str = "w1", limit: int = 100, claim_id: str = "", again: bool = False
) -> Claimed:
    await make_known(ledger, worker)
    return await ledger.claim(Claim(claim_id or new_id("claim-"), worker, slots or (slot(),), limit, again))


async def claimed(ledger: Ledger, *slots: Slot, **fields: Any) -> list[str]:
    """The ids of the records that a claim takes."""
    return [record.record_id for record in (await claim(ledger, *slots, **fields)).records]


async def run(ledger: Ledger, record_id: str = "r", *, worker: str = "w1", **fields: Any) -> Record:
    """A record that is started and runs under a worker that is known."""
    record = await start(ledger, record_id, **fields)
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


async def ask_to_cancel(ledger: Ledger, *, undo: bool = False) -> Verdict:
    """A person wishes that the record be cancelled while it runs."""
    wish = dump({"by": "ann", "reason": "a typo", "undo": undo})
    return await commit(ledger, Change(new_id(), "r", 0, None, cancel=wish))


def progress(fanin: Fanin) -> tuple[int, int, int]:
    """How many children the fan-in has in all, how many are left, and how many failed."""
    return fanin.total, fanin.left, fanin.failed
