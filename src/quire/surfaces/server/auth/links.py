"""Approval links: signed, expiring, for one person, one question and one use.

A link names the record, the hash of what is asked and the person. The ledger makes it single-use: an answer ends the
question, a question that is asked again has another hash, and where several people are needed each has one vote.
Opening a link shows what is asked and changes nothing, so whatever follows links in mails answers nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple
from urllib.parse import quote

from itsdangerous import BadSignature, URLSafeSerializer

from quire.client.client import Client
from quire.clock import Span, iso, seconds
from quire.errors import IllegalMove, InputError
from quire.explain import words
from quire.model.record import Record, Status
from quire.model.wait import On, Wait, load_waits
from quire.surfaces.server.auth.gate import Setup
from quire.surfaces.server.refusal import Refusal


class Link(NamedTuple):
    record_id: str
    #: The hash of what is asked.
    question: str
    person: str
    expires_at: float


def _serializer(setup: Setup) -> URLSafeSerializer:
    return URLSafeSerializer(setup.secret("link"), salt="quire.link")


def _asked(record: Record, hash_: str = "") -> Wait | None:
    if record.status is not Status.NEEDS_APPROVAL:
        return None
    waits = [wait for wait in load_waits(record.waits) if wait.on is On.QUESTION]
    return next((wait for wait in waits if not hash_ or (wait.about or {}).get("hash") == hash_), None)


async def make_link(setup: Setup, record_id: str, person: str, expires: Span | None = None) -> tuple[str, float]:
    """A link for this person to what the record asks now, and when it expires."""
    if not person.strip() or len(person) > 200 or not person.isprintable():
        raise InputError("an approval link is for one person: their name, 1 to 200 printable characters")
    record = await setup.client.get(record_id)
    wait = _asked(record)
    if wait is None:
        raise IllegalMove(f"{record_id!r} asks nothing; it is {record.status}")
    about = wait.about or {}
    length = setup.limits.link_seconds if expires is None else seconds(seconds(expires))
    end = await setup.client.ledger.now() + length
    if about.get("expires_at") is not None:
        end = min(end, float(about["expires_at"]))
    text = str(_serializer(setup).dumps([record_id, about["hash"], person.strip(), round(end, 3)]))
    return f"{setup.client.public_url.rstrip('/')}/link#{quote(text, safe='')}", end


async def opened(setup: Setup, text: str, signed_in: str | None) -> tuple[Link, Record, Wait]:
    """What the link leads to; refused if it is forged, expired, used, or another person's."""
    try:
        link = Link(*_serializer(setup).loads(text))
    except (BadSignature, TypeError, ValueError):
        raise Refusal(403, "Forged", "this link was not made by this ledger") from None
    if await setup.client.ledger.now() >= link.expires_at:
        raise Refusal(410, "Expired", f"this link expired at {iso(link.expires_at)}; ask for another")
    if signed_in is not None and signed_in != link.person:
        raise Refusal(403, "Foreign", f"this link is for {link.person!r}, and {signed_in!r} is signed in")
    record = await setup.client.get(link.record_id)
    wait = _asked(record, link.question)
    if wait is None:
        raise Refusal(410, "Used", "what this link asks is answered, or is not asked any more")
    votes = (wait.about or {}).get("votes", [])
    if any(vote.get("by") == link.person for vote in votes):
        raise Refusal(410, "Used", f"this link was used: {link.person!r} has answered")
    return link, record, wait


def link_json(link: Link, record: Record, wait: Wait) -> dict[str, Any]:
    """What is shown before the answer: exactly what the answer is bound to."""
    return {
        "record_id": record.record_id,
        "workflow": record.workflow,
        "person": link.person,
        "expires_at": iso(link.expires_at),
        "asked": words.wait_json(wait),
        "data": words.record_json(record)["data"],
    }


async def answer(setup: Setup, link: Link, choice: str, note: str, edits: dict[str, Any]) -> Record:
    client: Client = setup.client
    return await client.answer(
        link.record_id,
        choice,
        by=link.person,
        note=note,
        edits=edits,
        seen=link.question,
        question=link.question,
        via="link",
        groups=setup.groups,
    )
