"""What happened in a simulation: what people asked and were answered, what happened in the world, and when."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from quire.rules.order_table import State
from tests.simulation.pace import PACE

#: A request without an answer is sent again after so many seconds.
CALL_SECONDS = 5.0 * PACE

#: The value of an act whose process was frozen past its time: the one window that is documented.
LATE = "late"


@dataclass
class Order:
    """One thing that a person asked of Quire, and the answer."""

    number: int
    person: str
    verb: str
    #: The record that it is about; empty: the whole ledger, or a workflow.
    record: str
    asked_at: float
    #: A workflow, the name of a signal or of a question, a choice.
    what: str = ""
    value: Any = None
    #: None: no answer ever came.
    answered_at: float | None = None
    #: The status that the answer showed; or why it was refused: the name of the error.
    answer: str = ""
    #: The words of a refusal.
    words: str = ""
    #: Something went wrong on the way to the store meanwhile: it may have been sent again.
    disturbed: bool = False

    @property
    def refused(self) -> bool:
        return bool(self.words)

    @property
    def sent_again(self) -> bool:
        """An answer was lost. Then the last one shows the record as it is by then."""
        slow = self.answered_at is not None and self.answered_at - self.asked_at >= CALL_SECONDS
        return slow or self.disturbed


class Happening(NamedTuple):
    """Something that people can see without asking Quire: in the world, or in a record's log."""

    at: float
    #: By the log: ``begins`` an effect, ``begins to undo`` one, ``is claimed``, ``is let go`` by a worker. In the
    #: world: ``acts``, ``undoes``. ``passes``: the code of a step has come beyond this place of its script.
    kind: str
    record: str
    visit: int
    #: Which effect; or the place in the script, as ``part.place``.
    name: str
    value: Any = None
    #: The idempotency key of an act.
    key: str = ""
    process: str = ""


class Found(NamedTuple):
    """A record at the end of a simulation."""

    record: str
    parent: str
    workflow: str
    data: dict[str, Any]
    status: str
    #: One word of ``why``, and its sentence.
    why: str
    sentence: str
    result: Any = None
    error: str = ""


@dataclass
class History:
    orders: list[Order] = field(default_factory=list)
    happenings: list[Happening] = field(default_factory=list)
    found: dict[str, Found] = field(default_factory=dict)
    #: Faults as they struck: when, and a sentence.
    faults: list[tuple[float, str]] = field(default_factory=list)
    #: Effects of which nobody knows whether they happened, although their record has ended: record and name.
    left_open: list[tuple[str, str]] = field(default_factory=list)
    #: Records that ran alone so often, and were lost each time, that they may be taken for what ends processes.
    killers: frozenset[str] = frozenset()
    #: The cells of the table of orders that were reached: the order, and the state of the record.
    cells: set[tuple[str, State]] = field(default_factory=set)
    #: What ``verify`` found.
    differences: list[str] = field(default_factory=list)
    #: The simulation did not come to rest: why not.
    restless: str = ""
    begun_at: float = 0.0
    #: From here on there are no faults.
    quiet_from: float = 0.0
    ended_at: float = 0.0
