"""The log: lines, their order, their chain, and what is forgotten after it was archived."""

from __future__ import annotations

from itertools import chain

from quire.ledger.base import Ledger
from quire.model.change import Applied, Change
from quire.model.codec import dump
from quire.model.event import Event, Line, first_break
from quire.model.row import replace
from quire.rules.outcome import Done
from quire.testing.clock import ToldClock
from quire.testing.conformance.asking import (
    applied,
    commit,
    log,
    new_facts,
    run,
    settle,
    start,
    start_all,
    the,
)
from quire.testing.conformance.suite import Suite


class Log(Suite):
    """Lines, their order and their chain (19)."""

    async def test_the_lines_of_a_record_are_chained_and_numbered(self, ledger: Ledger, clock: ToldClock) -> None:
        row = await run(ledger)
        clock.advance(0.123456)
        await commit(ledger, new_facts(row, lines=(Line("noted", '"one"'), Line("noted", '"two"'))))
        clock.advance(1 / 3)
        await settle(ledger, row, Done("1", "{}"))

        events = await ledger.events(record_id="r")

        assert first_break(events) is None
        assert [event.n for event in events] == [1, 2, 3, 4, 5]
        assert [event.version for event in events] == [1, 2, 2, 2, 3]
        assert [event.run_id for event in events] == [None, *[row.run_id] * 4]
        assert events[-1].at == clock.now()
        assert events[-1].hash == (await the(ledger)).log_hash

    async def test_facts_that_are_sent_again_leave_their_lines_once(self, ledger: Ledger) -> None:
        """13: also those that are lines only, a new priority, and a wish to cancel."""
        row = await run(ledger)
        wish = dump({"by": "ann", "reason": "a typo", "undo": False})
        facts = [
            new_facts(row, lines=(Line("noted", '"one"'), Line("noted", '"two"'))),
            Change("rise", "r", 0, None, priority=7),
            Change("wish", "r", 0, None, cancel=wish),
        ]

        verdicts = [*await ledger.commit(facts), *await ledger.commit([*facts, *facts])]
        applied(await settle(ledger, row, Done("1", "{}")))
        late = await commit(ledger, facts[0])

        assert [verdict.again for verdict in verdicts if isinstance(verdict, Applied)] == [False] * 3 + [True] * 6
        assert isinstance(late, Applied)
        assert await log(ledger) == ["started", "claimed", "noted", "noted", "prioritised", "cancel_asked", "done"]

    async def test_the_ledgers_log_has_every_line_once_in_the_order_of_commits(self, ledger: Ledger) -> None:
        rows = [await run(ledger, f"r{n}") for n in range(3)]
        for row in reversed(rows):
            await settle(ledger, row, Done("1", "{}"))

        events = await ledger.events()

        assert [(event.record_id, event.kind) for event in events] == [
            *((f"r{n}", kind) for n in range(3) for kind in ("started", "claimed")),
            *((f"r{n}", "done") for n in (2, 1, 0)),
        ]
        assert [event.seq for event in events] == sorted({event.seq for event in events})

    async def test_the_log_is_read_in_pages(self, ledger: Ledger) -> None:
        await start_all(ledger, [f"r{n}" for n in range(7)])

        pages: list[list[Event]] = [await ledger.events(limit=3)]
        while pages[-1]:
            pages.append(await ledger.events(after=pages[-1][-1].seq, limit=3))

        assert [len(page) for page in pages] == [3, 3, 1, 0]
        assert list(chain.from_iterable(pages)) == await ledger.events()

    async def test_the_logs_of_many_records_are_those_of_each(self, ledger: Ledger) -> None:
        for record_id in ("a", "b", "c"):
            await settle(ledger, await run(ledger, record_id), Done("1", "{}"))

        logs = await ledger.logs(["c", "a", "nobody"])

        assert list(logs) == ["c", "a", "nobody"]
        assert logs["nobody"] == []
        for record_id in ("c", "a"):
            assert logs[record_id] == await ledger.events(record_id=record_id)
            assert [line.n for line in logs[record_id]] == [1, 2, 3]
        assert await ledger.logs([]) == {}

    async def test_exactly_the_given_lines_are_forgotten(self, ledger: Ledger) -> None:
        for record_id in ("a", "b"):
            await settle(ledger, await run(ledger, record_id), Done("1", "{}"))
        events = await ledger.events()
        gone = [events[0], events[4]]

        count = await ledger.forget(gone)

        assert count == 2
        assert await ledger.events() == [event for event in events if event not in gone]
        assert await ledger.events(record_id="a") == [event for event in events if event.record_id == "a"][1:]
        assert await ledger.forget(gone) == 0
        assert await ledger.forget([]) == 0

    async def test_a_line_that_is_not_as_archived_is_not_forgotten(self, ledger: Ledger) -> None:
        await start(ledger)
        [event] = await ledger.events()

        assert await ledger.forget([replace(event, hash="another")]) == 0
        assert await ledger.events() == [event]

    async def test_a_record_goes_on_after_its_lines_were_forgotten(self, ledger: Ledger) -> None:
        row = await run(ledger)
        await ledger.forget(await ledger.events())

        after = applied(await settle(ledger, row, Done("1", "{}")))

        [event] = await ledger.events(record_id="r")
        assert (event.n, event.hash, after.log_seq) == (3, after.log_hash, 3)
