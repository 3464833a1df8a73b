"""Holds a history against the specification, and against what is true of every history.

For each family a plain search looks for an order of all that people asked in which the specification gives the same
answers. What was answered before another thing was asked comes before it.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from datetime import datetime
from typing import NamedTuple

from tests.simulation.family import Member, member
from tests.simulation.history import LATE, Found, Happening, History, Order
from tests.simulation.pace import PACE
from tests.simulation.plan import Plan
from tests.simulation.possibilities import Possibilities, State
from tests.simulation.script import How, Script, Word, from_data
from tests.simulation.steps import SCHEDULED
from tests.simulation.world import CAP, RATE_COUNT, RATE_SECONDS

#: A search that takes more steps is given up. It counts as a violation: the search is to be mended.
MOST_STEPS = 50_000


#: The one window that is documented: a process was frozen past the time of its act, and acted when it woke.
WINDOW = "window"


class Violation(NamedTuple):
    """A promise that was broken."""

    #: One word for the kind: by it a smaller plan is known to show the same.
    kind: str
    sentence: str
    #: The record, or its family.
    record: str = ""
    at: float = 0.0


class _Point(NamedTuple):
    """One thing in the history of a family, at its moment."""

    at: float
    #: asks, happens, answers
    kind: str
    order: Order | None = None
    happening: Happening | None = None


class GaveUp(Exception):
    pass


class Search:
    """Looks for an order of one family's history that the specification has."""

    def __init__(self, specification: Possibilities, points: list[_Point], found: dict[str, Found]) -> None:
        self.specification = specification
        self.points = points
        self.found = found
        self.failed: set[tuple[int, frozenset[int], State]] = set()
        self.orders = {point.order.number: point.order for point in points if point.order is not None}
        self.steps = 0
        #: The furthest point that was reached, and why the search went no further.
        self.furthest = -1
        self.problem = ""

    def goes(self, place: int, pending: frozenset[int], state: State) -> bool:
        """Whether the history from here on can be explained."""
        spec = self.specification
        while place < len(self.points):
            point = self.points[place]
            if point.order is not None and point.kind == "asks":
                pending |= {point.order.number}
                place += 1
                continue
            if point.order is not None and point.order.number not in pending:
                if point.order.verb == "resume --cancelled":
                    state = spec.later(spec.answered(state, point.order))
                place += 1
                continue
            if (place, pending, state) in self.failed:
                return False
            self.steps += 1
            if self.steps > MOST_STEPS:
                raise GaveUp
            if point.happening is not None:
                after = spec.sees(state, point.happening)
                if after is not None and self.goes(place + 1, pending, spec.later(after)):
                    return True
            else:
                assert point.order is not None
                after = spec.obeys(state, point.order)
                if after is not None and self.goes(place, pending - {point.order.number}, spec.later(after)):
                    return True
            for number in sorted(pending):
                other = self.orders[number]
                if other is point.order:
                    continue
                after = spec.obeys(state, other)
                if after is not None and self.goes(place, pending - {number}, spec.later(after)):
                    return True
            self._stuck(place, point)
            self.failed.add((place, pending, state))
            return False
        problem = spec.rest(state, self.found)
        for number in sorted(pending) if problem else ():
            after = spec.obeys(state, self.orders[number])
            if after is not None and self.goes(place, pending - {number}, spec.later(after)):
                return True
        if problem and place > self.furthest:
            self.furthest, self.problem = place, problem
        return not problem

    def _stuck(self, place: int, point: _Point) -> None:
        if place <= self.furthest:
            return
        self.furthest = place
        if point.order is not None:
            self.problem = f"{told(point.order)}: by all that happened before, that cannot have been the answer"
        elif point.happening is not None:
            one = point.happening
            self.problem = f"{one.record} {one.kind} {one.name}, which it may not by all that happened before"


def told(order: Order) -> str:
    """An order and its answer, as a sentence."""
    what = " ".join(part for part in (order.verb, order.record, order.what) if part)
    value = f" ({order.value})" if order.verb in ("answer", "resolve", "signal") else ""
    if order.answered_at is None:
        return f"{order.person} asked for {what!r}{value}, and never heard an answer"
    answer = f"was refused: {order.words}" if order.refused else f"was answered {order.answer}"
    return f"{order.person} asked for {what!r}{value}, and {answer}"


def check(plan: Plan, history: History) -> list[Violation]:
    """All that is wrong with a history."""
    found: list[Violation] = []
    if history.restless:
        found.append(Violation("restless", history.restless))
    found += [Violation("verify", f"verify: {difference}") for difference in history.differences]
    found += _effects(history)
    found += _stops(history)
    found += _pauses(history)
    found += _caps(history)
    found += _rates(history)
    found += _undone_in_order(history)
    found += _lost(history)
    found += _left_open(history)
    found += _scheduled(history)
    found += _sleeps(plan, history)
    ends = [] if history.restless else [*_families(history), *_ends(history)]
    return _through_the_window(found + ends, history)


def _through_the_window(found: list[Violation], history: History) -> list[Violation]:
    """What is wrong in a family in which a process acted past its time is counted apart."""
    late = {one.record.split("/")[0] for one in history.happenings if one.kind == "acts" and one.value == LATE}
    return [one._replace(kind=WINDOW) if one.record.split("/")[0] in late else one for one in found]


# -- the families ----------------------------------------------------------------------------------------------


def _families(history: History) -> list[Violation]:
    violations = []
    families: dict[str, list[Member]] = defaultdict(list)
    for record in history.found.values():
        families[record.record.split("/")[0]].append(member(record))
    for root, members in sorted(families.items()):
        violation = _family(root, members, history)
        if violation is not None:
            violations.append(violation)
    return violations


def _family(root: str, members: list[Member], history: History) -> Violation | None:
    specification = Possibilities(members, history.killers)
    points = []
    for order in history.orders:
        if specification.concerns(order):
            points.append(_Point(order.asked_at, "asks", order))
            if order.answered_at is not None:
                points.append(_Point(order.answered_at, "answers", order))
    seen = ("begins", "begins to undo", "passes")
    own = (one for one in history.happenings if one.record in specification.numbers and one.kind in seen)
    points += [_Point(one.at, "happens", None, one) for one in own]
    points.sort(key=lambda point: point.at)
    search = Search(specification, points, history.found)
    try:
        if search.goes(0, frozenset(), specification.later(specification.beginning())):
            return None
    except GaveUp:
        return Violation("search", f"the search for the history of {root} was given up", root)
    place = min(max(0, search.furthest), len(points) - 1)
    kind = "rest" if search.furthest >= len(points) else "order" if points[place].order is not None else "move"
    return Violation(kind, search.problem, root, points[place].at if points else 0.0)


sys.setrecursionlimit(20_000)


# -- what is true of every history -----------------------------------------------------------------------------


def _scripts(history: History) -> dict[str, Script]:
    return {record: from_data(found.data).unrolled() for record, found in history.found.items()}


def _hows(history: History) -> dict[tuple[str, str], How]:
    return {
        (record, do.name): do.how
        for record, script in _scripts(history).items()
        for do in script.every()
        if do.word is Word.ACT
    }


def _effects(history: History) -> list[Violation]:
    """Effects happen at most once per key, and only after they began."""
    violations = []
    hows = _hows(history)
    acts: dict[str, list[Happening]] = defaultdict(list)
    began: dict[tuple[str, int, str], float] = {}
    for one in history.happenings:
        if one.kind == "begins":
            began.setdefault((one.record, one.visit, one.name), one.at)
        elif one.kind == "acts":
            acts[one.key].append(one)
            if began.get((one.record, one.visit, one.name), one.at + 1) > one.at:
                violations.append(
                    Violation("unannounced", f"{one.record} acts {one.name} without having begun", one.record, one.at)
                )
    for several in acts.values():
        first = several[0]
        if len(several) > 1 and hows.get((first.record, first.name)) is not How.REPEATED:
            sentence = f"{first.record} did {first.name} {len(several)} times under one key"
            violations.append(Violation("twice", sentence, first.record, several[1].at))
    return violations


def _stops(history: History) -> list[Violation]:
    """After a halt was answered only what its answer named as under way still happens."""
    violations = []
    keys = {(one.record, one.visit, one.name): one.key for one in history.happenings if one.kind == "begins"}
    for order in history.orders:
        if order.verb != "halt" or order.answered_at is None or order.refused:
            continue
        end = _taken_back(order, history)
        for one in history.happenings:
            if one.kind != "acts" or not order.answered_at < one.at < end:
                continue
            if order.what not in ("", history.found[one.record].workflow):
                continue
            if keys.get((one.record, one.visit, one.name)) not in order.value:
                sentence = f"{one.record} did {one.name} after the halt of {order.person}, which did not name it"
                violations.append(Violation("after a halt", sentence, one.record, one.at))
    return violations


def _pauses(history: History) -> list[Violation]:
    """After a pause or a halt was answered, nothing is claimed until somebody resumes."""
    violations = []
    for order in history.orders:
        if order.verb not in ("pause", "halt") or order.answered_at is None or order.refused:
            continue
        end = _taken_back(order, history)
        violations += [
            Violation(
                "claimed", f"{one.record} is claimed after the {order.verb} of {order.person}", one.record, one.at
            )
            for one in history.happenings
            if one.kind == "is claimed" and order.answered_at < one.at < end
            if order.what in ("", history.found[one.record].workflow)
        ]
    return violations


def _taken_back(order: Order, history: History) -> float:
    """When somebody asked to resume what was halted or paused by this order."""
    resumes = [one for one in history.orders if one.verb.startswith("resume") and one.what == order.what]
    later = [one for one in resumes if one.answered_at is None or one.answered_at > order.asked_at]
    return min((one.asked_at for one in later), default=history.ended_at)


def _caps(history: History) -> list[Violation]:
    """Workers never hold more records of a workflow than its cap allows."""
    held: set[str] = set()
    for one in history.happenings:
        if history.found[one.record].workflow != "capped":
            continue
        if one.kind == "is let go":
            held.discard(one.record)
        elif one.kind == "is claimed":
            held.add(one.record)
            if len(held) > CAP:
                return [Violation("cap", f"{len(held)} records of 'capped' run at a time", one.record, one.at)]
    return []


def _rates(history: History) -> list[Violation]:
    """Effects with a rate begin as the bucket of its tokens allows."""
    hows = _hows(history)
    tokens, last = RATE_COUNT, 0.0
    for one in history.happenings:
        if one.kind != "begins" or hows.get((one.record, one.name)) is not How.RATED:
            continue
        tokens = min(RATE_COUNT, tokens + (one.at - last) * RATE_COUNT / RATE_SECONDS) - 1
        last = one.at
        if tokens < -1e-6:
            return [Violation("rate", f"{one.record} begins {one.name} beyond its rate", one.record, one.at)]
    return []


def _undone_in_order(history: History) -> list[Violation]:
    """What a record did is taken back newest first."""
    violations = []
    acted: dict[tuple[str, int, str], float] = {}
    newest: dict[str, float] = {}
    for one in history.happenings:
        if one.kind == "acts":
            acted[one.record, one.visit, one.name] = one.at
            newest.pop(one.record, None)
        elif one.kind == "undoes":
            at = acted[one.record, one.visit, one.name]
            if at > newest.get(one.record, at):
                sentence = f"{one.record} takes {one.name} back after what it did before that"
                violations.append(Violation("order of undoing", sentence, one.record, one.at))
            newest[one.record] = at
    return violations


def _lost(history: History) -> list[Violation]:
    """What was acknowledged is there."""
    return [
        Violation("lost", f"{order.person} started {order.record}, which is not there", order.record, order.asked_at)
        for order in history.orders
        if order.verb == "start" and order.answered_at is not None and not order.refused
        if order.record not in history.found
    ]


def _left_open(history: History) -> list[Violation]:
    """No record ends over an effect in doubt. Exception: what a halt cancelled goes on with it when it is back."""
    return [
        Violation("over a doubt", f"{record} has ended, and nobody knows whether {name} happened", record)
        for record, name in history.left_open
        if "by a halt" not in history.found[record].sentence
    ]


def _scheduled(history: History) -> list[Violation]:
    """Each minute of a schedule has its record, once there is one."""
    found = sorted(one.record for one in history.found.values() if one.workflow == SCHEDULED)
    if not found:
        return []
    moments = [datetime.fromisoformat(record.split("@")[1]).timestamp() for record in found]
    last = history.ended_at - 20
    missing = [at for at in range(int(moments[0]), int(last), 60) if at not in moments]
    return [Violation("schedule", f"nothing was started for the minute {at}", at=at) for at in missing]


def _sleeps(plan: Plan, history: History) -> list[Violation]:
    """Nobody wakes before the time. Clocks that drift are forgiven as much as they drift."""
    violations = []
    scripts = _scripts(history)
    for one in history.happenings:
        if one.kind != "passes":
            continue
        part, place = map(int, one.name.split("."))
        do = scripts[one.record].parts[part][place]
        timed = do.word is Word.SLEEP or (do.word is Word.WAIT and isinstance(one.value, float))
        if timed and one.value < do.seconds * 0.9 - 0.2 * PACE:
            sentence = f"{one.record} waited {one.value:g} s instead of {do.seconds:g} s"
            violations.append(Violation("slept too short", sentence, one.record, one.at))
    return violations


def _ends(history: History) -> list[Violation]:
    """A record that is DONE has done all of its last visits. One whose effects were undone has none left."""
    violations = []
    done: dict[tuple[str, str], int] = defaultdict(int)
    hows = _hows(history)
    for one in history.happenings:
        if one.kind == "acts":
            done[one.record, one.name] += 1
        elif one.kind == "undoes":
            done[one.record, one.name] -= 1
    for record, script in _scripts(history).items():
        found = history.found[record]
        for do in script.every():
            if do.word is not Word.ACT or do.parked:
                continue
            if found.status == "DONE" and not any(
                one.kind == "acts" and (one.record, one.name) == (record, do.name) for one in history.happenings
            ):
                violations.append(Violation("not done", f"{record} is DONE, and {do.name} never happened", record))
    undone = {record for record, found in history.found.items() if "what it did was undone" in found.sentence}
    undone |= _to_be_undone(history)
    for (record, name), count in done.items():
        if (
            any(record == one or record.startswith(f"{one}/") for one in undone)
            and count > 0
            and hows[record, name] is How.UNDONE
        ):
            violations.append(Violation("not undone", f"{record} was undone, but for {name}", record))
    return violations


def _to_be_undone(history: History) -> set[str]:
    """Records that somebody wanted undone, which were cancelled then, and of which nobody wanted anything since."""
    last = {
        order.record: order
        for order in history.orders
        if order.record and not order.refused and order.verb in ("cancel", "cancel --undo", "retry", "rewind", "move")
    }
    asked = {
        record for record, order in last.items() if order.verb == "cancel --undo" and order.answered_at is not None
    }
    ended = (history.found[record] for record in asked if record in history.found)
    return {one.record for one in ended if one.status == "CANCELLED" and "by a halt" not in one.sentence}
