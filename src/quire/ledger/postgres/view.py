"""The rows of one transaction, as the rules see them."""

from __future__ import annotations

from typing import Any

from quire.ledger import columns as rows
from quire.ledger.postgres.wire import Answer
from quire.model.receipt import Receipt
from quire.model.record import Record
from quire.model.side import Bucket, Control, Fanin, Signal, Worker

CLOCK = "extract(epoch FROM clock_timestamp())::float8"
#: The time that the ledger was given, as the first argument, or else the server's.
NOW = f"coalesce($1::float8, {CLOCK})"
CONTROL = rows.columns(Control)
#: All orders as one text, which differs after every order.
SIGNATURE = (
    "(SELECT md5(ledger::text || coalesce((SELECT string_agg(controls::text, '|' ORDER BY scope) FROM controls), '')) "
    "FROM ledger)"
)
STANDING = f"SELECT epoch, sealed, {CLOCK}, {SIGNATURE}, {CONTROL} FROM ledger LEFT JOIN controls ON true"


class Missing(Exception):
    """The draft asks for a row that was not read."""

    def __init__(self, kind: str, key: Any) -> None:
        super().__init__(f"{kind} {key!r}")
        self.kind = kind
        self.key = key


class View:
    """Implements the rules' ``View``: a row that does not exist is None, and a row that was not read is ``Missing``."""

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

    def has_line(self, record_id: str, change_id: str) -> bool:
        try:
            return self.lines[record_id, change_id]
        except KeyError:
            raise Missing("line", (record_id, change_id)) from None

    def take_standing(self, answer: Answer, given_now: float | None) -> None:
        """Take over the orders, and the time."""
        found = answer.rows()
        self.epoch, self.sealed, now, self.signature = found[0][:4]
        self.now = now if given_now is None else given_now
        self.controls = {row[4]: rows.control_of(row[4:]) for row in found if row[4] is not None}
