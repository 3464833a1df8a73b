"""``quire report``: where the time of a record went, as a table."""

from __future__ import annotations

from quire.client.client import Client
from quire.clock import iso
from quire.explain import words as telling
from quire.explain.report import Report, report_json, report_of
from quire.model.change import Query
from quire.surfaces.cli.command import Session, record_argument, verb

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
        _told_report(session, made)

    session.with_client(work)


def _told_report(session: Session, made: Report) -> None:
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
