"""An HTTP server that takes what is posted to it, so that a test can look at it."""

from __future__ import annotations

import http.server
import json
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Taken:
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Receiver:
    url: str
    taken: queue.Queue[Taken] = field(default_factory=queue.Queue)
    #: What it answers: each status once, then the last one; and the JSON that it sends.
    statuses: list[int] = field(default_factory=lambda: [200])
    answer: Any = None

    def next(self) -> Taken:
        return self.taken.get(timeout=10)


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Run a receiver on a free port."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            status = held.statuses.pop(0) if len(held.statuses) > 1 else held.statuses[0]
            answer = b"" if held.answer is None else json.dumps(held.answer).encode()
            held.taken.put(Taken(self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *words: Any) -> None:
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    held = Receiver(f"http://127.0.0.1:{server.server_address[1]}")
    try:
        yield held
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
