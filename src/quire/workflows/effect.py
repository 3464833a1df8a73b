"""Effects: acts on the world outside, declared once at module level with their probe and their undo.

Declared so that any process finds them again by their qualified name after a kill.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Protocol, cast, get_args, get_origin, overload

from typing_extensions import TypeVar

from quire.clock import Span, seconds
from quire.errors import DefinitionError
from quire.model.change import Rate
from quire.workflows import declared
from quire.workflows.retry import NEVER, Retry, check_retry
from quire.workflows.workflow import hints_of, is_need

P = ParamSpec("P")
T = TypeVar("T")
X = TypeVar("X", default=None)


class NotDone(Exception):
    """It surely did not happen. A probe returns it; an act raises it."""


@dataclass(frozen=True, slots=True)
class Act(Generic[X]):
    """What an effect gets besides its arguments."""

    #: The idempotency key: the same for every try at this very act, different from every other's.
    key: str
    deps: X
    record_id: str


@dataclass(frozen=True, slots=True, eq=False)
class Effect(Generic[P, T, X]):
    """An act that is done at most once per key."""

    act: Callable[Concatenate[Act[X], P], Awaitable[T]]
    probe: Callable[Concatenate[Act[X], P], Awaitable[T | NotDone]] | None = None
    undo: Callable[[Act[X], T], Awaitable[object]] | None = None
    #: Acting again is harmless.
    repeat: bool = False
    #: The target itself refuses a second act with the same key: then "not there" is sure enough to act again.
    fenced: bool = False
    retry: Retry = NEVER
    #: The act is given up after this.
    timeout: Span = "30s"
    #: How long after the act could have ended its target may take to show it: nobody probes before.
    settle: Span = "60s"
    rate: Rate | None = None
    name: str = ""
    #: A key of the user's own: global in the ledger.
    own_key: str = ""
    #: The act takes its arguments only, no ``Act``.
    bare: bool = False

    def named(self, name: str) -> Effect[P, T, X]:
        """The same effect under another name within the step: for loops."""
        if not declared.is_text(name):
            raise DefinitionError(f"the effect {self.name!r} cannot be named {name!r}: a name is text")
        return replace(self, name=name)

    def keyed(self, key: str) -> Effect[P, T, X]:
        """The same effect under a key of your own. It is global in the ledger: no other record does it again."""
        if not declared.is_text(key):
            raise DefinitionError(f"the effect {self.name!r} cannot be keyed {key!r}: a key is text")
        return replace(self, own_key=key)

    @property
    def path(self) -> str:
        """Where the effect is found again."""
        return path_of(self.act)

    if TYPE_CHECKING:

        async def __call__(self, act: Act[X], *args: P.args, **kwargs: P.kwargs) -> T:
            """The plain act, for tests; within a workflow use ``run.once(effect, ...)``."""
            ...

    else:

        async def __call__(self, *args, **kwargs):
            """The plain act, for tests; within a workflow use ``run.once(effect, ...)``."""
            if not args or not isinstance(args[0], Act):
                raise DefinitionError(
                    f"the effect {self.name!r} is called without its Act; use run.once({self.name}, …)"
                )
            return await self.act(*args, **kwargs)

    def __hash__(self) -> int:
        return hash(self.path)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Effect) and other.path == self.path


def path_of(fn: Callable[..., object]) -> str:
    """A function's qualified name: ``module:name``."""
    inner = inspect.unwrap(fn)
    name = getattr(inner, "__qualname__", type(inner).__qualname__)
    module = getattr(inner, "__module__", type(inner).__module__)
    return f"{module}:{name}"


def needed_deps(act: Callable[..., Any]) -> type | None:
    """Return the type of dependencies that an act names in ``act: Act[Site]``; None if it needs none."""
    first = next(iter(inspect.signature(act).parameters), "")
    hint = hints_of(act).get(first)
    arguments = get_args(hint) if get_origin(hint) is Act else ()
    return arguments[0] if arguments and is_need(arguments[0]) else None


class _Declared(Protocol):
    """What ``@effect(...)`` without a probe or an undo makes of any act."""

    def __call__(self, act: Callable[Concatenate[Act[X], P], Awaitable[T]], /) -> Effect[P, T, X]: ...


#: Effects by their path, as they are declared.
_DECLARED: dict[str, Effect[Any, Any, Any]] = {}


def find_effect(path: str) -> Effect[Any, Any, Any] | None:
    """The effect declared under this path; its module is imported if need be."""
    if path not in _DECLARED:
        module = path.partition(":")[0]
        if module and module not in sys.modules:
            try:
                import_module(module)
            except ImportError:
                return None
    return _DECLARED.get(path)


def longest_timeout() -> float:
    """Of all effects declared so far: a worker's lease is longer."""
    return max((seconds(effect.timeout) for effect in _DECLARED.values()), default=0.0)


@overload
def effect(act: Callable[Concatenate[Act[X], P], Awaitable[T]], /) -> Effect[P, T, X]: ...


@overload
def effect(
    *,
    repeat: bool = False,
    fenced: bool = False,
    retry: Retry = ...,
    timeout: Span = "30s",
    settle: Span = "60s",
    rate: Rate | None = None,
) -> _Declared: ...


@overload
def effect(
    *,
    probe: Callable[Concatenate[Act[X], P], Awaitable[T | NotDone]] | None = None,
    undo: Callable[[Act[X], T], Awaitable[object]] | None = None,
    repeat: bool = False,
    fenced: bool = False,
    retry: Retry = ...,
    timeout: Span = "30s",
    settle: Span = "60s",
    rate: Rate | None = None,
) -> Callable[[Callable[Concatenate[Act[X], P], Awaitable[T]]], Effect[P, T, X]]: ...


def effect(act: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Declare an act on the world outside: ``@effect`` or ``@effect(probe=..., undo=...)``."""

    declared.options(options, _OPTIONS, "@effect")

    def declare(fn: Callable[..., Any]) -> Effect[Any, Any, Any]:
        _check(fn, options)
        made = Effect(act=fn, name=fn.__name__, **options)
        _DECLARED[made.path] = made
        return made

    return declare if act is None else declare(act)


_OPTIONS = ("probe", "undo", "repeat", "fenced", "retry", "timeout", "settle", "rate")


def _check(fn: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Refuse an effect that could not be done, probed or undone as it is declared."""
    if not inspect.iscoroutinefunction(fn):
        name = getattr(fn, "__qualname__", None) or repr(fn)
        raise DefinitionError(f"the effect {name!r} is no 'async def' function")
    whose = f"effect {fn.__qualname__!r}"
    parameters = inspect.signature(fn, follow_wrapped=False).parameters.values()
    places = sum(one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) for one in parameters)
    if not places and not any(one.kind is one.VAR_POSITIONAL for one in parameters):
        raise DefinitionError(f"{whose} takes no parameter; its first is its Act: async def {fn.__name__}(act, …)")
    for word in ("probe", "undo"):
        if options.get(word) is not None and not inspect.iscoroutinefunction(options[word]):
            raise DefinitionError(f"the {word} of {whose} is no 'async def' function")
    probe, undo = options.get("probe"), options.get("undo")
    named = [one.name for one in parameters if one.kind is one.KEYWORD_ONLY]
    if probe is not None and not declared.accepts(probe, places, named):
        raise DefinitionError(f"the probe of {whose} cannot be called like its act; it must take the same arguments")
    if undo is not None and not declared.accepts(undo, 2):
        raise DefinitionError(f"the undo of {whose} cannot be called as undo(act, value), with the value of the act")
    for word in ("repeat", "fenced"):
        declared.word(options.get(word, False), (True, False), f"{word} of {whose}")
    check_retry(options.get("retry", NEVER), whose)
    declared.span(options.get("timeout", "30s"), f"the timeout of {whose}", least=1e-9)
    declared.span(options.get("settle", "60s"), f"the settle of {whose}")
    declared.rate(options.get("rate"), whose)


def bare_effect(name: str, act: Callable[..., Awaitable[T]]) -> Effect[..., T, Any]:
    """An act without a declaration: nothing probes it and nothing undoes it; in doubt a person is asked."""
    return cast("Effect[..., T, Any]", Effect(act=act, name=name, bare=True))


def rate(count: float, per: Span, key: str) -> Rate:
    """At most ``count`` per ``per`` over all workers, for every step and effect that names the same key."""
    if not declared.is_number(count) or not count > 0 or declared.span(per, "the span of a rate") <= 0:
        raise DefinitionError(
            f"a rate of {count!r} per {per!r} lets nothing through; write it as rate(10, '1m', 'key')"
        )
    if not declared.is_text(key):
        raise DefinitionError(f"{key!r} is no key of a rate: it is a name that steps and effects share")
    return Rate(key, float(count), seconds(per))
