"""``quire signal``, ``move``, ``edit``: what people do to a record that is under way."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence

import click

from quire.client.client import Client
from quire.errors import InputError
from quire.explain import words
from quire.ledger import engine
from quire.model.codec import parse
from quire.surfaces.cli import values
from quire.surfaces.cli.command import Session, record_argument, verb
from quire.surfaces.cli.completing import steps


@verb(
    "signal",
    example="""
    quire signal inv_17 paid amount:=120.5
    quire signal inv_17 paid --value 120.5 --signal-id bank-4711
    """,
)
@record_argument
@click.argument("name")
@click.argument("fields", nargs=-1, metavar="[K=V]...")
@click.option("--value", metavar="JSON|@FILE|-", help="The value as JSON, instead of fields.")
@click.option("--signal-id", metavar="ID", help="The same id again is the same signal to this record.")
def signal(
    session: Session, record_id: str, name: str, fields: Sequence[str], value: str | None, signal_id: str | None
) -> None:
    """Send the signal NAME to record ID. One that comes before the record waits for it is kept."""
    if fields and value is not None:
        raise click.UsageError("give fields or --value, not both")
    whole = values.parsed(values.text_of(value), "what --value gives") if value is not None else None
    sent = values.pairs(fields) if fields else whole

    async def work(client: Client) -> None:
        record = await client.signal(record_id, name, sent, signal_id=signal_id)
        session.out.acted(
            f"sent {name!r} to {record_id}; it is {record.status} at {record.step}", "", **words.record_json(record)
        )

    session.with_client(work)


@verb("move", example="quire move task_3 IN_REVIEW")
@record_argument
@click.argument("step", shell_complete=steps)
def move(session: Session, record_id: str, step: str) -> None:
    """Move record ID to STEP, a declared successor of where it stands."""

    async def work(client: Client) -> None:
        before = await client.get(record_id)
        record = await client.move(record_id, step)
        session.out.acted(
            f"moved {record_id} from {before.step} to {step}; it is {record.status}",
            words.command("retry", record_id, options=f"--from {shlex.quote(before.step)}"),
            **words.record_json(record),
        )

    session.with_client(work)


@verb(
    "edit",
    example="""
    quire edit kw_analytics draft="Better." count:=3
    quire edit kw_analytics
    """,
)
@record_argument
@click.argument("fields", nargs=-1, metavar="[K=V]...")
@click.option("--data", metavar="JSON|@FILE|-", help="The whole data, instead of some fields.")
@click.option("--version", "wanted", type=click.IntRange(1), help="Only if the record is still at this version.")
def edit(session: Session, record_id: str, fields: Sequence[str], data: str | None, wanted: int | None) -> None:
    """Change the data of record ID, while nobody holds it; without fields, in $EDITOR.

    If the record changes while it is edited, the edit is refused and nothing is changed.
    """
    if data is None and not fields and not _somebody_types():
        raise click.UsageError("give the fields, like draft=Better, or --data: without a terminal there is no editor")

    async def work(client: Client) -> None:
        record = await client.get(record_id)
        definition = await engine.definition(client.ledger, record.workflow)
        old = parse(record.data)
        if data is not None:
            new = values.given(data, fields, definition.get("schema"))
        elif fields:
            new = old | values.pairs(fields, definition.get("schema"))
        else:
            new = _edited(old)
        if new == old:
            session.out.say("nothing was changed")
            return
        made = await client.edit(record_id, new, version=wanted if wanted is not None else record.version)
        names = [name for name in {**old, **new} if old.get(name) != new.get(name) or (name in old) != (name in new)]
        session.out.acted(
            f"changed {', '.join(names)} of {record_id}; it is at version {made.version}",
            words.command("edit", record_id, options=f"--data {shlex.quote(json.dumps(old, ensure_ascii=False))}"),
            **words.record_json(made),
        )

    session.with_client(work)


def _somebody_types() -> bool:
    """Return whether there is a terminal: an editor without one waits for ever."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def _edited(old: dict[str, object]) -> dict[str, object]:
    text = click.edit(json.dumps(old, indent=2, ensure_ascii=False) + "\n", extension=".json")
    if text is None:
        return old
    new = values.parsed(text, "what the editor left")
    if not isinstance(new, dict):
        raise InputError("the data must stay an object of named fields")
    return new
