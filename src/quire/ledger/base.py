"""The contract of a ledger. Some twenty-five verbs; one write, and the write is compare-and-swap.

*Changes.* ``commit`` takes a batch of changes in order. Each names the version that it replaces and lands whole or not
at all: its image, lines, receipts, fan-in and children together. One refused change does not spoil the others, except
those of the same record that follow it and so name a version that does not come. Every change gets a verdict. If no
answer comes at all (``LedgerUnavailable``), the change may have landed: the same change with the same id is sent again
and gets the first verdict.

*Claims.* ``claim`` gives a worker due records of the steps that it names: status PENDING, WAITING or NEEDS_APPROVAL,
``due_at`` reached, of an epoch that is not halted, in order of rank, per step at most what the worker has free and what
caps and rates over all workers leave. A repeat with the same claim id gives the records of the first time. A worker
beats before it claims: one that is unknown, or closed, gets ``WorkerClosed``. A claim of none (limit 0) is a look, for
which nobody need be known.

*Workers.* ``beat`` renews a worker's lease and agrees with it on what it holds. ``recover`` closes workers whose lease
ran out and frees their records, takes over runs past their hard end, and writes down what halts and gone parents
cancelled. Only the ledger's clock decides what ran out. A closed worker's beat raises ``WorkerClosed``; of what it
writes only completed effects land.

*Signals.* ``send`` is deduplicated by the signal's id, for each record and name apart: one event of the world outside
may concern several. A signal that comes before the wait is kept.

*Orders.* ``order`` halts, pauses, resumes or seals: one commit of constant size. After it is acknowledged no claim,
intent, start, child or signal commits against it. On a sealed ledger a claim and a beat raise ``Moved``, which says
where its records are; only completed effects still land.

What a ledger promises, it promises for the rows it answers from: after the commit is acknowledged, for every process,
and for every crash of any of them. Differences between stores are asked of ``traits``, never of a store's name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

from quire.model import row
from quire.model.change import (
    Beaten,
    Change,
    Claim,
    Claimed,
    Count,
    Holding,
    Order,
    Query,
    Send,
    Standing,
    Verdict,
)
from quire.model.change import Recovered as Recovered
from quire.model.event import Event
from quire.model.receipt import Receipt
from quire.model.record import Record
from quire.model.side import Fanin, Setting, Signal, Worker

#: One of the row types that a ledger stores: see ``rows.TABLES``.
Row = TypeVar("Row", bound=row.Row)


#: A verb that has no answer by then is given up, unless the process says otherwise.
PATIENCE_SECONDS = 60.0


class Traits(NamedTuple):
    """What this store can do and costs."""

    #: Acknowledged commits survive the process.
    durable: bool
    #: Several processes may work on it at once.
    shared: bool
    lease_seconds: float = 30.0
    #: A look at the ledger at least this often: the guarantee behind the hints.
    poll_seconds: float = 5.0
    #: Values longer than this are kept as blobs, by hash.
    inline_bytes: int = 64 * 1024
    #: A batch ends at this many changes.
    batch_changes: int = 500
    #: More changes than this do not fit into one commit; None: it takes as many as come.
    one_commit: int | None = None
    #: Claims and commits are under way at the same time: records are then claimed in parts, so that some run while
    #: others are being settled, and a commit need not wait for the one before it.
    side_by_side: bool = False
    #: A standby that was behind, or a restored copy, may take its place: its acknowledged changes can go missing.
    goes_back: bool = False
    #: More workers than this wait.
    most_writers: int | None = None


class Tidied(NamedTuple):
    """How much one call of ``tidy`` deleted."""

    blobs: int = 0
    workers: int = 0


class Ledger(ABC):
    """A store of records. Every verb may raise ``LedgerUnavailable``."""

    url: str
    traits: Traits
    #: How long a verb waits for an answer, and a client repeats it, in seconds.
    patience: float = PATIENCE_SECONDS
    #: How often the way to the store was interrupted, so that another one may answer since.
    interruptions: int = 0

    @abstractmethod
    async def open(self) -> None:
        """Connect, and bring the schema up to date. Two processes may do so at the same moment."""

    @abstractmethod
    async def close(self) -> None: ...

    @abstractmethod
    async def commit(self, changes: Sequence[Change]) -> list[Verdict]:
        """Decide these changes, in order, in one commit. One verdict each; if one is ``whole``, all land or none."""

    @abstractmethod
    async def claim(self, claim: Claim) -> Claimed: ...

    @abstractmethod
    async def send(self, sends: Sequence[Send]) -> list[Verdict]: ...

    @abstractmethod
    async def beat(self, worker: Worker, holding: Holding) -> Beaten: ...

    @abstractmethod
    async def farewell(self, worker_id: str) -> None:
        """The worker ends of its own will: it is closed, and what it still holds goes back unharmed."""

    @abstractmethod
    async def recover(self, limit: int = 500, dead: Sequence[str] = ()) -> Recovered:
        """Take over and sweep, at most ``limit`` rows. ``dead``: workers known to have ended: their lease is over.

        A look that finds nothing to do takes no lock.
        """

    @abstractmethod
    async def order(self, order: Order) -> Standing: ...

    @abstractmethod
    async def standing(self) -> Standing: ...

    @abstractmethod
    async def load(self, record_ids: Sequence[str]) -> list[Record]:
        """The records of these ids that exist, in the order given."""

    @abstractmethod
    async def find(self, query: Query) -> list[Record]: ...

    @abstractmethod
    async def counts(self) -> list[Count]: ...

    @abstractmethod
    async def events(self, *, record_id: str = "", after: int = 0, limit: int = 1000) -> list[Event]:
        """One record's log from its first line, or the whole ledger's after a ``seq``, in the order of commits."""

    async def logs(self, record_ids: Sequence[str]) -> dict[str, list[Event]]:
        """Return the whole logs of these records. A store that can do so reads them by one statement."""
        found: dict[str, list[Event]] = {}
        for record_id in record_ids:
            lines = found[record_id] = []
            while page := await self.events(record_id=record_id, after=lines[-1].seq if lines else 0, limit=10_000):
                lines += page
        return found

    @abstractmethod
    async def receipts(self, *, record_ids: Sequence[str] = (), keys: Sequence[str] = ()) -> list[Receipt]:
        """The receipts and intents of these records, or under these keys; in order of their coming."""

    @abstractmethod
    async def signals(self, record_id: str) -> list[Signal]: ...

    @abstractmethod
    async def fanins(self, parent_id: str) -> list[Fanin]: ...

    @abstractmethod
    async def workers(self) -> list[Worker]: ...

    @abstractmethod
    async def setting(self, name: str) -> Setting | None: ...

    @abstractmethod
    async def settings(self, prefix: str) -> list[Setting]:
        """The settings whose names start so, in order."""

    @abstractmethod
    async def keep(self, setting: Setting) -> bool:
        """Replace version ``setting.version`` of this setting (0: there is none yet); False: it is another by now."""

    @abstractmethod
    async def forget(self, events: Sequence[Event]) -> int:
        """Delete exactly these lines, which were archived, read back and compared (protocol 19)."""

    async def strip(self, record_ids: Sequence[str]) -> int:
        """Delete the receipts, fan-ins and values of signals of these forgotten records; answers how many receipts.

        Receipts under a user's own key stay, and so do the ids of signals: both are known beyond their record.
        """
        return 0

    async def tidy(self, before: float) -> Tidied:
        """Delete what nothing names any more: blobs, and workers that were closed and whose lease ended ``before``.

        A worker that an open intent names stays: how it ended tells whether its act may still come (protocol 1).
        """
        return Tidied()

    @abstractmethod
    async def wait_for_work(self, timeout: float) -> None:
        """Return when something may have become due, or after the timeout. A hint: it may return for nothing."""

    @abstractmethod
    async def now(self) -> float:
        """The ledger's clock."""

    async def examine(self) -> None:
        """Refuse a store that does not behave as the promises need it. A worker asks this before it begins."""
        return

    async def server_identity(self) -> str:
        """Return which server answers, and on which of its timelines; empty: the store has no such thing."""
        return ""

    async def dump(self, type_: type[Row], *, after: tuple[Any, ...] = (), limit: int = 1000) -> list[Row]:
        """Rows of one table as they are stored, in the order of their key, after this key: for a copy (protocol 25)."""
        raise NotImplementedError(f"the ledger {self.url} cannot be copied yet: its store gives no rows")

    async def restore(self, type_: type[Row], given: Sequence[Row], epoch: int) -> None:
        """Take over rows of another ledger as they are, over those that have their keys. Refused unless this ledger is
        sealed.
        """
        raise NotImplementedError(f"the ledger {self.url} cannot take over a copy yet: its store takes no rows")
