"""Bounds for connections: how long half a request may take, how large its head may be, and how many are open at once.

A caller needs no token to open a connection. Without these bounds a few hundred halves of requests use up the file
descriptors of the process, and nobody else gets an answer.
"""

from __future__ import annotations

import asyncio
from enum import Enum, auto
from typing import Any

from quire.surfaces.server.corked import Corked

try:
    import resource
except ImportError:  # Windows: it counts descriptors otherwise
    resource = None  # type: ignore[assignment]

#: The whole head of a request must be there after this long, counted from its first byte, or from the start.
HEAD_SECONDS = 20.0
#: A body may take this long, and longer by one second for every ``BODY_RATE`` bytes that have come.
BODY_SECONDS = 20.0
BODY_RATE = 1000
#: A caller that takes nothing of its answer for this long is cut off.
UNREAD_SECONDS = 60.0
#: The head of a request may be this long, and one read more.
HEAD_BYTES = 64 * 1024
#: More connections than this are never open at once, however many descriptors the process may have.
MOST = 4096
#: This many connections may wait to be accepted. The event loop accepts them all in one turn.
BACKLOG = 128
#: Descriptors that connections leave to the ledger, to files, and to what one turn of the loop accepts.
RESERVED = BACKLOG + 64


def most_connections() -> int:
    """Return how many connections may be open at once, by the limit of descriptors of this process."""
    if resource is None:
        return MOST
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if soft == resource.RLIM_INFINITY else max(16, min(MOST, soft - RESERVED))


def _refusal(status: str) -> bytes:
    return f"HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".encode()


_TOO_LONG = _refusal("431 Request Header Fields Too Large")
_TOO_SLOW = _refusal("408 Request Timeout")
_TOO_MANY = _refusal("503 Service Unavailable")


class _Awaited(Enum):
    """What the server waits for from a caller."""

    HEAD = auto()
    BODY = auto()
    NOTHING = auto()


class Connection(Corked):
    """One connection within the bounds."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._unread: asyncio.TimerHandle | None = None
        self._await(_Awaited.HEAD)
        self._timer = self.loop.call_later(HEAD_SECONDS, self._look)
        self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        self.resume_writing()
        super().connection_lost(exc)

    # -- how long ----------------------------------------------------------------------------------------------

    def _await(self, awaited: _Awaited) -> None:
        self._awaited = awaited
        self._since = self.loop.time()
        self._bytes = 0

    def _due(self) -> float:
        """Return when what the server waits for is late."""
        if self._awaited is _Awaited.HEAD:
            return self._since + HEAD_SECONDS
        if self._awaited is _Awaited.BODY:
            return self._since + BODY_SECONDS + self._bytes / BODY_RATE
        return float("inf")

    def _look(self) -> None:
        """Cut the connection off if it is late. Otherwise look again, no later than it could be late.

        One timer serves all requests of a connection: a timer for each would cost every request something.
        """
        now = self.loop.time()
        if self.flow.read_paused:
            self._since = now  # the server does not read, so the caller is not late
        if now < self._due():
            self._timer = self.loop.call_at(min(self._due(), now + HEAD_SECONDS), self._look)
        else:
            self._cut(_TOO_SLOW)

    def _cut(self, why: bytes) -> None:
        """Close the connection. Say why, unless the caller has asked for nothing or is being answered."""
        self.connections.discard(self)
        if self.transport.is_closing():
            return
        cycle: Any = self.cycle  # None until the first request
        answering = cycle is not None and cycle.response_started and not cycle.response_complete
        if answering or self.flow.write_paused:
            self.transport.abort()
            return
        if self._bytes and self._awaited is not _Awaited.NOTHING:
            self.transport.write(why)
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        if self._awaited is _Awaited.NOTHING:
            self._await(_Awaited.HEAD)
        self._bytes += len(data)
        super().data_received(data)
        if self._awaited is _Awaited.HEAD and self._bytes > HEAD_BYTES:
            self._cut(_TOO_LONG)

    def on_message_begin(self) -> None:
        if self._awaited is not _Awaited.HEAD:
            self._await(_Awaited.HEAD)
            self._bytes = 1
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        seen = self._bytes
        self._await(_Awaited.BODY)
        self._bytes = seen
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._await(_Awaited.NOTHING)
        super().on_message_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._unread is None:
            self._watch_reading(None)

    def _watch_reading(self, left: int | None) -> None:
        """Cut off a caller that has taken nothing since ``left`` bytes of its answer were waiting here."""
        waiting = self.transport.get_write_buffer_size()
        if left is not None and waiting >= left:
            self.transport.abort()
        else:
            self._unread = self.loop.call_later(UNREAD_SECONDS, self._watch_reading, waiting)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    # -- how many ----------------------------------------------------------------------------------------------

    def _make_room(self) -> None:
        """Keep the number of connections within its bound: the one that has waited longest for nothing good goes.

        Halves of requests go first, then connections between two requests. If all others are being answered, the new
        one is refused.
        """
        if len(self.connections) <= most_connections():
            return
        others: list[Any] = [one for one in self.connections if isinstance(one, Connection) and one is not self]
        halves = [one for one in others if one._awaited is not _Awaited.NOTHING]
        idle = [one for one in others if one.cycle is None or one.cycle.response_complete]
        going = min(halves or idle, key=lambda one: one._since, default=self)
        going._cut(_TOO_MANY)
