"""``quire list``: records as rows of a table, by what they are, whom they ask, or what holds them up."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import click

from quire.client.client import Client
from quire.clock import iso
from quire.errors import InputError
from quire.explain import words
from quire.explain.asking import BY, By, asked, in_order, may_answer, records_of
from quire.folder.state import next_step
from quire.ledger.workers import alive
from quire.model.codec import parse
from quire.model.record import Record, Status
from quire.model.side import Worker
from quire.model.state import shown_status
from quire.model.wait import On, load_waits
from quire.surfaces.cli.command import Session, named, verb, workflow_option
from quire.surfaces.cli.completing import records, steps
from quire.surfaces.cli.output import on_one_line
from quire.surfaces.cli.spelling import check_names, statuses
from quire.worker.last_tick import comes, last_tick
from quire.worker.slices import step_times, too_long

_COLUMNS = ("record_id", "status", "next_step", "workflow", "updated_at", "about")


def _status_words(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    return [word for word in Status.__members__ if word.startswith(incomplete.upper())]


def _about(record: Record) -> str:
    match record.status:
        case Status.ERROR | Status.CANCELLED:
            return record.last_error or ""
        case Status.NEEDS_APPROVAL:
            return record.question or ""
        case Status.DONE:
            return record.note or (record.result if record.result not in (None, "null") else "") or ""
        case Status.WAITING:
            return record.note or ", ".join(f"{wait.on} {wait.name}".strip() for wait in load_waits(record.waits)[:3])
        case _:
            return record.last_error or record.note or ""


async def of_missions(client: Client, records: Sequence[Record]) -> dict[str, Status]:
    """Return how the missions among these records stand, by id: their own record only waits while agents work."""
    if not any(record.status is Status.WAITING and '"thread"' in record.data for record in records):
        return {}  # without the libraries of agents
    from quire.agents.missions.story import standings

    return await standings(client.ledger, records)


def row_of(record: Record, status: Status | None = None) -> tuple[str, ...]:
    """Return a record as one row of a table, with another status if one is given."""
    updated = iso(record.updated_at)[:19].replace("T", " ") + "Z"
    return (
        record.record_id,
        status or shown_status(record),
        next_step(record),
        record.workflow,
        updated,
        on_one_line(_about(record), 120),
    )


async def _stuck(client: Client, workflow: str, limit: int) -> AsyncIterator[tuple[Record, str]]:
    """Records that do not move by themselves although they should: each with the reason."""
    found = await client.find(workflow=workflow, status=(Status.ERROR,), limit=limit, order="updated")
    for record in found:
        yield record, "error"
    standing, workers = await client.standing(), await client.workers()
    live = [worker for worker in workers if alive(worker, standing.now)]
    held = {worker.worker_id for worker in live}
    for record in await client.find(workflow=workflow, status=(Status.NEEDS_APPROVAL,), limit=10_000):
        if any(wait.on is On.DOUBT for wait in load_waits(record.waits)):
            yield record, "doubt"
    for record in await client.find(workflow=workflow, status=(Status.RUNNING,), limit=10_000):
        if record.worker not in held:
            yield record, "its worker is lost"
    why = await _why_unclaimed(client, live, standing.now)
    for count in await client.counts():
        reason = why(count.workflow, count.step)
        if not reason or count.status is not Status.PENDING or (workflow and count.workflow != workflow):
            continue
        pending = await client.find(workflow=count.workflow, step=count.step, status=(Status.PENDING,), limit=limit)
        for record in pending:
            if record.due_at is not None and record.due_at <= standing.now:
                yield record, reason


async def _why_unclaimed(client: Client, live: Sequence[Worker], now: float) -> Callable[[str, str], str]:
    """Return a function that says why nobody claims records at a step of a workflow; it answers "" if somebody does."""
    if live:
        known = {(known[0], known[1]) for worker in live for known in parse(worker.knows)}
        return lambda workflow, step: "" if (workflow, step) in known else "no live worker knows its step"
    tick = await last_tick(client.ledger)
    if tick is None or not comes(tick, now):
        return lambda workflow, step: "no worker is alive"
    times = too_long(await step_times(client.ledger, now))

    def by_ticks(workflow: str, step: str) -> str:
        time = times.get((workflow, step))
        return "" if time is None else f"its step fits into no slice: it {time.words()}"

    return by_ticks


@verb(
    "list",
    example="""
    quire list --needs-me
    quire list --status ERROR --workflow seo_publish --limit 20
    quire list --stuck --json
    """,
)
@click.argument("text", required=False, default="")
@workflow_option
@click.option(
    "--status", "-s", "status", multiple=True, callback=statuses, shell_complete=_status_words, help="Of this status."
)
@click.option("--step", default="", callback=named, shell_complete=steps, metavar="NAME", help="At this step.")
@click.option(
    "--parent", default="", callback=named, shell_complete=records, metavar="ID", help="Children of this record."
)
@click.option("--needs-me", is_flag=True, help="Those that ask something that I may answer.")
@click.option(
    "--by",
    type=click.Choice(BY),
    default=None,
    help="The order of --needs-me: what expires next first (as it is without this), the longest waiting, by workflow.",
)
@click.option("--stuck", is_flag=True, help="In ERROR, in doubt, without a worker: what does not move by itself.")
@click.option(
    "--limit", "-n", type=click.IntRange(1, 1_000_000), default=50, show_default=True, help="At most so many."
)
def list_(
    session: Session,
    text: str,
    workflow: str,
    status: tuple[Status, ...],
    step: str,
    parent: str,
    needs_me: bool,
    by: By | None,
    stuck: bool,
    limit: int,
) -> None:
    """List records, the latest first; of those that need me, what expires next. TEXT is a part of their id."""
    if by and not needs_me:
        raise InputError("--by orders what waits for you; add --needs-me")

    async def work(client: Client) -> None:
        await check_names(client, workflow, step)
        if stuck:
            found: list[tuple[Record, str]] = []
            async for pair in _stuck(client, workflow, limit):
                found.append(pair)
                if len(found) == limit:
                    break
            if session.json:
                for record, reason in found:
                    session.out.emit({**words.record_json(record), "stuck": reason})
                return
            rows = [(*row_of(record)[:-1], f"{reason}: {row_of(record)[-1]}".rstrip(": ")) for record, reason in found]
            _table(session, rows, "nothing is stuck")
            return
        if needs_me:
            config = session.config
            found_ = await client.find(
                workflow=workflow, step=step, status=(Status.NEEDS_APPROVAL,), text=text, limit=100_000, order="updated"
            )
            mine = [each for each in asked(found_) if may_answer(each.wait, config.who, config.groups)]
            all_mine = records_of(in_order(mine, by or "expiry"))
            chosen = all_mine[:limit]
            if len(all_mine) > limit:
                session.out.note(f"{limit:,} of {len(all_mine):,} that wait for you are shown (--limit)")
        else:
            chosen = await client.find(
                workflow=workflow, step=step, status=status, parent_id=parent, text=text, limit=limit, order="updated"
            )
        if session.json:
            for record in chosen:
                session.out.emit(words.record_json(record))
            return
        missions = await of_missions(client, chosen)
        rows = [row_of(record, missions.get(record.record_id)) for record in chosen]
        _table(session, rows, "nothing waits for you" if needs_me else "no records")
        if needs_me and chosen:
            first = chosen[0].record_id
            session.out.note(f"next: {words.command('show', first)}, then {words.command('approve', first)}")
        elif len(chosen) == limit:
            session.out.note(f"only the latest {limit} are shown (--limit)")

    session.with_client(work)


def _table(session: Session, rows: Sequence[Sequence[str]], nothing: str) -> None:
    if rows:
        session.out.table(_COLUMNS, rows, whole=2)
    else:
        session.out.note(nothing)
