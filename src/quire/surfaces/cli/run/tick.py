"""``quire tick``: one slice of work for cron, a container job or a push message, which wakes the next slice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from quire.clock import seconds
from quire.errors import InputError
from quire.explain import words
from quire.surfaces.cli.command import Exit, Session, verb
from quire.surfaces.cli.run.up import check_spans, projecting, run_worker, start_logging, working_client
from quire.upkeep import ticks as relay


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
            finished = 0

            async def worked(slot: relay.Slot) -> int:
                nonlocal finished
                worker = client.worker(concurrency=concurrency, label=f"tick {slot.number}")
                async with projecting(session, client):
                    watched = await run_worker(session, worker, budget, idle=True)
                finished = watched.finished
                return watched.settled

            length = seconds(budget)
            report = await relay.slice_of(client, worked, length, chains, url, given, seconds(period))
            return report | {"finished": finished} if report["ran"] else report

    report = session.run(work())
    if session.json:
        session.out.emit(report)
    else:
        session.out.say(_sentence(report))
    return Exit.OK


def _sentence(report: dict[str, Any]) -> str:
    if not report["ran"]:
        return f"nothing to do: {report['reason']}"
    text = f"slice ended; {words.counted(report['finished'], 'record')} finished"
    if report["left"]:
        called = report.get("called")
        text += "; work is left" + (
            "" if called is None else ", the next slice is called" if called else ", the call failed"
        )
    elif report["next_due_at"]:
        text += f"; the next is due at {report['next_due_at']}"
    for step in report["too_long"]:
        text += (
            f"; step {step['step']!r} of {step['workflow']!r} {step['words']}: it does not fit into this slice and is "
        )
        text += f"not begun; give it --budget {step['budget']}, or let quire worker run it"
    return text
