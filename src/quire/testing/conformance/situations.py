"""Situations in which two verbs may meet, and the verbs that matter in each.

Everything in them is named, so that a situation is the same on every store: what two verbs leave on one can be compared
with what they leave on the memory ledger, row by row.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from quire.ledger.base import Ledger
from quire.model.change import Change, Claim, Order, Rate, Send, Slot
from quire.model.codec import dump
from quire.model.receipt import Kind, Receipt, Stage
from quire.model.record import Record
from quire.model.row import replace
from quire.model.side import EVERYWHERE, Setting
from quire.model.wait import On, Wait
from quire.rules import moves as transition
from quire.rules.moves import Move
from quire.rules.outcome import Broke, Done, Next, Outcome, Saved, Stopped, Tried, Waits, Yielded
from quire.testing.clock import ToldClock
from quire.testing.conformance.asking import (
    FLOW,
    STEP,
    applied,
    beat,
    commit,
    done,
    new_answer,
    new_facts,
    new_intent,
    new_map,
    new_move,
    new_settle,
    new_start,
    on_signal,
    slot,
    the,
)

#: One verb, ready to be asked of any instance on the store.
Verb = Callable[[Ledger], Awaitable[Any]]

CHILD = "child"
LEASE = 30.0


@dataclass
class Situation:
    #: Every pair of these is tried, each with itself too.
    verbs: dict[str, Verb]
    #: What concerns the whole ledger: each is tried with each of the verbs, held and coming.
    wide: dict[str, Verb] = field(default_factory=dict)
    #: What is over in one statement, or meets them in other situations: it only comes while one of the verbs is held.
    brief: dict[str, Verb] = field(default_factory=dict)
    #: Verbs of one and the same caller, who asks one after the other: these do not meet.
    alone: frozenset[str] = frozenset()

    def pairs(self) -> list[tuple[str, str]]:
        own = [(one, two) for one in self.verbs for two in self.verbs if not {one, two} <= self.alone]
        wide = [pair for one in self.verbs for two in self.wide for pair in ((one, two), (two, one))]
        return own + wide + [(one, two) for one in self.verbs for two in self.brief]

    def verb(self, name: str) -> Verb:
        return (self.verbs | self.wide | self.brief)[name]


class Scene:
    """A ledger that is brought into a situation, and the verbs that are then asked of it."""

    def __init__(self, ledger: Ledger, clock: ToldClock) -> None:
        self.ledger = ledger
        self.clock = clock
        self._numbers = count(1)

    def named(self, what: str) -> str:
        return f"{what}-{next(self._numbers)}"

    async def start(self, record_id: str = "r", **fields: Any) -> Record:
        change = new_start(record_id, self.clock.now(), change_id=self.named("start"), **fields)
        return applied(await commit(self.ledger, change))

    async def claim(self, *record_ids: str, worker: str = "w1", step: str = STEP, workflow: str = FLOW) -> list[Record]:
        """The worker takes exactly these, which are due; answers them in this order."""
        asked = Claim(self.named("claim"), worker, (slot(step, workflow),), len(record_ids))
        taken = {row.record_id: row for row in (await self.ledger.claim(asked)).records}
        return [taken[record_id] for record_id in record_ids]

    async def run(self, record_id: str = "r", *, worker: str = "w1", **fields: Any) -> Record:
        row = await self.start(record_id, **fields)
        return (await self.claim(record_id, worker=worker, step=row.step))[0]

    async def settle(self, record: Record, outcome: Outcome) -> Record:
        change = new_settle(record, outcome, self.clock.now(), change_id=self.named("settle"))
        return applied(await commit(self.ledger, change))

    async def facts(self, record: Record, *receipts: Receipt) -> None:
        applied(await commit(self.ledger, new_facts(record, *receipts, change_id=self.named("facts"))))

    # Verbs.

    def changes(self, change: Change) -> Verb:
        return lambda ledger: commit(ledger, change)

    def settles(self, record: Record, outcome: Outcome, keep: Slot | None = None) -> Verb:
        given = {"keep": keep} if keep else {}
        return self.changes(new_settle(record, outcome, self.clock.now(), change_id=self.named("settle"), **given))

    def states(self, record: Record, *receipts: Receipt) -> Verb:
        return self.changes(new_facts(record, *receipts, change_id=self.named("facts")))

    def moves(self, record: Record, go: Move, *receipts: Receipt) -> Verb:
        return self.changes(new_move(record, go, change_id=self.named("move"), receipts=receipts))

    def edits(self, record: Record) -> Verb:
        return self.moves(record, transition.edit(record, self.clock.now(), "ann", '{"edited": true}'))

    def cancels(self, record: Record) -> Verb:
        return self.moves(record, transition.cancel(record, self.clock.now(), "ann", "a typo", undo=False))

    def retries(self, record: Record, step: str = "") -> Verb:
        return self.moves(record, transition.retry(record, self.clock.now(), "ann", step=step))

    def goes(self, record: Record, step: str = "next") -> Verb:
        return self.moves(
            record, transition.move(record, self.clock.now(), "ann", step, {step}, rests=False, ends=False)
        )

    def wishes(self, record_id: str = "r") -> Verb:
        wish = dump({"by": "ann", "reason": "a typo", "undo": False})
        return self.changes(Change(self.named("wish"), record_id, 0, None, cancel=wish))

    def prioritises(self, record: Record) -> Verb:
        return self.changes(Change(self.named("rise"), record.record_id, record.version, None, priority=7))

    def starts(self, record_id: str = "r", **fields: Any) -> Verb:
        return self.changes(new_start(record_id, self.clock.now(), change_id=self.named("start"), **fields))

    def sends(self, record_id: str = "r") -> Verb:
        sent = Send(self.named("signal"), record_id, "paid", "1")
        return lambda ledger: ledger.send([sent])

    def claims(self, worker: str, *slots: Slot) -> Verb:
        asked = Claim(self.named("claim"), worker, slots or (slot(),), 10)
        return lambda ledger: ledger.claim(asked)

    def beats(self, *held: Record, worker: str = "w1") -> Verb:
        return lambda ledger: beat(ledger, worker, *held, lease=LEASE)

    def orders(self, word: str, scope: str = EVERYWHERE) -> Verb:
        said = Order(word, scope, "ann", reason="wrong text", target="elsewhere" if word == "seal" else "")
        return lambda ledger: ledger.order(said)

    async def forgets(self) -> Verb:
        """The rotation trims what it has archived."""
        archived = await self.ledger.events()
        return lambda ledger: ledger.forget(archived)


def recover(ledger: Ledger) -> Awaitable[Any]:
    return ledger.recover()


async def nothing_there(s: Scene) -> Situation:
    """Records, settings, workers and orders come into being."""
    data = '{"n": 1}'
    return Situation(
        {
            "start": s.starts(data=data),
            "the same start of another": s.starts(data=data),
            "start with other data": s.starts(data='{"n": 2}'),
            "send to nobody yet": s.sends(),
            "beat": s.beats(),
            "keep": lambda ledger: ledger.keep(Setting("cursor", "1", 0)),
            "keep another": lambda ledger: ledger.keep(Setting("cursor", "2", 0)),
            "halt": s.orders("halt"),
            "resume": s.orders("resume"),
            "pause": s.orders("pause", FLOW),
            "seal": s.orders("seal"),
            "unseal": s.orders("unseal"),
        }
    )


async def due(s: Scene) -> Situation:
    """A record that backs off from a failed try is due: people and workers want it."""
    for worker in ("w1", "w2"):
        await s.beats(worker=worker)(s.ledger)
    row = await s.settle(await s.run(), Tried("no", 0.0))
    return Situation(
        {
            "claim": s.claims("w1"),
            "claim of another": s.claims("w2"),
            "edit": s.edits(row),
            "move": s.goes(row),
            "cancel": s.cancels(row),
            "retry": s.retries(row),
            "priority": s.prioritises(row),
            "send": s.sends(),
            "start again": s.starts(),
        },
        {
            "halt": s.orders("halt", FLOW),
            "pause": s.orders("pause"),
            "seal": s.orders("seal"),
        },
        {"trim": await s.forgets(), "farewell": lambda ledger: ledger.farewell("w1")},
    )


async def running(s: Scene) -> Situation:
    """A record runs, its worker's lease is over, and nobody has noticed yet."""
    for worker in ("w1", "w2"):
        await s.beats(worker=worker)(s.ledger)
    row = await s.run()
    await s.start("other", due_at=s.clock.now())
    s.clock.advance(LEASE * 1.1 + 1)
    await s.beats(worker="w2")(s.ledger)
    now = s.clock.now()
    by_holder: dict[str, Verb] = {
        "done": s.settles(row, Done("1", "{}")),
        "next, kept": s.settles(row, Next("next", '"2"'), keep=slot("next", cap=3)),
        "save": s.settles(row, Saved('"3"')),
        "wait": s.settles(row, Waits((on_signal(row),), row.data)),
        "map": s.settles(row, new_map(row, 2, now)),
        "intend": s.states(row, new_intent(row, nonce="n1")),
        "answer of a call": s.states(row, replace(new_answer(row, "call"), nonce="n2")),
    }
    return Situation(
        {
            **by_holder,
            "wish to cancel": s.wishes(),
            "send": s.sends(),
            "beat": s.beats(row),
            "takeover": recover,
            "claim of another": s.claims("w2"),
        },
        {
            "halt": s.orders("halt"),
            "seal": s.orders("seal"),
        },
        {
            "farewell": lambda ledger: ledger.farewell("w1"),
            "priority": s.prioritises(row),
            "trim": await s.forgets(),
        },
        frozenset(by_holder),
    )


async def taken_back(s: Scene) -> Situation:
    """A record runs since before a halt that is over, its worker's lease is over, and a person takes the halt back."""
    await s.beats()(s.ledger)
    row = await s.run()
    for word in ("halt", "resume"):
        await s.orders(word)(s.ledger)
    s.clock.advance(LEASE * 1.1 + 1)
    by_holder: dict[str, Verb] = {
        "done": s.settles(row, Done("1", "{}")),
        "stop": s.settles(row, Stopped("told to")),
        "yield": s.settles(row, Yielded("budget")),
        "intend": s.states(row, new_intent(row, nonce="n1")),
    }
    return Situation(
        {
            **by_holder,
            "take the halt back": s.changes(Change(s.named("revive"), "r", 0, None, by="ann", revive=True)),
            "wish to cancel": s.wishes(),
            "takeover": recover,
            "beat": s.beats(row),
        },
        {"halt": s.orders("halt"), "resume": s.orders("resume"), "seal": s.orders("seal")},
        alone=frozenset(by_holder),
    )


async def acting(s: Scene) -> Situation:
    """A record runs over an open intent, its worker's lease is over, and the act is under way."""
    await s.beats()(s.ledger)
    row = await s.run()
    intent = new_intent(row, nonce="n1", act_by=s.clock.now() + 10)
    await s.facts(row, intent)
    row = await the(s.ledger)
    s.clock.advance(LEASE * 1.1 + 1)
    return Situation(
        {
            "receipt": s.states(row, done(intent)),
            "receipt of another attempt": s.states(row, replace(done(intent, '"twice"'), nonce="n2")),
            "intend again": s.states(row, replace(intent, nonce="n3")),
            "leave the step": s.settles(row, Done("1", "{}")),
            "leave with the receipt": s.changes(
                new_settle(row, Done("1", "{}"), s.clock.now(), change_id=s.named("settle"), receipts=(done(intent),))
            ),
            "wish to cancel": s.wishes(),
            "takeover": recover,
            "beat": s.beats(row),
        },
        {"halt": s.orders("halt"), "seal": s.orders("seal")},
        {"send": s.sends()},
    )


async def waiting(s: Scene) -> Situation:
    """A record waits for a signal, and its patience is over: the timer and the signal race."""
    for worker in ("w1", "w2"):
        await s.beats(worker=worker)(s.ledger)
    row = await s.run()
    row = await s.settle(row, Waits((on_signal(row, until=s.clock.now() + 10),), row.data))
    s.clock.advance(20)
    return Situation(
        {
            "send": s.sends(),
            "send another": s.sends(),
            "claim": s.claims("w1"),
            "cancel": s.cancels(row),
            "edit": s.edits(row),
            "move": s.goes(row),
        },
        {"halt": s.orders("halt"), "pause": s.orders("pause"), "seal": s.orders("seal")},
    )


async def asking(s: Scene) -> Situation:
    """A record asks a person; two answer."""
    await s.beats()(s.ledger)
    row = await s.run()
    question = Wait(On.QUESTION, "question", "ok?", about={"text": "ok?"})
    row = await s.settle(row, Waits((question,), row.data))

    def answer(choice: str) -> Verb:
        receipt = replace(new_answer(row, "ok?", f'"{choice}"', Kind.ASK), key="question", nonce=choice)
        return s.moves(row, transition.answered(row, s.clock.now(), "question", {"choice": choice}), receipt)

    return Situation(
        {"yes": answer("yes"), "no": answer("no"), "cancel": s.cancels(row), "edit": s.edits(row), "send": s.sends()},
        {"halt": s.orders("halt"), "seal": s.orders("seal")},
        {"priority": s.prioritises(row)},
    )


async def doubtful(s: Scene) -> Situation:
    """A record asks whether an effect happened; a person answers while the receipt is on its way."""
    await s.beats()(s.ledger)
    held = await s.run()
    intent = new_intent(held, nonce="n1", act_by=s.clock.now() + 10)
    await s.facts(held, intent)
    held = await the(s.ledger)
    row = await s.settle(held, Done("1", "{}"))

    def resolve(stage: Stage) -> Verb:
        go = transition.resolved(row, s.clock.now(), intent.key, {"by": "ann", "happened": stage is Stage.DONE})
        return s.moves(row, go, replace(intent, stage=stage, value="1"))

    return Situation(
        {
            "it happened": resolve(Stage.DONE),
            "it did not": resolve(Stage.VOID),
            "late receipt": s.states(held, done(intent)),
            "cancel": s.cancels(row),
            "undo": s.moves(row, transition.cancel(row, s.clock.now(), "ann", "a typo", undo=True)),
            "edit": s.edits(row),
        },
        {"halt": s.orders("halt"), "seal": s.orders("seal")},
        {"send": s.sends()},
    )


async def failed(s: Scene) -> Situation:
    """A record is an error; people look after it."""
    await s.beats()(s.ledger)
    row = await s.settle(await s.run(), Broke("no"))
    return Situation(
        {
            "retry": s.retries(row),
            "rewind": s.retries(row, "first"),
            "edit": s.edits(row),
            "move": s.goes(row),
            "start again": s.starts(),
        },
        {"claim": s.claims("w1"), "halt": s.orders("halt"), "seal": s.orders("seal")},
        {"trim": await s.forgets()},
    )


async def family(s: Scene) -> Situation:
    """A parent waits for three children: two run under two workers, one has failed."""
    for worker in ("w1", "w2"):
        await s.beats(worker=worker)(s.ledger)
    parent = await s.run()
    born = new_map(parent, 3, s.clock.now(), may_fail=3)
    parent = await s.settle(parent, born)
    first, second, third = (child.record_id for child in born.children)
    zero, broken = await s.claim(first, second, workflow=CHILD)
    broken = await s.settle(broken, Broke("no"))
    [two] = await s.claim(third, worker="w2", workflow=CHILD)
    parent = await the(s.ledger)
    return Situation(
        {
            "one ends": s.settles(zero, Done("1", "{}")),
            "the other ends": s.settles(two, Done("2", "{}")),
            "one fails": s.settles(zero, Broke("no")),
            "the failed one is retried": s.retries(broken),
            "the parent is cancelled": s.cancels(parent),
            "the worker of one is known to be dead": lambda ledger: ledger.recover(dead=["w1"]),
        },
        {
            "wish to cancel one": s.wishes(first),
            "halt of the children": s.orders("halt", CHILD),
            "halt": s.orders("halt"),
            "seal": s.orders("seal"),
        },
    )


async def turns(s: Scene) -> Situation:
    """Two children run, and each that ends gives its turn to one that waits."""
    for worker in ("w1", "w2"):
        await s.beats(worker=worker)(s.ledger)
    parent = await s.run()
    born = new_map(parent, 4, s.clock.now(), limit=2, may_fail=4)
    parent = await s.settle(parent, born)
    [zero] = await s.claim(born.children[0].record_id, workflow=CHILD)
    [one] = await s.claim(born.children[1].record_id, worker="w2", workflow=CHILD)
    return Situation(
        {
            "one ends": s.settles(zero, Done("1", "{}")),
            "the other ends": s.settles(one, Done("2", "{}")),
            "the next is cancelled": s.cancels(born.children[2]),
            "the parent is cancelled": s.cancels(parent),
            "claim of a child": s.claims("w1", slot(STEP, CHILD)),
        },
        {"halt of the children": s.orders("halt", CHILD)},
    )


async def capped(s: Scene) -> Situation:
    """One slot of a cap and one token of a rate are left."""
    for worker in ("w1", "w2"):
        await s.beats(worker=worker)(s.ledger)
    limited = slot(cap=2, workflow_cap=3, rate=Rate("api", 3, 60))
    held = await s.run("held")
    before = await s.run("before", step="first")
    for record_id in ("a", "b", "c"):
        await s.start(record_id)
    await s.start("d", step="other")
    return Situation(
        {
            "claim": s.claims("w1", limited),
            "claim of another": s.claims("w2", limited),
            "claim of another step": s.claims("w2", slot("other", workflow_cap=3)),
            "keep for the capped step": s.settles(before, Next(STEP, "{}"), keep=limited),
            "a slot is freed": s.settles(held, Done("1", "{}")),
        },
        {"pause": s.orders("pause"), "halt": s.orders("halt", FLOW)},
    )


async def halted(s: Scene) -> Situation:
    """Everything is halted: what ran still runs, what was due is cancelled by definition."""
    await s.beats()(s.ledger)
    held = await s.run("held")
    await s.start()
    await s.orders("halt")(s.ledger)
    row = await the(s.ledger)
    epoch = (await s.ledger.standing()).epoch + 1
    return Situation(
        {
            "resume": s.orders("resume"),
            "revive": s.moves(row, transition.revive(row, s.clock.now(), "ann", epoch)),
            "sweep": recover,
            "start": s.starts("new"),
            "settle": s.settles(held, Next("next", "{}")),
            "send": s.sends("held"),
            "claim": s.claims("w1"),
        }
    )


async def sealed(s: Scene) -> Situation:
    """The ledger is sealed for its move elsewhere; the seal may be taken back."""
    await s.beats()(s.ledger)
    held = await s.run("held")
    intent = new_intent(held, nonce="n1", act_by=s.clock.now() + 10)
    await s.facts(held, intent)
    held = await the(s.ledger, "held")
    row = await s.start()
    await s.orders("seal")(s.ledger)
    return Situation(
        {
            "unseal": s.orders("unseal"),
            "late receipt": s.states(held, done(intent)),
            "start": s.starts("new"),
            "edit": s.edits(row),
            "claim": s.claims("w1"),
            "send": s.sends(),
        }
    )


Make = Callable[[Scene], Awaitable[Situation]]
SITUATIONS: list[Make] = [
    nothing_there,
    due,
    running,
    taken_back,
    acting,
    waiting,
    asking,
    doubtful,
    failed,
    family,
    turns,
    capped,
    halted,
    sealed,
]
