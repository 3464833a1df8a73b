"""``quire logs``, ``watch``: the log, and how it grows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from quire.client.client import Client
from quire.clock import iso, seconds
from quire.errors import InputError
from quire.explain import words
from quire.model.event import Event
from quire.surfaces.cli.command import Session, named, verb, workflow_option
from quire.surfaces.cli.completing import records
from quire.surfaces.cli.spelling import check_names


async def last_seq(client: Client) -> int:
    """Return the place of the newest line of the ledger's log, found by halving."""
    if not await client.events(limit=1):
        return 0
    low, high = 0, 1
    while await client.events(after=high, limit=1):
        low, high = high, high * 2
    while low < high:
        middle = (low + high) // 2
        if await client.events(after=middle, limit=1):
            low = middle + 1
        else:
            high = middle
    return low


@verb(
    "logs",
    example="""
    quire logs kw_analytics
    quire logs -f --json
    """,
)
@click.argument("record_id", required=False, default="", metavar="[ID]", callback=named, shell_complete=records)
@click.option("--follow", "-f", is_flag=True, help="Go on with new lines until Ctrl-C.")
@click.option(
    "--lines", "-n", type=click.IntRange(0, 1_000_000), default=50, show_default=True, help="The last so many."
)
@click.option("--kind", default="", metavar="WORD", help="Only lines of this kind, like failed or answered.")
def logs(session: Session, record_id: str, follow: bool, lines: int, kind: str) -> None:
    """Read the log of record ID, or of the whole ledger."""

    def tell(events: Sequence[Event]) -> None:
        for event in events:
            if kind and event.kind != kind:
                continue
            if session.json:
                session.out.emit(words.event_json(event))
            else:
                name = "" if record_id else f"{event.record_id}  "
                session.out.say(f"{iso(event.at)[:23].replace('T', ' ')}Z  {name}{words.line(event)}")

    async def work(client: Client) -> None:
        if record_id:
            await client.get(record_id)
            events = await client.events(record_id, limit=1_000_000)
            end = events[-1].seq if events else 0
        else:
            end = await last_seq(client)
            events = await client.events(after=max(0, end - lines), limit=lines) if lines else []
        tell(events[-lines:] if lines else [])
        while follow:
            new = await client.events(record_id, after=end)
            tell(new)
            end = new[-1].seq if new else end
            if not new:
                await client.clock.sleep(0.2)

    _until_interrupted(session, work, follow)


def _until_interrupted(session: Session, work: Any, follow: bool) -> None:
    try:
        session.with_client(work)
    except KeyboardInterrupt:
        if not follow:
            raise


@verb("watch", example="quire watch --workflow seo_publish")
@workflow_option
@click.option("--every", default="1s", show_default=True, metavar="SPAN", help="How often to read the ledger.")
@click.option("--for", "span", metavar="SPAN", help="End after this span.")
def watch(session: Session, workflow: str, every: str, span: str | None) -> None:
    """Watch the ledger move: records by step and status, and the newest lines of the log."""
    pause, end = seconds(every), None if span is None else seconds(span)
    if pause < 0.05:
        raise InputError("--every must be at least 50ms")

    async def work(client: Client) -> None:
        from quire.surfaces.cli.look.watching import Watching

        await check_names(client, workflow, "")
        with Watching(session, workflow) as watching:
            began = client.clock.boottime()
            seq = await last_seq(client)
            while True:
                new = await client.events(after=seq, limit=200)
                seq = new[-1].seq if new else seq
                watching.show(await client.counts(), await client.standing(), await client.workers(), new)
                left = None if end is None else began + end - client.clock.boottime()
                if left is not None and left <= 0:
                    return
                await client.clock.sleep(pause if left is None else min(pause, left))

    _until_interrupted(session, work, True)
