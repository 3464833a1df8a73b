"""The keys of what a step asks for: under which name its answer is kept, the same in every pass (protocol 17).

A key is made of the record, its step and visit, the place in the code (items of ``run.each``, tasks side by side), the
kind and the name of what is asked for, and how many of the same were asked for before.
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from weakref import ref

from quire.model.receipt import Kind, key_of

if TYPE_CHECKING:
    from quire.run.passes import Pass

#: In which items of which ``run.each`` the code is that asks. Code that runs beside a loop is not in it.
SCOPE: ContextVar[tuple[str, ...]] = ContextVar("scope", default=())

#: In which of the tasks that the step began the code is that asks, and the names of it and of those around it, which
#: are the same in every pass. A task has what the one around it has until it asks for something itself.
BRANCH: ContextVar[tuple[ref[asyncio.Task[Any]] | None, tuple[str, ...]]] = ContextVar("branch", default=(None, ()))
#: What has a name of its own, or may be given one, is counted in all branches together.
NAMED = (Kind.ONCE, Kind.MAP)


def key(pass_: Pass, kind: Kind, name: str) -> str:
    """Return the key of the next thing of this kind and name, counted at the moment of the call (protocol 17)."""
    branch = _branch(pass_)  # also of what is not counted in it: it is the first use that numbers a branch
    if kind in NAMED:
        branch = ()
    count = _counted(pass_, (kind, SCOPE.get(), branch, name))
    return _key(pass_, kind, branch, name, count)


def has_next(pass_: Pass, kind: Kind, name: str) -> bool:
    """Return whether an earlier pass wrote under the key that the next ``key`` of this kind and name gives."""
    branch = _branch(pass_)
    if kind in NAMED:
        branch = ()
    count = pass_.counts.get((kind, SCOPE.get(), branch, name), 0)
    return _key(pass_, kind, branch, name, count) in pass_.known


def _key(pass_: Pass, kind: Kind, branch: tuple[str, ...], name: str, count: int) -> str:
    record = pass_.record
    scope = "/".join((*SCOPE.get(), *branch))
    return key_of(record.workflow, record.record_id, record.step, record.visit, scope, kind, name, count)


def _counted(pass_: Pass, place: tuple[Any, ...]) -> int:
    count = pass_.counts.get(place, 0)
    pass_.counts[place] = count + 1
    return count


def _branch(pass_: Pass) -> tuple[str, ...]:
    """Return where the code is that asks, if it runs beside the step's own (``gather``): there each counts for itself.

    What is answered already takes no time, so that those side by side come in another order in another pass.
    """
    if not pass_.step.is_async or (task := asyncio.current_task()) is None or task is pass_.task:
        return ()
    begun, branch = BRANCH.get()
    if begun is None or begun() is not task:
        name = getattr(task.get_coro(), "__qualname__", "")
        branch = (*branch, f"{name}~{_counted(pass_, ('branch', SCOPE.get(), branch, name))}")
        BRANCH.set((ref(task), branch))
    return branch


def use_once(pass_: Pass, name: str) -> None:
    """Note that the pass uses an effect of this name. A second use in the same pass is a mistake, not a repetition."""
    _branch(pass_)
    place = "/".join((*SCOPE.get(), name))
    if place in pass_.used:
        from quire.errors import EffectRepeated

        raise EffectRepeated(
            f"the effect {name!r} stands twice in one pass of step {pass_.step.name!r}; "
            f"give each its own name with .named(...)"
        )
    pass_.used.add(place)
