"""Starts, ids and values."""

from __future__ import annotations

import pytest

from quire.ledger.base import Ledger
from quire.model.change import (
    Applied,
    Change,
    Query,
    Send,
)
from quire.model.codec import dump
from quire.model.event import Line
from quire.model.record import Status
from quire.model.row import replace
from quire.model.wait import load_waits
from quire.rules.outcome import Done, Next
from quire.testing.clock import ToldClock
from quire.testing.conformance.asking import (
    applied,
    beat,
    claim,
    claimed,
    commit,
    done,
    intend,
    log,
    new_answer,
    new_facts,
    new_start,
    on_signal,
    receipt_of,
    refused,
    run,
    settle,
    slot,
    start,
    start_all,
    the,
    wait_for,
)
from quire.testing.conformance.suite import Suite

UNUSUAL_IDS = {
    "long": "r" * 300,
    "unicode": "Änderung-データ-🙂",
    "quotes": """it's "quoted" `so`""",
    "slashes": "a/b\\c/../d",
    "wildcards": "100%_[a-z]*?",
    "sql": "x'); DROP TABLE records; --",
    "spaces": " leading and trailing ",
    "colons": "1:a|b~2#3",
    "newline": "two\nlines",
    "digits": "0012",
}

VALUES = {
    "null": "null",
    "empty-text": '""',
    "empty-list": "[]",
    "false": "false",
    "big-int": "90071992547409930000000001",
    "negative-big-int": "-9007199254740993",
    "float": "0.1",
    "tiny-float": "5e-324",
    "escapes": '"\\"\\\\\\n\\t\\u00e9"',
    "emoji": '"👩‍👩‍👧‍👦 🏳️‍🌈"',
    "null-word": '"NULL"',
    "at-sign": '"@sha256:0"',
    "spaces-in-json": '{"b" :  1,\n "a": [ ]}',
    "deep": "[" * 100 + "]" * 100,
}


class Starts(Suite):
    """Records come into the ledger."""

    async def test_a_started_record_comes_back_as_it_was_given(self, ledger: Ledger, clock: ToldClock) -> None:
        change = new_start("r", clock.now(), data='{"n": 1}', dedupe_key="form:7", priority=3, code_version=4)

        verdict = await commit(ledger, change)

        assert isinstance(verdict, Applied)
        assert change.image is not None
        assert verdict.record == replace(
            change.image, epoch=verdict.record.epoch, log_seq=1, log_hash=verdict.record.log_hash
        )
        assert (verdict.record.version, verdict.record.status, verdict.again) == (1, Status.PENDING, False)
        assert await ledger.load(["r"]) == [verdict.record]
        assert await log(ledger) == ["started"]

    async def test_the_same_start_again_answers_with_the_record_and_changes_nothing(self, ledger: Ledger) -> None:
        """13."""
        first = new_start("r", await ledger.now(), data="1", change_id="s1")
        row = applied(await commit(ledger, first))

        verdicts = await ledger.commit([first, replace(first, change_id="s2")])

        assert [(applied(v), v.again) for v in verdicts if isinstance(v, Applied)] == [(row, True)] * 2
        assert await log(ledger) == ["started"]

    async def test_the_same_start_again_answers_with_the_record_as_it_is_by_now(self, ledger: Ledger) -> None:
        change = new_start("r", await ledger.now())
        await commit(ledger, change)
        [row] = (await claim(ledger)).records
        row = applied(await settle(ledger, row, Done('"end"', "{}")))

        assert await commit(ledger, change) == Applied(row, await ledger.now(), again=True)

    async def test_a_start_with_a_known_id_and_other_data_is_refused(self, ledger: Ledger) -> None:
        row = await start(ledger, data="1")

        verdict = await commit(ledger, new_start("r", await ledger.now(), data="2"))

        assert refused(verdict) == "exists"
        assert await ledger.load(["r"]) == [row]

    async def test_a_start_with_a_known_id_in_another_workflow_is_refused(self, ledger: Ledger) -> None:
        await start(ledger)

        assert refused(await commit(ledger, new_start("r", await ledger.now(), workflow="other"))) == "exists"

    async def test_the_same_start_twice_in_one_batch_is_one_record(self, ledger: Ledger) -> None:
        change = new_start("r", await ledger.now())

        first, second = await ledger.commit([change, change])

        assert isinstance(first, Applied)
        assert not first.again
        assert second == replace(first, again=True)

    async def test_a_batch_of_many_starts_answers_each_in_order(self, ledger: Ledger) -> None:
        ids = [f"r{n:03}" for n in range(ledger.traits.batch_changes)]

        rows = await start_all(ledger, ids)

        assert [row.record_id for row in rows] == ids
        assert len(await ledger.load(ids)) == len(ids)

    async def test_a_start_in_the_past_is_due_now_and_one_in_the_future_later(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        past = await start(ledger, "past", due_at=clock.now() - 3600)
        await start(ledger, "future", due_at=clock.now() + 3600)

        assert past.due_at == clock.now()
        assert await claimed(ledger) == ["past"]
        clock.advance(3600)
        assert await claimed(ledger) == ["future"]

    @pytest.mark.parametrize("record_id", UNUSUAL_IDS.values(), ids=UNUSUAL_IDS)
    async def test_any_text_is_an_id(self, ledger: Ledger, record_id: str) -> None:
        row = await run(ledger, record_id, worker=f"w {record_id}")
        await intend(ledger, row, name=record_id)
        await ledger.send([Send(f"s {record_id}", record_id, record_id, "1")])

        assert await ledger.load([record_id]) == await ledger.find(Query(text=record_id[1:-1] or record_id))
        assert [event.record_id for event in await ledger.events(record_id=record_id)] == [record_id] * 4
        assert [receipt.name for receipt in await ledger.receipts(record_ids=[record_id])] == [record_id]
        assert [signal.name for signal in await ledger.signals(record_id)] == [record_id]
        assert (await beat(ledger, f"w {record_id}", row)).lost == ()

    async def test_ids_that_differ_in_case_or_form_only_are_different(self, ledger: Ledger) -> None:
        ids = ["a", "A", "é", "e\u0301", "a ", " a"]

        await start_all(ledger, ids)

        assert [row.record_id for row in await ledger.load(ids)] == ids

    @pytest.mark.parametrize("text", VALUES.values(), ids=VALUES)
    async def test_any_json_text_comes_back_to_the_letter(self, ledger: Ledger, text: str) -> None:
        row = await run(ledger, data=text)
        intent = await intend(ledger, row, args=text)
        await commit(ledger, new_facts(row, done(intent, text), new_answer(row, "call", text)))
        await ledger.send([Send("s1", "r", "paid", text)])
        applied(await settle(ledger, row, Done(text, text), lines=(Line("done", text),)))

        row = await the(ledger)
        assert (row.data, row.result) == (text, text)
        assert [receipt.value for receipt in await ledger.receipts(record_ids=["r"])] == [text, text]
        assert (await receipt_of(ledger, intent.key)).args == text
        assert [signal.value for signal in await ledger.signals("r")] == [text]
        assert (await ledger.events(record_id="r"))[-1].body == text

    @pytest.mark.parametrize("size", [200_000, 10_000_000])
    async def test_a_large_value_comes_back_to_the_letter(self, ledger: Ledger, size: int) -> None:
        """20."""
        text = dump("é🙂" + "x" * size)

        row = await run(ledger, data=text)
        intent = await intend(ledger, row)
        await commit(ledger, new_facts(row, done(intent, text)))
        row = applied(await settle(ledger, row, Next("next", text)))

        assert row.data == text
        assert (await the(ledger)).data == text
        assert (await receipt_of(ledger, intent.key)).value == text
        assert [found.data for found in await ledger.find(Query())] == [text]
        [row] = (await claim(ledger, slot("next"))).records
        assert row.data == text

    async def test_large_values_of_signals_waits_and_lines_come_back_to_the_letter(self, ledger: Ledger) -> None:
        text = dump("x" * 200_000)
        row = await run(ledger)
        await ledger.send([Send("s1", "r", "other", text)])
        wait = replace(on_signal(row), about={"text": text})

        row = await wait_for(ledger, row, wait, lines=(Line("waited", text),))

        assert [signal.value for signal in await ledger.signals("r")] == [text]
        assert load_waits(row.waits) == load_waits((await the(ledger)).waits) == (wait,)
        assert (await ledger.events(record_id="r"))[-1].body == text

    async def test_one_value_that_the_store_cannot_keep_does_not_spoil_the_others(self, ledger: Ledger) -> None:
        """14: the codec refuses a NUL before the ledger sees it; if one comes all the same, it fails alone."""
        now = await ledger.now()
        changes = [new_start(f"r{n}", now, data='"\\u0000\x00"' if n == 3 else "{}") for n in range(6)]

        verdicts = await ledger.commit(changes)

        assert [type(verdict) for n, verdict in enumerate(verdicts) if n != 3] == [Applied] * 5
        assert isinstance(verdicts[3], Applied) or refused(verdicts[3]) == "value"
        assert len(await ledger.find(Query())) == 5 + isinstance(verdicts[3], Applied)

    async def test_of_starts_that_are_to_be_whole_all_land_or_none(self, ledger: Ledger) -> None:
        now = await ledger.now()
        there = await start(ledger, "b", data="1")

        def starts(*names: str) -> list[Change]:
            return [replace(new_start(name, now, data="2", change_id=f"s-{name}"), whole=True) for name in names]

        verdicts = await ledger.commit(starts("a", "b", "c"))
        assert [refused(verdict) for verdict in verdicts] == ["whole", "exists", "whole"]
        assert await ledger.find(Query()) == [there]
        assert await ledger.events() == await ledger.events(record_id="b")

        verdicts = [*await ledger.commit(starts("a", "c")), *await ledger.commit(starts("a", "c", "d"))]
        assert [isinstance(verdict, Applied) and verdict.again for verdict in verdicts] == [
            False,
            False,
            True,
            True,
            False,
        ]
        assert sorted(row.record_id for row in await ledger.find(Query())) == ["a", "b", "c", "d"]

    async def test_of_starts_that_are_to_be_whole_none_lands_if_the_store_cannot_keep_one(self, ledger: Ledger) -> None:
        now = await ledger.now()
        data = ["{}", '"\\u0000\x00"', "{}"]
        changes = [replace(new_start(f"r{n}", now, data=text), whole=True) for n, text in enumerate(data)]

        verdicts = await ledger.commit(changes)

        kept = len(await ledger.find(Query()))
        assert kept in (0, 3)
        assert all(isinstance(verdict, Applied) if kept else refused(verdict) == "value" for verdict in verdicts)
