"""``quire doctor --google --sweep``: deletes drafts that have our mark, are older than a day, and belong to no act."""

from __future__ import annotations

from typing import Any

from quire.clock import SYSTEM
from quire.surfaces.cli.command import Session
from quire.workspace.connection import Google
from quire.workspace.gmail.composing import HEADER
from quire.workspace.trying import Tried, ask

_DAY_MS = 86_400_000
_DRAFTS = "gmail/v1/users/me/drafts"


async def swept(session: Session, google: Google) -> list[Tried]:
    """Delete what a process left behind that was killed before its intent."""
    listed = await ask(google, "gmail", "GET", f"{_DRAFTS}?maxResults=500")
    drafts = [draft for one in listed.get("drafts", ()) if (draft := await _ours(google, str(one["id"]))) is not None]
    if not drafts:
        return [Tried("well", "no draft is left over")]
    named = await _named(session, drafts)
    for draft in drafts:
        if draft not in named:
            await ask(google, "gmail", "DELETE", f"{_DRAFTS}/{draft}")
    gone = len(drafts) - len(named)
    return [Tried("well", f"{gone} drafts that no act names are deleted, {len(named)} belong to an act")]


async def _ours(google: Google, draft: str) -> str | None:
    """The id of a draft, if it has our mark and is older than a day."""
    read: dict[str, Any] = (await ask(google, "gmail", "GET", f"{_DRAFTS}/{draft}?format=metadata"))["message"]
    headers = {one["name"].lower() for one in read.get("payload", {}).get("headers", ())}
    old = SYSTEM.now() * 1000 - float(read.get("internalDate", 0)) > _DAY_MS
    return draft if old and HEADER.lower() in headers else None


async def _named(session: Session, drafts: list[str]) -> set[str]:
    """Those of the drafts that an act of this ledger names."""
    found: set[str] = set()
    async with session.client() as client:
        after = ""
        while records := await client.find(after=after, limit=500):
            after = records[-1].record_id
            for receipt in await client.ledger.receipts(record_ids=[record.record_id for record in records]):
                found |= {draft for draft in drafts if draft in receipt.prepared or draft in receipt.value}
    return found
