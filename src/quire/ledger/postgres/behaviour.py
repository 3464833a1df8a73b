"""Whether a server behaves as PostgreSQL where the promises rest on it.

Some engines speak PostgreSQL's protocol, accept what a ledger sends, and ignore part of it: advisory locks that lock
nothing, numbers that each node draws for itself. A ledger there would lose promises in silence. So the behaviour is
asked, not the name: two connections look at each other.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from quire.errors import LedgerError
from quire.ledger.postgres.wire import Wire

_SNAPSHOT = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::numeric::float8"
_LOCK_ROW = "SELECT 1 FROM ledger FOR UPDATE"
_DRAW = "SELECT nextval('events_seq_seq')"


async def _locks_nothing(one: Wire, other: Wire, key: int) -> bool:
    await one.ask("SELECT pg_advisory_xact_lock($1::bigint)", key)
    ((taken,),) = await other.ask("SELECT pg_try_advisory_xact_lock($1::bigint)", key)
    return bool(taken)


async def _skips_nothing(one: Wire, other: Wire, key: int) -> bool:
    await one.ask(_LOCK_ROW)
    return bool(await other.ask(f"{_LOCK_ROW} SKIP LOCKED"))


async def _has_no_snapshots(one: Wire, other: Wire, key: int) -> bool:
    ((before,),) = await one.ask(_SNAPSHOT)
    ((after,),) = await other.ask(_SNAPSHOT)
    return not 0 < before <= after


async def _draws_apart(one: Wire, other: Wire, key: int) -> bool:
    drawn = [(await wire.ask(_DRAW))[0][0] for wire in (one, other, one, other)]
    return drawn != sorted(drawn)


_CHECKS: dict[str, Callable[[Wire, Wire, int], Awaitable[bool]]] = {
    "two connections hold the same advisory lock at once": _locks_nothing,
    "a row that another connection has locked is not skipped": _skips_nothing,
    "its snapshots are not PostgreSQL's": _has_no_snapshots,
    "the numbers that two connections draw from one sequence are not in order": _draws_apart,
}
#: Words in the version of engines that are known, for a better sentence.
_KNOWN = {
    "CockroachDB": "CockroachDB",
    "-YB-": "YugabyteDB",
    "Citus": "Citus",
    "Spanner": "Spanner",
    "Redshift": "Redshift",
    "QuestDB": "QuestDB",
    "CrateDB": "CrateDB",
    "Materialize": "Materialize",
}


async def fault(one: Wire, other: Wire, key: int) -> str:
    """Return in what the server does not behave as PostgreSQL; empty: it does. Leaves nothing behind."""
    for what, fails in _CHECKS.items():
        for wire in (one, other):
            await wire.ask("BEGIN")
        try:
            if await fails(one, other, key):
                return what
        except LedgerError as error:
            return f"it refuses what a ledger needs ({error})"
        finally:
            for wire in (one, other):
                await wire.rollback()
    return ""


def refusal(shown: str, version: str, what: str) -> LedgerError:
    """The error that says why no ledger can be there."""
    name = next((name for word, name in _KNOWN.items() if word in version), "")
    who = f"the server at {shown} is {name}, which" if name else f"the server at {shown}"
    return LedgerError(
        f"{who} speaks PostgreSQL's protocol, but {what}: a ledger there would not be safe; use PostgreSQL 14 or newer"
    )
