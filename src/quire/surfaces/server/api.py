"""The HTTP API: everything that the client does, as addresses under ``/api``.

``records`` lists, starts and shows them, ``acts`` acts on them, ``looking`` looks at the whole ledger.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from starlette.types import ASGIApp

from quire.client.client import Client
from quire.errors import QuireError
from quire.model.change import Query as Find
from quire.surfaces.server import acts, looking, records
from quire.surfaces.server.asking import Admin, Operator, RecordId, Viewer, WorkflowName, acting, unslashed
from quire.surfaces.server.auth.tokens import Role
from quire.surfaces.server.short_way import ShortWay, ways_of

#: Every address, as it was declared.
ROUTES = [*records.router.routes, *acts.router.routes, *looking.router.routes]


async def ready(client: Client) -> tuple[bool, str]:
    """Whether the ledger answers."""
    try:
        found = await client.ledger.find(Find(limit=1))
        return True, f"the ledger answers ({(len(found) and 'it has records') or 'it is empty'})"
    except QuireError as error:
        return False, str(error)


def short_way(inner: ASGIApp) -> ShortWay:
    """Return the quick way to the addresses of this module; the rest goes on to ``inner``."""
    return ShortWay(inner, _ways(), acting)


@cache
def _ways() -> list[Any]:
    roles = {Viewer: Role.VIEWER, Operator: Role.OPERATOR, Admin: Role.ADMIN}
    return ways_of(ROUTES, roles, {RecordId: unslashed, WorkflowName: unslashed})
