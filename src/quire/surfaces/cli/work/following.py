"""Following a record: its log as it comes, until it ends or waits for a person."""

from __future__ import annotations

from quire.client.client import Client
from quire.clock import iso
from quire.explain import words
from quire.explain.why import around, why_of
from quire.model.record import Record, Status
from quire.model.wait import On, load_waits
from quire.surfaces.cli.command import Exit, Session

#: How often the ledger is asked for news.
GLANCE_SECONDS = 0.1


def ending(record: Record) -> Exit | None:
    """The exit code for a record that stands still; None: it goes on by itself."""
    match record.status:
        case Status.DONE:
            return Exit.OK
        case Status.ERROR:
            return Exit.ERROR
        case Status.CANCELLED:
            return Exit.CANCELLED
        case Status.NEEDS_APPROVAL:
            return Exit.NEEDS_PERSON
        case Status.WAITING if any(wait.on is On.REST for wait in load_waits(record.waits)):
            return Exit.NEEDS_PERSON
        case _:
            return None


async def follow(session: Session, client: Client, record_id: str) -> int:
    """Print the log of a record as it comes. The exit code says how it stands at the end."""
    out, seen, warned = session.out, 0, False
    while True:
        record = await client.get(record_id)
        for event in await client.events(record_id, after=seen):
            seen = event.seq
            if out.json:
                out.emit(words.event_json(event))
            else:
                out.say(f"{iso(event.at)[11:23]}  {words.line(event)}")
        code = ending(record)
        if code is not None:
            await _last(session, client, record)
            return code
        if not warned and record.status is Status.PENDING:
            warned = True
            why = why_of(record, await around(client.ledger, record, groups=session.config.groups))
            if why.kind in ("no worker", "stranded", "paused", "halted"):
                out.note(why.sentence)
        await client.clock.sleep(GLANCE_SECONDS)


async def _last(session: Session, client: Client, record: Record) -> None:
    out = session.out
    if out.json:
        out.emit(words.record_json(record))
    elif record.status is Status.DONE:
        out.say(f"DONE: {record.result or 'null'}", colour="green")
    else:
        why = why_of(record, await around(client.ledger, record, groups=session.config.groups))
        out.say(
            f"{record.status}: {why.sentence}", colour="yellow" if record.status is Status.NEEDS_APPROVAL else "red"
        )
