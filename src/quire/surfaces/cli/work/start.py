"""``quire start``: one record from the command line, or many from a file."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import click

from quire.client.arguments import checked_id
from quire.client.client import BATCH, Client
from quire.clock import SYSTEM, new_record_id, seconds
from quire.errors import Halted, InputError, Moved, NotFound, did_you_mean
from quire.explain import words
from quire.ledger import engine
from quire.ledger.definition import Mould
from quire.model.change import Applied, Refused
from quire.model.record import MOST_PRIORITY, Record
from quire.surfaces.cli import values
from quire.surfaces.cli.command import Exit, Session, verb
from quire.surfaces.cli.completing import workflows
from quire.surfaces.cli.flows import load_flows
from quire.surfaces.cli.run.up import flow_files
from quire.surfaces.cli.work import incoming
from quire.surfaces.cli.work.following import follow as follow_record
from quire.surfaces.config import ledger_there

#: How many bad lines are shown one by one.
_SHOWN = 20


@verb(
    "start",
    example="""
    quire start seo_publish keyword="analytics dashboard" --id kw_analytics
    quire start seo_publish --data @article.json --follow
    quire start seo_publish --from keywords.csv --all-or-none
    """,
)
@click.argument("workflow", shell_complete=workflows)
@click.argument("fields", nargs=-1, metavar="[K=V]...")
@click.option("--data", metavar="JSON|@FILE|-", help="The data as JSON, from a file, or from standard input.")
@click.option(
    "--id", "record_id", metavar="ID", help="The record's id; the same id with the same data starts nothing new."
)
@click.option("--after", metavar="SPAN", help="Not before this span has passed, like 90s, 5m, 3d.")
@click.option(
    "--priority",
    type=click.IntRange(-MOST_PRIORITY, MOST_PRIORITY),
    default=0,
    show_default=True,
    help="A point is worth a minute of waiting.",
)
@click.option("--follow", is_flag=True, help="Wait until it ends, or waits for a person.")
@click.option("--from", "source", metavar="FILE|-", help="Start one record for each line of a CSV or JSONL file.")
@click.option(
    "--format", "form", type=click.Choice(["csv", "jsonl"]), help="What the file is; its name says so otherwise."
)
@click.option("--id-field", metavar="NAME", help="The column that holds the ids; otherwise record_id, if there is one.")
@click.option("--all-or-none", is_flag=True, help="Start nothing if any line is bad.")
def start(
    session: Session,
    workflow: str,
    fields: Sequence[str],
    data: str | None,
    record_id: str | None,
    after: str | None,
    priority: int,
    follow: bool,
    source: str | None,
    form: str | None,
    id_field: str | None,
    all_or_none: bool,
) -> int:
    """Start a record of WORKFLOW, or many.

    Data is given as fields (keyword=quires; count:=3 for JSON), by --data, or for many records by --from. It is
    checked against the workflow as it was registered by the last worker. Only before the first worker has run, the
    flow files of quire.toml are read for it.

    With --follow the exit code tells how it ended: 0 DONE, 5 ERROR, 6 CANCELLED, 7 it waits for a person.
    """
    if after is not None:
        seconds(after)
    if source is None:
        if form or id_field or all_or_none:
            raise click.UsageError("--format, --id-field and --all-or-none go with --from")
        return _with_workflow(
            session,
            workflow,
            lambda client: _one(session, client, workflow, fields, data, record_id, after, priority, follow),
        )
    if fields or data is not None or record_id is not None or follow:
        raise click.UsageError("--from takes its data from the file: leave out fields, --data, --id and --follow")
    many = _Many(session, workflow, source, form, id_field, all_or_none, after, priority)
    return _with_workflow(session, workflow, many.start)


def _with_workflow(session: Session, workflow: str, work: Callable[[Client], Coroutine[Any, Any, int]]) -> int:
    """Do this with a client whose ledger knows the workflow, as far as a worker or the flow files here tell of it."""

    async def inside() -> int:
        if ledger_there(session.config.ledger):
            async with session.client() as client:
                if await client.ledger.setting(engine.DEFINITION + workflow) is not None:
                    return await work(client)
        known = load_flows(files) if (files := flow_files(session, ())) else []
        if known and workflow not in (names := [flow.name for flow in known]):
            raise NotFound(f"there is no workflow {workflow!r} in this ledger{did_you_mean(workflow, names)}")
        async with session.client(make=bool(known), workflows=known) as client:
            return await work(client)

    return session.run(inside())


async def _one(
    session: Session,
    client: Client,
    workflow: str,
    fields: Sequence[str],
    data: str | None,
    record_id: str | None,
    after: str | None,
    priority: int,
    follow: bool,
) -> int:
    definition = await engine.definition(client.ledger, workflow)
    item = values.given(data, fields, definition.get("schema"))
    handle = await client.start(workflow, item, id=record_id, after=after, priority=priority)
    record = await handle.record()
    out = session.out
    if not session.json or not follow:
        out.acted(
            f"started {record.record_id} of {workflow} at step {record.step}"
            if record.version == 1
            else f"{record.record_id} was started before; it is {record.status}",
            words.command("cancel", record.record_id),
            **words.record_json(record),
        )
    if follow:
        return await follow_record(session, client, record.record_id)
    if not session.json:
        out.say(f"  next: {words.command('why', record.record_id)}", dim=True)
    return Exit.OK


class _Bad(NamedTuple):
    line: int
    problem: str


class _Many:
    """One record for each line of a file."""

    def __init__(
        self,
        session: Session,
        workflow: str,
        source: str,
        form: str | None,
        id_field: str | None,
        all_or_none: bool,
        after: str | None,
        priority: int,
    ) -> None:
        self.session = session
        self.workflow = workflow
        self.source = source
        self.form = form
        self.id_field = id_field
        self.all_or_none = all_or_none
        self.after = after
        self.priority = priority
        self.bad: list[_Bad] = []
        self.started = 0
        self.again = 0

    async def start(self, client: Client) -> int:
        definition = await engine.definition(client.ledger, self.workflow)
        now = await client.ledger.now()
        due_at = None if self.after is None else now + seconds(self.after)
        with incoming.opened(self.source) as file:
            form = incoming.format_of(self.source, self.form)
            found = self._records(
                incoming.rows(file, form, definition.get("schema"), self.id_field), definition, now, due_at
            )
            if self.all_or_none:
                records = list(found)
                await self._clashes(client, records)
                if self.bad:
                    return self._say_result(0)
                self._check_size(client, len(records))
                found = iter(records)
            total = incoming.count_lines(self.source)
            with _progress(self.session, total) as progress:
                try:
                    await self._all(client, found, progress)
                except asyncio.CancelledError:
                    self.session.out.note(f"{self.started} records were started before it was stopped")
                    raise
        return self._say_result(self.started)

    async def _all(self, client: Client, found: Iterator[tuple[int, Record]], progress: Callable[[int], None]) -> None:
        """Commit in batches; while one is under way the next is read and checked.

        All or none is one commit: whoever kills this process, or pulls the plug, finds every record or not one.
        """
        size = None if self.all_or_none else client.ledger.traits.batch_changes
        batch = list(islice(found, size))
        while batch:
            committing = asyncio.ensure_future(self._commit(client, batch))
            try:
                await asyncio.wait({committing}, timeout=0)  # it begins, and works in the ledger's thread
                following = list(islice(found, size))
                await asyncio.shield(committing)
            except asyncio.CancelledError:
                await committing  # it cannot be called back: whoever stops this hears how many were started
                raise
            progress(len(batch))
            batch = following

    def _records(
        self, rows: Iterator[incoming.Row], definition: dict[str, Any], now: float, due_at: float | None
    ) -> Iterator[tuple[int, Record]]:
        mould = Mould(definition, now, due_at, self.priority)
        for row in rows:
            if row.problem:
                self.bad.append(_Bad(row.line, row.problem))
                continue
            record_id = row.record_id if row.record_id is not None else new_record_id(f"{self.workflow}_", SYSTEM.now())
            try:
                yield row.line, mould.record(checked_id(record_id), row.data, "")
            except InputError as error:
                self.bad.append(_Bad(row.line, str(error)))

    def _check_size(self, client: Client, count: int) -> None:
        most = client.ledger.traits.one_commit
        if most is not None and count > most:
            raise InputError(
                f"this ledger takes at most {most} records in one commit, and --all-or-none of {count} lines is one; "
                "split the file, or leave --all-or-none out: the same ids again start nothing new"
            )

    async def _clashes(self, client: Client, records: list[tuple[int, Record]]) -> None:
        """What would be refused: ids that exist with other data, in the ledger or in the file itself."""
        seen: dict[str, str] = {}
        for place in range(0, len(records), BATCH):
            part = records[place : place + BATCH]
            there = {row.record_id: row for row in await client.ledger.load([record.record_id for _, record in part])}
            for line, record in part:
                known = there.get(record.record_id)
                first = seen.setdefault(record.record_id, record.started_as)
                if (known is not None and known.started_as != record.started_as) or first != record.started_as:
                    self.bad.append(_Bad(line, f"a record {record.record_id!r} exists already with other data"))
        self.bad.sort()

    async def _commit(self, client: Client, batch: list[tuple[int, Record]]) -> None:
        verdicts = await client.start_records([record for _, record in batch], whole=self.all_or_none)
        for (line, _), verdict in zip(batch, verdicts, strict=True):
            match verdict:
                case Applied(again=again):
                    self.again += again
                    self.started += not again
                case Refused(code="whole"):
                    pass  # the line is good; another one was refused at this very moment
                case Refused(code="halted", reason=reason):
                    raise Halted(f"{reason}; {self.started} records had been started before line {line}")
                case Refused(code="sealed", reason=reason):
                    raise Moved(reason)
                case Refused(reason=reason):
                    self.bad.append(_Bad(line, reason))
                case _:
                    self.bad.append(_Bad(line, "its record changed at this very moment"))

    def _say_result(self, started: int) -> int:
        out = self.session.out
        self.bad.sort()
        if out.json:
            for line, problem in self.bad:
                out.emit({"line": line, "problem": problem})
            out.emit({"started": started, "again": self.again, "bad": len(self.bad)})
            return Exit.BAD_INPUT if self.bad else Exit.OK
        for line, problem in self.bad[:_SHOWN]:
            out.say(f"line {line}: {problem}", colour="red")
        if len(self.bad) > _SHOWN:
            out.say(f"… and {len(self.bad) - _SHOWN} more bad lines", colour="red")
        if self.bad and self.all_or_none:
            out.say(f"nothing was started: {len(self.bad)} of the lines are bad")
            return Exit.BAD_INPUT
        again = f"; {self.again} had been started before" if self.again else ""
        bad = f"; {words.counted(len(self.bad), 'line was', 'lines were')} bad and left out" if self.bad else ""
        out.say(f"started {words.counted(started, 'record')} of {self.workflow}{again}{bad}")
        out.say(f"  next: quire list --workflow {self.workflow}", dim=True)
        return Exit.BAD_INPUT if self.bad else Exit.OK


class _progress:  # noqa: N801 - used like a function
    """A bar on a terminal; nothing elsewhere."""

    def __init__(self, session: Session, total: int | None) -> None:
        self.shown = session.out.terminal
        self.total = total
        self.bar: Any = None

    def __enter__(self) -> Any:
        if not self.shown:
            return lambda count: None
        self.bar = click.progressbar(length=self.total or 0, label="starting", show_pos=True)
        self.bar.__enter__()
        return self.bar.update

    def __exit__(self, *exc: object) -> None:
        if self.bar is not None:
            self.bar.__exit__(None, None, None)
