"""The projector as every surface makes it: one that also writes the results of missions, whoever runs it.

A projector without them would move the cursor past an ended mission, and nobody would write its result any more.
"""

from __future__ import annotations

from quire.agents.missions.result import files
from quire.clock import SYSTEM, Clock
from quire.folder.base import Folder
from quire.folder.projector import Projector
from quire.ledger.base import Ledger


def projector_of(ledger: Ledger, folder: Folder, clock: Clock = SYSTEM) -> Projector:
    """Writes this folder from this ledger. Both are open."""
    return Projector(ledger, folder, clock, shown=files)
