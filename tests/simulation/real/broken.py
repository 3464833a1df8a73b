"""An engine that is broken on purpose, in every process of a run: the variable names the breakage."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext

from tests.simulation.breakages import broken, named

BREAKAGE = "QUIRE_SIMULATION_BREAKAGE"


def broken_as_asked() -> AbstractContextManager[None]:
    name = os.environ.get(BREAKAGE, "")
    return broken(named(name)) if name else nullcontext()
