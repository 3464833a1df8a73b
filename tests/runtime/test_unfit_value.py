"""What an act returned is never a reason to lose the act: it is done once, whatever came of it."""

from __future__ import annotations

import email.message
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from quire import Act, NotDone, Run, Workflow, effect
from quire.client.client import Client
from quire.errors import IllegalMove, InputError
from quire.model.change import Change
from quire.model.record import Status
from quire.model.row import replace
from quire.model.wait import load_waits
from quire.testing import ToldClock

#: What the mail returns next, and how often it was sent.
RETURNS: list[Any] = []
SENT: list[str] = []


class Text(str):
    """As ``msg["Message-ID"]`` of some libraries."""


@dataclass
class Mail:
    to: str
    count: int = 1


@effect
async def send(act: Act, to: str) -> str:
    SENT.append(to)
    found: str = RETURNS[-1]
    return found


@effect
async def post(act: Act, to: str) -> Mail:
    SENT.append(to)
    found: Mail = RETURNS[-1]
    return found


@effect
async def anything(act: Act, to: str):  # type: ignore[no-untyped-def]
    SENT.append(to)
    return RETURNS[-1]


def make(act: Any) -> Workflow[dict[str, Any], Any, None]:
    made: Workflow[dict[str, Any], Any, None] = Workflow("mails")

    @made.step
    async def go(run: Run[dict[str, Any]]) -> Any:
        value = await run.once(act, "ann")
        return [type(value).__name__, str(value)]

    return made


@asynccontextmanager
async def opened(act: Any, returns: Any) -> AsyncIterator[Client]:
    RETURNS[:], SENT[:] = [returns], []
    async with Client("memory:", workflows=[make(act)], clock=ToldClock(), who="ann") as client:
        await client.start("mails", {}, id="m")
        await client.work()
        yield client


def header() -> Any:
    message = email.message.EmailMessage()
    message["Message-ID"] = "<1@x.eu>"
    return message["Message-ID"]


@pytest.mark.parametrize(
    ("act", "returned", "kept"),
    [
        (send, Text("<1@x.eu>"), '["str","<1@x.eu>"]'),
        (send, header(), '["str","<1@x.eu>"]'),
        (anything, Text("x"), '["str","x"]'),
        (anything, (1, [Text("x")]), '["list","[1, [\'x\']]"]'),
        (post, {"to": Text("bo"), "count": "2"}, '["Mail","Mail(to=\'bo\', count=2)"]'),
    ],
)
async def test_what_resembles_the_type_is_kept_as_the_type(act: Any, returned: Any, kept: str) -> None:
    async with opened(act, returned) as client:
        record = await client.get("m")
        assert (record.status, record.result, SENT) == (Status.DONE, kept, ["ann"])


@pytest.mark.parametrize(
    ("act", "returned", "value", "refused", "kept"),
    [
        (send, 5, "five", 6, '["str","five"]'),
        (send, None, "id", 6, '["str","id"]'),
        (post, object(), {"to": "bo"}, {"too": "bo"}, '["Mail","Mail(to=\'bo\', count=1)"]'),
        (anything, object(), [1], None, '["list","[1]"]'),
    ],
)
async def test_what_is_no_such_value_keeps_the_receipt_and_a_person_gives_the_value(
    act: Any, returned: Any, value: Any, refused: Any, kept: str
) -> None:
    async with opened(act, returned) as client:
        record = await client.get("m")
        assert record.status is Status.NEEDS_APPROVAL and record.open_intents == 0
        assert (record.question or "").startswith(f"{act.name!r} happened, but what it returned is not known (")
        [receipt] = await client.ledger.receipts(record_ids=["m"])
        assert receipt.unfit and client.link.keys.verifies(receipt)
        assert "effect.unfit" in [event.kind for event in await client.events("m")]
        with pytest.raises(IllegalMove, match="happened; say what it returned"):
            await client.resolve("m", happened=False)
        if refused is not None:
            with pytest.raises(InputError, match="the value does not fit what effect"):
                await client.resolve("m", happened=True, value=refused)
            with pytest.raises(InputError, match="say what it was: quire resolve m --happened --value JSON"):
                await client.resolve("m", happened=True)
        assert (await client.get("m")).status is Status.NEEDS_APPROVAL

        await client.resolve("m", happened=True, value=value)
        await client.work()

        record = await client.get("m")
        assert (record.status, record.result, SENT) == (Status.DONE, kept, ["ann"])
        [receipt] = await client.ledger.receipts(record_ids=["m"])
        assert client.link.keys.verifies(receipt)


# -- in doubt --------------------------------------------------------------------------------------------------


FOUND: list[Any] = []


async def look(act: Act, to: str) -> str | NotDone:
    found: str = FOUND[-1]
    if isinstance(found, Exception):
        raise found
    return found


@effect(probe=look, settle="0s", fenced=True)
async def mail(act: Act, to: str) -> str:
    SENT.append(to)
    raise OSError("the line went dead")


async def test_happened_without_a_value_is_refused_where_the_step_needs_one() -> None:
    FOUND[:] = [RuntimeError("no index")]
    async with opened(mail, None) as client:
        await client.retry("m")
        await client.work()
        assert (await client.get("m")).status is Status.NEEDS_APPROVAL

        with pytest.raises(InputError, match="say what it was: quire resolve m --happened --value JSON"):
            await client.resolve("m", happened=True)
        with pytest.raises(InputError, match="the value does not fit what effect 'mail' returns: Input should be"):
            await client.resolve("m", happened=True, value=5)
        await client.resolve("m", happened=True, value="<1@x.eu>")
        await client.work()

        record = await client.get("m")
        assert (record.status, record.result, SENT) == (Status.DONE, '["str","<1@x.eu>"]', ["ann"])


async def test_a_probe_that_finds_something_odd_does_not_make_it_happen_again() -> None:
    FOUND[:] = [object()]
    async with opened(mail, None) as client:
        await client.retry("m")
        await client.work()
        record = await client.get("m")
        assert record.status is Status.NEEDS_APPROVAL and "what it returned is not known" in (record.question or "")
        await client.resolve("m", happened=True, value="x")
        await client.work()
        assert ((await client.get("m")).result, SENT) == ('["str","x"]', ["ann"])


async def test_a_receipt_of_before_that_says_null_asks_for_the_value_and_does_not_err() -> None:
    async with opened(send, 5) as client:
        [receipt] = await client.ledger.receipts(record_ids=["m"])
        wait = load_waits((await client.get("m")).waits)[0]
        assert (wait.about or {})["of"] == receipt.key
        null = client.link.keys.signed(replace(receipt, value="null"))
        await client.ledger.commit([Change("c1", "m", 0, None, receipts=(null,))])
        await client.resolve("m", happened=True, value="given")
        await client.work()
        assert (await client.get("m")).result == '["str","given"]'
