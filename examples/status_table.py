"""The plain status table: states without functions, moved by people or programs, with strict rules.

quire up examples/status_table.py
quire start tasks what="water the plants" --id t1
quire move t1 IN_PROGRESS
quire move t1 PENDING        # exit 3: names both states, and the legal ones
"""

from __future__ import annotations

from quire import Workflow

tasks = Workflow("tasks")
tasks.state("PENDING", then=["IN_PROGRESS", "CANCELLED"])
tasks.state("IN_PROGRESS", then=["COMPLETED", "FAILED"])
tasks.state("FAILED", then="PENDING")
tasks.state("COMPLETED")
tasks.state("CANCELLED")
