"""What is kept of a try that failed: the user's frames, the causes, no secrets, bounded; on every ledger alike."""

from __future__ import annotations

import asyncio
import json
import logging
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import TypeAdapter

from quire import Act, NotDone, Retry, Run, Workflow, effect, workflow
from quire.client.client import Client
from quire.ledger.base import Ledger
from quire.ledger.memory.ledger import MemoryLedger
from quire.ledger.postgres.ledger import PostgresLedger
from quire.ledger.sqlite.ledger import SqliteLedger
from quire.model.codec import dump, parse
from quire.model.event import Event, first_break
from quire.model.record import Record
from quire.model.trace import last_trace, trace_lines
from quire.run.failure import MOST_OF_A_TRACE, MOST_OF_AN_ERROR, failure_of
from quire.testing import ToldClock

Data = dict[str, Any]
LOOKS = 'return prices["nope"]'
RAISES = 'raise ValueError("there is no price") from error'
KEY = "sk-abcdefghijklmnopqrstuvwxyz123456"


def deep(prices: dict[str, int]) -> int:
    return prices["nope"]


def price(prices: dict[str, int]) -> int:
    try:
        return deep(prices)
    except KeyError as error:
        raise ValueError("there is no price") from error


async def looks_up(run: Run[Data]) -> None:
    price({})


def looks_up_in_a_thread(run: Any) -> None:
    price({})


async def looks_up_in_a_call(run: Run[Data]) -> None:
    await run.call(price, {})


@effect
async def sell(act: Act[Any]) -> int:
    return price({})


async def looks_up_in_an_effect(run: Run[Data]) -> None:
    await run.once(sell)


async def looks_up_beside(run: Run[Data]) -> None:
    await asyncio.gather(run.call(price, {}), run.sleep("1s"))


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def ledger(request: pytest.FixtureRequest, tmp_path: Any) -> Ledger:
    clock = ToldClock()
    if request.param == "memory":
        return MemoryLedger(clock)
    if request.param == "sqlite":
        return SqliteLedger(tmp_path / "ledger.db", clock)
    return PostgresLedger(request.getfixturevalue("postgres_url"), clock)


async def tried(step: Callable[..., Any], ledger: Ledger | None = None) -> tuple[Record, list[Event]]:
    """A record after one try of this step, and its log."""
    clock = ToldClock()
    flow = workflow(retry=Retry(2, first="1h"))(step)
    async with Client(ledger or MemoryLedger(clock), workflows=[flow], clock=clock) as client:
        await client.start(step.__name__, {}, id="r")
        await client.work()
        return await client.get("r"), await client.events("r")


def trace(events: list[Event], kind: str = "failed") -> list[dict[str, Any]]:
    [found] = [parse(event.body)["trace"] for event in events if event.kind == kind]
    return list(found)


def line_of(text: str) -> int:
    with open(__file__, encoding="utf-8") as file:
        return next(number for number, line in enumerate(file, 1) if line.strip() == text)


STEPS = [looks_up, looks_up_in_a_thread, looks_up_in_a_call, looks_up_beside]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
async def test_the_log_keeps_the_users_frames_and_the_causes(step: Callable[..., Any]) -> None:
    record, events = await tried(step)

    raised, cause = trace(events)
    number = line_of(RAISES)
    assert record.last_error == f"ValueError: there is no price (in price, test_failure.py:{number})"
    assert (raised["type"], raised["message"]) == ("ValueError", "there is no price")
    assert raised["frames"][-1] == {
        "file": "tests/runtime/test_failure.py",
        "line": number,
        "function": "price",
        "code": RAISES,
    }
    assert (cause["as"], cause["type"], cause["message"]) == ("cause", "KeyError", "'nope'")
    assert [frame["function"] for frame in cause["frames"]] == ["price", "deep"]
    assert cause["frames"][-1]["code"] == LOOKS
    own = [frame["function"] for frame in raised["frames"] if "folded" not in frame]
    assert set(own) <= {step.__name__, "price"}, "neither the engine's frames nor asyncio's are shown"
    assert first_break(events) is None


async def test_an_effect_that_broke_has_its_trace_before_anybody_is_asked() -> None:
    _, events = await tried(looks_up_in_an_effect)

    assert [link["type"] for link in trace(events, "effect.unclear")] == ["ValueError", "KeyError"]


async def test_every_store_keeps_and_shows_the_same(ledger: Ledger) -> None:
    record, events = await tried(looks_up, ledger)

    failed = last_trace(record, events)
    assert failed is not None
    lines = [line for line in trace_lines(failed) if "folded" not in line and "…" not in line]
    place = '  File "tests/runtime/test_failure.py", line '
    assert lines == [
        f"{place}{line_of('return deep(prices)')}, in price",
        "    return deep(prices)",
        place + f"{line_of(LOOKS)}, in deep",
        f"    {LOOKS}",
        "KeyError: 'nope'",
        "which was the direct cause of this error:",
        place + f"{line_of('price({})')}, in looks_up",
        "    price({})",
        place + f"{line_of(RAISES)}, in price",
        f"    {RAISES}",
        "ValueError: there is no price",
    ]
    assert first_break(events) is None


async def test_the_innermost_line_of_the_user_is_named_and_not_that_of_a_library() -> None:
    async def asks_a_server(run: Run[Data]) -> None:
        await run.call(urllib.request.urlopen, "http://127.0.0.1:9/nobody")

    async def reads(run: Run[Data]) -> None:
        json.loads("{nonsense")

    async def validates(run: Run[Data]) -> None:
        TypeAdapter(int).validate_python("x")

    for step in (asks_a_server, reads, validates):
        record, events = await tried(step)
        assert f"(in {step.__name__}, test_failure.py:" in str(record.last_error)
        [*_, last] = [frame for frame in trace(events)[0]["frames"] if "folded" not in frame]
        assert last["function"] == step.__name__


async def test_a_step_that_took_too_long_shows_where_it_stood() -> None:
    flow: Workflow[Data, Any, Any] = Workflow("slow")

    @flow.step(timeout="100ms", retry=Retry(2, first="1h"))
    async def slow(run: Run[Data]) -> None:
        await asyncio.Event().wait()

    async with Client(MemoryLedger(), workflows=[flow]) as client:
        await client.start(flow, {}, id="r")
        await client.work()
        events = await client.events("r")

    [link] = trace(events)
    assert [frame["code"] for frame in link["frames"] if "code" in frame] == ["await asyncio.Event().wait()"]


async def test_no_secret_is_kept_of_an_error(monkeypatch: pytest.MonkeyPatch, ledger: Ledger) -> None:
    monkeypatch.setenv("SHOP_API_TOKEN", "plain-words-9")

    async def tells_all(run: Run[Data]) -> None:
        try:
            raise OSError("login with password=hunter2 and {'token': 'Zb81hTqP0xLw93Kd'} failed")
        except OSError as error:
            error.add_note("it was plain-words-9")
            raise RuntimeError(f"401 for {KEY} " + "x" * 120_000) from error

    record, events = await tried(tells_all, ledger)

    kept = "".join([str(record), *map(str, events)])
    assert not [secret for secret in (KEY, "hunter2", "Zb81hTqP0xLw93Kd", "plain-words-9") if secret in kept]
    assert "password=[redacted]" in kept and "it was [redacted]" in kept


async def test_a_long_error_is_cut_with_a_mark_and_a_long_trace_loses_frames() -> None:
    def falls(depth: int) -> None:
        if depth == 0:
            raise ValueError("long" * 30_000)
        falls(depth - 1)

    async def recurses(run: Run[Data]) -> None:
        try:
            falls(150)
        except ValueError:
            falls(150)

    record, events = await tried(recurses)

    error, chain = str(record.last_error), trace(events)
    assert len(error) == MOST_OF_AN_ERROR and "cut here; it has 120," in error
    assert len(dump(chain)) <= MOST_OF_A_TRACE
    assert [link.get("as") for link in chain] == [None, "context"]
    assert all(any("folded" in frame for frame in link["frames"]) for link in chain)


def test_a_group_of_errors_shows_its_members_and_a_circle_of_causes_ends() -> None:
    async def both() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.to_thread(price, {}))

    with pytest.raises(BaseExceptionGroup) as caught:
        asyncio.run(both())
    group = caught.value
    group.__cause__ = NotDone("around")
    group.__cause__.__cause__ = group

    links = failure_of(group).trace

    assert [(link["type"], link.get("as")) for link in links] == [
        ("ExceptionGroup", None),
        ("ValueError", "member"),
        ("quire.workflows.effect.NotDone", "cause"),
        ("KeyError", "cause"),
    ]


async def test_the_workers_output_has_one_line_for_every_failed_try(caplog: pytest.LogCaptureFixture) -> None:
    clock = ToldClock()
    flow = workflow(retry=Retry(3, first="1s"))(looks_up)
    with caplog.at_level(logging.WARNING, "quire.worker"):
        async with Client(MemoryLedger(clock), workflows=[flow], clock=clock) as client:
            await client.start(flow, {}, id="r")
            for _ in range(3):
                await client.work()
                clock.advance("10s")

    said = [line.getMessage() for line in caplog.records if "failed" in line.getMessage()]
    number = line_of(RAISES)
    place = f"[tests/runtime/test_failure.py:{number} in price: raise ValueError("
    assert [line.partition(" failed")[0] for line in said] == [f"r: try {n} of step 'looks_up'" for n in (1, 2, 3)]
    assert all("ValueError: there is no price" in line and place in line and "\n" not in line for line in said)
    assert "again in" in said[0] and "not tried again" in said[2]
