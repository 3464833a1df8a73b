"""How an act on Google is declared: as an effect whose parts get its arguments by name, bound once.

The parts of an act take the same arguments as the act itself. Here each part is a function of the act and of what was
``given``, an object with one attribute for each argument, defaults included.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, cast

from quire.clock import Span
from quire.workflows.effect import Act, Effect, Prepare, PrepareAgain, effect
from quire.workflows.retry import Retry
from quire.workflows.workflow import hints_of
from quire.workspace.connection import actor

P = ParamSpec("P")
T = TypeVar("T")

#: What was prepared does not fit any more, as when somebody types meanwhile: it is prepared anew at once.
_AT_ONCE = Retry(20, first="0s", on=lambda error: isinstance(error, PrepareAgain))

#: The arguments of an act, by name.
Given = Any
Part = Callable[[Act[Any], Given], Awaitable[Any]]
Undo = Callable[[Act[Any], Any], Awaitable[object]]


def google_effect(
    *,
    find: Part | None = None,
    check: Part | None = None,
    reserve: Part | None = None,
    undo: Undo | None = None,
    fenced: bool | Literal["settled"] = True,
    repeat: bool = False,
    timeout: Span = "60s",
    settle: Span = "60s",
) -> Callable[[Callable[Concatenate[Act[Any], P], Awaitable[T]]], Effect[P, T, Any]]:
    """Declare an act: ``find`` probes it, ``check`` and ``reserve`` come before it, ``undo`` may be called again."""

    def declare(fn: Callable[Concatenate[Act[Any], P], Awaitable[T]]) -> Effect[P, T, Any]:
        signature = inspect.signature(fn)
        prepare = Prepare(_part(check, signature), _part(reserve, signature)) if check or reserve else None
        make: Any = effect(
            probe=_part(find, signature),
            undo=undo,
            undo_repeat=undo is not None,
            fenced=fenced,
            repeat=repeat,
            prepare=prepare,
            actor=actor,
            retry=_AT_ONCE,
            timeout=timeout,
            settle=settle,
        )
        return cast("Effect[P, T, Any]", make(fn))

    return declare


def _part(part: Part | None, signature: inspect.Signature) -> Any:
    """The part as the engine calls it: like the act."""
    if part is None:
        return None

    async def called(act: Act[Any], *args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(act, *args, **kwargs)
        bound.apply_defaults()
        return await part(act, SimpleNamespace(**bound.arguments))

    called.__annotations__ = {"return": hints_of(part).get("return", Any)}
    called.__name__, called.__qualname__, called.__module__ = part.__name__, part.__qualname__, part.__module__
    return called
