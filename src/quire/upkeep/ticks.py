"""Tick chains: short-lived processes that hand work on to each other, and neither multiply nor die unseen.

Protocol 24. The ledger has as many *slots* as chains are wanted. Whoever holds a slot runs a slice. It hands on by
raising the slot's generation and sending the new one in a signed call; a call with another generation does nothing. A
periodic caller (cron) takes a slot only when it has expired: it starts chains, and revives one whose call was lost.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from quire.client.client import Client
from quire.clock import iso, new_id
from quire.errors import InputError
from quire.ledger.base import Ledger
from quire.model.change import Claim, Query
from quire.model.codec import dump, parse
from quire.model.receipt import Keyring
from quire.model.record import Status
from quire.model.row import replace
from quire.model.side import EVERYWHERE, Setting
from quire.run.waits import signature
from quire.worker.last_tick import ticked
from quire.worker.slices import step_times, too_long
from quire.workflows.workflow import Registry

RELAY = "relay/"
#: After a hand-over the next process has so long to take the slot, beyond that a periodic caller may.
ARRIVAL_SECONDS = 30.0
#: A slot outlives the budget of its slice by this much.
_MARGIN = 15.0
_CALL_SECONDS = 10.0


class Slot(NamedTuple):
    """One chain's place in the ledger, as this process holds it."""

    number: int
    generation: int
    expires_at: float


class Baton(NamedTuple):
    """What is handed on: a slot and its generation, signed with the ledger's keyring."""

    slot: int
    generation: int
    signature: str

    def __str__(self) -> str:
        return f"{self.slot}.{self.generation}.{self.signature}"

    @classmethod
    def parse(cls, text: str) -> Baton:
        parts = text.split(".")
        numbers = len(parts) == 3 and all(part.isascii() and part.isdigit() and len(part) < 18 for part in parts[:2])
        if not numbers or not (parts[2].isascii() and parts[2].isalnum()):
            raise InputError(f"{text[:80]!r} is not a baton, slot.generation.signature, as the last slice sent it")
        return cls(int(parts[0]), int(parts[1]), parts[2])


def signed(keyring: Keyring, slot: int, generation: int) -> Baton:
    return Baton(slot, generation, signature(keyring, "tick", str(slot), str(generation)))


def genuine(keyring: Keyring, baton: Baton) -> bool:
    import hmac

    return hmac.compare_digest(signed(keyring, baton.slot, baton.generation).signature, baton.signature)


async def _read(ledger: Ledger, number: int) -> tuple[Setting, Slot]:
    kept = await ledger.setting(f"{RELAY}{number}")
    if kept is None:
        return Setting(f"{RELAY}{number}", "", 0), Slot(number, 0, 0.0)
    body = parse(kept.value)
    return kept, Slot(number, int(body["generation"]), float(body["expires_at"]))


async def _put(ledger: Ledger, kept: Setting, slot: Slot) -> bool:
    return await ledger.keep(replace(kept, value=dump({"generation": slot.generation, "expires_at": slot.expires_at})))


async def take(ledger: Ledger, chains: int, span: float) -> Slot | None:
    """Take an expired slot for so long; None: every chain is alive."""
    now = await ledger.now()
    for number in range(chains):
        kept, slot = await _read(ledger, number)
        if slot.expires_at > now:
            continue
        mine = Slot(number, slot.generation + 1, now + span)
        if await _put(ledger, kept, mine):
            return mine
    return None


async def accept(ledger: Ledger, baton: Baton, span: float) -> Slot | None:
    """Take the slot that was handed on; None: the call is a repetition, or too late."""
    kept, slot = await _read(ledger, baton.slot)
    if slot.generation != baton.generation:
        return None
    mine = Slot(slot.number, slot.generation + 1, await ledger.now() + span)
    return mine if await _put(ledger, kept, mine) else None


async def hand_on(ledger: Ledger, slot: Slot) -> Slot | None:
    """Return the slot for the next process; None: this one had lost it."""
    kept, known = await _read(ledger, slot.number)
    if known.generation != slot.generation:
        return None
    following = Slot(slot.number, slot.generation + 1, await ledger.now() + ARRIVAL_SECONDS)
    return following if await _put(ledger, kept, following) else None


async def release(ledger: Ledger, slot: Slot) -> None:
    """There is nothing to hand on: the next periodic call may take the slot at once."""
    kept, known = await _read(ledger, slot.number)
    if known.generation == slot.generation:
        await _put(ledger, kept, slot._replace(expires_at=0.0))


class Left(NamedTuple):
    """What a slice leaves behind."""

    due: bool
    next_due_at: float | None


async def left_behind(ledger: Ledger, registry: Registry) -> Left:
    """Whether something is due that could be claimed, and if not, when something will be. Takes nothing."""
    stopped = {control.scope for control in (await ledger.standing()).controls if control.halted or control.paused}
    slots = [slot for slot in registry.slots() if slot.workflow not in stopped]
    if EVERYWHERE in stopped or not slots:
        return Left(False, None)
    seen = await ledger.claim(Claim(new_id(length=12), "", tuple(slots), 0))
    return Left(seen.left_priority is not None, seen.next_due_at)


# -- a slice -----------------------------------------------------------------------------------------------------


async def slice_of(
    client: Client,
    worked: Callable[[Slot], Awaitable[int]],
    budget: float,
    chains: int,
    url: str | None,
    baton: Baton | None,
    period: float,
) -> dict[str, Any]:
    """One slice, and what became of it. ``worked`` works for the budget and answers how often it settled a record."""
    ledger, keyring = client.ledger, client.keyring
    assert keyring is not None
    if baton is not None:
        if not genuine(keyring, baton):
            raise InputError("the baton was not signed by this ledger")
        slot = await accept(ledger, baton, budget + _MARGIN)
    else:
        await ticked(ledger, period)
        slot = await take(ledger, chains, budget + _MARGIN)
    if slot is None:
        return {"ran": False, "reason": "the baton is old" if baton is not None else "every chain is alive"}
    began = client.clock.boottime()
    settled = await worked(slot)
    spent = client.clock.boottime() - began >= 0.5 * budget
    left = await left_behind(ledger, client.registry)
    answer = {
        "ran": True,
        "slot": slot.number,
        "settled": settled,
        "left": left.due,
        "next_due_at": iso(left.next_due_at) or None,
        "too_long": await _too_long(ledger, client.registry),
    }
    # A slice that did nothing and has time left finds nothing more by being repeated at once: the caller comes again.
    if left.due and url is not None and (settled or spent):
        following = await hand_on(ledger, slot)
        if following is not None:
            answer["called"] = await _called(url, signed(keyring, following.number, following.generation))
        return answer
    await release(ledger, slot)
    return answer


async def _too_long(ledger: Ledger, registry: Registry) -> list[dict[str, Any]]:
    """The steps that do not fit into a slice, and at which records are due."""
    now = await ledger.now()
    found = []
    for (workflow, step), time in too_long(await step_times(ledger, now)).items():
        waiting = await ledger.find(Query(workflow, step, (Status.PENDING,), limit=1))
        if waiting and registry.get(workflow) is not None:
            answer = {"workflow": workflow, "step": step, "seconds": round(time.seconds, 2), "ended": time.ended}
            found.append(answer | {"cut": time.cuts, "budget": f"{time.fitting}s", "words": time.words()})
    return found


async def _called(url: str, baton: Baton) -> bool:
    """Wake the next slice. A call that is lost is no loss: the periodic caller takes the slot when it expires."""
    import httpx2

    try:
        async with httpx2.AsyncClient(timeout=_CALL_SECONDS) as http:
            answer = await http.post(url, json={"baton": str(baton)}, headers={"X-Quire-Baton": str(baton)})
        return bool(answer.status_code < 400)
    except httpx2.ReadTimeout:
        return True  # it was taken: an answer comes only when that slice ends
    except httpx2.HTTPError:
        return False


# -- the periodic caller -----------------------------------------------------------------------------------------
