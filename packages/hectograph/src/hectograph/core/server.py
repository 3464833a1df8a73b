"""The HTTP server: threads that keep connections open, and a stop that leaves none of them behind."""

from __future__ import annotations

import contextlib
import http.server
import socket
import socketserver
import struct
import threading
from collections.abc import Callable
from typing import Any

from hectograph.core.http import Dropped, Request, Response

Handler = Callable[[Request], Response]

_LARGEST = 256 * 2**20


class Server(socketserver.ThreadingTCPServer):
    """Serves until told to stop; then every connection is cut and every thread waited for."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], handler: Handler) -> None:
        super().__init__(address, _Connection)
        self.handler = handler
        self._open: set[socket.socket] = set()
        self._workers: set[threading.Thread] = set()
        self._lock = threading.Lock()

    def process_request(self, request: Any, client_address: Any) -> None:
        thread = threading.Thread(target=self._work, args=(request, client_address), name="emulator-call", daemon=True)
        with self._lock:
            self._open.add(request)
            self._workers.add(thread)
        thread.start()

    def _work(self, request: Any, client_address: Any) -> None:
        try:
            with contextlib.suppress(OSError):
                self.finish_request(request, client_address)
        finally:
            with contextlib.suppress(OSError):
                self.shutdown_request(request)
            with self._lock:
                self._open.discard(request)
                self._workers.discard(threading.current_thread())

    def cut(self) -> None:
        """Close every connection and wait for the threads that served them."""
        with self._lock:
            sockets, workers = list(self._open), list(self._workers)
        for held in sockets:
            with contextlib.suppress(OSError):
                held.shutdown(socket.SHUT_RDWR)
        for worker in workers:
            worker.join(timeout=15)


class _Connection(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "ESF"
    sys_version = ""
    server: Server

    def setup(self) -> None:
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().setup()

    def log_message(self, format: str, *args: Any) -> None:
        return

    def _serve(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = self._body(headers)
        try:
            answer = self.server.handler(Request.of(self.command, self.path, headers, body))
        except Dropped:
            self._reset()
            return
        self._send(answer)

    def _body(self, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding", "").lower() == "chunked":
            out = b""
            while size := int(self.rfile.readline().split(b";")[0].strip() or b"0", 16):
                out += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return out
        length = min(int(headers.get("content-length") or 0), _LARGEST)
        return self.rfile.read(length) if length else b""

    def _reset(self) -> None:
        """Close with a reset, so that the caller sees a broken connection and no answer."""
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.request.close()

    def _send(self, answer: Response) -> None:
        self.send_response_only(answer.status)
        self.send_header("Server", self.server_version)
        self.send_header("Date", answer.headers.get("Date") or self.date_time_string())
        for name, value in answer.headers.items():
            if name != "Date":
                self.send_header(name, value)
        self.send_header("Vary", "Origin")
        self.send_header("Access-Control-Allow-Origin", "*")
        bodiless = answer.status in (204, 304) or self.command == "HEAD"
        if answer.status != 204:
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if answer.body and not bodiless:
            self.wfile.write(answer.body)
        self.wfile.flush()

    def __getattr__(self, name: str) -> Any:
        """Every method is served alike; the base class looks them up by name."""
        if name in {"do_GET", "do_POST", "do_PUT", "do_PATCH", "do_DELETE", "do_HEAD"}:
            return self._serve
        raise AttributeError(name)

    def do_OPTIONS(self) -> None:
        self._send(
            Response(
                204,
                b"",
                {
                    "Access-Control-Allow-Methods": "GET, POST, PUT, PATCH, DELETE",
                    "Access-Control-Allow-Headers": "authorization, content-type, if-match, x-goog-api-client",
                },
            )
        )

    #: One write for headers and body: small answers leave in one packet.
    wbufsize = -1
