"""Commits of one flush: what a process takes for granted and is not so any more must not land."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from quire.errors import LedgerUnavailable
from quire.ledger.postgres.address import Address
from quire.ledger.postgres.ledger import PostgresLedger
from quire.ledger.postgres.notifications import Notifications
from quire.ledger.postgres.wire import Answer, Clash, Wire
from quire.model.change import Applied, Change, Conflict, Refused, Send, Verdict
from quire.model.record import Record, Status
from quire.model.row import replace
from quire.rules.outcome import Done, Next
from quire.testing.conformance import (
    applied,
    beat,
    claim,
    commit,
    log,
    new_answer,
    new_facts,
    new_intent,
    new_settle,
    new_start,
    order,
    run,
    slot,
    start_all,
    the,
)
from tests.ledger.conftest import EmptiedDatabase
from tests.ledger.test_postgres import Proxy, opened, raw

Meanwhile = Callable[[PostgresLedger], Awaitable[object]]


@pytest.fixture
def flushes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each time that a ledger waits for the server; but for notices, which go out whenever they like."""
    monkeypatch.setattr(Notifications, "announce", lambda self: None)
    seen: list[int] = []
    flush = Wire.flush

    async def counted(self: Wire, *, commits: bool = False, **more: Any) -> list[Answer]:
        seen.append(1)
        return await flush(self, commits=commits, **more)

    monkeypatch.setattr(Wire, "flush", counted)
    return seen


async def test_a_move_of_a_record_that_runs_here_is_one_flush(postgres_url: str, flushes: list[int]) -> None:
    async with opened(postgres_url, 1) as [ledger]:
        record = await run(ledger)
        flushes.clear()

        record = applied(await commit(ledger, new_settle(record, Next("next", "{}"), 0.0, keep=slot("next"))))
        assert len(flushes) == 1
        record = applied(await commit(ledger, new_facts(record, new_answer(record, "look"))))
        assert len(flushes) == 2
        applied(await commit(ledger, new_settle(record, Done("1", "{}"), 0.0)))
        assert len(flushes) == 3
        assert await the(ledger) == applied(await commit(ledger, new_start("r", 0.0)))
        assert await log(ledger) == ["started", "claimed", "moved", "done"]


async def test_so_is_the_first_one_of_a_process_that_begins_with_a_claim(postgres_url: str, flushes: list[int]) -> None:
    async with opened(postgres_url) as [ledger, other]:
        await start_all(other, ["r"])
        [record] = (await claim(ledger)).records
        assert not ledger.server.beats._idle  # a worker that holds nothing yet has no connection for its beats
        flushes.clear()

        applied(await commit(ledger, new_settle(record, Done("1", "{}"), 0.0)))
        assert len(flushes) == 1  # a new connection needs nothing before its first commit
        assert await log(ledger) == ["started", "claimed", "done"]


async def test_a_start_is_one_flush(postgres_url: str, flushes: list[int]) -> None:
    async with opened(postgres_url, 1) as [ledger]:
        await run(ledger, "first")
        flushes.clear()

        applied(await commit(ledger, new_start("r", 0.0)))

        assert len(flushes) == 1
        assert (await the(ledger)).status is Status.PENDING


async def _cancelled(two: PostgresLedger) -> None:
    await commit(two, Change("ask", "r", 0, None, cancel='{"reason": "enough"}'))


async def _signalled(two: PostgresLedger) -> None:
    await two.send([Send("s1", "r", "paid", "1")])


async def _prioritised(two: PostgresLedger) -> None:
    await commit(two, Change("rise", "r", 0, None, priority=7))


async def _taken_over(two: PostgresLedger) -> None:
    await two.recover(dead=["w1"])


async def _halted(two: PostgresLedger) -> None:
    await order(two, "halt")


async def _paused(two: PostgresLedger) -> None:
    await order(two, "pause")


async def _halted_and_resumed(two: PostgresLedger) -> None:
    await order(two, "halt")
    await order(two, "resume")


async def _sealed(two: PostgresLedger) -> None:
    await order(two, "seal", target="elsewhere")


MEANWHILE: list[Meanwhile] = [
    _cancelled,
    _signalled,
    _prioritised,
    _taken_over,
    _halted,
    _paused,
    _halted_and_resumed,
    _sealed,
]
Asked = Callable[[Record], Change]
ASKED: dict[str, Asked] = {
    "a move": lambda record: new_settle(record, Next("next", "{}"), 0.0, keep=slot("next")),
    "an end": lambda record: new_settle(record, Done("1", "{}"), 0.0),
    "an intent": lambda record: new_facts(record, new_intent(record)),
    "an answer": lambda record: new_facts(record, new_answer(record, "look")),
}


def _shape(verdict: Verdict, row: Record, lines: list[str]) -> tuple[object, ...]:
    code = verdict.code if isinstance(verdict, Refused) else type(verdict).__name__
    return code, row.status, row.step, row.version, row.priority, row.facts, row.open_intents, lines


@pytest.mark.parametrize("meanwhile", MEANWHILE, ids=lambda it: it.__name__.strip("_"))
@pytest.mark.parametrize("asked", ASKED)
async def test_what_another_process_did_meanwhile_is_seen(
    emptied_database: EmptiedDatabase, asked: str, meanwhile: Meanwhile
) -> None:
    """A guess comes to the same verdict, row and log as a decision under locks."""
    seen = []
    for guesses in (True, False):
        async with opened(emptied_database()) as [one, two]:
            record = await run(one)
            await meanwhile(two)
            if not guesses:
                one.known.orders = None
            verdict = await commit(one, ASKED[asked](record))
            seen.append(_shape(verdict, await the(two), await log(two)))
    assert seen[0] == seen[1]


async def test_an_answer_that_was_lost_is_not_lost_in_the_count_of_receipts(postgres_url: str) -> None:
    """The row has a receipt of which this process does not know: the count must not go back to what it was."""
    async with opened(postgres_url, 1) as [ledger]:
        record = await run(ledger)
        answer = new_facts(record, new_answer(record, "look"))
        known = dict(ledger.known.images)
        applied(await commit(ledger, answer))
        ledger.known.images.clear()
        ledger.known.images.update(known)  # as if no word of it had come back

        assert isinstance(await commit(ledger, new_facts(record, new_answer(record, "again"))), Applied)

        assert (await the(ledger)).facts == 2


async def test_no_record_begins_under_a_worker_that_was_closed(postgres_url: str) -> None:
    async with opened(postgres_url) as [one, two]:
        await beat(one)
        await two.recover(dead=["w1"])
        begins = replace(new_start("r", 0.0), worker="w1", keep=slot())

        row = applied(await commit(one, begins))

        assert (row.status, row.worker) == (Status.PENDING, None)


async def test_a_record_begins_under_the_worker_that_starts_it(postgres_url: str, flushes: list[int]) -> None:
    async with opened(postgres_url, 1) as [ledger]:
        await run(ledger, "first", worker="w0")
        await beat(ledger)
        begins = replace(new_start("r", 0.0), worker="w1", keep=slot())
        flushes.clear()

        row = applied(await commit(ledger, begins))

        assert len(flushes) == 1
        assert (row.status, row.worker, row.version) == (Status.RUNNING, "w1", 2)
        assert row == await the(ledger)
        assert await log(ledger) == ["started", "claimed"]
        again = await commit(ledger, begins)
        assert isinstance(again, Applied)
        assert again.again
        assert again.record == row


async def test_a_row_that_was_changed_by_hand_is_not_written_over(postgres_url: str) -> None:
    async with opened(postgres_url, 1) as [ledger], raw(postgres_url) as connection:
        record = await run(ledger)
        await connection.execute("UPDATE records SET version = version + 1")

        verdict = await commit(ledger, new_settle(record, Done("1", "{}"), 0.0))

        assert isinstance(verdict, Conflict)


async def test_a_guess_whose_answer_was_lost_gets_its_first_verdict(postgres_url: str) -> None:
    async with Proxy(postgres_url) as proxy, opened(proxy.url, 1) as [ledger]:
        record = await run(ledger)
        change = new_settle(record, Next("next", "{}"), 0.0)
        assert ledger.notifications._sender is not None
        await ledger.notifications._sender  # the next answer is the commit's

        proxy.lose_the_next_answer()
        with pytest.raises(LedgerUnavailable, match="was lost"):
            await ledger.commit([change])
        [again] = await ledger.commit([change])

        assert isinstance(again, Applied) and again.again
        assert await log(ledger) == ["started", "claimed", "moved"]


async def test_a_guess_that_is_given_up_after_some_rows_were_sent_leaves_none_of_them(postgres_url: str) -> None:
    async with opened(postgres_url, 1) as [ledger]:
        await start_all(ledger, [f"r{number}" for number in range(150)])
        taken = (await claim(ledger, limit=200)).records
        changes = [new_settle(row, Next("next", "{}"), 0.0) for row in taken]
        changes[-1] = replace(changes[-1], worker="another")

        verdicts = await ledger.commit(changes)

        assert [type(verdict) for verdict in verdicts] == [Applied] * 149 + [Refused]
        assert not any(isinstance(verdict, Applied) and verdict.again for verdict in verdicts)


async def test_an_error_of_the_commit_itself_is_told_and_the_connection_goes_on(postgres_url: str) -> None:
    wire = await Address(postgres_url).connect({})
    try:
        await wire.ask("CREATE TABLE odd (n bigint UNIQUE DEFERRABLE INITIALLY DEFERRED)")
        wire.send("INSERT INTO odd VALUES ($1::bigint), ($1::bigint)", 1)
        with pytest.raises(Clash) as told:
            await wire.flush(commits=True)

        assert told.value.exists and wire.clean
        assert await wire.ask("SELECT count(*) FROM odd") == [(0,)]
    finally:
        await wire.close()
