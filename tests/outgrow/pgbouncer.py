"""A real PgBouncer for tests, before a server of PostgreSQL."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

_NOBODY = 65534
_START_SECONDS = 30


def binaries() -> list[str]:
    """The PgBouncers of this machine: those that QUIRE_TEST_PGBOUNCERS names, parted by colons, and the system's."""
    named = [path for path in os.environ.get("QUIRE_TEST_PGBOUNCERS", "").split(":") if path]
    found = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    return named + ([found] if found and not named else [])


class PgBouncer:
    """A running pooler; a context manager."""

    def __init__(self, binary: str, server: str, mode: str, size: int = 4, more: str = "") -> None:
        self._binary = binary
        self._parts = urlsplit(server)
        self._mode = mode
        self._size = size
        self._more = more
        self._directory = Path(tempfile.mkdtemp(prefix="quire-pgbouncer-"))
        self._process: subprocess.Popen[bytes] | None = None
        self.url = ""

    def __enter__(self) -> Self:
        as_user: dict[str, Any] = {}
        if os.geteuid() == 0:
            as_user = {"user": _NOBODY, "group": _NOBODY, "extra_groups": []}
            os.chown(self._directory, _NOBODY, _NOBODY)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        user = self._parts.username
        (self._directory / "users").write_text(f'"{user}" ""\n')
        (self._directory / "ini").write_text(
            f"[databases]\n* = host={self._parts.hostname} port={self._parts.port} user={user}\n[pgbouncer]\n"
            f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n"
            f"auth_file = {self._directory}/users\npool_mode = {self._mode}\ndefault_pool_size = {self._size}\n"
            f"max_client_conn = 500\nlogfile = {self._directory}/log\n{self._more}\n"
        )
        self._process = subprocess.Popen(
            [self._binary, str(self._directory / "ini")],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **as_user,
        )
        for _ in range(_START_SECONDS * 20):
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                self.url = self._parts._replace(netloc=f"{user}@127.0.0.1:{port}").geturl()
                return self
            if self._process.poll() is not None:
                break
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(0.05)
        log = self._directory / "log"
        text = log.read_text() if log.exists() else "it wrote no log"
        self.__exit__(None, None, None)
        raise RuntimeError(f"PgBouncer did not start: {text[-500:]}")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._directory, ignore_errors=True)
