"""Half a request holds nobody up: it ends after a while, and makes room for others before that."""

from __future__ import annotations

import os
import re
import resource
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx2
import pytest

from quire.surfaces.server import connections
from tests.surfaces.server.conftest import Site, running

#: No test waits this long unless the server is stuck.
SECONDS = 30
HOST = b"Host: 127.0.0.1\r\n"
HEALTH = b"GET /health HTTP/1.1\r\n" + HOST + b"\r\n"


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A server that waits for nobody."""
    for name in ("HEAD_SECONDS", "BODY_SECONDS", "UNREAD_SECONDS"):
        monkeypatch.setattr(connections, name, 0.05)
    with running("memory:") as site:
        yield site


def heard(site: Site, content: bytes) -> bytes:
    """All that the server says to these bytes until it closes the connection."""
    with socket.create_connection((site.host, site.port), timeout=SECONDS) as line:
        line.sendall(content)
        pieces = []
        while piece := line.recv(1 << 16):
            pieces.append(piece)
    return b"".join(pieces)


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"", b""),
        (b"GET /hea", b"408"),
        (b"GET /health HTTP/1.1\r\nX-Slow: ", b"408"),
        (b"\r\n", b"408"),
        (b"POST /hooks/x HTTP/1.1\r\n" + HOST + b"Content-Length: 100\r\n\r\n{", b"408"),
        (b"POST /api/records HTTP/1.1\r\n" + HOST + b"Content-Length: 100\r\n\r\n", b"408"),
        (b"POST /api/records HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{", b"408"),
    ],
)
def test_half_a_request_ends(hasty: Site, content: bytes, status: bytes) -> None:
    assert heard(hasty, content)[9:12] == status


def test_half_a_request_behind_a_whole_one_ends(hasty: Site) -> None:
    told = heard(hasty, HEALTH + b"GET /health HTTP/1.1\r\nX-Slow: ")
    assert told.startswith(b"HTTP/1.1 200") and b"HTTP/1.1 408" in told


def test_the_rest_of_a_body_that_nobody_wants_is_not_awaited_for_ever(hasty: Site) -> None:
    told = heard(hasty, b"POST /nowhere HTTP/1.1\r\n" + HOST + b"Content-Length: 100\r\n\r\n{")
    assert told.startswith((b"HTTP/1.1 404", b"HTTP/1.1 408"))


def test_a_stream_goes_on_although_its_caller_says_nothing_more(hasty: Site) -> None:
    """What the server waits for is what counts, not how long the answer takes."""
    with socket.create_connection((hasty.host, hasty.port), timeout=SECONDS) as line:
        line.sendall(b"GET /api/stream HTTP/1.1\r\n" + HOST + b"\r\n")
        told = b""
        while b"event: counts" not in told:
            piece = line.recv(1 << 16)
            assert piece, "the stream ended"
            told += piece
        # Four other callers were cut off meanwhile, each after the longest that this server waits.
        for _ in range(4):
            assert heard(hasty, b"GET /hea")
        hasty.do(lambda client: client.pause(reason="to be heard"))
        while b"to be heard" not in told:
            piece = line.recv(1 << 16)
            assert piece, "the stream ended"
            told += piece


def test_a_caller_that_never_reads_its_answers_is_cut_off(hasty: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = threading.Event()

    def losing(self: connections.Connection, why: Exception | None) -> None:
        connection_lost(self, why)
        lost.set()

    connection_lost = connections.Connection.connection_lost
    monkeypatch.setattr(connections.Connection, "connection_lost", losing)
    with socket.socket() as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.connect((hasty.host, hasty.port))
        # Nothing is read, so the answers fill every buffer on the way.
        line.sendall((b"GET /api/openapi.json HTTP/1.1\r\n" + HOST + b"\r\n") * 200)
        assert lost.wait(SECONDS)


# -- how many --------------------------------------------------------------------------------------------------


@contextmanager
def served(folder: Path, descriptors: int) -> Iterator[str]:
    """A server in a process of its own with so many descriptors; its address."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "quire.surfaces.cli", "serve", "--port", "0"],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=log,
            env=os.environ | {"PYTHONUNBUFFERED": "1", "QUIRE_LEDGER": f"sqlite:///{folder}/ledger.db"},
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, hard)),
        )
        try:
            assert process.stdout is not None
            found = re.search(rb"http://127\.0\.0\.1:\d+", process.stdout.readline())
            assert found is not None, (folder / "log").read_text()
            yield found[0].decode()
        finally:
            process.kill()
            process.wait()
            process.stdout.close()  # type: ignore[union-attr]


def test_halves_of_requests_for_every_descriptor_keep_nobody_out(tmp_path: Path) -> None:
    with served(tmp_path, descriptors=300) as url, ExitStack() as stack:
        port = int(url.rpartition(":")[2])
        for _ in range(400):
            line = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=SECONDS))
            line.sendall(b"GET /health HTTP/1.1\r\nX-Slow: ")
        with httpx2.Client(base_url=url, timeout=SECONDS) as http:
            for _ in range(3):
                assert http.get("/health").status_code == 200
                assert http.get("/api/records").status_code == 200
        assert "Too many open files" not in (tmp_path / "log").read_text()


def test_a_new_caller_takes_the_place_of_half_a_request_then_of_an_idle_caller_and_never_of_one_who_is_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "most_connections", lambda: 3)
    with running("memory:") as site, ExitStack() as stack:

        def caller(content: bytes, until: bytes) -> socket.socket:
            line = stack.enter_context(socket.create_connection((site.host, site.port), timeout=SECONDS))
            line.sendall(content)
            told = b""
            while until not in told:
                piece = line.recv(1 << 16)
                assert piece, told
                told += piece
            return line

        def gone(line: socket.socket) -> bool:
            with suppress(ConnectionError):
                return line.recv(1 << 16)[9:12] in (b"503", b"")
            return True

        stream = b"GET /api/stream HTTP/1.1\r\n" + HOST + b"\r\n"
        idle = caller(HEALTH, b"alive")
        caller(stream, b"event: counts")
        half = stack.enter_context(socket.create_connection((site.host, site.port), timeout=SECONDS))
        half.sendall(b"GET /hea")
        caller(stream, b"event: counts")
        assert gone(half)
        caller(stream, b"event: counts")
        assert gone(idle)
        with pytest.raises((AssertionError, ConnectionError)):
            caller(HEALTH, b"alive")
