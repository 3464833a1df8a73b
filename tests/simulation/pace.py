"""How fast a plan is lived: so many seconds of the clock are one second of the plan.

On told time a second is a second. Real processes on real time live faster: the variable QUIRE_SIMULATION_PACE, which
they have from the process that starts them, says so.
"""

from __future__ import annotations

import os

PACE = float(os.environ.get("QUIRE_SIMULATION_PACE", "1"))
