"""Makes a plan that shows a violation smaller, as long as it shows the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.simulation.check import Violation
from tests.simulation.plan import Plan, Root
from tests.simulation.script import Do, Script

#: Smaller plans are tried so often at the most.
MOST_TRIES = 400


def shrunk(plan: Plan, kind: str, shows: Callable[[Plan], list[Violation]]) -> Plan:
    """The smallest plan found that shows a violation of this kind."""
    tries = 0
    smaller = True
    while smaller:
        smaller = False
        for other in _smaller(plan):
            tries += 1
            if tries > MOST_TRIES:
                return plan
            if any(violation.kind == kind for violation in shows(other)):
                plan, smaller = other, True
                break
    return plan


def _smaller(plan: Plan) -> Iterator[Plan]:
    """Plans with less in them, the much smaller ones first."""
    for half in (plan.roots[len(plan.roots) // 2 :], plan.roots[: len(plan.roots) // 2]):
        if half != plan.roots:
            yield _with_roots(plan, half)
    for n in range(len(plan.faults)):
        yield replace(plan, faults=plan.faults[:n] + plan.faults[n + 1 :])
    for n in range(len(plan.roots)):
        yield _with_roots(plan, plan.roots[:n] + plan.roots[n + 1 :])
    for n in range(len(plan.wishes)):
        yield replace(plan, wishes=plan.wishes[:n] + plan.wishes[n + 1 :])
    if plan.workers > 1:
        yield replace(plan, workers=plan.workers - 1, versions=plan.versions[:-1])
    for n, root in enumerate(plan.roots):
        for script in _smaller_scripts(root.script):
            yield replace(plan, roots=[*plan.roots[:n], root._replace(script=script), *plan.roots[n + 1 :]])


def _with_roots(plan: Plan, roots: list[Root]) -> Plan:
    left = {root.record for root in roots}
    wishes = [wish for wish in plan.wishes if not wish.record or wish.record.split("/")[0] in left]
    return replace(plan, roots=roots, wishes=wishes)


def _smaller_scripts(script: Script) -> Iterator[Script]:
    """The script without one thing. What has children loses one of them first."""
    for p, part in enumerate(script.parts):
        for n, do in enumerate(part):
            for fewer in _fewer_children(do):
                yield _with_part(script, p, (*part[:n], fewer, *part[n + 1 :]))
            if len(part) > 1:
                yield _with_part(script, p, (*part[:n], *part[n + 1 :]))


def _fewer_children(do: Do) -> Iterator[Do]:
    for n, child in enumerate(do.children):
        if len(do.children) > 1:
            yield do._replace(children=(*do.children[:n], *do.children[n + 1 :]))
        for smaller in _smaller_scripts(child):
            yield do._replace(children=(*do.children[:n], smaller, *do.children[n + 1 :]))


def _with_part(script: Script, p: int, part: tuple[Do, ...]) -> Script:
    return script._replace(parts=(*script.parts[:p], part, *script.parts[p + 1 :]))
