"""Who calls: the bearer token says which account, and may carry scopes and an OAuth client.

A token that nobody declared belongs to the emulator's account and may do everything. A token that is a mail address,
``Bearer ann@example.com``, belongs to that account. ``POST /emulator/accounts`` declares any other token:

    {"token": "t1", "email": "ann@example.com", "scopes": ["https://www.googleapis.com/auth/documents"], "client": "c1"}

``"valid": false`` makes a token that has run out: Google refuses it with 401.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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

    def json(self) -> dict[str, Any]:
        out: dict[str, Any] = {"token": self.token, "email": self.email, "client": self.client, "valid": self.valid}
        return out if self.scopes is None else {**out, "scopes": sorted(self.scopes)}


class People:
    """The tokens that are declared."""

    def __init__(self) -> None:
        self.declared: dict[str, Caller] = {}

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
