"""People are told once for each cause, over real HTTP and SMTP; nothing is lost by failures and restarts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from quire import Fail, Run, Workflow
from quire.client.client import Client
from quire.errors import InputError
from quire.explain.stuck import Finding
from quire.ledger.sole import LEASE_SECONDS
from quire.model.record import Status
from quire.surfaces.alerts import book
from quire.surfaces.alerts.alerting import BOOK, Alerting
from quire.surfaces.alerts.answering import links
from quire.surfaces.alerts.book import MOST, Page, planned
from quire.surfaces.alerts.channel import KINDS, Alert, Alerts, read
from quire.testing.clock import ToldClock
from tests.surfaces.alerts.servers import mail, web


def make_flow() -> Workflow[dict[str, Any], Any, None]:
    job: Workflow[dict[str, Any], Any, None] = Workflow("job")

    @job.step(then=["ask", "work"])
    async def begin(run: Run[dict[str, Any]]) -> Any:
        return "ask" if run.data.get("ask") else "work"

    @job.step
    async def work(run: Run[dict[str, Any]]) -> None:
        raise Fail(f"the site {run.record_id!r} answers 503")

    @job.step
    async def ask(run: Run[dict[str, Any]]) -> None:
        await run.ask("Pay <everybody>?", show="1000", by="ann@x.eu")

    return job


@asynccontextmanager
async def opened(clock: ToldClock, url: str = "memory:", **options: Any) -> AsyncIterator[Client]:
    async with Client(url, workflows=[make_flow()], clock=clock, who="tester", **options) as client:
        yield client


def to(**channels: str) -> Alerts:
    found = read(channels, {})
    assert found is not None
    return found


async def test_a_thousand_failures_of_one_cause_are_one_alert_and_more_are_told_after_the_quiet_period() -> None:
    clock = ToldClock()
    async with web() as site, opened(clock) as client:
        await client.start_many("job", [{}] * 1000)
        await client.work()
        alerting = Alerting(client, to(ops=f"webhook:{site.url}/x"))
        first = await alerting.once()
        again = await alerting.once()
        clock.advance("10m")
        await client.start("job", {}, id="one_more")
        await client.work()
        early = await alerting.once()
        clock.advance("51m")
        late = await alerting.once()
        nothing = await alerting.once()

    assert (first, again, early, late, nothing) == (1, 0, 0, 1, 0)
    one, two = site.got
    assert one.body["kind"] == "error" and one.body["count"] == 1000 and len(one.body["record_ids"]) == 20
    assert two.body["count"] == 1001
    assert one.headers["x-quire-alert"] == one.body["alert_id"] != two.body["alert_id"]


async def test_each_kind_is_told_in_the_words_of_each_channel() -> None:
    clock = ToldClock()
    async with web() as site, mail() as post, opened(clock) as client:
        alerts = to(
            chat=f"gchat:{site.url}/chat?key=k",
            slack=f"slack:{site.url}/slack",
            mail="mailto:ann@x.eu,bob@x.eu",
            smtp=post.url,
            sender="quire@x.eu",
        )
        await client.start("job", {"ask": True}, id="pay")
        await client.start("job", {}, id="bad")
        await client.work()
        await client.start("job", {}, id="left")
        clock.advance("2m")
        alerting = Alerting(client, alerts)
        arrived = await alerting.once()
        await client.halt(reason="fire")
        halted = await alerting.once()

    assert (arrived, halted) == (9, 3)  # error, approval, stuck; then halted: each on three channels
    chat = [got.body["text"] for got in site.got if got.path.startswith("/chat?key=k&requestId=quire-")]
    slack = [got.body["text"] for got in site.got if got.path == "/slack"]
    assert len(chat) == len(slack) == 4
    assert any("Pay ‹everybody›?" in text for text in chat) and not any("<" in text for text in chat)
    assert any("Pay &lt;everybody&gt;?" in text for text in slack) and not any("<everybody" in text for text in slack)
    assert any("no worker is alive" in text for text in chat) and any("fire" in text for text in chat)
    subjects = sorted(str(message["Subject"]) for _, message in post.got)
    assert subjects == ["Quire: approval in job", "Quire: error in job", "Quire: halted", "Quire: stuck"]
    people, message = post.got[0]
    assert people == ["ann@x.eu", "bob@x.eu"] and message["From"] == "quire@x.eu"
    assert str(message["Message-ID"]).startswith("<quire-")


async def test_an_alert_that_fails_fails_no_record_and_is_sent_again_later(caplog: pytest.LogCaptureFixture) -> None:
    clock = ToldClock()
    async with web() as site, mail() as post, opened(clock) as client:
        site.statuses, post.refuses = [500, 302, 200], True
        alerts = to(ops=f"webhook:{site.url}/secret-path", mail="mailto:ann@x.eu", smtp=post.url)
        await client.start("job", {}, id="bad")
        await client.work()
        alerting = Alerting(client, alerts)
        arrived = [await alerting.once()]
        clock.advance("20s")
        arrived.append(await alerting.once())
        clock.advance("15s")
        arrived.append(await alerting.once())
        clock.advance("61s")
        post.refuses = False
        arrived.append(await alerting.once())
        arrived.append(await alerting.once())
        record = await client.get("bad")

    assert arrived == [0, 0, 0, 2, 0]
    assert [got.body["record_ids"] for got in site.got] == [["bad"]] and len(post.got) == 1
    assert record.status is Status.ERROR
    assert "ops answers 500" in caplog.text and "secret-path" not in caplog.text


async def test_an_alert_that_a_library_cannot_send_does_not_end_the_alerts(caplog: pytest.LogCaptureFixture) -> None:
    clock = ToldClock()
    async with web() as site, mail() as box, opened(clock) as client:
        alerts = to(ops="mailto:ops@x.eu", smtp=box.url, other=f"webhook:{site.url}/x")
        await client.start("job", {}, id="a")
        await client.work()
        alerting = Alerting(client, alerts._replace(smtp=f"{box.url}9999"))
        arrived = await alerting.once()
        alerting.alerts = alerts
        clock.advance("1m")
        later = await alerting.once()

    assert (arrived, later, len(site.got), len(box.got)) == (1, 1, 1, 1)
    assert "alert not sent: ops cannot be reached as it is configured (ValueError)" in caplog.text


async def test_a_channel_that_is_down_for_good_is_given_up_after_a_day(caplog: pytest.LogCaptureFixture) -> None:
    clock = ToldClock()
    async with web() as site, opened(clock) as client:
        site.statuses = [404]
        await client.start("job", {}, id="bad")
        await client.work()
        alerting = Alerting(client, to(ops=f"webhook:{site.url}"))
        for _ in range(30):
            await alerting.once()
            clock.advance("1h")

    assert "it is given up" in caplog.text
    assert sum("not sent" in line for line in caplog.messages) < 30


async def test_a_process_that_ends_while_it_tells_does_not_tell_again() -> None:
    async with web() as site, opened(ToldClock()) as client:
        await client.start("job", {}, id="bad")
        await client.work()
        alerting = Alerting(client, to(ops=f"webhook:{site.url}"))
        site.answers.clear()
        telling = asyncio.ensure_future(alerting.run())
        await site.arrived.wait()
        telling.cancel()
        site.answers.set()
        with pytest.raises(asyncio.CancelledError):
            await telling
        again = await alerting.once()

    assert again == 0 and len(site.got) == 1


async def test_a_restart_neither_repeats_nor_loses(tmp_path: Path) -> None:
    clock = ToldClock()
    url = f"sqlite:///{tmp_path}/ledger.db"
    async with web() as site:
        alerts = to(ops=f"webhook:{site.url}")
        async with opened(clock, url) as client:
            await client.start("job", {}, id="bad")
            await client.work()
            first = Alerting(client, alerts)
            told = await first.once()
            site.statuses = [503]
            await client.start("job", {"ask": True}, id="pay")
            await client.work()
            failed = await first.once()
        site.statuses = [200]
        async with opened(clock, url) as client:
            second = Alerting(client, alerts)
            held = await second.once()  # the first one may live: its lease has not run out
            clock.advance(LEASE_SECONDS * 1.2)
            arrived = await second.once()
            overtaken = await Alerting(client, alerts).once()

    assert (told, failed, held, arrived, overtaken) == (1, 0, 0, 1, 0)
    assert [got.body["record_ids"] for got in site.got] == [["bad"], ["pay"]]


async def test_one_of_many_processes_tells() -> None:
    clock = ToldClock()
    async with web() as site, opened(clock) as client:
        await client.start("job", {}, id="bad")
        await client.work()
        many = [Alerting(client, to(ops=f"webhook:{site.url}")) for _ in range(5)]
        arrived = await asyncio.gather(*(one.once() for one in many))
        await next(one for one, count in zip(many, arrived, strict=True) if count).release()
        await client.start("job", {"ask": True}, id="pay")
        await client.work()
        after = await asyncio.gather(*(one.once() for one in many))

    assert sum(arrived) == 1 and sum(after) == 1


async def test_a_mail_to_the_person_asked_brings_a_link_that_answers() -> None:
    clock = ToldClock()
    async with mail() as post, web() as site, opened(clock, public_url="https://q.example.org") as client:
        alerts = to(ann="mailto:ann@x.eu", bob="mailto:bob@x.eu", chat=f"slack:{site.url}", smtp=post.url)
        await client.start("job", {"ask": True}, id="pay/1")
        await client.work()
        await Alerting(client, alerts, links(client, {})).once()

    texts = {people[0]: message.get_content() for people, message in post.got}
    assert "https://q.example.org/link#" in texts["ann@x.eu"]
    assert "/link#" not in texts["bob@x.eu"] and "/link#" not in str(site.got)
    assert "https://q.example.org/#/record/pay%2F1" in texts["bob@x.eu"]


async def test_a_reminder_and_an_escalation_come_by_the_channel_that_asked() -> None:
    job: Workflow[dict[str, Any], Any, None] = Workflow("patient")

    @job.step
    async def ask(run: Run[dict[str, Any]]) -> None:
        await run.ask("Pay?", by="ann@x.eu", remind="1h", escalate=("150m", "boss@x.eu"), expires="1d")

    clock = ToldClock()
    async with web() as site, Client("memory:", workflows=[job], clock=clock) as client:
        alerting = Alerting(client, to(ops=f"webhook:{site.url}/x", quiet="1d"))
        await client.start("patient", {}, id="p")

        async def after(span: str) -> int:
            clock.advance(span)
            await client.work()
            return await alerting.once() + await alerting.once()

        arrived = [await after(span) for span in ("0s", "59m", "1m", "30m", "30m", "30m", "23h")]

    assert arrived == [1, 0, 1, 0, 1, 1, 0]
    texts = [got.body["text"] for got in site.got]
    assert "reminder" not in texts[0]
    assert texts[1].startswith("reminder 1: 'p' at step 'ask' asks ann@x.eu: 'Pay?'")
    assert texts[3].startswith("reminder 3: 'p' at step 'ask' asks ann@x.eu, boss@x.eu: 'Pay?'")


def finding(number: int, kind: str = "error", step: str = "s") -> Finding:
    return Finding(kind, f"cause {number}", f"sentence {number}", 0.0, 1, [f"r{number}"], "w", step, latest=1.0)


def test_many_causes_of_one_place_are_one_alert() -> None:
    page = planned(Page(), [finding(n) for n in range(50)], 0.0, 60.0, KINDS)
    [one] = page.waiting
    assert one.alert.count == 50 and "… and 47 more" in one.alert.text


def test_a_channel_gets_no_more_than_so_many_alerts_and_hears_of_the_rest() -> None:
    page = planned(Page(), [finding(n, step=f"s{n}") for n in range(100)], 0.0, 60.0, KINDS)
    assert len(page.waiting) == MOST
    assert "81 more causes" in page.waiting[-1].alert.text
    page = planned(page, [finding(n, step=f"s{n}") for n in range(110)], 10.0, 60.0, KINDS)
    assert len(page.waiting) == MOST  # the ten new ones wait …
    page = planned(page, [finding(n, step=f"s{n}") for n in range(110)], 61.0, 60.0, KINDS)
    assert len(page.waiting) == MOST + 10  # … and are told when the period is over


def test_a_cause_that_comes_and_goes_is_no_storm() -> None:
    page = planned(Page(), [finding(1)], 0.0, 60.0, KINDS)
    for second in range(1, 50, 2):
        page = planned(page, [], float(second), 60.0, KINDS)
        page = planned(page, [finding(1)._replace(latest=second + 1.0)], second + 1.0, 60.0, KINDS)
    assert len(page.waiting) == 1
    page = planned(page, [finding(1)._replace(latest=70.0)], 70.0, 60.0, KINDS)
    assert len(page.waiting) == 2


def test_only_the_kinds_that_are_wanted() -> None:
    found = [finding(1), finding(2, "halted"), finding(3, "budget")]
    page = planned(Page(), found, 0.0, 60.0, {"halted", "budget"})
    assert [one.alert.kind for one in page.waiting] == ["halted", "budget"]


def test_a_page_survives_the_way_through_the_ledger() -> None:
    page = planned(Page(), [finding(n, step=f"s{n}") for n in range(3)], 5.0, 60.0, KINDS)
    page = book.failed(page, page.waiting[0].alert.alert_id, 6.0, "no")
    assert book.read_page(book.page_json(page)) == page


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"quiet": "1h"}, "no channel"),
        ({"ops": "pigeon:x"}, "is not a way"),
        ({"ops": "slack:nothing"}, "an http address"),
        ({"ops": "slack:$NOT_THERE"}, "has no NOT_THERE"),
        ({"ops": "mailto:ann"}, "is not an e-mail address"),
        ({"ops": "mailto:ann@x.eu"}, "mail needs smtp"),
        ({"ops": "mailto:ann@x.eu", "smtp": "smtp://mail.x.eu:99999"}, "mail needs smtp"),
        ({"ops": "webhook:http://x.eu:99999"}, "an http address"),
        ({"ops": "slack:https://x.eu", "only": "eror"}, "did you mean 'error'"),
        ({"ops": "slack:https://x.eu", "quiet": "0s"}, "longer than nothing"),
    ],
)
def test_what_cannot_be_is_one_sentence(told: dict[str, str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        read(told, {})


def test_a_secret_address_comes_from_the_environment() -> None:
    found = read({"ops": "slack:$URL"}, {"URL": "https://hooks.example.org/s3cret"})
    assert found is not None and found.channels[0].target == "https://hooks.example.org/s3cret"
    assert read({}, {}) is None
    assert Alert("x", "error", "t").title == "Quire: error"


async def test_the_book_is_one_setting_and_no_alert_logs_at_info(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "quire.alerts")
    clock = ToldClock()
    async with web() as site, opened(clock) as client:
        await Alerting(client, to(ops=f"webhook:{site.url}")).once()
        names = [setting.name for setting in await client.ledger.settings("")]
    assert BOOK in names and not caplog.records
