"""The signed call that says "look now": what the script of a panel and the server must agree on, and who hears of it.

The panel of the process that is called looks at once. One in another process finds a hint in the ledger, which is
written seldom where writing is dear.
"""

from __future__ import annotations

import logging

from quire.errors import InputError, QuireError
from quire.ledger.base import Ledger
from quire.model.codec import dump, parse
from quire.model.receipt import Keyring
from quire.model.side import Setting
from quire.run.waits import signature

log = logging.getLogger(__name__)

#: The setting that says when the panel was woken last.
WOKE = "panel_woken"

#: The name under which the script signs; no hook can have it.
WAKE = "@wake"


def wake_secret(keyring: Keyring | None) -> str:
    """What the script signs with: derived as a hook's secret is, so the server derives the same."""
    if keyring is None:
        raise InputError("the client is not open; use it in a 'with' block")
    return signature(keyring, "server", f"hook/1/{WAKE}")


async def leave_hint(ledger: Ledger) -> None:
    """Note that somebody wants the panel to look. Only a hint: if it cannot be written, the panel looks by itself."""
    try:
        now, kept = await ledger.now(), await ledger.setting(WOKE)
        least = 1.0 if ledger.traits.poll_seconds <= 5.0 else 60.0
        if kept is None or not 0 <= now - float(parse(kept.value)["at"]) < least:
            await ledger.keep(Setting(WOKE, dump({"at": now}), kept.version if kept is not None else 0))
    except QuireError as error:
        log.info("the panel does not know that it was woken: %s", error)


async def last_hint(ledger: Ledger) -> int:
    """Which hint is the last: another than before means that somebody woke the panel."""
    kept = await ledger.setting(WOKE)
    return kept.version if kept is not None else 0
