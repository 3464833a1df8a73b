"""Effects: acts on the world outside, declared once at module level with their probe and their undo.

Declared so that any process finds them again by their qualified name after a kill.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from importlib import import_module
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    Protocol,
    cast,
    get_args,
    get_origin,
    overload,
)

from typing_extensions import TypeVar

from quire.clock import Span, seconds
from quire.errors import DefinitionError
from quire.model.change import Rate
from quire.workflows import declared
from quire.workflows.retry import NEVER, Fail, Retry, check_retry
from quire.workflows.workflow import hints_of, is_need

if TYPE_CHECKING:
    from quire.workflows.approval import Answer

P = ParamSpec("P")
T = TypeVar("T")
X = TypeVar("X", default=None)


#: The ``time_left`` of an act that no worker performs, in a test.
DEFAULT_SECONDS = 30.0


class NotDone(Exception):
    """It surely did not happen. A probe returns it; an act raises it."""


class Kept(str):
    """What an undo returns that took nothing back, as because a person has changed the thing since: a sentence why."""


class PrepareAgain(NotDone):
    """It surely did not happen, and what was prepared for it does not fit any more: the next try prepares anew."""


class NotPossible(NotDone, Fail):
    """It surely did not happen, and no other try would make it."""


class Dropped(Fail):
    """People were asked about a parked effect, and it is not to be done. ``answer`` says who decided, and why."""

    def __init__(self, text: str, answer: Answer) -> None:
        super().__init__(text)
        self.answer = answer


@dataclass(frozen=True, slots=True)
class Act(Generic[X]):
    """What an effect gets besides its arguments."""

    #: The idempotency key: the same for every try at this very act, different from every other's.
    key: str
    deps: X
    record_id: str
    #: How many seconds are left.
    _left: Callable[[], float] = field(default=lambda: DEFAULT_SECONDS, repr=False, compare=False)
    #: What was prepared for this very act; in ``reserve`` what ``check`` returned. None: nothing was.
    prepared: Any = None
    #: The connection that ``effect.using(...)`` names; empty: the usual one.
    connection: str = ""

    @property
    def time_left(self) -> timedelta:
        """Until this act must have ended. Give it to what may hang: ``timeout=act.time_left.total_seconds()``."""
        return timedelta(seconds=max(0.0, self._left()))


@dataclass(frozen=True, slots=True)
class Prepare:
    """What comes before an act, in two halves that are called like it: ``@effect(prepare=Prepare(check, reserve))``.

    What ``reserve`` returns, or ``check`` where there is none, is kept with the intent. The act gets it as
    ``act.prepared``.
    """

    #: It only reads: whether the input fits, and what people shall see. It may run often, also when nothing follows.
    check: Callable[..., object] | None = None
    #: It may leave behind what nobody outside receives, as a draft or an id. It runs right before the intent.
    reserve: Callable[..., object] | None = None

    @property
    def last(self) -> Callable[..., object]:
        """The half whose value the act gets."""
        found = self.reserve or self.check
        assert found is not None
        return found


@dataclass(frozen=True, slots=True)
class Asks:
    """Whom a parked effect asks before it acts. The words are those of ``run.ask``."""

    text: str = ""
    by: str | Sequence[str] | None = None
    quorum: int = 1
    remind: Span | None = None
    escalate: tuple[Span, str] | None = None
    expires: Span | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Effect(Generic[P, T, X]):
    """An act that is done at most once per key."""

    act: Callable[Concatenate[Act[X], P], Awaitable[T] | T]
    probe: Callable[Concatenate[Act[X], P], Awaitable[T | NotDone] | T | NotDone] | None = None
    undo: Callable[[Act[X], T], object] | None = None
    #: Acting again is harmless.
    repeat: bool = False
    #: The target itself refuses a second act with the same key: then "not there" is sure enough to act again.
    #: ``"settled"``: it is once the act's time and ``settle`` are over, for nothing that was sent arrives after them.
    fenced: bool | Literal["settled"] = False
    #: Its undo finds out by itself what it has done already: after a kill it is called again, and no person is asked.
    undo_repeat: bool = False
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
    prepare: Prepare | None = None
    #: Who acts: the account, the client, the endpoint. Keys and marks at the target hold for this one alone.
    actor: Callable[[Act[Any]], object] | None = None
    #: People release it before it acts.
    asks: Asks | None = None
    #: Which of several connections to its target it uses; empty: the usual one.
    connection: str = ""

    def named(self, name: str) -> Effect[P, T, X]:
        """Return the same effect under another name within the step: for loops."""
        if not declared.is_text(name):
            raise DefinitionError(f"the effect {self.name!r} cannot be named {name!r}: a name is text")
        return replace(self, name=name)

    def keyed(self, key: str) -> Effect[P, T, X]:
        """Return the same effect under a key of your own. It is global in the ledger: no other record does it again."""
        if not declared.is_text(key):
            raise DefinitionError(f"the effect {self.name!r} cannot be keyed {key!r}: a key is text")
        return replace(self, own_key=key)

    def using(self, connection: str) -> Effect[P, T, X]:
        """Return the same effect over another connection, as ``gmail.send.using("support")``. Its undo uses it, too."""
        if not declared.is_text(connection):
            raise DefinitionError(f"the effect {self.name!r} cannot use {connection!r}: a connection has a name")
        return replace(self, connection=connection)

    def parked(
        self,
        text: str = "",
        *,
        by: str | Sequence[str] | None = None,
        quorum: int = 1,
        remind: Span | None = None,
        escalate: tuple[Span, str] | None = None,
        expires: Span | None = None,
    ) -> Effect[P, T, X]:
        """Return the same effect, which acts only when people have seen its arguments and released it.

        If they drop it, or nobody answers in time, ``run.once`` raises ``Dropped``.
        """
        return replace(self, asks=Asks(text, by, quorum, remind, escalate, expires))

    @property
    def in_thread(self) -> bool:
        """Its act is a plain function: it runs in a thread, which nobody can stop."""
        return not is_async(self.act)

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
            value = self.act(*args, **kwargs)
            return await value if inspect.isawaitable(value) else value

    def __hash__(self) -> int:
        return hash(self.path)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Effect) and other.path == self.path


def is_async(fn: Callable[..., object]) -> bool:
    """Return whether calling the function gives something to await."""
    inner = fn.func if isinstance(fn, partial) else fn
    return inspect.iscoroutinefunction(inner) or inspect.iscoroutinefunction(type(inner).__call__)


def path_of(fn: Callable[..., object]) -> str:
    """Return a function's qualified name: ``module:name``."""
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

    @overload
    def __call__(self, act: Callable[Concatenate[Act[X], P], Awaitable[T]], /) -> Effect[P, T, X]: ...

    @overload
    def __call__(self, act: Callable[Concatenate[Act[X], P], T], /) -> Effect[P, T, X]: ...


class _DeclaredWith(Protocol[P, T, X]):
    """The same with a probe or an undo, which say what the act takes and returns."""

    @overload
    def __call__(self, act: Callable[Concatenate[Act[X], P], Awaitable[T]], /) -> Effect[P, T, X]: ...

    @overload
    def __call__(self, act: Callable[Concatenate[Act[X], P], T], /) -> Effect[P, T, X]: ...


#: Effects by their path, as they are declared.
_DECLARED: dict[str, Effect[Any, Any, Any]] = {}


def find_effect(path: str) -> Effect[Any, Any, Any] | None:
    """Return the effect declared under this path; its module is imported if need be."""
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
def effect(act: Callable[Concatenate[Act[X], P], T], /) -> Effect[P, T, X]: ...


@overload
def effect(
    *,
    repeat: bool = False,
    fenced: bool | Literal["settled"] = False,
    undo_repeat: bool = False,
    retry: Retry = ...,
    timeout: Span = "30s",
    settle: Span = "60s",
    rate: Rate | None = None,
    prepare: Prepare | None = None,
    actor: Callable[[Act[Any]], object] | None = None,
) -> _Declared: ...


@overload
def effect(
    *,
    probe: Callable[Concatenate[Act[X], P], Awaitable[T | NotDone]] | None = None,
    undo: Callable[[Act[X], T], object] | None = None,
    repeat: bool = False,
    fenced: bool | Literal["settled"] = False,
    undo_repeat: bool = False,
    retry: Retry = ...,
    timeout: Span = "30s",
    settle: Span = "60s",
    rate: Rate | None = None,
    prepare: Prepare | None = None,
    actor: Callable[[Act[Any]], object] | None = None,
) -> _DeclaredWith[P, T, X]: ...


@overload
def effect(
    *,
    probe: Callable[Concatenate[Act[X], P], T | NotDone],
    undo: Callable[[Act[X], T], object] | None = None,
    repeat: bool = False,
    fenced: bool | Literal["settled"] = False,
    undo_repeat: bool = False,
    retry: Retry = ...,
    timeout: Span = "30s",
    settle: Span = "60s",
    rate: Rate | None = None,
    prepare: Prepare | None = None,
    actor: Callable[[Act[Any]], object] | None = None,
) -> _DeclaredWith[P, T, X]: ...


def effect(act: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Declare an act on the world outside: ``@effect`` or ``@effect(probe=..., undo=...)``.

    An act is an ``async def`` or a plain function. A plain one runs in a thread, which nobody can stop: give
    ``act.time_left`` to what may hang in it.
    """

    declared.options(options, _OPTIONS, "@effect")

    def declare(fn: Callable[..., Any]) -> Effect[Any, Any, Any]:
        _check(fn, options)
        made = Effect(act=fn, name=fn.__name__, **options)
        _DECLARED[made.path] = made
        return made

    return declare if act is None else declare(act)


_OPTIONS = (
    "probe",
    "undo",
    "repeat",
    "fenced",
    "undo_repeat",
    "retry",
    "timeout",
    "settle",
    "rate",
    "prepare",
    "actor",
)


def _check(fn: Any, options: Mapping[str, Any]) -> None:
    """Refuse an effect that could not be done, probed or undone as it is declared."""
    if not callable(fn) or inspect.isclass(fn) or not hasattr(fn, "__qualname__"):
        raise DefinitionError(f"an effect must be a function of its Act, (act, …), not {fn!r}")
    if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        raise DefinitionError(f"the effect {fn.__qualname__!r} yields, so that calling it does nothing; let it return")
    whose = f"effect {fn.__qualname__!r}"
    parameters = inspect.signature(fn, follow_wrapped=False).parameters.values()
    places = sum(one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) for one in parameters)
    if not places and not any(one.kind is one.VAR_POSITIONAL for one in parameters):
        raise DefinitionError(f"{whose} takes no parameter; its first is its Act: def {fn.__name__}(act, …)")
    for word in ("probe", "undo"):
        if options.get(word) is not None and not callable(options[word]):
            raise DefinitionError(f"the {word} of {whose} must be a function, not {options[word]!r}")
    probe, undo = options.get("probe"), options.get("undo")
    named = [one.name for one in parameters if one.kind is one.KEYWORD_ONLY]
    if probe is not None and not declared.accepts(probe, places, named):
        raise DefinitionError(f"the probe of {whose} cannot be called like its act; it must take the same arguments")
    if undo is not None and not declared.accepts(undo, 2):
        raise DefinitionError(f"the undo of {whose} cannot be called as undo(act, value), with the value of the act")
    _check_before(options, whose, places, named)
    for word in ("repeat", "undo_repeat"):
        declared.word(options.get(word, False), (True, False), f"{word} of {whose}")
    declared.word(options.get("fenced", False), (True, False, "settled"), f"fenced of {whose}")
    check_retry(options.get("retry", NEVER), whose)
    declared.span(options.get("timeout", "30s"), f"the timeout of {whose}", least=1e-9)
    declared.span(options.get("settle", "60s"), f"the settle of {whose}")
    declared.rate(options.get("rate"), whose)


def _check_before(options: Mapping[str, Any], whose: str, places: int, named: Sequence[str]) -> None:
    """Refuse what could not prepare the act, or say who acts."""
    prepare, actor = options.get("prepare"), options.get("actor")
    if prepare is not None and (not isinstance(prepare, Prepare) or (prepare.check or prepare.reserve) is None):
        raise DefinitionError(f"the prepare of {whose} is {prepare!r}; write it as Prepare(check=…, reserve=…)")
    for half in (prepare.check, prepare.reserve) if prepare is not None else ():
        if half is not None and not declared.accepts(half, places, named):
            raise DefinitionError(f"what prepares {whose} must take the same arguments as its act; {half!r} does not")
    if actor is not None and not declared.accepts(actor, 1):
        raise DefinitionError(f"the actor of {whose} must be a function of its Act that says who acts, not {actor!r}")


def bare_effect(name: str, act: Callable[..., Awaitable[T] | T]) -> Effect[..., T, Any]:
    """An act without a declaration: nothing probes it and nothing undoes it; in doubt a person is asked."""
    return cast("Effect[..., T, Any]", Effect(act=act, name=name, bare=True))


def rate(count: float, per: Span, key: str) -> Rate:
    """At most ``count`` per ``per`` over all workers, for every step and effect that names the same key."""
    if not declared.is_number(count) or not count > 0 or declared.span(per, "the span of a rate") <= 0:
        raise DefinitionError(
            f"a rate of {count!r} per {per!r} lets nothing through; write it as rate(10, '1m', 'key')"
        )
    if not declared.is_text(key):
        raise DefinitionError(f"{key!r} is not a key of a rate: it is a name that steps and effects share")
    return Rate(key, float(count), seconds(per))
