"""What cannot be done for now: the record waits with the sentence and the command, and no try is counted."""

from __future__ import annotations

from typing import Any

import pytest

from quire import Act, Fail, NotDone, Retry, Run, Workflow, effect
from quire.client.client import Client
from quire.errors import NotNow
from quire.explain.why import Why, around, why_of
from quire.model.record import Record, Status
from quire.testing import ToldClock
from quire.workflows.effect import Prepare


class Locked(NotNow):
    """The door of the post office is locked."""

    again = (600.0, 3600.0)
    remedy = "post unlock"


class Office:
    """A post office whose parts are locked for so many visits."""

    def __init__(self) -> None:
        self.locked: dict[str, int] = {}
        self.sent: list[str] = []

    def enter(self, part: str) -> None:
        if self.locked.get(part, 0):
            self.locked[part] -= 1
            raise Locked(f"the {part} is locked")


OFFICE = Office()


@pytest.fixture(autouse=True)
def office() -> Office:
    OFFICE.__init__()  # type: ignore[misc]
    return OFFICE


async def check(act: Act, text: str) -> str:
    OFFICE.enter("check")
    return text


async def reserve(act: Act, text: str) -> str:
    OFFICE.enter("reserve")
    return text


async def look(act: Act, text: str) -> str | NotDone:
    OFFICE.enter("probe")
    return text if text in OFFICE.sent else NotDone("it is not there")


async def take_back(act: Act, text: str) -> None:
    OFFICE.enter("undo")
    OFFICE.sent.remove(text)


@effect(probe=look, undo=take_back, prepare=Prepare(check, reserve), fenced=True, settle="1s")
async def send(act: Act, text: str) -> str:
    OFFICE.enter("act")
    OFFICE.sent.append(text)
    if OFFICE.locked.pop("answer", 0):
        raise ConnectionResetError("the answer was lost")
    return text


async def read() -> str:
    OFFICE.enter("call")
    return "read"


letters: Workflow[dict[str, Any], Any, None] = Workflow("letters", on_failure="undo", retry=Retry(2, first="1s"))


@letters.step
async def write(run: Run[dict[str, Any]]) -> str:
    await run.call(read)
    text = await run.once(send, "hello")
    if run.data.get("fails"):
        raise Fail("no use")
    return text


async def started(clock: ToldClock, **data: Any) -> Client:
    client = Client("memory:", workflows=[letters], who="ann", clock=clock)
    await client.__aenter__()
    await client.start("letters", data, id="one")
    await client.work()
    return client


async def _record(client: Client) -> Record:
    return await client.get("one")


async def _why(client: Client) -> Why:
    record = await _record(client)
    return why_of(record, await around(client.ledger, record))


@pytest.mark.parametrize("part", ["call", "check", "reserve", "act"])
async def test_the_record_waits_says_what_helps_counts_no_try_and_goes_on(part: str, office: Office) -> None:
    clock = ToldClock()
    office.locked[part] = 2
    client = await started(clock)
    try:
        record = await _record(client)
        assert (record.status, record.attempt) == (Status.WAITING, 0)
        why = await _why(client)
        assert why.kind == "held" and why.remedy == "post unlock"
        assert f"the {part} is locked; post unlock helps" in why.sentence and "no try is counted" in why.sentence
        assert record.due_at is not None and record.due_at - clock.now() == pytest.approx(600, abs=2)

        clock.advance("11m")
        await client.work()
        record = await _record(client)
        assert record.due_at is not None and record.due_at - clock.now() == pytest.approx(3600, abs=2)
        assert (record.status, record.attempt) == (Status.WAITING, 0)

        clock.advance("61m")
        await client.work()
        assert (await _record(client)).status is Status.DONE
        assert office.sent == ["hello"]
    finally:
        await client.__aexit__(None, None, None)


async def test_a_probe_that_cannot_look_waits_and_asks_nobody(office: Office) -> None:
    clock = ToldClock()
    office.locked |= {"answer": 1, "probe": 1}
    client = await started(clock)
    try:
        clock.advance("2m")
        await client.work()
        assert (await _record(client)).status is Status.WAITING
        assert (await _why(client)).kind == "held"

        clock.advance("11m")
        await client.work()
        assert (await _record(client)).status is Status.DONE
        assert office.sent == ["hello"]
    finally:
        await client.__aexit__(None, None, None)


async def test_an_undo_that_cannot_be_done_for_now_waits_and_is_done_later(office: Office) -> None:
    clock = ToldClock()
    office.locked["undo"] = 1
    client = await started(clock, fails=True)
    try:
        assert office.sent == ["hello"]
        assert (await _why(client)).kind == "held"

        clock.advance("11m")
        await client.work()
        assert office.sent == [] and (await _record(client)).status is Status.CANCELLED
    finally:
        await client.__aexit__(None, None, None)
