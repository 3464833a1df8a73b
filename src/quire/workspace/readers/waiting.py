"""Which records wait for something of Google's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from quire.client.client import Client
from quire.model.change import Query
from quire.model.record import Record, Status
from quire.model.wait import On, load_waits

_PAGE = 1000


class Waiting(NamedTuple):
    """One wait of one record."""

    record_id: str
    signal: str

    @property
    def parts(self) -> list[str]:
        """What the name of the signal says: the account first, then what is waited for."""
        return self.signal.partition(":")[2].split("/")


async def waiting(client: Client, kinds: Iterable[str]) -> list[Waiting]:
    """The waits whose signals begin with one of these words, as ``mail:``."""
    wanted = tuple(f"{kind}:" for kind in kinds)
    found: list[Waiting] = []
    after = ""
    while True:
        query = Query(status=(Status.WAITING, Status.NEEDS_APPROVAL), after=after, limit=_PAGE)
        page: list[Record] = list(await client.ledger.find(query))
        for record in page:
            waits = load_waits(record.waits)
            found += [
                Waiting(record.record_id, wait.name)
                for wait in waits
                if wait.on is On.SIGNAL and wait.name.startswith(wanted)
            ]
        if len(page) < _PAGE:
            return found
        after = page[-1].record_id
