"""A lock file: one act that is under way, or in doubt. It shows what the ledger locks; it locks nothing itself."""

from __future__ import annotations

from typing import Any

from quire.clock import iso
from quire.folder.layout import dedupe_key
from quire.folder.text import laid_out
from quire.model.receipt import Receipt


def fields(intent: Receipt, run_id: str | None) -> dict[str, Any]:
    return {
        "dedupe_key": dedupe_key(intent)[0],
        "created_at": iso(intent.at),
        "run_id": run_id,
        "owner": intent.worker,
        "expires_at": iso(intent.act_by) or None,
        "record_id": intent.record_id,
        "step": intent.step,
        "effect": intent.name,
        "key": intent.key,
    }


def lock_file(intent: Receipt, run_id: str | None) -> bytes:
    """The content of ``lock_<dedupe key>.lock``. After ``expires_at`` nobody acts any more; then it is in doubt."""
    return laid_out(fields(intent, run_id))
