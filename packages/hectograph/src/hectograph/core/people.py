"""Who calls: the bearer token says which account, and may carry scopes and an OAuth client.

A token that nobody declared belongs to the emulator's account and may do everything. A token that is a mail address,
``Bearer ann@example.com``, belongs to that account. ``POST /emulator/accounts`` declares any other token:

    {"token": "t1", "email": "ann@example.com", "scopes": ["https://www.googleapis.com/auth/documents"], "client": "c1"}

``"valid": false`` makes a token that has run out: Google refuses it with 401.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

#: The OAuth client of a token that nobody declared.
CLIENT = "emulated-client"

_KEYS = frozenset({"token", "email", "scopes", "client", "valid"})


@dataclass(frozen=True)
class Caller:
    token: str
    email: str
    #: None where the token carries no list: such a token may do everything.
    scopes: frozenset[str] | None = None
    #: The OAuth client. What an application keeps for itself belongs to its client.
    client: str = CLIENT
    valid: bool = True
    #: It was declared as a service account that acts for nobody: it has no mailbox and cannot invite.
    robot: bool = False
    #: When it runs out, where it does.
    expires: datetime | None = None

    def lives(self, now: datetime) -> bool:
        return self.valid and (self.expires is None or self.expires > now)

    def ended(self) -> Caller:
        return replace(self, valid=False)

    def json(self) -> dict[str, Any]:
        out: dict[str, Any] = {"token": self.token, "email": self.email, "client": self.client, "valid": self.valid}
        return out if self.scopes is None else {**out, "scopes": sorted(self.scopes)}


def number_of(email: str) -> str:
    """Return the number under which Google knows an account."""
    return str(10**20 + int.from_bytes(hashlib.sha1(email.lower().encode()).digest()[:8], "big"))


class People:
    """The tokens that are known, and what ``signin`` keeps about them."""

    def __init__(self) -> None:
        self.declared: dict[str, Caller] = {}
        #: What is declared about OAuth clients, delegation and impersonation.
        self.oauth: dict[str, dict[str, Any]] = {"clients": {}, "delegation": {}, "token_creators": {}}
        self.codes: dict[str, dict[str, Any]] = {}
        self.refresh: dict[str, dict[str, Any]] = {}
        #: The scopes that an account has granted to a client, by both.
        self.granted: dict[str, list[str]] = {}

    def known(self, account: str) -> list[str]:
        """Return the accounts that somebody has named."""
        return sorted({account, *(one.email for one in self.declared.values())})

    def dump(self) -> Any:
        callers = [
            [one.token, one.email, None if one.scopes is None else sorted(one.scopes), one.client, one.valid, one.robot,
             one.expires and one.expires.isoformat()]
            for one in self.declared.values()
        ]  # fmt: skip
        return {"callers": callers, "oauth": self.oauth, "refresh": self.refresh, "granted": self.granted}

    def load(self, held: Any) -> None:
        self.oauth, self.refresh, self.granted = held["oauth"], held["refresh"], held["granted"]
        for token, email, scopes, client, valid, robot, expires in held["callers"]:
            allowed = None if scopes is None else frozenset(scopes)
            until = expires and datetime.fromisoformat(expires)
            self.declared[token] = Caller(token, email, allowed, client, valid, robot, until)

    def caller(self, token: str, account: str) -> Caller:
        """Return whose token this is; ``account`` is whose it is unless something says otherwise."""
        found = self.declared.get(token)
        if found is not None:
            return found
        return Caller(token, token if "@" in token else account)

    def declare(self, given: Mapping[str, Any]) -> Caller:
        unknown = given.keys() - _KEYS
        if unknown or not given.get("token") or "@" not in str(given.get("email", "")):
            raise ValueError(
                f"a token needs token and email, and may have scopes, client, valid; given: {sorted(given)}"
            )
        scopes = given.get("scopes")
        caller = Caller(
            str(given["token"]),
            str(given["email"]),
            None if scopes is None else frozenset(map(str, scopes)),
            str(given.get("client", CLIENT)),
            bool(given.get("valid", True)),
            str(given["email"]).endswith(".gserviceaccount.com"),
        )
        self.declared[caller.token] = caller
        return caller
