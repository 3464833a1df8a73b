"""``quire tick``: one slice of work for cron, a container job or a push message, which wakes the next slice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from quire.clock import iso, seconds
from quire.errors import InputError
from quire.surfaces import relay
from quire.surfaces.cli.command import Exit, Session, verb
from quire.surfaces.cli.run import check_spans, projecting, run_worker, start_logging, working_client
from quire.surfaces.client import Client

#: A slot outlives the budget of its slice by this much.
_MARGIN = 15.0
_CALL_SECONDS = 10.0


@verb(
    "tick",
    example="""
    * * * * *  quire tick --budget 50s --period 1m
    quire tick --budget 5m --call https://quire.example.org/tick
    """,
)
@click.argument("files", nargs=-1, metavar="[FILE]...", type=click.Path())
@click.option("--budget", default="50s", show_default=True, metavar="SPAN", help="How long the slice may take.")
@click.option(
    "--concurrency", type=click.IntRange(1, 10_000), default=100, show_default=True, help="Steps side by side."
)
@click.option(
    "--chains", type=click.IntRange(1, 64), default=1, show_default=True, help="How many slices may run at once."
)
@click.option(
    "--call", "url", metavar="URL", help="Wake the next slice by a signed call of this address, if work is left."
)
@click.option("--baton", metavar="TEXT", help="What the call that woke this slice brought.")
@click.option("--period", default="1m", show_default=True, metavar="SPAN", help="How often the periodic caller calls.")
def tick(
    session: Session,
    files: Sequence[str],
    budget: str,
    concurrency: int,
    chains: int,
    url: str | None,
    baton: str | None,
    period: str,
) -> int:
    """Work for one slice of time and hand on.

    Called without a baton (by cron) it takes an expired slot, or does nothing if every chain is alive. Called with one
    (by the slice before) it goes on only if the baton is the slot's present one. A slice that leaves work behind calls
    the address with a new baton. The exit code is 0 in all these cases.
    """
    check_spans(budget=budget, period=period)
    if url is not None and not url.startswith(("http://", "https://")):
        raise InputError(f"--call takes an http address, not {url!r}")
    given = relay.Baton.parse(baton) if baton is not None else None
    start_logging(session)

    async def work() -> dict[str, Any]:
        async with working_client(session, files) as client:
            return await slice_of(session, client, budget, concurrency, chains, url, given, seconds(period))

    told = session.run(work())
    if session.json:
        session.out.emit(told)
    else:
        session.out.say(_sentence(told))
    return Exit.OK


async def slice_of(
    session: Session,
    client: Client,
    budget: str,
    concurrency: int,
    chains: int,
    url: str | None,
    baton: relay.Baton | None,
    period: float,
) -> dict[str, Any]:
    """One slice, and what became of it."""
    ledger, keyring = client.ledger, client.keyring
    assert keyring is not None
    span = seconds(budget) + _MARGIN
    if baton is not None:
        if not relay.genuine(keyring, baton):
            raise InputError("the baton was not signed by this ledger")
        slot = await relay.accept(ledger, baton, span)
    else:
        await relay.ticked(ledger, period)
        slot = await relay.take(ledger, chains, span)
    if slot is None:
        return {"ran": False, "reason": "the baton is old" if baton is not None else "every chain is alive"}
    worker = client.worker(concurrency=concurrency, label=f"tick {slot.number}")
    began = client.clock.boottime()
    async with projecting(session, client):
        settled = await run_worker(session, worker, budget, idle=True)
    spent = client.clock.boottime() - began >= 0.5 * seconds(budget)
    left = await relay.left_behind(ledger, client.registry)
    told = {
        "ran": True,
        "slot": slot.number,
        "settled": settled,
        "left": left.due,
        "next_due_at": iso(left.next_due_at) or None,
    }
    # A slice that did nothing and has time left finds nothing more by being repeated at once: the caller comes again.
    if left.due and url is not None and (settled or spent):
        following = await relay.hand_on(ledger, slot)
        if following is not None:
            told["called"] = await _called(url, relay.signed(keyring, following.number, following.generation))
        return told
    await relay.release(ledger, slot)
    return told


async def _called(url: str, baton: relay.Baton) -> bool:
    """Wake the next slice. A call that is lost is no loss: the periodic caller takes the slot when it expires."""
    import httpx2

    try:
        async with httpx2.AsyncClient(timeout=_CALL_SECONDS) as http:
            answer = await http.post(url, json={"baton": str(baton)}, headers={"X-Quire-Baton": str(baton)})
        return bool(answer.status_code < 400)
    except httpx2.HTTPError:
        return False


def _sentence(told: dict[str, Any]) -> str:
    if not told["ran"]:
        return f"nothing to do: {told['reason']}"
    text = f"slice ended; it settled {told['settled']} times"
    if told["left"]:
        called = told.get("called")
        text += "; work is left" + (
            "" if called is None else ", the next slice is called" if called else ", the call failed"
        )
    elif told["next_due_at"]:
        text += f"; the next is due at {told['next_due_at']}"
    return text
