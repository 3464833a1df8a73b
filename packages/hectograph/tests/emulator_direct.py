"""The small client without a socket between: for tests of what is answered, not of how it travels."""

from __future__ import annotations

from datetime import UTC, datetime

from emulator_api import Api
from hectograph.app import App
from hectograph.core.http import Request
from hectograph.world import World

NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)


class Direct(Api):
    """A caller of a world of its own, whose clock stands still."""

    def __init__(self) -> None:
        self.world = World(lambda: NOW)
        self.app = App(self.world, lambda: "http://emulator/")
        self.user = "one"
        self.headers = {}

    def raw(
        self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> tuple[int, bytes, dict[str, str]]:
        sent = {"authorization": f"Bearer {self.user}", **{k.lower(): v for k, v in (headers or {}).items()}}
        answer = self.app.answer(Request.of(method, path, sent, body))
        return answer.status, answer.body, {k.lower(): v for k, v in answer.headers.items()}
