"""Receipts that the ledger has not taken yet: kept until they land, and written to the disk of this machine meanwhile.

An act that happened is a fact, and its receipt is fenced by its intent alone. So a worker never gives it up: while the
ledger does not answer it sends the receipt again and again, and a later worker on this machine sends what a dead one
has left. A receipt is done with when it landed, or when the ledger says that there is no such intent.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from quire.errors import QuireError
from quire.ledger.base import Ledger
from quire.model.change import Applied, Change
from quire.model.receipt import Kind, Receipt, Stage
from quire.model.row import as_dict, replace

log = logging.getLogger("quire.worker")

_ENDED = frozenset({Stage.DONE, Stage.VOID})


def is_fact(change: Change) -> bool:
    """Whether the change says what became of acts, and nothing else: it lands whatever happened to its record."""
    if change.image is not None or not change.receipts:
        return False
    return all(receipt.kind is Kind.ONCE and receipt.stage in _ENDED for receipt in change.receipts)


class Spool:
    """The receipts of one worker that are not in the ledger yet, in a file. Without a directory they are in memory."""

    def __init__(self, ledger: Ledger, directory: str) -> None:
        self._ledger = ledger
        self._root = Path(directory) if directory and ledger.traits.durable else None
        self._file: Path | None = None
        self._kept: dict[str, Change] = {}

    def __bool__(self) -> bool:
        return bool(self._kept)

    async def begin(self, ledger_id: str, worker_id: str) -> None:
        """Send what workers of this machine have left that are gone."""
        if self._root is None:
            return
        folder = self._root / ledger_id
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / f"{worker_id}.receipts"
        gone = {row.worker_id for row in await self._ledger.workers() if row.closed is None}
        for path in sorted(folder.glob("*.receipts")):
            if path.stem not in gone and path != self._file:
                await self._send(path)

    async def _send(self, path: Path) -> None:
        changes = _read(path)
        if not changes:
            _remove(path)
            return
        verdicts = await self._ledger.commit(changes)
        for change, verdict in zip(changes, verdicts, strict=True):
            for receipt in change.receipts:
                what = f"the receipt of effect {receipt.name!r} of {receipt.record_id!r}, which {path.stem} left"
                if isinstance(verdict, Applied):
                    log.warning("%s has landed", what)
                else:
                    log.error("%s is not taken: %s", what, getattr(verdict, "reason", "its record has moved on"))
        _remove(path)

    def keep(self, changes: Sequence[Change]) -> None:
        """Write these down; they were refused by a ledger that does not answer."""
        new = [change for change in changes if is_fact(change) and change.change_id not in self._kept]
        if new:
            self._kept |= {change.change_id: change for change in new}
            self._write()

    def landed(self, changes: Sequence[Change]) -> None:
        """Forget what has its verdict."""
        if self._kept:
            before = len(self._kept)
            for change in changes:
                self._kept.pop(change.change_id, None)
            if len(self._kept) < before:
                self._write()

    def _write(self) -> None:
        if self._file is None:
            return
        try:
            if not self._kept:
                self._file.unlink(missing_ok=True)
                return
            beside = self._file.with_suffix(".new")
            with open(beside, "w", encoding="utf-8") as file:
                file.writelines(json.dumps(_as_json(change)) + "\n" for change in self._kept.values())
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, self._file)
        except OSError as error:
            log.warning("receipts cannot be kept in %s: %s; they are lost if this process ends now", self._file, error)


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)


def _as_json(change: Change) -> dict[str, Any]:
    receipts = [as_dict(receipt) for receipt in change.receipts]
    return {
        "change_id": change.change_id,
        "record_id": change.record_id,
        "version": change.version,
        "worker": change.worker,
        "receipts": receipts,
    }


def _read(path: Path) -> list[Change]:
    """Read the receipts of a file. One that was torn off in the middle of a write was not kept."""
    changes = []
    try:
        for line in path.read_text(encoding="utf-8").splitlines():
            kept = json.loads(line)
            change = Change(kept["change_id"], kept["record_id"], kept["version"], None, kept["worker"])
            receipts = [
                Receipt(**{**given, "kind": Kind(given["kind"]), "stage": Stage(given["stage"])})
                for given in kept["receipts"]
            ]
            changes.append(replace(change, receipts=tuple(receipts)))
    except (OSError, ValueError, KeyError, TypeError, QuireError) as error:
        log.warning("receipts in %s cannot be read: %s", path, error)
    return changes
