"""The emulator as its people see it, records that are played out in told time, and writes that are lost on purpose."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import pytest

from hectograph import Emulator
from quire import Fail, Retry, Run, Workflow
from quire.client.client import Client
from quire.google.drive import FOLDER
from quire.google.error import Unanswered, Unavailable
from quire.google.transport import Transport
from quire.model.record import Record, Status
from quire.testing import ToldClock
from quire.workspace import connected

ME = "ann@example.org"
CLIENT = "client@example.com"
BOT = "bot@acme.iam.gserviceaccount.com"
START = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)


class World:
    """The emulator as its people see it."""

    def __init__(self, emulator: Emulator) -> None:
        self.emulator = emulator
        self.clients = self("POST", "/drive/v3/files", {"name": "Clients", "mimeType": FOLDER})["id"]
        self.template = self.document("Dear {{company}},\nthe fee is {{fee}}. Yours, {{ company }}\n", "Contract")

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.emulator.call(method, path, body)
        assert answer.status < 300, answer.body
        return json.loads(answer.body) if answer.body else None

    @property
    def data(self) -> dict[str, Any]:
        return {"clients": self.clients, "template": self.template}

    def document(self, text: str, title: str = "Notes") -> str:
        made: str = self("POST", "/v1/documents", {"title": title})["documentId"]
        insert = {"insertText": {"location": {"index": 1}, "text": text}}
        self("POST", f"/v1/documents/{made}:batchUpdate", {"requests": [insert]})
        return str(made)

    def files(self, parent: str) -> list[dict[str, Any]]:
        query = quote(f"'{parent}' in parents and trashed = false")
        found: list[dict[str, Any]] = self("GET", f"/drive/v3/files?q={query}")["files"]
        return found

    def person(self, do: str, **given: Any) -> Any:
        return self("POST", "/emulator/person", {"do": do, **given})

    def left(self, kind: str) -> list[dict[str, Any]]:
        return [one for one in self("GET", "/emulator/outbox")["left"] if one["kind"] == kind]

    def everything(self, parent: str) -> list[dict[str, Any]]:
        """All files of a folder, or of the whole Drive, that are not in the trash."""
        query = "trashed = false" + (f" and '{parent}' in parents" if parent else "")
        return self._pages(f"/drive/v3/files?pageSize=1000&q={quote(query)}", "files")

    def all_events(self) -> list[dict[str, Any]]:
        return self._pages("/calendar/v3/calendars/primary/events?maxResults=2500", "items")

    def _pages(self, path: str, word: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        token = ""
        while True:
            page = self("GET", f"{path}&pageToken={token}" if token else path)
            found += page.get(word, ())
            if not (token := page.get("nextPageToken", "")):
                return found

    def events(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self("GET", "/calendar/v3/calendars/primary/events")["items"]
        return found

    def text(self, document: str) -> str:
        read = self("GET", f"/v1/documents/{document}")
        runs = [run for part in read["body"]["content"] for run in part.get("paragraph", {}).get("elements", ())]
        return "".join(run.get("textRun", {}).get("content", "") for run in runs).strip()


@asynccontextmanager
async def opened(
    world: World, flows: Sequence[Workflow[Any, Any, Any]], clock: ToldClock | None = None, **options: Any
) -> AsyncIterator[Client]:
    async with (
        connected(world.emulator.url, user=ME, **options),
        connected(world.emulator.url, user=BOT, name="bot"),
        Client("memory:", workflows=list(flows), who="ann", clock=clock or ToldClock()) as client,
    ):
        yield client


async def played_out(client: Client, clock: ToldClock, record_id: str = "r", rounds: int = 80) -> Record:
    """Work, and let time pass, until the record has ended or asks."""
    for _ in range(rounds):
        await client.work()
        record = await client.get(record_id)
        if record.ended or record.status is Status.NEEDS_APPROVAL:
            return record
        clock.advance("35s")
    raise AssertionError(f"it does not end: {record}")


def only(act: Any, *args: Any, fails: bool = False, **kwargs: Any) -> Workflow[Any, Any, None]:
    """A workflow that does one act; with ``fails``, and that is undone after it."""
    flow: Workflow[Any, Any, None] = Workflow(
        "only", retry=Retry(6, first="1s"), on_failure="undo" if fails else "error"
    )

    @flow.step
    async def step(run: Run[Any]) -> str:
        made = await run.once(act, *args, **kwargs)
        if fails:
            raise Fail("it is not wanted any more")
        return str(made)

    return flow


class Losing:
    """Loses one write to Google: the request before it comes, or the answer after it was done. It counts them all."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, lost: str) -> None:
        self.nth = 0
        self.count = 0
        call = Transport.call

        async def losing(transport: Transport, method: str, url: str, **given: Any) -> Any:
            self.count += given["write"]
            mine = given["write"] and self.count == self.nth
            if mine and lost == "the request":
                raise Unavailable("the network is away (on purpose)")
            answer = await call(transport, method, url, **given)
            if mine:
                raise Unanswered("the answer was lost (on purpose)")
            return answer

        monkeypatch.setattr(Transport, "call", losing)

    async def each(self, run: Callable[[World, ToldClock], Awaitable[None]]) -> int:
        """Run once for each write, which is lost in that run, in a world of its own. Return how many there are."""
        nth = 1
        while True:
            with Emulator(account=ME) as emulator:
                world = World(emulator)
                self.nth, self.count = nth, 0
                try:
                    await run(world, ToldClock())
                except BaseException as error:
                    error.add_note(f"write {nth} was lost")
                    raise
            if self.count < nth:
                return nth - 1
            nth += 1
