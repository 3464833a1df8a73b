"""A receipt as a file: what people open to see what was done. Signed as in the ledger, written once.

What the effect returned stands under ``value``. Its fields, if it has any, stand beside the others too, so that
``published_url`` and the like are found where people look. Decisions read the ledger's receipt, never this copy.
"""

from __future__ import annotations

import json
from typing import Any, Final

from quire.clock import iso
from quire.folder.layout import dedupe_key
from quire.folder.text import laid_out
from quire.model.codec import parse
from quire.model.receipt import Kind, Receipt, Stage

#: What has a file: acts on the world outside, and their undoing, once they happened.
KINDS: Final = frozenset({Kind.ONCE, Kind.UNDO})
STAGES: Final = frozenset({Stage.DONE, Stage.UNDONE})


def has_file(receipt: Receipt) -> bool:
    return receipt.kind in KINDS and receipt.stage in STAGES


def fields(receipt: Receipt, workflow: str, run_id: str | None) -> dict[str, Any]:
    """The receipt as its file shows it."""
    value = parse(receipt.value) if receipt.value else None
    done_at = iso(receipt.done_at)
    shown: dict[str, Any] = {
        "record_id": receipt.record_id,
        "step": receipt.step,
        "dedupe_key": dedupe_key(receipt)[0],
        "published_url": _url(value),
        "published_at": done_at,
        "run_id": run_id,
        "workflow": workflow,
        "effect": receipt.name,
        "kind": receipt.kind,
        "visit": receipt.visit,
        "intended_at": iso(receipt.at),
        "done_at": done_at,
        "worker": receipt.worker,
        "key": receipt.key,
        "act_key": receipt.known_as,
        "fn": receipt.fn,
        "args_hash": receipt.args_hash,
        "nonce": receipt.nonce,
        "key_id": receipt.key_id,
        "signature": receipt.signature,
    }
    if isinstance(value, dict):
        for name, inner in value.items():
            if shown.get(name) is None and name not in ("run_id", "value"):
                shown[name] = inner
    return shown


def receipt_file(receipt: Receipt, workflow: str, run_id: str | None) -> bytes:
    """The content of ``receipt_<record>_<step>.json``; the value stands last, on one line, exactly as it was signed."""
    return laid_out(fields(receipt, workflow, run_id), {"value": receipt.value or "null"})


def key_in(content: bytes) -> tuple[str, str] | None:
    """Which receipt the file says it is: its key and nonce; None if it is none."""
    try:
        shown = json.loads(content)
        return str(shown["key"]), str(shown["nonce"])
    except (ValueError, KeyError, TypeError):
        return None


def _url(value: Any) -> str | None:
    if isinstance(value, dict):
        value = next((value[name] for name in ("published_url", "url", "link") if isinstance(value.get(name), str)), "")
    is_url = isinstance(value, str) and value.startswith(("https://", "http://"))
    return value if is_url else None
