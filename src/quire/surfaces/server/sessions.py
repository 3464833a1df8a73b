"""Sessions of people in browsers: a signed cookie each, and in the ledger what has been signed out.

A cookie holds the id of a token, a mark of the token's secret, and an id of the session. Signing out writes that id
into the ledger, so that a copy of the cookie opens nothing either, at any server of this ledger and after any restart.
"""

from __future__ import annotations

from typing import NamedTuple

from itsdangerous import BadSignature, URLSafeTimedSerializer

from quire.clock import new_id
from quire.errors import InputError
from quire.ledger.base import Ledger
from quire.model.codec import dump, parse
from quire.model.row import replace
from quire.model.side import Setting
from quire.surfaces.server.auth.tokens import Token

#: A setting for each token with which somebody signed out: the sessions that ended, and until when their cookies last.
ENDED = "session/"


class Session(NamedTuple):
    token_id: str
    #: What the token's secret was: after a revocation it is another.
    mark: str
    session_id: str


def mark_of(token: Token) -> str:
    return token.hash[:16]


def cookie_of(serializer: URLSafeTimedSerializer, token: Token) -> str:
    """Return the cookie of a new session that this token opens."""
    return str(serializer.dumps(Session(token.token_id, mark_of(token), new_id())))


def read(serializer: URLSafeTimedSerializer, cookie: str, seconds: float) -> Session | None:
    """Return what a cookie holds; None if we did not make it, if it is too old, or if an earlier version made it."""
    try:
        session = Session(*map(str, serializer.loads(cookie, max_age=int(seconds))))
    except (BadSignature, ValueError, TypeError):
        return None
    return session


async def end(ledger: Ledger, session: Session, seconds: float) -> None:
    """Keep that this session has ended, for as long as its cookie could open it."""
    for _ in range(10):
        now = await ledger.now()
        kept = await ledger.setting(ENDED + session.token_id) or Setting(ENDED + session.token_id, "{}", 0)
        ended = {id_: until for id_, until in parse(kept.value).items() if until > now}
        if session.session_id in ended:
            return
        ended[session.session_id] = now + seconds
        if await ledger.keep(replace(kept, value=dump(ended))):
            return
    raise InputError("others sign out at the same moment; sign out once more")


async def has_ended(ledger: Ledger, session: Session) -> bool:
    kept = await ledger.setting(ENDED + session.token_id)
    return kept is not None and session.session_id in parse(kept.value)
