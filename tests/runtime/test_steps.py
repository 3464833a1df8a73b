"""What steps can do, one behaviour each, on the told clock."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

import quire
from quire import Act, Cron, Fail, Failed, Retry, Run, Status, SyncRun, Workflow, aopen, effect, workflow
from quire.errors import DefinitionError, IllegalMove, ResultMissing
from quire.model.codec import parse
from quire.testing import Trial, every_kill


@effect
async def note_down(act: Act[list[str]], what: str) -> str:
    act.deps.append(what)
    return what.upper()


@every_kill
async def test_effects_side_by_side_keep_their_names() -> None:
    @workflow
    async def both(run: Run[dict[str, Any], list[str]]) -> list[str]:
        names = ["a", "b", "c"]
        return list(await asyncio.gather(*(run.once(note_down.named(name), name) for name in names)))

    book: list[str] = []
    async with Trial(both, deps=book) as trial:
        record = await trial.start({})
        await trial.settle()

        assert record.result == ["A", "B", "C"] and sorted(book) == ["a", "b", "c"]


async def test_a_timer_keeps_its_end_when_something_else_comes_first() -> None:
    @workflow
    async def race(run: Run[dict[str, Any]]) -> str:
        await run.all(run.sleep("10h"), run.wait("go"))
        return "both"

    async with Trial(race) as trial:
        record = await trial.start({})
        await trial.advance("9h")
        await record.signal("go")
        await trial.settle()
        assert record.status == "WAITING"

        await trial.advance("1h")

        assert record.result == "both"


async def test_signals_that_came_in_time_are_answers_also_if_the_worker_comes_after_the_timeout() -> None:
    @workflow
    async def two(run: Run[dict[str, Any]]) -> list[Any]:
        first = await run.all(run.wait("a", timeout="2s"), run.wait("b", timeout="2s"))
        return [*first, await run.wait("b", timeout="0s")]

    async with Trial(two) as trial:
        record = await trial.start({})
        await trial.settle()
        await record.signal("a", 1)  # makes the record due, so that what follows is only kept
        await record.signal("b", 2)
        trial.clock.advance("2s")
        await record.signal("b", 3)
        trial.clock.advance("1s")
        await trial.settle()

        assert record.result == [1, 2, 3]


async def test_a_signal_that_came_after_the_timeout_is_no_answer() -> None:
    @workflow
    async def two(run: Run[dict[str, Any]]) -> list[Any]:
        return list(await run.all(run.wait("a", timeout="2s"), run.wait("b", timeout="2s")))

    async with Trial(two) as trial:
        record = await trial.start({})
        await trial.settle()
        await record.signal("a", 1)
        trial.clock.advance("3s")
        await record.signal("b", 2)
        await trial.settle()

        assert record.result == [1, None]


class TooMany(Exception):
    retry_after = 120


async def test_the_other_sides_retry_after_is_honoured() -> None:
    tries: list[float] = []

    async with Trial(_limited(tries)) as trial:
        record = await trial.start({})
        start = trial.clock.now()
        await trial.settle()

        assert record.status == "DONE" and [moment - start for moment in tries] == [0.0, 120.0]


def _limited(tries: list[float]) -> Workflow[Any, Any, Any]:
    @workflow
    async def limited(run: Run[dict[str, Any]]) -> None:
        tries.append(run._pass.host.clock.now())
        if len(tries) == 1:
            raise TooMany

    return limited


async def test_back_off_grows_with_full_jitter_and_ends_in_the_dead_letter() -> None:
    retry = Retry(4, first="10s", factor=2, most="25s")

    assert [retry.delay(n, ValueError(), lambda: 1.0) for n in (1, 2, 3, 4)] == [10.0, 20.0, 25.0, None]
    assert retry.delay(2, ValueError(), lambda: 0.25) == 5.0
    assert retry.delay(1, quire.Fail("no")) is None


async def test_a_step_that_takes_too_long_is_ended_and_tried_again() -> None:
    started = asyncio.Event()

    slow: Workflow[Any, Any, Any] = Workflow("slow", retry=Retry(1))

    @slow.step(timeout="30s")
    async def only(run: Run) -> None:
        started.set()
        await asyncio.Event().wait()

    async with Trial(slow) as trial:
        record = await trial.start({})
        settling = asyncio.ensure_future(trial.settle())
        await started.wait()
        while not settling.done():
            trial.clock.advance("1s")
            await asyncio.sleep(0)  # noqa: TID251 - lets the others run; the time itself is told

        assert record.status == "ERROR" and "took longer than its timeout of 30 s" in record.error


@workflow(retry=Retry(1))
async def half(run: Run[dict[str, Any]]) -> int:
    if run.data["n"] in run.data.get("bad", []):
        raise quire.Fail("a bad number")
    return int(run.data["n"]) // 2


def items(count: int, *bad: int) -> list[dict[str, Any]]:
    return [{"n": n, "bad": list(bad)} for n in range(count)]


async def test_a_map_keeps_failures_in_their_place() -> None:
    @workflow
    async def keeps(run: Run[dict[str, Any]]) -> list[Any]:
        parts = await run.map(half, items(6, 3), failures="keep", need=0.5)
        return [part.error if isinstance(part, Failed) else part for part in parts]

    async with Trial(keeps, also=[half]) as trial:
        record = await trial.start({})
        await trial.settle()

        assert record.result[:3] == [0, 0, 1] and record.result[4:] == [2, 2]
        assert record.result[3].startswith("Fail: a bad number")


async def test_a_map_that_needs_more_than_it_gets_fails_and_names_the_child() -> None:
    @workflow(retry=Retry(1))
    async def needs(run: Run[dict[str, Any]]) -> None:
        await run.map(half, items(6, 1, 2, 3), failures="keep", need=0.9)

    async with Trial(needs, also=[half]) as trial:
        record = await trial.start({})
        await trial.settle()

        assert record.status == "ERROR"
        assert f"{record.record_id}/half~1/1" in record.error and "a bad number" in record.error


async def test_what_a_retry_does_again_may_fail_as_often_as_the_map_bears_in_all() -> None:
    tries: list[int] = []

    @workflow
    async def mends(run: Run[dict[str, Any]]) -> int:
        number: int = run.data["n"]
        tries.append(number)
        if number == 0 or (number == 1 and tries.count(1) == 1):
            raise Fail("not now")
        if number == 1:
            await run.sleep("1m")
        return number

    @workflow
    async def needs_most(run: Run[dict[str, Any]]) -> int:
        found = await run.map(mends, [{"n": n} for n in range(10)], failures="keep", need=0.9)
        return sum(isinstance(part, int) for part in found)

    async with Trial(needs_most, also=[mends]) as trial:
        record = await trial.start({})
        await trial.settle()
        assert record.status == "ERROR"

        await trial.client.retry(record.record_id)
        await trial.advance("1h")
        assert record.result == 9


async def test_a_map_goes_on_at_its_deadline_and_cancels_what_is_late() -> None:
    @workflow
    async def late(run: Run[dict[str, Any]]) -> str:
        if run.data["n"]:
            await run.wait("never")
        return "in time"

    @workflow
    async def hurried(run: Run[dict[str, Any]]) -> list[Any]:
        parts = await run.map(late, items(3), failures="keep", within="1h")
        return [isinstance(part, Failed) for part in parts]

    async with Trial(hurried, also=[late]) as trial:
        record = await trial.start({})
        await trial.advance("1h")

        assert record.result == [False, True, True]
        assert trial.record(f"{record.record_id}/late~1/1").status == "CANCELLED"


async def test_a_retried_parent_does_only_the_failed_children_again() -> None:
    mended: list[int] = []
    ran: list[int] = []

    @workflow(retry=Retry(1))
    async def fragile(run: Run[dict[str, Any]]) -> int:
        ran.append(run.data["n"])
        if run.data["n"] == 1 and not mended:
            raise quire.Fail("broken")
        return int(run.data["n"])

    @workflow
    async def parent(run: Run[dict[str, Any]]) -> list[int]:
        return await run.map(fragile, items(3))

    async with Trial(parent, also=[fragile]) as trial:
        record = await trial.start({})
        await trial.settle()
        assert record.status == "ERROR"

        mended.append(1)
        await trial.client.retry(record.record_id, by="ann@x.eu")
        await trial.settle()

        assert record.result == [0, 1, 2]
        assert sorted(ran) == [0, 1, 1, 2]


def side_by_side(named: bool) -> tuple[Workflow[Any, Any, Any], Workflow[Any, Any, Any]]:
    """A parent whose two maps come in one order in its first pass and in the other one in its second."""
    order = ["b", "a"]

    @workflow
    async def echo(run: Run[dict[str, Any]]) -> str:
        return str(run.data["item"])

    @workflow
    async def both(run: Run[dict[str, Any]]) -> list[list[str]]:
        turn = {name: asyncio.Event() for name in "ab"}
        turn[order[0]].set()

        async def part(name: str) -> list[str]:
            await turn[name].wait()
            found = run.map(echo, [{"item": f"{name}{n}"} for n in range(2)], name=name if named else None)
            for other in turn.values():
                other.set()
            return await found

        order.reverse()
        return list(await asyncio.gather(part("a"), part("b")))

    return both, echo


@pytest.mark.parametrize("named", [True, False])
async def test_maps_side_by_side_never_answer_for_each_other(named: bool) -> None:
    both, echo = side_by_side(named)
    async with Trial(both, also=[echo]) as trial:
        record = await trial.start({})
        await trial.settle()

        if named:
            assert record.result == [["a0", "a1"], ["b0", "b1"]]
        else:
            assert "give each its own name, as run.map(echo, items, name='…')" in (record.record.last_error or "")
            assert record.status in ("ERROR", "PENDING")


async def test_an_empty_map_is_done_at_once() -> None:
    @workflow
    async def nothing(run: Run[dict[str, Any]]) -> list[int]:
        return await run.map(half, [])

    async with Trial(nothing, also=[half]) as trial:
        record = await trial.start({})
        await trial.settle()

        assert record.result == []


async def test_at_most_limit_children_are_under_way() -> None:
    under_way, most = 0, 0

    @workflow
    async def child(run: Run[dict[str, Any]]) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        for _ in range(5):
            await asyncio.sleep(0)  # noqa: TID251 - lets the others run
        under_way -= 1

    @workflow
    async def parent(run: Run[dict[str, Any]]) -> None:
        await run.map(child, items(12), limit=3)

    async with Trial(parent, also=[child]) as trial:
        record = await trial.start({})
        await trial.settle()

        assert record.status == "DONE" and 0 < most <= 3


async def test_a_rewound_record_does_its_effects_anew() -> None:
    machine: Workflow[Any, Any, Any] = Workflow("machine")

    @machine.step(then="second")
    async def first(run: Run[Any, Any]) -> None:
        await run.once(note_down, "first")

    @machine.step
    async def second(run: Run[Any, Any]) -> int:
        return run.visit

    book: list[str] = []
    async with Trial(machine, deps=book) as trial:
        record = await trial.start({})
        await trial.settle()

        await trial.client.retry(record.record_id, step="first", by="ann@x.eu")
        await trial.settle()

        assert record.status == "DONE" and book == ["first", "first"]
        with pytest.raises(IllegalMove, match="DONE"):
            await trial.client.retry(record.record_id)


async def test_an_edit_within_a_loop_holds_and_the_loop_keeps_its_place() -> None:
    @workflow(retry=Retry(1))
    async def adding(run: Run[dict[str, Any]]) -> int:
        run.data["sum"] = 0  # the loop brings back what it saved
        async for item in run.each([1, 2, 3], every=1):
            run.data["sum"] += item
            if item == 2:
                await run.wait("go")
                if not run.data["rate"]:
                    raise ValueError("the rate is 0")
        return int(run.data["rate"] * run.data["sum"])

    async with Trial(adding) as trial:
        record = await trial.start({"rate": 0, "of": "ann"})
        await trial.settle()
        await trial.client.edit(record.record_id, {"rate": 0, "sum": 3}, by="ann@x.eu")
        await record.signal("go")
        await trial.settle()
        assert (record.status, record.data) == ("ERROR", {"rate": 0, "sum": 3})

        await trial.client.edit(record.record_id, {"rate": 7, "sum": 3}, by="ann@x.eu")
        await trial.client.retry(record.record_id)
        await trial.settle()

        assert (record.result, record.data) == (42, {"rate": 7, "sum": 6})


async def test_a_renamed_step_and_migrated_data_carry_old_records_on() -> None:
    old: Workflow[Any, Any, Any] = Workflow("letters")
    old.state("rest", then="write")

    @old.step
    async def write(run: Run) -> None: ...

    async with Trial(old) as trial:
        record = await trial.start({"to": "ann"})
        await trial.client.move(record.record_id, "write")

        new: Workflow[Any, Any, Any] = Workflow("letters", version=2)
        new.state("rest", then="send")

        @new.step(was="write")
        async def send(run: Run) -> str:
            return f"{run.version}: {run.data['recipient']}"

        @new.migrate(1)
        def rename(data: dict[str, Any]) -> dict[str, Any]:
            return {"recipient": data["to"]}

        trial.client.registry.workflows["letters"] = new
        trial.workflow = new
        await trial.settle()

        assert record.result == "2: ann"
        told = [(event.kind, parse(event.body)) for event in await trial.client.events(record.record_id)][-2:]
        change = {"changes": {"to": ["ann", None], "recipient": [None, "ann"]}, "came": ["recipient"], "went": ["to"]}
        assert told == [("migrated", {"from": 1, "to": 2} | change), ("done", {"from": "write"})]


async def test_a_renamed_step_has_one_cap_under_all_its_names() -> None:
    under_way = most = 0
    release = asyncio.Event()

    old: Workflow[Any, Any, Any] = Workflow("letters")

    @old.step(cap=2)
    async def write(run: Run) -> None: ...

    new: Workflow[Any, Any, Any] = Workflow("letters", version=2)

    @new.step(cap=2, was="write")
    async def send(run: Run) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        if under_way == 2:
            asyncio.get_running_loop().call_soon(release.set)
        await release.wait()
        under_way -= 1

    async with Trial(old) as trial:
        for _ in range(2):
            await trial.start({})
        trial.client.registry.workflows["letters"] = trial.workflow = new
        for _ in range(2):
            await trial.start({})
        await trial.settle()

        assert [str(record.status) for record in await trial.client.find()] == ["DONE"] * 4
        assert most == 2


def to_recipient(data: dict[str, Any]) -> dict[str, Any]:
    return {"recipient": data["to"]}


@every_kill
async def test_a_pass_that_is_killed_and_the_next_one_see_the_same_migrated_data() -> None:
    old: Workflow[Any, Any, Any] = Workflow("letters")
    new: Workflow[Any, Any, Any] = Workflow("letters", version=2)
    new.migrate(1)(to_recipient)
    seen: list[tuple[int, dict[str, Any]]] = []

    @old.step
    async def write(run: Run) -> None: ...

    @new.step(was="write")
    async def send(run: Run[Any, list[str]]) -> str:
        seen.append((run.version, dict(run.data)))
        return await run.once(note_down, run.data["recipient"])

    async with Trial(old, deps=[]) as trial:
        record = await trial.start({"to": "ann"})
        trial.client.registry.workflows["letters"] = trial.workflow = new
        await trial.settle()

        assert record.result == "ANN"
        assert set(map(str, seen)) == {"(2, {'recipient': 'ann'})"}
        kinds = [event.kind for event in await trial.client.events(record.record_id)]
        assert kinds.count("migrated") == 1


async def test_a_step_that_began_under_older_code_goes_on_with_its_data() -> None:
    seen: list[tuple[int, dict[str, Any]]] = []

    async def ask(run: Run[Any, list[str]]) -> None:
        seen.append((run.version, dict(run.data)))
        await run.once(note_down, "asked")
        await run.wait("go")

    async def send(run: Run[Any, list[str]]) -> None:
        seen.append((run.version, dict(run.data)))

    old: Workflow[Any, Any, Any] = Workflow("letters")
    new: Workflow[Any, Any, Any] = Workflow("letters", version=3)
    new.migrate(1)(to_recipient)  # and none from version 2 on: nothing has changed there
    for flow in (old, new):
        flow.step(then="send")(ask)
        flow.step(send)

    async with Trial(old, deps=[]) as trial:
        record = await trial.start({"to": "ann"})
        await trial.settle()
        trial.client.registry.workflows["letters"] = trial.workflow = new
        await record.signal("go")
        await trial.settle()

        assert record.status == "DONE"
        assert seen == [(1, {"to": "ann"}), (1, {"to": "ann"}), (2, {"recipient": "ann"})]


async def test_a_schedule_starts_one_record_for_each_moment_and_catches_up_as_it_says() -> None:
    @workflow(on=[Cron("0 2 * * *", tz="Europe/Berlin")])
    async def nightly(run: Run[dict[str, Any]]) -> None: ...

    async with Trial(nightly) as trial:
        await trial.settle()
        for _ in range(2):
            await trial.advance("24h")
        await trial.advance("120h")  # nobody looked meanwhile: one record for the newest moment

        started = [record.record_id for record in await trial.client.find(workflow="nightly")]
        assert started == ["nightly@2026-01-01T01:00Z", "nightly@2026-01-02T01:00Z", "nightly@2026-01-07T01:00Z"]


async def test_two_schedules_that_are_due_at_one_moment_start_a_record_each() -> None:
    reports: Workflow[Any, Any, Any] = Workflow("reports")
    for region in ("eu", "us"):
        reports.on(Cron("0 * * * *"), data={"region": region})
    reports.on(Cron("0 0 * * *"), data={"region": "eu"})  # at midnight the same as the first, and yet another

    @reports.step
    async def write(run: Run) -> None: ...

    async with Trial(reports) as trial:
        await trial.settle()
        await trial.advance("24h")
        await trial.settle()

        started = {record.record_id: parse(record.data)["region"] for record in await trial.client.find()}
        moment = "reports@2026-01-02T00:00Z"
        assert started == {moment: "eu", f"{moment}-2": "us", f"{moment}-3": "eu"}


async def test_a_schedule_whose_start_is_refused_says_so_and_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    @workflow(on=[Cron("0 2 * * *")])
    async def nightly(run: Run[dict[str, Any]]) -> None: ...

    async with Trial(nightly) as trial:
        await trial.settle()
        await trial.client.start(nightly, {"by": "hand"}, id="nightly@2026-01-01T02:00Z")
        await trial.advance("24h")
        await trial.advance("24h")

        assert "could not start 'nightly@2026-01-01T02:00Z': a record" in caplog.text
        started = [record.record_id for record in await trial.client.find()]
        assert started == ["nightly@2026-01-01T02:00Z", "nightly@2026-01-02T02:00Z"]


async def test_a_schedule_gives_its_data_as_fields_or_as_the_workflows_type() -> None:
    nightly = Workflow("nightly", data=Point, result=int)

    @nightly.step
    async def total(run: Run[Point]) -> int:
        return run.data.x

    nightly.on(Cron("0 2 * * *"), data={"x": 1})
    nightly.on(Cron("0 3 * * *"), data=Point(x=2))

    async with Trial(nightly) as trial:
        await trial.settle()
        await trial.advance("24h")

        assert [record.result for record in await trial.client.find(workflow="nightly")] == ["1", "2"]


def test_a_schedule_is_right_at_both_clock_changes() -> None:
    cron = Cron("30 2 * * *", tz="Europe/Berlin")
    spring = datetime(2026, 3, 28, tzinfo=UTC).timestamp()
    autumn = datetime(2026, 10, 24, tzinfo=UTC).timestamp()

    assert len(cron.between(spring, spring + 3 * 86400)) == 3
    assert len(cron.between(autumn, autumn + 3 * 86400)) == 3
    with pytest.raises(DefinitionError, match="is not a cron schedule"):
        Cron("every day")
    with pytest.raises(DefinitionError, match="is not a time zone"):
        Cron("0 2 * * *", tz="Berlin")


@dataclass
class Point:
    x: int
    y: int = 0
    seen: list[str] = field(default_factory=list)


async def test_data_may_be_a_dataclass_and_a_step_a_plain_function() -> None:
    points = Workflow("points", data=Point, result=int)

    @points.step(then="total")
    def move(run: SyncRun[Point]) -> None:
        run.data.y = run.call(abs, run.data.x)
        run.data.seen.append("moved")

    @points.step
    def total(run: SyncRun[Point]) -> int:
        for item in run.each(["a", "b"]):
            run.data.seen.append(item)
        return run.data.x + run.data.y

    async with Trial(points) as trial:
        record = await trial.start(Point(-2))
        await trial.settle()

        assert record.result == 0 and record.data == Point(-2, 2, ["moved", "a", "b"])


async def test_a_plain_step_waits_and_is_unwound() -> None:
    @workflow
    def patient(run: SyncRun[dict[str, Any]]) -> str:
        return str(run.wait("go"))

    async with Trial(patient) as trial:
        record = await trial.start({})
        await trial.settle()
        assert record.status == "WAITING"

        await record.signal("go", "on")
        await trial.settle()

        assert record.result == "on"


async def test_a_budget_that_ends_leaves_nothing_running() -> None:
    @workflow
    async def long(run: Run[dict[str, Any]]) -> int:
        run.data["n"] = 0
        async for _ in run.each(range(1_000_000), every=1):
            run.data["n"] += 1
        return int(run.data["n"])

    async with aopen("memory:", workflows=[long]) as client:
        await client.start(long, {}, id="l")
        await client.work(budget="1s")
        first = await client.get("l")
        await client.work(budget="1s")
        second = await client.get("l")

        assert (first.status, second.status) == (Status.PENDING, Status.PENDING)
        assert first.attempt == second.attempt == 0
        assert second.version > first.version


def test_the_plain_face_does_what_the_other_does() -> None:
    @workflow
    async def double(run: Run[dict[str, Any]]) -> int:
        answer = await run.ask("go on?")
        return int(run.data["n"]) * 2 if answer else 0

    with quire.open("memory:", workflows=[double], who="ann@x.eu") as q:
        handle = q.start(double, {"n": 21}, id="d")
        q.work()
        assert q.find(status="NEEDS_APPROVAL")[0].record_id == "d"
        q.answer("d", "approve")
        assert q.work(until="d") == 1
        assert handle.result() == 42
        assert [event.kind for event in q.events("d")][-1] == "done"
        many = q.start_many(double, [{"n": 1}, {"n": 2}], ids=["f", "g"])
        q.work()
        for handle in many:
            q.answer(handle.record_id, "approve")
        q.work()
        assert [handle.result() for handle in many] == [2, 4]
        cancelled = q.start(double, {"n": 1}, id="e")
        q.cancel("e")
        with pytest.raises(ResultMissing, match="it ended as CANCELLED"):
            cancelled.result()
