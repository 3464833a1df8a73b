"""Finds out whether a pooler stands before the server, and in which mode it works.

A ledger is correct in every mode, because it leaves nothing in a session. The mode decides two things for speed:
whether statements are prepared under a name, and whether notifications arrive.
"""

from __future__ import annotations

import asyncio
from enum import StrEnum

from quire.ledger.postgres.address import Address
from quire.ledger.postgres.wire import Lost, Manner, Wire

#: A pooler that has one session for all lets the first connection wait while the second has a transaction.
WAIT_SECONDS = 2.0
#: How often two connections are compared: a busy pooler may give the same session to the same one by chance.
ROUNDS = 3

_BACKEND = "SELECT pg_backend_pid()"


class Mode(StrEnum):
    """What stands between this process and the server."""

    DIRECT = "direct"
    #: A pooler that keeps one session of the server for each connection.
    SESSION = "session"
    #: A pooler that may give each transaction another session: no notification arrives.
    TRANSACTION = "transaction"


def is_pooled(wire: Wire, backend: int) -> bool:
    """Return whether the connection leads to a pooler. ``backend``: the process that serves it, by its own account.

    A pooler answers with a number of its own when a connection begins.
    """
    return wire.pid != backend


async def mode_of(address: Address) -> Mode:
    """Return the mode of the pooler at this address, and write down whether it carries named statements."""
    manner = Manner(named=True, pooled=True)
    first, second = await address.connect({}, manner=manner), await address.connect({}, manner=manner)
    try:
        mode = Mode.SESSION
        for _ in range(ROUNDS):
            if mode is Mode.SESSION and await _is_shared(first, second, manner):
                mode = Mode.TRANSACTION
    finally:
        await first.close()
        await second.close()
    address.manner.pooled, address.manner.named = True, manner.named
    return mode


async def _is_shared(first: Wire, second: Wire, manner: Manner) -> bool:
    """Return whether two connections have sessions in common.

    Both prepare the same statement under the same name. In a common session this fails, unless the pooler gives the
    statements names of its own.
    """
    try:
        ((before,),) = await first.ask(_BACKEND)
        second.send("BEGIN")
        place = second.send(_BACKEND)
        ((other,),) = (await second.flush())[place].rows()
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                ((after,),) = await first.ask(_BACKEND)
        except TimeoutError:
            return True
        second.send("ROLLBACK")
        await second.flush()
    except Lost:
        if manner.named:
            raise
        return True
    return bool(before == other or before != after)
