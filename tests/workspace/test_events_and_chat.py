"""Changes that people make meanwhile, and posts by a webhook."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from hectograph import Emulator
from quire.google.transport import Transport
from quire.model.record import Status
from quire.testing import ToldClock
from quire.workspace import calendar, chat, connected, forms
from tests.workspace.test_each_act import events, meeting, posted, said, space
from tests.workspace.worlds import CLIENT, ME, START, Losing, World, only, opened, played_out


def meanwhile(monkeypatch: pytest.MonkeyPatch, world: World, body: dict[str, Any]) -> None:
    """Somebody changes the event between our look at it and our patch."""
    call = Transport.call
    done: list[str] = []

    async def changed(self: Transport, method: str, url: str, **given: Any) -> Any:
        if method == "PATCH" and not done:
            done.append(url)
            world("PATCH", url.partition(str(world.emulator.url).rstrip("/"))[2], body)
        return await call(self, method, url, **given)

    monkeypatch.setattr(Transport, "call", changed)


async def _played(world: World, *args: Any, **kwargs: Any) -> Any:
    clock = ToldClock()
    async with opened(world, [only(*args, **kwargs)], clock) as client:
        await client.start("only", {}, id="r")
        return await played_out(client, clock), await client.events("r")


async def test_what_somebody_else_changes_meanwhile_stays(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    event = meeting(world)
    meanwhile(monkeypatch, world, {"location": "Upstairs"})
    record, _ = await _played(world, calendar.update, event, title="New")
    assert record.status is Status.DONE, record.last_error
    [there] = world.events()
    assert (there["summary"], there["location"]) == ("New", "Upstairs")


async def test_or_the_step_hears_what_was_changed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    event = meeting(world)
    meanwhile(monkeypatch, world, {"summary": "Theirs"})
    record, _ = await _played(world, calendar.update, event, title="New", on_conflict="stop")
    assert record.status is Status.ERROR and "was changed meanwhile, its summary" in record.last_error
    assert [one["summary"] for one in world.events()] == ["Theirs"]


async def test_an_undo_puts_back_only_what_is_still_ours(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    event = meeting(world)
    call = Transport.call
    patched: list[str] = []

    async def then(self: Transport, method: str, url: str, **given: Any) -> Any:
        answer = await call(self, method, url, **given)
        if method == "PATCH" and not patched:
            patched.append(url)
            world("PATCH", f"/calendar/v3/calendars/primary/events/{event}", {"summary": "Theirs"})
        return answer

    monkeypatch.setattr(Transport, "call", then)
    start = START + timedelta(days=1)
    record, lines = await _played(world, calendar.update, event, title="New", start=start, fails=True)
    assert record.status is Status.CANCELLED, record.question
    assert events(world) == [("Theirs", "2026-12-01T09:00:00Z", [])]
    assert any(line.kind == "effect.kept" and "the summary of the event since" in line.body for line in lines)


async def test_who_is_busy(world: World) -> None:
    meeting(world)
    async with connected(world.emulator.url, user=ME):
        [(first, last)] = await calendar.busy(START - timedelta(hours=1), START + timedelta(hours=5))
    assert (first, last) == (START, START + timedelta(hours=1))


@pytest.mark.parametrize(("twice", "questions"), [("", 1), ("ok", 0)])
@pytest.mark.parametrize("known", [False, True])
async def test_a_webhook_that_lost_its_answer(
    monkeypatch: pytest.MonkeyPatch, twice: str, questions: int, known: bool
) -> None:
    """Nobody repeats it blindly. Where that does no harm, and Google knows the request, there is one message still."""
    losing = Losing(monkeypatch, "the answer")
    losing.nth = 1
    with Emulator(account=ME) as emulator:
        world = World(emulator)
        world("POST", "/emulator/settings", {"switches": {"webhook_request_id": known}})
        made = world.person("chat.space", title="Team")
        monkeypatch.setenv("QUIRE_CHAT_TEAM", made["webhook"])
        record, _ = await _played(world, chat.webhook, "team", "Hello", twice=twice)
        assert (record.status is Status.NEEDS_APPROVAL) == bool(questions), record.last_error
        assert said(world) == ["Hello"] * (1 if questions or known else 2)
        receipts = json.dumps(world.emulator.url) + str(record)
        assert "token" not in receipts


async def test_a_message_that_people_have_answered_says_that_it_is_withdrawn(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = Transport.call

    async def answered(self: Transport, method: str, url: str, **given: Any) -> Any:
        answer = await call(self, method, url, **given)
        if method == "POST" and url.endswith("/messages"):
            thread = json.loads(answer.body)["thread"]
            path = f"/v1/{space(world)}/messages?messageReplyOption=REPLY_MESSAGE_FALLBACK_TO_NEW_THREAD"
            world("POST", path, {"text": "Why?", "thread": thread})
        return answer

    monkeypatch.setattr(Transport, "call", answered)
    record, _ = await _played(world, chat.post, space(world), "Offer", fails=True)
    assert record.status is Status.CANCELLED, record.question
    assert said(world)[0] == "(withdrawn)", said(world)


async def test_what_a_message_says_is_put_back_unless_somebody_has_changed_it(world: World) -> None:
    message = posted(world)
    record, _ = await _played(world, chat.update, message, "New", fails=True)
    assert record.status is Status.CANCELLED and said(world) == ["Old"]


async def test_the_answers_of_a_form_are_read_by_the_titles_of_its_questions(world: World) -> None:
    made = world("POST", "/v1/forms", {"info": {"title": "Order"}})
    item = {"title": "Company", "questionItem": {"question": {"textQuestion": {}}}}
    create = {"createItem": {"item": item, "location": {"index": 0}}}
    world("POST", f"/v1/forms/{made['formId']}:batchUpdate", {"requests": [create]})
    world("POST", f"/v1/forms/{made['formId']}:setPublishSettings", PUBLISHED)
    world("POST", f"/drive/v3/files/{made['formId']}/permissions", {"type": "anyone", "role": "reader"})
    world.person("form.fill", form=made["formId"], answers={"Company": "Acme"}, **{"as": CLIENT})
    async with connected(world.emulator.url, user=ME):
        [response] = await forms.responses(made["formId"])
        assert response.answers == {"Company": "Acme"}
        assert await forms.responses(made["formId"], response.submitted_at + timedelta(seconds=2)) == []


PUBLISHED = {"publishSettings": {"publishState": {"isPublished": True, "isAcceptingResponses": True}}}
