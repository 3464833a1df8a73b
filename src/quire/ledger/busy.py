"""A ledger whose lock somebody holds for too long: how long a write waits for it, and what it says then."""

from __future__ import annotations

import os

from quire.errors import InputError, LedgerUnavailable

#: So many seconds a write waits for a lock, instead of the store's own time.
VARIABLE = "QUIRE_LOCK_TIMEOUT"
BUSY = "System is currently busy processing another request. Please try again."


def lock_timeout(default: float) -> float:
    """Return how long a write waits for other writers, in seconds."""
    given = os.environ.get(VARIABLE, "")
    if not given:
        return default
    try:
        span = float(given)
    except ValueError:
        span = 0.0
    if not 0.0 < span <= 3600.0:
        raise InputError(f"{VARIABLE} is {given!r}; give seconds, like {VARIABLE}=10")
    return span


def busy(what: str) -> LedgerUnavailable:
    """Return the error of a write that waited in vain. ``what``: what is locked."""
    return LedgerUnavailable(f"{BUSY} ({what} was locked for too long by another writer; nothing was changed)")
