"""The client's way to one ledger: how it is opened, and requests that are repeated until they are answered."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Self, TypeVar

from quire.client import arguments
from quire.clock import Clock
from quire.errors import (
    AlreadyExists,
    Halted,
    IllegalMove,
    InputError,
    LedgerUnavailable,
    Moved,
    QuireError,
    StaleVersion,
)
from quire.ledger import engine
from quire.ledger.base import Ledger
from quire.model.change import Applied, Change, Conflict, Count, Refused, Send, Verdict
from quire.model.receipt import Keyring
from quire.model.record import Record
from quire.workflows.workflow import Registry

T = TypeVar("T")


class Link:
    """The way to one ledger, and who acts through it. A request is repeated until the ledger has answered it."""

    def __init__(
        self, ledger: Ledger, clock: Clock, who: str = "", groups: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        self.ledger = ledger
        self.registry = Registry()
        self.clock = clock
        #: Who acts through this client, for the log.
        self.who = who
        #: Groups of people that questions are put to, and their members.
        self.groups = dict(groups or {})
        self.keyring: Keyring | None = None
        #: Records whose end somebody in this process waits for.
        self.awaited: dict[str, asyncio.Event] = {}

    def acting_as(self, who: str) -> Self:
        """Return the same way, for another person."""
        other = copy.copy(self)
        other.who = who
        return other

    async def open(self) -> None:
        try:
            await self.ledger.open()
            self.keyring = await engine.shared_keyring(self.ledger)
            await engine.register(self.ledger, self.registry)
        except BaseException:
            await self.ledger.close()
            raise

    async def close(self) -> None:
        await self.ledger.close()

    @property
    def keys(self) -> Keyring:
        if self.keyring is None:
            raise InputError("the client is not open; use it in a 'with' block")
        return self.keyring

    def by(self, who: str | None) -> str:
        """Return the person who acts: the one that was given, or else the client's own."""
        return self.who if who is None else who

    async def definition(self, workflow: str) -> dict[str, Any]:
        """Return the definition of a workflow, as this process or the ledger knows it."""
        known = self.registry.get(arguments.name(workflow, "the workflow"))
        return known.definition() if known is not None else await engine.definition(self.ledger, workflow)

    async def counts(self) -> list[Count]:
        return await self.ledger.counts()

    async def send(self, sends: Sequence[Send]) -> list[Verdict]:
        """Send signals that were made elsewhere; one verdict each."""
        return await self.patiently(lambda: self.ledger.send(sends))

    async def commit(self, changes: Sequence[Change]) -> list[Verdict]:
        return await self.patiently(lambda: self.ledger.commit(changes))

    async def patiently(self, work: Callable[[], Awaitable[T]]) -> T:
        """Repeat the same request while the ledger does not answer. The ledger knows a repeated request by its id."""
        begun, pause = self.clock.boottime(), 0.05
        while True:
            try:
                return await work()
            except LedgerUnavailable:
                if self.clock.boottime() - begun + pause > self.ledger.patience:
                    raise
                await self.clock.sleep(pause)
                pause = min(2 * pause, 2.0)


_REFUSALS: dict[str, type[QuireError]] = {
    "exists": AlreadyExists,
    "halted": Halted,
    "sealed": Moved,
    "running": IllegalMove,
    "intent": IllegalMove,
    "parked": IllegalMove,
    "parent": IllegalMove,
    "ended": IllegalMove,
}


def landed(verdict: Verdict) -> Record:
    """Return the record as the verdict left it. A refusal is raised as an error."""
    match verdict:
        case Applied(record=record):
            return record
        case Refused(code=code, reason=reason):
            raise _REFUSALS.get(code, InputError)(reason)
        case Conflict():
            raise StaleVersion("the record has changed meanwhile; read it again")
