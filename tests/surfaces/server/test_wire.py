"""What goes over the wire: answers in one piece, heads with an end, refusals that say what to do."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from quire.surfaces.server import serving
from tests.surfaces.server.conftest import Site, calling, opened, running


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with running("memory:") as found:
        yield found


def said(site: Site, content: bytes, until: bytes) -> list[bytes]:
    """The pieces that came back for these bytes."""
    with socket.create_connection((site.host, site.port), timeout=20) as line:
        line.sendall(content)
        pieces: list[bytes] = []
        while until not in b"".join(pieces):
            got = line.recv(1 << 20)
            if not got:
                break
            pieces.append(got)
    return pieces


def test_an_answer_leaves_in_one_piece(site: Site) -> None:
    ask = f"GET /health HTTP/1.1\r\nHost: {site.host}\r\n\r\n".encode()
    assert len(said(site, ask, b"alive")) == 1
    both = b"".join(said(site, ask + ask, b'alive"}HTTP/1.1 200'))
    assert both.startswith(b"HTTP/1.1 200 OK") and both.count(b"content-length: 18") >= 1


def test_the_head_of_a_stream_does_not_wait_for_its_end(site: Site) -> None:
    ask = f"GET /api/stream HTTP/1.1\r\nHost: {site.host}\r\n\r\n".encode()
    told = b"".join(said(site, ask, b"event: counts"))
    assert told.startswith(b"HTTP/1.1 200 OK") and b"text/event-stream" in told


def test_headers_without_an_end_are_cut_off(site: Site) -> None:
    pieces = b"".join(said(site, b"GET /health HTTP/1.1\r\nX-Long: " + b"a" * 400_000, b"\r\n\r\n"))
    assert pieces.startswith(b"HTTP/1.1 431 ")
    assert said(site, f"GET /health HTTP/1.1\r\nHost: {site.host}\r\n\r\n".encode(), b"alive")


@pytest.mark.parametrize(
    ("content", "kind", "status", "words"),
    [
        ('{"workflow": "order"}', "text/plain", 422, "must be JSON, and say so: Content-Type: application/json"),
        ("not json", "application/json", 422, "the body is not JSON: expecting value at character 0"),
        ('{"workflow": 7}', "application/json", 422, "body.workflow: Input should be a valid string"),
        ('{"data": ' + "[" * 50_000 + "]" * 50_000 + "}", "application/json", 400, "nested too deeply"),
    ],
)
async def test_a_body_that_cannot_be_read_is_told_how_to_mend_it(
    content: str, kind: str, status: int, words: str
) -> None:
    async with opened() as client, calling(client) as http:
        answer = await http.post("/api/records", content=content, headers={"Content-Type": kind})
        assert (answer.status_code, await client.find()) == (status, [])
        assert words in answer.json()["message"]


async def test_an_origin_that_is_no_address_is_another_page() -> None:
    async with opened() as client, calling(client) as http:
        answer = await http.post("/api/pause", json={}, headers={"Origin": "http://[", "X-Quire": "1"})
    assert answer.status_code == 403


def test_an_address_of_another_machine_is_told() -> None:
    with pytest.raises(OSError, match=r"192\.0\.2\.1:0 is not an address of this machine"):
        serving._bound("192.0.2.1", 0)
