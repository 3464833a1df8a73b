"""``run.map`` and ``run.child``: children born with the parent's wait, their results in the order of the items."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from quire.clock import Span, seconds
from quire.errors import ChildFailed, DefinitionError, InputError, ValueRefused
from quire.model.change import Query
from quire.model.codec import dump, parse
from quire.model.receipt import Kind, Stage, fingerprint
from quire.model.record import Record, Status, new_record
from quire.model.side import Fanin
from quire.model.wait import On, Wait, dump_waits
from quire.run.passes import Pass
from quire.workflows import fanout
from quire.workflows.fanout import Failed
from quire.workflows.workflow import Workflow


class Plan(NamedTuple):
    """How a map goes about its items."""

    name: str
    limit: int | None
    key: Callable[[Any], str] | None
    within: Span | None
    keep: bool
    need: float
    #: It is ``run.child``: one item, which is the child's data.
    single: bool = False


async def child(pass_: Pass, key: str, name: str, workflow: Workflow[Any, Any, Any], data: Any) -> Any:
    plan = Plan(name, None, None, None, keep=False, need=0.0, single=True)
    results = await map_all(pass_, key, workflow, [data], plan)
    return results[0]


async def map_all(
    pass_: Pass, key: str, workflow: Workflow[Any, Any, Any], items: Sequence[Any], plan: Plan
) -> list[Any]:
    """Return the results of the children, in the order of the items. Ask for the children if they are not there yet.

    While not enough children have ended, the pass ends here: it does not return.
    """
    pass_.check()
    _check(plan)
    known = pass_.known.get(key)
    texts = [_text(workflow, item, _whose(plan, place)) for place, item in enumerate(items)]
    print_ = fingerprint(dump(texts))
    _same_items(pass_, key, plan, print_)
    if known is not None and known.stage is Stage.DONE:
        return _results(workflow, parse(known.value), plan)
    if not items:
        pass_.answer(pass_.receipt(Kind.MAP, key, plan.name, "[]", args_hash=print_))
        return []
    earlier = parse(known.value) if known is not None else None
    with pass_.flight():  # looks at the ledger: the pass is not suspended over them
        fanin = await _opened(pass_, key, earlier)
        waits = fanin is not None and _must_wait(pass_, key, fanin)
        rows = await _gathered(pass_, fanin, earlier) if fanin is not None and not waits else None
    if fanin is not None and waits:
        remembered = pass_.remembered.get(key)
        await pass_.block(remembered or _wait(pass_, key, plan, fanin.generation, print_))
    if rows is not None and fanin is not None and fanin.abandoned and any("error" in row for row in rows):
        # The parent had ended without them. What has a result keeps it, the others are done again; which they
        # are is written down with the new ones: some of the old may come to their end after this look.
        pass_.answer(pass_.receipt(Kind.MAP, key, plan.name, dump(rows), args_hash=print_, stage=Stage.VOID))
        earlier, rows = rows, None
    if rows is None:
        await _open(pass_, key, workflow, items, texts, plan, earlier)
        raise AssertionError("unreachable: a block does not return")
    pass_.answer(pass_.receipt(Kind.MAP, key, plan.name, dump(rows), args_hash=print_))
    return _results(workflow, rows, plan)


def _check(plan: Plan) -> None:
    """Refuse a plan by which nothing could start, or nothing could be enough."""
    if plan.limit is not None and plan.limit < 1:
        raise DefinitionError(f"run.map(limit={plan.limit}) would start nothing; the least is 1")
    if not 0.0 <= plan.need <= 1.0:
        raise DefinitionError(f"run.map(need={plan.need}) is not a share; it lies between 0 and 1")


def _must_wait(pass_: Pass, key: str, fanin: Fanin) -> bool:
    """Return whether too few of the children have ended, and their time is not over."""
    wait = pass_.remembered.get(key)
    late = wait is not None and wait.until is not None and pass_.host.now() >= wait.until
    return not fanin.abandoned and not fanout.met(fanin) and not late


def _whose(plan: Plan, place: int) -> str:
    return f"the data of run.child({plan.name})" if plan.single else f"item {place} of run.map({plan.name})"


def _text(workflow: Workflow[Any, Any, Any], item: Any, what: str) -> str:
    """Return the text of a child's data. A dict of the fields is checked as it is at every other start."""
    if not isinstance(item, dict) or workflow.data.plain:
        return workflow.data.encode(item, what)
    try:
        return workflow.taken(item, what)
    except ValueRefused:
        raise
    except InputError as error:
        raise ValueRefused(str(error)) from error


async def _opened(pass_: Pass, key: str, earlier: Any) -> Fanin | None:
    """The children that were asked for under this key, if they were: the ledger knows, whatever the pass waits for.

    ``earlier``: what a person had done again. The children that it names are not those that do it.
    """
    if not pass_.record.fanouts:
        return None
    found = [fanin for fanin in await pass_.host.ledger.fanins(pass_.record.record_id) if fanin.key == key]
    newest = max(found, key=lambda fanin: fanin.generation, default=None)
    if newest is not None and any(str(row.get("id", "")).startswith(newest.prefix) for row in earlier or ()):
        return None
    return newest


def _same_items(pass_: Pass, key: str, plan: Plan, print_: str) -> None:
    """Maps of one name that run side by side may come in another order in another pass: then none may answer for
    another. One alone may well be asked for other items; it keeps the children that it has."""
    prints = {r.key: r.args_hash for r in pass_.known.values() if r.kind is Kind.MAP and r.name == plan.name}
    prints |= {
        wait.key: str((wait.about or {}).get("items", ""))
        for wait in pass_.remembered.values()
        if wait.on is On.CHILDREN and wait.name == plan.name
    }
    if len(prints) > 1 and prints.get(key, "") not in ("", print_):
        raise DefinitionError(
            f"step {pass_.step.name!r} has several run.map({plan.name}) side by side, and they came in another order "
            f"than before: give each its own name, as run.map({plan.name}, items, name='…')"
        )


async def _open(
    pass_: Pass,
    key: str,
    workflow: Workflow[Any, Any, Any],
    items: Sequence[Any],
    texts: Sequence[str],
    plan: Plan,
    earlier: Any,
) -> None:
    """Ask for the children: they are born with the commit that makes their parent wait."""
    workflow.check()
    now = pass_.host.now()
    generation = pass_.opened_fanout()
    todo = range(len(items))
    if earlier is not None:  # a person retried the parent: only what failed is done again
        todo = [place for place, row in enumerate(earlier) if "error" in row]  # type: ignore[assignment]
    may_fail = fanout.bearable(len(items), plan.keep, plan.need)  # what has a result counts on
    parent = pass_.record
    fanin = fanout.opened(parent.record_id, generation, key, plan.name, len(todo), limit=plan.limit, may_fail=may_fail)
    children = tuple(
        _child(pass_, workflow, items[place], texts[place], number, fanin, now, plan)
        for number, place in enumerate(todo)
    )
    await pass_.block(_wait(pass_, key, plan, generation, fingerprint(dump(texts))), children, fanin)


def _wait(pass_: Pass, key: str, plan: Plan, generation: int, print_: str) -> Wait:
    until = None if plan.within is None else pass_.host.now() + seconds(plan.within)
    return Wait(On.CHILDREN, key=key, name=plan.name, until=until, generation=generation, about={"items": print_})


def _child(
    pass_: Pass,
    workflow: Workflow[Any, Any, Any],
    item: Any,
    text: str,
    number: int,
    fanin: Fanin,
    now: float,
    plan: Plan,
) -> Record:
    first = workflow.first
    held = number >= fanin.active
    waits = [Wait(On.TURN, name=plan.name)] if held else [Wait(On.REST, name=first.name)] if first.rests else []
    return new_record(
        record_id=f"{fanin.prefix}{number}",
        workflow=workflow.name,
        step=first.name,
        data=text,
        now=now,
        status=Status.WAITING if waits else Status.PENDING,
        due_at=None if waits else now,
        parent_id=pass_.record.record_id,
        generation=fanin.generation,
        place=number,
        waits=dump_waits(waits),
        dedupe_key=plan.key(item) if plan.key is not None else None,
        code_version=workflow.version,
        priority=pass_.record.priority,
    )


async def _gathered(pass_: Pass, fanin: Fanin, earlier: Any) -> list[dict[str, Any]]:
    """What the children came to, in the order of items: ``{"value": …}`` or ``{"error": …, "id": …}``."""
    query = Query(parent_id=pass_.record.record_id, generation=fanin.generation, order="place", limit=fanin.total)
    found = await pass_.host.ledger.find(query)
    rows: list[dict[str, Any]] = []
    for row in found:
        if row.status is Status.DONE:
            rows.append({"value": parse(row.result or "null")})
        else:
            rows.append({"error": fanout.why_no_result(row), "id": row.record_id})
    if earlier is None:
        return rows
    again = iter(rows)
    return [next(again) if "error" in row else row for row in earlier]


def _results(workflow: Workflow[Any, Any, Any], rows: list[dict[str, Any]], plan: Plan) -> list[Any]:
    failed = [row for row in rows if "error" in row]
    enough = len(rows) - len(failed) >= len(rows) * plan.need - 1e-9
    if failed and not (plan.keep and enough):
        first = failed[0]
        raise ChildFailed(
            f"{len(failed)} of {len(rows)} children of {plan.name!r} failed; "
            f"the first is {first['id']!r}: {first['error']}"
        )
    return [
        Failed(row["id"], row["error"])
        if "error" in row
        else workflow.result.decode(dump(row["value"]), f"the result of a child of {plan.name!r}")
        for row in rows
    ]
