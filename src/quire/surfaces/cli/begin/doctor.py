"""``quire doctor``: examines the machine, the configuration and the ledger, and says what to do about what it finds."""

from __future__ import annotations

import os
import platform
import shutil
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import click

from quire.client.client import Client
from quire.clock import new_id
from quire.errors import QuireError
from quire.explain import words
from quire.explain.why import STRANDED_SECONDS
from quire.installing import install
from quire.ledger import engine
from quire.ledger.finding import concealed, open_ledger, sqlite_path
from quire.ledger.lost import loss_of
from quire.ledger.sqlite.file import NETWORK_FILE_SYSTEMS, file_system
from quire.ledger.workers import alive
from quire.model.change import Count, Standing
from quire.model.codec import parse
from quire.model.record import Status
from quire.model.side import Setting, Worker
from quire.model.wait import On, load_waits
from quire.surfaces.cli.command import Exit, Session, verb
from quire.surfaces.cli.flows import load_file, load_flows
from quire.surfaces.config import ledger_there
from quire.upkeep.verify import verify
from quire.worker.last_tick import comes, last_tick
from quire.worker.mistakes import lost_steps, unlisted
from quire.worker.slices import step_times, too_long
from quire.workflows.approval import unanswerable

_ROOM = 100 * 1024 * 1024


class Finding(NamedTuple):
    """One thing that was looked at."""

    #: well, warning or problem
    state: str
    what: str


def well(what: str) -> Finding:
    return Finding("well", what)


def warning(what: str) -> Finding:
    return Finding("warning", what)


def problem(what: str) -> Finding:
    return Finding("problem", what)


@verb("doctor", example="quire doctor")
@click.option("--repair", is_flag=True, help="First repair what can be repaired for sure (Sheets ledgers).")
@click.option(
    "--google", is_flag=True, help="Try the connection to Google, and each act of the flows, without a trace."
)
@click.option("--sweep", is_flag=True, help="With --google: delete drafts of ours that no act names.")
def doctor(session: Session, repair: bool, google: bool, sweep: bool) -> int:
    """Examine this machine, the configuration and the ledger.

    With --google it tries what the flows need of Google instead: each permission with a call that changes nothing, and
    each kind of act with a draft, an event without guests or a file that is taken away at once. Exit code 0 if no
    problem is found (a warning is not a problem), 3 otherwise.
    """
    if sweep and not google:
        raise click.UsageError("--sweep goes with --google")
    if google:
        from quire.surfaces.google import examine

        return examine.examined(session, sweep=sweep)
    return examined(session, repair=repair)


def examined(session: Session, *, quiet: bool = False, repair: bool = False) -> int:
    """Look at everything and tell; with ``quiet``, only what is not well. With ``repair``, repair first."""
    in_file = sqlite_path(session.config.ledger) is not None
    found = [*_machine(sqlite=in_file), *_ledger_file(session), *(_repaired(session) if repair else ())]
    if not any(finding.state == "problem" for finding in found):
        found += _opened(session)
    found += _flow_files(session)
    for finding in found:
        if session.json:
            session.out.emit(finding._asdict())
        elif not quiet or finding.state != "well":
            mark, colour = {"well": ("✓", "green"), "warning": ("!", "yellow"), "problem": ("✗", "red")}[finding.state]
            session.out.say(f"{mark} {finding.what}", colour=colour)
    bad = sum(finding.state == "problem" for finding in found)
    if not session.json:
        warnings = sum(finding.state == "warning" for finding in found)
        session.out.say(_summary(len(found), bad, warnings))
    return Exit.REFUSED if bad else Exit.OK


def _summary(checks: int, problems: int, warnings: int) -> str:
    found = [words.counted(count, word) for count, word in ((problems, "problem"), (warnings, "warning")) if count]
    return f"{words.counted(checks, 'check')}: {' and '.join(found) or 'no problems'} found"


def _repaired(session: Session) -> Iterator[Finding]:
    """What was repaired; a ledger that needs no such thing has none."""
    work = getattr(open_ledger(session.config.ledger), "repair", None)
    if work is None:
        yield well("there is nothing to repair in a ledger of this kind")
        return
    try:
        done: list[str] = session.run(work())
    except QuireError as error:
        yield problem(str(error))
        return
    yield from map(well, done or ["there is nothing to repair"])


def _machine(*, sqlite: bool = True) -> Iterator[Finding]:
    """``sqlite``: the ledger is a file, so its library matters."""
    version = platform.python_version()
    yield well(f"Python {version}") if sys.version_info >= (3, 11) else problem(f"Python {version}: 3.11 is needed")
    if sqlite:
        from quire.ledger.sqlite.checkpoints import OLDEST, about_library

        yield (problem if sqlite3.sqlite_version_info < OLDEST else well)(about_library())


def _flow_files(session: Session) -> Iterator[Finding]:
    config = session.config
    for file in config.flows:
        if not Path(file).is_file():
            yield problem(f"the flow file {file!r} is not there (from {config.source('flows')})")
            continue
        try:
            load_file(file)
        except QuireError as error:
            yield problem(f"no worker can start: {error}")


def _ledger_file(session: Session) -> Iterator[Finding]:
    config = session.config
    yield well(f"configuration: {config.path or 'no quire.toml; defaults'}")
    path = sqlite_path(config.ledger)
    if path is None:
        yield well(f"ledger: {concealed(config.ledger)} (from {config.source('ledger')})")
        return
    yield well(f"ledger: {path} (from {config.source('ledger')})")
    folder = next((parent for parent in Path(path).absolute().parents if parent.exists()), Path("/"))
    free = shutil.disk_usage(folder).free
    text = f"{free // (1024 * 1024):,} MB are free under {folder}"
    yield well(text) if free > _ROOM else problem(f"{text}: make room, commits will fail")
    kind = file_system(folder)
    if kind in NETWORK_FILE_SYSTEMS:
        yield problem(
            f"the ledger lies on a network file system ({kind}), on which locks do not hold; move it to a local disk"
        )
    if not os.access(folder, os.W_OK):
        yield problem(f"{str(folder)!r} cannot be written by this user")


#: A folder that is behind by so many seconds is reported.
_LATE = 60.0


def _opened(session: Session) -> list[Finding]:
    path = sqlite_path(session.config.ledger)
    found: list[Finding] = []

    async def work(client: Client) -> None:
        if path is not None:
            found.extend(_sqlite(path))
            await _read_through(client, found)
            if any(finding.state == "problem" for finding in found):
                return  # what else is read of a damaged file says nothing
        await _written(client, found)
        await client.ledger.examine()
        await _loss(client, found)
        settings_warnings = getattr(client.ledger, "settings_warnings", None)
        if settings_warnings is not None:
            found.extend(warning(str(text)) for text in await settings_warnings())
        if session.config.ledger.startswith("sheets:"):
            await _keys(client, found)
        await _folder(session, client, found)
        await _panel(session, client, found)
        await _work(client, found)
        await _steps(session, client, found)
        await _people(session, client, found)

    try:
        if not ledger_there(session.config.ledger):
            return [well("the ledger is not there yet; quire up makes it")]
        session.with_client(work)
    except QuireError as error:
        found.append(problem(str(error)))
    return found


async def _keys(client: Client, found: list[Finding]) -> None:
    """A book shows its cells, also hidden ones, to everybody with whom it is shared."""
    kept = await client.ledger.setting(engine.KEYRING)
    if kept is not None and engine.IN_FILE not in parse(kept.value):
        found.append(
            warning(
                "the key of this ledger stands in the book: whoever may view it, viewers too, can answer questions as "
                "anybody, call hooks and signals, and sign receipts. Share it only with those who may do all that, or "
                f"keep the key in a file ({engine.KEYRING_FILE}; see docs/sheets.md)"
            )
        )


def _there(folder: str) -> bool:
    return "://" in folder or Path(folder).is_dir()


async def _folder(session: Session, client: Client, found: list[Finding]) -> None:
    """A folder may be missing, unshared, without room, behind, or hold a file that halts."""
    from quire.surfaces.cli.keep.commands import opened_folder
    from quire.upkeep.projecting import projector_of
    from quire.worker import stop_file as stopfile

    where = session.config.folder
    if not where:
        return
    if not _there(where):
        found.append(well(f"the folder {where} is not there yet; a worker makes it"))
        return
    try:
        async with opened_folder(session, client.ledger) as folder:
            assert folder is not None
            found.append(well(f"folder: {where}"))
            lag = await projector_of(client.ledger, folder, client.clock).lag()
            if lag.seconds > _LATE:
                found.append(warning(f"the folder is behind the ledger: {lag}; a worker writes it"))
            found.extend(
                warning(f"the file {path!r} in the folder halts; take it away, then quire resume")
                for path in (await stopfile.found(client.ledger, folder)).values()
            )
    except QuireError as error:
        found.append(problem(str(error)))


async def _panel(session: Session, client: Client, found: list[Finding]) -> None:
    """A sheet in front of the ledger may be unshared, changed, or kept up by nobody."""
    where = session.config.panel
    if not where:
        return
    try:
        from quire.surfaces.panel.doctor import examine
    except ImportError as error:
        found.append(warning(f"the panel is not installed here: {error}; {install('google')}"))
        return
    try:
        found.extend(Finding(*each) for each in await examine(client.ledger, where, session.config.state_table))
    except QuireError as error:
        found.append(problem(str(error)))


async def _written(client: Client, found: list[Finding]) -> None:
    """The ledger opens and takes a write."""
    began = client.clock.boottime()
    name = "doctor"
    kept = await client.ledger.setting(name)
    word = f'"{new_id()}"'
    if not await client.ledger.keep(Setting(name, word, kept.version if kept is not None else 0)):
        found.append(warning("another doctor wrote at this very moment"))
        return
    read = await client.ledger.setting(name)
    took = client.clock.boottime() - began
    if read is None or read.value != word:
        found.append(problem("the ledger does not read back what was written"))
    else:
        found.append(well(f"the ledger opens, writes and reads back ({words.span(took)})"))


async def _loss(client: Client, found: list[Finding]) -> None:
    """A ledger that lacks what it had acknowledged."""
    loss, _ = await loss_of(client.ledger)
    if loss is None or loss.ended_at:
        return
    if not loss.adopted_at:
        found.append(problem(f"{loss.sentence}. Nothing is claimed until you run quire adopt"))
        return
    found.append(
        warning(
            f"{loss.sentence}. Its open records were adopted; acts without a receipt are probed or asked about until "
            "you run quire adopt --end"
        )
    )


def _sqlite(path: str) -> Iterator[Finding]:
    try:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
            (answer,) = db.execute("PRAGMA integrity_check(1)").fetchone()
            (mode,) = db.execute("PRAGMA journal_mode").fetchone()
        db.close()
    except sqlite3.Error as error:
        yield problem(f"the file cannot be examined: {error}")
        return
    yield (
        well("the structure of the file is sound (integrity_check)")
        if answer == "ok"
        else problem(f"the file is damaged: {answer}; restore a copy")
    )
    text = f"journal mode {mode}, synchronous FULL: an acknowledged commit survives a power cut"
    yield well(text) if mode == "wal" else warning(f"journal mode is {mode}, not wal")


async def _steps(session: Session, client: Client, found: list[Finding]) -> None:
    """Open records at steps that the flow files do not have, and children of workflows that nobody lists."""
    files = [file for file in session.config.flows if os.path.isfile(file)]  # noqa: ASYNC240 - a local file
    if not files:
        return
    try:
        workflows = load_flows(files)
    except QuireError:
        return  # the flow files were loaded one by one before, and what is wrong was said there
    found.extend(problem(text) for text in lost_steps(await client.counts(), workflows))
    found.extend(warning(text) for text in unlisted(workflows))


async def _people(session: Session, client: Client, found: list[Finding]) -> None:
    """Questions that nobody can answer."""
    asking = await client.find(status=Status.NEEDS_APPROVAL, limit=10_000)
    waits = [wait.about or {} for record in asking for wait in load_waits(record.waits) if wait.on is On.QUESTION]
    reasons = Counter(filter(None, (unanswerable(about, session.config.groups) for about in waits)))
    for reason, count in reasons.items():
        what = f"{count} records ask" if count > 1 else "1 record asks"
        found.append(problem(f"{what}, but {reason}; name it and its members under [groups] in quire.toml"))


#: So many records are read through; more would take longer than a person waits for the doctor.
_READ_THROUGH = 100_000


async def _read_through(client: Client, found: list[Finding]) -> None:
    """Every row can be read and every log follows from itself: SQLite keeps no checksums of what its cells hold."""
    try:
        if (records := sum(count.count for count in await client.counts())) > _READ_THROUGH:
            found.append(warning(f"{records:,} records are too many to read through here; quire verify reads them all"))
            return
        read = await verify(client, limit=1)
    except (QuireError, ValueError) as error:
        found.append(problem(f"the ledger cannot be read through: {error}; restore a copy"))
        return
    if read.first is not None:
        found.append(
            problem(f"the ledger is damaged: {read.first}; restore a copy (quire verify names all that differs)")
        )
    else:
        found.append(
            well(f"{read.records:,} records, {read.lines:,} lines and {read.receipts:,} receipts are as written")
        )


async def _work(client: Client, found: list[Finding]) -> None:
    """Whether somebody works, what holds the work up, and what does not get on."""
    standing, workers, counts = await client.standing(), await client.workers(), await client.counts()
    live = [worker for worker in workers if alive(worker, standing.now)]
    tick = await last_tick(client.ledger)
    found.append(_who_works(live, counts, tick, standing.now))
    lost = [worker for worker in workers if worker.closed is None and worker not in live]
    if lost:
        found.append(warning(f"{len(lost)} workers are lost; the next live worker takes over their records"))
    found += _orders(standing)
    if live:
        await _lags(client, found, live, counts, standing.now)
    if tick is not None:
        found.append(_tick(tick, standing.now, live))
    await _too_long(client, found, counts, standing.now)


def _who_works(
    live: Sequence[Worker], counts: Sequence[Count], tick: tuple[float, float] | None, now: float
) -> Finding:
    if not live and tick is not None and comes(tick, now):
        return well("no worker lives now, but a periodic caller ticks")
    waiting = sum(count.count for count in counts if count.status in (Status.PENDING, Status.RUNNING, Status.WAITING))
    if live or not waiting:
        return well(f"{len(live)} workers are alive")
    return warning(f"no worker is alive and {waiting} records wait; start one (quire worker)")


def _orders(standing: Standing) -> Iterator[Finding]:
    if standing.sealed:
        yield warning(f"the ledger is sealed; its records are at {standing.sealed}")
    for control in standing.controls:
        if control.halted or control.paused:
            word = "halted" if control.halted else "paused"
            what = "the ledger" if control.scope == "*" else control.scope
            yield warning(f"{what} is {word}; quire resume ends it")


async def _lags(
    client: Client, found: list[Finding], live: Sequence[Worker], counts: Sequence[Count], now: float
) -> None:
    """Steps whose records have been due for long: no live worker knows them, or too few workers are there."""
    known = {(known[0], known[1]) for worker in live for known in parse(worker.knows)}
    for count in counts:
        if count.status is not Status.PENDING:
            continue
        due = await client.find(workflow=count.workflow, step=count.step, status=Status.PENDING, limit=1000)
        longest = max((now - record.due_at for record in due if record.due_at is not None), default=0.0)
        if (count.workflow, count.step) not in known and longest > STRANDED_SECONDS:
            found.append(
                problem(f"stranded: {count.count} records at {count.workflow}/{count.step}, which no live worker knows")
            )
        elif longest > 60:
            found.append(warning(f"{count.workflow}/{count.step} lags: due for {words.span(longest)}; add workers"))


def _tick(tick: tuple[float, float], now: float, live: Sequence[Worker]) -> Finding:
    at, period = tick
    text = f"the last tick was {words.span(now - at)} ago, one is expected every {words.span(period)}"
    return problem(f"{text}: the periodic caller is silent") if now - at > 2 * period and not live else well(text)


async def _too_long(client: Client, found: list[Finding], counts: Sequence[Count], now: float) -> None:
    """Steps with waiting records that no slice of the periodic caller has room for."""
    waiting = {(count.workflow, count.step) for count in counts if count.status is Status.PENDING}
    for (workflow, step), time in too_long(await step_times(client.ledger, now)).items():
        if (workflow, step) in waiting:
            text = f"step {step!r} of {workflow!r} does not fit into a slice of {words.span(time.slice)}: it "
            text += f"{time.words()}; give it quire tick --budget {time.fitting}s, or let quire worker run it"
            found.append(problem(text))
