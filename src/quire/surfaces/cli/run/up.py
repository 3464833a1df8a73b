"""``quire up``, ``worker``, ``serve``: what moves records.

Ctrl-C and SIGTERM end a worker cleanly: it claims nothing more, running steps may finish within a grace period, and
what is not finished then goes back to the ledger unharmed. A second Ctrl-C gives it back at once.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import click

from quire.client import spawning
from quire.client.client import Client
from quire.clock import seconds
from quire.errors import InputError, QuireError
from quire.explain import words
from quire.installing import install
from quire.ledger import process
from quire.ledger.finding import concealed
from quire.model.record import Record, Status
from quire.surfaces.cli import flows
from quire.surfaces.cli.command import Exit, Session, verb
from quire.surfaces.cli.run import browsing
from quire.worker.mistakes import lost_steps, unlisted
from quire.worker.worker import Worker

#: How many records a second are printed one by one.
_PRINTED_PER_SECOND = 10
_GRACE = "10s"
#: A worker that ends when it is idle waits for a back-off or a timer that ends within so many seconds.
_SOON_SECONDS = 5
#: A worker that ends at once waits so long for the warnings of its start.
_NAMING_SECONDS = 2.0

log = logging.getLogger("quire.worker")


def flow_files(session: Session, files: Sequence[str]) -> list[str]:
    if files:
        return [str(Path(file).absolute()) for file in files]
    config = session.config
    states = [str(config.path)] if config.states and config.path is not None else []
    if config.flows:
        return [*config.flows, *states]
    beside = config.base / "flows.py"
    return [*([str(beside)] if beside.is_file() else []), *states]


@asynccontextmanager
async def _google(session: Session) -> AsyncIterator[None]:
    """Make the connections to Google known, if there are any, and close those that were opened."""
    if session.config.google:
        from quire.surfaces.google import project

        project.declare(session)
    try:
        yield
    finally:
        if (connection := sys.modules.get("quire.workspace.connection")) is not None:
            await connection.close()


@asynccontextmanager
async def working_client(session: Session, files: Sequence[str]) -> AsyncIterator[Client]:
    """A client that knows the workflows of these files, with their dependencies; they are registered in the ledger."""
    workflows = [*flows.load_flows(flow_files(session, files)), *flows.built_in(session)]
    async with (
        _google(session),
        flows.made_deps(session.config.deps) as deps,
        session.client(make=True, workflows=workflows, deps=deps, works=True) as client,
    ):
        await client.dependencies.open(client.registry)
        client.spawn = spawning.of_files(session.flags, session.file, flow_files(session, files))
        yield client


class _Quiet(logging.Formatter):
    """Log lines without tracebacks."""

    def __init__(self, *, debug: bool) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s", "%H:%M:%S")
        self.debug = debug

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging's name
        return super().formatException(ei) if self.debug else ""

    def format(self, record: logging.LogRecord) -> str:
        return super().format(record).rstrip()


def start_logging(session: Session) -> None:
    from quire.surfaces.telemetry import logs

    handler = logging.StreamHandler()
    json_lines = logs.wanted(session.config.telemetry)
    handler.setFormatter(logs.JsonLines(debug=session.debug) if json_lines else _Quiet(debug=session.debug))
    logger = logging.getLogger("quire")
    logger.handlers = [handler]
    logger.setLevel(logging.INFO if session.debug else logging.WARNING)
    logging.getLogger("quire.audit").setLevel(logging.INFO)  # who did what is always logged


class Stopping:
    """Ends a worker on signals: first gently, then at once."""

    def __init__(self, session: Session, worker: Worker) -> None:
        self.session = session
        self.worker = worker
        self.presses = 0
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Stopping:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            try:
                loop.add_signal_handler(number, self.press)
            except (NotImplementedError, ValueError, RuntimeError):  # Windows, or not in the main thread
                try:
                    self._previous[number] = signal.signal(number, lambda *_: loop.call_soon_threadsafe(self.press))
                except ValueError:
                    return self
        return self

    def __exit__(self, *exc: object) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            if number in self._previous:
                signal.signal(number, self._previous[number])
            else:
                try:
                    loop.remove_signal_handler(number)
                except (NotImplementedError, ValueError, RuntimeError):
                    return

    def press(self) -> None:
        self.presses += 1
        running, out = len(self.worker.holds.passes), self.session.out
        if self.presses == 1:
            if running:
                out.note(
                    f"ending: {running} steps may finish within {self.worker.grace:g} s; Ctrl-C again ends them now"
                )
            self.worker.stop()
        elif self.presses == 2:
            out.note("ending now: what runs goes back to the ledger")
            self.worker.end_now()
        else:
            os._exit(Exit.INTERRUPTED)  # a step that swallows its cancellation holds the process


class Watched:
    """Tells of records as they are settled, so many a second at the most."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.settled = 0
        self.finished = 0
        self._window = 0
        self._printed = 0
        self._left = 0

    def __call__(self, record: Record) -> None:
        self.settled += 1
        self.finished += record.ended
        if record.status in (Status.RUNNING, Status.PENDING):
            return
        window = int(time.monotonic())
        if window != self._window:
            if self._left:
                self.session.out.say(f"… and {self._left} more", dim=True)
            self._window, self._printed, self._left = window, 0, 0
        if self._printed >= _PRINTED_PER_SECOND:
            self._left += 1
            return
        self._printed += 1
        if self.session.json:
            row = {"record_id": record.record_id, "status": str(record.status), "next_step": record.step}
            self.session.out.emit({"settled": row})
            return
        detail = record.last_error if record.status is Status.ERROR else record.question or record.step
        colours = {Status.DONE: "green", Status.ERROR: "red", Status.NEEDS_APPROVAL: "yellow"}
        self.session.out.say(
            f"{record.status:<14} {record.record_id}  {' '.join((detail or '').split())[:100]}",
            colour=colours.get(record.status),
        )


@asynccontextmanager
async def projecting(session: Session, client: Client) -> AsyncIterator[None]:
    """While this goes on, the configured folder is written behind the commits; at the end it is brought up to date."""
    from quire.surfaces.cli.keep.commands import opened_folder
    from quire.surfaces.cli.run.beside import beside

    async with beside(session, client), opened_folder(session, client.ledger) as folder:
        if folder is None:
            yield
            return
        from quire.upkeep.projecting import projector_of
        from quire.worker import stop_file as stopfile

        await stopfile.look(client.ledger, folder)
        projector = projector_of(client.ledger, folder, client.clock)
        task = asyncio.ensure_future(projector.run())
        watching = asyncio.ensure_future(stopfile.watch(client.ledger, folder, client.clock))
        try:
            yield
        finally:
            projector.stop()
            watching.cancel()
            await asyncio.gather(task, watching, return_exceptions=True)
            with suppress(QuireError):  # what it does not write now, the next projector does
                await projector_of(client.ledger, folder, client.clock).catch_up(wait=False)


async def run_worker(
    session: Session, worker: Worker, budget: str | None, *, idle: bool, hello: Sequence[str] = ()
) -> Watched:
    """Run a worker until its end, whatever ends it. Return the watcher, which has counted.

    What it says first (``hello``) it says when signals are heeded already: who reads it may send one.
    """
    watcher = Watched(session)
    worker.watchers.append(watcher)
    with Stopping(session, worker) as stopping:
        for place, text in enumerate(hello):
            session.out.say(text, bold=place == 0 and len(hello) > 1)
        naming = asyncio.ensure_future(_name_mistakes(worker))
        try:
            if not stopping.presses:
                await worker.run(budget=budget, until_idle=idle)
                await asyncio.wait([naming], timeout=_NAMING_SECONDS)
        finally:
            naming.cancel()
    return watcher


async def _name_mistakes(worker: Worker) -> None:
    """Warn of workflows that nobody lists, and of records at steps that are gone. Large ledgers take their time."""
    workflows = worker.registry.workflows.values()
    with suppress(QuireError):
        for text in [*unlisted(workflows), *lost_steps(await worker.ledger.counts(), workflows)]:
            log.warning(text)


def check_spans(**spans: str | None) -> None:
    for name, text in spans.items():
        if text is not None and seconds(text) <= 0 and name != "grace":
            raise InputError(f"--{name} must be longer than nothing")


def _what(client: Client) -> str:
    return ", ".join(client.registry.workflows)


@verb(
    "worker",
    example="""
    quire worker flows.py
    quire worker --budget 5m --concurrency 20 --label nightly
    """,
)
@click.argument("files", nargs=-1, metavar="[FILE]...", type=click.Path())
@click.option("--budget", metavar="SPAN", help="End by itself after this span, like 5m; with exit code 0.")
@click.option(
    "--concurrency", type=click.IntRange(1, 10_000), default=100, show_default=True, help="Steps side by side."
)
@click.option("--label", default="", metavar="NAME", help="What people see instead of the process id.")
@click.option(
    "--grace", default=_GRACE, show_default=True, metavar="SPAN", help="How long running steps may finish at the end."
)
@click.option(
    "--lease", metavar="SPAN", help="After so long without a beat others take over; the store knows a good one."
)
@click.option(
    "--until-idle", is_flag=True, help=f"End when nothing runs and nothing falls due within {_SOON_SECONDS} s."
)
def worker(
    session: Session,
    files: Sequence[str],
    budget: str | None,
    concurrency: int,
    label: str,
    grace: str,
    lease: str | None,
    until_idle: bool,
) -> int:
    """Run a worker for the workflows of these files, or of those in quire.toml.

    Ctrl-C ends it: running steps may finish within the grace period, then they go back to the ledger. Nothing is left
    RUNNING. A second Ctrl-C gives them back at once.
    """
    check_spans(budget=budget, grace=grace, lease=lease)
    start_logging(session)

    async def work() -> None:
        async with working_client(session, files) as client:
            made = client.worker(concurrency=concurrency, label=label, lease=lease)
            made.grace = seconds(grace)
            made.soon = _SOON_SECONDS
            hello = f"worker for {_what(client)} on {concealed(session.config.ledger)}; Ctrl-C ends it"
            async with projecting(session, client):
                worked = await run_worker(session, made, budget, idle=until_idle, hello=[hello])
            session.out.say(f"worker ended; {words.counted(worked.finished, 'record')} finished")

    with process.giving_way():
        process.run(work())
    return Exit.OK


def _server() -> Any | None:
    """What serves the API and the dashboard; None: it is not installed."""
    try:
        return import_module("quire.surfaces.server").serve
    except (ImportError, AttributeError):
        return None


def _no_server() -> str:
    return f"the API and the dashboard are not installed here ({install('web')})"


@verb(
    "up",
    example="""
    quire up flows.py
    quire up --reload
    """,
)
@click.argument("files", nargs=-1, metavar="[FILE]...", type=click.Path())
@click.option("--host", default="127.0.0.1", show_default=True, help="Where the API listens.")
@click.option("--port", type=click.IntRange(0, 65535), default=8700, show_default=True, help="The API's port.")
@click.option(
    "--concurrency", type=click.IntRange(1, 10_000), default=100, show_default=True, help="Steps side by side."
)
@click.option(
    "--grace", default=_GRACE, show_default=True, metavar="SPAN", help="How long running steps may finish at the end."
)
@click.option("--panel", default="", metavar="sheets://ID", help="Keep this sheet up, and obey what is typed in it.")
@click.option(
    "--google", type=click.Choice(["emulate"]), help="Let acts on Google go to an emulator that runs beside the worker."
)
@click.option("--reload", is_flag=True, help="Start again when a flow file changes.")
def up(
    session: Session,
    files: Sequence[str],
    host: str,
    port: int,
    concurrency: int,
    grace: str,
    panel: str,
    google: str | None,
    reload: bool,
) -> int:
    """Run everything in one process: a worker, the API and the dashboard.

    The definitions of the workflows are registered in the ledger, so that the other commands check data and successors
    without importing your code. For production run quire worker and quire serve by themselves.
    """
    check_spans(grace=grace)
    if reload:
        return _reloading(session, flow_files(session, files))
    wish = Up(files, host, port, concurrency, seconds(grace), panel)
    if google is None:
        return run_up(session, wish)
    from quire.surfaces.cli.run.emulator import emulated

    with emulated(session) as pages:
        return run_up(session, wish._replace(hello=pages))


class Up(NamedTuple):
    """What ``quire up`` runs, and how."""

    files: Sequence[str] = ()
    host: str = "127.0.0.1"
    port: int = 8700
    concurrency: int = 100
    grace: float = 10.0
    panel: str = ""
    #: Lines that are said besides when it runs.
    hello: Sequence[str] = ()


def run_up(session: Session, wish: Up) -> int:
    """Run a worker, the API, the dashboard and the panel until Ctrl-C."""
    from quire.surfaces.cli.run.panel import paneling

    start_logging(session)

    async def work() -> None:
        async with working_client(session, wish.files) as client:
            serve = _server()
            text = f"worker only: {_no_server()}; for production: quire worker"
            made = client.worker(concurrency=wish.concurrency, label="up")
            made.grace = wish.grace
            serving = None
            # The panel comes first: where its address is wrong, nobody reads the address of an API that ends at once.
            async with paneling(session, client, made, wish.panel) as drawn:
                if serve is not None:
                    serving, address = await listening(serve, client, wish.host, wish.port, session)
                    serving.add_done_callback(lambda _: made.stop())
                    text = f"worker + API + dashboard on {address}; for production: quire worker, quire serve"
                    browsing.show(address, terminal=session.out.terminal)
                hello = [
                    text,
                    f"workflows: {_what(client)}; ledger: {concealed(session.config.ledger)}; Ctrl-C ends it",
                ]
                hello += [*([f"panel: {drawn}"] if drawn else []), *wish.hello]
                try:
                    async with projecting(session, client):
                        await run_worker(session, made, None, idle=False, hello=hello)
                finally:
                    await _ended(serving)

    process.run(work())
    return Exit.OK


async def listening(
    serve: Any, client: Client, host: str, port: int, session: Session, **more: Any
) -> tuple[asyncio.Future[None], str]:
    """A server that listens, and its address: nobody reads the address of one that does not, or may not, open."""
    started: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    serving = asyncio.ensure_future(serve(client, host=host, port=port, config=session.config, started=started, **more))
    await asyncio.wait([serving, started], return_when=asyncio.FIRST_COMPLETED)
    if not started.done():
        started.cancel()
        await _ended(serving)
        raise InputError("the API ended before it listened")
    shown = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return serving, f"http://{shown}:{started.result()}"


async def until_ended(serving: asyncio.Future[None]) -> None:
    """Wait for the server's end, or for SIGTERM, with which platforms end a process; and end it if this ends."""
    row = asyncio.Event()
    loop = asyncio.get_running_loop()
    with suppress(NotImplementedError, ValueError, RuntimeError):  # Windows, or not in the main thread
        loop.add_signal_handler(signal.SIGTERM, row.set)
    waiting = asyncio.ensure_future(row.wait())
    both: list[asyncio.Future[Any]] = [serving, waiting]
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
        with suppress(NotImplementedError, ValueError, RuntimeError):
            loop.remove_signal_handler(signal.SIGTERM)
        await _ended(serving)


async def _ended(serving: asyncio.Future[None] | None) -> None:
    """The server's end; why it ended, if it did so by itself."""
    if serving is None:
        return
    if not serving.done():
        serving.cancel()
    try:
        await serving
    except asyncio.CancelledError:
        return
    except OSError as error:
        raise InputError(f"the API cannot listen there: {error}") from error


@verb(
    "serve",
    example="""
    quire serve --host 0.0.0.0 --port 8700
    quire serve --tick 50s flows.py
    """,
)
@click.argument("files", nargs=-1, metavar="[FILE]...", type=click.Path())
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--port", type=click.IntRange(0, 65535), default=8700, show_default=True, help="The port.")
@click.option("--tick", "budget", metavar="SPAN", help="Work for so long on each call of /tick, with these flow files.")
def serve(session: Session, files: Sequence[str], host: str, port: int, budget: str | None) -> int:
    """Run the API and the dashboard, without a worker.

    With --tick it works while it is called: for platforms that start a process for a request and stop it afterwards.
    A periodic caller posts to /tick with a token; a slice that leaves work behind calls the next one.
    """
    from quire.surfaces.cli.run.beside import beside

    check_spans(tick=budget)
    if files and budget is None:
        raise InputError("quire serve runs no flow files; name them with --tick SPAN, or run a worker beside it")
    found = _server()
    if found is None:
        raise InputError(_no_server())

    async def work() -> None:
        async with AsyncExitStack() as stack:
            if budget is None:
                client = await stack.enter_async_context(session.client(make=True))
                more: dict[str, Any] = {}
            else:
                from quire.surfaces.server.ticking import Ticking

                client = await stack.enter_async_context(working_client(session, files))
                more = {"ticking": Ticking(client, seconds(budget))}
            serving, address = await listening(found, client, host, port, session, **more)
            session.out.say(f"API + dashboard on {address}; Ctrl-C ends it", bold=True)
            async with beside(session, client):
                await until_ended(serving)

    start_logging(session)
    process.run(work())
    return Exit.OK


# -- starting again when a file changes ------------------------------------------------------------------------


def _stamp(files: Sequence[str]) -> tuple[float, ...]:
    """Return when the flow files, and the modules beside them, were changed last."""
    near = {path for file in files for path in [Path(file), *Path(file).parent.glob("*.py")]}
    return tuple(sorted(path.stat().st_mtime for path in near if path.is_file()))


def _reloading(session: Session, files: Sequence[str]) -> int:
    if not files:
        flows.load_flows(files)
    typed = [word for word in sys.argv[1:] if word != "--reload"]
    child: subprocess.Popen[bytes] | None = None

    async def watch() -> None:
        nonlocal child
        from quire.clock import SYSTEM

        me = asyncio.current_task()
        assert me is not None
        with suppress(NotImplementedError, ValueError, RuntimeError):  # Windows, or not in the main thread
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, me.cancel)
        while True:
            stamp = _stamp(files)
            child = _begun(typed)
            os.environ[browsing.OPENED] = "1"
            while _stamp(files) == stamp:
                await SYSTEM.sleep(0.5)
            session.out.note("a flow file has changed: starting again")
            _stop(child)

    try:
        session.run(watch())
    except asyncio.CancelledError:
        pass  # SIGTERM, with which platforms end a process: what it started ends with it
    finally:
        if child is not None:
            _stop(child)
    return Exit.OK


def _begun(typed: Sequence[str]) -> subprocess.Popen[bytes]:
    # Bytecode counts as current by the second and the size of its source: of a module beside the flow files an edit
    # right after a start would be missed.
    return subprocess.Popen([sys.executable, "-B", "-m", "quire.surfaces.cli", *typed])


def _stop(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is None:
        child.terminate()
    child.wait()
