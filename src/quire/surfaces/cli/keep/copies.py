"""The commands ``quire backup``, ``restore`` and ``adopt``: copies of a ledger, and going on with one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from quire.client import going_back
from quire.client.client import Client
from quire.client.going_back import Adopted
from quire.errors import InputError, QuireError
from quire.ledger.finding import concealed, open_ledger, sqlite_path
from quire.model.record import Record, Status
from quire.rules import adoption
from quire.surfaces.cli.command import Exit, Session, verb, workflow_option
from quire.surfaces.cli.keep.writing import check_target
from quire.upkeep import backup as copies


def _file(session: Session, word: str) -> str:
    """The file of the ledger. Other stores have tools of their own for copies."""
    path = sqlite_path(session.config.ledger)
    if path is None:
        raise InputError(
            f"quire {word} copies ledgers in a file; {concealed(session.config.ledger)} is copied by its own store "
            "(pg_basebackup or pg_dump; the versions of a spreadsheet). After a restore, run quire adopt"
        )
    return path


@verb("backup", example="quire backup copy.db")
@click.argument("copy", metavar="FILE", type=click.Path(dir_okay=False))
def backup(session: Session, copy: str) -> int:
    """Copy the ledger to FILE, as it is at one moment, while others work on it.

    The copy is compared with what was read before it gets its name. A FILE that is there is replaced.
    """
    source = _file(session, "backup")
    if not copy.isprintable() or not Path(copy).name or Path(copy).is_dir():
        raise InputError(f"{copy!r} is no name of a file")
    check_target(session, copy)
    done = copies.backup(source, copy)
    session.out.acted(f"copied {done.records} records to {copy} ({done.bytes:,} bytes)", "", **done._asdict())
    return Exit.OK


@verb("restore", example="quire restore copy.db --over")
@click.argument("copy", metavar="FILE", type=click.Path(exists=True, dir_okay=False))
@click.option("--over", is_flag=True, help="Replace the ledger that is there; it is kept beside, with .before.")
def restore(session: Session, copy: str, over: bool) -> int:
    """Put a copy in the place of the ledger, and let each open record ask whether it goes on (as quire adopt).

    What was done since the copy was made is not known in it. So no record goes on before you have said so, and what it
    does outside is probed or asked about first. Refused while a worker of this machine is alive.
    """
    done = copies.restore(copy, _file(session, "restore"), over=over)
    adopted: Adopted = session.with_client(lambda client: going_back.adopt(client.link, client.acts, client.who))
    session.out.acted(f"restored {done.records} records; {_asks(adopted)}", "", **done._asdict(), **adopted._asdict())
    return Exit.OK


@verb(
    "adopt",
    example="""
    quire adopt
    quire adopt --all go-on --workflow seo_publish
    quire adopt --end
    """,
)
@click.option(
    "--all", "choice", type=click.Choice([adoption.GO_ON, adoption.CANCEL]), help="Answer for every record that asks."
)
@click.option("--end", is_flag=True, help="Nothing of the lost part is open any more: act as usual again.")
@workflow_option
def adopt(session: Session, choice: str | None, end: bool, workflow: str) -> int:
    """Go on with a ledger that was restored, copied, or went back in time.

    What was done since, or in the other one, is not known in it. So each open record asks you whether it goes on here
    (quire answer ID go-on | cancel), and whether its effects under way happened (quire resolve ID). Nothing runs before
    that; what has ended stays. Run it again with --all to answer for all that still ask. Until you say --end, each act
    without a receipt of these records is probed, or asked about, before it is done.
    """
    if workflow and choice is None:
        raise click.UsageError("--workflow goes with --all: which of the records that ask")
    ledger = open_ledger(session.config.ledger)
    work = getattr(ledger, "adopt", None)
    if work is None and not ledger.traits.goes_back:
        raise InputError(f"{concealed(session.config.ledger)} is gone with its process; there is nothing to adopt")
    if end:
        return _ended(session, book=work is not None)
    if work is not None:
        adopted: Adopted = session.run(work(session.config.who))
    else:
        adopted = session.with_client(lambda client: going_back.adopt(client.link, client.acts, client.who))
    if choice is not None:
        return session.with_client(lambda client: _answered_all(session, client, choice, workflow))
    session.out.acted(f"adopted: {_asks(adopted)}", "", **adopted._asdict())
    return Exit.OK


def _asks(adopted: Adopted) -> str:
    doubts = f"; {adopted.in_doubt} of them also ask whether an effect happened (quire resolve ID)"
    return (
        f"{adopted.asks} open records ask you whether they go on{doubts if adopted.in_doubt else ''}. See "
        "quire list --needs-me; answer with quire answer ID go-on | cancel, or all with quire adopt --all go-on"
    )


def _ended(session: Session, *, book: bool) -> int:
    if book:
        raise InputError("the adoption of a book ends with its last answer; there is no --end to it")
    session.with_client(lambda client: going_back.end(client.link, client.who))
    session.out.acted("the adoption is over: acts are done as usual again", "", ended=True)
    return Exit.OK


async def _answered_all(session: Session, client: Client, choice: str, workflow: str) -> int:
    """Side by side, so that they share commits; whoever is killed goes on where it was by doing the same again."""
    answered, doubts, refused, after = 0, 0, 0, ""

    async def answer(record_id: str, question: str) -> Record | QuireError:
        try:
            return await client.answer(record_id, choice, question=question, via="cli")
        except QuireError as error:
            return error

    while found := await client.find(workflow=workflow, status=Status.NEEDS_APPROVAL, after=after, limit=500):
        after = found[-1].record_id
        asking = [(record.record_id, asked.key) for record in found if (asked := adoption.asked(record)) is not None]
        done = await asyncio.gather(*(answer(*each) for each in asking))
        for (record_id, _), outcome in zip(asking, done, strict=True):
            if isinstance(outcome, QuireError):
                refused += 1
                session.out.say(f"{record_id}: {outcome}", colour="red")
            else:
                answered += 1
                doubts += outcome.open_intents > 0
    word = "go on" if choice == adoption.GO_ON else "are cancelled"
    also = f"; {doubts} of them as soon as you say whether an effect happened (quire resolve ID)" if doubts else ""
    also += f"; {refused} were refused" if refused else ""
    session.out.acted(f"{answered} records {word}{also}", "", answered=answered, in_doubt=doubts, refused=refused)
    return Exit.REFUSED if refused else Exit.OK
