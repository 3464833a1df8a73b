"""``run.once``: intent, act, receipt; and what follows when a receipt is missing (protocol 1, 2, 17).

1. A receipt answers: its value, verified. 2. The intent is committed under the record's version: a worker that has lost
the record cannot. 3. The act, not after ``act_by``, on a clock that nobody can set back. 4. The receipt, fenced by the
intent alone. Killed between 2 and 4, the next pass finds the intent: it waits until nobody can act on it any more and
until the target has had time to show it, then probes; what cannot be known is asked of a person.

Before 2 the act is *prepared*, if its effect says how: ``check`` reads, ``reserve`` may leave behind what nobody
outside receives. What they return is part of the intent, so probe, undo and a next try speak of this very thing. A
*parked* effect asks people between the two halves: its intent rides with the question, and nobody acts on it before
people have released it.
"""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import inspect
import logging
from collections.abc import Callable
from typing import Any

from quire.clock import next_id, seconds
from quire.errors import DefinitionError, EffectChanged, NotNow, ReceiptForged, ValueRefused
from quire.model.change import Change, Rate
from quire.model.codec import PLAIN, dump, parse, schema_of
from quire.model.receipt import BEFORE, Kind, Receipt, Stage, act_key, fingerprint, key_of
from quire.model.row import replace
from quire.model.wait import On, Wait
from quire.rules import conditions
from quire.rules.moves import doubted, valueless
from quire.rules.outcome import Stopped, Yielded
from quire.run import keys, waits
from quire.run.calls import check_code, returns
from quire.run.exits import contained
from quire.run.failure import failure_of
from quire.run.host import NOTHING
from quire.run.passes import IntentTaken, Pass, RateUsedUp
from quire.workflows import approval
from quire.workflows.approval import PARKED, Answer
from quire.workflows.effect import Act, Asks, Dropped, Effect, NotDone, NotPossible, PrepareAgain, needed_deps

log = logging.getLogger("quire.worker")

#: In the key of the question whether a parked intent is released.
_RELEASE = "release"

#: In who acts: over which connection.
_CONNECTION = "connection"

#: How long to leave an effect, at the least, to whoever is doing it: another record, or an earlier pass.
LOOK_AGAIN_SECONDS = 2.0


def key(pass_: Pass, effect: Effect[Any, Any, Any]) -> str:
    if effect.own_key:
        return key_of("own", effect.own_key)
    return keys.key(pass_, Kind.ONCE, effect.name)


@dataclasses.dataclass(slots=True)
class _Call:
    """One use of an effect by a step."""

    effect: Effect[Any, Any, Any]
    key: str
    args: Any
    kwargs: Any
    #: The arguments as JSON, and their hash.
    text: str
    hash: str
    #: What ``check`` returned in this pass, as JSON; None: it has not run.
    checked: str | None = None
    #: How often this act may be done over all workers.
    rate: Rate | None = None

    @property
    def what(self) -> str:
        return f"effect {self.effect.name!r}"


async def once(pass_: Pass, effect: Effect[Any, Any, Any], key: str, args: Any, kwargs: Any) -> Any:
    pass_.check()
    given = _without_bytes({"args": list(args), "kwargs": kwargs})
    text = PLAIN.encode(given, f"the arguments of effect {effect.name!r}")
    call = _Call(effect, key, args, kwargs, text, fingerprint(text))
    _check_deps(pass_, effect)
    known = await _known(pass_, effect, key)
    try:
        if known is not None and (receipt := await _of_before(pass_, call, known)) is not None:
            return await _value(pass_, effect, receipt)
        if known is None and (receipt := await _of_the_lost_part(pass_, call)) is not None:
            return await _value(pass_, effect, receipt)
        if effect.asks is not None or (known is not None and known.stage in (Stage.PARKED, Stage.DROPPED)):
            await _released(pass_, call)
        # Shielded: when the pass is cancelled, an act that has begun ends, and its receipt is written.
        acting = asyncio.ensure_future(_tried(pass_, call))
        pass_.forget_errors(acting)
        return await asyncio.shield(acting)
    except _Unfit as error:
        return await _value(pass_, effect, pass_.known[key], str(error))
    except IntentTaken:
        if effect.own_key:
            await _of_another(pass_, effect, key)
        # A receipt that no commit of this record counted: it is read now, and answers only if it verifies.
        with pass_.flight():
            receipts = await pass_.host.ledger.receipts(keys=[key])
        if not receipts or key in pass_.known:
            raise
        pass_.known[key] = receipts[0]
        return await once(pass_, effect, key, args, kwargs)
    except RateUsedUp as error:
        name = call.rate.name if call.rate is not None else effect.name
        await pass_.block(Wait(On.RATE, key=f"{key}rate", name=name, until=error.until))
    except NotNow as error:
        await waits.not_now(pass_, key, effect.name, error)


def _without_bytes(value: Any) -> Any:
    """The arguments as the intent keeps them: bytes by their length and hash, for the ledger is no place for files."""
    if isinstance(value, bytes):
        return {"bytes": len(value), "sha256": hashlib.sha256(value).hexdigest()}
    if isinstance(value, dict):
        return {name: _without_bytes(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_without_bytes(inner) for inner in value]
    return value


async def _of_before(pass_: Pass, call: _Call, known: Receipt) -> Receipt | None:
    """The receipt that answers, of an earlier pass or found by a probe; None: it has not happened."""
    effect, record_id = call.effect, pass_.record.record_id
    check_code(known, effect.path)
    if known.args_hash != call.hash and known.stage is not Stage.VOID and known.stage not in BEFORE:
        raise EffectChanged(
            f"effect {effect.name!r} of {record_id!r} was done with other arguments "
            f"({known.args[:200]}); a receipt never answers for others. Rewind the step to do it anew "
            f"(quire retry {record_id} --from {pass_.step.name})"
        )
    if known.stage is Stage.DONE:
        if not pass_.host.keyring.verifies(known):
            raise ReceiptForged(
                f"the receipt of effect {effect.name!r} of {record_id!r} does not verify: it was "
                f"altered or forged, so it is not believed and nothing is done over it. See 'quire verify'; to do "
                f"the step anew: quire retry {record_id} --from {pass_.step.name}"
            )
        return known
    if known.record_id != record_id and await _is_under_way(pass_, known):
        await _of_another(pass_, effect, call.key)
    return await _in_doubt(pass_, effect, known, call.args, call.kwargs) if known.stage is Stage.INTENDED else None


# -- what comes before the act ---------------------------------------------------------------------------------


async def _released(pass_: Pass, call: _Call) -> None:
    """Return when people have released the effect. Until then the pass ends here."""
    with pass_.flight():
        asked = await _asked(pass_, call)
    if asked is not None:
        await pass_.block(asked)


async def _asked(pass_: Pass, call: _Call) -> Wait | None:
    """What people are asked before a parked effect acts; None: they have released it. Raises if they dropped it.

    The question is bound to what is shown: the arguments, what ``check`` found, and who acts. If any of it is another
    one in a later pass, that is parked and asked anew.
    """
    effect, key = call.effect, call.key
    asks = effect.asks or Asks()
    known = pass_.known.get(key)
    actor = await actor_of(pass_, effect, _act_key(pass_, key, known))
    shown = _shown(call, await _checked(pass_, call, _act_key(pass_, key, known)), actor)
    print_ = approval.shown_print(shown)
    if known is not None and known.stage is Stage.VOID and _was_released(pass_, key, print_):
        return None
    parked = _parked(pass_, call, actor, known)
    question = key_of(key, _RELEASE, parked.nonce)
    if (answer := pass_.known.get(question)) is not None:
        _check_released(call, parse(answer.value))
        return None
    text = asks.text or f"Do {effect.name!r}?"
    options = {field.name: getattr(asks, field.name) for field in dataclasses.fields(asks) if field.name != "text"}
    options |= {"show": shown, "edit": (), "choices": ("approve", "reject")}
    wait = waits.question(pass_, question, text, options)
    if approval.expired(wait, pass_.host.now()):
        said = approval.said(Answer(approval.EXPIRED), pass_.record)
        pass_.tell("expired", question=text)
        pass_.answer(pass_.receipt(Kind.ASK, question, text, dump(said), args_hash=print_))
        pass_.answer(replace(parked, stage=Stage.DROPPED))
        _check_released(call, said)
        return None
    return replace(wait, about={**(wait.about or {}), PARKED: {"key": key, "nonce": parked.nonce}})


def _parked(pass_: Pass, call: _Call, actor: str, known: Receipt | None) -> Receipt:
    """The intent that people are asked about: what is parked already, or was, if it is the same thing; or a new one."""
    if known is not None and known.stage in BEFORE:
        content = (pass_.record.record_id, call.hash, call.checked, actor)
        if (known.record_id, known.args_hash, known.prepared, known.actor) == content:
            return known
    parked = pass_.receipt(
        Kind.ONCE,
        call.key,
        call.effect.name,
        "",
        stage=Stage.PARKED,
        fn=call.effect.path,
        args=call.text,
        args_hash=call.hash,
        act_key=known.act_key if known is not None else "",
        prepared=call.checked or "",
        actor=actor,
        nonce=next_id(),
    )
    pass_.answer(parked)
    return parked


def _was_released(pass_: Pass, key: str, print_: str) -> bool:
    """Return whether people have released this very content for an act that surely did not happen then."""
    release = key_of(key, _RELEASE)
    answers = [row for row in pass_.known.values() if row.kind is Kind.ASK and row.key.startswith(release)]
    return any(row.args_hash == print_ and parse(row.value)["choice"] == "approve" for row in answers)


def _shown(call: _Call, checked: str, actor: str) -> dict[str, Any]:
    """Return what people see of an effect before it acts."""
    shown: dict[str, Any] = {"effect": call.effect.name, "arguments": _named(call)}
    if checked:
        shown["prepared"] = parse(checked)
    if actor:
        shown["as"] = parse(actor)
    return shown


def _named(call: _Call) -> dict[str, Any]:
    """Return the arguments by the names that the act gives them, as they are stored."""
    given = parse(call.text)
    places = list(inspect.signature(call.effect.act).parameters)[0 if call.effect.bare else 1 :]
    places += [str(n) for n in range(len(places), len(given["args"]))]
    return {**dict(zip(places, given["args"], strict=False)), **given["kwargs"]}


def _check_released(call: _Call, said: dict[str, Any]) -> None:
    """Raise ``Dropped`` unless people have released the effect."""
    answer = Answer(said["choice"], said["by"], said["note"], said["edits"], said.get("ahead", "approve"))
    if answer:
        return
    who = f" by {answer.by}" if answer.by else ""
    why = f": {answer.note}" if answer.note else ""
    raise Dropped(f"{call.what} is not to be done: {answer.choice}{who}{why}", answer)


async def _checked(pass_: Pass, call: _Call, act_key: str) -> str:
    """What ``check`` says of the input, as JSON; empty: there is nothing to check. It runs once in a pass."""
    if call.checked is None:
        prepare = call.effect.prepare
        part = prepare.check if prepare is not None else None
        call.checked = "" if part is None else await _part(pass_, call, part, _act(pass_, call.effect, act_key))
    return call.checked


async def _prepared(pass_: Pass, call: _Call, act_key: str) -> str:
    """What the act gets as ``act.prepared``, as JSON. Nothing is reserved under a halt, nor over a cancel request."""
    prepare = call.effect.prepare
    if prepare is None:
        return ""
    checked = await _checked(pass_, call, act_key)
    if prepare.reserve is None:
        return checked
    await _check_orders(pass_)
    value = returns(prepare.check).decode(checked, "what was checked") if prepare.check and checked else None
    return await _part(pass_, call, prepare.reserve, _act(pass_, call.effect, act_key, prepared=value))


async def _part(pass_: Pass, call: _Call, part: Callable[..., Any], act: Act[Any]) -> str:
    """Run what comes before the act. Return its value as JSON; empty where a test has put a fake for the effect."""
    until = pass_.host.clock.boottime() + (timeout := seconds(call.effect.timeout))
    act = dataclasses.replace(act, _left=lambda: until - pass_.host.clock.boottime())
    async with asyncio.timeout(timeout):
        value = await contained(pass_.host.prepare(call.effect, part, act, call.args, call.kwargs))
    pass_.check()
    return "" if value is NOTHING else returns(part).taken(value, f"what {part.__name__} prepared for {call.what}")[0]


async def actor_of(pass_: Pass, effect: Effect[Any, Any, Any], act_key: str) -> str:
    """Who acts here, as JSON; empty: the effect does not say."""
    if effect.actor is None:
        return ""
    act = _act(pass_, effect, act_key)
    who = await contained(pass_.host.prepare(effect, effect.actor, act, (), {}))
    if who is NOTHING:
        return ""
    if effect.connection:
        who = {**(who if isinstance(who, dict) else {"account": who}), _CONNECTION: effect.connection}
    return PLAIN.encode(who, f"who acts in effect {effect.name!r}")


def rate_of(effect: Effect[Any, Any, Any], actor: str, args: Any, kwargs: Any) -> Rate | None:
    """Return how often the effect may act over all workers: as it is declared, or as the one who acts may."""
    pace = getattr(effect.actor, "pace", None)
    if effect.rate is not None or pace is None or not actor:
        return effect.rate
    found = pace(effect, parse(actor), args, kwargs)
    assert found is None or isinstance(found, Rate)
    return found


def connection_of(actor: str) -> str:
    """The connection over which an act was done, by who acted; empty: the usual one."""
    who = parse(actor) if actor else None
    return str(who.get(_CONNECTION, "")) if isinstance(who, dict) else ""


def other_actor(began: str, here: str) -> str:
    """Why nobody here can tell what another account did; empty: it is the same one, or nobody noted which it was.

    Keys and marks at a target hold for one account and client: under another one "not there" proves nothing.
    """
    if not began or began == here:
        return ""
    return f"it was begun as {_in_words(began)}, and this worker acts as {_in_words(here) if here else 'nobody named'}"


def _in_words(actor: str) -> str:
    who = parse(actor)
    return ", ".join(f"{name} {value}" for name, value in who.items()) if isinstance(who, dict) else str(who)


async def _check_orders(pass_: Pass) -> None:
    """End the pass if somebody has halted the work, or asked to cancel the record."""
    ledger, record_id = pass_.host.ledger, pass_.record.record_id
    standing, rows = await asyncio.gather(ledger.standing(), ledger.load([record_id]))
    pass_.check()
    if (
        any(row.cancel is not None for row in rows)
        or standing.sealed
        or conditions.stopped(pass_.record, standing.controls)
    ):
        pass_.halt(Stopped("it was cancelled, or halted"))
        raise asyncio.CancelledError


def _act_key(pass_: Pass, key: str, known: Receipt | None) -> str:
    """The idempotency key of this act: that of its earlier tries, or a new one."""
    if known is None or (known.stage in BEFORE and not known.act_key):
        return act_key(pass_.host.ledger_id, key)
    return known.known_as


async def _is_under_way(pass_: Pass, known: Receipt) -> bool:
    """Whether the record that intended or parked this may still do it. One that ended over a parked intent does not."""
    if known.stage not in (Stage.PARKED, Stage.RELEASED):
        return known.stage is Stage.INTENDED
    with pass_.flight():
        rows = await pass_.host.ledger.load([known.record_id])
    return any(not row.ended for row in rows)


async def _of_another(pass_: Pass, effect: Effect[Any, Any, Any], key: str) -> None:
    """Another record is doing what this key stands for: look again when it may have its receipt."""
    until = pass_.host.now() + LOOK_AGAIN_SECONDS
    await pass_.block(Wait(On.TIMER, key=f"{key}settle", name=f"{effect.name} of another record", until=until))


async def _tried(pass_: Pass, call: _Call) -> Any:
    """Act; and again, as often as the effect says, where it surely did not happen."""
    with pass_.flight():
        tries = 0
        while True:
            tries += 1
            try:
                return await _once(pass_, call)
            except NotDone as error:
                delay = call.effect.retry.delay(tries, error)
                if delay is None or delay > 5.0:
                    raise
                await pass_.host.clock.sleep(delay)
                pass_.check()
                call.checked = None


async def _known(pass_: Pass, effect: Effect[Any, Any, Any], key: str) -> Receipt | None:
    if effect.own_key and key not in pass_.known:
        with pass_.flight():  # the pass is not suspended over a look at the ledger
            found = await pass_.host.ledger.receipts(keys=[key])
        for receipt in found:
            pass_.known[key] = receipt
    return pass_.known.get(key)


def _act(pass_: Pass, effect: Effect[Any, Any, Any], key: str, *, prepared: Any = None) -> Act[Any]:
    deps = pass_.host.deps_of(pass_.workflow.name)
    return Act(key, deps, pass_.record.record_id, prepared=prepared, connection=effect.connection)


def _act_of(pass_: Pass, effect: Effect[Any, Any, Any], intent: Receipt, until: float | None = None) -> Act[Any]:
    act = _act(pass_, effect, intent.known_as, prepared=prepared_of(effect, intent))
    clock = pass_.host.clock
    return act if until is None else dataclasses.replace(act, _left=lambda: until - clock.boottime())


def prepared_of(effect: Effect[Any, Any, Any], receipt: Receipt) -> Any:
    """Return what was prepared for this act."""
    if not receipt.prepared or effect.prepare is None:
        return None
    return returns(effect.prepare.last).decode(receipt.prepared, f"what was prepared for {effect.name!r}")


def _check_deps(pass_: Pass, effect: Effect[Any, Any, Any]) -> None:
    """Refuse an effect whose ``Act[…]`` names dependencies that its workflow has not: before anything happens."""
    if pass_.host.deps_of(pass_.workflow.name) is None and (needed := needed_deps(effect.act)) is not None:
        raise DefinitionError(
            f"effect {effect.name!r} works with a {needed.__name__}, and workflow {pass_.workflow.name!r} has none: "
            f"write the function that makes it into the workflow, as in Workflow({pass_.workflow.name!r}, "
            "deps=make_deps)"
        )


async def _once(pass_: Pass, call: _Call) -> Any:
    """Make one try: prepare, write the intent with what was prepared, act."""
    host, effect, key = pass_.host, call.effect, call.key
    timeout = _time_for(pass_, effect)
    earlier = pass_.known.get(key)
    outside = _act_key(pass_, key, earlier)
    actor = await actor_of(pass_, effect, outside)
    again = earlier is not None and earlier.stage is Stage.VOID
    if again and earlier is not None and (earlier.args_hash, earlier.actor) == (call.hash, actor) and earlier.prepared:
        prepared = earlier.prepared
    else:
        prepared = await _prepared(pass_, call, outside)
        timeout = _time_for(pass_, effect)
    until = await host.lease_until(timeout)
    intent = _intended(pass_, call, host.now() + timeout, outside, actor, prepared)
    host.acting.add((key, intent.nonce))
    late = False
    try:
        call.rate = rate_of(effect, actor, call.args, call.kwargs)
        await pass_.facts([intent], (call.rate,) if call.rate is not None else ())
        pass_.known[key] = intent
        await host.mark(intent)
        return await _acted(pass_, effect, intent, until, call.args, call.kwargs)
    except RateUsedUp:
        if prepared:  # it is kept with the wait for the rate, so that nothing is reserved a second time
            pass_.answer(_void(pass_, intent))
        raise
    except StillActing:
        late = True
        raise
    finally:
        if not late:
            host.acting.discard((key, intent.nonce))
            host.acted(intent)


def _intended(pass_: Pass, call: _Call, act_by: float, act_key: str, actor: str, prepared: str) -> Receipt:
    """The intent of one try."""
    effect = call.effect
    return pass_.receipt(
        Kind.ONCE,
        call.key,
        effect.name,
        "",
        stage=Stage.INTENDED,
        fn=effect.path,
        args=call.text,
        args_hash=call.hash,
        act_by=act_by,
        undo=effect.path if effect.undo is not None else "",
        act_key=act_key,
        prepared=prepared,
        actor=actor,
        nonce=next_id(),  # of this try: the next one in the same pass is another act, not this one said again
    )


async def _of_the_lost_part(pass_: Pass, call: _Call) -> Receipt | None:
    """The receipt of an act whose intent the ledger lost; None: it did not happen. Nobody acts before that is known.

    The ledger went back in time, so an act without an intent may have been done. It becomes an intent that nobody acts
    on, and is then in doubt like any other: it is probed, or a person is asked.
    """
    effect = call.effect
    if effect.repeat:  # acting again is harmless
        return None
    with pass_.flight():
        went_back = await pass_.host.went_back(pass_.record)
    if not went_back:
        return None
    outside = _act_key(pass_, call.key, None)
    actor = await actor_of(pass_, effect, outside)
    with pass_.flight():
        intent = _intended(pass_, call, pass_.host.now(), outside, actor, "")
        await pass_.facts([intent])
        pass_.known[call.key] = intent
    return await _in_doubt(pass_, effect, intent, call.args, call.kwargs)


def _time_for(pass_: Pass, effect: Effect[Any, Any, Any]) -> float:
    """Return how long the act may take. The pass ends here if the worker has no time for it."""
    wanted = seconds(effect.timeout)
    if timeout := pass_.host.time_for(wanted, pass_.since, harmless=effect.repeat):
        return timeout
    if pass_.host.from_start(pass_.since):  # no slice of this length has more time for it
        pass_.needs(wanted)
    pass_.halt(Yielded("its effect would not end within the worker's time"))
    raise asyncio.CancelledError


async def _acted(
    pass_: Pass, effect: Effect[Any, Any, Any], intent: Receipt, until: float, args: Any, kwargs: Any
) -> Any:
    """Act, once the intent is in the ledger, and write the receipt."""
    host = pass_.host
    left = until - host.clock.boottime()  # the last look at the clock before the act
    if left <= 0 or pass_.lost:
        await pass_.deliver(_void(pass_, intent))
        raise NotDone("the worker was away too long between its intent and the act; it did not act")
    try:
        acting = contained(host.act(effect, _act_of(pass_, effect, intent, until), args, kwargs))
        if effect.in_thread:
            value = await _in_thread(pass_, effect, intent, asyncio.ensure_future(acting), left)
        else:
            async with asyncio.timeout(left):
                value = await acting
    except StillActing as error:
        pass_.tell("effect.unclear", effect=effect.name, **failure_of(error)._asdict())
        await pass_.facts(())
        raise
    except NotNow:
        await pass_.deliver(_void(pass_, intent))
        raise
    except (NotDone, ConnectionRefusedError) as error:
        anew = isinstance(error, PrepareAgain)
        kind = next((one for one in (PrepareAgain, NotPossible) if isinstance(error, one)), NotDone)
        await pass_.deliver(_void(pass_, replace(intent, prepared="") if anew else intent))
        raise kind(str(error)) from error
    except Exception as error:
        if effect.repeat:
            await pass_.deliver(_void(pass_, intent))
            raise
        # The act has ended, but nobody knows how: the next pass finds an intent whose actor is gone.
        pass_.tell("effect.unclear", effect=effect.name, **failure_of(error)._asdict())
        await pass_.facts([replace(intent, act_by=host.now())])
        raise
    return await _done(pass_, effect, intent, value)


async def _done(pass_: Pass, effect: Effect[Any, Any, Any], intent: Receipt, value: Any) -> Any:
    """Write the receipt. The act was done: nothing that it returned is a reason to lose that."""
    what = f"what effect {effect.name!r} returned"
    text, problem = "", ""
    try:
        text, value = returns(effect.act).nearest(value, what)
    except Exception as error:  # noqa: BLE001 - a type's own code may raise anything
        problem = failure_of(error).error
        pass_.tell("effect.unfit", effect=effect.name, problem=problem)
    receipt = pass_.host.keyring.signed(replace(intent, stage=Stage.DONE, value=text))
    pass_.known[intent.key] = receipt
    await pass_.deliver(receipt)
    if receipt.unfit:
        raise _Unfit(problem)
    return value


class StillActing(TimeoutError):
    """The act's time is over, and its thread goes on."""


async def _in_thread(
    pass_: Pass, effect: Effect[Any, Any, Any], intent: Receipt, acting: asyncio.Future[Any], left: float
) -> Any:
    """Wait for an act in a thread as long as it may take. Nobody can stop it: then the worker keeps the intent."""
    await asyncio.wait({acting}, timeout=left)
    if acting.done():
        return acting.result()
    pass_.host.late(_late(pass_, effect, intent, acting))
    raise StillActing(
        f"effect {effect.name!r} still runs in its thread after {effect.timeout}; give act.time_left to what hangs"
    )


async def _late(pass_: Pass, effect: Effect[Any, Any, Any], intent: Receipt, acting: asyncio.Future[Any]) -> None:
    """Write what came of an act that ended after its time: the intent alone fences it, whatever the record does."""
    host = pass_.host
    receipt: Receipt | None = None
    try:
        value = await acting
        try:
            text, _ = returns(effect.act).nearest(value, f"what effect {effect.name!r} returned")
        except Exception:  # noqa: BLE001 - a type's own code may raise anything; it happened all the same
            text = ""
        receipt = host.keyring.signed(replace(intent, stage=Stage.DONE, value=text))
    except (NotDone, ConnectionRefusedError):
        receipt = replace(intent, stage=Stage.VOID)
    except Exception as error:  # noqa: BLE001 - nobody knows how it ended: the next pass finds the intent
        log.warning("effect %r of %r: %s", effect.name, intent.record_id, failure_of(error).error)
    finally:
        host.acting.discard((intent.key, intent.nonce))
    if receipt is not None:
        change = Change(next_id(), intent.record_id, pass_.record.version, None, host.worker_id, receipts=(receipt,))
        await host.submit(change)


class _Unfit(Exception):
    """The act was done, and what it returned cannot be kept."""


async def _value(pass_: Pass, effect: Effect[Any, Any, Any], receipt: Receipt, why: str = "") -> Any:
    """What the effect returned. A person is asked for it if it could not be kept, or if nobody said what it was."""
    type_ = returns(effect.act)
    if not receipt.unfit:
        try:
            return type_.decode(receipt.value, f"the receipt of {effect.name!r}")
        except ValueRefused:
            if receipt.value != "null":
                raise
    await pass_.block(valueless(receipt.key, effect.name, why, schema_of(type_)))
    raise AssertionError("unreachable: a block does not return")


def _void(pass_: Pass, intent: Receipt) -> Receipt:
    void = replace(intent, stage=Stage.VOID)
    pass_.known[intent.key] = void
    return void


async def _in_doubt(
    pass_: Pass, effect: Effect[Any, Any, Any], intent: Receipt, args: Any, kwargs: Any
) -> Receipt | None:
    """Find out what became of an intent without a receipt. Return the receipt if it happened, None to act again."""
    host = pass_.host
    schema = schema_of(returns(effect.act))
    if effect.repeat:
        await _to_repeat(pass_, effect, intent)
        return None
    settled = (intent.act_by or 0.0) + (seconds(effect.settle) if effect.probe is not None else 0.0)
    # After an outage, whoever lives delivers its receipt first.
    settled = max(settled, host.back_since + seconds(effect.settle))
    if _acts_here(pass_, intent):  # in a thread that has outlived its time: nobody need be asked before it has ended
        until = host.now() + min(30.0, max(LOOK_AGAIN_SECONDS, seconds(effect.timeout)))
        await pass_.block(Wait(On.TIMER, key=f"{intent.key}settle", name=f"{effect.name} to end", until=until))
    # Who has surely ended acts no more: what it did is looked for at once. What is not there may still come to light,
    # so nobody is asked before the act's time is over: a person would not find it either.
    ended = await _actor_ended(pass_, intent)
    early = host.now() < settled
    if early and (not ended or effect.probe is None):
        await _settles(pass_, effect, intent, settled)
    if effect.probe is None:
        await pass_.block(doubted(intent.key, effect.name, value=schema))
    await _check_actor(pass_, effect, intent)
    found, unknown = await _probed(pass_, effect, intent, args, kwargs)
    if early and effect.fenced is not True and (unknown is not None or isinstance(found, NotDone)):
        # Until its time is over, what the dead process had sent may still arrive.
        await _settles(pass_, effect, intent, settled)
    if unknown is not None:
        await pass_.block(doubted(intent.key, effect.name, f"its probe failed: {unknown}", schema))
    if not isinstance(found, NotDone):
        return await _found(pass_, effect, intent, found)
    if effect.fenced or ended:
        await pass_.deliver(_void(pass_, replace(intent, prepared="") if isinstance(found, PrepareAgain) else intent))
        return None
    why = "it is not there, but its worker may still be acting"
    await pass_.block(doubted(intent.key, effect.name, why, schema))
    return None


async def _to_repeat(pass_: Pass, effect: Effect[Any, Any, Any], intent: Receipt) -> None:
    """Acting again is harmless. Acting at the same time as another worker that still may act need not be."""
    host = pass_.host
    if _acts_here(pass_, intent) or (host.now() < (intent.act_by or 0.0) and not await _actor_ended(pass_, intent)):
        name = f"{effect.name} to end elsewhere"
        until = max(intent.act_by or 0.0, host.now() + LOOK_AGAIN_SECONDS)
        await pass_.block(Wait(On.TIMER, key=f"{intent.key}settle", name=name, until=until))
    await _check_actor(pass_, effect, intent)
    await pass_.deliver(_void(pass_, intent))


async def _found(pass_: Pass, effect: Effect[Any, Any, Any], intent: Receipt, value: Any) -> Receipt:
    """Return the receipt of what the probe found."""
    try:
        text, _ = returns(effect.act).nearest(value, f"what the probe of {effect.name!r} found")
    except Exception as error:  # noqa: BLE001 - a type's own code may raise anything; it was found all the same
        pass_.tell("effect.unfit", effect=effect.name, problem=failure_of(error).error)
        text = ""
    receipt = pass_.host.keyring.signed(replace(intent, stage=Stage.DONE, value=text))
    pass_.known[intent.key] = receipt
    await pass_.deliver(receipt)
    return receipt


async def _settles(pass_: Pass, effect: Effect[Any, Any, Any], intent: Receipt, until: float) -> None:
    """Wait until nobody can act over this intent any more, and until its target has had time to show the act."""
    if pass_.host.now() < until:
        name = f"{effect.name} to settle"
        await pass_.block(Wait(On.TIMER, key=f"{intent.key}settle", name=name, until=until))


async def _probed(
    pass_: Pass, effect: Effect[Any, Any, Any], intent: Receipt, args: Any, kwargs: Any
) -> tuple[Any, str | None]:
    """Call the probe. Return what it finds, or why it knows nothing."""
    with pass_.flight():
        try:
            return await contained(pass_.host.probe(effect, _act_of(pass_, effect, intent), args, kwargs)), None
        except NotNow:
            raise  # it could not even look: nobody is asked before it could
        except Exception as error:  # noqa: BLE001 - a probe that fails knows nothing
            tried = failure_of(error)
            pass_.tell("effect.unclear", effect=f"probe of {effect.name}", **tried._asdict())
            return None, tried.error


async def _check_actor(pass_: Pass, effect: Effect[Any, Any, Any], intent: Receipt) -> None:
    """Ask a person about an act that another account began."""
    with pass_.flight():
        why = other_actor(intent.actor, await actor_of(pass_, effect, intent.known_as))
    if why:
        await pass_.block(doubted(intent.key, effect.name, why, schema_of(returns(effect.act))))


def _acts_here(pass_: Pass, intent: Receipt) -> bool:
    """An earlier pass of this very worker acts on it still: its record was taken back, but the act goes on."""
    return (intent.key, intent.nonce) in pass_.host.acting


async def _actor_ended(pass_: Pass, intent: Receipt) -> bool:
    """Whether whoever intended it is known to have ended: this very worker, its farewell, or a dead process here."""
    if intent.worker == pass_.host.worker_id:
        return not _acts_here(pass_, intent)
    with pass_.flight():
        workers = await pass_.host.ledger.workers()
    for worker in workers:
        if worker.worker_id == intent.worker:
            return worker.closed == "farewell" or pass_.host.known_dead(worker)
    return False
