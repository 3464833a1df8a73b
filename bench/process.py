"""Runs one peer as a subprocess in its own virtualenv and session, and speaks JSON lines with it."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from bench.servers import psql_folder


class PeerFailed(Exception):
    """A call went wrong, timed out, or the process ended. The text says which."""


class NotOffered(Exception):
    """The peer has no equal of what was asked; the text is the reason."""


class PeerProcess:
    def __init__(self, python: Path, script: Path, log: Path) -> None:
        unwanted = ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH")
        environment = {key: value for key, value in os.environ.items() if key not in unwanted}
        environment["PATH"] = os.pathsep.join([environment.get("PATH", os.defpath), psql_folder()])
        self._log = log.open("ab")
        self._process = subprocess.Popen(
            [str(python), str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=environment,
            cwd=script.parent,
            start_new_session=True,
        )
        self._selector = selectors.DefaultSelector()
        assert self._process.stdout is not None
        self._selector.register(self._process.stdout, selectors.EVENT_READ)
        self._pending = b""

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, call: str, **parameters: Any) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"call": call, **parameters}).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise PeerFailed(f"the process ended before {call}: {error}") from error

    def receive(self, call: str, timeout: float) -> dict[str, Any]:
        answer = json.loads(self._read_line(call, timeout))
        if answer.pop("ok"):
            return dict(answer)
        if answer.get("offered") is False:
            raise NotOffered(answer["error"])
        raise PeerFailed(answer["error"])

    def refusal(self) -> Exception | None:
        """What an unanswered call has failed with, if it has failed already."""
        assert self._process.stdout is not None
        if not self._selector.select(0):
            return None
        try:
            self.receive("the call under way", 1)
        except (PeerFailed, NotOffered) as error:
            return error
        return None

    def call(self, call: str, timeout: float, **parameters: Any) -> dict[str, Any]:
        self.send(call, **parameters)
        return self.receive(call, timeout)

    def _read_line(self, call: str, timeout: float) -> bytes:
        assert self._process.stdout is not None
        deadline = time.monotonic() + timeout
        while b"\n" not in self._pending:
            if not self._selector.select(max(0.0, deadline - time.monotonic())):
                raise PeerFailed(f"{call} did not answer in {timeout:g} s")
            chunk = os.read(self._process.stdout.fileno(), 1 << 16)
            if not chunk:
                raise PeerFailed(f"the process ended during {call} (exit code {self._process.wait()})")
            self._pending += chunk
        line, _, self._pending = self._pending.partition(b"\n")
        return line

    def kill(self) -> None:
        """SIGKILL to the session that this object started, and to nothing else."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._close()

    def stop(self, grace: float = 5.0) -> None:
        """End of input asks the peer to close; what is left after the grace is killed."""
        assert self._process.stdin is not None
        with contextlib.suppress(subprocess.TimeoutExpired, OSError):
            self._process.stdin.close()
            self._process.wait(grace)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._close()

    def _close(self) -> None:
        self._selector.close()
        for stream in (self._process.stdin, self._process.stdout, self._log):
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()
