"""Locks and reads the rows of one transaction.

All verbs take their locks in one order: control, caps and rates, workers, records by id, receipts, fan-ins. A row that
is read without a lock is read by a statement after the locks, which therefore sees what was committed before them
(protocol 4).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from quire.ledger import columns as rows
from quire.ledger.blobs import resolved
from quire.ledger.postgres.pages import log_of, of_place
from quire.ledger.postgres.view import View
from quire.ledger.postgres.want import Want
from quire.ledger.postgres.wire import Answer, Param, Wire, array
from quire.model.receipt import Receipt
from quire.model.record import SIDE_FIELDS, Record
from quire.model.row import from_values, replace
from quire.model.side import Bucket, Fanin, Signal, Worker

RECORD = rows.columns(Record)
RECEIPT = rows.columns(Receipt)
READ_RECORDS = f"SELECT {RECORD} FROM records WHERE record_id = ANY($1::text[])"
READ_HELD = f"SELECT {RECORD} FROM records WHERE status = 'RUNNING' AND worker = ANY($1::text[])"

_LOCK_RECORDS = f"{READ_RECORDS} ORDER BY record_id FOR UPDATE"
_LOCK_SIDE_FIELDS = (
    f"SELECT record_id, version, {', '.join(SIDE_FIELDS)} FROM records WHERE record_id = ANY($1::text[]) "
    "ORDER BY record_id FOR UPDATE"
)
_LOCK_HELD = f"{READ_HELD} ORDER BY record_id FOR UPDATE"
_LOCK_RECEIPTS = f"SELECT {RECEIPT} FROM receipts WHERE key = ANY($1::text[]) ORDER BY key FOR UPDATE"
_LOCK_FANINS = (
    f"SELECT {rows.columns(Fanin)} FROM fanins WHERE parent_id = ANY($1::text[]) "
    "ORDER BY parent_id, generation FOR UPDATE"
)
_READ_WORKERS = f"SELECT {rows.columns(Worker)} FROM workers WHERE worker_id = ANY($1::text[])"
_LOCK_WORKERS = f"{_READ_WORKERS} ORDER BY worker_id FOR UPDATE"
_READ_INTENTS = f"SELECT {RECEIPT} FROM receipts WHERE record_id = ANY($1::text[]) AND stage = 'intended'"
_READ_SIGNALS_OF = (
    f"SELECT {rows.columns(Signal)} FROM signals WHERE record_id = ANY($1::text[]) AND taken_by IS NULL ORDER BY seq"
)
_READ_SIGNALS = f"SELECT {rows.columns(Signal)} FROM signals WHERE signal_id = ANY($1::text[])"
_READ_BUCKETS = f"SELECT {rows.columns(Bucket)} FROM buckets WHERE name = ANY($1::text[])"
_READ_RUNNING = """
    SELECT workflow, step, count(*) FROM records WHERE status = 'RUNNING' AND workflow = ANY($1::text[]) GROUP BY 1, 2
"""
_FIRST = "SELECT min(version) FROM unnest($1::text[], $2::bigint[]) AS of (id, version) WHERE id = chain.record_id"
_READ_CHANGES = f"""
    {log_of("SELECT DISTINCT unnest($1::text[]) AS record_id", as_long_as=f"{of_place('version')} >= ({_FIRST})")}
    SELECT DISTINCT ON (record_id, version) record_id, version, change_id
    FROM unnest($1::text[], $2::bigint[]) AS named (record_id, version) JOIN log USING (record_id, version)
    ORDER BY record_id, version, n
"""
_READ_LINES = f"""
    {log_of("SELECT DISTINCT unnest($1::text[]) AS record_id")}
    SELECT DISTINCT record_id, change_id
    FROM unnest($1::text[], $2::text[]) AS named (record_id, change_id) JOIN log USING (record_id, change_id)
"""
READ_BLOBS = "SELECT hash, text FROM blobs WHERE hash = ANY($1::text[])"


class Reading:
    """Sends the statements that fill a view, and takes their answers."""

    def __init__(self, view: View, wire: Wire) -> None:
        self.view = view
        self.wire = wire
        self._asked: list[tuple[int, Callable[[Answer], None]]] = []
        #: Rows whose long values are blobs: the container, the key, and the type.
        self._referring: list[tuple[Any, Any, type[Any]]] = []
        #: Records whose row is locked, but not read yet.
        self._unread: set[str] = set()

    def ask(self, sql: str, keys: Iterable[str], take: Callable[[Answer], None]) -> None:
        if texts := sorted(keys):
            self._asked.append((self.wire.send(sql, array("text", texts)), take))

    def want(self, want: Want, images: dict[str, Record]) -> None:
        """Lock and read all of ``want``. ``images``: records as this process left them, not to be read again."""
        want.mark_absent(self.view)
        self.ask(_LOCK_WORKERS, want.workers, self.take_workers)
        if known := want.records & images.keys():
            self.ask(_LOCK_SIDE_FIELDS, want.records, lambda answer: self.take_side_fields(answer, images))
            self.ask(READ_RECORDS, want.records - known - want.unborn, self.take_records)
        else:
            self.ask(_LOCK_RECORDS, want.records, self.take_records)
        self.ask(_LOCK_HELD, want.held, self.take_held)
        self.ask(_LOCK_RECEIPTS, want.receipts, self.take_receipts)
        self.ask(_LOCK_FANINS, want.fanins, self.take_fanins)
        self.ask(_READ_INTENTS, want.intents, self.take_intents)
        self.ask(_READ_SIGNALS_OF, want.waiting, self.take_waiting)
        self.ask(_READ_SIGNALS, want.signals, self.take_signals)
        self.ask(_READ_WORKERS, want.quiet - want.workers, self.take_workers)
        self.ask(_READ_BUCKETS, want.buckets, self.take_buckets)
        self.ask(_READ_RUNNING, {workflow for workflow, _ in want.caps}, self.take_running)
        self._ask_changes(want.changes)
        self._ask_lines(want.lines)

    def _ask_changes(self, pairs: Iterable[tuple[str, int]]) -> None:
        if listed := sorted(pairs):
            ids, versions = zip(*listed, strict=True)
            place = self.wire.send(_READ_CHANGES, array("text", ids), array("bigint", versions))
            self._asked.append((place, self.take_changes))

    def _ask_lines(self, pairs: Iterable[tuple[str, str]]) -> None:
        if listed := sorted(pairs):
            ids, changes = zip(*listed, strict=True)
            place = self.wire.send(_READ_LINES, array("text", ids), array("text", changes))
            self._asked.append((place, self.take_lines))

    async def done(self) -> list[Answer]:
        """Wait for the answers to all that was sent, and fill the view."""
        answers = await self.wire.flush()
        asked, self._asked = self._asked, []
        for place, take in asked:
            take(answers[place])
        if self._unread:
            self.wire.send(READ_RECORDS, array("text", sorted(self._unread)))
            self.take_records((await self.wire.flush())[0])
        await self.put_blobs()
        return answers

    async def all(self, type_: type[Any], make: Callable[[Sequence[Any]], Any], sql: str, *params: Param) -> list[Any]:
        """Return the rows of one statement, with their long values."""
        found: list[Any] = []
        for row in await self.wire.ask(sql, *params):
            found.append(None)
            self._keep(found, len(found) - 1, type_, make(row))
        await self.put_blobs()
        return found

    def _keep(self, container: Any, key: Any, type_: type[Any], row: Any) -> None:
        container[key] = row
        if rows.has_reference(row, type_):
            self._referring.append((container, key, type_))

    async def put_blobs(self) -> None:
        """Put long values back into the rows that were read."""
        referring, self._referring = self._referring, []
        if not referring:
            return
        references = {ref for container, key, type_ in referring for ref in rows.references([container[key]], type_)}
        blobs = dict(await self.wire.ask(READ_BLOBS, array("text", sorted(references))))
        for container, key, type_ in referring:
            container[key] = rows.with_blobs(container[key], type_, lambda ref, where: resolved(ref, blobs, where))

    def take_records(self, answer: Answer) -> None:
        for values in answer.rows():
            self._keep(self.view.records, values[0], Record, rows.record_of(values))
            self._unread.discard(values[0])

    def take_side_fields(self, answer: Answer, images: dict[str, Record]) -> None:
        """Complete the images that this process has, if their version and log are the same. Other rows are read."""
        for row in answer.rows():
            known = images.get(row[0])
            side = dict(zip(SIDE_FIELDS, row[2:], strict=True))
            if known is None or known.version != row[1] or known.log_hash != side["log_hash"]:
                self._unread.add(row[0])
            else:
                self.view.records[row[0]] = replace(known, **side)

    def take_due(self, answer: Answer) -> dict[int, list[str]]:
        """Return the ids of claimable records by the number of their slot, and keep the rows."""
        due: dict[int, list[str]] = {}
        for number, *values in answer.rows():
            self._keep(self.view.records, values[0], Record, rows.record_of(values))
            due.setdefault(number, []).append(values[0])
        return due

    def take_held(self, answer: Answer) -> None:
        for values in answer.rows():
            self.view.held.append(rows.record_of(values))
            place = len(self.view.held) - 1
            self._keep(self.view.held, place, Record, self.view.held[place])
            self._keep(self.view.records, values[0], Record, self.view.held[place])

    def take_receipts(self, answer: Answer) -> None:
        for values in answer.rows():
            self._keep(self.view.receipts, values[0], Receipt, rows.receipt_of(values))

    def take_intents(self, answer: Answer) -> None:
        for values in answer.rows():
            receipt = rows.receipt_of(values)
            listed = self.view.intents_of[receipt.record_id]
            listed.append(receipt)
            self._keep(listed, len(listed) - 1, Receipt, receipt)

    def take_fanins(self, answer: Answer) -> None:
        for values in answer.rows():
            self.view.fanins_of[values[0]].append(rows.fanin_of(values))

    def take_waiting(self, answer: Answer) -> None:
        for values in answer.rows():
            signal = from_values(Signal, values)
            listed = self.view.signals_of[signal.record_id]
            listed.append(signal)
            self._keep(listed, len(listed) - 1, Signal, signal)

    def take_signals(self, answer: Answer) -> None:
        for values in answer.rows():
            self.view.known_signals[values[0]] = from_values(Signal, values)

    def take_workers(self, answer: Answer) -> None:
        for values in answer.rows():
            self.view.workers[values[0]] = from_values(Worker, values)

    def take_buckets(self, answer: Answer) -> None:
        for values in answer.rows():
            self.view.buckets[values[0]] = from_values(Bucket, values)

    def take_running(self, answer: Answer) -> None:
        counts = self.view.counts
        for workflow, step, count in answer.rows():
            for key in ((workflow, step), (workflow, None)):
                if key in counts:
                    counts[key] += count

    def take_lines(self, answer: Answer) -> None:
        for record_id, change_id in answer.rows():
            self.view.lines[record_id, change_id] = True

    def take_changes(self, answer: Answer) -> None:
        for record_id, version, change_id in answer.rows():
            self.view.changes[record_id, version] = change_id
