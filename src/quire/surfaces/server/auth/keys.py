"""Keys that others sign with: fetched, kept, and fetched anew when they are rotated; and tokens checked with them.

The only module that knows the JWT library. The ledger's clock decides what has expired, not this machine's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from quire.clock import Clock
from quire.errors import InputError
from quire.surfaces.server.auth.gate import is_loopback
from quire.surfaces.server.refusal import Refusal

GOOGLE_KEYS = "https://www.googleapis.com/oauth2/v3/certs"
GOOGLE_ISSUERS = ("https://accounts.google.com", "accounts.google.com")

#: Keys are fetched again after this long; those that are there serve so long if their owner does not answer.
FRESH_SECONDS, STALE_SECONDS = 3600.0, 86400.0
#: An unknown key makes one look whether there are new ones, at most so often: forged tokens cannot make a flood of it.
LOOK_SECONDS = 60.0
_SECONDS = 10.0
_MOST_BYTES = 512 * 1024
_ALGORITHMS = ["RS256", "ES256", "EdDSA"]
#: Clocks differ by so much.
_SLACK = 30.0


def checked_url(url: str, what: str) -> str:
    """Return the address, refused unless what comes from it can be believed: https, or this machine."""
    parts = urlsplit(url)
    if parts.scheme == "https" and parts.hostname:
        return url
    if parts.scheme == "http" and is_loopback(parts.hostname or ""):
        return url
    raise InputError(f"{what} must be an https address, not {url!r}")


async def fetched(url: str, form: Mapping[str, str] | None = None, auth: tuple[str, str] | None = None) -> Any:
    """JSON from an address: got, or answered to a form. Redirects are not followed."""
    import httpx2

    try:
        async with httpx2.AsyncClient(timeout=_SECONDS, follow_redirects=False) as http:
            if form is None:
                answer = await http.get(url)
            else:
                basic = httpx2.BasicAuth(*auth) if auth is not None else None
                answer = await http.post(url, data=dict(form), auth=basic or httpx2.USE_CLIENT_DEFAULT)
            if answer.status_code != 200 or len(answer.content) > _MOST_BYTES:
                raise Refusal(503, "Provider", f"{urlsplit(url).netloc} answers {answer.status_code}")
            return answer.json()
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        text = f"{urlsplit(url).netloc} does not answer ({type(error).__name__})"
        raise Refusal(503, "Provider", text) from error


class _Kept(NamedTuple):
    keys: dict[str, Any]
    at: float
    looked_at: float


class Keys:
    """Sets of keys by address."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: dict[str, _Kept] = {}

    async def of(self, url: str, key_id: str) -> Any:
        """Return the key of this id; refused if its owner has none."""
        now = self._clock.boottime()
        kept = self._kept.get(url)
        wanted = kept is None or now - kept.at >= FRESH_SECONDS or key_id not in kept.keys
        if wanted and (kept is None or now - kept.looked_at >= LOOK_SECONDS):
            try:
                kept = _Kept(keys_of(await fetched(url)), now, now)
            except Refusal:
                if kept is None or now - kept.at >= STALE_SECONDS:
                    raise
                kept = kept._replace(looked_at=now)
            self._kept[url] = kept
        if kept is None or key_id not in kept.keys:
            raise Refusal(403, "Forged", "the token is signed with a key that its issuer does not have")
        return kept.keys[key_id]


def keys_of(jwks: Any) -> dict[str, Any]:
    """Return the keys of a JSON Web Key Set, by id."""
    import jwt

    try:
        return {str(key.key_id): key for key in jwt.PyJWKSet.from_dict(jwks).keys}
    except (jwt.PyJWTError, AttributeError, TypeError, KeyError) as error:
        raise Refusal(503, "Provider", f"what came is not a JSON Web Key Set ({type(error).__name__})") from error


def key_id(token: str) -> str:
    import jwt

    try:
        return str(jwt.get_unverified_header(token).get("kid"))
    except jwt.PyJWTError as error:
        raise Refusal(403, "Forged", f"the token is refused: {error}") from None


def claims(token: str, key: Any, *, audience: str, issuers: Sequence[str], now: float) -> dict[str, Any]:
    """What a token says, once everything about it holds: signature, audience, issuer, time."""
    import jwt

    options: Any = {"require": ["exp", "iat", "aud"], "verify_exp": False, "verify_iat": False, "verify_nbf": False}
    try:
        claims: dict[str, Any] = jwt.decode(token, key, algorithms=_ALGORITHMS, audience=audience, options=options)
        begins = max(float(claims["iat"]) - 300, float(claims.get("nbf", 0.0)) - _SLACK)
        ends = float(claims["exp"]) + _SLACK
    except (jwt.PyJWTError, TypeError, ValueError) as error:
        raise Refusal(403, "Forged", f"the token is refused: {error}") from None
    if issuers and claims.get("iss") not in issuers:
        raise Refusal(403, "Forged", "the token is another issuer's")
    if not begins <= now < ends:
        raise Refusal(403, "Expired", "the token has expired")
    return claims
