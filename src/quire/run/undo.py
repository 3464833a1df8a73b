"""The engine's step ``@undo``: takes back what a record did, newest intent first, one commit per item (protocol 18).

It is claimable like any step, so a kill in the middle forgets nothing. It begins when all descendants have ended: what
they did is undone first. Each undo is an effect itself: intent, act, receipt. One that failed, or that nobody knows of
whether it happened, is asked of a person.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterable
from typing import Any

from quire.clock import seconds
from quire.errors import LeaseLost, NotNow
from quire.model.change import Query
from quire.model.receipt import Kind, Receipt, Stage, act_key, key_of
from quire.model.record import Record
from quire.model.row import replace
from quire.model.wait import On, Wait
from quire.rules import moves
from quire.rules.moves import doubted, valueless
from quire.rules.outcome import Stopped, Waits, Yielded
from quire.run import effects, settling
from quire.run.calls import returns
from quire.run.failure import failure_of
from quire.run.host import OnVerdict
from quire.run.passes import Pass
from quire.run.waits import held
from quire.workflows.effect import Act, Effect, Kept, find_effect
from quire.workflows.retry import Retry

RETRY = Retry(1)
#: How long to leave open children before looking at them again: at first, and at the most.
FIRST_PAUSE = 1.0
MOST_PAUSE = 300.0


async def perform(pass_: Pass, on_verdict: OnVerdict) -> None:
    """Undo everything that is left to undo, then end the record. ``on_verdict`` is called with the verdict."""
    try:
        waits = await _undone(pass_)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if not isinstance(pass_.stop, Stopped | Yielded) or (task is not None and task.cancelling()):
            raise
        on_verdict(await settling.move(pass_, pass_.stop))  # it goes on where it stands when somebody lets it
        return
    if pass_.lost:
        raise LeaseLost(f"another worker holds {pass_.record.record_id!r} now")
    if waits:
        on_verdict(await settling.move(pass_, Waits(tuple(waits), pass_.record.data)))
    else:
        on_verdict(await settling.submit(pass_, moves.undone(pass_.record, pass_.host.now())))


async def _undone(pass_: Pass) -> list[Wait]:
    """Undo what is left to undo. Return what must come first, or what a person is asked because it could not be undone.

    It is empty when everything is undone, or when the record is lost.
    """
    family = await _descendants(pass_, pass_.record.record_id)
    if not all(row.ended for row in family):
        return [_until_they_end(pass_)]
    receipts = await _receipts_of(pass_, family)
    intents = [receipt for receipt in receipts if receipt.kind is Kind.ONCE and receipt.open]
    if intents:
        return _settled_first(pass_, intents) or [doubted(intent.key, intent.name) for intent in intents]
    workflows = {row.record_id: row.workflow for row in (pass_.record, *family)}
    undos = {receipt.key: receipt for receipt in receipts if receipt.kind is Kind.UNDO}
    for receipt in receipts:
        if receipt.kind is Kind.ONCE and receipt.stage is Stage.DONE and receipt.undo:
            earlier = undos.get(key_of("undo", receipt.key))
            waits = await _taken_back(pass_, receipt, earlier, workflows[receipt.record_id])
            if waits or pass_.lost:
                return waits
    return []


async def _receipts_of(pass_: Pass, family: Iterable[Record]) -> list[Receipt]:
    """The receipts of the descendants, then the record's own; those of each record from the newest to the oldest."""
    found: list[Receipt] = []
    for row in family:
        found += _newest_first(await pass_.host.ledger.receipts(record_ids=[row.record_id]))
    return found + _newest_first(pass_.known.values())


async def _taken_back(pass_: Pass, receipt: Receipt, earlier: Receipt | None, workflow: str) -> list[Wait]:
    """Take one receipt back, unless it is taken back already. ``earlier``: the receipt of an earlier try.

    Return what must come first, or what a person is asked.
    """
    key = key_of("undo", receipt.key)
    effect = find_effect(receipt.undo)
    repeats = effect is not None and effect.undo_repeat
    if earlier is not None and earlier.stage is Stage.DONE:
        await pass_.deliver(replace(receipt, stage=Stage.UNDONE))
        return []
    if earlier is not None and earlier.open:
        if waits := _settled_first(pass_, [earlier]):
            return waits
        if not repeats:
            return [doubted(key, f"undo of {receipt.name}")]
        await pass_.deliver(replace(earlier, stage=Stage.VOID))
    if receipt.unfit:
        return [valueless(receipt.key, receipt.name, "", None)]
    try:
        problem = await _undo(pass_, effect, receipt, key, earlier, workflow)
    except NotNow as error:
        return [held(pass_, key, f"undo of {receipt.name}", error)]
    if not problem:
        return []
    again = _again(pass_, receipt, key) if repeats else None
    return [again or doubted(key, f"undo of {receipt.name}", problem)]


def _again(pass_: Pass, receipt: Receipt, key: str) -> Wait | None:
    """Return when to call an undo once more that may be called again; None: often enough, and a person decides."""
    key = f"{key}settle"
    earlier = pass_.remembered.get(key)
    pause = FIRST_PAUSE if earlier is None else 4 * (earlier.about or {}).get("pause", FIRST_PAUSE)
    if pause > MOST_PAUSE:
        return None
    until = pass_.host.now() + pause
    return Wait(On.TIMER, key=key, name=f"undo of {receipt.name} again", until=until, about={"pause": pause})


async def _undo(
    pass_: Pass,
    effect: Effect[Any, Any, Any] | None,
    receipt: Receipt,
    key: str,
    earlier: Receipt | None,
    workflow: str,
) -> str:
    """Take one receipt of this workflow back; ``earlier``: the last try. Answer what went wrong, if anything did."""
    if effect is None or effect.undo is None:
        return f"no effect {receipt.undo!r} with an undo is declared here"
    if connection := effects.connection_of(receipt.actor):
        effect = effect.using(connection)
    host = pass_.host
    known_as = earlier.known_as if earlier is not None else act_key(host.ledger_id, key)
    timeout = seconds(effect.timeout)
    until = await host.lease_until(timeout)
    intent = pass_.receipt(
        Kind.UNDO,
        key,
        f"undo of {receipt.name}",
        "null",
        stage=Stage.INTENDED,
        fn=receipt.undo,
        act_by=host.now() + timeout,
        act_key=known_as,
    )
    actor = await effects.actor_of(pass_, effect, known_as)
    await pass_.facts([intent])
    if why := effects.other_actor(receipt.actor, actor):
        pass_.tell("effect.unclear", effect=f"undo of {receipt.name}", error=why)
        await pass_.facts([replace(intent, act_by=host.now())])  # nothing was done
        return why
    prepared = effects.prepared_of(effect, receipt)
    deps = host.deps_of(workflow)
    act: Act[Any] = Act(intent.known_as, deps, receipt.record_id, prepared=prepared, connection=effect.connection)
    value = returns(effect.act).decode(receipt.value, f"the receipt of {receipt.name!r}")
    act = dataclasses.replace(act, _left=lambda: until - host.clock.boottime())
    left = until - host.clock.boottime()
    if left <= 0:
        await pass_.deliver(replace(intent, stage=Stage.VOID))
        return "the worker was away too long; it did not act"
    try:
        async with asyncio.timeout(left):
            said = await host.undo(effect, act, value)
    except NotNow:
        await pass_.deliver(replace(intent, stage=Stage.VOID))
        raise
    except Exception as error:  # noqa: BLE001 - an undo may raise anything; a person decides
        tried = failure_of(error)
        pass_.tell("effect.unclear", effect=f"undo of {receipt.name}", **tried._asdict())
        await pass_.facts([replace(intent, act_by=host.now())])  # it has ended, but nobody knows how
        if effect.undo_repeat:
            await pass_.facts([replace(intent, act_by=host.now())])
        return tried.error
    if isinstance(said, Kept):
        pass_.tell("effect.kept", effect=receipt.name, error=str(said))
        await pass_.facts(())
    await pass_.deliver(host.keyring.signed(replace(intent, stage=Stage.DONE)), replace(receipt, stage=Stage.UNDONE))
    return ""


async def _descendants(pass_: Pass, record_id: str) -> list[Record]:
    """Return all descendants: each one after its own children, the youngest child first."""
    found: list[Record] = []
    children = await pass_.host.ledger.find(Query(parent_id=record_id, limit=100_000))
    for child in sorted(children, key=lambda row: (row.generation or 0, row.place or 0), reverse=True):
        if child.fanouts:
            found += await _descendants(pass_, child.record_id)
        found.append(child)
    return found


def _until_they_end(pass_: Pass) -> Wait:
    """Wait for the children to end: what a child is still doing cannot be undone yet.

    The sweep stops them. The pauses grow, because one of them may ask a person.
    """
    key = key_of("undo", pass_.record.record_id, "settle")
    earlier = pass_.remembered.get(key)
    pause = FIRST_PAUSE if earlier is None else min(MOST_PAUSE, 2 * (earlier.about or {}).get("pause", FIRST_PAUSE))
    until = pass_.host.now() + pause
    return Wait(On.TIMER, key=key, name="its children to end", until=until, about={"pause": pause})


def _settled_first(pass_: Pass, intents: Iterable[Receipt]) -> list[Wait]:
    """Wait until an act that may still be under way has settled: nobody is asked about it before (protocol 1)."""
    return [
        Wait(On.TIMER, key=f"{intent.key}settle", name=f"{intent.name} to settle", until=intent.act_by)
        for intent in intents
        if (intent.act_by or 0.0) > pass_.host.now()
    ][:1]


def _newest_first(receipts: Iterable[Receipt]) -> list[Receipt]:
    """Sort by the order of the intents. A place in the log of one record says nothing about that of another."""
    return sorted(receipts, key=lambda receipt: receipt.seq, reverse=True)
