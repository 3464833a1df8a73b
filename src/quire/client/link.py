"""What every verb of the client stands on: one ledger, how it is opened, and writes that are sent until answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

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
from quire.model.change import Applied, Change, Conflict, Refused, Send, Verdict
from quire.model.receipt import Keyring
from quire.model.record import Record
from quire.workflows.workflow import Registry


class ClientLink:
    """The way to one ledger, and who acts through it."""

    def __init__(self, ledger: Ledger, clock: Clock, who: str) -> None:
        self.ledger = ledger
        self.registry = Registry()
        self.clock = clock
        #: Who acts through this client, for the log.
        self.who = who
        #: Groups of people that questions are put to, and their members.
        self.groups: Mapping[str, Sequence[str]] = {}
        self.keyring: Keyring | None = None

    async def __aenter__(self) -> Self:
        try:
            await self.ledger.open()
            self.keyring = await engine.shared_keyring(self.ledger)
            await engine.register(self.ledger, self.registry)
        except BaseException:
            await self.ledger.close()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.ledger.close()

    @property
    def _keys(self) -> Keyring:
        if self.keyring is None:
            raise InputError("the client is not open; use it in a 'with' block")
        return self.keyring

    async def definition(self, workflow: str) -> dict[str, Any]:
        """What a workflow is, as this process or the ledger knows it."""
        known = self.registry.get(arguments.name(workflow, "the workflow"))
        return known.definition() if known is not None else await engine.definition(self.ledger, workflow)

    async def _patiently(self, work: Callable[[], Any]) -> Any:
        """Repeat the same request while the store does not answer: it is deduplicated by its id."""
        pause = 0.05
        while True:
            try:
                return await work()
            except LedgerUnavailable:
                if pause > 5:
                    raise
                await self.clock.sleep(pause)
                pause *= 2

    async def send(self, sends: Sequence[Send]) -> list[Verdict]:
        """Send signals that were made elsewhere; one verdict each."""
        verdicts: list[Verdict] = await self._patiently(lambda: self.ledger.send(sends))
        return verdicts

    async def _send(self, sent: Send) -> Verdict:
        [verdict] = await self.send([sent])
        return verdict

    async def _commit(self, changes: Sequence[Change]) -> list[Verdict]:
        verdicts: list[Verdict] = await self._patiently(lambda: self.ledger.commit(changes))
        return verdicts


_REFUSALS: dict[str, type[QuireError]] = {
    "exists": AlreadyExists,
    "halted": Halted,
    "sealed": Moved,
    "running": IllegalMove,
    "intent": IllegalMove,
    "parent": IllegalMove,
    "ended": IllegalMove,
}


def landed(verdict: Verdict) -> Record:
    """The record as the verdict left it; a refusal is raised as the error that it is."""
    match verdict:
        case Applied(record=record):
            return record
        case Refused(code=code, reason=reason):
            raise _REFUSALS.get(code, InputError)(reason)
        case Conflict():
            raise StaleVersion("the record has changed meanwhile; read it again")
