"""The stores as the driver of real processes uses them: where they are, and what goes wrong with them."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

from quire.clock import SYSTEM, Clock
from tests.simulation.plan import Fault, Plan


class Store(ABC):
    """One store for many seeds: each has a ledger of its own in it."""

    #: How fast the clock runs.
    speed: float = 1.0
    beginning: float = 0.0
    #: The lease of a worker, on the clock.
    lease: float
    #: So many workers at the most.
    workers: int = 5
    #: Whether the clock of a worker may differ from that of the store.
    skews: bool = False
    clock: Clock = SYSTEM
    port: int

    @abstractmethod
    def __enter__(self) -> Self: ...

    @abstractmethod
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    @abstractmethod
    async def begin(self, seed: int) -> None:
        """Make room for the ledger of one seed."""

    @abstractmethod
    async def end(self) -> None:
        """Take it away."""

    @abstractmethod
    def address(self, port: int) -> str:
        """The ledger of this seed, by way of a port of this machine."""

    @abstractmethod
    def faults(self, dice: random.Random, plan: Plan) -> list[Fault]:
        """What may go wrong with this store, beside what goes wrong with processes."""

    @abstractmethod
    async def strike(self, fault: Fault) -> None: ...

    @abstractmethod
    async def calm(self) -> None:
        """From here on nothing goes wrong any more."""
