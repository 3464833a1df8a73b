"""The workflows whose records live by their scripts. Asynchronous and plain steps do the same things."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Generator
from typing import Any

from quire import Fail, Retry, Workflow
from quire.run.run import Run, SyncRun
from quire.workflows.effect import Dropped
from quire.workflows.fanout import Failed
from quire.workflows.sources import Cron
from tests.simulation.pace import PACE
from tests.simulation.script import Do, Script, Word, as_data, from_data, items_of
from tests.simulation.world import CAP, EFFECTS, Site, Trouble

#: A step is tried so often.
ATTEMPTS = 3
#: The workflow whose records a schedule starts, one each minute.
SCHEDULED = "scheduled"

Flows = dict[str, Workflow[Any, Any, Site]]
#: What a step asks of its run or of the world, one after the other. Whoever drives it sends the answers back.
Asks = Generator[Callable[[], Any], Any, Any]


def work(run: Any, flows: Flows) -> Asks:
    """Do one part of the record's script. ``run`` is a ``Run`` or a ``SyncRun``."""
    site, data = run.deps, run.data
    script = from_data(data)
    part = data["part"]
    if part == len(script.parts):  # a person rewound what had come to its end
        return "end"
    place = 0
    for do, folded in zip(script.parts[part], data["parts"][part], strict=True):
        if do.word is Word.EACH:
            yield from _each(run, do, part, place)
            place += do.times
            continue
        where = f"{part}.{place}"
        value = yield from _done(run, flows, do, where, folded)
        yield lambda where=where, value=value: site.passes(run.record_id, run.visit, where, value)  # type: ignore[misc]
        place += 1
    run.data["part"] = part + 1  # not 'data': a loop puts the data as it saved them in their place
    if part + 1 == len(script.parts):
        return "end"
    return "desk" if part + 1 in script.rests else "work"


def _each(run: Any, do: Do, part: int, place: int) -> Asks:
    """An act for each item, in a loop that keeps its place."""
    acts = items_of(do)
    items = run.each(list(range(len(acts))), every=1)
    following = (lambda: anext(items, None)) if hasattr(items, "__anext__") else (lambda: next(items, None))
    while (item := (yield following)) is not None:
        value = yield from _act(run, acts[item])
        where = f"{part}.{place + item}"
        yield lambda where=where, value=value: run.deps.passes(run.record_id, run.visit, where, value)  # type: ignore[misc]


def _act(run: Any, do: Do) -> Asks:
    doing = EFFECTS[do.how].named(do.name)
    if do.parked:
        doing = doing.parked(do.name)
    what = f"{run.record_id}|{run.visit}|{do.name}"
    try:
        return (yield lambda: run.once(doing, what, do.seconds, do.times, do.unclear))
    except Dropped:
        return "dropped"


def _done(run: Any, flows: Flows, do: Do, where: str, folded: dict[str, Any]) -> Asks:
    """Do one thing, and answer its value."""
    site, record, visit = run.deps, run.record_id, run.visit
    match do.word:
        case Word.ACT:
            return (yield from _act(run, do))
        case Word.SLEEP:
            came = yield lambda: site.comes(record, visit, where)
            yield lambda: run.sleep(do.seconds)
            return round(site.now() - came, 6)
        case Word.WAIT if do.seconds:
            came = yield lambda: site.comes(record, visit, where)
            heard = yield lambda: run.wait(do.name, timeout=do.seconds)
            return round(site.now() - came, 6) if heard is None else heard
        case Word.WAIT:
            return (yield lambda: run.wait(do.name))
        case Word.ASK:
            return (yield lambda: run.ask(do.name, choices=["yes", "no"], quorum=max(1, do.times))).choice
        case Word.CHILDREN:
            return (yield from _children_of(run, flows[do.children[0].workflow], folded["children"], do))
        case Word.FAIL:
            if run.attempt < do.times:
                raise Trouble(f"try {run.attempt + 1} of {do.name!r} fails")
            if do.times < 0:
                raise Fail(f"{do.name!r} fails for good")
        case Word.CALL:
            return (yield lambda: run.call(_echo, site, do.name, do.seconds))
        case Word.POISON:
            yield lambda: site.poison(f"{record}|{visit}|{do.name}", do.times)
    return None


def _children_of(run: Any, flow: Workflow[Any, Any, Site], items: list[Any], do: Do) -> Asks:
    more: dict[str, Any] = {"limit": do.limit or None, "name": do.name}
    if do.keep:
        more |= {"failures": "keep", "need": do.need}
    results = yield lambda: run.map(flow, items, **more)
    return ["failed" if isinstance(result, Failed) else str(result) for result in results]


async def _echo(site: Site, name: str, seconds: float) -> str:
    if seconds:
        await site.rest(seconds)
    return name


# -- how a step is driven --------------------------------------------------------------------------------------


async def _awaited(asks: Asks) -> str:
    """Drive it in an asynchronous step."""
    call: Callable[[], Any] | None = None
    answer: Any = None
    error: Exception | None = None
    while True:
        try:
            call = asks.send(answer) if error is None else asks.throw(error)
        except StopIteration as end:
            return str(end.value)
        error = None
        try:
            answer = call()
            if inspect.isawaitable(answer):
                answer = await answer
        except Exception as raised:  # noqa: BLE001 - the step gets it
            error = raised


def _in_turn(asks: Asks, loop: asyncio.AbstractEventLoop) -> str:
    """Drive it in a plain step, which runs in a thread."""
    answer: Any = None
    error: Exception | None = None
    while True:
        try:
            call = asks.send(answer) if error is None else asks.throw(error)
        except StopIteration as end:
            return str(end.value)
        error = None
        try:
            answer = call()
            if inspect.iscoroutine(answer):
                answer = asyncio.run_coroutine_threadsafe(answer, loop).result()
        except Exception as raised:  # noqa: BLE001 - the step gets it
            error = raised


# -- the workflows ---------------------------------------------------------------------------------------------


def workflows(version: int = 1, scheduled: Script | None = None) -> list[Workflow[Any, Any, Site]]:
    """The workflows as one process has them. Its deployment may be a newer one than that of another process."""
    flows: Flows = {}
    for name in ("plain", "capped", "undoing", "threaded"):
        flows[name] = _workflow(name, version, flows)
    if scheduled is not None:
        flows[SCHEDULED] = _workflow(SCHEDULED, version, flows)
        flows[SCHEDULED].on(Cron("* * * * *", catch_up="all"), data=as_data(scheduled))
    return list(flows.values())


def _workflow(name: str, version: int, flows: Flows) -> Workflow[Any, Any, Site]:
    flow: Workflow[Any, Any, Site] = Workflow(
        name,
        data=dict,
        result=str,
        deps=Site,
        version=version,
        retry=Retry(ATTEMPTS, first=2.0 * PACE),
        cap=CAP if name == "capped" else None,
        on_failure="undo" if name == "undoing" else "error",
    )

    async def step(run: Run[dict[str, Any], Site]) -> str:
        return await _awaited(work(run, flows))

    def plain_step(run: SyncRun[dict[str, Any], Site]) -> str:
        return _in_turn(work(run, flows), run._loop)

    async def end(run: Run[dict[str, Any], Site]) -> str:
        return f"the work of {run.record_id}"

    step.__name__, plain_step.__name__, end.__name__ = "work", "work", "end"
    flow.step(then=["work", "desk", "end"])(plain_step if name == "threaded" else step)
    flow.state("desk", then=["work"])
    flow.step(end)
    return flow
