"""What a step gets: ``Run``, and for plain ``def`` steps ``SyncRun``, the same without ``await``."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Concatenate, Generic, Literal, NoReturn, ParamSpec, cast, overload

from typing_extensions import TypeVar

from quire.clock import Span, seconds
from quire.errors import DefinitionError
from quire.model.codec import readable
from quire.model.receipt import Kind
from quire.run import calls, effects, keys, loops
from quire.run import children as fanouts
from quire.run import waits as waiting
from quire.run.host import Host
from quire.run.keys import SCOPE
from quire.run.passes import Pass
from quire.workflows import declared
from quire.workflows.approval import Answer
from quire.workflows.effect import Effect, bare_effect
from quire.workflows.fanout import Failed
from quire.workflows.workflow import Workflow

P = ParamSpec("P")
T = TypeVar("T")
U = TypeVar("U")
V = TypeVar("V")
I = TypeVar("I")  # noqa: E741 - the item of a map
D = TypeVar("D", default=dict[str, Any])
X = TypeVar("X", default=None)


def _check_text(given: object, takes: str) -> None:
    if not isinstance(given, str):
        raise DefinitionError(f"{takes}, not {given!r}")


def _check_list(given: object, what: str) -> None:
    """Text is a sequence too, of letters."""
    if isinstance(given, str):
        raise DefinitionError(f"{what} takes a list; write [{given!r}]")
    declared.names(given, what)


def _check_escalation(given: object) -> None:
    if given is not None and (not isinstance(given, tuple | list) or len(given) != 2):
        raise DefinitionError(f"run.ask(escalate={given!r}) must be a span and a person, as ('1d', 'boss@x.eu')")


def _check_workflow(given: object, call: str) -> None:
    if not isinstance(given, Workflow):
        raise DefinitionError(f"{call} takes a Workflow, or a function under @workflow, not {given!r}")


def _check_key(given: object, call: str) -> None:
    if given is not None and not callable(given):
        raise DefinitionError(f"{call}(key=…) takes a function of an item, not {given!r}")


def _closed(given: object) -> None:
    """Drop a coroutine that was made by mistake: it would complain later, where nobody knows why."""
    if inspect.iscoroutine(given):
        given.close()


class Pending(Awaitable[T]):
    """Something that the step asked for; awaiting it does it, or answers from its receipt."""

    __slots__ = ("_make", "awaited", "what")

    def __init__(self, pass_: Pass, what: str, make: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self.what = what
        self.awaited = False
        self._make = make
        pass_.asked_for(self)

    def __await__(self) -> Generator[Any, Any, T]:
        if self.awaited:
            raise DefinitionError(f"{self.what} is awaited twice; keep its value in a variable")
        self.awaited = True
        return self._make().__await__()


class Run(Generic[D, X]):
    """One pass of a step over one record."""

    def __init__(self, pass_: Pass) -> None:
        record = pass_.record
        self._pass = pass_
        self._visit = record.visit
        pass_.run = self
        entry = record.entry if record.entry is not None else record.data
        self._codec = pass_.workflow.data
        #: The record's data, as at entry of the step; what the step makes of it is kept when the step ends or waits.
        self.data: D = self._codec.decode(entry, "its data")

    def _encoded(self) -> str:
        return self._codec.encode(self.data, "its data")

    @property
    def deps(self) -> X:
        """What the workflow's factory made, or the worker was given, to work with."""
        return cast("X", self._pass.host.deps_of(self._pass.workflow.name))

    @property
    def record_id(self) -> str:
        return self._pass.record.record_id

    @property
    def attempt(self) -> int:
        """Which try this is: 1 for the first."""
        return self._pass.record.attempt + 1

    @property
    def visit(self) -> int:
        """Which entry into this step by a move this is: 1 for the first."""
        return self._visit

    @property
    def version(self) -> int:
        """The workflow version that the data is of: the one that the record started with, until it is migrated."""
        return self._pass.record.code_version

    @property
    def time_left(self) -> timedelta:
        """Until this run must have ended: its hard end, or the end of the worker's time."""
        host = self._pass.host
        ends = [end for end in (self._pass.record.run_until, host.budget_end) if end is not None]
        return timedelta(seconds=max(0.0, min(ends, default=0.0) - host.now()))

    @overload
    def once(self, effect: Effect[P, T, X], /, *args: P.args, **kwargs: P.kwargs) -> Pending[T]: ...

    @overload
    def once(self, name: str, act: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs) -> Pending[T]: ...

    @overload
    def once(self, name: str, act: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Pending[T]: ...

    def once(self, effect: Any, /, *args: Any, **kwargs: Any) -> Pending[Any]:
        """Do something irreversible, at most once. In doubt it is probed, or a person is asked; never guessed."""
        pass_ = self._pass
        if isinstance(effect, str):
            act = args[0] if args else None
            if isinstance(act, Effect):
                raise DefinitionError(f"{act.name!r} is an @effect; write run.once({act.name}.named({effect!r}), …)")
            if not callable(act):
                raise DefinitionError(f"run.once({effect!r}, …) takes a function after its name, not {act!r}")
            effect, args = bare_effect(effect, act), args[1:]
        if not isinstance(effect, Effect):
            raise DefinitionError(f"run.once takes an @effect, or a name and a function, not {effect!r}")
        keys.use_once(pass_, effect.name)
        key = effects.key(pass_, effect)
        return Pending(pass_, f"run.once({effect.name})", lambda: effects.once(pass_, effect, key, args, kwargs))

    @overload
    def call(self, fn: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs) -> Pending[T]: ...

    @overload
    def call(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Pending[T]: ...

    def call(self, fn: Any, /, *args: Any, **kwargs: Any) -> Pending[Any]:
        """Do something that may be repeated, and remember its answer. A plain function runs in a thread."""
        pass_ = self._pass
        if isinstance(fn, Effect):
            raise DefinitionError(f"{fn.name!r} is an @effect, which is done at most once; use run.once({fn.name}, …)")
        if not callable(fn):
            _closed(fn)
            raise DefinitionError(f"run.call takes a function and then its arguments; {fn!r} is not a function")
        name = calls.name_of(fn)
        key = keys.key(pass_, Kind.CALL, name)
        return Pending(pass_, f"run.call({name})", lambda: calls.call(pass_, fn, key, name, args, kwargs))

    def sleep(self, span: Span | datetime) -> Pending[None]:
        """Go on after this span, or at this moment. No process waits meanwhile."""
        pass_ = self._pass
        key = keys.key(pass_, Kind.SLEEP, "sleep")
        return Pending(pass_, "run.sleep", lambda: waiting.sleep(pass_, key, span))

    @overload
    def wait(self, signal: str, type: type[T], *, timeout: None = None) -> Pending[T]: ...

    @overload
    def wait(self, signal: str, type: type[T], *, timeout: Span) -> Pending[T | None]: ...

    @overload
    def wait(self, signal: str, *, timeout: Span | None = None) -> Pending[Any]: ...

    def wait(self, signal: str, type: Any = Any, *, timeout: Span | None = None) -> Pending[Any]:
        """Wait for a signal of this name, also one that has come already; None when the timeout passes first."""
        pass_ = self._pass
        _check_text(signal, "run.wait takes the name of a signal")
        key = keys.key(pass_, Kind.WAIT, signal)
        return Pending(pass_, f"run.wait({signal!r})", lambda: waiting.wait(pass_, key, signal, type, timeout))

    def ask(
        self,
        question: str,
        *,
        show: object = None,
        edit: Sequence[str] = (),
        choices: Sequence[str] = ("approve", "reject"),
        by: str | Sequence[str] | None = None,
        quorum: int = 1,
        remind: Span | None = None,
        escalate: tuple[Span, str] | None = None,
        expires: Span | None = None,
    ) -> Pending[Answer]:
        """Ask a person. The answer is bound to what was shown; its edits are in ``run.data`` afterwards.

        ``show``: what the answer is about, shown with the question.
        ``edit``: the fields of the data that the answer may change.
        ``choices``: what may be answered; the first one goes ahead, and the answer is true then.
        ``by``: who may answer: e-mail addresses, or groups of ``quire.toml``. Nothing: anybody who may write here.
        ``quorum``: how many different people must agree on the first choice; any other choice decides at once.
        ``remind``: how often the question is sent again, by the alerts that announced it and in the worker's output.
        ``escalate``: after the span, this person may answer as well, and is notified: ``("2d", "boss@x.eu")``.
        ``expires``: after this span the answer is ``"expired"``, which is false.
        """
        pass_ = self._pass
        _check_text(question, "run.ask takes a question")
        _check_list(edit, "run.ask(edit=…)")
        _check_list(choices, "run.ask(choices=…)")
        declared.names(by or (), "run.ask(by=…)")
        declared.whole(quorum, "run.ask(quorum=…)")
        _check_escalation(escalate)
        question = readable(question)
        key = keys.key(pass_, Kind.ASK, question)
        options = {
            "show": show,
            "edit": edit,
            "choices": choices,
            "by": by,
            "quorum": quorum,
            "remind": remind,
            "escalate": escalate,
            "expires": expires,
        }
        return Pending(pass_, f"run.ask({question!r})", lambda: waiting.ask(pass_, key, question, options))

    def child(self, workflow: Workflow[I, T, Any], data: I, *, id: str | None = None) -> Pending[T]:
        """Start one child record and wait for its result."""
        pass_ = self._pass
        _check_workflow(workflow, "run.child")
        name = id or workflow.name
        key = keys.key(pass_, Kind.MAP, name)
        return Pending(pass_, f"run.child({name})", lambda: fanouts.child(pass_, key, name, workflow, data))

    @overload
    def map(
        self,
        workflow: Workflow[I, T, Any],
        items: Iterable[I],
        *,
        limit: int | None = None,
        key: Callable[[I], str] | None = None,
        within: Span | None = None,
        name: str | None = None,
    ) -> Pending[list[T]]: ...

    @overload
    def map(
        self,
        workflow: Workflow[I, T, Any],
        items: Iterable[I],
        *,
        limit: int | None = None,
        key: Callable[[I], str] | None = None,
        within: Span | None = None,
        name: str | None = None,
        failures: Literal["keep"],
        need: float = 0.0,
    ) -> Pending[list[T | Failed]]: ...

    def map(
        self,
        workflow: Workflow[Any, Any, Any],
        items: Iterable[Any],
        *,
        limit: int | None = None,
        key: Callable[[Any], str] | None = None,
        within: Span | None = None,
        name: str | None = None,
        failures: Literal["fail", "keep"] = "fail",
        need: float = 0.0,
    ) -> Pending[list[Any]]:
        """One child record per item; their results in the order of the items.

        Maps of one workflow that are called by code that runs side by side need a ``name`` each.
        """
        pass_ = self._pass
        _check_workflow(workflow, "run.map")
        declared.word(failures, ("fail", "keep"), "run.map(failures=…)")
        if limit is not None:
            declared.whole(limit, "run.map(limit=…)")
        if not declared.is_number(need):
            raise DefinitionError(f"run.map(need={need!r}) is not a share; it lies between 0 and 1")
        if not isinstance(items, Iterable):
            raise DefinitionError(f"run.map takes a list of items, not {items!r}")
        _check_key(key, "run.map")
        name = name or workflow.name
        receipt_key = keys.key(pass_, Kind.MAP, name)
        plan = fanouts.Plan(name, limit, key, within, failures == "keep", need)
        todo = list(items)
        return Pending(pass_, f"run.map({name})", lambda: fanouts.map_all(pass_, receipt_key, workflow, todo, plan))

    @overload
    def all(self, a: Pending[T], b: Pending[U], /) -> Pending[tuple[T, U]]: ...

    @overload
    def all(self, a: Pending[T], b: Pending[U], c: Pending[V], /) -> Pending[tuple[T, U, V]]: ...

    @overload
    def all(self, *pending: Pending[T]) -> Pending[tuple[T, ...]]: ...

    def all(self, *pending: Pending[Any]) -> Pending[tuple[Any, ...]]:
        """Several things side by side; all their answers."""
        for one in pending:
            if not inspect.isawaitable(one):
                hint = "write run.all(*things)" if isinstance(one, Iterable) else "write run.all(run.call(…), …)"
                raise DefinitionError(f"run.all takes things to await, one by one, no {type(one).__name__}; {hint}")

        async def together() -> tuple[Any, ...]:
            return tuple(await asyncio.gather(*pending))

        return Pending(self._pass, "run.all", together)

    def each(
        self, items: Sequence[T], *, key: Callable[[T], str] | None = None, every: int | Span = "1s"
    ) -> loops.Each[T]:
        """Go through many items; place and data are saved ``every`` so many items, or every so often."""
        pass_ = self._pass
        if isinstance(items, Mapping) or not (hasattr(items, "__len__") and hasattr(items, "__getitem__")):
            raise DefinitionError(f"run.each keeps its place in a list, not in a {type(items).__name__}; write list(…)")
        _check_key(key, "run.each")
        if not isinstance(every, int):
            seconds(every)
        return loops.Each(pass_, self, keys.key(pass_, Kind.EACH, "each"), items, key, every)

    def note(self, text: str) -> None:
        """Say something about the record, for people: how far a long step is, for instance.

        The note is in the log within a moment, also while the step goes on, and in the row with the next commit. A
        function that ``run.call`` runs in a thread may call this, too.
        """
        _check_text(text, "run.note takes text")
        text = readable(text)
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            self._pass.note_from_thread(text)
        else:
            self._pass.noted(text)

    def signal_url(self, signal: str) -> str:
        """An address at which the world outside sends this signal. Signed: good for this record and signal only."""
        _check_text(signal, "run.signal_url takes the name of a signal")
        return waiting.signal_url(self._pass, signal)


def behind(run: Run[Any, Any]) -> Host:
    """The process around a run: for what Quire itself builds on runs, never for steps."""
    return run._pass.host


def intended_before(run: Run[Any, Any], effect: str) -> bool:
    """Return whether an earlier pass intended this effect. Ask before ``run.once``, which counts uses of a name."""
    return keys.has_next(run._pass, Kind.ONCE, effect)


def _blocking(method: Callable[Concatenate[Run[Any, Any], P], Awaitable[T]]) -> Callable[Concatenate[Any, P], T]:
    """Return the same method, waited for in the step's thread. The one place where the plain face is made."""

    def wait(self: SyncRun[Any, Any], /, *args: P.args, **kwargs: P.kwargs) -> T:
        async def ask() -> T:
            return await method(self._run, *args, **kwargs)

        return asyncio.run_coroutine_threadsafe(ask(), self._loop).result()

    wait.__doc__ = method.__doc__
    return wait


class SyncRun(Generic[D, X]):
    """``Run`` for plain ``def`` steps, which run in a thread: the same methods, without ``await`` and ``all``."""

    def __init__(self, run: Run[D, X], loop: asyncio.AbstractEventLoop) -> None:
        self._run = run
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        return getattr(self._run, name)

    @property
    def data(self) -> D:
        return self._run.data

    @data.setter
    def data(self, data: D) -> None:
        self._run.data = data

    @property
    def deps(self) -> X:
        return self._run.deps

    once = _blocking(cast("Callable[..., Awaitable[Any]]", Run.once))
    call = _blocking(cast("Callable[..., Awaitable[Any]]", Run.call))
    sleep = _blocking(Run.sleep)
    wait = _blocking(cast("Callable[..., Awaitable[Any]]", Run.wait))
    ask = _blocking(Run.ask)
    child = _blocking(cast("Callable[..., Awaitable[Any]]", Run.child))
    map = _blocking(cast("Callable[..., Awaitable[Any]]", Run.map))

    def all(self, *_: Any) -> NoReturn:
        """Things side by side are for ``async def`` steps: here each has been waited for already."""
        raise DefinitionError("run.all is for async steps: write the step as 'async def', and await run.all(…)")

    def each(
        self, items: Sequence[T], *, key: Callable[[T], str] | None = None, every: int | Span = "1s"
    ) -> Iterator[T]:
        """Go through many items; see ``Run.each``."""
        loop = self._run.each(items, key=key, every=every)

        async def following() -> tuple[bool, Any]:
            try:
                return True, await anext(loop)
            except StopAsyncIteration:
                return False, None

        outer = SCOPE.get()
        try:
            while True:
                more, item = asyncio.run_coroutine_threadsafe(following(), self._loop).result()
                if not more:
                    return
                SCOPE.set(loop.scope)  # of this thread: ``loop`` has set it in the task that asked for the item
                yield item
        finally:
            SCOPE.set(outer)

    def note(self, text: str) -> None:
        """Say something about the record; see ``Run.note``."""
        _check_text(text, "run.note takes text")  # here: what is raised in the loop reaches no step
        self._loop.call_soon_threadsafe(self._run.note, text)
