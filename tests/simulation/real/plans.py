"""The plan of a seed for real processes: that of the simulation, at another pace. Lines and the store fail, too."""

from __future__ import annotations

import random
from dataclasses import replace

from tests.simulation.pace import PACE
from tests.simulation.plan import BUSY_SECONDS, Fault, Plan, every_record, make
from tests.simulation.real.stores import Store
from tests.simulation.script import Do, Script, Word


def plan_of(seed: int, store: Store) -> Plan:
    plan = make(seed)
    workers = min(plan.workers, store.workers)
    plan = replace(
        plan,
        workers=workers,
        versions=plan.versions[:workers],
        roots=[root._replace(at=root.at * PACE, script=_paced(root.script)) for root in plan.roots],
        wishes=[wish._replace(at=wish.at * PACE) for wish in plan.wishes],
        faults=[_fault(fault, workers) for fault in plan.faults],
    )
    dice = random.Random(f"lines {seed}")
    for _ in range(dice.randint(3, 8)):
        name, kind = f"w{dice.randint(1, workers)}", dice.choice(("cut", "half-open", "dies", "freezes"))
        at, span = dice.uniform(1.0, BUSY_SECONDS), dice.choice((1.0, 5.0, 15.0, 30.0))
        plan.faults.append(Fault(name, kind, at=at * PACE, span=span * PACE))
    if dice.random() < 0.3:
        plan.faults += _storm(dice, workers)
    plan.faults += store.faults(dice, plan)
    return plan


def _storm(dice: random.Random, workers: int) -> list[Fault]:
    """Workers die again and again: what they ran becomes suspect."""
    begin = dice.uniform(3.0, BUSY_SECONDS / 2)
    moments = [begin + dice.uniform(0.0, BUSY_SECONDS / 3) for _ in range(4 * workers)]
    return [Fault(f"w{n % workers + 1}", "dies", at=at * PACE, span=0.5 * PACE) for n, at in enumerate(moments)]


def poisons_of(plan: Plan) -> dict[tuple[str, str], int]:
    """Places of scripts at which a record ends its process, and how often. Its step may fail there anyway."""
    dice = random.Random(f"poison {plan.seed}")
    places = [
        (record, f"{part}.{place}")
        for record, script in every_record(plan)
        for part, dos in enumerate(script.unrolled().parts)
        for place, do in enumerate(dos)
        if do.word is Word.FAIL and do.times > 0
    ]
    early = sorted(places, key=lambda place: (place[0].count("/"), place[1]))[:3]  # most records come there
    return {dice.choice(early): dice.randint(1, 6)} if early and dice.random() < 0.5 else {}


def _fault(fault: Fault, workers: int) -> Fault:
    """The same in a system that has fewer workers perhaps, and at its pace. How fast a clock runs is no span."""
    process = fault.process
    if process[0] == "w" and process[1:].isdigit():
        process = f"w{(int(process[1:]) - 1) % workers + 1}"
    span = fault.span if fault.kind == "clock drifts" else fault.span * PACE
    return fault._replace(process=process, at=fault.at * PACE, span=span)


def _paced(script: Script) -> Script:
    return script._replace(parts=tuple(tuple(_paced_do(do) for do in part) for part in script.parts))


def _paced_do(do: Do) -> Do:
    if do.word is Word.POISON:  # which step ends its process here is drawn by ``poisons_of``
        do = do._replace(word=Word.CALL, times=0)
    return do._replace(seconds=do.seconds * PACE, children=tuple(_paced(child) for child in do.children))
