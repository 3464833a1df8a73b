"""What every test has: async tests, a PostgreSQL server, a browser, and a check that nothing is left running."""

from __future__ import annotations

import asyncio
import fcntl
import functools
import inspect
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import HealthCheck, settings

from quire.testing.postgres import PostgresServer, PostgresUnavailable
from tests.wheels import ROOT, build, environment

# So that a failure of the suite of all stores tells what was found.
pytest.register_assert_rewrite("quire.testing.conformance")

IN_CI = os.environ.get("CI", "").lower() not in ("", "0", "false")

# A busy machine is no reason to fail: how long one example takes is not what these tests are about.
settings.register_profile(
    "quire", max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
# In CI the examples are the same each time: what fails there fails again.
settings.register_profile("ci", settings.get_profile("quire"), derandomize=True)
settings.load_profile("ci" if IN_CI else "quire")

#: A file system in memory, and the room there must be in it for the files of all tests at one time.
MEMORY = Path("/dev/shm")
MEMORY_BYTES = 4 * 2**30


def _files_in_memory() -> None:
    """Keep what tests write in memory: no test stops the machine, so that waiting for a disk proves nothing."""
    if "TMPDIR" in os.environ or not os.access(MEMORY, os.W_OK | os.X_OK):
        return
    there = os.statvfs(MEMORY)
    if there.f_bavail * there.f_frsize < MEMORY_BYTES or there.f_flag & os.ST_NOEXEC:
        return
    os.environ["TMPDIR"] = str(MEMORY)  # also for the processes that the tests start
    tempfile.tempdir = None


_files_in_memory()

#: How long a thread or process that is on its way out may take to get there.
GRACE_SECONDS = 2.0


def missing(reason: str) -> NoReturn:
    """What a test needs is not on this machine: a failure in CI, a skip elsewhere."""
    if IN_CI:
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


# --- async tests -----------------------------------------------------------------------------------------------------


def _loop_is_running() -> bool:
    """Whether this thread is taken: the synchronous Playwright leaves its own loop running in it."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _in_a_loop(function: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> None:
        if not _loop_is_running():
            asyncio.run(function(*args, **kwargs))
            return
        with ThreadPoolExecutor(1) as other_thread:
            other_thread.submit(lambda: asyncio.run(function(*args, **kwargs))).result()

    return run


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> None:
    """Give each ``async def`` test an event loop of its own; fixtures are ordinary functions."""
    given = getattr(pyfuncitem.obj, "hypothesis", None)
    if given is not None and inspect.iscoroutinefunction(given.inner_test):
        given.inner_test = _in_a_loop(given.inner_test)
    elif inspect.iscoroutinefunction(pyfuncitem.obj):
        pyfuncitem.obj = _in_a_loop(pyfuncitem.obj)


#: The synchronous Playwright leaves its event loop running in the thread of the tests that follow.
BROWSER_FIXTURES = frozenset({"playwright", "browser", "context", "page"})


def _browses(item: pytest.Item) -> bool:
    return not BROWSER_FIXTURES.isdisjoint(getattr(item, "fixturenames", ()))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that drive a browser come last, and the long ones first among them: no processor waits for a long end."""

    def place(item: pytest.Item) -> tuple[bool, bool]:
        browses = _browses(item)
        return browses, browses and item.get_closest_marker("slow") is None

    items.sort(key=place)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    yield from _without_the_browsers_loop(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    yield from _without_the_browsers_loop(item)


def _without_the_browsers_loop(item: pytest.Item) -> Iterator[None]:
    """A test that comes after one with a browser all the same, taken from another process's queue, sees no loop."""
    loop = asyncio._get_running_loop()
    if loop is None or _browses(item):
        yield
        return
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        asyncio._set_running_loop(loop)


# --- installed wheels ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One environment for all test processes: the built wheels of Quire, with all extras, and of the emulator."""
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "fresh"
    shared.mkdir(exist_ok=True)
    with open(shared / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the first one makes it, the others wait for it
        made = shared / "environment"
        if not (shared / "made").exists():
            quire = build(ROOT, shared / "dist")
            hectograph = build(ROOT / "packages" / "hectograph", shared / "dist")
            # Playwright is what examples/tracker.py drives its page with.
            environment(made, f"{quire}[all]", str(hectograph), "playwright")
            (shared / "made").touch()
    return made


# --- PostgreSQL ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One server for each test process."""
    before = set(_children())
    try:
        server = PostgresServer().start()
    except PostgresUnavailable as error:
        missing(str(error))
    _lasting.update(set(_children()) - before)
    yield server
    server.stop()


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """An empty database for this test alone."""
    url = postgres_server.create_database()
    yield url
    postgres_server.drop_database(url)


# --- browser ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def browser_type_launch_args() -> dict[str, Any]:
    """Playwright's ``browser`` and ``page`` fixtures drive the system's Chromium, which talks to nobody else."""
    # The same engine without a window around it, which takes a quarter of the time: Debian's package of that name.
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    chromium = next((path for path in map(shutil.which, names) if path is not None), None)
    if chromium is None:
        missing("There is no Chromium on this machine: install the package chromium to run the browser tests.")
    quiet = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic"]
    as_root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    return {"executable_path": chromium, "args": ["--disable-gpu", "--no-first-run", *quiet, *as_root]}


# --- leaks -----------------------------------------------------------------------------------------------------------


def _children() -> dict[int, str]:
    """Live child processes with their command lines; none where the system does not tell (other than Linux)."""
    found: dict[int, str] = {}
    if sys.platform != "linux":
        return found
    for listing in Path("/proc/self/task").glob("*/children"):
        try:
            pids = listing.read_text().split()
        except OSError:  # the thread has ended meanwhile
            continue
        for pid in pids:
            try:
                command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            # A process that has ended but is not collected has no command line; multiprocessing keeps its helpers.
            if command and "multiprocessing." not in command:
                found[int(pid)] = command
    return found


#: Processes that outlive a test on purpose: a server that is shared by all.
_lasting: set[int] = set()


@pytest.fixture(autouse=True)
def nothing_left_running() -> Iterator[None]:
    """Fail a test after which a thread or a child process goes on."""
    threads_before, children_before = set(threading.enumerate()), set(_children())

    yield

    for thread in set(threading.enumerate()) - threads_before:
        thread.join(GRACE_SECONDS)
    threads = [thread.name for thread in threading.enumerate() if thread not in threads_before]
    children = {pid: command for pid, command in _children().items() if pid not in children_before | _lasting}
    for pid in children:
        os.kill(pid, signal.SIGKILL)
    if threads or children:
        pytest.fail(f"left running: threads {threads}, processes {list(children.values())}", pytrace=False)
