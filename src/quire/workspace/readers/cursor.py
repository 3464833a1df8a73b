"""A reader's place, kept in the ledger under a lease: only one process moves it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from quire.clock import Clock
from quire.ledger.base import Ledger
from quire.ledger.sole import Sole

log = logging.getLogger("quire.workspace")

Fields = dict[str, Any]


class Cursor:
    """One cursor. Its fields are empty before the first look."""

    def __init__(self, ledger: Ledger, name: str, clock: Clock) -> None:
        self._sole = Sole(ledger, f"google/{name}", clock, {})
        self._fields: Fields = {}

    async def move(self, look: Callable[[Fields], Awaitable[Fields]]) -> bool:
        """Look from where it stands, then keep where it stands after. False: another process looks."""
        held, fields = await self._sole.take()
        if not held:
            return False
        if fields is not None:
            self._fields = fields
        after = await look(dict(self._fields))
        if after == self._fields:
            return True
        if await self._sole.keep(after):
            self._fields = after
            return True
        return False  # what was brought is brought again, under the same ids

    async def release(self) -> None:
        """Let another process take it at once."""
        await self._sole.release(self._fields)
