"""Code of one step that runs side by side, and loops: what it asked for is found again, whatever comes in between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from quire import Act, Fail, Retry, Run, SyncRun, effect, rate, workflow
from quire.testing import Trial


@effect
async def note_down(act: Act[list[str]], what: str) -> str:
    act.deps.append(what)
    return what


async def turns(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)  # noqa: TID251 - lets the others run


def reads_slowly(trial: Trial[Any, Any, Any], monkeypatch: pytest.MonkeyPatch, *others: str) -> None:
    """Looks at the ledger, and these ``others`` of its verbs, take their time, as over a network."""

    def slow(look: Callable[..., Any]) -> Callable[..., Any]:
        async def later(*args: Any, **kwargs: Any) -> Any:
            await turns()
            return await look(*args, **kwargs)

        return later

    for name in ("fanins", "find", "receipts", "workers", *others):
        monkeypatch.setattr(trial.ledger, name, slow(getattr(trial.ledger, name)))


@workflow
async def fast(run: Run[dict[str, Any], list[str]]) -> str:
    return await run.once(note_down, f"fast of {run.data['of']}")


@workflow
async def slow(run: Run[dict[str, Any], list[str]]) -> str:
    await run.sleep("1h")
    return "slow"


async def test_a_pass_is_not_suspended_over_a_look_at_the_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    @workflow
    async def parent(run: Run[dict[str, Any], list[str]]) -> list[str]:
        return list(await run.all(run.child(slow, {}), run.child(fast, {"of": run.record_id})))

    book: list[str] = []
    async with Trial(parent, also=[slow, fast], deps=book) as trial:
        reads_slowly(trial, monkeypatch)
        record = await trial.start({}, id="p")
        await trial.advance("2h")

        assert record.result == ["slow", "fast of p"] and book == ["fast of p"]
        assert record.record.fanouts == 2


async def test_an_effect_under_a_key_of_its_own_does_not_wait_for_what_runs_beside_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @workflow
    async def beside(run: Run[dict[str, Any], list[str]]) -> None:
        await run.all(run.sleep("1h"), run.once(note_down.keyed("once for all"), "sent"))

    book: list[str] = []
    async with Trial(beside, deps=book) as trial:
        reads_slowly(trial, monkeypatch)
        record = await trial.start({})
        await trial.settle()

        assert record.status == "WAITING" and book == ["sent"]


async def test_children_are_found_again_by_a_pass_after_one_that_did_not_come_to_them() -> None:
    passes = 0

    @workflow
    async def parent(run: Run[dict[str, Any], list[str]]) -> list[Any]:
        nonlocal passes
        passes += 1

        async def helper() -> str:
            if passes == 2:
                await turns()
            return await run.child(fast, {"of": "p"})

        return list(await asyncio.gather(run.wait("go"), helper()))

    book: list[str] = []
    async with Trial(parent, also=[fast], deps=book) as trial:
        record = await trial.start({})
        await trial.settle()
        assert record.status == "WAITING" and passes == 2

        await record.signal("go", 1)
        await trial.settle()

        assert record.result == [1, "fast of p"] and book == ["fast of p"]


async def test_a_retry_does_again_what_has_no_result_and_nothing_else() -> None:
    tries = 0

    @workflow(retry=Retry(1))
    async def kid(run: Run[dict[str, Any], list[str]]) -> int:
        await run.once(note_down, f"kid {run.data['n']}")
        if run.data["n"] == 3:
            await run.sleep("1h")
        return int(run.data["n"])

    @workflow(retry=Retry(1))
    async def bad(run: Run[dict[str, Any], list[str]]) -> str:
        nonlocal tries
        tries += 1
        await run.sleep("10m")
        if tries <= 2:
            raise ValueError("no")
        return "good"

    @workflow(retry=Retry(1))
    async def parent(run: Run[dict[str, Any], list[str]]) -> list[Any]:
        return list(await run.all(run.map(kid, [{"n": n} for n in (1, 2, 3)]), run.child(bad, {})))

    book: list[str] = []
    async with Trial(parent, also=[kid, bad], deps=book) as trial:
        record = await trial.start({}, id="p")
        await trial.advance("20m")
        assert record.status == "ERROR"
        await trial.client.retry("p")

        await trial.advance("2h")

        assert record.result == [[1, 2, 3], "good"]
        assert sorted(book) == ["kid 1", "kid 2", "kid 3", "kid 3"]


async def test_what_rides_with_a_refused_intent_rides_with_the_next_commit() -> None:
    calls = 0

    def pick() -> int:
        nonlocal calls
        calls += 1
        return calls

    @effect(rate=rate(1, "1h", "mails"))
    async def mail(act: Act[list[str]], who: str) -> None:
        act.deps.append(who)

    @workflow
    async def parent(run: Run[dict[str, Any], list[str]]) -> int:
        await run.child(fast, {"of": run.record_id})
        picked = await run.call(pick)
        await run.once(mail, run.record_id)
        return picked

    book: list[str] = []
    async with Trial(parent, also=[fast], deps=book) as trial:
        for name in ("a", "b"):
            await trial.start({}, id=name)
        await trial.advance("3h")

        assert sorted(book) == ["a", "b", "fast of a", "fast of b"] and calls == 2


async def test_what_comes_after_a_loop_that_was_left_is_not_in_it() -> None:
    @workflow(retry=Retry(2, first="1s"))
    async def leaves(run: Run[dict[str, Any], list[str]]) -> None:
        async for item in run.each([1, 2, 3], every=1):
            if item == 2:
                break
        await run.once(note_down, "after")
        try:
            async for _ in run.each([1]):
                raise KeyError
        except KeyError:
            await run.once(note_down.named("second"), "after the second")
        if run.attempt == 1:
            raise ValueError("again")

    book: list[str] = []
    async with Trial(leaves, deps=book) as trial:
        record = await trial.start({})
        await trial.advance("1m")

        assert record.status == "DONE" and book == ["after", "after the second"]


async def test_what_comes_after_a_loop_of_a_plain_step_is_not_in_it() -> None:
    @workflow(retry=Retry(2, first="1s"))
    def leaves(run: SyncRun[dict[str, Any], list[str]]) -> None:
        for item in run.each([1, 2, 3], every=1):
            run.once(note_down, f"in {item}")
            if item == 2:
                break
        run.once(note_down, "after")
        if run.attempt == 1:
            raise ValueError("again")

    book: list[str] = []
    async with Trial(leaves, deps=book) as trial:
        record = await trial.start({})
        await trial.advance("1m")

        assert record.status == "DONE" and book == ["in 1", "in 2", "after"]


async def test_what_runs_beside_a_loop_is_not_in_it() -> None:
    @workflow(retry=Retry(2, first="1s"))
    async def beside(run: Run[dict[str, Any], list[str]]) -> None:
        async def loop() -> None:
            async for item in run.each(["a", "b"], every=1):
                await run.once(note_down.named("in"), item)
                await asyncio.gather(inner(item))

        async def inner(item: str) -> None:
            await run.once(note_down.named("inner"), f"inner {item}")

        async def branch() -> None:
            if run.attempt == 1:
                await turns(3)
            await run.once(note_down, "beside")

        await asyncio.gather(loop(), branch())
        if run.attempt == 1:
            raise ValueError("again")

    book: list[str] = []
    async with Trial(beside, deps=book) as trial:
        record = await trial.start({})
        await trial.advance("1m")

        assert record.status == "DONE" and sorted(book) == ["a", "b", "beside", "inner a", "inner b"]


async def test_a_step_that_fails_after_its_loop_is_not_tried_for_ever() -> None:
    tries: list[int] = []

    @workflow(retry=Retry(3, first="1s"))
    async def fails(run: Run[dict[str, Any]]) -> None:
        async for _ in run.each([1, 2], every=1):
            pass
        tries.append(run.attempt)
        raise ValueError("always")

    async with Trial(fails) as trial:
        record = await trial.start({})
        await trial.advance("10m")

        assert record.status == "ERROR" and tries == [1, 2, 3]


async def test_a_note_and_a_question_may_hold_what_no_store_keeps() -> None:
    @workflow
    async def odd(run: Run[dict[str, Any]]) -> str:
        run.note("caf\udce9\x00")
        return (await run.ask("open caf\udce9\x00?")).choice

    async with Trial(odd) as trial:
        record = await trial.start({})
        await trial.settle()
        assert record.question == "open caf\\udce9\\x00?" and record.record.note == "caf\\udce9\\x00"

        await record.answer("approve")
        await trial.settle()

        assert record.result == "approve"


async def test_loops_side_by_side_may_save_while_others_do(monkeypatch: pytest.MonkeyPatch) -> None:
    @workflow
    async def loops(run: Run[dict[str, Any], list[str]]) -> None:
        async def loop(name: str) -> None:
            async for number in run.each(range(5), every=1):
                await turns(len(name) * number)
                await run.once(note_down.named(name), f"{name}{number}")

        await asyncio.gather(loop("a"), loop("bb"), loop("ccc"))

    acted: list[str] = []
    async with Trial(loops, deps=acted) as trial:
        record = await trial.start({})
        reads_slowly(trial, monkeypatch, "commit")
        await trial.settle()

        assert "orphaned" not in [line.kind for line in await trial.client.events(record.record_id)]
        assert record.status == "DONE"
    assert len(acted) == len(set(acted)) == 15


@pytest.mark.parametrize("depth", [0, 1, 2, 5, 10])
async def test_a_step_waits_only_when_nothing_of_it_can_go_on(depth: int) -> None:
    @workflow
    async def step(run: Run[dict[str, Any], list[str]]) -> None:
        async def deep(left: int) -> None:
            if left:
                await asyncio.gather(deep(left - 1))
            elif run.data["fails"]:
                raise Fail("it is broken")

        async def branch() -> None:
            await deep(depth)
            await run.once(note_down, "done")

        await asyncio.gather(run.wait("never"), branch())

    acted: list[str] = []
    async with Trial(step, deps=acted) as trial:
        goes_on = await trial.start({"fails": False})
        fails = await trial.start({"fails": True})
        await trial.settle()

        assert goes_on.status == "WAITING"
        assert acted == ["done"]
        assert "it is broken" in fails.error


async def price(item: str) -> str:
    return f"the price of {item}"


async def test_calls_side_by_side_get_their_own_answers_in_whatever_order_they_come() -> None:
    @workflow
    async def prices(run: Run[dict[str, Any], list[str]]) -> list[str]:
        async def priced(item: str, after: str) -> str:
            await run.sleep(after)
            return await run.call(price, item)

        return list(await asyncio.gather(priced("gold", "2m"), priced("tin", "1m")))

    async with Trial(prices, deps=[]) as trial:
        record = await trial.start({})
        await trial.advance("1h")

        assert record.result == ["the price of gold", "the price of tin"]


async def test_loops_side_by_side_keep_their_own_places_in_whatever_order_they_come() -> None:
    @workflow
    async def loops(run: Run[dict[str, Any], list[str]]) -> None:
        async def loop(name: str) -> None:
            async for number in run.each(range(2), every=1):
                await run.once(note_down.named(name), f"{name}{number}")

        async def later() -> None:
            await run.once(note_down, "first")
            await run.sleep("1m")
            await loop("late")

        await asyncio.gather(later(), loop("early"))

    acted: list[str] = []
    async with Trial(loops, deps=acted) as trial:
        await trial.start({})
        await trial.advance("1h")

    assert sorted(acted) == ["early0", "early1", "first", "late0", "late1"]
