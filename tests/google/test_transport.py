from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hectograph import Emulator
from quire.google.budget import Budget, Urgency
from quire.google.credentials import StaticToken, from_file
from quire.google.drive import FOLDER, SPREADSHEET, Drive
from quire.google.error import (
    AlreadyThere,
    ApiDisabled,
    GoogleError,
    Invalid,
    Missing,
    MissingScope,
    NoStorage,
    NotShared,
    NotSignedIn,
    RateLimited,
    Unanswered,
    Unavailable,
    error_of,
)
from quire.google.sheets import Sheets
from quire.google.transport import Transport
from quire.testing import ToldClock
from tests.google.conftest import Hurried, control


@asynccontextmanager
async def opened(transport: Transport) -> AsyncIterator[tuple[Sheets, Drive]]:
    await transport.open()
    try:
        yield Sheets(transport), Drive(transport)
    finally:
        await transport.close()


async def new_book(drive: Drive) -> str:
    return str((await drive.files_create({"name": "Book", "mimeType": SPREADSHEET}))["id"])


def add_sheet(title: str) -> dict[str, Any]:
    return {"addSheet": {"properties": {"title": title}}}


@pytest.mark.parametrize(
    "fault",
    [
        {"fault": "rate_limit"},
        {"fault": "error", "status": 503},
        {"fault": "error", "status": 500},
        {"fault": "reset"},
        {"fault": "lost_answer"},
    ],
    ids=str,
)
async def test_a_read_is_repeated_whatever_happens(
    emulator: Emulator, transport: Transport, hurried: Hurried, fault: dict[str, Any]
) -> None:
    async with opened(transport) as (sheets, drive):
        book = await new_book(drive)
        control(emulator, "POST", "faults", {**fault, "kind": "spreadsheets.get", "count": 3})

        assert (await sheets.spreadsheets_get(book))["spreadsheetId"] == book
        assert len(hurried.slept) == 3
        assert transport.troubled_at is not None


async def test_pauses_have_full_jitter_and_grow(emulator: Emulator, hurried: Hurried) -> None:
    transport = Transport(StaticToken("a"), endpoint=emulator.url, per_minute=None, clock=hurried, chance=lambda: 1.0)
    async with opened(transport) as (sheets, drive):
        book = await new_book(drive)
        control(emulator, "POST", "faults", {"fault": "rate_limit", "count": 4})

        await sheets.spreadsheets_get(book)

    assert hurried.slept == [0.5, 1.0, 2.0, 4.0]


async def test_retry_after_is_obeyed(emulator: Emulator, transport: Transport, hurried: Hurried) -> None:
    async with opened(transport) as (sheets, drive):
        book = await new_book(drive)
        control(emulator, "POST", "faults", {"fault": "rate_limit", "retry_after": 17})

        await sheets.spreadsheets_get(book)

    assert hurried.slept == [17.0]


async def test_a_call_ends_at_its_deadline(emulator: Emulator, transport: Transport, hurried: Hurried) -> None:
    async with opened(transport) as (sheets, drive):
        book = await new_book(drive)
        control(emulator, "POST", "faults", {"fault": "rate_limit", "count": None})
        before = hurried.time

        with pytest.raises(RateLimited, match="wait a minute"):
            await sheets.spreadsheets_get(book)

        assert hurried.time - before <= 60


@pytest.mark.parametrize("fault", ["reset", "lost_answer", "error_after", "error"])
async def test_a_write_that_may_have_landed_is_never_repeated_blindly(
    emulator: Emulator, transport: Transport, fault: str
) -> None:
    async with opened(transport) as (sheets, drive):
        book = await new_book(drive)
        control(emulator, "POST", "faults", {"fault": fault, "kind": "batchUpdate"})

        with pytest.raises(Unanswered):
            await sheets.spreadsheets_batch_update(book, [add_sheet("x")], repeatable=False)

        counters = control(emulator, "GET", "counters")["counters"]
        assert counters["kind sheets.spreadsheets.batchUpdate"] == 1


async def test_a_write_that_was_refused_for_its_quota_is_sent_again(emulator: Emulator, transport: Transport) -> None:
    async with opened(transport) as (sheets, drive):
        book = await new_book(drive)
        control(emulator, "POST", "faults", {"fault": "rate_limit", "kind": "batchUpdate", "count": 2})

        await sheets.spreadsheets_batch_update(book, [add_sheet("x")], repeatable=False)

        counters = control(emulator, "GET", "counters")["counters"]
        assert counters["kind sheets.spreadsheets.batchUpdate"] == 3
        titles = [sheet["properties"]["title"] for sheet in (await sheets.spreadsheets_get(book))["sheets"]]
        assert titles.count("x") == 1


async def test_nobody_there_is_told_as_not_done(hurried: Hurried) -> None:
    transport = Transport(StaticToken("a"), endpoint="http://127.0.0.1:9/", per_minute=None, clock=hurried)
    async with opened(transport) as (sheets, _):
        with pytest.raises(Unavailable, match="cannot be reached"):
            await sheets.spreadsheets_batch_update("b", [add_sheet("x")], repeatable=False)


async def test_a_refused_batch_tells_which_request(transport: Transport) -> None:
    async with opened(transport) as (sheets, drive):
        book = await new_book(drive)

        with pytest.raises(Invalid) as told:
            await sheets.spreadsheets_batch_update(book, [add_sheet("x"), add_sheet("x")], repeatable=True)

    assert (told.value.index, told.value.request) == (1, "addSheet")


async def test_a_book_that_is_not_there_is_named_with_the_account(transport: Transport) -> None:
    async with opened(transport) as (sheets, _):
        with pytest.raises(Missing, match=r"nowhere.*shared with ann@example\.com"):
            await sheets.spreadsheets_get("nowhere")


async def test_a_repeated_create_makes_no_twin(emulator: Emulator, transport: Transport) -> None:
    async with opened(transport) as (_, drive):
        [file_id] = await drive.files_generate_ids(1)
        control(emulator, "POST", "faults", {"fault": "lost_answer", "kind": "files.create"})

        made = await drive.files_create({"id": file_id, "name": "a.json"}, b'{"a": 1}')
        again = await drive.files_create({"id": file_id, "name": "a.json"}, b'{"a": 1}')

        assert made["id"] == again["id"] == file_id
        assert len(await drive.files_list("name = 'a.json'")) == 1
        assert await drive.files_get_media(file_id) == b'{"a": 1}'


async def test_a_create_without_an_id_is_not_repeated(emulator: Emulator, transport: Transport) -> None:
    async with opened(transport) as (_, drive):
        control(emulator, "POST", "faults", {"fault": "lost_answer", "kind": "files.create"})

        with pytest.raises(Unanswered):
            await drive.files_create({"name": "a", "mimeType": FOLDER})


async def test_files_are_changed_and_deleted_by_id(emulator: Emulator, transport: Transport) -> None:
    async with opened(transport) as (_, drive):
        made = await drive.files_create({"name": "a"}, b"one")
        control(emulator, "POST", "faults", {"fault": "drive_rate_limit", "count": 2})

        await drive.files_update(made["id"], {"name": "b"}, b"two")
        await drive.files_update(made["id"], {"name": "c"})

        assert (await drive.files_get(made["id"]))["name"] == "c"
        assert await drive.files_get_media(made["id"]) == b"two"
        await drive.files_delete(made["id"])
        with pytest.raises(Missing):
            await drive.files_get(made["id"])


def reason(name: str) -> dict[str, Any]:
    return {"error": {"code": 403, "message": "no", "errors": [{"reason": name}]}}


@pytest.mark.parametrize(
    ("status", "body", "kind", "remedy"),
    [
        (403, {"error": {"message": "The caller does not have permission"}}, NotShared, "Share the file with bob"),
        (403, reason("storageQuotaExceeded"), NoStorage, "shared drive"),
        (403, reason("insufficientPermissions"), MissingScope, "sign in again with"),
        (403, reason("userRateLimitExceeded"), RateLimited, "fewer workers"),
        (403, reason("accessNotConfigured"), ApiDisabled, "Switch the API on"),
        (401, {}, NotSignedIn, "GOOGLE_APPLICATION_CREDENTIALS"),
        (404, {}, Missing, "shared with bob"),
        (409, {}, AlreadyThere, ""),
        (500, {}, Unanswered, "unknown"),
        (400, {"error": "bad"}, Invalid, "bad"),
    ],
)
def test_every_refusal_has_a_type_and_a_remedy(
    status: int, body: dict[str, Any], kind: type[GoogleError], remedy: str
) -> None:
    found = error_of(status, body, "reading", "bob")

    assert type(found) is kind
    assert remedy in str(found)


def test_a_key_file_that_is_none_is_named() -> None:
    with pytest.raises(NotSignedIn, match=r"nothing\.json holds no credentials"):
        from_file("nothing.json")


async def test_no_minute_has_more_calls_than_the_quota(hurried: Hurried) -> None:
    budget = Budget(hurried, 10)
    moments = []
    for _ in range(35):
        await budget.take(Urgency.RECEIPT)
        moments.append(hurried.time)
        hurried.time += 0.5

    assert all(sum(begin <= moment < begin + 60 for moment in moments) <= 10 for begin in moments)


async def test_a_fifth_is_kept_for_receipts_and_beats(hurried: Hurried) -> None:
    budget = Budget(hurried, 10)
    for _ in range(8):
        await budget.take(Urgency.CLAIM)
    before = hurried.time

    await budget.take(Urgency.BEAT)
    await budget.take(Urgency.RECEIPT)

    assert hurried.time == before
    await budget.take(Urgency.CLAIM)
    assert hurried.time > before


async def test_who_is_more_urgent_goes_first() -> None:
    class InTurns(Hurried):
        """Lets the others go before it wakes."""

        async def sleep(self, span: float) -> None:
            self.time += span / 4
            await asyncio.wait({asyncio.ensure_future(asyncio.to_thread(int))})

    budget = Budget(InTurns(), 1)
    await budget.take(Urgency.VIEW)
    went: list[Urgency] = []

    async def go(urgency: Urgency) -> None:
        await budget.take(urgency)
        went.append(urgency)

    await asyncio.gather(*(go(urgency) for urgency in (Urgency.ARCHIVE, Urgency.CLAIM, Urgency.RECEIPT)))

    assert went == [Urgency.RECEIPT, Urgency.CLAIM, Urgency.ARCHIVE]


async def test_a_429_halves_the_quota_for_a_minute(hurried: Hurried) -> None:
    budget = Budget(hurried, 10)
    assert budget.limit(Urgency.RECEIPT) == 10

    budget.halve()

    assert budget.limit(Urgency.RECEIPT) == 5
    hurried.time += 61
    assert budget.limit(Urgency.RECEIPT) == 10
    budget.sharers = 2
    assert budget.limit(Urgency.RECEIPT) == 5


async def test_half_of_the_quota_may_come_at_once_and_the_rest_is_spread() -> None:
    clock = ToldClock()
    budget = Budget(clock, 50.0)  # of which settles may use 40
    assert [await budget.take(Urgency.SETTLE) for _ in range(21)] == [False] * 21

    late = asyncio.ensure_future(budget.take(Urgency.SETTLE))
    assert not await budget.take(Urgency.RECEIPT)  # who goes first does not wait
    await clock.sleep(0)
    assert not late.done()
    clock.advance(60 / 40)

    assert await late
    assert budget.used == 23
