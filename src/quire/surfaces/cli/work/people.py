"""``quire approve``, ``reject``, ``answer``, ``resolve``: what people say to records that ask them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

import click

from quire.client.client import Client
from quire.errors import IllegalMove
from quire.explain import words
from quire.explain.asking import ahead
from quire.ledger import engine
from quire.model.record import Record, Status
from quire.model.wait import On, Wait, load_waits
from quire.surfaces.cli import values
from quire.surfaces.cli.command import Session, record_argument, verb
from quire.surfaces.cli.completing import choices

_NOTE = click.option("--note", default="", metavar="TEXT", help="Why, for the log and for the workflow.")
_EDIT = click.option(
    "--edit", "edits", multiple=True, metavar="K=V", help="Change a field that the question lets you change."
)
_SEEN = click.option("--seen", default="", metavar="HASH", help="Refuse if what is asked is not what had this hash.")


def questions(record: Record) -> list[Wait]:
    """What the record asks people."""
    if record.status is not Status.NEEDS_APPROVAL:
        return []
    return [wait for wait in load_waits(record.waits) if wait.on is On.QUESTION]


async def _say(
    session: Session, client: Client, record_id: str, choice: str, note: str, edits: Sequence[str], seen: str
) -> None:
    before = await client.get(record_id)
    asked = questions(before)
    changed: dict[str, Any] = {}
    if edits:
        schema = (await engine.definition(client.ledger, before.workflow)).get("schema")
        changed = values.pairs(edits, schema)
    record = await client.answer(
        record_id,
        choice or ahead(asked),
        note=note,
        edits=changed,
        seen=seen,
        via="cli",
        groups=session.config.groups,
    )
    text = str((asked[0].about or {}).get("text", "")) if asked else ""
    still = [wait for wait in questions(record) if asked and wait.key == asked[0].key]
    if still:
        votes = (still[0].about or {}).get("votes", [])
        quorum = (still[0].about or {}).get("quorum", 1)
        sentence = f"your answer to {text!r} is kept; {len(votes)} of {quorum} have answered"
    else:
        then = "is cancelled" if record.status is Status.CANCELLED else f"goes on at {record.step}"
        then = f"now asks {record.question!r}" if record.status is Status.NEEDS_APPROVAL else then
        sentence = f"answered {text!r} of {record_id} with {choice or ahead(asked)!r}; it {then}"
    session.out.acted(
        sentence,
        words.command("retry", record_id, options=f"--from {shlex.quote(record.step)}"),
        **words.record_json(record),
    )


@verb(
    "approve",
    example="""
    quire approve kw_analytics
    quire approve kw_analytics --edit draft="Better." --note "shorter title"
    """,
)
@record_argument
@_NOTE
@_EDIT
@_SEEN
def approve(session: Session, record_id: str, note: str, edits: Sequence[str], seen: str) -> None:
    """Answer what record ID asks with the choice that goes ahead: the first one offered."""
    session.with_client(lambda client: _say(session, client, record_id, "", note, edits, seen))


@verb("reject", example='quire reject kw_analytics --note "off topic"')
@record_argument
@_NOTE
@_SEEN
def reject(session: Session, record_id: str, note: str, seen: str) -> None:
    """Answer what record ID asks with 'reject'."""

    async def work(client: Client) -> None:
        asked = questions(await client.get(record_id))
        offered: list[Any] = (asked[0].about or {}).get("choices", []) if asked else []
        if asked and "reject" not in offered:
            choices = f"{words.command('answer', record_id)} {' | '.join(map(str, offered))}"
            raise IllegalMove(f"{record_id!r} offers no 'reject'; answer with {choices}")
        await _say(session, client, record_id, "reject", note, (), seen)

    session.with_client(work)


@verb("answer", example='quire answer kw_analytics rewrite --note "more figures"')
@record_argument
@click.argument("choice", shell_complete=choices)
@_NOTE
@_EDIT
@_SEEN
def answer(session: Session, record_id: str, choice: str, note: str, edits: Sequence[str], seen: str) -> None:
    """Answer what record ID asks with CHOICE."""
    session.with_client(lambda client: _say(session, client, record_id, choice, note, edits, seen))


@verb(
    "resolve",
    example="""
    quire resolve inv_17 --happened --value '"INV-2026-17"'
    quire resolve inv_17 --not
    """,
)
@record_argument
@click.option("--happened/--not", "happened", default=None, help="It happened, or it surely did not.")
@click.option("--value", metavar="JSON", help="What came of it, as the step expects it.")
@click.option("--effect", default="", metavar="NAME", help="Which effect, where several are in doubt.")
def resolve(session: Session, record_id: str, happened: bool | None, value: str | None, effect: str) -> None:
    """Say whether an effect of record ID that is in doubt happened.

    Look at the world outside first: what you say is believed. If it did not happen, the step does it again.
    """
    if happened is None:
        raise click.UsageError("say --happened or --not")
    if value is not None and not happened:
        raise click.UsageError("--value goes with --happened")
    parsed = values.parsed(value, "what --value gives") if value is not None else None

    async def work(client: Client) -> None:
        record = await client.resolve(record_id, happened=happened, value=parsed, effect=effect)
        word = "happened" if happened else "did not happen"
        session.out.acted(
            f"{record_id}: you say that it {word}; it is {record.status} at {record.step}",
            "",
            **words.record_json(record),
        )

    session.with_client(work)
