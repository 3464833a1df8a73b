"""A workflow: steps with their successors, declared by users, checked when they are loaded.

A step starts again from its top after any interruption; whatever it did through ``run`` under a name is not done again.
"""

from __future__ import annotations

import inspect
import sys
import typing
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, overload

from typing_extensions import TypeVar

from quire.clock import Span, seconds
from quire.errors import DefinitionError, InputError, did_you_mean
from quire.model.change import Rate, Slot
from quire.model.codec import Codec, codec
from quire.model.fit import Fit
from quire.model.record import UNDO
from quire.model.row import replace
from quire.workflows import declared
from quire.workflows.approval import unknown_people
from quire.workflows.retry import Retry, check_retry
from quire.workflows.step_source import Source, source_of

if TYPE_CHECKING:
    from quire.run.run import Run, SyncRun
    from quire.workflows.google_sources import Dropped, Form, Inbound
    from quire.workflows.sources import Cron, Inbox, Table

    #: What may start records by itself.
    AnySource = Cron | Inbox | Table | Form | Inbound | Dropped

D = TypeVar("D", default=dict[str, Any])
R = TypeVar("R", default=None)
X = TypeVar("X", default=None)
N = TypeVar("N", bound=str | None)

#: What makes the dependencies of a workflow: a function without arguments, plain or ``async def``. What it yields, or
#: returns as a context manager, is cleaned up at the end of the process.
Waited: TypeAlias = Callable[[], Awaitable[X]]
Entered: TypeAlias = Callable[[], AbstractAsyncContextManager[X] | AbstractContextManager[X]]
Yielded: TypeAlias = Callable[[], AsyncIterator[X] | Iterator[X]]
Returned: TypeAlias = Callable[[], X]

#: The hard end of a run, if a step names none.
TIMEOUT: Span = "1h"


@dataclass(frozen=True)
class Step:
    """One named state of a machine and the function run in it; without one, a record rests until somebody moves it."""

    name: str
    fn: Callable[..., Any] | None
    then: tuple[str, ...]
    retry: Retry
    timeout: float
    cap: int | None = None
    rate: Rate | None = None
    was: tuple[str, ...] = ()
    #: For each successor the people and groups that may move a record there; one that is not named: everybody.
    who: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @cached_property
    def rests(self) -> bool:
        return self.fn is None

    @cached_property
    def ends(self) -> bool:
        return not self.then

    @cached_property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.fn)


class Workflow(Generic[D, R, X]):
    """A declared machine: steps are added with ``@workflow.step``.

    ``data`` and ``result`` are types. ``deps`` is the function that makes what the steps work with, once in a process.
    It may be the type alone; then somebody else must give it: ``quire.open(…, deps=…)``, or ``deps`` in ``quire.toml``.
    """

    @overload
    def __init__(
        self,
        name: str,
        *,
        data: type[D] = ...,
        result: type[R] | None = None,
        deps: Waited[X],
        version: int = 1,
        retry: Retry | None = None,
        cap: int | None = None,
        on_failure: Literal["error", "undo"] = "error",
        on: Sequence[AnySource] = (),
    ) -> None: ...

    @overload
    def __init__(
        self,
        name: str,
        *,
        data: type[D] = ...,
        result: type[R] | None = None,
        deps: Entered[X],
        version: int = 1,
        retry: Retry | None = None,
        cap: int | None = None,
        on_failure: Literal["error", "undo"] = "error",
        on: Sequence[AnySource] = (),
    ) -> None: ...

    @overload
    def __init__(
        self,
        name: str,
        *,
        data: type[D] = ...,
        result: type[R] | None = None,
        deps: Yielded[X],
        version: int = 1,
        retry: Retry | None = None,
        cap: int | None = None,
        on_failure: Literal["error", "undo"] = "error",
        on: Sequence[AnySource] = (),
    ) -> None: ...

    @overload
    def __init__(
        self,
        name: str,
        *,
        data: type[D] = ...,
        result: type[R] | None = None,
        deps: Returned[X] | type[X] | None = None,
        version: int = 1,
        retry: Retry | None = None,
        cap: int | None = None,
        on_failure: Literal["error", "undo"] = "error",
        on: Sequence[AnySource] = (),
    ) -> None: ...

    def __init__(
        self,
        name: str,
        *,
        data: type[D] = dict,  # type: ignore[assignment]  # the TypeVar's default
        result: type[R] | None = None,
        deps: Any = None,
        version: int = 1,
        retry: Retry | None = None,
        cap: int | None = None,
        on_failure: Literal["error", "undo"] = "error",
        on: Sequence[AnySource] = (),
    ) -> None:
        # Ids of records begin with it.
        fits = declared.is_text(name) and name.isprintable() and name == name.strip() and len(name) <= 400
        if not fits or any(ch in name for ch in "/~|") or name.startswith("@"):
            raise DefinitionError(f"{name!r} is not a name for a workflow: letters, digits, '_', '-', '.' are")
        whose = f"workflow {name!r}"
        declared.whole(version, f"the version of {whose}")
        declared.cap(cap, whose)
        declared.word(on_failure, ("error", "undo"), f"on_failure of {whose}")
        if retry is not None:
            check_retry(retry, whose)
        self.name = name
        self.version = version
        self.retry = retry or Retry()
        self.cap = cap
        self.on_failure = on_failure
        self.steps: dict[str, Step] = {}
        self.sources: list[tuple[AnySource, dict[str, Any]]] = []
        if not isinstance(on, list | tuple):
            raise DefinitionError(f"on of {whose} is {on!r}; write it as a list: on=[Cron('0 2 * * *')]")
        for source in on:
            self.on(source)
        self.migrations: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}
        declared.deps(deps, whose)
        self.deps_type = deps if inspect.isclass(deps) else None
        self.make_deps: Callable[[], Any] | None = None if self.deps_type is not None else deps
        #: What it is beside a machine, for surfaces that publish it: JSON, kept with its definition.
        self.about: dict[str, Any] = {}
        self._data: Any = data
        self._result: Any = result
        self._checked = False
        self._slots: dict[str, Slot] = {}
        self._sources: dict[str, Source] = {}

    def __repr__(self) -> str:
        return f"<Workflow {self.name!r}: {', '.join(self.steps)}>"

    # -- declaring ---------------------------------------------------------------------------------------------

    @overload
    def step(self, fn: Callable[[Run[D, X]], Awaitable[R]], /) -> Callable[[Run[D, X]], Awaitable[R]]: ...

    @overload
    def step(self, fn: Callable[[SyncRun[D, X]], R], /) -> Callable[[SyncRun[D, X]], R]: ...

    @overload
    def step(
        self,
        *,
        then: str | Sequence[str],
        retry: Retry | None = None,
        timeout: Span = ...,
        cap: int | None = None,
        rate: Rate | None = None,
        was: str | Sequence[str] = (),
    ) -> _Declared[D, X]: ...

    @overload
    def step(
        self,
        *,
        retry: Retry | None = None,
        timeout: Span = ...,
        cap: int | None = None,
        rate: Rate | None = None,
        was: str | Sequence[str] = (),
    ) -> Callable[[Callable[[Run[D, X]], Awaitable[R]]], Callable[[Run[D, X]], Awaitable[R]]]: ...

    def step(
        self,
        fn: Any = None,
        *,
        then: str | Sequence[str] = (),
        retry: Retry | None = None,
        timeout: Span = TIMEOUT,
        cap: int | None = None,
        rate: Rate | None = None,
        was: str | Sequence[str] = (),
    ) -> Any:
        """Declare a step: ``@wf.step(then="next")``, or bare ``@wf.step`` for an end, which returns the result."""

        def declare(function: Callable[..., Any]) -> Callable[..., Any]:
            declared.function(function, "step", "run")
            whose = f"step {function.__name__!r}"
            declared.cap(cap, whose)
            declared.rate(rate, whose)
            if retry is not None:
                check_retry(retry, whose)
            self._add(
                Step(
                    name=function.__name__,
                    fn=function,
                    then=declared.names(then, f"then of {whose}"),
                    retry=retry or self.retry,
                    timeout=declared.span(timeout, f"the timeout of {whose}", least=1e-9),
                    cap=cap,
                    rate=rate,
                    was=declared.names(was, f"was of {whose}"),
                )
            )
            return function

        return declare if fn is None else declare(fn)

    def state(
        self, name: str, *, then: str | Sequence[str] = (), who: Mapping[str, str | Sequence[str]] | None = None
    ) -> None:
        """Declare a state without a function: the record rests there until somebody moves it along ``then``.

        ``who`` says for single successors which people and groups may move a record there.
        """
        successors = declared.names(then, f"then of state {name!r}")
        given = who or {}
        if not isinstance(given, Mapping):
            raise DefinitionError(f"who of state {name!r} is {who!r}; it must be a dict like {{'PAID': ['finance']}}")
        for target in given:
            if target not in successors:
                raise DefinitionError(f"who of state {name!r} names {target!r}, which is not in its then={then}")
        people = {target: declared.names(names, f"who of state {name!r}") for target, names in given.items()}
        self._add(Step(name=name, fn=None, then=successors, retry=self.retry, timeout=seconds(TIMEOUT), who=people))

    def _add(self, step: Step) -> None:
        if not declared.is_text(step.name) or step.name.startswith("@"):
            raise DefinitionError(f"{step.name!r} is not a name for a step: letters, digits, '_' are")
        if step.name in self.steps:
            raise DefinitionError(f"workflow {self.name!r} declares the step {step.name!r} twice")
        self.steps[step.name] = step
        self._checked = False
        self._slots.clear()
        self._sources.clear()

    def on(self, source: AnySource, **kwargs: Any) -> None:
        """Start records by a schedule (``data=…``: with this data), from the rows of an inbox or a table, or from what
        comes in at Google: answers to a form, mails, files."""
        from quire.workflows.google_sources import Dropped, Form, Inbound
        from quire.workflows.sources import Cron, Inbox, Table

        if not isinstance(source, Cron | Inbox | Table | Form | Inbound | Dropped):
            raise DefinitionError(
                f"workflow {self.name!r} cannot start on {source!r}; it starts on Cron('0 2 * * *'), Inbox('Leads') "
                "or Table('Orders', status='Task_Status')"
            )
        known = ["data"] if isinstance(source, Cron) else []
        declared.options(kwargs, known, f"on({type(source).__name__}(…)) of workflow {self.name!r}")
        self.sources.append((source, kwargs))

    def migrate(self, version: int) -> Callable[[_Migration], _Migration]:
        """Declare how data of records that started under ``version`` becomes data of the version after it."""

        declared.whole(version, f"the version that @migrate(…) of workflow {self.name!r} begins with")

        def declare(fn: _Migration) -> _Migration:
            declared.function(fn, "migration", "data")
            if inspect.iscoroutinefunction(fn):
                raise DefinitionError(f"the migration {fn.__name__!r} is 'async def'; it must be a plain function")
            if version in self.migrations:
                raise DefinitionError(f"workflow {self.name!r} declares the migration from version {version} twice")
            self.migrations[version] = fn
            self._checked = False
            return fn

        return declare

    # -- asking ------------------------------------------------------------------------------------------------

    @property
    def first(self) -> Step:
        self.check()
        return next(iter(self.steps.values()))

    @cached_property
    def data(self) -> Codec:
        """How its data is written and read."""
        return codec(dict[str, Any] if self._data in (dict, None) else self._data)

    @cached_property
    def result(self) -> Codec:
        """How its result is written and read."""
        return codec(Any if self._result is None else self._result)

    @cached_property
    def fit(self) -> Fit:
        """The check of data that is given to it from outside."""
        schema = None
        if not self.data.plain:
            with suppress(Exception):  # a type without a schema is refused by ``definition``
                schema = self.data.schema
        return Fit(schema, f"workflow {self.name!r}", self.data)

    def taken(self, item: Any, what: str) -> str:
        """Return the text of a new record's data, which is of the workflow's type, or a dict of its fields."""
        if item is None:
            item = {}
        if isinstance(item, dict) and not self.data.plain:
            return self.fit.taken(item, what)
        if self.data.plain and not isinstance(item, dict):
            raise InputError(f"{what} must be a dict of {self.name!r}, not {type(item).__name__}")
        return self.data.taken(item, what)[0]

    def scheduled(self, options: Mapping[str, Any]) -> str:
        """The text of the data of records that a schedule starts."""
        return self.taken(options.get("data"), f"the data of the schedule of {self.name!r}")

    def lacks_deps(self) -> str:
        """Say which dependencies this workflow needs and nothing makes; nothing, if it needs none or makes its own."""
        if self.make_deps is not None or all(step.rests for step in self.steps.values()):
            return ""
        needed: dict[str, Any] = {f"workflow {self.name!r}": self.deps_type}
        needed |= {
            f"step {step.name!r} of workflow {self.name!r}": _run_types(step.fn)[1]
            for step in self.steps.values()
            if step.fn is not None
        }
        for who, type_ in needed.items():
            if is_need(type_):
                return (
                    f"{who} works with a {type_.__name__}, and nothing makes one: write the function that makes it "
                    f"into the workflow, as in Workflow({self.name!r}, deps=make_deps); or give it to open(…, deps=…), "
                    'or name the function in quire.toml: deps = "flows:make_deps"'
                )
        return ""

    def find(self, name: str) -> Step | None:
        """Return the step of this name, or the one that had it before (``was``)."""
        found = self.steps.get(name)
        if found is not None:
            return found
        return next((step for step in self.steps.values() if name in step.was), None)

    def slot(self, step: Step) -> Slot:
        """What a run of this step takes."""
        slot = self._slots.get(step.name)
        if slot is None:
            slot = Slot(self.name, step.name, step.timeout, step.cap, self.cap, step.rate)
            slot = self._slots[step.name] = replace(slot, also=self._earlier(step), version=self.version)
        return slot

    def _earlier(self, step: Step) -> tuple[str, ...]:
        """The names that the step had before, unless another step has them now."""
        return tuple(name for name in dict.fromkeys(step.was) if name not in self.steps)

    def slots(self) -> list[Slot]:
        """What a worker that knows this workflow may claim: every step with a function, by all its names; and undo."""
        self.check()
        found = []
        for step in self.steps.values():
            if not step.rests:
                names = (step.name, *self._earlier(step))
                found += [
                    replace(self.slot(step), step=name, also=tuple(other for other in names if other != name))
                    for name in names
                ]
        return [*found, Slot(self.name, UNDO, seconds(TIMEOUT), workflow_cap=self.cap)]

    def step_sources(self) -> dict[str, Source]:
        """What the source code of each step names: signals, people, children."""
        for step in self.steps.values():
            if step.fn is not None and step.name not in self._sources:
                self._sources[step.name] = source_of(step.fn)
        return self._sources

    def signals(self) -> tuple[dict[str, Any], bool]:
        """The signals that its steps wait for, each with its type if that is known; and whether these are all."""
        sources = self.step_sources().values()
        found: dict[str, Any] = {}
        for name, type_ in (pair for source in sources for pair in source.signals.items()):
            found[name] = type_ if found.get(name, type_) is type_ else Any
        return found, all(source.closed for source in sources)

    def _signal_schemas(self) -> dict[str, Any]:
        """The signals as the ledger keeps them, so that a sender who does not know the code is refused as well."""
        found, closed = self.signals()
        return {"names": {name: _schema_of(type_) for name, type_ in found.items()}, "closed": closed}

    def unknown_people(self, groups: Mapping[str, Sequence[str]]) -> list[str]:
        """Questions of its steps that are put to a group that does not exist."""
        return [
            f"step {name!r} asks {who!r}: nobody can answer: there is no group {who!r}{did_you_mean(who, groups)}"
            for name, source in self.step_sources().items()
            for who in unknown_people(source.people, groups)
        ]

    # -- checking ----------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Raise ``DefinitionError`` unless every step can be reached, has known successors and a way to an end."""
        if self._checked:
            return
        problems = self.problems()
        if problems:
            raise DefinitionError(f"workflow {self.name!r} cannot run: " + "; ".join(problems))
        self._checked = True

    def problems(self) -> list[str]:
        if not self.steps:
            return ["it has no steps; add one with @workflow.step"]
        found = []
        for step in self.steps.values():
            found += [
                f"step {step.name!r} goes to {name!r}, which is not a step{did_you_mean(name, self.steps)}"
                for name in step.then
                if name not in self.steps
            ]
            found += self._literal_problems(step)
        found += self._older_problems()
        if found:
            return found
        reached = _reachable([next(iter(self.steps))], {n: s.then for n, s in self.steps.items()})
        for name in self.steps:
            if name not in reached:
                found.append(f"step {name!r} cannot be reached from {next(iter(self.steps))!r}")
        ends = [step.name for step in self.steps.values() if step.ends]
        backwards: dict[str, list[str]] = {name: [] for name in self.steps}
        for step in self.steps.values():
            for name in step.then:
                backwards[name].append(step.name)
        leads_out = _reachable(ends, backwards)
        for name in reached:
            if name not in leads_out:
                found.append(f"step {name!r} is a trap: no way leads from it to an end")
        return found

    def _older_problems(self) -> list[str]:
        """What is declared for older records and would never reach them."""
        found = [
            f"its migration from version {version} is never used; write version={version + 1}, it is at {self.version}"
            for version in self.migrations
            if version >= self.version
        ]
        earlier: dict[str, str] = {}
        for step in self.steps.values():
            found += [
                f"the steps {earlier[name]!r} and {step.name!r} both say was={name!r}; only one can follow it"
                for name in step.was
                if earlier.setdefault(name, step.name) != step.name
            ]
        return found

    @staticmethod
    def _literal_problems(step: Step) -> list[str]:
        if step.fn is None or not step.then:
            return []
        returned = hints_of(step.fn).get("return")
        if typing.get_origin(returned) is not Literal:
            return []
        words, then = set(typing.get_args(returned)), list(step.then)
        strangers = sorted(words - set(then), key=str)
        unused = sorted(set(then) - words)
        return [
            *(f"step {step.name!r} may return {word!r}, which is not in its then={then}" for word in strangers),
            *(f"step {step.name!r} never returns {word!r}, which is in its then={then}" for word in unused),
        ]

    def _schema(self) -> dict[str, Any] | None:
        """The schema of its data. A type of which nothing can be kept is refused, and data that does not fit it."""
        word, type_ = "data", self._data
        try:
            self.data.check()
            schema = None if self.data.plain else self.data.schema
            word, type_ = "result", self._result
            self.result.check()
        except Exception as error:
            raise DefinitionError(
                f"the {word} of workflow {self.name!r} cannot be of type {type_!r}; "
                "take one that JSON knows, a pydantic model or a dataclass"
            ) from error
        for source, options in self.sources:
            if (problems := getattr(source, "problems", None)) and (wrong := problems(schema)):
                raise DefinitionError(f"workflow {self.name!r}: {'; '.join(wrong)}")
            if source.as_json()["kind"] == "cron":
                try:
                    self.scheduled(options)
                except InputError as error:
                    raise DefinitionError(f"{error}; give it with on(Cron(…), data=…)") from error
        return schema

    def definition(self) -> dict[str, Any]:
        """What the ledger keeps, so that others check data and successors without importing user code."""
        self.check()
        schema = self._schema()
        return {
            "name": self.name,
            "version": self.version,
            "cap": self.cap,
            "on_failure": self.on_failure,
            "first": self.first.name,
            "schema": schema,
            "steps": [
                {
                    "name": step.name,
                    "then": list(step.then),
                    "rests": step.rests,
                    "ends": step.ends,
                    "cap": step.cap,
                    "timeout": step.timeout,
                    "was": list(step.was),
                    **({"who": {target: list(names) for target, names in step.who.items()}} if step.who else {}),
                }
                for step in self.steps.values()
            ],
            "sources": [source.as_json() for source, _ in self.sources],
            "signals": self._signal_schemas(),
            **({"about": self.about} if self.about else {}),
        }


_Migration = Callable[[dict[str, Any]], dict[str, Any]]


class _Declared(typing.Protocol[D, X]):
    """What ``@wf.step(then=...)`` does to a step: nothing but declare it."""

    @overload
    def __call__(self, fn: Callable[[Run[D, X]], Awaitable[N]], /) -> Callable[[Run[D, X]], Awaitable[N]]: ...

    @overload
    def __call__(self, fn: Callable[[SyncRun[D, X]], N], /) -> Callable[[SyncRun[D, X]], N]: ...


def _schema_of(type_: Any) -> dict[str, Any] | None:
    """Return the schema of a signal's type. None: every value is taken."""
    made = codec(type_)
    if not made.plain:
        with suppress(Exception):  # a type that cannot be a signal's: the wait says so
            return made.schema
    return None


def _reachable(starts: Iterable[str], ways: Mapping[str, Iterable[str]]) -> set[str]:
    seen: set[str] = set()
    todo = list(starts)
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo += ways.get(name, ())
    return seen


#: The options of ``@workflow``, by what they are options of.
_OF_WORKFLOW = ("version", "retry", "cap", "on_failure", "on")
_OF_STEP = ("timeout", "rate")


class _Imperative(typing.Protocol):
    """What ``@workflow(...)`` makes of a function."""

    @overload
    def __call__(self, fn: Callable[[Run[D, X]], Awaitable[R]], /) -> Workflow[D, R, X]: ...

    @overload
    def __call__(self, fn: Callable[[SyncRun[D, X]], R], /) -> Workflow[D, R, X]: ...


@overload
def workflow(fn: Callable[[Run[D, X]], Awaitable[R]], /) -> Workflow[D, R, X]: ...


@overload
def workflow(fn: Callable[[SyncRun[D, X]], R], /) -> Workflow[D, R, X]: ...


@overload
def workflow(
    *,
    name: str = "",
    deps: Callable[[], Any] | None = None,
    version: int = 1,
    retry: Retry | None = None,
    cap: int | None = None,
    timeout: Span = ...,
    rate: Rate | None = None,
    on_failure: Literal["error", "undo"] = "error",
    on: Sequence[AnySource] = (),
) -> _Imperative: ...


def workflow(fn: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Return a plain function as a workflow of one step: ``@workflow`` or ``@workflow(retry=...)``."""
    names = sys._getframe(1).f_locals
    declared.options(options, ("name", "deps", *_OF_WORKFLOW, *_OF_STEP), "@workflow")

    def declare(function: Callable[..., Any]) -> Workflow[Any, Any, Any]:
        declared.function(function, "workflow", "run")
        hints = hints_of(function, names)
        data, deps = _run_types(function, hints)
        made: Workflow[Any, Any, Any] = Workflow(
            options.get("name") or function.__name__,
            data=data,
            result=_result_type(hints),
            deps=options.get("deps") or deps,
            **{word: options[word] for word in _OF_WORKFLOW if word in options},
        )
        made.step(**{word: options[word] for word in _OF_STEP if word in options})(function)
        made.__doc__ = function.__doc__
        return made

    return declare if fn is None else declare(fn)


def _result_type(hints: Mapping[str, Any]) -> Any:
    found = hints.get("return", Any)
    return None if found is Any else found


def _run_types(function: Callable[..., Any], hints: Mapping[str, Any] | None = None) -> tuple[Any, Any]:
    """Data and deps from the annotation of the first parameter: ``run: Run[Data, Deps]``."""
    first = next(iter(inspect.signature(function).parameters), "")
    arguments = typing.get_args((hints_of(function) if hints is None else hints).get(first))
    data = arguments[0] if arguments else dict
    deps = arguments[1] if len(arguments) > 1 else None
    return (dict if isinstance(data, typing.TypeVar) else data), deps


def is_need(type_: Any) -> bool:
    """Return whether a type of dependencies says that there must be some: not None, Any or a type variable."""
    return inspect.isclass(type_) and type_ not in (None.__class__, Any)


def hints_of(fn: Callable[..., Any], names: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the annotations of a function as types; those that cannot be had here are left out."""
    inner = inspect.unwrap(fn)
    annotations = getattr(inner, "__annotations__", None)
    if annotations is None:  # an object with __call__
        inner = type(inner).__call__
        annotations = getattr(inner, "__annotations__", {})
    scope = getattr(inner, "__globals__", {})
    found = {}
    for word, annotation in annotations.items():
        if not isinstance(annotation, str):
            found[word] = annotation
            continue
        try:
            found[word] = eval(annotation, scope, dict(names or {}))
        except Exception:  # noqa: BLE001 - a name only type checkers know
            continue
    return found


class Registry:
    """The workflows that a process knows, by name."""

    def __init__(self) -> None:
        self.workflows: dict[str, Workflow[Any, Any, Any]] = {}

    def add(self, made: Workflow[Any, Any, Any] | object) -> None:
        if not isinstance(made, Workflow):
            raise InputError(f"{made!r} is not a workflow; give the Workflow itself, or the function under @workflow")
        made.check()
        known = self.workflows.get(made.name)
        if known is not None and known is not made:
            raise DefinitionError(f"two workflows are named {made.name!r}; give one another name")
        self.workflows[made.name] = made

    def get(self, name: str) -> Workflow[Any, Any, Any] | None:
        return self.workflows.get(name)

    def slots(self) -> list[Slot]:
        return [slot for made in self.workflows.values() for slot in made.slots()]
