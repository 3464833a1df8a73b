"""``quire retry``, ``cancel``, ``undo``, ``pause``, ``resume``, ``halt``: putting things right."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import click

from quire.client.client import Client
from quire.clock import seconds
from quire.errors import IllegalMove, InputError, LedgerUnavailable, QuireError
from quire.explain import words
from quire.ledger.workers import alive
from quire.model.change import Reach, Standing
from quire.model.codec import parse
from quire.model.record import ENDED, Record, Status
from quire.model.side import EVERYWHERE
from quire.surfaces.cli.command import Exit, Session, named, record_argument, verb, workflow_option
from quire.surfaces.cli.completing import records, steps, workflows
from quire.surfaces.cli.spelling import check_names, statuses

_REASON = click.option("--reason", default="", metavar="TEXT", help="Why, for the log.")


@verb(
    "retry",
    example="""
    quire retry kw_analytics
    quire retry --status ERROR --workflow seo_publish --where keyword=quires
    quire retry kw_analytics --from draft
    """,
)
@click.argument("record_id", required=False, metavar="[ID]", shell_complete=records)
@click.option(
    "--from",
    "step",
    default="",
    shell_complete=steps,
    metavar="STEP",
    help="Anew from this step: its effects count anew.",
)
@click.option(
    "--status", "-s", multiple=True, callback=statuses, metavar="STATUS", help="All of this status: ERROR or CANCELLED."
)
@workflow_option
@click.option(
    "--at",
    "at",
    default="",
    callback=named,
    shell_complete=steps,
    metavar="STEP",
    help="Only those that stand at this step.",
)
@click.option("--where", multiple=True, metavar="K=V", help="Only those whose data has this value.")
@click.option("--error", default="", callback=named, metavar="TEXT", help="Only those whose error holds this text.")
@click.option("--limit", type=click.IntRange(1), default=10_000, show_default=True, help="At most so many.")
@click.option("--dry-run", is_flag=True, help="Only say which.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask before retrying many.")
def retry(
    session: Session,
    record_id: str | None,
    step: str,
    status: tuple[Status, ...],
    workflow: str,
    at: str,
    where: Sequence[str],
    error: str,
    limit: int,
    dry_run: bool,
    yes: bool,
) -> int:
    """Try record ID again where it stopped, or all records of a filter.

    Effects that were done are not done again: their receipts answer. With --from the step is entered anew, and its
    effects count anew.
    """
    filtered = bool(status or workflow or at or where or error)
    if record_id is not None and filtered:
        raise click.UsageError("give an ID or a filter, not both")
    if record_id is None and not filtered:
        raise click.UsageError("say which: an ID, or a filter like --status ERROR")
    if record_id is None and step:
        raise click.UsageError("--from takes one ID; a filter retries each record where it stopped")
    wanted = _pairs(where)

    async def one(client: Client) -> int:
        assert record_id is not None
        before = await client.get(record_id)
        if dry_run:
            session.out.say(f"would retry {record_id}, which is {before.status} at {before.step}")
            return Exit.OK
        record = await client.retry(record_id, step=step)
        session.out.acted(
            f"{record_id} was {before.status} at {before.step}; it is tried again at {record.step}",
            words.command("cancel", record_id),
            **words.record_json(record),
        )
        return Exit.OK

    async def many(client: Client) -> int:
        await check_names(client, workflow, at)
        chosen = await _chosen(client, status or (Status.ERROR,), workflow, at, wanted, error, limit)
        if dry_run or not chosen:
            for record in chosen:
                session.out.say(f"{record.record_id}  {record.status}  {record.step}  {record.last_error or ''}")
            session.out.say(f"{len(chosen)} records would be retried" if dry_run else "there is nothing to retry")
            return Exit.OK
        if session.out.terminal and not yes:
            click.confirm(f"retry {len(chosen)} records?", abort=True)
        return await _retried(session, client, chosen)

    return session.with_client(one if record_id is not None else many)


def _pairs(where: Sequence[str]) -> list[tuple[str, str]]:
    found = []
    for text in where:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise InputError(f"{text!r} is not a condition: write it like keyword=quires")
        found.append((name, value))
    return found


async def _chosen(
    client: Client,
    status: tuple[Status, ...],
    workflow: str,
    step: str,
    where: Sequence[tuple[str, str]],
    error: str,
    limit: int,
) -> list[Record]:
    wrong = [word for word in status if word not in (Status.ERROR, Status.CANCELLED)]
    if wrong:
        raise InputError(f"only ERROR and CANCELLED are retried, not {wrong[0]}")
    chosen: list[Record] = []
    after = ""
    while len(chosen) < limit:
        found = await client.find(workflow=workflow, step=step, status=status, after=after, limit=1000)
        if not found:
            break
        after = found[-1].record_id
        chosen += [record for record in found if _fits(record, where, error)]
    return chosen[:limit]


def _fits(record: Record, where: Iterable[tuple[str, str]], error: str) -> bool:
    if error and error not in (record.last_error or ""):
        return False
    data = parse(record.data) if where else {}
    return all(name in data and value in (data[name], _text(data[name])) for name, value in where)


def _text(value: Any) -> str:
    from quire.model.codec import dump

    return value if isinstance(value, str) else dump(value)


async def _retried(session: Session, client: Client, chosen: Sequence[Record]) -> int:
    done, refused = 0, 0
    for record in chosen:
        try:
            await client.retry(record.record_id)
            done += 1
        except QuireError as error:
            refused += 1
            session.out.say(f"{record.record_id}: {error}", colour="red")
    left = f"; {refused} were refused" if refused else ""
    session.out.acted(f"{done} records are tried again{left}", "", retried=done, refused=refused)
    return Exit.REFUSED if refused else Exit.OK


@verb("cancel", example='quire cancel kw_analytics --undo --reason "wrong client"')
@record_argument
@click.option("--undo", is_flag=True, help="Take back what it did.")
@_REASON
def cancel(session: Session, record_id: str, undo: bool, reason: str) -> None:
    """Cancel record ID. One that runs is asked to stop and does so at its next await."""
    session.with_client(lambda client: _cancelled(session, client, record_id, undo, reason))


@verb("undo", example="quire undo kw_analytics")
@record_argument
@_REASON
def undo(session: Session, record_id: str, reason: str) -> None:
    """Take back what record ID did, newest first, and end it as CANCELLED. Also for one that is DONE."""
    session.with_client(lambda client: _cancelled(session, client, record_id, True, reason))


async def _cancelled(session: Session, client: Client, record_id: str, undo: bool, reason: str) -> None:
    record = await client.cancel(record_id, undo=undo, reason=reason)
    back = words.command("retry", record_id, options="--from STEP" if undo else "")
    if record.status is Status.RUNNING:
        sentence = f"{record_id} is asked to stop; it runs until its next await"
    elif record.status is Status.NEEDS_APPROVAL:
        said = words.command("resolve", record_id, options="--happened | --not")
        sentence = f"{record_id} is {'undone' if undo else 'cancelled'} as soon as somebody says what happened ({said})"
    elif undo and record.status not in ENDED:
        sentence = f"{record_id} is cancelled as soon as a worker has undone what it did"
    else:
        sentence = f"cancelled {record_id}"
    session.out.acted(sentence, back, **words.record_json(record))


# -- orders --------------------------------------------------------------------------------------------------------

_WORKFLOW = click.argument(
    "workflow", required=False, default="", metavar="[WORKFLOW]", callback=named, shell_complete=workflows
)


def _what(workflow: str) -> str:
    return f"workflow {workflow!r}" if workflow else "the ledger"


def _ordered(session: Session, sentence: str, undo: str, standing: Standing) -> None:
    session.out.acted(sentence, undo, **words.standing_json(standing))


@verb("pause", example='quire pause --reason "provider is down"')
@_WORKFLOW
@_REASON
def pause(session: Session, workflow: str, reason: str) -> None:
    """Claim nothing more, of WORKFLOW or of all; what runs goes on to the end of its step."""

    async def work(client: Client) -> None:
        standing = await client.pause(workflow, reason=reason)
        back = words.command("resume", workflow)
        _ordered(session, f"paused {_what(workflow)}; what runs goes on to the end of its step", back, standing)

    session.with_client(work)


@verb(
    "resume",
    example="""
    quire resume
    quire resume seo_publish --cancelled
    """,
)
@_WORKFLOW
@click.option("--cancelled", is_flag=True, help="Records that the halt cancelled go on where they stood.")
def resume(session: Session, workflow: str, cancelled: bool) -> None:
    """End a pause or a halt, of WORKFLOW or of all."""

    async def work(client: Client) -> None:
        await _no_stop_file(session, client, workflow)
        standing = await client.resume(workflow, cancelled=cancelled)
        also = "" if standing.returned is None else f"; what the halt cancelled goes on: {_records(standing.returned)}"
        _ordered(session, f"resumed {_what(workflow)}{also}", words.command("pause", workflow), standing)
        if not cancelled and not session.json and (reach := await _reach(client, workflow)) and reach.held:
            back = words.command("resume", workflow, options="--cancelled")
            session.out.say(f"  {_records(reach.held)} that a halt cancelled stay so; {back} lets them go on")

    session.with_client(work)


def _records(count: int) -> str:
    return words.counted(count, "record")


async def _reach(client: Client, workflow: str) -> Reach | None:
    """Return what halts hold; None if the ledger does not answer now, for the order itself has landed."""
    try:
        return await client.reach(workflow)
    except LedgerUnavailable:
        return None


async def _no_stop_file(session: Session, client: Client, workflow: str) -> None:
    """A file named STOP halts again what is resumed under it: whoever resumes takes it away first."""
    from quire.surfaces.cli.keep.commands import opened_folder
    from quire.worker import stop_file as stopfile

    if not session.config.folder:
        return
    async with opened_folder(session, client.ledger) as folder:
        there = await stopfile.found(client.ledger, folder) if folder is not None else {}
    mine = [path for scope, path in there.items() if scope in (EVERYWHERE, workflow) or not workflow]
    if mine:
        raise IllegalMove(f"the file {mine[0]!r} in the folder {session.config.folder!r} halts it; take it away first")


async def _running(client: Client, workflow: str) -> list[str]:
    """The records whose steps a live worker still runs: a call of a model, for instance, until it is broken off."""
    now, workers = (await client.standing()).now, await client.workers()
    live = {worker.worker_id for worker in workers if alive(worker, now)}
    found = await client.find(workflow=workflow, status=Status.RUNNING, limit=1000)
    return [record.record_id for record in found if record.worker in live]


@verb("halt", example='quire halt --wait --reason "wrong prices"')
@_WORKFLOW
@_REASON
@click.option(
    "--wait", is_flag=True, help="Return when it is quiet: no step runs any more, and no effect is under way."
)
@click.option("--timeout", default="5m", show_default=True, metavar="SPAN", help="Wait no longer than this.")
def halt(session: Session, workflow: str, reason: str, wait: bool, timeout: str) -> int:
    """Stop everything, of WORKFLOW or of all, durably.

    When this returns no step, effect or record begins any more; waiting records are CANCELLED. What is under way at
    that moment is listed; --wait returns when that has ended too.
    """
    limit = seconds(timeout)

    async def work(client: Client) -> int:
        standing = await client.halt(workflow, reason=reason)
        if not session.json or not wait:
            _ordered(
                session,
                f"halted {_what(workflow)}; under way: {len(standing.under_way)}",
                words.command("resume", workflow, options="--cancelled"),
                standing,
            )
            for receipt in standing.under_way:
                session.out.say(f"  {receipt.record_id}: {receipt.name}")
            if not session.json and (reach := await _reach(client, workflow)):
                session.out.say(f"  {words.held_words(reach)}")
        if not wait:
            return Exit.OK
        end = client.clock.boottime() + limit
        running = await _running(client, workflow)
        while (standing.under_way or running) and client.clock.boottime() < end:
            await client.clock.sleep(0.1)
            standing, running = await client.standing(), await _running(client, workflow)
        quiet = not (standing.under_way or running)
        still = [f"{len(standing.under_way)} effects are under way"] if standing.under_way else []
        still += [f"{words.counted(len(running), 'step')} still running ({running[0]})"] if running else []
        text = "it is quiet" if quiet else f"not quiet after {timeout}: {', '.join(still)}"
        if session.json:
            session.out.emit({"quiet": quiet, "running": running, **words.standing_json(standing)})
        else:
            session.out.say(text)
        return Exit.OK if quiet else Exit.REFUSED

    return session.with_client(work)
