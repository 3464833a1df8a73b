"""What a person or time must change first: a record over Google waits with the sentence, and burns no retries."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pytest

from hectograph import Emulator
from quire import Retry, Run, Workflow
from quire.client.client import Client
from quire.explain.why import Why, around, why_of
from quire.google import transport
from quire.google.credentials import StaticToken
from quire.google.error import QuotaOver
from quire.model.record import Record, Status
from quire.testing import ToldClock
from quire.workspace import calendar, connected, drive, gmail

ME = "ann@example.org"
AUTH = "https://www.googleapis.com/auth/"
START = datetime(2027, 1, 11, 9, 0, tzinfo=UTC)

acts: Workflow[dict[str, Any], Any, None] = Workflow("acts", retry=Retry(2, first="1s"))


@acts.step
async def work(run: Run[dict[str, Any]]) -> str:
    match run.data["act"]:
        case "folder":
            return (await run.once(drive.folder, "Acme")).name
        case "mail":
            return (await run.once(gmail.send, "client@example.com", "Hello", "Welcome.")).subject
        case _:
            return (await run.once(calendar.event, "Kick-off", START)).calendar


@pytest.fixture
def google() -> Iterator[Emulator]:
    with Emulator(account=ME) as emulator:
        yield emulator


def said(google: Emulator, path: str, body: Any) -> None:
    assert google.call("POST", f"/emulator/{path}", body).status < 300


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The transport gives up a short quota at once, so that no test waits for it."""
    call = transport.Transport.call

    async def soon(self: transport.Transport, *args: Any, **given: Any) -> Any:
        return await call(self, *args, **{**given, "deadline": 0.0})

    monkeypatch.setattr(transport.Transport, "call", soon)


@pytest.fixture
def clock() -> ToldClock:
    return ToldClock()


async def looked(client: Client) -> tuple[Record, Why]:
    record = await client.get("one")
    return record, why_of(record, await around(client.ledger, record))


REFUSALS = [
    ("accessNotConfigured", "Switch the API on for the project", 300.0),
    ("storageQuotaExceeded", "make room", 300.0),
    ("authError", "Sign in again: quire connect", 300.0),
    ("quotaExceeded", "is used up for hours", 3600.0),
    ("sharingRateLimitExceeded", "is used up for hours", 3600.0),
    ("rateLimitExceeded", "The quota is used up", 75.0),
    ("RESOURCE_EXHAUSTED", "The quota is used up", 75.0),
]


@pytest.mark.parametrize("act", ["folder", "mail", "event"])
@pytest.mark.parametrize(("reason", "sentence", "pause"), REFUSALS)
async def test_a_refusal_that_a_person_or_time_mends_makes_the_record_wait(
    google: Emulator, clock: ToldClock, act: str, reason: str, sentence: str, pause: float
) -> None:
    async with connected(google.url, user=ME), Client("memory:", workflows=[acts], clock=clock) as client:
        said(google, "faults", {"fault": "error", "reason": reason, "count": None, "write": act != "folder"})
        await client.start("acts", {"act": act}, id="one")
        await client.work()

        record, why = await looked(client)
        assert (record.status, record.attempt) == (Status.WAITING, 0)
        assert why.kind == "held" and sentence in why.sentence and "no try is counted" in why.sentence
        assert record.due_at is not None
        assert record.due_at - clock.now() == pytest.approx(pause, rel=0.25)

        google.call("DELETE", "/emulator/faults")
        clock.advance("2h")
        await client.work()
        record, _ = await looked(client)
        assert (record.status, record.attempt) == (Status.DONE, 0), record.last_error


async def test_a_missing_scope_names_the_command_and_the_record_goes_on_when_it_is_granted(
    google: Emulator, clock: ToldClock
) -> None:
    token = {"token": "t1", "email": ME, "scopes": [AUTH + "drive.file"]}
    said(google, "accounts", token)
    async with (
        connected(google.url, credentials=StaticToken("t1", ME)),
        Client("memory:", workflows=[acts], clock=clock) as client,
    ):
        await client.start("acts", {"act": "event"}, id="one")
        await client.work()

        record, why = await looked(client)
        assert (record.status, record.attempt) == (Status.WAITING, 0)
        assert why.remedy == "quire connect --add calendar"
        assert "The credentials lack a scope: quire connect --add calendar" in why.sentence

        said(google, "accounts", {**token, "scopes": [AUTH + "calendar.events"]})
        clock.advance("6m")
        await client.work()
        assert (await looked(client))[0].status is Status.DONE


def test_a_long_quota_is_due_in_an_hour_and_then_at_midnight() -> None:
    now = datetime(2026, 11, 19, 14, 30, tzinfo=UTC).astimezone()
    over = QuotaOver("it is over")

    assert over.due(now.timestamp(), 0) == now.timestamp() + 3600
    midnight = (now + timedelta(days=1)).replace(hour=0, minute=0)
    assert over.due(now.timestamp(), 1) == midnight.timestamp()


async def test_mails_by_four_workers_keep_to_the_quota_of_a_minute(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """What the workers share is the ledger alone. At full scale: ``python -m tests.workspace.test_waiting``."""
    monkeypatch.setattr(transport, "lane_of", lambda method, path: None)
    found = await mails(str(tmp_path), 130)
    assert found["refused later"] == 0


async def mails(folder: str, count: int) -> dict[str, Any]:
    """Four workers send so many mails through an emulator whose quotas are on. All clocks are one."""
    clock, later = ToldClock(), 0
    with Emulator(account=ME, clock=lambda: datetime.fromtimestamp(clock.now(), UTC)) as google:
        said(google, "settings", {"quotas": True})
        async with connected(google.url, user=ME, quota=True), AsyncExitStack() as stack:
            url = f"sqlite:///{folder}/ledger.db"
            workers = [await stack.enter_async_context(Client(url, workflows=[acts], clock=clock)) for _ in range(4)]
            for number in range(count):
                await workers[0].start("acts", {"act": "mail"}, id=f"mail-{number}")
            began, done, first = clock.now(), 0, 0
            while done < count:
                await asyncio.gather(*(worker.work() for worker in workers))
                refused = int(google.world.counters.get("refused by quota", 0))
                if clock.now() - began <= 60:
                    first = refused
                later = refused - first
                done = sum(one.count for one in await workers[0].counts() if one.status is Status.DONE)
                clock.advance("5s")
        left = json.loads(google.call("GET", "/emulator/outbox").body)["left"]
    assert len(left) == count
    return {
        "mails": count,
        "minutes": round((clock.now() - began) / 60, 1),
        "refused in the first minute": first,
        "refused later": later,
    }


if __name__ == "__main__":
    with TemporaryDirectory() as made, patch.object(transport, "lane_of", lambda method, path: None):
        sys.stdout.write(f"{asyncio.run(mails(made, 500))}\n")
