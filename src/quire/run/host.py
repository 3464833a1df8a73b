"""What a pass needs of the process around it. The worker implements it."""

from __future__ import annotations

from asyncio import Future
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, Final, Protocol

from quire.clock import Clock
from quire.ledger.base import Ledger
from quire.model.change import Change, Verdict
from quire.model.receipt import Keyring, Receipt
from quire.model.record import Record
from quire.model.side import Worker
from quire.workflows.effect import Act, Effect
from quire.workflows.workflow import Registry

#: Called with the verdict on a change, or with the error that came instead.
OnVerdict = Callable[[Verdict | BaseException], None]


#: What prepares no act.
NOTHING: Final = object()


class Host(Protocol):
    ledger: Ledger
    registry: Registry
    clock: Clock
    keyring: Keyring
    ledger_id: str
    #: Where signals reach this ledger from outside; empty: nowhere.
    public_url: str
    #: The acts that are under way here, each by the key and the nonce of its intent.
    acting: set[tuple[str, str]]

    #: Since when the ledger answers again, on its clock; 0: it was never away.
    back_since: float

    @property
    def worker_id(self) -> str: ...

    @property
    def budget_end(self) -> float | None:
        """Until when this worker may work, on the ledger's clock; None: no end."""
        ...

    @property
    def alone(self) -> bool:
        """Whether nothing else runs in this process beside the record that runs."""
        ...

    @property
    def threads(self) -> Executor:
        """The threads in which plain ``def`` steps run."""
        ...

    def deps_of(self, workflow: str) -> Any:
        """Return what the steps and effects of this workflow work with."""
        ...

    def now(self) -> float:
        """Return the ledger's clock, as far as this process knows it."""
        ...

    def submit(self, change: Change) -> Future[Verdict]:
        """Hand a change to the committer."""
        ...

    def put(self, change: Change, on_verdict: OnVerdict) -> None:
        """Hand a change to the committer and do not wait: ``on_verdict`` is called with the verdict."""
        ...

    def time_for(self, span: float, since: float, *, harmless: bool) -> float:
        """Return how long an act of at most this length may take within the worker's time; 0: it is not begun any more.

        ``since``: when the record came here, on ``clock.boottime``. ``harmless``: the act may be repeated.
        """
        ...

    def from_start(self, since: float) -> bool:
        """Return whether a record that came here at this moment has had nearly all of the worker's time."""
        ...

    async def mark(self, intent: Receipt) -> None:
        """Make durable outside the ledger that this worker is about to act on the intent."""
        ...

    def acted(self, intent: Receipt) -> None:
        """What became of the act is in the ledger."""
        ...

    async def went_back(self, record: Record) -> bool:
        """Whether the ledger lost changes since this record began: what it does now may have been done before."""
        ...

    async def lease_until(self, span: float) -> float:
        """Return the moment ``span`` from now, on ``clock.boottime``. Renew the lease if it would end before."""
        ...

    def late(self, work: Coroutine[Any, Any, None]) -> None:
        """Keep the task of an act that goes on in its thread, until it has ended."""
        ...

    async def prepare(
        self, effect: Effect[Any, Any, Any], part: Callable[..., Any], act: Act[Any], args: Any, kwargs: Any
    ) -> Any:
        """Call a part of an effect that comes before its act; ``NOTHING`` where the effect is a fake of a test."""
        ...

    async def act(self, effect: Effect[Any, Any, Any], act: Act[Any], args: Any, kwargs: Any) -> Any:
        """Call the effect's act: the one place where the world outside is changed."""
        ...

    async def probe(self, effect: Effect[Any, Any, Any], act: Act[Any], args: Any, kwargs: Any) -> Any:
        """Call the effect's probe: it finds out whether the act happened."""
        ...

    async def undo(self, effect: Effect[Any, Any, Any], act: Act[Any], value: Any) -> object:
        """Take it back. ``Kept``: nothing was taken back, and why."""
        ...

    def known_dead(self, worker: Worker) -> bool:
        """Return whether that worker's process has surely ended."""
        ...

    def ending(self) -> bool:
        """Return whether the worker itself is being cancelled: the process ends."""
        ...

    def swallowed(self, record: Record) -> None:
        """Report that a step went on after it was cancelled: user code swallowed the cancellation."""
        ...

    def may_keep(self, record: Record, step: str, steps: int, since: float) -> bool:
        """Return whether the worker may stay on a record for its next step."""
        ...
