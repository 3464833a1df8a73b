"""Tells a history in sentences: who did what, what was promised, what happened."""

from __future__ import annotations

from collections.abc import Iterable

from tests.simulation.check import Violation
from tests.simulation.history import Happening, History
from tests.simulation.plan import Plan
from tests.simulation.script import Do, Script, Word


def story(plan: Plan, history: History, violations: Iterable[Violation] = ()) -> str:
    """The whole story of a simulation, as text."""
    counts = f"{plan.workers} workers, {plan.records} records in {len(plan.roots)} families"
    lines = [
        f"Seed {plan.seed}: {counts}, {len(plan.wishes)} wishes of people, {len(plan.faults)} faults.",
        "",
        *(f"{root.record} ({root.script.workflow}): {_script(root.script)}." for root in plan.roots),
        "",
    ]
    told: list[tuple[float, int, str]] = []
    for number, order in enumerate(history.orders):
        what = " ".join(part for part in (order.verb, order.record, order.what) if part)
        value = f" ({order.value})" if order.verb in ("answer", "resolve", "signal") else ""
        told.append((order.asked_at, number, f"{order.person} asks: {what}{value}."))
        if order.answered_at is not None:
            answer = f"is refused: {order.words}" if order.refused else f"is answered {order.answer}"
            told.append((order.answered_at, number, f"{order.person}, who asked for {what}, {answer}."))
    told += [(one.at, 10_000 + n, _happening(one)) for n, one in enumerate(history.happenings)]
    told += [(at, 20_000 + n, f"{fault}.") for n, (at, fault) in enumerate(history.faults)]
    lines += [f"{at - history.begun_at:9.3f}  {sentence}" for at, _, sentence in sorted(told)]
    lines += ["", "In the end:", *(f"{one.sentence}" for _, one in sorted(history.found.items()))]
    broken = [f"  {violation.sentence}" for violation in violations]
    return "\n".join([*lines, *(["", "What was promised, and does not hold:", *broken] if broken else [])]) + "\n"


def _happening(one: Happening) -> str:
    process = f", in {one.process}" if one.process else ""
    match one.kind:
        case "begins":
            return f"The log says that {one.record} begins {one.name} (visit {one.visit})."
        case "begins to undo":
            return f"The log says that {one.record} begins the {one.name}."
        case "acts":
            return f"The world: {one.record} does {one.name} (visit {one.visit}){process}."
        case "is claimed" | "is let go":
            return f"The log says that {one.record} {one.kind} ({one.name})."
        case "undoes":
            return f"The world: what {one.record} did as {one.name} is taken back{process}."
        case _:
            value = "" if one.value is None else f" with {one.value!r}"
            return f"The step of {one.record} comes beyond {one.name} of its script{value}{process}."


def _script(script: Script) -> str:
    parts = [", ".join(map(_do, part)) for part in script.parts]
    return "; then, when a person moves it on: ".join(parts) if script.rests else "; then: ".join(parts)


def _do(do: Do) -> str:
    match do.word:
        case Word.ACT:
            odd = f", failing {'after' if do.unclear else 'before'} it happens" if do.times else ""
            return f"the effect {do.name} ({do.how}{odd})"
        case Word.SLEEP:
            return f"sleep {do.seconds:g} s"
        case Word.WAIT:
            return f"wait for the signal {do.name}"
        case Word.ASK:
            return f"ask {do.name}"
        case Word.FAIL:
            return "fail for good" if do.times < 0 else f"fail {do.times} times"
        case Word.CHILDREN:
            children = " | ".join(f"{_script(child)}" for child in do.children)
            limit = f", {do.limit} at once" if do.limit else ""
            keep = ", keeping failures" if do.keep else ""
            return f"{len(do.children)} children {do.name} of {do.children[0].workflow}{limit}{keep} [{children}]"
        case Word.EACH:
            return f"for each of {do.times} items the effect {do.name} ({do.how})"
        case Word.POISON:
            return f"end the process {'each time' if do.times < 0 else f'{do.times} times'}"
        case _:
            return f"call {do.name}"
