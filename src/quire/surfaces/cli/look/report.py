"""``quire report`` and ``quire postmortem``: where the time of a record went, and all that is known about it."""

from __future__ import annotations

from pathlib import Path

import click

from quire.client.client import Client
from quire.clock import iso
from quire.errors import AlreadyExists, InputError
from quire.explain import words
from quire.explain.postmortem import postmortem as page_of
from quire.explain.report import Report, report_json, report_of
from quire.explain.why import around, why_of
from quire.folder.base import Folder
from quire.model.change import Query
from quire.model.event import Event
from quire.model.receipt import Receipt
from quire.model.record import Record
from quire.surfaces.cli.command import Session, record_argument, verb
from quire.surfaces.cli.keep.commands import opened_folder

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
        made = report_of(events, logs_, await client.ledger.now())
        if session.json:
            session.out.emit(report_json(made))
            return
        _print_report(session, made)

    session.with_client(work)


def _print_report(session: Session, made: Report) -> None:
    out = session.out
    if made.wall is None:
        out.say(f"{made.record_id} has not been claimed yet")
        return
    state = "" if made.ended_at is not None else " so far"
    out.say(f"{made.record_id}: {words.span(made.wall)} from first start to last end{state}", bold=True)
    rows = [
        (
            row.step,
            iso(row.entered_at)[11:23],
            iso(row.left_at)[11:23] if row.left_at is not None else "",
            words.span(row.running),
            words.span(max(0.0, (row.left_at or row.entered_at) - row.entered_at - row.running)),
            row.tries,
        )
        for row in made.steps
    ]
    out.table(("step", "entered", "left", "running", "waiting", "claims"), rows)
    hops = sorted(made.hops)
    if hops:
        median, most = words.span(hops[len(hops) // 2]), words.span(hops[-1])
        out.say(f"hops      {len(hops)}: median {median}, longest {most}")
    out.say(f"running   {words.span(made.running)} in its own steps")
    if made.children:
        out.say(
            f"children  {made.children}: {words.span(made.children_running)} of running, "
            f"{made.overlap} at once at the most"
        )


@verb(
    "postmortem",
    example="""
    quire postmortem inv_17
    quire postmortem inv_17 --to inv-17.md
    """,
)
@record_argument
@click.option("--to", "target", metavar="FILE", help="Write the page to this new file instead of printing it.")
@click.option("--folder", "directory", metavar="DIR", help="The folder, instead of the configured one.")
def postmortem(session: Session, record_id: str, target: str | None, directory: str | None) -> None:
    """Write all that is known about record ID as one page of Markdown.

    The page shows why the record stands where it stands, its data, every failed try with its trace, its log, effects
    and children, and where the folder keeps its files.
    """
    if target is not None and Path(target).exists():
        raise AlreadyExists(f"{target!r} is there already; name a new file")

    async def work(client: Client) -> tuple[str, list[str]]:
        shown = await client.show(record_id)
        record = shown.record
        why = why_of(record, await around(client.ledger, record, groups=session.config.groups))
        async with opened_folder(session, client.ledger, directory) as folder:
            files = None if folder is None else await _files(folder, record, shown.events, shown.receipts)
        link = words.record_link(session.config.public_url, record_id)
        page = page_of(record, why.sentence, shown.events, shown.receipts, shown.children, files=files, link=link)
        return page, list(files or ())

    page, files = session.with_client(work)
    if target is not None:
        try:
            Path(target).write_text(page, encoding="utf-8", errors="surrogatepass")
        except OSError as error:
            raise InputError(f"{target!r} cannot be written: {error.strerror or error}") from error
    if session.json:
        session.out.emit({"record_id": record_id, "page": page, "files": files, "to": target})
    elif target is not None:
        session.out.say(f"wrote {target}")
    else:
        click.echo(page, nl=False)


async def _files(folder: Folder, record: Record, events: list[Event], receipts: list[Receipt]) -> dict[str, str]:
    """Return the files of the folder that tell of the record: where each is, and what it is."""
    layout = folder.layout(record.workflow)
    there = set(await folder.paths(layout.base))
    began: dict[str, float] = {}
    for event in events:
        if event.run_id:
            began.setdefault(event.run_id, event.at)
    wanted = {layout.state(record.record_id): "state"}
    wanted |= {layout.log(run_id, at): f"log of {run_id}" for run_id, at in began.items()}
    for receipt in receipts:
        for path in (layout.receipt(record.record_id, receipt.step), layout.receipt_beside(receipt)):
            wanted[path] = f"receipt of {receipt.name}"
    own = f"/{folder.names.encode(record.record_id)}/"
    wanted |= {
        path: "artifact" for path in sorted(there) if path.startswith(f"{layout.base}/artifacts/") and own in path
    }
    return {folder.link(path): what for path, what in wanted.items() if path in there}
