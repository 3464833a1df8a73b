"""The short ways, each of which may answer "not this one": then the verb goes the plain way.

``?fast=off`` in the ledger's address switches them off. What lands is the same with and without them: the conformance
suite runs both. docs/decisions/008, 026, 030 and 033 have the figures.
"""

from __future__ import annotations

from collections.abc import Sequence

from quire.ledger.postgres.claims import Claims
from quire.ledger.postgres.fast.claims import ClaimsByServer
from quire.ledger.postgres.fast.commits import OptimisticCommits
from quire.ledger.postgres.known import Known
from quire.ledger.postgres.locked import Locked
from quire.ledger.postgres.notifications import Notifications
from quire.ledger.postgres.server import Server
from quire.model.change import Change, Claim, Claimed, Verdict


class Fast:
    """Optimistic commits and claims by the server."""

    def __init__(
        self,
        server: Server,
        known: Known,
        locked: Locked,
        claims: Claims,
        notifications: Notifications,
        inline_bytes: int,
    ) -> None:
        self._server = server
        self._locked = locked
        self._commits = OptimisticCommits(server, known, locked, notifications, inline_bytes)
        self._claims = ClaimsByServer(server, known, locked, claims)

    @property
    def _open(self) -> bool:
        return self._server.fast and self._locked.barrier is None

    async def commit(self, changes: Sequence[Change]) -> list[Verdict] | None:
        return await self._commits.commit(changes) if self._open else None

    async def claim(self, claim: Claim) -> Claimed | None:
        return await self._claims.claim(claim) if self._open else None
