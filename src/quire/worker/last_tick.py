"""When the last slice of work by a periodic caller was, and how often one is expected."""

from __future__ import annotations

from typing import Any

from quire.ledger.base import Ledger
from quire.model.codec import dump, parse
from quire.model.side import Setting

LAST_TICK = "last_tick"


async def ticked(ledger: Ledger, period: float) -> None:
    """Keep when the last tick was, and how often one is expected."""
    for _ in range(5):
        kept = await ledger.setting(LAST_TICK)
        value = dump({"at": await ledger.now(), "period": period})
        if await ledger.keep(Setting(LAST_TICK, value, kept.version if kept is not None else 0)):
            return


def comes(tick: tuple[float, float], now: float) -> bool:
    """Return whether the periodic caller still comes: at most one of its calls is missing."""
    at, period = tick
    return now - at <= 2 * period


async def last_tick(ledger: Ledger) -> tuple[float, float] | None:
    """Return when the last tick was, and how often one is expected; None: there has never been one."""
    kept = await ledger.setting(LAST_TICK)
    if kept is None:
        return None
    value: dict[str, Any] = parse(kept.value)
    return float(value["at"]), float(value["period"])
