"""The ledger in a Google spreadsheet: a journal in a hidden tab that all processes replay, and a head that orders it.

Every process keeps a replica, which changes only by applying journal entries (``sheets_log``). A verb is planned over
it and lands as one ``batchUpdate`` fenced by the head of the replica's last entry (``sheets_commits``); reads are
answered from the replica after one look at the journal's end.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qs, urlsplit

from quire.clock import SYSTEM, Clock, new_id
from quire.errors import Crowded, LedgerError, LedgerUnavailable, WorkerClosed
from quire.google.budget import Urgency
from quire.google.credentials import Credentials, StaticToken, default, from_file
from quire.google.drive import Drive
from quire.google.error import GoogleError, Invalid
from quire.google.sheets import Sheets
from quire.google.transport import Transport
from quire.ledger.base import Ledger, Recovered, Row, Traits
from quire.ledger.blobs import is_reference
from quire.ledger.columns import LONG, key_of
from quire.ledger.sheets.book import JOURNAL_ID, STATE_ID, Book, protection, widened
from quire.ledger.sheets.commits import Commits, SnapshotTooLong
from quire.ledger.sheets.journal import READS, Log, ledger_error
from quire.ledger.sheets.journal_rows import body_of, new_entry
from quire.ledger.sheets.long_values import LongValues
from quire.ledger.sheets.mark import Mark, read_marks, write_mark
from quire.ledger.sheets.plan import Plan
from quire.ledger.sheets.replica import Replica
from quire.ledger.sheets.takeover import Witness
from quire.model.change import (
    Beaten,
    Change,
    Claim,
    Claimed,
    Count,
    Holding,
    Order,
    Query,
    Send,
    Standing,
    Verdict,
)
from quire.model.codec import dump
from quire.model.event import Event
from quire.model.receipt import Kind, Receipt, Stage
from quire.model.record import Record, Status
from quire.model.row import replace
from quire.model.side import Fanin, Setting, Signal, Worker
from quire.rules import verbs
from quire.rules.conditions import as_seen

if TYPE_CHECKING:
    from quire.ledger.sheets.adopt import Adopted

log = logging.getLogger(__name__)

T = TypeVar("T")

#: A clock that is off by more takes over from nobody.
SKEW_SECONDS = 30.0
#: How often the mark in Drive moves.
MARK_SECONDS = 60.0
#: The journal is compacted when it has grown to so many characters beyond its snapshot, and beyond twice that.
COMPACT_CHARACTERS = 5_000_000


class SheetsLedger(Ledger):
    """``sheets://SPREADSHEET_ID``, with ``?endpoint=http://…`` for the emulator, ``?credentials=FILE`` for a key file.

    ``?quota=60``: calls a minute that one user may make; an endpoint of one's own has no limit unless it is given.
    ``?user=NAME``: who asks, at an endpoint of one's own.
    """

    traits = Traits(
        durable=True,
        shared=True,
        lease_seconds=600.0,
        poll_seconds=10.0,
        batch_changes=500,
        one_commit=1000,
        most_writers=4,
    )

    def __init__(self, url: str, clock: Clock = SYSTEM, *, credentials: Credentials | None = None) -> None:
        parts = urlsplit(url)
        given = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        if parts.scheme != "sheets" or not parts.netloc:
            raise LedgerError(f"{url!r} names no spreadsheet; write it like 'sheets://SPREADSHEET_ID'")
        if unknown := given.keys() - {"endpoint", "credentials", "quota", "user"}:
            raise LedgerError(
                f"{url!r} has unknown settings {sorted(unknown)}; known: endpoint, credentials, quota, user"
            )
        self.url = url
        self.clock = clock
        self.spreadsheet_id = parts.netloc
        self._given = given
        self._credentials = credentials
        #: When the mark in Drive was looked at and moved; whether an effect of this process may have acted.
        self._marked_at = 0.0
        self._acted = False
        self._own: set[str] = set()
        self._log: Log | None = None

    # -- opening ---------------------------------------------------------------------------------------------------

    def _connect(self) -> None:
        given = self._given
        endpoint = given.get("endpoint", "")
        credentials = self._credentials
        if credentials is None:
            if "credentials" in given:
                credentials = from_file(given["credentials"])
            else:
                credentials = StaticToken(given.get("user", "quire")) if endpoint else default()
        quota = float(given["quota"]) if "quota" in given else None if endpoint else 60.0
        self.transport = Transport(credentials, endpoint=endpoint, per_minute=quota)
        self.book = Book(Sheets(self.transport), self.spreadsheet_id)
        self.drive = Drive(self.transport)
        self.long_values = LongValues(self.drive, self.spreadsheet_id, self.clock)
        self.witness = Witness(self.clock)
        self._log = Log(self.book, self.long_values, self.witness, self.clock, self.url)
        self._commits = Commits(self._log, self.clock)

    @property
    def log(self) -> Log:
        if self._log is None:
            raise LedgerUnavailable(f"the ledger {self.url} is not open")
        return self._log

    @property
    def replica(self) -> Replica:
        return self.log.replica

    async def open(self) -> None:
        try:
            self._connect()
            await self.transport.open()
            await self._open()
        except GoogleError as error:
            await self._disconnect()
            raise ledger_error(error) from error
        except BaseException:
            await self._disconnect()
            raise

    async def repair(self) -> list[str]:
        """Repair what can be repaired for sure; the ledger is not open meanwhile. Answers what was done, in words."""
        from quire.ledger.sheets.repair import repair

        async with self._connected():
            return await repair(self)

    async def adopt(self, by: str) -> Adopted:
        """Make a copy, or a book that was restored, a ledger of its own, whose open records ask a person."""
        from quire.ledger.sheets.adopt import adopt

        async with self._connected():
            return await adopt(self, by)

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[None]:
        try:
            self._connect()
            await self.transport.open()
            yield
        except GoogleError as error:
            raise ledger_error(error) from error
        finally:
            await self._disconnect()

    async def _disconnect(self) -> None:
        if self._log is not None:
            self._log.closed = True
            await self.transport.close()

    async def _open(self) -> None:
        tabs, titles, head = await self.book.look()
        if JOURNAL_ID not in tabs:
            if head or STATE_ID in tabs:
                raise LedgerError(
                    f"the book {self.spreadsheet_id} was a ledger, but the tab of its journal was deleted; restore the "
                    "book to a version before that (File > Version history)"
                )
            body = body_of(*Replica().snapshot(self.spreadsheet_id))
            first = new_entry(None, commit_id=new_id("c_"), at=self.clock.now(), worker="", body=body, snapshot=True)
            try:
                await self.book.create(first, titles)
            except Invalid:  # another process was first, or our own request was, unanswered
                tabs, titles, head = await self.book.look()
                if JOURNAL_ID not in tabs:
                    raise
            else:
                await self._protect()
        if self.book.narrow:
            await self.book.sheets.spreadsheets_batch_update(self.spreadsheet_id, [widened()], repeatable=True)
            self.book.narrow = False
        await self.log.read_whole(Urgency.CLAIM)
        if not await self.book.stale_head_is_refused():
            raise LedgerError(
                f"the book {self.spreadsheet_id} accepted a commit on a head that never was: several workers could "
                "overwrite each other. Nothing was started. 'quire doctor' tells more."
            )
        await self._mark()

    async def _mark(self) -> None:
        """Move the mark. A book that lacks what somebody has seen of it was restored to an older version (protocol 11).

        Others may have written or noticed it since this process has looked, so it looks first, each time.
        """
        log = self.log
        marks = await read_marks(self.drive, self.spreadsheet_id)
        for n in range(READS):
            if marks.lost(log.replica) is None:
                break
            await log.pause(n)
            await log.sync()  # it may have been a stale read
        if (lost := marks.lost(log.replica)) is not None:
            other = "another " if lost.seq <= log.replica.seq else ""
            log.broken = LedgerError(
                f"the book {self.spreadsheet_id} ends at entry {log.replica.seq}, but {other}entry {lost.seq} was "
                "seen in it: it was restored to an older version. Nothing is started: what was done since then would "
                "be done again. Restore the newest version (File > Version history); or let its records ask you what "
                "goes on ('quire adopt')."
            )
            raise log.broken
        last = log.replica.last
        assert last is not None
        self._marked_at = self.clock.boottime()
        if marks.mark is None or last.seq > marks.mark.seq:
            await write_mark(self.drive, self.spreadsheet_id, Mark(last.generation, last.seq, last.token))

    async def _protect(self) -> None:
        """Keep people's hands off the engine's tabs. If it cannot be, the journal's chain tells what they did."""
        requests = [protection(JOURNAL_ID, "Quire's journal"), protection(STATE_ID, "Quire's state")]
        try:
            await self.book.sheets.spreadsheets_batch_update(self.spreadsheet_id, requests, repeatable=False)
        except GoogleError as error:
            log.warning("the tabs of %s could not be protected: %s", self.url, error)

    async def close(self) -> None:
        if self._log is None or self._log.closed:
            return
        self._log.closed = True
        await self._commits.quiet()
        await self._log.quiet()
        await self.transport.close()
        self._log.work.set()

    async def now(self) -> float:
        return self.clock.now()

    async def _ask(
        self, plan: Callable[[Plan], T], urgency: Urgency, *, alone: bool = False, worker: str = "", lag: float = 0.0
    ) -> T:
        self.log.check()
        return await self._commits.ask(plan, urgency, alone=alone, worker=worker, lag=lag)

    # -- verbs that write ------------------------------------------------------------------------------------------

    async def commit(self, changes: Sequence[Change]) -> list[Verdict]:
        workers = {change.worker for change in changes if change.worker is not None}
        urgency = Urgency.RECEIPT if any(map(_has_receipts, changes)) else Urgency.SETTLE

        def plan(plan: Plan) -> list[Verdict]:
            verdicts = verbs.commit(plan.draft, changes)
            plan.by = next(iter(workers), plan.by)
            return verdicts

        verdicts = await self._ask(plan, urgency, worker=next(iter(workers)) if len(workers) == 1 else "")
        if not self._acted and any(receipt.open for change in changes for receipt in change.receipts):
            self._acted = True
            await self._mark()
        return verdicts

    async def claim(self, claim: Claim) -> Claimed:
        self.log.work.clear()
        self._own.add(claim.worker)
        return await self._ask(lambda plan: plan.claim(claim), Urgency.CLAIM, worker=claim.worker)

    async def send(self, sends: Sequence[Send]) -> list[Verdict]:
        return await self._ask(lambda plan: verbs.send(plan.draft, sends), Urgency.SETTLE)

    async def beat(self, worker: Worker, holding: Holding) -> Beaten:
        def plan(plan: Plan) -> Beaten:
            others = plan.writers_beside(worker)
            most = self.traits.most_writers
            if most is not None and others >= most:
                raise Crowded(
                    f"{others} worker processes write to {self.url}, and more than {most} would only hold each other "
                    "up: this one waits until one of them ends"
                )
            beaten = plan.beat(worker, holding)
            if beaten is None:
                raise WorkerClosed(f"worker {worker.worker_id} was closed: its lease ran out")
            return beaten

        return await self._ask(plan, Urgency.BEAT)

    async def farewell(self, worker_id: str) -> None:
        await self._ask(lambda plan: plan.farewell(worker_id), Urgency.BEAT)

    async def recover(self, limit: int = 500, dead: Sequence[str] = ()) -> Recovered:
        transport = self.transport
        workers = self.replica.tables.all_workers.values()
        expired = any(worker.closed is None and worker.expires_at < self.clock.now() for worker in workers)
        # Nobody is taken for dead on an old view, nor in the middle of an outage; and whoever only writes looks, too.
        if expired or self.clock.boottime() - self.log.read_at >= self.traits.poll_seconds:
            await self.log.sync(Urgency.CLAIM)

        def silent(worker: Worker) -> bool:
            right = self.clock is not SYSTEM or abs(transport.skew) <= SKEW_SECONDS
            return right and self.witness.judge(self._google_now(), transport.troubled_at)(worker)

        recovered = await self._ask(
            lambda plan: plan.recover(limit, dead, silent=silent), Urgency.CLAIM, lag=self.traits.poll_seconds
        )
        processes = {(worker.boot_id, worker.pid) for worker in recovered.open}
        for write in (False, True):
            transport.budgets.of(write).sharers = max(1, len(processes))
        await self._tidy()
        return recovered

    def _google_now(self) -> float:
        """Return what Google's clock shows, by its last answer. A clock that was given is everybody's."""
        return self.clock.now() - (self.transport.skew if self.clock is SYSTEM else 0.0)

    async def _tidy(self) -> None:
        """Write the tab state anew if it could not be written, and compact the journal if it has grown."""
        if self.clock.boottime() - self._marked_at >= MARK_SECONDS:
            await self._mark()
        if self.log.state_dirty:
            await self.rewrite_state()
        if self._grown():
            await self.compact(self._grown)

    def _grown(self) -> bool:
        grown = self.replica.written
        if self.replica.void:
            return True  # commits that do not count lie in the journal: it begins anew without them
        return grown > COMPACT_CHARACTERS and grown > 2 * self.replica.snapshot_size

    async def rewrite_state(self) -> None:
        """Write the tab ``state`` anew. The ledger does not need it; people do."""
        try:
            tabs, titles, _ = await self.book.look()
            if STATE_ID not in tabs:
                made = self.book.state_tab(titles)
                await self.book.sheets.spreadsheets_batch_update(self.spreadsheet_id, made, repeatable=True)
        except GoogleError as error:
            log.warning("the tab state of %s cannot be repaired: %s", self.url, error)
            return

        def plan(plan: Plan) -> None:
            plan.rewrite_state = True

        await self._ask(plan, Urgency.VIEW, alone=True)

    async def compact(self, still: Callable[[], bool] = lambda: True) -> bool:
        """Begin a new generation whose first entry says it all; the entries before it go. False: it is too much.

        ``still``: asked again when it is planned, since another process may have done it meanwhile.
        """

        def plan(plan: Plan) -> bool:
            plan.snapshot = still()
            return plan.snapshot

        try:
            if await self._ask(plan, Urgency.ARCHIVE, alone=True):
                replica = self.replica
                await self.long_values.collect(replica.files.values(), replica.home)
        except SnapshotTooLong as error:
            log.warning("%s", error)
            return False
        return True

    async def order(self, order: Order) -> Standing:
        await self._ask(lambda plan: plan.order(order), Urgency.RECEIPT, alone=True)
        return self._standing()

    async def keep(self, setting: Setting) -> bool:
        return await self._ask(lambda plan: plan.keep(setting), Urgency.SETTLE)

    async def forget(self, events: Sequence[Event]) -> int:
        return await self._ask(lambda plan: plan.forget(events), Urgency.ARCHIVE, alone=True)

    async def restore(self, type_: type[Row], given: Sequence[Row], epoch: int) -> None:
        def plan(plan: Plan) -> None:
            if not plan.view.sealed:
                raise LedgerError(f"the ledger {self.url} is open; rows are copied into a closed one only")
            plan.restored = (type_, given, epoch)

        await self._ask(plan, Urgency.ARCHIVE, alone=True)
        self.log.state_dirty = True

    # -- verbs that read -------------------------------------------------------------------------------------------

    def _standing(self) -> Standing:
        now, tables = self.clock.now(), self.replica.tables
        controls = tuple(tables.all_controls.values())
        return Standing(now, tables.epoch, controls, tuple(tables.open_intents(now)), tables.sealed)

    async def standing(self) -> Standing:
        await self.log.sync(Urgency.VIEW)
        return self._standing()

    def _seen(self, record: Record) -> Record:
        return marked_lost(as_seen(record, self.replica.tables.all_controls.values()))

    def _held_here(self, record_ids: Sequence[str]) -> bool:
        """These records run under workers of this process, so what they have written is known here."""
        rows = [self.replica.tables.record(record_id) for record_id in record_ids]
        return all(row is not None and row.status is Status.RUNNING and row.worker in self._own for row in rows)

    async def load(self, record_ids: Sequence[str]) -> list[Record]:
        await self.log.sync(Urgency.VIEW)
        rows = (self.replica.tables.record(record_id) for record_id in record_ids)
        return [self._seen(row) for row in rows if row is not None]

    async def find(self, query: Query) -> list[Record]:
        await self.log.sync(Urgency.VIEW)
        tables = self.replica.tables
        rows = tables.children_of(query.parent_id) if query.parent_id else tables.all_records.values()
        return tables.find(query, map(self._seen, rows))

    async def counts(self) -> list[Count]:
        await self.log.sync(Urgency.VIEW)
        tables = self.replica.tables
        return tables.counts(map(self._seen, tables.all_records.values()))

    async def events(self, *, record_id: str = "", after: int = 0, limit: int = 1000) -> list[Event]:
        await self.log.sync(Urgency.ARCHIVE)
        tables = self.replica.tables
        rows = tables.events_of(record_id) if record_id else tables.all_events
        return [event for event in rows if event.seq > after][:limit]

    async def receipts(self, *, record_ids: Sequence[str] = (), keys: Sequence[str] = ()) -> list[Receipt]:
        if keys or not self._held_here(record_ids):
            await self.log.sync(Urgency.CLAIM)
        tables = self.replica.tables
        found = [receipt for record_id in record_ids for receipt in tables.receipts_of(record_id)]
        found += [receipt for key in keys if (receipt := tables.receipt(key)) is not None]
        return sorted(found, key=lambda receipt: (receipt.record_id, receipt.seq))

    async def signals(self, record_id: str) -> list[Signal]:
        await self.log.sync(Urgency.VIEW)
        return self.replica.tables.signals_of(record_id)

    async def fanins(self, parent_id: str) -> list[Fanin]:
        await self.log.sync(Urgency.VIEW)
        return self.replica.tables.fanins(parent_id)

    async def workers(self) -> list[Worker]:
        await self.log.sync(Urgency.VIEW)
        return list(self.replica.tables.all_workers.values())

    async def setting(self, name: str) -> Setting | None:
        await self.log.sync(Urgency.VIEW)
        return self.replica.tables.all_settings.get(name)

    async def settings(self, prefix: str) -> list[Setting]:
        await self.log.sync(Urgency.VIEW)
        return [row for name, row in sorted(self.replica.tables.all_settings.items()) if name.startswith(prefix)]

    async def dump(self, type_: type[Row], *, after: tuple[Any, ...] = (), limit: int = 1000) -> list[Row]:
        if not after:
            await self.log.sync(Urgency.ARCHIVE)
        return [row for row in self.replica.tables.rows_of(type_) if not after or key_of(row) > after][:limit]

    async def settings_warnings(self) -> list[str]:
        """What ``quire doctor`` should say about the book; it proves the fence by racing pairs."""
        from quire.ledger.sheets.doctor import examine

        return await examine(self)

    async def wait_for_work(self, timeout: float) -> None:
        waiter = asyncio.ensure_future(self.log.work.wait())
        timer = asyncio.ensure_future(self.clock.sleep(timeout))
        try:
            await asyncio.wait({waiter, timer}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiter.cancel()
            timer.cancel()


def _has_receipts(change: Change) -> bool:
    return any(
        receipt.kind in (Kind.ONCE, Kind.UNDO) and receipt.stage is not Stage.INTENDED for receipt in change.receipts
    )


def marked_lost(row: Row) -> Row:
    """Return the row for people's eyes: a value whose file in Drive is gone says so, and is never something else."""
    found: Any = row
    for name in LONG.get(type(row), ()):
        if is_reference(value := getattr(found, name)):
            text = dump(f"lost: there is no file with the value {value} in Drive any more")
            found = replace(found, **{name: text})
    return found  # type: ignore[no-any-return]
