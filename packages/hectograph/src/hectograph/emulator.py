"""The emulator as an object: start it, use its address, stop it."""

from __future__ import annotations

import threading
import traceback
from pathlib import Path
from types import TracebackType
from typing import Any

from hectograph import persist
from hectograph.app import App
from hectograph.core.clock import Now
from hectograph.core.error import ApiError
from hectograph.core.http import Dropped, Request, Response
from hectograph.core.server import Server
from hectograph.world import ACCOUNT, TIME_ZONE, World, known_zone

#: A changed world is written at most this often; a clean stop always writes it.
SAVE_SECONDS = 1.0


class Emulator:
    """Google Workspace on loopback.

        with Emulator() as google:
            requests.get(google.url + "v4/spreadsheets/…")

    With ``path`` everything is kept in that file. ``clock`` is a function that tells the time.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        path: str | Path | None = None,
        clock: Now | None = None,
        *,
        account: str = ACCOUNT,
        time_zone: str = TIME_ZONE,
    ) -> None:
        self.host = host
        self.port = port
        self.path = None if path is None else Path(path)
        self.world = World(clock, account)
        self.world.time_zone = known_zone(time_zone)
        self.app = App(self.world, lambda: self.url)
        self._server: Server | None = None
        self._threads: list[threading.Thread] = []
        self._stopping = threading.Event()
        self._saved = 0
        if self.path is not None and self.path.exists():
            persist.load(self.world, self.path)

    @property
    def url(self) -> str:
        """The address, with a slash at its end."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/"

    def start(self) -> Emulator:
        if self._server is not None:
            raise RuntimeError("the emulator runs already")
        self._stopping.clear()
        self._server = Server((self.host, self.port), self._answer)
        self.port = self._server.server_address[1]
        serve = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, name="emulator", daemon=True
        )
        self._threads = [serve]
        if self.path is not None:
            self._threads.append(threading.Thread(target=self._keep_saving, name="emulator-save", daemon=True))
        for thread in self._threads:
            thread.start()
        self.world.delivery.start()
        return self

    def stop(self) -> None:
        """Cut all connections, wait for all threads, write the file. Harmless when not running."""
        server, self._server = self._server, None
        if server is None:
            return
        self._stopping.set()
        self.world.faults.remove()
        self.world.delivery.stop()
        self.world.dirty()
        server.shutdown()
        server.server_close()
        server.cut()
        for thread in self._threads:
            thread.join()
        self._threads = []
        self._save()

    def __enter__(self) -> Emulator:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Response:
        """Make a request without a socket."""
        import json

        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        given = {name.lower().replace("_", "-"): value for name, value in headers.items()}
        return self._answer(Request.of(method, path, given, data))

    def person(self, do: str, who: str = "", **given: Any) -> Any:
        """Let a person do something, as ``POST /emulator/person`` does; ``who`` is the address of this person."""
        return self.world.act({**given, "do": do, **({"as": who} if who else {})})

    @property
    def outbox(self) -> list[dict[str, Any]]:
        """All that would have left the house, the oldest first."""
        with self.world.lock:
            return self.world.outgoing.dump()

    def advance(self, seconds: float) -> None:
        """Move the emulator's clock on; from then on it stands still unless it is moved."""
        self.world.clock.advance(seconds)

    def _answer(self, request: Request) -> Response:
        try:
            return self.app.answer(request)
        except Dropped:
            raise
        except Exception as error:  # noqa: BLE001 - a bug here must look like one, not like a broken network
            traceback.print_exc()
            return Response.refused(ApiError.sheets(500, f"The emulator failed: {error!r}"))

    def _keep_saving(self) -> None:
        while not self._stopping.wait(SAVE_SECONDS):
            if self.world.edits != self._saved:
                self._save()

    def _save(self) -> None:
        if self.path is not None and self.world.edits != self._saved:
            self._saved = self.world.edits
            persist.save(self.world, self.path)
