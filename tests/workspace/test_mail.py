"""Mail: threads, drafts of people, accounts that may only send, and drafts that two processes send at once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hectograph import Emulator
from quire import Retry, Run, Workflow
from quire.google.transport import Transport
from quire.model.record import Status
from quire.testing import ToldClock
from quire.workspace import Draft, gmail
from tests.workspace.worlds import CLIENT, ME, Losing, World, only, opened, played_out


def _threads(world: World) -> list[list[str]]:
    """The subjects of each thread."""
    found = []
    for one in world("GET", "/gmail/v1/users/me/threads").get("threads", ()):
        thread = world("GET", f"/gmail/v1/users/me/threads/{one['id']}?format=metadata")
        headers = [{part["name"]: part["value"] for part in mail["payload"]["headers"]} for mail in thread["messages"]]
        found.append([held["Subject"] for held in headers])
    return found


@pytest.mark.parametrize("message_id", ["replaced", "kept"])
async def test_an_answer_stands_in_the_thread_of_its_mail(world: World, message_id: str) -> None:
    world("POST", "/emulator/settings", {"switches": {"message_id": message_id}})
    flow: Workflow[Any, Any, None] = Workflow("only")

    @flow.step
    async def step(run: Run[Any]) -> int:
        sent = await run.once(gmail.send, CLIENT, "Offer", "Please look.")
        world.person("mail.reply", **{"as": CLIENT, "text": "How much?"})
        mails = await run.call(gmail.thread, sent)
        assert [mail.text.strip().splitlines()[0] for mail in mails] == ["Please look.", "How much?"]
        await run.once(gmail.reply, mails[-1], "Ten.")
        return len(await gmail.thread(sent))

    async with opened(world, [flow]) as client:
        await client.start("only", {}, id="r")
        await client.work()
        record = await client.get("r")
    assert record.status is Status.DONE and record.result == "3", record.last_error
    assert _threads(world) == [["Offer", "Re: Offer", "Re: Offer"]]


async def test_a_long_answer_is_read_whole(world: World) -> None:
    """Gmail shows the text of a long mail only to a second call. Before, such a mail had an empty text."""
    answer = "One line of a long answer.\n" * 4_000
    flow: Workflow[Any, Any, None] = Workflow("only")

    @flow.step
    async def step(run: Run[Any]) -> list[str]:
        sent = await run.once(gmail.send, CLIENT, "Offer", "Please look.")
        world.person("mail.reply", **{"as": CLIENT, "text": answer})
        return [mail.text for mail in await run.call(gmail.thread, sent)]

    async with opened(world, [flow]) as client:
        await client.start("only", {}, id="r")
        await client.work()
        record = await client.get("r")
    assert record.status is Status.DONE, record.last_error
    assert json.loads(record.result or "")[1].count("One line of a long answer.") == 4_000


async def test_people_edit_a_draft_and_it_is_sent_as_it_is_then(world: World) -> None:
    flow: Workflow[Any, Any, None] = Workflow("only")

    @flow.step
    async def step(run: Run[Any]) -> str:
        draft: Draft = await run.once(gmail.draft, CLIENT, "Offer", "Ten.")
        raw = "VG86IGNsaWVudEBleGFtcGxlLmNvbQ0KU3ViamVjdDogQmV0dGVyDQoNCk5pbmUu"  # To: client, Subject: Better, Nine.
        world("PUT", f"/gmail/v1/users/me/drafts/{draft.id}", {"message": {"raw": raw}})
        return (await run.once(gmail.send_draft, draft)).subject

    async with opened(world, [flow]) as client:
        await client.start("only", {}, id="r")
        await client.work()
        record = await client.get("r")
    assert record.result == '"Better"', record.last_error
    [left] = world.left("mail")
    assert "Nine." in str(left)


async def test_a_draft_that_people_edited_stays_when_it_is_undone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = Transport.call

    async def edited(self: Transport, method: str, url: str, **given: Any) -> Any:
        answer = await call(self, method, url, **given)
        if method == "POST" and url.endswith("/drafts"):
            made = json.loads(answer.body)["id"]
            raw = "VG86IGNsaWVudEBleGFtcGxlLmNvbQ0KU3ViamVjdDogQmV0dGVyDQoNCk5pbmUu"
            world("PUT", f"/gmail/v1/users/me/drafts/{made}", {"message": {"raw": raw}})
        return answer

    monkeypatch.setattr(Transport, "call", edited)
    async with opened(world, [only(gmail.draft, CLIENT, "Offer", "Ten.", fails=True)]) as client:
        await client.start("only", {}, id="r")
        await client.work()
        record = await client.get("r")
        events = await client.events("r")
    assert record.status is Status.CANCELLED
    assert any(event.kind == "effect.kept" and "has edited the draft" in event.body for event in events)
    assert len(world("GET", "/gmail/v1/users/me/drafts")["drafts"]) == 1


async def test_an_account_that_may_only_send_asks_when_an_answer_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run(world: World, clock: ToldClock) -> None:
        async with opened(world, [only(gmail.send, CLIENT, "Offer", "Ten.")], clock, mail="send-only") as client:
            await client.start("only", {}, id="r")
            record = await played_out(client, clock)
        if losing.count >= losing.nth:
            assert record.status is Status.NEEDS_APPROVAL and "may only send mail" in str(record.waits)
        else:
            assert record.status is Status.DONE
        assert len(world.left("mail")) == 1
        assert "drafts" not in world("GET", "/gmail/v1/users/me/drafts")

    losing = Losing(monkeypatch, "the answer")
    assert await losing.each(run) == 1


@pytest.mark.parametrize("race", ["one", "both"])
async def test_a_send_whose_process_died_while_it_was_on_its_way_is_not_sent_again(race: str) -> None:
    """The request arrives after the process is gone. Nobody sends the draft before that could be over."""
    with Emulator(account=ME) as emulator:
        world = World(emulator)
        world("POST", "/emulator/settings", {"switches": {"draft_race": race}})
        clock = ToldClock()
        flow = only(gmail.send, CLIENT, "Offer", "Ten.")
        waiting: list[str] = []
        call = Transport.call

        async def late(self: Transport, method: str, url: str, **given: Any) -> Any:
            if url.endswith("drafts/send") and not waiting:
                waiting.append(given["body"]["id"])
                raise ConnectionResetError("the process is gone, its request is on its way")
            return await call(self, method, url, **given)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Transport, "call", late)
            async with opened(world, [flow], clock) as client:
                await client.start("only", {}, id="r")
                await client.work()
                clock.advance("20s")
                await client.work()  # it looks, and the draft is there still: it waits
                assert world.left("mail") == []
                world("POST", "/gmail/v1/users/me/drafts/send", {"id": waiting[0]})
                record = await played_out(client, clock)
        assert record.status is Status.DONE, record.question
        assert len(world.left("mail")) == 1


async def test_two_drafts_of_one_act_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run(world: World, clock: ToldClock) -> None:
        flow: Workflow[Any, Any, None] = Workflow("only", retry=Retry(6, first="1s"))

        @flow.step
        async def step(run: Run[Any]) -> None:
            await run.once(gmail.draft.named("a"), CLIENT, "Offer", "Ten.")
            await run.once(gmail.draft.named("b"), CLIENT, "Offer", "Ten.")

        async with opened(world, [flow], clock) as client:
            await client.start("only", {}, id="r")
            record = await played_out(client, clock)
        assert record.status is Status.DONE
        assert len(world("GET", "/gmail/v1/users/me/drafts")["drafts"]) == 2  # two acts, and no third

    assert await Losing(monkeypatch, "the answer").each(run) == 2
