"""``quire verify``, ``export``, ``mirror``, ``rotate``, ``promote``: keeping what was recorded."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quire.client.client import Client
from quire.clock import seconds
from quire.errors import InputError, NotFound
from quire.explain.words import command, counted
from quire.installing import install
from quire.ledger import engine
from quire.ledger.finding import concealed, open_ledger, sqlite_path
from quire.model.record import Status
from quire.surfaces.cli.command import Exit, Session, named, verb, workflow_option
from quire.surfaces.cli.completing import records
from quire.surfaces.cli.keep.writing import check_target
from quire.surfaces.cli.spelling import statuses
from quire.surfaces.config import absolute_url, ledger_there

if TYPE_CHECKING:
    from quire.folder.base import Folder
    from quire.ledger.base import Ledger

_FOLDER = click.option(
    "--folder", "directory", type=click.Path(file_okay=False), help="The folder, instead of the configured one."
)


def _absolute(path: str) -> str:
    return str(Path(path).absolute())


def _check_folder(directory: str | None) -> None:
    """Refuse a folder that is not there: a typing error shall not make one."""
    if directory is not None and "://" not in directory and not Path(directory).is_dir():
        raise NotFound(f"there is no folder {directory!r}")


def _folder(where: str, ledger: Ledger) -> Folder:
    if where.startswith("drive://"):
        try:
            from quire.folder.drive import DriveFolder
        except ImportError as error:
            raise InputError(f"the folder {where!r} needs more: {error}; {install('google')}") from error
        return DriveFolder(where, ledger)
    if "://" in where:
        raise InputError(f"{where!r} is not a folder: a directory, or drive://FOLDER_ID")
    from quire.folder.local import LocalFolder

    return LocalFolder(where)


@asynccontextmanager
async def opened_folder(session: Session, ledger: Ledger, directory: str | None = None) -> AsyncIterator[Folder | None]:
    """The folder that was named, or the configured one; None: there is none."""
    where = session.config.folder if directory is None else directory if "://" in directory else _absolute(directory)
    if not where:
        yield None
        return
    folder = _folder(where, ledger)
    try:
        await folder.open()
        yield folder
    finally:
        await folder.close()


# -- verify --------------------------------------------------------------------------------------------------------


@verb("verify", example="quire verify && echo sound")
@click.argument("record_id", required=False, default="", metavar="[ID]", callback=named, shell_complete=records)
@_FOLDER
def verify(session: Session, record_id: str, directory: str | None) -> int:
    """Check the whole ledger, or record ID: hash chains, archive, receipts, open intents, fan-ins, and the folder.

    Without a folder the archive and the files are not checked. The first difference is named and the exit code is 3.
    """
    _check_folder(directory)

    async def work(client: Client) -> int:
        from quire.surfaces.cli.keep.verifying import Sums
        from quire.upkeep.verify import verify as verified

        if record_id:
            await client.get(record_id)
        async with opened_folder(session, client.ledger, directory) as folder:
            checked = await verified(client, folder, record_id=record_id)
        sums = Sums(client.ledger)
        first = checked.first
        if first is None and not record_id:
            first = await sums.first_difference()
        if session.json:
            found = checked.as_dict() | {"ok": first is None, "fanins": sums.fanins, "folder": folder is not None}
            if first is not None and checked.first is None:
                found["differences"] = [{"kind": first.kind, "where": first.where, "what": first.what}]
            session.out.emit(found)
            return Exit.OK if first is None else Exit.REFUSED
        files = f", {checked.files} files" if folder is not None else ""
        session.out.say(
            f"checked {checked.records} records, {checked.lines} lines, {checked.receipts} receipts, "
            f"{sums.fanins} fan-ins{files}"
        )
        if checked.behind:
            session.out.note(f"the folder is {checked.behind} lines behind; their files were not judged")
        if first is None:
            session.out.say("no difference", colour="green")
            return Exit.OK
        session.out.say(f"first difference: {first}", colour="red", bold=True)
        more = len(checked.differences) - 1
        if more > 0:
            session.out.say(f"{more}{' or more' if checked.more else ''} others; --json lists them")
        return Exit.REFUSED

    return session.with_client(work)


# -- export --------------------------------------------------------------------------------------------------------


@verb(
    "export",
    example="""
    quire export records.csv
    quire export records.xlsx --workflow seo_publish --status DONE
    quire export evidence.zip
    """,
)
@click.argument("target", metavar="FILE", type=click.Path())
@workflow_option
@click.option("--status", "-s", multiple=True, callback=statuses, metavar="STATUS", help="Of this status.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "xlsx", "evidence"]),
    default=None,
    help="What to write; the file's ending says so otherwise (.csv, .xlsx, .zip).",
)
@_FOLDER
def export(
    session: Session, target: str, workflow: str, status: tuple[Status, ...], form: str | None, directory: str | None
) -> None:
    """Write records to FILE: a CSV, an Excel workbook, or an evidence pack that a stranger can check without Quire.

    It is never written over the ledger, quire.toml or a flow file.
    """
    if not target:
        raise click.UsageError("name the file to write")
    check_target(session, target)
    _check_folder(directory)

    async def work(client: Client) -> None:
        try:
            from quire.upkeep.export import export as exported
        except ImportError as error:
            raise InputError(f"export is not installed here ({error}); {install('export')}") from error
        if workflow:
            await engine.definition(client.ledger, workflow)
        async with opened_folder(session, client.ledger, directory) as folder:
            try:
                made = await exported(client, target, form=form or "", workflow=workflow, status=status, folder=folder)
            except ImportError as error:
                raise InputError(f"this needs a library: {error}; {install('export')}") from error
        seal = f"; fingerprint {made.fingerprint}" if made.fingerprint else ""
        session.out.acted(
            f"wrote {made.records} records to {made.path} ({made.form}){seal}",
            "",
            records=made.records,
            file=str(made.path),
            form=made.form,
            fingerprint=made.fingerprint or None,
        )

    session.with_client(work)


# -- mirror --------------------------------------------------------------------------------------------------------


@verb(
    "mirror",
    example="""
    quire mirror rows/
    quire mirror "postgresql://localhost/shop?schema=quire_mirror"
    """,
)
@click.argument("to", metavar="DIRECTORY|URL")
def mirror(session: Session, to: str) -> None:
    """Copy what is new in the ledger to a place where people analyse it: each run goes on where the last one ended.

    A directory gets files of JSON lines for records, events and receipts, and in schema/ the schema of each table for
    BigQuery's loader. A PostgreSQL database gets tables with the same columns. Run it by cron as often as you like.
    Lines that quire rotate has moved to the archive before the first run are not in the mirror.
    """

    async def work(client: Client) -> None:
        from quire.upkeep.mirror import mirror as mirrored
        from quire.upkeep.mirror import target_of

        target = target_of(to)
        try:
            made = await mirrored(client, target)
        finally:
            await target.close()
        sentence = f"copied {counted(made.lines, 'line')} of {counted(made.records, 'record')}"
        session.out.acted(sentence if made.lines else "there is nothing new", "", **made._asdict())

    session.with_client(work)


# -- rotate --------------------------------------------------------------------------------------------------------


@verb("rotate", example="quire rotate --older 30d")
@click.option("--older", default="30d", show_default=True, metavar="SPAN", help="Only records that ended longer ago.")
@_FOLDER
def rotate(session: Session, older: str, directory: str | None) -> None:
    """Move log lines of records that ended long ago to the folder's archive.

    The archive is written, read back and compared before exactly those lines are deleted. Records, receipts and the
    last line of each log stay; quire verify follows the chain into the archive. What ended within the last hour stays.
    Long values that nothing names any more are deleted, and so are workers that were closed more than a week ago.
    """
    seconds(older)
    _check_folder(directory)

    async def work(client: Client) -> None:
        from quire.upkeep.rotate import rotate as rotated

        async with opened_folder(session, client.ledger, directory) as folder:
            if folder is None:
                raise InputError("the archive needs a folder: name one with --folder, or write folder in quire.toml")
            made = await rotated(client, folder, older_than=older, clock=client.clock)
        sentence = (
            f"archived {made.lines} lines in {made.segments} segments; {made.forgotten} left the ledger"
            if made.lines or made.forgotten
            else "there is nothing to archive"
        )
        if made.blobs or made.workers:
            sentence += f"; deleted {made.blobs} long values and {made.workers} closed workers that nothing names"
        session.out.acted(sentence, "", **made._asdict())

    session.with_client(work)


# -- promote -------------------------------------------------------------------------------------------------------


@verb("promote", example="quire promote sqlite:///.quire/ledger.db postgresql://localhost/shop")
@click.argument("source")
@click.argument("target")
@click.option("--wait", default="5m", show_default=True, metavar="SPAN", help="How long to wait for effects under way.")
@click.option("--late", is_flag=True, help="Carry over receipts that landed in the source after the copy.")
@click.option("--abort", "aborted", is_flag=True, help="Open the source again, before the target was opened.")
def promote(session: Session, source: str, target: str, wait: str, late: bool, aborted: bool) -> int:
    """Move the ledger SOURCE to the empty ledger TARGET, without two fleets ever working on the same records.

    The source is sealed, copied when it is quiet, and compared; then the target is opened, once. Stop and restart your
    workers with the new address. Until the target is opened, --abort takes it back.
    """
    from quire.upkeep import promote as promoting

    span = seconds(wait)
    if late and aborted:
        raise click.UsageError("--late or --abort, not both")
    one, other = (absolute_url(url, Path.cwd()) for url in (source, target))
    if not ledger_there(one):
        raise NotFound(f"there is no ledger at {sqlite_path(one)!r}")
    there = sqlite_path(other)
    gone = there is not None and not ledger_there(other)

    async def work() -> int:
        old, new = open_ledger(one), open_ledger(other)
        promoting.check_addresses(old.url, new.url)
        try:
            await old.open()
            # Asked before the target is opened, which would make it.
            way = await promoting.way(old, new.url)
            if gone and (late or way is promoting.Way.MOVED) and not aborted:
                raise NotFound(f"there is no ledger at {there!r}")
            if not (gone and aborted):
                await new.open()
            if aborted:
                await promoting.abort(old, new, by=session.config.who, gone=gone)
                again = command("promote", concealed(source), concealed(target))
                session.out.acted("the source is open again", again)
            elif late:
                count = await promoting.carry_late(old, new)
                session.out.acted(f"carried over {count} late receipts", "", carried=count)
            else:
                made = await promoting.promote(old, new, by=session.config.who, wait=span, tell=session.out.note)
                address = concealed(made.target)
                session.out.acted(
                    f'moved to {address}; set ledger = "{address}" in quire.toml',
                    "",
                    target=address,
                    tables={name: row.rows for name, row in made.tables.items()},
                )
            return Exit.OK
        finally:
            await new.close()
            await old.close()

    return session.run(work())
