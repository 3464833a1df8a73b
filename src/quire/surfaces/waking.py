"""The signed call that says "look now": what the script of a panel and the server must agree on."""

from __future__ import annotations

from quire.errors import InputError
from quire.model.receipt import Keyring
from quire.runtime.waiting import signature

#: The name under which the script signs; no hook can have it.
WAKE = "@wake"


def wake_secret(keyring: Keyring | None) -> str:
    """What the script signs with: derived as a hook's secret is, so the server derives the same."""
    if keyring is None:
        raise InputError("the client is not open; use it in a 'with' block")
    return signature(keyring, "server", f"hook/1/{WAKE}")
