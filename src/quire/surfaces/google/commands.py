"""``quire google``: one act at Google as a record of the built-in workflow ``google``; or one look."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from quire.client.client import Client
from quire.errors import InputError, NotFound, NotNow
from quire.model.record import ENDED, Record, Status
from quire.surfaces.cli.command import Exit, Session, verb
from quire.surfaces.google import project
from quire.workflows.retry import Fail
from quire.workspace import connection, single
from quire.workspace.connection import google as opened
from quire.workspace.single import NAME, Single


@click.group("google", context_settings={"help_option_names": ["-h", "--help"]})
def google() -> None:
    """Do one act at Google, once: a mail, an event, a folder. Each is a record, which quire undo ID takes back.

    Sign in before with quire connect.
    """


def _command(made: click.Command) -> click.Command:
    google.add_command(made)
    return made


def _act(name: str, example: str) -> Callable[[Callable[..., Any]], click.Command]:
    """Declare a command whose function returns what the act is given."""

    def declare(function: Callable[..., dict[str, Any]]) -> click.Command:
        def run(session: Session, record_id: str, dry_run: bool, using: str, ask: bool, by: str, **given: Any) -> int:
            data = Single(act=name, given=function(**given), using=using, asks=ask or bool(by), by=by)
            return _done(session, data, record_id, dry_run=dry_run)

        run.__doc__ = function.__doc__
        run.__click_params__ = getattr(function, "__click_params__", [])  # type: ignore[attr-defined]
        options = [
            click.option(
                "--id", "record_id", default="", metavar="ID", help="Its id; the same call again does nothing."
            ),
            click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing."),
            click.option("--using", default="", metavar="NAME", help="The connection [google.NAME]."),
            click.option("--ask", is_flag=True, help="People release it before."),
            click.option("--by", default="", metavar="WHO", help="Whom to ask: a person or a group."),
        ]
        for option in options:
            run = option(run)
        return _command(verb(name, example=example)(run))

    return declare


def _text(value: str) -> str:
    """A text, or the content of a file: ``@letter.txt``."""
    if not value.startswith("@"):
        return value
    try:
        return Path(value[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{value[1:]!r} cannot be read: {error}") from error


def _some(**given: Any) -> dict[str, Any]:
    """What was given, without what was left out."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in given.items() if value}


@_act("mail", "quire google mail --to client@example.com --subject Hello --body @letter.txt --attach FILE_ID")
@click.option("--to", multiple=True, required=True, metavar="EMAIL", help="Repeatable.")
@click.option("--cc", multiple=True, metavar="EMAIL", help="Repeatable.")
@click.option("--subject", required=True, help="On one line.")
@click.option("--body", required=True, metavar="TEXT", help="The text, or @FILE.")
@click.option("--attach", multiple=True, metavar="FILE", help="The id or link of a file in Drive; repeatable.")
@click.option("--take-back", default="", metavar="TEXT", help="What is sent after it if it is undone.")
def mail(to: Any, cc: Any, subject: str, body: str, attach: Any, take_back: str) -> dict[str, Any]:
    """Send a mail."""
    return {"to": list(to), "subject": subject, "text": _text(body), **_some(cc=cc, attach=attach, take_back=take_back)}


@_act("draft", "quire google draft --to client@example.com --subject Hello --body 'Welcome.'")
@click.option("--to", multiple=True, required=True, metavar="EMAIL", help="Repeatable.")
@click.option("--subject", required=True, help="On one line.")
@click.option("--body", required=True, metavar="TEXT", help="The text, or @FILE.")
@click.option("--attach", multiple=True, metavar="FILE", help="The id or link of a file in Drive; repeatable.")
def draft(to: Any, subject: str, body: str, attach: Any) -> dict[str, Any]:
    """Write a draft, which a person may edit and send."""
    return {"to": list(to), "subject": subject, "text": _text(body), **_some(attach=attach)}


@_act("event", "quire google event 'Kick-off' 2027-01-11T09:00+01:00 --lasts 1h --invite client@example.com")
@click.argument("title")
@click.argument("start")
@click.option("--lasts", default="1h", show_default=True, metavar="SPAN", help="How long.")
@click.option("--invite", multiple=True, metavar="EMAIL", help="Repeatable.")
@click.option("--description", default="", help="What it is about.")
@click.option("--meet", is_flag=True, help="With a video call.")
def event(title: str, start: str, lasts: str, invite: Any, description: str, meet: bool) -> dict[str, Any]:
    """Make an event that begins at START."""
    single.moment(start)
    return {"title": title, "start": start, "lasts": lasts, **_some(invite=invite, description=description, meet=meet)}


@_act("post", "quire google post spaces/AAAA 'The build is done.'")
@click.argument("space")
@click.argument("text")
@click.option("--thread", default="", help="The key of a thread.")
def post(space: str, text: str, thread: str) -> dict[str, Any]:
    """Post into a space of Chat. TEXT may be @FILE."""
    return {"space": space, "text": _text(text), **_some(thread=thread)}


@_act("folder", "quire google folder Acme --parent FOLDER_ID")
@click.argument("name")
@click.option("--parent", default="", metavar="FOLDER", help="The folder in which it stands.")
def folder(name: str, parent: str) -> dict[str, Any]:
    """Make a folder."""
    return {"name": name, **_some(parent=parent)}


@_act("copy", "quire google copy FILE_ID 'Contract Acme' --parent FOLDER_ID")
@click.argument("template")
@click.argument("name")
@click.option("--parent", default="", metavar="FOLDER", help="The folder in which it stands.")
def copy(template: str, name: str, parent: str) -> dict[str, Any]:
    """Copy a file."""
    return {"template": template, "name": name, **_some(parent=parent)}


@_act("fill", "quire google fill DOC_ID company=Acme fee='1,200 €'")
@click.argument("document")
@click.argument("values", nargs=-1, metavar="NAME=VALUE...")
def fill(document: str, values: Sequence[str]) -> dict[str, Any]:
    """Replace each {{NAME}} of a document by its value."""
    return {"document": document, "values": _pairs(values)}


@_act("pdf", "quire google pdf DOC_ID --parent FOLDER_ID")
@click.argument("document")
@click.option("--parent", default="", metavar="FOLDER", help="The folder in which it stands.")
def pdf(document: str, parent: str) -> dict[str, Any]:
    """Keep a document as a PDF."""
    return {"document": document, **_some(parent=parent)}


@_act("share", "quire google share FILE_ID client@example.com --role reader")
@click.argument("shared", metavar="FILE")
@click.argument("person", metavar="WHO")
@click.option("--role", type=click.Choice(["reader", "commenter", "writer"]), default="reader", show_default=True)
@click.option("--notify", is_flag=True, help="Google mails them.")
def share(shared: str, person: str, role: str, notify: bool) -> dict[str, Any]:
    """Let a person open a file."""
    return {"file": shared, "who": person, "role": role, **_some(notify=notify)}


@_act("row", "quire google row BOOK_ID Clients company=Acme fee=1200")
@click.argument("book")
@click.argument("tab")
@click.argument("values", nargs=-1, metavar="NAME=VALUE...", required=True)
def row(book: str, tab: str, values: Sequence[str]) -> dict[str, Any]:
    """Put a row below the last one of a tab."""
    return {"book": book, "tab": tab, "row": _pairs(values)}


def _pairs(values: Sequence[str]) -> dict[str, str]:
    pairs = [value.partition("=") for value in values]
    if wrong := [name for name, mark, _ in pairs if not mark]:
        raise InputError(f"{wrong[0]!r} has no value; write it like company=Acme")
    return {name: value for name, _, value in pairs}


@_command
@verb("read", example="quire google read https://docs.google.com/document/d/DOC_ID/edit")
@click.argument("what")
@click.option("--thread", is_flag=True, help="WHAT is the id of a thread of mails.")
@click.option("--using", default="", metavar="NAME", help="The connection [google.NAME].")
def read(session: Session, what: str, thread: bool, using: str) -> None:
    """Print the text of a document, or the mails of a thread. Nothing is kept."""
    from quire.workspace import docs, gmail

    async def work() -> str:
        try:
            await _signed_in(using)
            if not thread:
                return await docs.read(what, using=using)
            mails = await gmail.thread(what, using=using)
            return "\n\n".join(f"from: {one.sender}\nsubject: {one.subject}\n\n{one.text}" for one in mails)
        finally:
            await connection.close()

    project.declare(session)
    text = session.run(work())
    if session.json:
        session.out.emit({"read": what, "text": text})
    else:
        session.out.say(text)


# -- what all of them do -------------------------------------------------------------------------------------------


async def _signed_in(using: str) -> None:
    """Refuse the command before there is a record if this connection is not defined or nobody has signed in."""
    try:
        await opened(using)
    except (Fail, NotNow) as error:
        raise InputError(str(error)) from error


def _done(session: Session, data: Single, record_id: str, *, dry_run: bool) -> int:
    project.declare(session)
    if dry_run:
        return _rehearsed(session, data)

    async def work() -> Record:
        try:
            await _signed_in(data.using)
            async with session.client(make=True, workflows=[single.google]) as client:
                handle = await client.start(NAME, data.model_dump(), id=record_id or None)
                await client.work()
                return await client.get(handle.record_id)
        finally:
            await connection.close()

    return _said(session, session.run(work()))


def _rehearsed(session: Session, data: Single) -> int:
    async def work() -> dict[str, Any]:
        try:
            await _signed_in(data.using)
            return await single.rehearsed(data)
        finally:
            await connection.close()

    found = session.run(work())
    if session.json:
        session.out.emit({"dry_run": True, **found})
    else:
        session.out.say(json.dumps(found, ensure_ascii=False, indent=2, default=str))
        session.out.say("nothing was done")
    return Exit.OK


def _said(session: Session, record: Record) -> int:
    """Say what came of it, and how it is taken back."""
    made = json.loads(record.result) if record.result else {}
    if session.json:
        session.out.emit({"id": record.record_id, "status": str(record.status), "made": made})
    match record.status:
        case Status.DONE:
            shown = made.get("url") or made.get("link") or made.get("id") or ""
            session.out.say(f"{record.record_id}  {shown}".rstrip())
            session.out.say(f"  back: quire undo {record.record_id}, and quire google work", dim=True)
            return Exit.OK
        case Status.NEEDS_APPROVAL:
            session.out.say(f"{record.record_id} needs approval: quire approve {record.record_id}")
            return Exit.NEEDS_PERSON
        case Status.ERROR:
            session.out.note(f"{record.record_id}: {record.last_error}")
            return Exit.ERROR
        case _:
            session.out.say(f"{record.record_id} waits; quire why {record.record_id} says for what")
            return Exit.NEEDS_PERSON


@_command
@verb("work", example="quire google work")
def work(session: Session) -> None:
    """Go on with the records of single acts: what was approved since, what waited, what is to be undone."""
    project.declare(session)

    async def go_on() -> int:
        try:
            async with session.client(workflows=[single.google]) as client:
                return await _worked(client)
        finally:
            await connection.close()

    session.out.say(f"{session.run(go_on())} records are open")


async def _worked(client: Client) -> int:
    try:
        await client.work()
    except NotFound:
        return 0
    return sum(one.count for one in await client.counts() if one.workflow == NAME and one.status not in ENDED)
