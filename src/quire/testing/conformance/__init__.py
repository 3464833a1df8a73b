"""The contract of ``quire.ledger.base``, one test per behaviour, for any ledger.

A store proves itself by a subclass and two fixtures::

    class TestMyLedger(LedgerConformance):
        @pytest.fixture
        def ledger(self, clock: ToldClock) -> Ledger:
            return MyLedger(clock)

        @pytest.fixture
        def twin(self, ledger: Ledger, clock: ToldClock) -> Ledger:
            return MyLedger(clock)  # a second process on the same store; leave it out if it cannot be shared

The fixtures give ledgers that are not open yet, empty, and told the time by ``clock``. Each test runs in an event loop
of its own, in which the ledgers are opened before it and closed after it: no plugin for async tests is needed. To see
what a failing test has found, call ``pytest.register_assert_rewrite("quire.testing.conformance")`` in a conftest.py.

Each module is one idea and one class of tests; ``LedgerConformance`` is all of them. Records and changes are built
through ``machine.transition``, as the runtime builds them; the builders are in ``asking`` and may be used by other
tests. Numbers in docstrings are the scenarios of the protocol.
"""

from __future__ import annotations

from quire.testing.conformance.asking import (
    FLOW,
    STEP,
    a_worker,
    applied,
    ask_to_cancel,
    beat,
    claim,
    claimed,
    commit,
    done,
    intend,
    log,
    lose_worker,
    map_over,
    move,
    new_answer,
    new_facts,
    new_intent,
    new_map,
    new_move,
    new_settle,
    new_start,
    on_signal,
    order,
    receipt_of,
    refused,
    run,
    run_children,
    settle,
    slot,
    start,
    start_all,
    the,
    the_fanin,
    wait_for,
)
from quire.testing.conformance.beside import Beside
from quire.testing.conformance.caps import Caps
from quire.testing.conformance.claims import Claims
from quire.testing.conformance.copies import Copies
from quire.testing.conformance.doubts import Doubts
from quire.testing.conformance.effects import Effects
from quire.testing.conformance.fanins import Fanins
from quire.testing.conformance.halts import Halts
from quire.testing.conformance.kept import Kept
from quire.testing.conformance.lines import Log
from quire.testing.conformance.moves import Moves
from quire.testing.conformance.ordered import Ordered
from quire.testing.conformance.outcomes import OUTCOMES
from quire.testing.conformance.pairs import Pairs
from quire.testing.conformance.parked import Parked
from quire.testing.conformance.pauses import Pauses
from quire.testing.conformance.questions import Questions
from quire.testing.conformance.races import Races
from quire.testing.conformance.signals import Signals
from quire.testing.conformance.starts import Starts
from quire.testing.conformance.tidying import Tidying
from quire.testing.conformance.workers import Workers

__all__ = [
    "FLOW",
    "OUTCOMES",
    "STEP",
    "LedgerConformance",
    "a_worker",
    "applied",
    "ask_to_cancel",
    "beat",
    "claim",
    "claimed",
    "commit",
    "done",
    "intend",
    "log",
    "lose_worker",
    "map_over",
    "move",
    "new_answer",
    "new_facts",
    "new_intent",
    "new_map",
    "new_move",
    "new_settle",
    "new_start",
    "on_signal",
    "order",
    "receipt_of",
    "refused",
    "run",
    "run_children",
    "settle",
    "slot",
    "start",
    "start_all",
    "the",
    "the_fanin",
    "wait_for",
]


class LedgerConformance(
    Starts,
    Moves,
    Beside,
    Effects,
    Parked,
    Doubts,
    Fanins,
    Signals,
    Claims,
    Caps,
    Workers,
    Halts,
    Kept,
    Ordered,
    Pauses,
    Log,
    Questions,
    Copies,
    Tidying,
    Races,
    Pairs,
):
    """The whole contract. Subclass it and give the fixtures ``ledger`` and, if it can be shared, ``twin``."""
