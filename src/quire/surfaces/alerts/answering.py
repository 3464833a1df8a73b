"""What an alert adds for its reader: where to look, and, in a mail to the one person asked, a link to answer with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from quire.client.client import Client
from quire.errors import QuireError
from quire.explain.words import record_link
from quire.model.record import Record, Status
from quire.model.wait import On, load_waits
from quire.surfaces.alerts.alerting import Adding
from quire.surfaces.alerts.channel import Alert, Channel


def _asked(record: Record, person: str, groups: Mapping[str, Sequence[str]]) -> bool:
    """The record asks this very person, by name or as one of a group."""
    if record.status is not Status.NEEDS_APPROVAL:
        return False
    for wait in load_waits(record.waits):
        if wait.on is On.QUESTION:
            by = (wait.about or {}).get("by", [])
            return any(person == name or person in groups.get(name, ()) for name in by)
    return False


def links(client: Client, groups: Mapping[str, Sequence[str]]) -> Adding | None:
    """What is added; nothing where nobody can reach the server. A link answers as its person: it goes to them alone."""
    if not client.public_url:
        return None
    base = client.public_url.rstrip("/")

    async def adding(channel: Channel, alert: Alert) -> str:
        if len(alert.record_ids) != 1:
            return f"{base}/"
        [record_id] = alert.record_ids
        lines = [record_link(base, record_id) or base]
        if alert.kind == "approval" and channel.way == "mailto" and "," not in channel.target:
            found = await client.ledger.load([record_id])
            if found and _asked(found[0], channel.target, groups):
                lines += await _link(record_id, channel.target)
        return "\n".join(lines)

    async def _link(record_id: str, person: str) -> list[str]:
        try:
            from quire.surfaces.server.auth.gate import Setup
            from quire.surfaces.server.auth.links import make_link
        except ImportError:
            return []
        try:
            url, _ = await make_link(Setup(client), record_id, person)
        except QuireError:
            return []  # it was answered meanwhile
        return [f"Answer as {person}: {url}"]

    return adding
