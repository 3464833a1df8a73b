"""Tokens: who may come in from another machine, and as what. The ledger keeps their hashes only."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from quire.clock import Span, iso, new_id, seconds
from quire.errors import InputError, NotFound
from quire.ledger.base import Ledger
from quire.model.codec import dump, parse
from quire.model.row import replace
from quire.model.side import Setting

TOKEN = "token/"


class Role(StrEnum):
    """What a caller may do: each can do what the ones before it can."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"

    @property
    def rank(self) -> int:
        return _RANKS[self]

    @property
    def one(self) -> str:
        """The role in a sentence."""
        return f"{'a' if self is Role.VIEWER else 'an'} {self}"


_RANKS = {role: rank for rank, role in enumerate(Role)}


class Token(NamedTuple):
    """A token as the ledger keeps it."""

    token_id: str
    name: str
    role: Role
    hash: str
    made_at: float
    made_by: str = ""
    expires_at: float | None = None
    revoked_at: float | None = None
    revoked_by: str = ""

    def valid(self, now: float) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


def hashed(secret: str) -> str:
    """Secrets are random and long, so a plain hash of one cannot be turned back."""
    return hashlib.sha256(secret.encode()).hexdigest()


def token_json(token: Token) -> dict[str, Any]:
    return {
        "token_id": token.token_id,
        "name": token.name,
        "role": str(token.role),
        "made_at": iso(token.made_at),
        "made_by": token.made_by,
        "expires_at": iso(token.expires_at) or None,
        "revoked_at": iso(token.revoked_at) or None,
        "revoked_by": token.revoked_by,
    }


def loaded(setting: Setting) -> Token:
    given = parse(setting.value)
    return Token(**{**given, "role": Role(given["role"])})


async def make_token(
    ledger: Ledger, name: str, role: Role | str = Role.VIEWER, *, by: str = "", expires: Span | None = None
) -> tuple[str, Token]:
    """Make a token. The text is shown once and never again; the ledger keeps its hash."""
    if not name.strip() or len(name) > 200 or not name.isprintable():
        raise InputError("a token needs a name of 1 to 200 printable characters: whoever acts with it, for the log")
    length = None if expires is None else seconds(expires)
    if length == 0:
        raise InputError("a token that expires at once opens nothing; give it a span like '90d', or none")
    now = await ledger.now()
    token_id, secret = new_id(length=10), secrets.token_urlsafe(32)
    until = None if length is None else now + length
    token = Token(token_id, name.strip(), Role(role), hashed(secret), now, by, until)
    if not await ledger.keep(Setting(TOKEN + token_id, dump(token._asdict()), 0)):
        raise InputError("the token's id is taken; try again")
    return f"qt_{token_id}_{secret}", token


async def revoke_token(ledger: Ledger, token_id: str, *, by: str = "") -> Token:
    """From now on the token opens nothing, and neither do sessions that were opened with it."""
    for _ in range(10):
        kept = await ledger.setting(TOKEN + token_id)
        if kept is None:
            raise NotFound(f"there is no token {token_id!r}")
        token = loaded(kept)
        if token.revoked_at is not None:
            return token
        token = token._replace(revoked_at=await ledger.now(), revoked_by=by)
        if await ledger.keep(replace(kept, value=dump(token._asdict()))):
            return token
    raise InputError(f"the token {token_id!r} changes all the time; try again")


async def all_tokens(ledger: Ledger) -> list[Token]:
    return [loaded(setting) for setting in await ledger.settings(TOKEN)]


async def token_of(ledger: Ledger, token_id: str) -> Token | None:
    """Return the token of this id, if it opens something now."""
    kept = await ledger.setting(TOKEN + token_id)
    token = loaded(kept) if kept is not None else None
    return token if token is not None and token.valid(await ledger.now()) else None


async def recognised(ledger: Ledger, text: str, callers: Mapping[str, str]) -> Token | None:
    """The token that this text is; None: it is none that opens anything."""
    if text.startswith("qt_"):
        token_id, _, secret = text.removeprefix("qt_").partition("_")
        token = await token_of(ledger, token_id) if token_id and token_id.isalnum() else None
        if token is not None and hmac.compare_digest(token.hash, hashed(secret)):
            return token
    made = hashed(text)
    found = None
    for name, given in callers.items():
        token = caller(name, given)
        if hmac.compare_digest(token.hash, made):
            found = token
    return found


def caller(name: str, given: str) -> Token:
    """Return a caller of ``quire.toml``: ``name = "sha256 of the key"``, or ``"viewer:sha256 of the key"``."""
    role, mark, hash_ = given.rpartition(":")
    try:
        known = Role(role) if mark else Role.OPERATOR
    except ValueError:
        raise InputError(f"callers.{name}: {role!r} is not a role; it is one of {', '.join(Role)}") from None
    return Token(f"caller:{name}", name, known, hash_.lower(), 0.0)
