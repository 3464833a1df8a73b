"""What is asked by those who only look."""

from __future__ import annotations

from itertools import chain
from typing import Any

from quire.ledger.base import Ledger
from quire.model.change import (
    Query,
)
from quire.model.record import Status
from quire.model.row import field_values, replace
from quire.model.side import Setting
from quire.rules.outcome import Done, Tried
from quire.testing.clock import ToldClock
from quire.testing.conformance.asking import (
    FLOW,
    STEP,
    applied,
    claim,
    intend,
    run,
    settle,
    start,
    start_all,
    wait_for,
)
from quire.testing.conformance.suite import Suite


class Questions(Suite):
    """What is asked of the ledger by those who only look."""

    async def test_records_are_loaded_in_the_order_asked_for(self, ledger: Ledger) -> None:
        await start_all(ledger, ["a", "b", "c"])

        assert [row.record_id for row in await ledger.load(["c", "x", "a"])] == ["c", "a"]
        assert await ledger.load([]) == []

    async def test_records_are_found_by_what_they_are(self, ledger: Ledger) -> None:
        await start_all(ledger, ["abc", "abd"])
        await start_all(ledger, ["x_c", "xbc", "ABC"], workflow="other", step="first")
        await settle(ledger, await run(ledger, "done"), Done("1", "{}"))

        async def found(**fields: Any) -> list[str]:
            return [row.record_id for row in await ledger.find(Query(**fields))]

        assert await found() == ["ABC", "abc", "abd", "done", "x_c", "xbc"]
        assert await found(workflow="other") == ["ABC", "x_c", "xbc"]
        assert await found(step="first", text="b") == ["xbc"]
        assert await found(text="x_") == ["x_c"]
        assert await found(text="AB") == ["ABC"]
        assert await found(text="%") == []
        assert await found(status=(Status.DONE, Status.ERROR)) == ["done"]
        assert await found(status=(Status.RUNNING,), workflow="other") == []
        assert await found(status=(Status.NEEDS_APPROVAL, Status.ERROR)) == []

    async def test_records_are_found_page_by_page(self, ledger: Ledger) -> None:
        ids = sorted(["a", "B", "ä", "Z", "🙂", "_", "-", "10", "9", "a/b", "a b"])
        await start_all(ledger, ids)

        pages: list[list[str]] = [[row.record_id for row in await ledger.find(Query(limit=4))]]
        while pages[-1]:
            query = Query(after=pages[-1][-1], limit=4)
            pages.append([row.record_id for row in await ledger.find(query)])

        assert list(chain.from_iterable(pages)) == ids

    async def test_open_records_are_found_page_by_page_among_those_that_have_ended(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        for n in range(3):
            clock.advance(1)
            await settle(ledger, await run(ledger, f"{n}-done"), Done("1", "{}"))
            await wait_for(ledger, await run(ledger, f"{n}-waits"))
            await run(ledger, f"{n}-runs")
        await start_all(ledger, ["0-due", "1-due", "2-due"])
        await start_all(ledger, ["other"], workflow="other")
        due, waits, runs = ([f"{n}-{word}" for n in range(3)] for word in ("due", "waits", "runs"))

        async def found(*status: Status, **fields: Any) -> list[str]:
            ids: list[str] = []
            query = Query(status=status, limit=2, **fields)
            while page := await ledger.find(replace(query, after=ids[-1] if ids else "")):
                ids += [row.record_id for row in page]
            return ids

        assert await found(Status.PENDING) == [*due, "other"]
        assert await found(Status.PENDING, workflow=FLOW, text="1") == ["1-due"]
        assert await found(Status.WAITING, Status.PENDING, workflow=FLOW) == sorted(due + waits)
        assert await found(Status.RUNNING, Status.WAITING, step=STEP) == sorted(runs + waits)
        assert await found(Status.RUNNING, Status.WAITING, Status.PENDING) == [*sorted(due + runs + waits), "other"]
        newest = await ledger.find(Query(status=(Status.RUNNING, Status.WAITING), order="updated", limit=3))
        assert [row.record_id for row in newest] == ["2-runs", "2-waits", "1-runs"]
        assert await ledger.find(Query(status=(Status.PENDING, Status.WAITING), limit=0)) == []

    async def test_the_newest_change_comes_first_if_asked(self, ledger: Ledger, clock: ToldClock) -> None:
        for record_id in ("a", "b", "c"):
            clock.advance(1)
            await start(ledger, record_id)
        clock.advance(1)
        applied(await settle(ledger, (await claim(ledger, limit=1)).records[0], Tried("1", 1.0)))

        assert [row.record_id for row in await ledger.find(Query(order="updated", limit=2))] == ["a", "c"]

    async def test_records_are_counted_by_workflow_step_and_status(self, ledger: Ledger) -> None:
        await start_all(ledger, ["a", "b", "c"])
        await start_all(ledger, ["d"], workflow="other")
        await settle(ledger, (await claim(ledger, limit=1)).records[0], Done("1", "{}"))

        counts = await ledger.counts()

        assert sorted(field_values(count) for count in counts) == [
            (FLOW, "", Status.DONE, 1),
            (FLOW, STEP, Status.PENDING, 2),
            ("other", STEP, Status.PENDING, 1),
        ]

    async def test_receipts_are_found_by_record_and_by_key(self, ledger: Ledger) -> None:
        row, other = await run(ledger), await run(ledger, "other")
        mine, theirs = await intend(ledger, row, "a"), await intend(ledger, other, "a")

        assert [receipt.key for receipt in await ledger.receipts(record_ids=["r", "x"])] == [mine.key]
        assert [receipt.key for receipt in await ledger.receipts(keys=[theirs.key, "x"])] == [theirs.key]
        assert await ledger.receipts() == []

    async def test_an_empty_ledger_answers_with_nothing(self, ledger: Ledger) -> None:
        assert await ledger.find(Query()) == []
        assert await ledger.counts() == []
        assert await ledger.events() == []
        assert await ledger.workers() == []
        assert await ledger.signals("r") == []
        assert await ledger.fanins("r") == []
        assert await ledger.commit([]) == []
        assert await ledger.send([]) == []
        assert await ledger.setting("x") is None

    async def test_a_setting_is_replaced_by_compare_and_swap(self, ledger: Ledger) -> None:
        made = await ledger.keep(Setting("cursor", "1", 0))
        made_twice = await ledger.keep(Setting("cursor", "2", 0))
        replaced = await ledger.keep(Setting("cursor", "3", 1))
        stale = await ledger.keep(Setting("cursor", "4", 1))
        unknown = await ledger.keep(Setting("other", "5", 3))

        assert [made, made_twice, replaced, stale, unknown] == [True, False, True, False, False]
        assert await ledger.setting("cursor") == Setting("cursor", "3", 2)
        assert await ledger.setting("other") is None

    async def test_settings_are_found_by_the_start_of_their_names(self, ledger: Ledger) -> None:
        for name in ("a_b", "a.2", "a.1", "ab", "A.3"):
            await ledger.keep(Setting(name, "{}", 0))

        assert [setting.name for setting in await ledger.settings("a.")] == ["a.1", "a.2"]
        assert [setting.name for setting in await ledger.settings("a_")] == ["a_b"]
        assert len(await ledger.settings("")) == 5
