"""What a transaction on PostgreSQL locks and reads before it decides, and the view that it decides over.

Locks are taken in one order by all verbs: control, caps and rates, workers, records by id, receipts, fan-ins. What is
read without a lock is read by a statement after the locks, which therefore sees what was committed before them
(protocol 4).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from quire.ledger import columns as rows
from quire.ledger.blobs import resolved
from quire.ledger.postgres.pages import log_of, of_place
from quire.ledger.postgres.wire import Answer, Param, Wire, array
from quire.model.change import Change, Slot
from quire.model.receipt import Kind, Receipt
from quire.model.record import ENDED, SIDE_FIELDS, Record
from quire.model.row import from_values, replace
from quire.model.side import Bucket, Control, Fanin, Signal, Worker
from quire.model.wait import On, load_waits

RECORD = rows.columns(Record)
RECEIPT = rows.columns(Receipt)
CONTROL = rows.columns(Control)
CLOCK = "extract(epoch FROM clock_timestamp())::float8"
#: The time that was told, as the first argument, or else the server's.
NOW = f"coalesce($1::float8, {CLOCK})"


#: All that was ordered, as one text: it is another one after every order.
SIGNATURE = (
    "(SELECT md5(ledger::text || coalesce((SELECT string_agg(controls::text, '|' ORDER BY scope) FROM controls), '')) "
    "FROM ledger)"
)
STANDING = f"SELECT epoch, sealed, {CLOCK}, {SIGNATURE}, {CONTROL} FROM ledger LEFT JOIN controls ON true"
READ_RECORDS = f"SELECT {RECORD} FROM records WHERE record_id = ANY($1::text[])"
READ_HELD = f"SELECT {RECORD} FROM records WHERE status = 'RUNNING' AND worker = ANY($1::text[])"

_LOCK_RECORDS = f"{READ_RECORDS} ORDER BY record_id FOR UPDATE"
_LOCK_BESIDE = (
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
_READ_TOLD = f"""
    {log_of("SELECT DISTINCT unnest($1::text[]) AS record_id")}
    SELECT DISTINCT record_id, change_id
    FROM unnest($1::text[], $2::text[]) AS named (record_id, change_id) JOIN log USING (record_id, change_id)
"""
READ_BLOBS = "SELECT hash, text FROM blobs WHERE hash = ANY($1::text[])"


class Missing(Exception):
    """The draft asks for something that was not read."""

    def __init__(self, kind: str, key: Any) -> None:
        super().__init__(f"{kind} {key!r}")
        self.kind = kind
        self.key = key


@dataclass
class Want:
    """What a transaction locks and reads before it decides."""

    #: Caps and rates, locked by name; none is held by who needs none.
    caps: set[tuple[str, str | None]] = field(default_factory=set)
    buckets: set[str] = field(default_factory=set)
    #: Workers whose row is locked, and those that shall claim nothing meanwhile.
    workers: set[str] = field(default_factory=set)
    quiet: set[str] = field(default_factory=set)
    records: set[str] = field(default_factory=set)
    #: Of these, the ones that should not be there yet.
    unborn: set[str] = field(default_factory=set)
    receipts: set[str] = field(default_factory=set)
    intents: set[str] = field(default_factory=set)
    fanins: set[str] = field(default_factory=set)
    waiting: set[str] = field(default_factory=set)
    signals: set[str] = field(default_factory=set)
    changes: set[tuple[str, int]] = field(default_factory=set)
    #: Lines of these changes in the logs of these records.
    told: set[tuple[str, str]] = field(default_factory=set)
    held: set[str] = field(default_factory=set)

    def of_slot(self, slot: Slot) -> None:
        if slot.cap is not None:
            self.caps.update((slot.workflow, name) for name in (slot.step, *slot.also))
        if slot.workflow_cap is not None:
            self.caps.add((slot.workflow, None))
        if slot.rate is not None:
            self.buckets.add(slot.rate.name)

    def of_change(self, change: Change) -> None:
        self.records.add(change.record_id)
        for receipt in change.receipts:
            self.receipts.add(receipt.key)
            if receipt.kind is Kind.MAP:
                self.fanins.add(change.record_id)
        self.buckets.update(rate.name for rate in change.rates)
        image = change.image
        if image is None:
            if not change.receipts:  # lines only: were they told before?
                self.told.add((change.record_id, change.change_id))
            return
        if change.version == 0:
            self.unborn.add(change.record_id)
            if change.keep is not None and change.worker is not None:
                self.of_slot(change.keep)
                self.quiet.add(change.worker)
            return
        for child in change.children:
            self.records.add(child.record_id)
            self.unborn.add(child.record_id)
        if image.generation is not None and image.parent_id is not None and (image.ended or change.worker is None):
            self.records.add(image.parent_id)
            self.fanins.add(image.parent_id)
        if image.fanouts:
            self.fanins.add(image.record_id)
        if image.waits is not None:
            for wait in load_waits(image.waits):
                if wait.on is On.SIGNAL:
                    self.waiting.add(image.record_id)
                elif wait.on is On.DOUBT:
                    self.receipts.add(wait.key)
        if change.keep is not None:
            self.of_slot(change.keep)

    def everything_of(self, changes: Iterable[Change]) -> None:
        """What the rules may ask for where a change does not become what it asks to be: read it for all at once."""
        for change in changes:
            self.intents.add(change.record_id)
            self.fanins.add(change.record_id)
            self.waiting.add(change.record_id)
            if change.image is not None and change.image.parent_id is not None:
                self.records.add(change.image.parent_id)
                self.fanins.add(change.image.parent_id)

    def missed(self, missing: Missing) -> bool:
        """Read this too; False: it was read already, so that reading it again is no use."""
        wanted: set[Any] = getattr(self, _WANTED[missing.kind])
        known = missing.key in wanted
        wanted.add(missing.key)
        return not known


#: What a draft asks for, and where that is wanted.
_WANTED = {
    "record": "records",
    "receipt": "receipts",
    "intents": "intents",
    "fanins": "fanins",
    "signals": "waiting",
    "signal": "signals",
    "worker": "workers",
    "bucket": "buckets",
    "running": "caps",
    "change": "changes",
    "told": "told",
}


class View:
    """The rows of one transaction, read after its locks. Implements ``rules.View``."""

    def __init__(self) -> None:
        self.epoch = 0
        self.sealed = ""
        self.signature = ""
        self.now = 0.0
        self.controls: dict[str, Control] = {}
        self.records: dict[str, Record | None] = {}
        self.receipts: dict[str, Receipt | None] = {}
        self.intents_of: dict[str, list[Receipt]] = {}
        self.fanins_of: dict[str, list[Fanin]] = {}
        self.signals_of: dict[str, list[Signal]] = {}
        self.known_signals: dict[str, Signal | None] = {}
        self.workers: dict[str, Worker | None] = {}
        self.buckets: dict[str, Bucket | None] = {}
        self.counts: dict[tuple[str, str | None], int] = {}
        self.changes: dict[tuple[str, int], str | None] = {}
        self.lines: dict[tuple[str, str], bool] = {}
        #: RUNNING rows of the workers that were asked for.
        self.held: list[Record] = []

    def record(self, record_id: str) -> Record | None:
        try:
            return self.records[record_id]
        except KeyError:
            raise Missing("record", record_id) from None

    def receipt(self, key: str) -> Receipt | None:
        try:
            return self.receipts[key]
        except KeyError:
            raise Missing("receipt", key) from None

    def intents(self, record_id: str) -> list[Receipt]:
        try:
            return self.intents_of[record_id]
        except KeyError:
            raise Missing("intents", record_id) from None

    def fanins(self, parent_id: str) -> list[Fanin]:
        try:
            return self.fanins_of[parent_id]
        except KeyError:
            raise Missing("fanins", parent_id) from None

    def fanin(self, parent_id: str, generation: int) -> Fanin | None:
        return next((fanin for fanin in self.fanins(parent_id) if fanin.generation == generation), None)

    def signals(self, record_id: str) -> list[Signal]:
        try:
            return self.signals_of[record_id]
        except KeyError:
            raise Missing("signals", record_id) from None

    def signal(self, signal_id: str) -> Signal | None:
        try:
            return self.known_signals[signal_id]
        except KeyError:
            raise Missing("signal", signal_id) from None

    def worker(self, worker_id: str) -> Worker | None:
        try:
            return self.workers[worker_id]
        except KeyError:
            raise Missing("worker", worker_id) from None

    def control(self, scope: str) -> Control | None:
        return self.controls.get(scope)

    def bucket(self, name: str) -> Bucket | None:
        try:
            return self.buckets[name]
        except KeyError:
            raise Missing("bucket", name) from None

    def running(self, workflow: str, step: str | None) -> int:
        try:
            return self.counts[workflow, step]
        except KeyError:
            raise Missing("running", (workflow, step)) from None

    def change_at(self, record_id: str, version: int) -> str | None:
        try:
            return self.changes[record_id, version]
        except KeyError:
            raise Missing("change", (record_id, version)) from None

    def told(self, record_id: str, change_id: str) -> bool:
        try:
            return self.lines[record_id, change_id]
        except KeyError:
            raise Missing("told", (record_id, change_id)) from None

    def expect(self, want: Want) -> None:
        """What is asked for and not found is not there."""
        for record_id in want.records:
            self.records.setdefault(record_id, None)
        for key in want.receipts:
            self.receipts.setdefault(key, None)
        for signal_id in want.signals:
            self.known_signals.setdefault(signal_id, None)
        for worker_id in want.workers | want.quiet:
            self.workers.setdefault(worker_id, None)
        for name in want.buckets:
            self.buckets.setdefault(name, None)
        for pair in want.changes:
            self.changes.setdefault(pair, None)
        self.lines |= dict.fromkeys(want.told, False)
        self.counts |= dict.fromkeys(want.caps, 0)
        self.intents_of |= {record_id: [] for record_id in want.intents}
        self.fanins_of |= {parent_id: [] for parent_id in want.fanins}
        self.signals_of |= {record_id: [] for record_id in want.waiting}

    def take_standing(self, answer: Answer, told: float | None) -> None:
        found = answer.rows()
        self.epoch, self.sealed, now, self.signature = found[0][:4]
        self.now = now if told is None else told
        self.controls = {row[4]: rows.control_of(row[4:]) for row in found if row[4] is not None}


class Reading:
    """Statements that fill a view, and what to do with their answers."""

    def __init__(self, view: View, wire: Wire) -> None:
        self.view = view
        self.wire = wire
        self._asked: list[tuple[int, Callable[[Answer], None]]] = []
        #: Rows that name blobs: where they stand, and their type.
        self._short: list[tuple[Any, Any, type[Any]]] = []
        #: Records whose row is locked, but not read.
        self._unread: set[str] = set()

    def ask(self, sql: str, keys: Iterable[str], take: Callable[[Answer], None]) -> None:
        if texts := sorted(keys):
            self._asked.append((self.wire.send(sql, array("text", texts)), take))

    def want(self, want: Want, images: dict[str, Record]) -> None:
        """Lock and read all of this. ``images``: records that this process has left as they are."""
        self.view.expect(want)
        self.ask(_LOCK_WORKERS, want.workers, self.take_workers)
        if known := want.records & images.keys():
            self.ask(_LOCK_BESIDE, want.records, lambda answer: self.take_beside(answer, images))
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
        self._ask_told(want.told)

    def _ask_changes(self, pairs: Iterable[tuple[str, int]]) -> None:
        if listed := sorted(pairs):
            ids, versions = zip(*listed, strict=True)
            place = self.wire.send(_READ_CHANGES, array("text", ids), array("bigint", versions))
            self._asked.append((place, self.take_changes))

    def _ask_told(self, pairs: Iterable[tuple[str, str]]) -> None:
        if listed := sorted(pairs):
            ids, changes = zip(*listed, strict=True)
            place = self.wire.send(_READ_TOLD, array("text", ids), array("text", changes))
            self._asked.append((place, self.take_told))

    async def done(self) -> list[Answer]:
        """Wait for all that was sent and fill the view."""
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
        """The rows of one statement, with their long values."""
        found: list[Any] = []
        for row in await self.wire.ask(sql, *params):
            found.append(None)
            self._keep(found, len(found) - 1, type_, make(row))
        await self.put_blobs()
        return found

    def _keep(self, container: Any, key: Any, type_: type[Any], row: Any) -> None:
        container[key] = row
        if rows.has_reference(row, type_):
            self._short.append((container, key, type_))

    async def put_blobs(self) -> None:
        """Put long values back into the rows that were read."""
        short, self._short = self._short, []
        if not short:
            return
        references = {ref for container, key, type_ in short for ref in rows.references([container[key]], type_)}
        blobs = dict(await self.wire.ask(READ_BLOBS, array("text", sorted(references))))
        for container, key, type_ in short:
            container[key] = rows.with_blobs(container[key], type_, lambda ref, where: resolved(ref, blobs, where))

    def take_records(self, answer: Answer) -> None:
        for values in answer.rows():
            self._keep(self.view.records, values[0], Record, rows.record_of(values))
            self._unread.discard(values[0])

    def take_beside(self, answer: Answer, images: dict[str, Record]) -> None:
        """Rows of records that this process left as they are need not be read: version and log are the same."""
        for row in answer.rows():
            known = images.get(row[0])
            side = dict(zip(SIDE_FIELDS, row[2:], strict=True))
            if known is None or known.version != row[1] or known.log_hash != side["log_hash"]:
                self._unread.add(row[0])
            else:
                self.view.records[row[0]] = replace(known, **side)

    def take_due(self, answer: Answer) -> dict[int, list[str]]:
        """Claimable records, by the number of their slot."""
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

    def take_told(self, answer: Answer) -> None:
        for record_id, change_id in answer.rows():
            self.view.lines[record_id, change_id] = True

    def take_changes(self, answer: Answer) -> None:
        for record_id, version, change_id in answer.rows():
            self.view.changes[record_id, version] = change_id


def still_wanted(view: View, changes: Sequence[Change]) -> Want:
    """What the rules will ask for now that the records are known."""
    want = Want()
    endings: dict[str, int] = {}
    for change in changes:
        image, current = change.image, view.records.get(change.record_id)
        if image is None or current is None or change.version == 0:
            continue
        if current.version != change.version:
            want.changes.add((change.record_id, change.version + 1))
        if current.open_intents and (image.status in ENDED or image.visit != current.visit):
            want.intents.add(change.record_id)
        if image.parent_id is not None:
            endings[image.parent_id] = endings.get(image.parent_id, 0) + 1
    for row in view.held:
        if row.cancel is not None:  # it ends when its worker lets go of it
            want.intents.add(row.record_id)
            want.fanins.add(row.record_id)
            if row.parent_id is not None:
                want.fanins.add(row.parent_id)
                want.records.add(row.parent_id)
    want.records |= turns_of(view, endings)
    want.records -= view.records.keys()
    want.fanins -= view.fanins_of.keys()
    want.intents -= view.intents_of.keys()
    return want


def turns_of(view: View, endings: dict[str, int]) -> set[str]:
    """Children that wait for their turn, where so many others end. Their parent is locked: nobody else wakes them."""
    turns: set[str] = set()
    for parent_id, count in endings.items():
        for fanin in view.fanins_of.get(parent_id, ()):
            if fanin.limit is not None:
                last = min(fanin.total, fanin.next_place + count + max(0, fanin.limit - fanin.active))
                places = range(fanin.next_place, last)
                turns.update(f"{fanin.prefix}{place}" for place in places)
    return turns - view.records.keys()
