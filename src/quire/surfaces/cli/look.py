"""``quire list``, ``show``, ``why``, ``watch``, ``logs``, ``diff``, ``graph``, ``report``: looking only."""

from __future__ import annotations

import difflib
import json
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import click

from quire.clock import iso, seconds
from quire.errors import InputError, NotFound, did_you_mean
from quire.model.change import Query
from quire.model.codec import parse
from quire.model.event import Event
from quire.model.record import ENDED, Record, Status
from quire.model.side import EVERYWHERE
from quire.model.wait import On, load_waits
from quire.runtime import engine
from quire.surfaces import telling
from quire.surfaces.cli.command import Exit, Session, named, record_argument, verb, workflow_option
from quire.surfaces.cli.completing import records, steps
from quire.surfaces.cli.completing import workflows as complete_workflows
from quire.surfaces.cli.output import on_one_line
from quire.surfaces.cli.people import for_me
from quire.surfaces.client import Client

_COLUMNS = ("record_id", "status", "next_step", "workflow", "updated_at", "about")


def statuses(ctx: click.Context, param: click.Parameter, words: Sequence[str]) -> tuple[Status, ...]:
    """The statuses named, in any case, one or several with commas."""
    found = []
    for word in (part.strip() for text in words for part in text.split(",")):
        name = word.upper().replace("-", "_")
        if name not in Status.__members__:
            raise click.BadParameter(f"{word!r} is no status{did_you_mean(name, Status.__members__)}", ctx, param)
        found.append(Status(name))
    return tuple(dict.fromkeys(found))


def _status_words(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    return [word for word in Status.__members__ if word.startswith(incomplete.upper())]


# -- the ledger as a whole ---------------------------------------------------------------------------------------


@verb("overview", example="quire")
def overview(session: Session) -> int:
    """How the ledger stands, in five lines, and what to type next."""
    from quire.surfaces.config import concealed, sqlite_path

    path = sqlite_path(session.config.ledger)
    if path is not None and not Path(path).is_file():
        if session.json:
            session.out.emit({"ledger": session.config.ledger, "exists": False})
        else:
            session.out.say(f"There is no ledger at {path} yet.")
            begin = "quire up" if session.config.flows else "quire init"
            session.out.say(f"  next: {begin}          (quire demo shows it at work, quire --help lists all commands)")
        return Exit.OK

    async def work(client: Client) -> None:
        standing = await client.standing()
        counts = await client.counts()
        workers = await client.workers()
        totals: Counter[Status] = Counter()
        for count in counts:
            totals[count.status] += count.count
        live = [worker for worker in workers if telling.alive(worker, standing.now)]
        if session.json:
            session.out.emit(
                {
                    "ledger": concealed(client.ledger.url),
                    "exists": True,
                    "records": {str(status): totals[status] for status in Status},
                    "workers": len(live),
                    **telling.standing_json(standing),
                }
            )
            return
        out = session.out
        out.say(f"ledger   {concealed(client.ledger.url)}")
        flows = len({count.workflow for count in counts})
        out.say(f"records  {sum(totals.values())} of {flows} workflows: " + (_totals(totals) or "none yet"))
        stands = _stands(standing)
        out.say(f"workers  {len(live)} alive; the ledger is {stands}", colour=None if stands == "open" else "yellow")
        waiting = totals[Status.NEEDS_APPROVAL]
        out.say(f"people   {waiting} records wait for somebody, {totals[Status.ERROR]} stopped in ERROR")
        out.say(f"  next: {_next(totals, live, stands)}", bold=True)

    session.with_client(work)
    return Exit.OK


def _totals(totals: Counter[Status]) -> str:
    return ", ".join(f"{totals[status]} {status}" for status in Status if totals[status] > 0)


def _stands(standing: Any) -> str:
    if standing.sealed:
        return f"sealed (its records are at {standing.sealed})"
    for word in ("halted", "paused"):
        held = [control for control in standing.controls if getattr(control, word)]
        if held:
            scopes = [control.scope for control in held]
            told = word if EVERYWHERE in scopes else f"{word} for {', '.join(scopes)}"
            by = next((control for control in held if control.scope == EVERYWHERE), held[0])
            told += f" by {by.by}" if by.by else ""
            return f"{told}: {by.reason}" if by.reason else told
    return "open"


def _next(totals: Counter[Status], live: Sequence[Any], stands: str) -> str:
    if stands.startswith(("halted", "paused")):
        return "quire resume"
    if totals[Status.NEEDS_APPROVAL]:
        return "quire list --needs-me"
    if totals[Status.ERROR]:
        return "quire list --status ERROR"
    if not live and any(totals[status] > 0 for status in Status if status not in ENDED):
        return "quire up"
    return "quire watch" if live else "quire start WORKFLOW key=value"


# -- list ----------------------------------------------------------------------------------------------------------


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


def row_of(record: Record) -> tuple[str, ...]:
    """A record as one row of a table."""
    updated = iso(record.updated_at)[:19].replace("T", " ") + "Z"
    return (
        record.record_id,
        str(record.status),
        record.step,
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
    live = [worker for worker in workers if telling.alive(worker, standing.now)]
    held = {worker.worker_id for worker in live}
    for record in await client.find(workflow=workflow, status=(Status.NEEDS_APPROVAL,), limit=10_000):
        if any(wait.on is On.DOUBT for wait in load_waits(record.waits)):
            yield record, "doubt"
    for record in await client.find(workflow=workflow, status=(Status.RUNNING,), limit=10_000):
        if record.worker not in held:
            yield record, "its worker is lost"
    known = {tuple(pair) for worker in live for pair in parse(worker.knows)}
    for count in await client.counts():
        at = (count.workflow, count.step)
        if count.status is not Status.PENDING or at in known or (workflow and count.workflow != workflow):
            continue
        for record in await client.find(
            workflow=count.workflow, step=count.step, status=(Status.PENDING,), limit=limit
        ):
            if record.due_at is not None and record.due_at <= standing.now:
                yield record, "no live worker knows its step" if live else "no worker is alive"


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
    stuck: bool,
    limit: int,
) -> None:
    """List records, the latest first. TEXT is a part of their id."""

    async def work(client: Client) -> None:
        await _check_names(client, workflow, step)
        if stuck:
            found: list[tuple[Record, str]] = []
            async for pair in _stuck(client, workflow, limit):
                found.append(pair)
                if len(found) == limit:
                    break
            if session.json:
                for record, reason in found:
                    session.out.emit({**telling.record_json(record), "stuck": reason})
                return
            rows = [(*row_of(record)[:-1], f"{reason}: {row_of(record)[-1]}".rstrip(": ")) for record, reason in found]
            _table(session, rows, "nothing is stuck")
            return
        if needs_me:
            config = session.config
            asked = await client.find(
                workflow=workflow, step=step, status=(Status.NEEDS_APPROVAL,), text=text, limit=100_000, order="updated"
            )
            chosen = [record for record in asked if for_me(record, config.who, config.groups)][:limit]
        else:
            chosen = await client.find(
                workflow=workflow, step=step, status=status, parent_id=parent, text=text, limit=limit, order="updated"
            )
        if session.json:
            for record in chosen:
                session.out.emit(telling.record_json(record))
            return
        _table(session, [row_of(record) for record in chosen], "nothing waits for you" if needs_me else "no records")
        if needs_me and chosen:
            first = chosen[0].record_id
            session.out.note(f"next: {telling.command('show', first)}, then {telling.command('approve', first)}")
        elif len(chosen) == limit:
            session.out.note(f"only the latest {limit} are shown (--limit)")

    session.with_client(work)


def _table(session: Session, rows: Sequence[Sequence[str]], nothing: str) -> None:
    if rows:
        session.out.table(_COLUMNS, rows)
    else:
        session.out.note(nothing)


async def _check_names(client: Client, workflow: str, step: str) -> None:
    """A misspelt workflow or step is told, not answered with an empty list."""
    if workflow:
        definition = await engine.definition(client.ledger, workflow)
        names = [row["name"] for row in definition["steps"]]
        if step and step not in names and step != "@undo" and not await client.find(step=step, limit=1):
            raise NotFound(f"{workflow!r} has no step {step!r}{did_you_mean(step, names)}")


# -- one record ----------------------------------------------------------------------------------------------------


@verb("show", example="quire show kw_analytics")
@record_argument
@click.option("--all", "all_", is_flag=True, help="The whole timeline, all receipts and children.")
def show(session: Session, record_id: str, all_: bool) -> None:
    """Show everything about record ID: where it stands, its question, timeline, receipts and children."""

    async def work(client: Client) -> None:
        record = await client.get(record_id)
        told = telling.why(record, await telling.around(client.ledger, record))
        events = await client.events(record_id, limit=1_000_000 if all_ or session.json else 10_000)
        receipts = await client.ledger.receipts(record_ids=[record_id])
        signals = await client.ledger.signals(record_id)
        fanins = await client.ledger.fanins(record_id)
        children = []
        if record.fanouts:
            query = Query(parent_id=record_id, order="place", limit=100_000 if all_ or session.json else 20)
            children = await client.ledger.find(query)
        if session.json:
            session.out.emit(
                telling.record_json(record)
                | {
                    "why": told.sentence,
                    "events": [telling.event_json(event) for event in events],
                    "receipts": [telling.receipt_json(receipt) for receipt in receipts],
                    "signals": [telling.signal_json(signal) for signal in signals],
                    "children": [
                        {"record_id": child.record_id, "status": str(child.status), "next_step": child.step}
                        for child in children
                    ],
                }
            )
            return
        out = session.out
        out.say(f"{record.record_id}   {record.status}   {record.workflow} at {record.step or '(ended)'}", bold=True)
        out.say(told.sentence)
        _question(session, record)
        out.say()
        out.say("data      " + _json(record.data))
        if record.result is not None:
            out.say("result    " + _json(record.result))
        for word, value in (("note", record.note), ("error", record.last_error), ("parent", record.parent_id)):
            if value:
                out.say(f"{word:<9} {value}")
        out.say(
            f"version   {record.version}   visit {record.visit}   attempt {record.attempt}   priority {record.priority}"
        )
        out.say()
        shown = events if all_ else events[-30:]
        if len(shown) < len(events):
            out.say(f"… {len(events) - len(shown)} earlier lines (--all shows them)", dim=True)
        for event in shown:
            out.say(f"  {iso(event.at)[:19].replace('T', ' ')}Z  v{event.version:<4} {telling.line(event)}")
        if receipts:
            out.say()
            some = receipts if all_ else receipts[-20:]
            rows = [
                (
                    r.name,
                    r.kind,
                    r.stage,
                    f"{r.step}/{r.visit}",
                    iso(r.done_at or r.at)[11:19],
                    on_one_line(r.value, 60),
                )
                for r in some
            ]
            out.table(("receipt", "kind", "stage", "step", "at", "value"), rows)
        for fanin in fanins:
            text = f"children  {fanin.total} in fan-out {fanin.generation}: {fanin.left} open, {fanin.failed} failed"
            out.say(text + (", left behind" if fanin.abandoned else ""))
        if children:
            out.table(("child", "status", "next_step"), [(c.record_id, c.status, c.step) for c in children])

    session.with_client(work)


def _question(session: Session, record: Record) -> None:
    if record.status is not Status.NEEDS_APPROVAL:
        return
    out = session.out
    for wait in load_waits(record.waits):
        about = wait.about or {}
        if wait.on not in (On.QUESTION, On.DOUBT):
            continue
        out.say()
        out.say(f"question  {about.get('text', '')}", colour="yellow", bold=True)
        if about.get("show") is not None:
            shown = about["show"] if isinstance(about["show"], str) else json.dumps(about["show"], ensure_ascii=False)
            out.say(f"shown     {shown}")
        out.say(
            f"choices   {' | '.join(about.get('choices', []))}"
            + (f"   may edit {', '.join(about['edit'])}" if about.get("edit") else "")
        )
        if wait.on is On.QUESTION:
            out.say(f"hash      {wait.name}")


def _json(text: str) -> str:
    value = json.dumps(parse(text), ensure_ascii=False)
    return value if len(value) <= 2000 else value[:2000] + f"… ({len(value):,} characters; --json shows all)"


@verb("why", example="quire why kw_analytics")
@record_argument
def why(session: Session, record_id: str) -> None:
    """Say in one sentence what record ID waits for, until when, and who can change it."""

    async def work(client: Client) -> None:
        record = await client.get(record_id)
        told = telling.why(record, await telling.around(client.ledger, record))
        if session.json:
            session.out.emit(
                {
                    "record_id": record_id,
                    "status": str(record.status),
                    "why": told.sentence,
                    "kind": told.kind,
                    "until": iso(told.until) or None,
                    "remedy": told.remedy or None,
                }
            )
        else:
            session.out.say(told.sentence)

    session.with_client(work)


# -- the log -------------------------------------------------------------------------------------------------------


async def last_seq(client: Client) -> int:
    """The place of the newest line of the ledger's log, found by halving."""
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
@click.option("--lines", "-n", type=click.IntRange(0), default=50, show_default=True, help="The last so many.")
@click.option("--kind", default="", metavar="WORD", help="Only lines of this kind, like failed or answered.")
def logs(session: Session, record_id: str, follow: bool, lines: int, kind: str) -> None:
    """Read the log of record ID, or of the whole ledger."""

    def tell(events: Sequence[Event]) -> None:
        for event in events:
            if kind and event.kind != kind:
                continue
            if session.json:
                session.out.emit(telling.event_json(event))
            else:
                name = "" if record_id else f"{event.record_id}  "
                session.out.say(f"{iso(event.at)[:23].replace('T', ' ')}Z  {name}{telling.line(event)}")

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
@click.option("--every", default="1s", show_default=True, metavar="SPAN", help="How often to look.")
@click.option("--for", "span", metavar="SPAN", help="End after this span.")
def watch(session: Session, workflow: str, every: str, span: str | None) -> None:
    """Watch the ledger move: records by step and status, and the newest lines of the log."""
    pause, end = seconds(every), None if span is None else seconds(span)
    if pause < 0.05:
        raise InputError("--every must be at least 50ms")

    async def work(client: Client) -> None:
        from quire.surfaces.cli.watching import Watching

        await _check_names(client, workflow, "")
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


# -- diff ----------------------------------------------------------------------------------------------------------


@verb("diff", example="quire diff kw_analytics 3 7")
@record_argument
@click.argument("first", type=click.IntRange(0), required=False)
@click.argument("second", type=click.IntRange(0), required=False)
def diff(session: Session, record_id: str, first: int | None, second: int | None) -> None:
    """Show what changed between two versions of record ID; without them, what its present step has changed.

    The log tells each change; the ledger keeps the data as it is now and as it was when the present step began, so only
    these two are compared field by field.
    """

    async def work(client: Client) -> None:
        record = await client.get(record_id)
        low, high = (first or 0, second if second is not None else record.version)
        if low > high:
            low, high = high, low
        if high > record.version:
            raise InputError(f"{record_id!r} has no version {high}: it is at version {record.version}")
        events = [e for e in await client.events(record_id, limit=1_000_000) if low < e.version <= high]
        changes = _data_changes(record)
        if session.json:
            session.out.emit(
                {
                    "record_id": record_id,
                    "from": low,
                    "to": high,
                    "events": [telling.event_json(event) for event in events],
                    "data_since_entry": changes,
                    "compared": "data as at entry of the present step with data as it is now",
                }
            )
            return
        out = session.out
        out.say(f"{record_id}: version {low} to {high}, by the log", bold=True)
        for event in events:
            told = parse(event.body)
            out.say(f"  v{event.version:<4} {iso(event.at)[:19].replace('T', ' ')}Z  {telling.line(event)}")
            for name, value in (told.get("edits") or {}).items():
                out.say(f"         {name} = {json.dumps(value, ensure_ascii=False)}", colour="green")
        if not events:
            out.say("  nothing")
        out.say()
        if record.entry is None:
            out.say(
                f"data: unchanged since the step {record.step or '(ended)'} began; older data is not kept", dim=True
            )
            return
        out.say(f"data: since the step {record.step} began", bold=True)
        before = json.dumps(parse(record.entry), indent=2, ensure_ascii=False, sort_keys=True).splitlines()
        after = json.dumps(parse(record.data), indent=2, ensure_ascii=False, sort_keys=True).splitlines()
        for text in difflib.unified_diff(before, after, "as the step began", "now", lineterm="", n=1):
            out.say(text, colour={"+": "green", "-": "red"}.get(text[:1]))

    session.with_client(work)


def _data_changes(record: Record) -> dict[str, Any]:
    if record.entry is None:
        return {}
    before, after = parse(record.entry), parse(record.data)
    names = [*before, *(name for name in after if name not in before)]
    return {
        name: {"before": before.get(name), "after": after.get(name)}
        for name in names
        if before.get(name) != after.get(name) or (name in before) != (name in after)
    }


# -- graph and report ----------------------------------------------------------------------------------------------


@verb(
    "graph",
    example="""
    quire graph seo_publish
    quire graph seo_publish --format svg --to seo_publish.svg
    """,
)
@click.argument("workflow", required=False, default="", callback=named, shell_complete=complete_workflows)
@click.option(
    "--format", "form", type=click.Choice(["terminal", "mermaid", "svg"]), default="terminal", show_default=True
)
@click.option("--to", "target", type=click.Path(dir_okay=False), help="Write it to this file.")
@click.option("--no-counts", is_flag=True, help="Only the machine, without its records.")
def graph(session: Session, workflow: str, form: str, target: str | None, no_counts: bool) -> None:
    """Draw WORKFLOW, or all of them, with the records at each step."""
    from quire.machine import drawing

    async def work(client: Client) -> None:
        if workflow:
            chosen = [await engine.definition(client.ledger, workflow)]
        else:
            chosen = await engine.definitions(client.ledger)
        if not chosen:
            raise NotFound("no workflow is registered in this ledger; quire up registers those of your flow files")
        if form == "svg" and len(chosen) > 1:
            names = ", ".join(row["name"] for row in chosen)
            raise InputError(f"an SVG shows one workflow; name one of {names}")
        counts = [] if no_counts else await client.counts()
        texts = []
        for definition in chosen:
            mine = {
                (count.step, str(count.status)): count.count for count in counts if count.workflow == definition["name"]
            }
            if session.json:
                rows = [{"step": step, "status": status, "count": count} for (step, status), count in mine.items()]
                session.out.emit({"definition": definition, "counts": rows})
                continue
            texts.append(getattr(drawing, form)(definition, mine))
        if not texts:
            return
        text = "\n".join(texts)
        if target is not None:
            _write(Path(target), text)
            session.out.say(f"wrote {target}")
        else:
            click.echo(text)

    session.with_client(work)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be written: {error}") from error


#: The logs of so many children are read for a report.
_CHILDREN = 5000


@verb("report", example="quire report mission_7")
@record_argument
def report(session: Session, record_id: str) -> None:
    """Compute times of record ID from its log and its children's.

    Wall time from the first start to the last end, how many children ran at once, the time at each step, and how long
    each claim came after the record was due (a hop).
    """

    async def work(client: Client) -> None:
        await client.get(record_id)
        events = await client.events(record_id, limit=1_000_000)
        children = await client.ledger.find(Query(parent_id=record_id, order="place", limit=_CHILDREN))
        logs_ = [await client.events(child.record_id, limit=100_000) for child in children]
        made = telling.report(events, logs_, await client.ledger.now())
        if session.json:
            session.out.emit(telling.report_json(made))
            return
        _told_report(session, made)

    session.with_client(work)


def _told_report(session: Session, made: telling.Report) -> None:
    out = session.out
    if made.wall is None:
        out.say(f"{made.record_id} has not been claimed yet")
        return
    state = "" if made.ended_at is not None else " so far"
    out.say(f"{made.record_id}: {telling.span(made.wall)} from first start to last end{state}", bold=True)
    rows = [
        (
            row.step,
            iso(row.entered_at)[11:23],
            iso(row.left_at)[11:23] if row.left_at is not None else "",
            telling.span(row.running),
            telling.span(max(0.0, (row.left_at or row.entered_at) - row.entered_at - row.running)),
            row.tries,
        )
        for row in made.steps
    ]
    out.table(("step", "entered", "left", "running", "waiting", "claims"), rows)
    hops = sorted(made.hops)
    if hops:
        median, most = telling.span(hops[len(hops) // 2]), telling.span(hops[-1])
        out.say(f"hops      {len(hops)}: median {median}, longest {most}")
    out.say(f"running   {telling.span(made.running)} in its own steps")
    if made.children:
        out.say(
            f"children  {made.children}: {telling.span(made.children_running)} of running, "
            f"{made.overlap} at once at the most"
        )
