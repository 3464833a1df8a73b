"""The acts of an onboarding: one folder, one contract, one mail, one event, whatever answer is lost on the way."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from hectograph import Emulator
from quire import Fail, Retry, Run, Workflow
from quire.client.client import Client
from quire.google.drive import FOLDER
from quire.google.error import Unanswered, Unavailable
from quire.google.transport import Transport
from quire.model.record import Status
from quire.testing import ToldClock
from quire.workspace import File, calendar, connected, docs, drive, gmail
from quire.workspace.values import id_of

ME = "ann@example.org"
CLIENT = "client@example.com"
START = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)

onboard: Workflow[dict[str, Any], Any, None] = Workflow("onboard", on_failure="undo", retry=Retry(8, first="1s"))


@onboard.step
async def work(run: Run[dict[str, Any]]) -> dict[str, Any]:
    given = run.data
    folder = await run.once(drive.folder, "Acme", given["clients"])
    contract = await run.once(drive.copy, given["template"], "Contract Acme", folder)
    await run.once(docs.fill, contract, {"company": "Acme 🎉", "fee": "1,200 €"})
    paper = await run.once(drive.pdf, contract, folder)
    sent = await run.once(
        gmail.send, CLIENT, "Contract for Acme", "Please sign.", attach=[paper], take_back="It does not stand."
    )
    met = await run.once(calendar.event, "Kick-off Acme", START, invite=[CLIENT])
    if given.get("fails"):
        raise Fail("the client has gone")
    return {"folder": folder.id, "contract": contract.id, "pdf": paper.id, "mail": sent.id, "event": met.id}


class World:
    """The emulator as its people see it."""

    def __init__(self, emulator: Emulator) -> None:
        self.emulator = emulator
        self.clients = self("POST", "/drive/v3/files", {"name": "Clients", "mimeType": FOLDER})["id"]
        self.template = self("POST", "/v1/documents", {"title": "Contract"})["documentId"]
        text = "Dear {{company}},\nthe fee is {{fee}}. Yours, {{ company }}\n"
        insert = {"insertText": {"location": {"index": 1}, "text": text}}
        self("POST", f"/v1/documents/{self.template}:batchUpdate", {"requests": [insert]})

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.emulator.call(method, path, body)
        assert answer.status < 300, answer.body
        return json.loads(answer.body) if answer.body else None

    @property
    def data(self) -> dict[str, Any]:
        return {"clients": self.clients, "template": self.template}

    def files(self, parent: str) -> list[dict[str, Any]]:
        query = f"'{parent}' in parents and trashed = false".replace(" ", "%20").replace("'", "%27")
        found: list[dict[str, Any]] = self("GET", f"/drive/v3/files?q={query}")["files"]
        return found

    def left(self, kind: str) -> list[dict[str, Any]]:
        return [one for one in self("GET", "/emulator/outbox")["left"] if one["kind"] == kind]

    def events(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self("GET", "/calendar/v3/calendars/primary/events")["items"]
        return found

    def text(self, document: str) -> str:
        read = self("GET", f"/v1/documents/{document}")
        runs = [run for part in read["body"]["content"] for run in part.get("paragraph", {}).get("elements", ())]
        return "".join(run.get("textRun", {}).get("content", "") for run in runs).strip()

    def told_once(self, result: dict[str, Any]) -> None:
        """Each thing is there, and once."""
        [folder] = self.files(self.clients)
        made = sorted((file["name"], file["id"]) for file in self.files(folder["id"]))
        assert folder["id"] == result["folder"]
        assert made == [("Contract Acme", result["contract"]), ("Contract Acme.pdf", result["pdf"])]
        assert self.text(result["contract"]) == "Dear Acme 🎉,\nthe fee is 1,200 €. Yours, Acme 🎉"
        [mail] = self.left("mail")
        assert CLIENT in str(mail) and "Contract for Acme" in str(mail)
        [event] = self.events()
        assert event["id"] == result["event"] and event["attendees"][0]["email"] == CLIENT


@pytest.fixture
def world() -> Iterator[World]:
    with Emulator(account=ME) as emulator:
        yield World(emulator)


@asynccontextmanager
async def opened(world: World, clock: ToldClock | None = None) -> AsyncIterator[Client]:
    async with (
        connected(world.emulator.url, user=ME),
        Client("memory:", workflows=[onboard], who="ann", clock=clock or ToldClock()) as client,
    ):
        yield client


async def played_out(client: Client, clock: ToldClock) -> Any:
    """Work, and let time pass, until the record has ended."""
    for _ in range(60):
        await client.work()
        record = await client.get("acme")
        if record.ended or record.status is Status.NEEDS_APPROVAL:
            return record
        clock.advance("35s")
    raise AssertionError(f"it does not end: {record}")


async def test_one_folder_one_contract_one_mail_one_event(world: World) -> None:
    async with opened(world) as client:
        await client.start("onboard", world.data, id="acme")
        await client.work()
        record = await client.get("acme")

    assert record.status is Status.DONE, record.last_error
    world.told_once(json.loads(record.result or ""))


@pytest.mark.parametrize("lost", ["the request", "the answer"])
async def test_whatever_write_is_lost_each_thing_is_there_once(monkeypatch: pytest.MonkeyPatch, lost: str) -> None:
    """Each write to Google in turn is lost, before it comes or after it was done; nobody is asked."""
    place, count = 0, 1
    call = Transport.call
    while place < count:
        count = 0

        async def losing(self: Transport, method: str, url: str, place: int = place, **given: Any) -> Any:
            nonlocal count
            count += given["write"]
            mine = given["write"] and count == place + 1
            if mine and lost == "the request":
                raise Unavailable("the network is away (on purpose)")
            answer = await call(self, method, url, **given)
            if mine:
                raise Unanswered("the answer was lost (on purpose)")
            return answer

        monkeypatch.setattr(Transport, "call", losing)
        clock = ToldClock()
        with Emulator(account=ME) as emulator:
            world = World(emulator)
            async with opened(world, clock) as client:
                await client.start("onboard", world.data, id="acme")
                record = await played_out(client, clock)
            assert record.status is Status.DONE, (place, record.last_error, record.question)
            world.told_once(json.loads(record.result or ""))
        place += 1
    assert place >= 6, "every act writes"


async def test_what_was_done_is_taken_back_in_reverse(world: World) -> None:
    async with opened(world) as client:
        await client.start("onboard", world.data | {"fails": True}, id="acme")
        await client.work()
        record = await client.get("acme")

    assert record.status is Status.CANCELLED and "the client has gone" in str(record)
    assert world.files(world.clients) == [] and world.events() == []
    assert [("It does not stand." in str(mail)) for mail in world.left("mail")] == [False, True]


def only(act: Any, *args: Any, **kwargs: Any) -> Workflow[Any, Any, None]:
    flow: Workflow[Any, Any, None] = Workflow("only", retry=Retry(2, first="1s"))

    @flow.step
    async def step(run: Run[Any]) -> str:
        return str(await run.once(act, *args, **kwargs))

    return flow


REFUSED = [
    (lambda w: only(drive.folder, "", w.clients), "a folder needs a name"),
    (lambda w: only(drive.folder, "x", w.template), "'Contract' is no folder"),
    (lambda w: only(drive.folder, "x", "nowhere-at-all-12345"), "Check the id, and that the file is shared with"),
    (lambda w: only(drive.copy, w.clients, "x", w.clients), "Drive copies no folders"),
    (
        lambda w: only(docs.fill, w.template, {"company": "A", "fees": "1"}),
        "no placeholder {{fees}}; did you mean 'fee'?",
    ),
    (lambda w: only(docs.fill, w.template, {"company": "A"}), "there is no value for {{fee}}"),
    (lambda w: only(docs.fill, w.template, {"company": "{{fee}}", "fee": "1"}), "would be taken for a placeholder"),
    (lambda w: only(gmail.send, "nobody", "s", "t"), "is no e-mail address"),
    (lambda w: only(gmail.send, CLIENT, "one\ntwo", "t"), "the subject holds a line break"),
    (lambda w: only(gmail.send, CLIENT, "s", "t", attach=[w.template]), "make a PDF of it"),
    (lambda w: only(calendar.event, "x", START.replace(tzinfo=None)), "has no time zone"),
    (lambda w: only(calendar.event, "x", START, lasts="0s"), "would end when it starts"),
    (lambda w: only(calendar.event, "x", START, invite=["bob"]), "'bob' is no e-mail address"),
]


@pytest.mark.parametrize(("made", "sentence"), REFUSED, ids=[sentence for _, sentence in REFUSED])
async def test_bad_input_fails_before_there_is_an_intent(world: World, made: Any, sentence: str) -> None:
    async with (
        connected(world.emulator.url, user=ME),
        Client("memory:", workflows=[made(world)], who="ann", clock=ToldClock()) as client,
    ):
        await client.start("only", {}, id="r")
        await client.work()
        record = await client.get("r")
        receipts = await client.ledger.receipts(record_ids=["r"])

    assert record.status is Status.ERROR and sentence in (record.last_error or ""), record.last_error
    assert receipts == []


async def test_somebody_types_while_the_document_is_filled(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch at the old revision is refused; it is made anew for the document as it is then."""
    call = Transport.call
    typed: list[str] = []

    async def typing(self: Transport, method: str, url: str, **given: Any) -> Any:
        if url.endswith(":batchUpdate") and not typed:
            typed.append(url)
            insert = {"insertText": {"location": {"index": 1}, "text": "Hello! "}}
            world("POST", f"/v1/documents/{world.template}:batchUpdate", {"requests": [insert]})
        return await call(self, method, url, **given)

    monkeypatch.setattr(Transport, "call", typing)
    flow = only(docs.fill, world.template, {"company": "Acme", "fee": "1"})
    clock = ToldClock()
    async with (
        connected(world.emulator.url, user=ME),
        Client("memory:", workflows=[flow], who="ann", clock=clock) as client,
    ):
        await client.start("only", {}, id="acme")
        record = await played_out(client, clock)

    assert record.status is Status.DONE, record.last_error
    assert world.text(world.template) == "Hello! Dear Acme,\nthe fee is 1. Yours, Acme" and typed


def test_links_and_values_lead_to_ids() -> None:
    link = "https://docs.google.com/document/d/1AbC-dEf_123456/edit"
    file = File("1AbC-dEf_123456", "n", link)
    assert [id_of(link), id_of(file), id_of({"id": file.id})] == [file.id] * 3
    with pytest.raises(Fail, match="neither the id nor the link"):
        id_of("https://example.org/")
