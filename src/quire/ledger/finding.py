"""From an address to a ledger. Stores are imported only when they are asked for."""

from __future__ import annotations

import re

from quire.clock import SYSTEM, Clock
from quire.errors import LedgerError
from quire.ledger.base import Ledger


def open_ledger(url: str, clock: Clock = SYSTEM) -> Ledger:
    """Return the ledger at ``url``, not connected yet: ``memory:``, ``sqlite:///path`` (or a path), ``postgresql://…``,
    ``sheets://SPREADSHEET_ID`` or the address of a spreadsheet as the browser shows it.
    """
    if url.startswith("https://docs.google.com/"):
        from quire.google.address import sheets_address

        url = sheets_address(url)
    scheme, _, rest = url.partition(":")
    if scheme == "memory":
        from quire.ledger.memory.ledger import MemoryLedger

        return MemoryLedger(clock)
    if scheme == "sqlite":
        path = rest.removeprefix("///") if rest.startswith("///") else rest.removeprefix("//")
        if not path:
            raise LedgerError(f"{url!r} names no file; write it like 'sqlite:///ledger.db'")
        return _sqlite(path, clock)
    if scheme in ("postgresql", "postgres"):
        from quire.ledger.postgres.ledger import PostgresLedger

        return PostgresLedger(url, clock=None if clock is SYSTEM else clock)
    if scheme == "sheets":
        from quire.ledger.sheets.ledger import SheetsLedger

        return SheetsLedger(url, clock)
    if "://" in url:
        known = "memory:, sqlite:///path, postgresql://…, sheets://SPREADSHEET_ID"
        raise LedgerError(f"{url!r} is not a ledger that Quire knows; it knows {known}")
    return _sqlite(url, clock)


def _sqlite(path: str, clock: Clock) -> Ledger:
    from quire.ledger.sqlite.ledger import SqliteLedger

    return SqliteLedger(path, clock)


def sqlite_path(url: str) -> str | None:
    """Return the file of a SQLite ledger; None: it is another kind of ledger."""
    scheme, colon, rest = url.partition(":")
    if scheme == "sqlite" and colon:
        return rest.removeprefix("///") if rest.startswith("///") else rest.removeprefix("//")
    if (scheme == "memory" and colon) or "://" in url:
        return None
    return url


def concealed(url: str) -> str:
    """Return the address without its passwords: before the host, up to the last @, or among the parameters."""
    shown = re.sub(r"(://[^/?#:@]*):[^/?#]*@", r"\1:…@", url)
    return re.sub(r"([?&](?:(?:ssl)?password|direct)=)[^&#]*", r"\1…", shown, flags=re.IGNORECASE)
