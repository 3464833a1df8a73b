"""Where each file of a workflow stands: ``Workflows/<workflow>/{README.md, state, artifacts, logs, locks, config}``.

Paths are relative to the folder, with ``/``. A path means one thing for ever, so a store that works by ids may remember
the id of each path; nothing is ever looked up by searching.
"""

from __future__ import annotations

import hashlib
from typing import Final

from quire.clock import iso
from quire.folder.names import Names
from quire.model.receipt import Receipt, key_of
from quire.model.row import replace

WORKFLOWS: Final = "Workflows"
ARCHIVE: Final = "Archive"
#: Raised when a file's shape changes in a way that a reader must know of.
SCHEMA: Final = 1

PARTS: Final = ("state", "artifacts", "artifacts/drafts", "logs", "locks", "config")


class Layout:
    """The places of one workflow's files."""

    def __init__(self, workflow: str, names: Names) -> None:
        self.workflow = workflow
        self.names = names
        self.base = f"{WORKFLOWS}/{names.encode(workflow)}"
        self.readme = f"{self.base}/README.md"
        self.table = f"{self.base}/state/state_table.csv"
        self.config = f"{self.base}/config"

    def directories(self) -> list[str]:
        return [f"{self.base}/{part}" for part in PARTS]

    def state(self, record_id: str) -> str:
        return f"{self.base}/state/state_{self.names.encode(record_id)}.json"

    def receipt(self, record_id: str, step: str) -> str:
        """Where the receipt of a step's effect stands, if no other receipt stands there already."""
        stem = self._receipt_stem(record_id, step)
        return f"{self.base}/artifacts/{stem}.json"

    def receipt_beside(self, receipt: Receipt) -> str:
        """Where a receipt stands whose first place is taken: by another effect of the step, visit or attempt."""
        stem = self._receipt_stem(receipt.record_id, receipt.step)
        own = hashlib.sha256(key_of(receipt.key, receipt.nonce).encode()).hexdigest()[:16]
        return f"{self.base}/artifacts/{stem}~{self.names.encode(receipt.name, 40)}~{own}.json"

    def _receipt_stem(self, record_id: str, step: str) -> str:
        return f"receipt_{self.names.encode(record_id, 110)}_{self.names.encode(step, 50)}"

    def lock(self, receipt: Receipt) -> str:
        """One file per key: a key of the user's own that looks like one of the engine's gets a mark."""
        text, own = dedupe_key(receipt)
        stem = self.names.encode(text)
        if own and (text.count("|") >= 3 or text.startswith("undo|")):
            stem += "~" + hashlib.sha256(receipt.key.encode()).hexdigest()[:16]
        return f"{self.base}/locks/lock_{stem}.lock"

    def log(self, run_id: str, started_at: float) -> str:
        """By the UTC date on which the run started, also if it ended after midnight."""
        return f"{self.base}/logs/{iso(started_at)[:10]}/{self.names.encode(run_id)}.json"


def parts_of(key: str) -> list[str]:
    """The parts from which ``key_of`` made this key."""
    parts, place = [], 0
    while place < len(key):
        colon = key.index(":", place)
        end = colon + 1 + int(key[place:colon])
        parts.append(key[colon + 1 : end])
        place = end
    return parts


def dedupe_key(receipt: Receipt) -> tuple[str, bool]:
    """The effect's key as people see it, and whether it is one of the user's own.

    ``workflow|record|step|effect|visit``, and within a loop, or for a second use, also ``|scope|count``. Within the
    parts ``|`` is written ``%7C``, so that no two keys look the same.
    """
    try:
        parts = parts_of(receipt.key)
    except ValueError:
        return receipt.key, True
    undo = parts[0] == "undo" and len(parts) == 2
    if undo:
        inner = replace(receipt, key=parts[1])
        text, own = dedupe_key(inner)
        return f"undo|{text}", own
    if len(parts) != 8:
        return parts[-1], True
    workflow, record_id, step, visit, scope, _, name, count = parts
    shown = [workflow, record_id, step, name, visit]
    if (scope, count) != ("", "0"):
        shown += [scope, count]
    return "|".join(part.replace("%", "%25").replace("|", "%7C") for part in shown), False
