"""What tests of workflows and of ledgers need. Shipped with the package; nothing else in it imports this."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quire.testing.clock import ToldClock
    from quire.testing.conformance import LedgerConformance
    from quire.testing.faults import HoldingLedger, LossyLedger
    from quire.testing.trial import Trial, TrialRecord, every_kill

#: Each name and the module that has it, imported when it is first asked for: pytest, for one, is needed by some only.
_MODULES = {
    "HoldingLedger": "quire.testing.faults",
    "LedgerConformance": "quire.testing.conformance",
    "LossyLedger": "quire.testing.faults",
    "ToldClock": "quire.testing.clock",
    "Trial": "quire.testing.trial",
    "TrialRecord": "quire.testing.trial",
    "every_kill": "quire.testing.trial",
}

__all__ = ["HoldingLedger", "LedgerConformance", "LossyLedger", "ToldClock", "Trial", "TrialRecord", "every_kill"]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
