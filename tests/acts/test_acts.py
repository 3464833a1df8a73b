"""Acts without Google, against a mail server and a web service on loopback: each once, looked for, taken back."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from quire import Fail, Retry, Run, Workflow
from quire.acts import http, mail
from quire.client.client import Client
from quire.model.record import Record, Status
from quire.testing import ToldClock
from tests.acts.servers import Post, Shop, mail_server, shop_server

flow: Workflow[dict[str, Any], Any, None] = Workflow("flow", on_failure="undo", retry=Retry(4, first="1s"))


@flow.step
async def work(run: Run[dict[str, Any]]) -> Any:
    data = run.data
    if data["act"] == "mail":
        sent = await run.once(mail.send, data["to"], data.get("subject", "Hello"), "Welcome.", take_back="Ignore it.")
        if data.get("waits"):
            reply = await mail.replied(run, sent, timeout="10m")
            return reply.text if reply is not None else "no reply"
    else:
        effect = http.call if data["act"] == "call" else http.once
        look = {} if data["act"] == "call" else {"look": f"{data['url']}/orders?ref={{key}}"}
        take_back = f"{data['url']}/orders/{{id}}"
        await run.once(effect, "POST", f"{data['url']}/orders", {"item": "book"}, take_back=take_back, **look)
    if data.get("fails"):
        raise Fail("no use")
    return "done"


@pytest.fixture
def post(monkeypatch: pytest.MonkeyPatch) -> Iterator[Post]:
    with mail_server() as (made, smtp, imap):
        monkeypatch.setenv("QUIRE_SMTP", f"smtp://127.0.0.1:{smtp}")
        monkeypatch.setenv("QUIRE_IMAP", f"imap://ann:a-password@127.0.0.1:{imap}")
        monkeypatch.setenv("QUIRE_MAIL_FROM", "Ann <ann@example.org>")
        yield made


@pytest.fixture
def shop() -> Iterator[tuple[Shop, str]]:
    with shop_server() as made:
        yield made


@asynccontextmanager
async def running(**data: Any) -> AsyncIterator[tuple[Client, ToldClock]]:
    clock = ToldClock()
    async with Client("memory:", workflows=[flow], who="ann", clock=clock) as client:
        await client.start("flow", data, id="one")
        await client.work()
        yield client, clock


async def settled(client: Client, clock: ToldClock) -> Record:
    for _ in range(40):
        record = await client.get("one")
        if record.ended or record.status is Status.NEEDS_APPROVAL:
            return record
        clock.advance("35s")
        await client.work()
    raise AssertionError(record)


async def test_a_mail_is_sent_once_with_a_copy_among_the_sent_ones(post: Post) -> None:
    async with running(act="mail", to="client@example.com") as (client, _):
        assert (await client.get("one")).status is Status.DONE
    assert len(post.taken) == len(post.folders["Sent"]) == 1
    assert "Auto-Submitted: auto-generated" in post.taken[0]


async def test_a_lost_answer_asks_a_person_unless_a_copy_proves_it(post: Post) -> None:
    post.loses_answers = 1
    async with running(act="mail", to="client@example.com") as (client, clock):
        record = await settled(client, clock)
        assert record.status is Status.NEEDS_APPROVAL and len(post.taken) == 1

    post.loses_answers = 1
    async with running(act="mail", to="client@example.com") as (client, clock):
        post.folders["Sent"].append(post.taken[-1].encode())  # as servers do that keep what they send
        assert (await settled(client, clock)).status is Status.DONE
    assert len(post.taken) == 2


async def test_a_mail_that_is_refused_was_not_sent_and_one_that_cannot_be_sent_is_refused_before(post: Post) -> None:
    post.refuses = "client@example.com"
    async with running(act="mail", to="client@example.com") as (client, clock):
        assert (await settled(client, clock)).status in (Status.ERROR, Status.CANCELLED) and post.taken == []
    async with running(act="mail", to="client@example.com", subject="a\nb") as (client, clock):
        record = await settled(client, clock)
        assert "line break" in str(record.last_error) and record.attempt <= 1


async def test_a_mail_is_taken_back_in_its_thread(post: Post) -> None:
    async with running(act="mail", to="client@example.com", fails=True) as (client, clock):
        assert (await settled(client, clock)).status is Status.CANCELLED
    assert len(post.taken) == 2 and "Ignore it." in post.taken[1] and "In-Reply-To: <" in post.taken[1]


async def test_a_reply_by_a_person_ends_the_wait_and_that_of_a_machine_does_not(post: Post) -> None:
    async with running(act="mail", to="client@example.com", waits=True) as (client, clock):
        post.answer("I am away.", automatic=True)
        clock.advance("70s")
        await client.work()
        assert (await client.get("one")).status is Status.WAITING

        post.answer("Signed.")
        record = await settled(client, clock)
        assert "Signed." in json.loads(record.result or "")

    async with running(act="mail", to="other@example.com", waits=True) as (client, clock):
        assert json.loads((await settled(client, clock)).result or "") == "no reply"


@pytest.mark.parametrize("act", ["call", "once"])
@pytest.mark.parametrize("lost", [0, 1])
async def test_an_order_is_placed_once_whatever_answer_is_lost(shop: tuple[Shop, str], act: str, lost: int) -> None:
    made, url = shop
    made.honours, made.loses_answers = act == "call", lost
    async with running(act=act, url=url) as (client, clock):
        assert (await settled(client, clock)).status is Status.DONE
    assert len(made.orders) == 1


@pytest.mark.parametrize("act", ["call", "once"])
async def test_an_order_is_taken_back(shop: tuple[Shop, str], act: str) -> None:
    made, url = shop
    async with running(act=act, url=url, fails=True) as (client, clock):
        assert (await settled(client, clock)).status is Status.CANCELLED
    assert made.orders == {}


async def test_a_busy_service_is_asked_again_and_one_that_refuses_is_not(shop: tuple[Shop, str]) -> None:
    made, url = shop
    made.refuses = [429]
    async with running(act="call", url=url) as (client, clock):
        assert (await settled(client, clock)).status is Status.DONE
    made.refuses = [400]
    async with running(act="call", url=url) as (client, clock):
        record = await settled(client, clock)
        assert record.status in (Status.ERROR, Status.CANCELLED, Status.NEEDS_APPROVAL)
    assert len(made.orders) == 1


async def test_what_is_not_set_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("QUIRE_SMTP", "QUIRE_IMAP", "QUIRE_MAIL_FROM"):
        monkeypatch.delenv(name, raising=False)
    async with running(act="mail", to="client@example.com") as (client, clock):
        assert "QUIRE_MAIL_FROM" in str((await settled(client, clock)).last_error)
