"""Marks: what a worker saw acknowledged, kept outside the ledger, so that one that went back in time is noticed.

Before a worker acts on the world, it makes its mark durable in a directory of its machine: the newest changes that the
ledger acknowledged to it, the intents on which it acts, and which server answered. It looks for these at its start
(also for those of other workers of this machine) and after each interruption. One that is missing means that the ledger
lacks acknowledged changes: claims stop, and people hear of it.

One write is under way at a time, and acts that begin meanwhile share the next one.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from quire.clock import SYSTEM, Clock
from quire.ledger.base import Ledger
from quire.ledger.lost import Lost, declare, loss_of
from quire.model.change import Applied, Verdict
from quire.model.record import Record

log = logging.getLogger("quire.worker")

#: The newest records are enough: a ledger that has the last acknowledged change has those before it.
NEWEST = 8
#: Marks of other processes that are older are not looked for: their records may be forgotten by now.
OLD_SECONDS = 30 * 86400.0


class Marks:
    """The mark of one worker. ``directory`` "": nothing is kept."""

    def __init__(self, ledger: Ledger, clock: Clock, directory: str) -> None:
        self._ledger = ledger
        self._clock = clock
        self._root = Path(directory) if directory and ledger.traits.durable and ledger.traits.goes_back else None
        self._file: Path | None = None
        self._server = ""
        #: The newest acknowledged image of each of the newest records: its version, the length and the end of its log.
        self._records: dict[str, tuple[int, int, str]] = {}
        self._acts: dict[str, str] = {}
        self._writing: asyncio.Task[None] | None = None
        self._next: asyncio.Task[None] | None = None
        self._seen = 0
        self._read_at = 0.0
        #: The loss that goes on; None: none is known. It is read again when this was set to False.
        self.loss: Lost | None = None
        self.heard = False

    async def begin(self, ledger_id: str, worker_id: str) -> None:
        """Look for what this worker, and those before it on this machine, saw acknowledged."""
        self._seen = self._ledger.interruptions
        if self._root is not None:
            folder = self._root / ledger_id
            folder.mkdir(parents=True, exist_ok=True)
            self._file = folder / f"{worker_id}.json"
            await self._look(list(_marks_in(folder)), worker_id)
        else:
            await self._hear()

    async def check(self, worker_id: str) -> Lost | None:
        """Look again if the connection was interrupted. Return a loss that was found now."""
        if self._seen == self._ledger.interruptions:
            if not self.heard or self.loss is not None:
                await self._hear()
            return None
        before = self.loss
        seen = self._ledger.interruptions
        await self._look([self._mark()] if self._records or self._acts else [], worker_id)
        self._seen = seen
        return self.loss if self.loss is not None and before is None else None

    async def _look(self, marks: Sequence[dict[str, Any]], worker_id: str) -> None:
        known, _ = await loss_of(self._ledger)
        ended = known.ended_at if known is not None else 0.0
        server = await self._ledger.server_identity()
        found = await missing(self._ledger, [mark for mark in marks if mark["at"] > ended])
        before, self._server = self._server, server
        if found is not None and (known is None or known.ended_at):
            now = await self._ledger.now()
            records, acts, since = found
            lost = Lost(now, since, worker_id, records, acts, (before, server))
            log.error("%s", lost.sentence)
            await declare(self._ledger, lost)
        await self._hear()

    async def _hear(self) -> None:
        known, _ = await loss_of(self._ledger)
        self.loss = known if known is not None and not known.ended_at else None
        self.heard = True

    async def went_back(self, created_at: float) -> bool:
        """Whether what a record of this age does may have been done before, in a part of the ledger that is gone."""
        if not self.heard:
            await self._hear()
        return self.loss is not None and created_at <= self.loss.at

    def acknowledged(self, verdicts: Sequence[Verdict]) -> None:
        """Note what the ledger acknowledged."""
        if self._root is None:
            return
        for verdict in verdicts[-NEWEST:]:
            if isinstance(verdict, Applied):
                row = verdict.record
                self._records.pop(row.record_id, None)
                self._records[row.record_id] = (row.version, row.log_seq, row.log_hash)
        while len(self._records) > NEWEST:
            del self._records[next(iter(self._records))]

    async def before_act(self, key: str, record_id: str) -> None:
        """Return when the mark with this act is durable."""
        if self._root is None:
            return
        self._acts[key] = record_id
        if self._writing is None or self._writing.done():
            self._writing = asyncio.ensure_future(self._write())
            await asyncio.shield(self._writing)
            return
        if self._next is None or self._next.done():
            self._next = asyncio.ensure_future(self._write_after(self._writing))
        await asyncio.shield(self._next)

    def acted(self, key: str) -> None:
        """Leave an act out of the next mark: what became of it is in the ledger."""
        self._acts.pop(key, None)

    async def _write_after(self, before: asyncio.Task[None]) -> None:
        await asyncio.wait({before})
        self._writing = asyncio.current_task()
        await self._write()

    async def _write(self) -> None:
        await SYSTEM.sleep(0)  # acts that begin in this turn of the loop share the write
        text = json.dumps(self._mark())
        try:
            await asyncio.get_running_loop().run_in_executor(None, self._written, text)
        except OSError as error:
            log.warning("the mark %s cannot be written: %s; a ledger that goes back is not noticed", self._file, error)

    def _mark(self) -> dict[str, Any]:
        now = self._clock.now()
        return {"at": now, "server": self._server, "records": dict(self._records), "acts": dict(self._acts)}

    def _written(self, text: str) -> None:
        assert self._file is not None
        beside = self._file.with_suffix(".new")
        with open(beside, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fdatasync(file.fileno()) if hasattr(os, "fdatasync") else os.fsync(file.fileno())
        os.replace(beside, self._file)

    async def end(self) -> None:
        """Keep the last mark for whoever works on this machine next."""
        if self._root is not None and self._file is not None and self._records:
            await self._write()


def _marks_in(folder: Path) -> Iterator[dict[str, Any]]:
    """Read the marks of a ledger on this machine, and remove all but the newest ones."""
    newest = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in newest[50:]:
        path.unlink(missing_ok=True)
    for path in newest[:50]:
        with suppress(OSError, ValueError):
            yield json.loads(path.read_text(encoding="utf-8"))


async def missing(
    ledger: Ledger, marks: Sequence[dict[str, Any]]
) -> tuple[tuple[str, ...], tuple[str, ...], float] | None:
    """Return the records and acts of these marks that the ledger lacks, and since when; None: it lacks nothing."""
    ids = sorted({record_id for mark in marks for record_id in mark["records"]})
    keys = sorted({key for mark in marks for key in mark["acts"]})
    rows = {row.record_id: row for row in await ledger.load(ids)} if ids else {}
    there = {receipt.key for receipt in await ledger.receipts(keys=keys)} if keys else set()
    records: dict[str, float] = {}
    acts: dict[str, float] = {}
    for mark in marks:
        for record_id, seen in mark["records"].items():
            if _is_missing(rows.get(record_id), *seen):
                records[record_id] = min(mark["at"], records.get(record_id, mark["at"]))
        for key in mark["acts"].keys() - there:
            acts[key] = min(mark["at"], acts.get(key, mark["at"]))
    if not records and not acts:
        return None
    return tuple(records), tuple(acts), min([*records.values(), *acts.values()])


def _is_missing(row: Record | None, version: int, log_seq: int, log_hash: str) -> bool:
    """Whether the record is not what it was, nor what could have come of that."""
    if row is None or row.version < version or row.log_seq < log_seq:
        return True
    return row.log_seq == log_seq and row.log_hash != log_hash
