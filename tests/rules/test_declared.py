"""A declaration that cannot work is refused where it stands, with one sentence."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from quire import Act, Cron, Inbox, Retry, Workflow, effect, rate, workflow
from quire.errors import DefinitionError


class Lead(BaseModel):
    company: str


class Odd: ...


async def well(run: Any) -> None: ...


async def more(run: Any, more: Any) -> None: ...


async def nothing() -> None: ...


def some(run: Any) -> Any:
    yield run


async def many(run: Any) -> Any:
    yield run


async def act(act: Act, to: str, *, copy: bool = False) -> str:
    return to


async def probe(act: Act, to: str, *, copy: bool = False) -> str:
    return to


def flow(**options: Any) -> Any:
    return Workflow("flow", **options)


def step(fn: Any = well, **options: Any) -> Any:
    return flow().step(**options)(fn)


def done(fn: Any = act, **options: Any) -> Any:
    return effect(**options)(fn)


def checked(made: Workflow[Any, Any, Any]) -> None:
    made.definition()


def scheduled(type_: Any, **options: Any) -> None:
    made = flow(data=type_)
    made.state("rest")
    made.on(Cron("0 2 * * *"), **options)
    made.definition()


def migrating(version: int) -> None:
    made = flow(version=version)
    made.state("rest")
    made.migrate(2)(lambda data: data)
    made.definition()


def renamed_twice() -> None:
    made = flow()
    made.step(then="b", was="old")(_named("a"))
    made.step(was="old")(_named("b"))
    made.definition()


def migrated_twice() -> None:
    made = flow(version=2)
    made.migrate(1)(lambda data: data)
    made.migrate(1)(lambda data: data)


def _none() -> dict[str, Any]:
    return {}


def _named(name: str) -> Any:
    async def fn(run: Any) -> None: ...

    fn.__name__ = name
    return fn


CASES: dict[str, tuple[Callable[[], Any], str]] = {
    "a name that is not text": (lambda: Workflow(5), "5 is not a name for a workflow"),  # type: ignore[call-overload]
    "a name that begins no id": (lambda: Workflow("a\x7fb"), "'a\\x7fb' is not a name for a workflow"),
    "a name with a space at its end": (lambda: Workflow("a "), "'a ' is not a name for a workflow"),
    "a word for failures": (lambda: flow(on_failure="undoo"), "'undoo'; it must be 'error' or 'undo'"),
    "a cap of nothing": (lambda: flow(cap=0), "the cap of workflow 'flow' is 0; it must be a whole number, 1 or more"),
    "a cap that is not a number": (lambda: flow(cap="x"), "the cap of workflow 'flow' is 'x'"),
    "a cap of a function": (lambda: workflow(cap=0)(well), "the cap of workflow 'well' is 0"),
    "a cap of a step": (lambda: step(cap=0), "the cap of step 'well' is 0"),
    "a cap that is true": (lambda: step(cap=True), "the cap of step 'well' is True"),
    "a retry that is a number": (lambda: flow(retry=5), "the retry of workflow 'flow' is 5; write it as Retry(5)"),
    "a retry of nothing": (lambda: flow(retry=0), "the retry of workflow 'flow' is 0"),
    "a retry of a step": (lambda: step(retry="x"), "the retry of step 'well' is 'x'"),
    "a retry of an effect": (lambda: done(retry=5), "the retry of effect 'act' is 5"),
    "no retry of an effect": (lambda: done(retry=None), "the retry of effect 'act' is None"),
    "no attempts": (lambda: Retry(0), "Retry(attempts=…) is 0"),
    "attempts that are no number": (lambda: Retry("5"), "Retry(attempts=…) is '5'"),  # type: ignore[arg-type]
    "a factor that is none": (lambda: Retry(factor="2"), "Retry(factor='2')"),  # type: ignore[arg-type]
    "a first that is none": (lambda: Retry(first="soon"), "Retry(first=…): 'soon' is not a span of time"),
    "an error instead of a test": (lambda: Retry(on=OSError), "must be a function of the error"),  # type: ignore[arg-type]
    "a version that is text": (lambda: flow(version="2"), "the version of workflow 'flow' is '2'"),
    "a version of a function": (lambda: workflow(version="2")(well), "the version of workflow 'well' is '2'"),  # type: ignore[call-overload]
    "an option that is none": (
        lambda: workflow(on_failre="undo")(well),  # type: ignore[call-overload]
        "@workflow takes no option 'on_failre'; did you mean 'on_failure'?",
    ),
    "a source that is text": (
        lambda: flow().on("0 * * * *"),
        "workflow 'flow' cannot start on '0 * * * *'; it starts on Cron('0 2 * * *'), Inbox('Leads') or Table('Orders'",
    ),
    "sources that are text": (lambda: flow(on="0 * * * *"), "write it as a list: on=[Cron('0 2 * * *')]"),
    "a source without a list": (lambda: flow(on=Cron("0 2 * * *")), "write it as a list"),
    "a source in a list": (lambda: workflow(on=["0 * * * *"])(well), "cannot start on '0 * * * *'"),  # type: ignore[list-item]
    "an option of a source": (lambda: flow().on(Cron("0 2 * * *"), dta={}), "no option 'dta'; did you mean 'data'?"),
    "data of an inbox": (lambda: flow().on(Inbox("Leads"), data={}), "takes no option 'data'"),
    "no data for a schedule": (
        lambda: scheduled(Lead),
        "the data of the schedule of 'flow' does not fit workflow 'flow': company",
    ),
    "data that is not JSON": (lambda: scheduled(dict, data={"x": Odd()}), "Odd is not JSON"),
    "a schedule that is none": (lambda: Cron(5), "5 is not a cron schedule"),  # type: ignore[arg-type]
    "a schedule that never comes": (lambda: Cron("0 0 31 4,6 *"), "is not a cron schedule"),
    "a zone that is none": (lambda: Cron("0 2 * * *", tz=5), "5 is not a time zone"),  # type: ignore[arg-type]
    "a zone that is a path": (lambda: Cron("0 2 * * *", tz="Europe"), "'Europe' is not a time zone"),
    "a word for what was missed": (
        lambda: Cron("0 2 * * *", catch_up="al"),  # type: ignore[arg-type]
        "is 'al'; it must be 'last' or 'all' or 'none'",
    ),
    "a tab that is none": (lambda: Inbox(5), "5 is not a tab"),  # type: ignore[arg-type]
    "an inbox at a text": (lambda: Inbox("Leads", at="0 2 * * *"), "write it as at=Cron("),  # type: ignore[arg-type]
    "one column to write back": (lambda: Inbox("Leads", write_back="score"), "write_back=['score']"),
    "a parameter too many": (
        lambda: step(more),
        "the step 'more' takes (run, more); it must take one argument, (run)",
    ),
    "a parameter too few": (lambda: step(nothing), "the step 'nothing' takes nothing"),
    "a workflow without its run": (lambda: workflow(nothing), "the workflow 'nothing' takes nothing"),  # type: ignore[arg-type]
    "a step that yields": (lambda: step(some), "'some' yields, so that calling it does nothing"),
    "a step that yields later": (lambda: step(many), "'many' yields"),
    "a step that is a class": (lambda: step(Odd), "a step must be a function"),
    "a step that is a text": (lambda: flow().step("next"), "not 'next'"),
    "a workflow that is a text": (lambda: workflow("name"), "not 'name'"),  # type: ignore[call-overload]
    "a successor that is a function": (lambda: step(then=well), "give a name as text, or a list of names"),
    "a successor in a list": (lambda: step(then=[well]), "then of step 'well' is ["),
    "no successor": (lambda: step(then=None), "then of step 'well' is None"),
    "an earlier name": (lambda: step(was=5), "was of step 'well' is 5"),
    "an earlier name of two": (renamed_twice, "the steps 'a' and 'b' both say was='old'"),
    "a bad timeout": (lambda: step(timeout="soon"), "the timeout of step 'well': 'soon' is not a span of time"),
    "no timeout": (lambda: step(timeout=None), "the timeout of step 'well': None is not a span of time"),
    "a timeout of nothing": (lambda: step(timeout=timedelta(0)), "nothing could be done in it"),
    "a rate of a step": (lambda: step(rate=5), "the rate of step 'well' is 5; write it as rate(10, '1m', 'key')"),
    "a rate of nothing": (lambda: rate(0, "1m", "key"), "a rate of 0 per '1m' lets nothing through"),
    "a rate that is text": (lambda: rate("x", "1m", "key"), "a rate of 'x'"),  # type: ignore[arg-type]
    "a rate without a key": (lambda: rate(1, "1m", None), "None is not a key of a rate"),  # type: ignore[arg-type]
    "a state that is not text": (lambda: flow().state(5), "5 is not a name for a step"),
    "a state that goes nowhere": (lambda: flow().state("a", then=5), "then of state 'a' is 5"),
    "a migration without its version": (lambda: flow().migrate(well), "@migrate(…) of workflow 'flow' begins with is"),
    "a migration that waits": (lambda: flow(version=2).migrate(1)(well), "is 'async def'; it must be a plain function"),
    "a migration that takes nothing": (
        lambda: flow(version=2).migrate(1)(_none),
        "the migration '_none' takes nothing",
    ),
    "a migration that is never used": (lambda: migrating(2), "from version 2 is never used; write version=3"),
    "a migration declared twice": (migrated_twice, "declares the migration from version 1 twice"),
    "data of no type": (lambda: scheduled(5), "the data of workflow 'flow' cannot be of type 5"),
    "a result of no type": (lambda: checked(_ending(Odd)), "the result of workflow 'flow' cannot be of type"),
    "an effect that is not a function": (lambda: effect("x"), "an effect must be a function of its Act"),  # type: ignore[call-overload]
    "an effect without its act": (lambda: done(nothing), "its first is its Act: def nothing(act, …)"),
    "an option of an effect": (lambda: done(time_out=5), "@effect takes no option 'time_out'; did you mean 'timeout'?"),
    "a timeout of an effect": (lambda: done(timeout="x"), "the timeout of effect 'act': 'x' is not a span of time"),
    "no time for an effect": (lambda: done(timeout=0), "the timeout of effect 'act' is 0"),
    "no settling": (lambda: done(settle=None), "the settle of effect 'act': None is not a span of time"),
    "a rate of an effect": (lambda: done(rate="1/s"), "the rate of effect 'act' is '1/s'"),
    "a word for repeating": (lambda: done(repeat="no"), "repeat of effect 'act' is 'no'; it must be True or False"),
    "a probe that is none": (
        lambda: done(probe="find"),
        "the probe of effect 'act' must be a function, not 'find'",
    ),
    "a probe of other arguments": (
        lambda: done(probe=nothing),
        "the probe of effect 'act' cannot be called like its act",
    ),
    "an undo of other arguments": (lambda: done(undo=nothing), "cannot be called as undo(act, value)"),
    "an effect named a number": (lambda: done().named(5), "cannot be named 5"),
    "an effect keyed a number": (lambda: done().keyed(5), "cannot be keyed 5"),
}


def _ending(type_: Any) -> Workflow[Any, Any, Any]:
    made: Workflow[Any, Any, Any] = flow(result=type_)
    made.state("rest")
    return made


@pytest.mark.parametrize("case", CASES)
def test_it_is_refused_with_a_sentence(case: str) -> None:
    declare, sentence = CASES[case]

    with pytest.raises(DefinitionError) as caught:
        declare()

    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_well_is_taken() -> None:
    made = flow(data=Lead, result=list[Lead], version=3, cap=1, retry=Retry(2), on_failure="undo", on=[Inbox("Leads")])
    made.step(then="end", timeout=5, rate=rate(0.5, "1m", "key"), was=["old"])(_named("begin"))
    made.step(was=("older",))(_named("end"))
    made.on(Cron("0 0 29 2 *"), data={"company": "x"})
    made.on(Cron("0 2 * * *"), data=Lead(company="x"))
    made.migrate(1)(lambda data: data)
    done(probe=probe, undo=plain_undo, repeat=True, timeout="1s", settle=0, retry=Retry(2), rate=rate(1, 1, "key"))

    assert made.definition()["version"] == 3


async def plain_undo(act: Act, value: str) -> None: ...
