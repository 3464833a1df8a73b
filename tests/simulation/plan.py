"""What is to happen in a simulation: a plan, made from a seed alone. Any part of it can be left out."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.simulation.script import Do, How, Script, Word

#: People give orders, and faults strike, within so many seconds.
BUSY_SECONDS = 60.0
#: A seed counts with at least so many of each.
LEAST_RECORDS, LEAST_ORDERS, LEAST_FAULTS = 20, 5, 3

PEOPLE = ("ann", "bob", "cleo")
WORKFLOWS = ("plain", "capped", "undoing", "threaded")


class Root(NamedTuple):
    """A record that a person starts."""

    at: float
    person: str
    record: str
    script: Script


class Wish(NamedTuple):
    """An order that a person will give. ``what``: a workflow, the name of a signal, a choice, a part."""

    at: float
    person: str
    verb: str
    record: str = ""
    what: str = ""


class Fault(NamedTuple):
    """Something that goes wrong in one process: at a moment, or at the nth thing that it asks of the store."""

    process: str
    #: dies, freezes; request lost, answer lost, dies before, dies after, slow; clock is set, clock drifts
    kind: str
    at: float = 0.0
    nth: int = 0
    span: float = 0.0
    #: Only requests of this verb count.
    verb: str = ""
    #: It strikes whoever holds this record then, or soon after.
    record: str = ""


@dataclass
class Plan:
    seed: int
    workers: int = 1
    #: The version of the deployment that each worker runs.
    versions: tuple[int, ...] = (1,)
    roots: list[Root] = field(default_factory=list)
    wishes: list[Wish] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    #: Whether what a halt cancelled is brought back in the end.
    brings_back: bool = True
    #: What a schedule starts each minute.
    scheduled: Script | None = None

    @property
    def records(self) -> int:
        return sum(root.script.size for root in self.roots)


#: How often each thing stands in a script.
WORDS = {
    Word.ACT: 48,
    Word.SLEEP: 12,
    Word.WAIT: 10,
    Word.ASK: 8,
    Word.CHILDREN: 18,
    Word.FAIL: 5,
    Word.CALL: 5,
    Word.EACH: 3,
    Word.POISON: 1,
}


class _Maker:
    def __init__(self, seed: int) -> None:
        self.dice = random.Random(f"plan {seed}")
        self.names = 0

    def name(self, letter: str) -> str:
        self.names += 1
        return f"{letter}{self.names}"

    def script(self, depth: int) -> Script:
        dice = self.dice
        parts = tuple(self.part(depth) for _ in range(dice.choice((1, 1, 1, 2, 2, 3)) if depth else 1))
        rests = tuple(place for place in range(1, len(parts)) if dice.random() < 0.25)
        return Script(parts, rests, dice.choices(WORKFLOWS, (6, 2, 3, 2))[0])

    def part(self, depth: int) -> tuple[Do, ...]:
        return tuple(self.do(depth) for _ in range(self.dice.randint(1, 4)))

    def do(self, depth: int) -> Do:
        dice = self.dice
        [word] = dice.choices(list(WORDS), [*WORDS.values()])
        while word is Word.CHILDREN and not depth:
            [word] = dice.choices(list(WORDS), [*WORDS.values()])
        name = f"s{dice.randint(1, 3)}" if word is Word.WAIT else self.name(word[0])
        match word:
            case Word.ACT:
                return self.act(name)
            case Word.EACH:
                how = self.how()
                return Do(word, name, dice.choice((0.0, 0.2, 1.0)), how, times=dice.randint(2, 4))
            case Word.WAIT:
                return Do(word, name, dice.choice((0.0, 0.0, 4.0, 10.0)))
            case Word.ASK:
                return Do(word, name, times=dice.choice((1, 1, 1, 2)))
            case Word.CALL:
                return Do(word, name, dice.choice((0.0, 0.0, 2.0, 5.0)))
            case Word.POISON:
                return Do(word, name, times=dice.choice((1, 2, -1)))
            case Word.SLEEP:
                return Do(word, name, dice.choice((0.5, 3.0, 12.0)))
            case Word.CHILDREN:
                children = tuple(self.script(depth - 1) for _ in range(dice.randint(1, 3)))
                flow = children[0].workflow
                children = tuple(child._replace(workflow=flow) for child in children)
                limit = dice.choice((0, 0, 1, 2))
                keep = dice.random() < 0.3
                need = dice.choice((0.0, 0.0, 0.5, 1.0)) if keep else 0.0
                return Do(word, name, children=children, limit=limit, keep=keep, need=need)
            case Word.FAIL:
                return Do(word, name, times=dice.choice((1, 2, 5, -1)))
            case _:
                return Do(word, name)

    def how(self) -> How:
        return self.dice.choices(list(How), (3, 4, 3, 2, 8, 2, 1))[0]

    def act(self, name: str) -> Do:
        dice, how = self.dice, self.how()
        slow = dice.choice((0.0, 0.2, 1.0, 3.0, 6.0))
        times = dice.choices((0, 1), (5, 1))[0]
        unclear = times > 0 and dice.random() < 0.5
        return Do(Word.ACT, name, slow, how, times, unclear=unclear, parked=dice.random() < 0.06)


def make(seed: int) -> Plan:
    """The plan of this seed."""
    maker = _Maker(seed)
    dice = maker.dice
    plan = Plan(seed, workers=dice.randint(1, 5), brings_back=dice.random() < 0.7)
    newer = dice.random() < 0.3
    plan.versions = tuple(dice.choice((1, 2)) if newer else 1 for _ in range(plan.workers))
    while plan.records < LEAST_RECORDS:
        depth = dice.choice((0, 1, 2, 2))
        at, person = dice.uniform(0, BUSY_SECONDS * 0.6), dice.choice(PEOPLE)
        plan.roots.append(Root(at, person, f"r{len(plan.roots) + 1}", maker.script(depth)))
    for _ in range(dice.randint(LEAST_ORDERS, 3 * LEAST_ORDERS)):
        plan.wishes += _wishes(dice, plan)
    for _ in range(dice.randint(LEAST_FAULTS, 3 * LEAST_FAULTS)):
        plan.faults.append(_fault(dice, plan))
    for _ in range(dice.randint(0, 2)):
        add_affair(dice, plan, f"r{len(plan.roots) + 1}", maker.act(maker.name("a")))
    if dice.random() < 0.3:
        plan.scheduled = Script(((maker.act(maker.name("a"))._replace(times=0, parked=False),),), workflow="scheduled")
    plan.roots.sort()
    plan.wishes.sort()
    return plan


def _wishes(dice: random.Random, plan: Plan) -> list[Wish]:
    """An order; a halt is followed by its end."""
    verbs = (
        "cancel",
        "cancel --undo",
        "halt",
        "pause",
        "signal",
        "retry",
        "look",
        "move",
        "rewind",
        "edit",
        "priority",
    )
    [verb] = dice.choices(verbs, (6, 9, 6, 1, 8, 9, 3, 3, 3, 2, 1))
    at, person = dice.uniform(1, BUSY_SECONDS), dice.choice(PEOPLE)
    if verb in ("halt", "pause"):
        scope = dice.choice(("", *WORKFLOWS))
        ends = "resume" if verb == "pause" or dice.random() < 0.2 else "resume --cancelled"
        later = at + dice.choice((0.5, 3.0, 10.0, 20.0))
        return [Wish(at, person, verb, "", scope), Wish(later, dice.choice(PEOPLE), ends, "", scope)]
    record = dice.choice([record for record, _ in every_record(plan)])
    what = ""
    if verb == "signal":
        waits = [
            (record, do.name) for record, script in every_record(plan) for do in script.every() if do.word is Word.WAIT
        ]
        if not waits:
            return []
        record, what = dice.choice(waits)
    [started] = [root.at for root in plan.roots if root.record == record.split("/")[0]]
    return [Wish(started + dice.choice((0.0, 0.5, 5.0, 15.0, 30.0)) * dice.random(), person, verb, record, what)]


def every_record(plan: Plan) -> list[tuple[str, Script]]:
    """Every record that comes to be if nothing is done anew."""
    return [found for root in plan.roots for found in _family(root.record, root.script)]


def _family(record: str, script: Script) -> list[tuple[str, Script]]:
    found = [(record, script)]
    opened = 0
    for do in script.every():
        if do.word is Word.CHILDREN:
            opened += 1
            for place, child in enumerate(do.children):
                found += _family(f"{record}/{do.name}~{opened}/{place}", child)
    return found


def _fault(dice: random.Random, plan: Plan) -> Fault:
    kinds = {
        "dies": 4,
        "freezes": 4,
        "request lost": 3,
        "answer lost": 4,
        "dies before": 5,
        "dies after": 5,
        "freezes before": 3,
        "freezes after": 3,
        "slow": 3,
        "clock is set": 2,
        "clock drifts": 1,
    }
    [kind] = dice.choices(list(kinds), list(kinds.values()))
    process = f"w{dice.randint(1, plan.workers)}"
    if dice.random() < 0.2 and kind not in ("clock is set", "clock drifts", "dies", "freezes"):
        return Fault(dice.choice(PEOPLE), kind, nth=dice.randint(1, 25), span=dice.choice((1.0, 5.0, 20.0)))
    if kind not in ("dies", "freezes", "clock is set", "clock drifts") and dice.random() < 0.3:
        verb = dice.choice(("commit", "claim", "beat", "recover"))
        return Fault(process, kind, nth=dice.randint(1, 25), span=dice.choice((1.0, 5.0, 15.0, 30.0)), verb=verb)
    if kind in ("dies", "freezes", "clock is set"):
        return Fault(process, kind, at=dice.uniform(1, BUSY_SECONDS), span=dice.choice((1.0, 5.0, 15.0, 30.0)))
    if kind == "clock drifts":
        return Fault(process, kind, span=dice.uniform(-0.03, 0.03))
    return Fault(process, kind, nth=dice.randint(1, 70), span=dice.choice((1.0, 5.0, 15.0, 30.0)))


# -- affairs: much that happens around one record --------------------------------------------------------------

#: Orders that are given one after the other, about one record or its workflow.
BURSTS = (
    ("cancel", "halt", "resume", "retry"),
    ("cancel --undo", "halt", "resume --cancelled"),
    ("halt", "cancel --undo", "resume"),
    ("halt", "resume", "retry", "cancel --undo"),
    ("halt", "retry", "resume --cancelled", "cancel"),
    ("cancel", "retry", "cancel --undo"),
    ("cancel --undo", "cancel", "retry", "rewind"),
    ("halt", "priority", "edit", "cancel", "resume --cancelled"),
    ("pause", "cancel", "resume", "retry"),
)


def add_affair(dice: random.Random, plan: Plan, record: str, act: Do) -> None:
    """One record more, which takes its time, is hunted by faults, and gets orders one shortly after the other."""
    call = Do(Word.CALL, f"c{record}", dice.choice((2.0, 6.0)))
    at, workflow = dice.uniform(0, BUSY_SECONDS * 0.5), dice.choice(WORKFLOWS)
    slow = act._replace(seconds=dice.choice((3.0, 6.0)))
    parts = ((call, slow),) if dice.random() < 0.4 else ((slow, call),)
    plan.roots.append(Root(at, dice.choice(PEOPLE), record, Script(parts, workflow=workflow)))
    hunted = dice.choice((0, 1, 1, 1, 3))
    kind = dice.choice(("dies", "dies", "freezes"))
    for number in range(hunted):
        span = 1.0 if kind == "dies" else dice.choice((5.0, 15.0, 30.0))
        plan.faults.append(Fault("w1", kind, at=at + 0.5 + dice.random() * 3 + 4 * number, span=span, record=record))
    if hunted == 3 or dice.random() < 0.2:
        return
    person, moment = dice.choice(PEOPLE), at + dice.uniform(0.5, 6.0)
    for verb in dice.choice(BURSTS):
        whole = verb.startswith(("halt", "pause", "resume"))
        plan.wishes.append(Wish(moment, person, verb, "" if whole else record, workflow if whole else ""))
        moment += dice.choice((0.1, 1.0, 3.0))
