"""One run of the harness: its scratch directory, its servers, and a fresh store for each measurement."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench import servers, venvs
from bench.process import PeerProcess
from bench.roster import Peer


@dataclass(frozen=True, slots=True)
class Place:
    """A store with nothing in it, and a directory beside it."""

    url: str
    directory: Path


class Session:
    def __init__(self, scratch: Path | None = None) -> None:
        base = Path(tempfile.mkdtemp(prefix="quire-bench-", dir=scratch or "/var/tmp"))
        base.chmod(0o755)
        self.scratch = base
        self.best: dict[str, float] = {}
        #: So long a measurement may wait for a quiet machine.
        self.patience = 0.0
        self._postgres: servers.Postgres | None = None
        self._count = 0

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._postgres is not None:
            self._postgres.stop()
        shutil.rmtree(self.scratch, ignore_errors=True)

    @property
    def postgres(self) -> servers.Postgres:
        if self._postgres is None:
            self._postgres = servers.Postgres(self.scratch)
        return self._postgres

    @contextmanager
    def place(self, peer: Peer) -> Iterator[Place]:
        self._count += 1
        directory = self.scratch / f"{self._count}-{peer.name}"
        directory.mkdir()
        server: servers.Server | None = None
        try:
            if peer.store == "sqlite":
                yield Place(f"sqlite:///{directory}/ledger.db", directory)
            elif peer.store == "postgres":
                url = self.postgres.database()
                try:
                    yield Place(url, directory)
                finally:
                    self.postgres.drop(url)
            else:
                server = servers.STARTERS[peer.store](directory)
                yield Place(server.url, directory)
        finally:
            if server is not None:
                server.stop()
            shutil.rmtree(directory, ignore_errors=True)

    def spawn(self, peer: Peer) -> PeerProcess:
        return PeerProcess(venvs.python_of(peer.venv), peer.script, self.scratch / f"{peer.name}.log")

    @contextmanager
    def running(self, peer: Peer, place: Place) -> Iterator[tuple[PeerProcess, dict[str, object]]]:
        """The peer's process, set up on this place; the second value is what it said about its settings."""
        process = self.spawn(peer)
        try:
            about = process.call("setup", 120, url=place.url, directory=str(place.directory))
            yield process, about
        finally:
            process.stop()

    def log_tail(self, peer: Peer, lines: int = 40) -> str:
        path = self.scratch / f"{peer.name}.log"
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:]) if path.exists() else ""


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
