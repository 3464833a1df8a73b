"""The acts of an onboarding: one folder, one contract, one mail, one event, whatever answer is lost on the way."""

from __future__ import annotations

import json
from typing import Any

import pytest

from quire import Fail, Retry, Run, Workflow
from quire.google.transport import Transport
from quire.model.record import Status
from quire.testing import ToldClock
from quire.workspace import File, calendar, chat, docs, drive, gmail, pubsub, sheets, slides, tasks
from quire.workspace.values import id_of
from tests.workspace.test_each_act import meeting, space
from tests.workspace.worlds import CLIENT, START, Losing, World, only, opened, played_out

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


def each_once(world: World, result: dict[str, Any]) -> None:
    """Each thing is there, and once."""
    [folder] = world.files(world.clients)
    made = sorted((file["name"], file["id"]) for file in world.files(folder["id"]))
    assert folder["id"] == result["folder"]
    assert made == [("Contract Acme", result["contract"]), ("Contract Acme.pdf", result["pdf"])]
    assert world.text(result["contract"]) == "Dear Acme 🎉,\nthe fee is 1,200 €. Yours, Acme 🎉"
    [mail] = world.left("mail")
    assert CLIENT in str(mail) and "Contract for Acme" in str(mail)
    [event] = world.events()
    assert event["id"] == result["event"] and event["attendees"][0]["email"] == CLIENT


async def test_one_folder_one_contract_one_mail_one_event(world: World) -> None:
    async with opened(world, [onboard]) as client:
        await client.start("onboard", world.data, id="r")
        await client.work()
        record = await client.get("r")

    assert record.status is Status.DONE, record.last_error
    each_once(world, json.loads(record.result or ""))


@pytest.mark.parametrize("lost", ["the request", "the answer"])
async def test_whatever_write_is_lost_each_thing_is_there_once(monkeypatch: pytest.MonkeyPatch, lost: str) -> None:
    """Each write to Google in turn is lost, before it comes or after it was done; nobody is asked."""

    async def run(world: World, clock: ToldClock) -> None:
        async with opened(world, [onboard], clock) as client:
            await client.start("onboard", world.data, id="r")
            record = await played_out(client, clock)
        assert record.status is Status.DONE, (record.last_error, record.question)
        each_once(world, json.loads(record.result or ""))

    assert await Losing(monkeypatch, lost).each(run) >= 6, "every act writes"


async def test_what_was_done_is_taken_back_in_reverse(world: World) -> None:
    async with opened(world, [onboard]) as client:
        await client.start("onboard", world.data | {"fails": True}, id="r")
        await client.work()
        record = await client.get("r")

    assert record.status is Status.CANCELLED and "the client has gone" in str(record)
    assert world.files(world.clients) == [] and world.events() == []
    assert [("It does not stand." in str(mail)) for mail in world.left("mail")] == [False, True]


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
    (lambda w: only(gmail.send, "nobody", "s", "t"), "is no e-mail address"),
    (lambda w: only(gmail.send, CLIENT, "one\ntwo", "t"), "the subject holds a line break"),
    (lambda w: only(gmail.send, CLIENT, "s", "t", attach=[w.clients]), "is a folder; attach files"),
    (lambda w: only(gmail.send, (), "s", "t"), "the mail has no receiver"),
    (lambda w: only(gmail.send, "a@b.c\n", "s", "t"), "to holds a line break"),
    (lambda w: only(gmail.send, CLIENT, "s", "t", from_="boss@example.org"), "cannot send as boss@example.org"),
    (lambda w: only(gmail.send, CLIENT, "s", "t", headers={"Bcc": "x@y.z"}), "the header 'Bcc' cannot be set"),
    (lambda w: only(gmail.send, CLIENT, "s", "t", headers={"X-A": "1\n2"}), "the header 'X-A' holds a line break"),
    (lambda w: only(gmail.send, CLIENT, "s", "t", inline={"a": ("a.png", b"1")}), "inline pictures need html"),
    (
        lambda w: only(gmail.send, CLIENT, "s", "t", attach=[("a", b"x" * 25_000_000)]),
        "give links to the files instead",
    ),
    (lambda w: only(gmail.send_draft, "r-1"), "the draft r-1 is gone"),
    (lambda w: only(gmail.reply, "00000000000000aa", "Yes."), "Check the id"),
    (lambda w: only(drive.share, w.template, "nobody"), "is no e-mail address"),
    (lambda w: only(drive.share, w.template, CLIENT, "editr"), "did you mean 'editor'?"),
    (lambda w: only(drive.move, w.clients, w.clients), "cannot be moved into itself"),
    (lambda w: only(drive.file, 7, "x", w.clients), "give text or bytes"),
    (lambda w: only(docs.append, w.template, " "), "the text is empty"),
    (lambda w: only(docs.replace, w.template, "what", "x"), "has no part named 'what'"),
    (lambda w: only(docs.fill, w.template, {"company": "A", "fee": 1}, locale="dee"), "did you mean 'de'?"),
    (lambda w: only(docs.fill, w.template, {"company": "A", "fee": docs.Rows([])}), "there is no value for {{fee}}"),
    (lambda w: only(docs.fill, w.document("{{a.b}}"), {"a": docs.Rows([{"b": 1}])}), "stands in no table"),
    (lambda w: only(docs.fill, w.document("｛｛a｝｝"), {}), "whose braces are other characters"),
    (lambda w: only(docs.fill, w.document("{{a}}"), {"a": None}), "give an empty text"),
    (lambda w: only(slides.fill, w.template, {"a": "1"}), "Google says"),
    (
        lambda w: only(calendar.event, "x", START.replace(tzinfo=None), zone="Europe/Berln"),
        "did you mean 'Europe/Berlin'?",
    ),
    (lambda w: only(calendar.event, " ", START), "an event needs a title"),
    (lambda w: only(calendar.event, "x", START.date(), lasts="1h"), "is on whole days"),
    (lambda w: only(calendar.event.using("bot"), "x", START, invite=[CLIENT]), "can invite nobody"),
    (lambda w: only(calendar.update, "nothere", title="x"), "Check the id"),
    (lambda w: only(calendar.update, meeting(w)), "nothing is to be changed"),
    (lambda w: only(chat.post, space(w), "x" * 32_000), "Chat takes 32,000"),
    (lambda w: only(chat.post, space(w), cards=[chat.card("x")]), "Chat takes cards from apps alone"),
    (lambda w: only(chat.post, "spaces/none", "x"), "Google says"),
    (lambda w: only(chat.webhook, "team", "x"), "set QUIRE_CHAT_TEAM"),
    (lambda w: only(tasks.add, " "), "a task needs a title"),
    (lambda w: only(tasks.add, "x", list="none"), "Google says"),
    (lambda w: only(pubsub.publish, "orders", "x"), "is no topic"),
    (lambda w: only(sheets.row, w.template, "T", ["1"]), "Google says"),
    (lambda w: only(calendar.event, "x", START.replace(tzinfo=None)), "has no time zone"),
    (lambda w: only(calendar.event, "x", START, lasts="0s"), "would end when it starts"),
    (lambda w: only(calendar.event, "x", START, invite=["bob"]), "invite holds 'bob': that is no e-mail address"),
]


@pytest.mark.parametrize(("made", "sentence"), REFUSED, ids=[sentence for _, sentence in REFUSED])
async def test_bad_input_fails_before_there_is_an_intent(world: World, made: Any, sentence: str) -> None:
    async with opened(world, [made(world)]) as client:
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
    async with opened(world, [flow], clock) as client:
        await client.start("only", {}, id="r")
        record = await played_out(client, clock)

    assert record.status is Status.DONE, record.last_error
    assert world.text(world.template) == "Hello! Dear Acme,\nthe fee is 1. Yours, Acme" and typed


def test_links_and_values_lead_to_ids() -> None:
    link = "https://docs.google.com/document/d/1AbC-dEf_123456/edit"
    file = File("1AbC-dEf_123456", "n", link)
    assert [id_of(link), id_of(file), id_of({"id": file.id})] == [file.id] * 3
    with pytest.raises(Fail, match="neither the id nor the link"):
        id_of("https://example.org/")
