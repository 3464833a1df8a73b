"""Answers that leave in one piece: their head waits for the body that follows in the same breath.

uvicorn writes both by themselves, which is two packets, and wakes whoever waits for the answer twice.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class _Cork(asyncio.Transport):
    """A transport that holds back the head of an answer until the next write, or the next turn of the loop."""

    def __init__(self, inner: asyncio.Transport) -> None:
        super().__init__()
        self._inner = inner
        self._loop = asyncio.get_running_loop()
        self._head = b""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._head:
            head, self._head = self._head, b""
            self._inner.write(head + data)
        elif data[:9] == b"HTTP/1.1 ":
            self._head = bytes(data)
            self._loop.call_soon(self._pass_on)
        else:
            self._inner.write(data)

    def _pass_on(self) -> None:
        """Nothing followed at once: a stream, or an answer whose body takes long."""
        head, self._head = self._head, b""
        if head:
            self._inner.write(head)

    def close(self) -> None:
        self._pass_on()
        self._inner.close()

    def abort(self) -> None:
        self._head = b""
        self._inner.abort()

    def is_closing(self) -> bool:
        return self._inner.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._inner.get_extra_info(name, default)

    def get_write_buffer_size(self) -> int:
        return len(self._head) + self._inner.get_write_buffer_size()

    def pause_reading(self) -> None:
        self._inner.pause_reading()

    def resume_reading(self) -> None:
        self._inner.resume_reading()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._inner.set_protocol(protocol)


class Corked(HttpToolsProtocol):
    """uvicorn's protocol over such a transport."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(_Cork(transport))
