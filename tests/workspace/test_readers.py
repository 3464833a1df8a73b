"""What comes back from Google: each wait ends once, with the right answer; each answer to a form starts one record."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest

from quire import Form, Inbound, Run, Workflow
from quire.client.client import Client
from quire.errors import DefinitionError
from quire.google.transport import Transport
from quire.model.record import Status
from quire.testing import ToldClock
from quire.workspace import Answered, Dropped, Mail, calendar, drive, gmail
from quire.workspace.readers import Readers
from tests.workspace.worlds import CLIENT, ME, START, World, opened

PUBLISHED = {"publishSettings": {"publishState": {"isPublished": True, "isAcceptingResponses": True}}}


def asking(*, anything: bool = False) -> Workflow[Any, Any, None]:
    flow: Workflow[Any, Any, None] = Workflow("asking")

    @flow.step
    async def step(run: Run[Any]) -> str:
        sent = await run.once(gmail.send, run.data["to"], f"Offer {run.record_id}", "Please look.")
        mail = await run.wait(sent.replied_by_anything if anything else sent.replied, Mail, timeout="14d")
        return "nothing" if mail is None else f"{'bounce' if mail.bounce else mail.text.strip().splitlines()[0]}"

    return flow


@asynccontextmanager
async def reading(
    world: World, *flows: Workflow[Any, Any, Any], url: str = "memory:"
) -> AsyncIterator[tuple[Client, Readers, ToldClock]]:
    clock = ToldClock()
    async with opened(world, flows, clock) as client:
        readers = Readers(client)
        yield client, readers, clock
        await readers.release()


async def _result(client: Client, record_id: str) -> str:
    await client.work()
    record = await client.get(record_id)
    return json.loads(record.result) if record.result else str(record.status)


async def test_an_answer_ends_the_wait_with_its_mail(world: World) -> None:
    async with reading(world, asking()) as (client, readers, _):
        await client.start("asking", {"to": CLIENT}, id="r")
        await client.work()
        await readers.look()
        assert await _result(client, "r") == "WAITING"
        world.person("mail.reply", **{"as": CLIENT, "text": "How much?"})
        await readers.look()
        await readers.look()
        assert await _result(client, "r") == "How much?"


async def test_what_a_machine_answers_does_not_end_it_and_a_bounce_does(world: World) -> None:
    world.person("mail.rule", address="away@example.com", rule="away", text="I am away.")
    async with reading(world, asking()) as (client, readers, _):
        await client.start("asking", {"to": "away@example.com"}, id="a")
        await client.start("asking", {"to": "nobody@invalid.example"}, id="b")
        await client.work()
        await readers.look()
        assert await _result(client, "b") == "bounce"
        assert await _result(client, "a") == "WAITING"
        world.person("mail.reply", **{"as": "away@example.com", "text": "I am back."})
        await readers.look()
        assert await _result(client, "a") == "I am back."


async def test_unless_it_is_asked_for(world: World) -> None:
    world.person("mail.rule", address="away@example.com", rule="away", text="I am away.")
    async with reading(world, asking(anything=True)) as (client, readers, _):
        await client.start("asking", {"to": "away@example.com"}, id="a")
        await client.work()
        await readers.look()
        assert await _result(client, "a") == "I am away."


@pytest.mark.parametrize("threads", [pytest.param(12, id="some"), pytest.param(300, id="many", marks=pytest.mark.slow)])
async def test_threads_whose_history_is_forgotten_twice(world: World, threads: int) -> None:
    """Every wait ends once, with the right mail, whether it came by the history or by a full look."""
    rounds = 3
    async with reading(world, asking()) as (client, readers, _):
        for number in range(threads):
            await client.start("asking", {"to": f"client{number}@example.com"}, id=f"r{number}")
        await client.work()
        await readers.look()
        for turn in range(rounds):
            for number in range(turn, threads, rounds):
                world.person("mail.reply", **{"as": f"client{number}@example.com", "text": f"Answer {number}"})
                if number % 2:  # a second answer is for a wait that may come later
                    world.person("mail.reply", **{"as": f"client{number}@example.com", "text": "And more"})
            if turn:
                world.person("mail.forget", **{"as": ME})
            await readers.look()
            await client.work()
        for number in range(threads):
            assert await _result(client, f"r{number}") == f"Answer {number}"


async def test_a_process_that_was_killed_before_it_moved_its_cursor_brings_nothing_twice(world: World) -> None:
    async with reading(world, asking()) as (client, readers, clock):
        await client.start("asking", {"to": CLIENT}, id="r")
        await client.work()
        await readers.look()
        world.person("mail.reply", **{"as": CLIENT, "text": "Yes"})
        await readers.look()
        clock.advance("10m")  # its lease is over: another process looks from where the first one stood
        await Readers(client).look()
        await readers.look()
        signals = await client.ledger.signals("r")
        assert len(signals) == 1 and await _result(client, "r") == "Yes"


async def test_what_guests_say_to_an_invitation(world: World) -> None:
    flow: Workflow[Any, Any, None] = Workflow("meeting")

    @flow.step
    async def step(run: Run[Any]) -> list[str]:
        event = await run.once(calendar.event, "Kick-off", START, invite=[CLIENT, "bob@example.com"])
        first = await run.wait(event.answered, Answered)
        second = await run.wait(event.answered, Answered)
        return sorted(f"{one.who} {one.response}" for one in (first, second))

    async with reading(world, flow) as (client, readers, _):
        await client.start("meeting", {}, id="r")
        await client.work()
        await readers.look()
        [event] = world.events()
        for who, response in ((CLIENT, "accepted"), ("bob@example.com", "declined")):
            world.person("calendar.answer", event=event["id"], answer=response, **{"as": who})
            await readers.look()
            await client.work()
        record = await client.get("r")
    assert json.loads(record.result or "[]") == ["bob@example.com declined", f"{CLIENT} accepted"]


async def test_a_sync_token_that_is_forgotten_costs_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    flow: Workflow[Any, Any, None] = Workflow("meeting")

    @flow.step
    async def step(run: Run[Any]) -> str:
        event = await run.once(calendar.event, "Kick-off", START, invite=[CLIENT])
        return (await run.wait(event.answered, Answered)).response

    async with reading(world, flow) as (client, readers, _):
        await client.start("meeting", {}, id="r")
        await client.work()
        await readers.look()
        [event] = world.events()
        world.person("calendar.answer", event=event["id"], answer="tentative", **{"as": CLIENT})
        gone = {"fault": "error", "reason": "fullSyncRequired", "kind": "calendar.events.list", "count": 1}
        world("POST", "/emulator/faults", gone)
        await readers.look()
        assert await _result(client, "r") == "tentative"


@dataclass
class Order:
    company: str
    count: int = 1


def order(world: World) -> str:
    """The id of a form with two questions that everybody may answer."""
    form = str(world("POST", "/v1/forms", {"info": {"title": "Order"}})["formId"])
    for place, title in enumerate(("Company", "How many")):
        item = {"title": title, "questionItem": {"question": {"textQuestion": {}}}}
        create = {"createItem": {"item": item, "location": {"index": place}}}
        world("POST", f"/v1/forms/{form}:batchUpdate", {"requests": [create]})
    world("POST", f"/v1/forms/{form}:setPublishSettings", PUBLISHED)
    world("POST", f"/drive/v3/files/{form}/permissions", {"type": "anyone", "role": "reader"})
    return form


def ordering(form: str, **options: Any) -> Workflow[Any, Any, None]:
    source = Form(form, fields={"Company": "company", "How many": "count"}, **options)
    flow: Workflow[Order, Any, None] = Workflow("order", data=Order, on=[source])

    @flow.step
    async def step(run: Run[Order]) -> str:
        if await run.wait("edited", timeout="1h") is not None:
            return "edited"
        return run.data.company

    return flow


def filled(world: World, form: str, company: str, response: str = "") -> str:
    answers = {"Company": company, "How many": "3"}
    given = {"response": response} if response else {}
    return str(world.person("form.fill", form=form, answers=answers, **{"as": CLIENT}, **given)["response"])


async def test_each_answer_to_a_form_starts_one_record_though_its_reader_is_killed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fifty answers, some edited; the reader dies before or after it has read, started or kept, again and again."""
    form, flow = order(world), None
    flow = ordering(form)
    ids = []
    async with opened(world, [flow], clock := ToldClock()) as client:
        keep, count = client.ledger.keep, 0

        async def dying(setting: Any) -> Any:
            nonlocal count
            count += 1
            if setting.name.startswith("google/") and count % 3 == 0:
                raise ConnectionError("the reader is killed (on purpose)")
            return await keep(setting)

        monkeypatch.setattr(client.ledger, "keep", dying)
        for number in range(50):
            ids.append(filled(world, form, f"Company {number}"))
            if number % 7 == 0:
                filled(world, form, f"Company {number}, edited", ids[-1])
            if number % 5 == 0:
                readers = Readers(client)  # a new process
                with pytest.MonkeyPatch.context() as quiet:
                    quiet.setattr("quire.workspace.readers.readers.log.warning", lambda *_: None)
                    with contextlib.suppress(ConnectionError):
                        await readers.look()
                clock.advance("10m")
        monkeypatch.setattr(client.ledger, "keep", keep)
        await Readers(client).look()
        records = await client.find(workflow="order", limit=200)
    assert sorted(record.record_id for record in records) == sorted(f"order-form-{one}" for one in ids)


@pytest.mark.parametrize(
    ("on_edit", "records", "result"), [("ignore", 1, "WAITING"), ("signal", 1, "edited"), ("start", 2, "WAITING")]
)
async def test_an_answer_that_is_edited_later(
    world: World, monkeypatch: pytest.MonkeyPatch, on_edit: Any, records: int, result: str
) -> None:
    form = order(world)
    async with reading(world, ordering(form, on_edit=on_edit)) as (client, readers, _):
        response = filled(world, form, "Acme")
        await readers.look()
        await client.work()
        world("POST", "/emulator/clock", {"advance_seconds": 60})
        filled(world, form, "Acme Ltd", response)
        await readers.look()
        await readers.look()
        assert len(await client.find(workflow="order", limit=9)) == records
        assert await _result(client, f"order-form-{response}") == result


def test_a_form_that_does_not_fit_the_data_is_refused_when_it_is_declared() -> None:
    flow: Workflow[Order, Any, None] = Workflow("order", data=Order, on=[Form("1abc", fields={"How many": "cuont"})])

    @flow.step
    async def step(run: Run[Order]) -> None: ...

    with pytest.raises(
        DefinitionError, match=r"maps 'How many' to 'cuont', which its data has not.* no question for 'company'"
    ):
        flow.definition()
    with pytest.raises(DefinitionError, match="the least is 10s"):
        Form("1abc", every="1s")
    with pytest.raises(DefinitionError, match="is not an address"):
        Inbound("support")
    with pytest.raises(DefinitionError, match="on_edit of Form"):
        Form("1abc", on_edit="restart")  # type: ignore[arg-type]


async def test_each_mail_that_comes_in_starts_one_record(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    flow: Workflow[Mail, Any, None] = Workflow("ticket", data=Mail, on=[Inbound(ME, query="subject:Help")])

    @flow.step
    async def step(run: Run[Mail]) -> str:
        return run.data.text.strip()

    call, broken = Transport.call, [True]

    async def losing(self: Transport, method: str, url: str, **given: Any) -> Any:
        if url.endswith("/modify") and broken:
            broken.pop()
            raise ConnectionError("killed before the label (on purpose)")
        return await call(self, method, url, **given)

    monkeypatch.setattr(Transport, "call", losing)
    world.person("mail.send", **{"as": CLIENT, "to": ME, "subject": "Help", "text": "an old one"})
    world("POST", "/emulator/clock", {"advance_seconds": 5})
    clock = ToldClock(datetime.fromisoformat(world("GET", "/emulator/clock")["now"]).timestamp())
    async with opened(world, [flow], clock) as client:
        readers = Readers(client)
        await readers.look()
        world("POST", "/emulator/clock", {"advance_seconds": 5})
        world.person("mail.send", **{"as": CLIENT, "to": ME, "subject": "Help", "text": "It burns"})
        world.person("mail.send", **{"as": CLIENT, "to": ME, "subject": "Hello", "text": "Nothing"})
        with pytest.raises(ConnectionError):
            await readers.look()
        await readers.look()
        await readers.look()
        await client.work()
        [record] = await client.find(workflow="ticket", limit=9)
    assert record.status is Status.DONE and json.loads(record.result or "") == "It burns"
    labels = world("GET", "/gmail/v1/users/me/labels")["labels"]
    assert "Quire/done" in [one["name"] for one in labels]


async def test_each_new_file_of_a_folder_starts_one_record(world: World) -> None:
    flow: Workflow[Any, Any, None] = Workflow("scan", on=[Dropped(world.clients)])

    @flow.step
    async def step(run: Run[Any]) -> str:
        return await drive.text(run.data["id"])

    def put(name: str) -> None:
        world("POST", "/drive/v3/files", {"name": name, "parents": [world.clients], "mimeType": "text/plain"})

    put("old.txt")
    async with reading(world, flow) as (client, readers, _):
        await readers.look()
        put("a.txt")
        await readers.look()
        put("b.txt")
        gone = {"fault": "error", "reason": "notFound", "kind": "drive.changes.list", "count": 1}
        world("POST", "/emulator/faults", gone)
        await readers.look()
        await readers.look()
        await client.work()
        records = await client.find(workflow="scan", limit=9)
    assert sorted(json.loads(record.data)["name"] for record in records) == ["a.txt", "b.txt"]
    assert {record.status for record in records} == {Status.DONE}
