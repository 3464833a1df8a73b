"""What the emulator posts to others: events for a Chat app, messages of Pub/Sub, notices of changes.

Each is posted by a thread of its own, so that no call waits for the receiver. ``GET /emulator/pushes`` shows what was
posted and what came back.
"""

from __future__ import annotations

import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from hectograph.core.clock import Now, stamp

#: What becomes of a post: its status, 0 where nobody answered, and the body of the answer.
Done = Callable[[int, bytes], object]

#: How long a receiver may take.
TIMEOUT_SECONDS = 10.0

#: How often the thread looks whether something has become due.
_LOOK_SECONDS = 0.05

#: Posts that ``GET /emulator/pushes`` shows.
_KEPT = 500


@dataclass
class Post:
    url: str
    body: bytes
    headers: Mapping[str, str]
    due: datetime
    done: Done | None = None


@dataclass
class Delivery:
    """The posts that wait, and the thread that sends them."""

    now: Now
    log: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._waiting: list[Post] = []
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._stopping = False

    def post(
        self, url: str, body: bytes, headers: Mapping[str, str], done: Done | None = None, due: datetime | None = None
    ) -> None:
        """Have something posted now, or when ``due`` has come."""
        with self._changed:
            self._waiting.append(Post(url, body, headers, due or self.now(), done))
            self._changed.notify_all()

    def start(self) -> None:
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="emulator-push", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def clear(self) -> None:
        with self._changed:
            self._waiting.clear()
            self.log.clear()

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._waiting and not self._stopping:
                    self._changed.wait()
                if self._stopping:
                    return
                if not self._due():
                    self._changed.wait(_LOOK_SECONDS)
                    continue
            self.flush()

    def _due(self) -> list[Post]:
        now = self.now()
        return [one for one in self._waiting if one.due <= now]

    def flush(self) -> None:
        """Send everything that is due. The thread does so; without a server a test may."""
        with self._changed:
            due = self._due()
            self._waiting = [one for one in self._waiting if one not in due]
        for one in due:
            status, answer = send(one.url, one.body, one.headers)
            with self._changed:
                self.log.append({"at": stamp(self.now()), "url": one.url, "status": status})
                del self.log[:-_KEPT]
            if one.done is not None:
                one.done(status, answer)


def send(url: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
    """Post something and return the status and the body of the answer; the status is 0 where nobody answers."""
    if not url.startswith(("http://", "https://")):
        return 0, b"not an address"
    request = urllib.request.Request(url, body, dict(headers), method="POST")
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()
    except (OSError, ValueError) as error:
        return 0, str(error).encode()
