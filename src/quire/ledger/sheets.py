"""The ledger in a Google spreadsheet: a journal in a hidden tab that all processes replay, and a head that orders it.

Every process keeps a replica, which changes only by applying journal entries. A verb is planned over it; if the plan
writes, one ``batchUpdate`` fenced by the head of the replica's last entry carries it. If that lands, nobody has written
since, so the plan is true; if it is refused, the new entries are read and everything is planned again. A plan that
writes nothing is true only of what was read after the verb was asked, so it is answered after a read. Verbs that come
while a commit is under way share the next one.

Whether a commit without an answer landed is decided by the entry at its sequence number and by nothing else; until that
is known nothing else is planned (protocol 13).
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar, cast
from urllib.parse import parse_qs, urlsplit

from quire.clock import SYSTEM, Clock, new_id
from quire.errors import LedgerError, LedgerUnavailable, WorkerClosed
from quire.google.budget import Lane
from quire.google.credentials import Credentials, StaticToken, default, from_file
from quire.google.drive import Drive
from quire.google.error import GoogleError, Invalid, Unanswered, Unavailable
from quire.google.sheets import Sheets
from quire.google.transport import Transport
from quire.ledger.base import Ledger, Recovered, Row, Traits
from quire.ledger.rows import key_of
from quire.ledger.rules import as_seen
from quire.ledger.sheets_book import (
    JOURNAL_ID,
    STATE_ID,
    Book,
    is_fence,
    is_ghost,
    protection,
    state_anew,
    state_requests,
)
from quire.ledger.sheets_mark import Mark, read_mark, write_mark
from quire.ledger.sheets_plan import Plan
from quire.ledger.sheets_replica import Replica
from quire.ledger.sheets_rows import Entry, JournalDamaged, beginning, cells, entries, following, new_entry
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
from quire.model.event import Event
from quire.model.receipt import Kind, Receipt, Stage
from quire.model.record import Record, Status
from quire.model.side import Fanin, Setting, Signal, Worker

log = logging.getLogger(__name__)

T = TypeVar("T")

#: How long an unanswered commit is pursued before its caller is told that its fate is unknown.
PATIENCE = 120.0
#: Reads after which a refused fence without a newer entry is no stale read any more.
READS = 6
#: After a 429, a 5xx or a silence nobody is taken for dead for so long: an outage is nobody's death (protocol 9).
CALM_SECONDS = 60.0
#: A clock that is off by more takes over from nobody.
SKEW_SECONDS = 30.0
#: The whole journal is read again so often, not only its end: people may have moved its rows.
WHOLE_SECONDS = 600.0
#: How often the mark in Drive moves.
MARK_SECONDS = 60.0
#: A commit carries the changes of so many verbs at the most.
SHARED_VERBS = 1000
#: The journal is compacted when it has grown to so many characters beyond its snapshot, and beyond twice that.
COMPACT_CHARACTERS = 5_000_000
#: A snapshot beyond this does not fit one request.
SNAPSHOT_CHARACTERS = 20_000_000


class _Job(NamedTuple):
    """A verb that waits for its commit."""

    plan: Callable[[Plan], Any]
    lane: Lane
    done: asyncio.Future[Any]
    #: It shares its commit with nobody.
    alone: bool
    worker: str
    #: If there is nothing to write, a read of so many seconds ago is new enough.
    lag: float


class _Sent(NamedTuple):
    """A commit whose fate is not known yet."""

    entry: Entry
    records: tuple[Record, ...]
    lane: Lane
    mend: bool


class SheetsLedger(Ledger):
    """``sheets://SPREADSHEET_ID``, with ``?endpoint=http://…`` for the emulator, ``?credentials=FILE`` for a key file.

    ``?quota=60``: calls a minute that one user may make; an endpoint of one's own has no limit unless it is given.
    ``?user=NAME``: who asks, at an endpoint of one's own.
    """

    traits = Traits(
        durable=True,
        shared=True,
        remote=True,
        lease_seconds=600.0,
        poll_seconds=10.0,
        batch_changes=500,
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
        self.replica = Replica()
        self._jobs: deque[_Job] = deque()
        self._pumping: asyncio.Task[None] | None = None
        self._reading: asyncio.Task[None] | None = None
        self._read_lock = asyncio.Lock()
        self._unknown: _Sent | None = None
        self._broken: LedgerError | None = None
        self._state_dirty = False
        self._latency = 0.0
        #: When the last read began, on the ledger's own clock.
        self._read_at = float("-inf")
        #: When the whole journal was last read.
        self._whole_at = float("-inf")
        #: How far the mark in Drive is, and when it was set; whether an effect of this process may have acted.
        self._marked = 0
        self._marked_at = 0.0
        self._acted = False
        self._own: set[str] = set()
        self._work = asyncio.Event()
        self._closed = True

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

    async def open(self) -> None:
        try:
            self._connect()
            await self.transport.open()
            await self._open()
        except GoogleError as error:
            await self.transport.close()
            raise _ledger_error(error) from error
        except BaseException:
            await self.transport.close()
            raise

    async def _open(self) -> None:
        self.replica, self._broken, self._unknown = Replica(), None, None
        tabs, titles, head = await self.book.look()
        if JOURNAL_ID not in tabs:
            if head or STATE_ID in tabs:
                raise LedgerError(
                    f"the book {self.spreadsheet_id} was a ledger, but the tab of its journal was deleted; restore the "
                    "book to a version before that (File > Version history)"
                )
            replica = Replica()
            first = new_entry(
                None,
                commit_id=new_id("c_"),
                at=self.clock.now(),
                worker="",
                body=replica.snapshot(self.spreadsheet_id),
                snapshot=True,
            )
            try:
                await self.book.create(first, titles)
            except Invalid:  # another process was first, or our own request was, unanswered
                tabs, titles, head = await self.book.look()
                if JOURNAL_ID not in tabs:
                    raise
            else:
                await self._protect()
        self._closed = False
        try:
            await self._read_all(Lane.CLAIM)
            if not await self.book.stale_head_is_refused():
                raise LedgerError(
                    f"the book {self.spreadsheet_id} accepted a commit on a head that never was: several workers could "
                    "overwrite each other. Nothing was started. 'quire doctor' tells more."
                )
            await self._check_mark()
        except BaseException:
            self._closed = True
            raise

    async def _check_mark(self) -> None:
        """A book that ends before what somebody has seen of it was restored to an older version (protocol 11)."""
        mark, replica = await read_mark(self.drive, self.spreadsheet_id), self.replica
        if mark is not None and mark.seq > replica.seq:
            await self._sync()  # it may have been a stale read
        last = replica.last
        assert last is not None
        changed = mark is not None and mark.seq == last.seq and mark.token != last.token
        if mark is not None and (mark.seq > last.seq or changed):
            raise LedgerError(
                f"the book {self.spreadsheet_id} ends at entry {last.seq}, but entry {mark.seq} was seen in it: it was "
                "restored to an older version. Nothing is started: what was done since then would be done again. "
                "Restore the newest version (File > Version history)."
            )
        self._marked = last.seq if mark is None else mark.seq
        await self._mark()

    async def _mark(self) -> None:
        last = self.replica.last
        assert last is not None
        self._marked_at = self.clock.boottime()
        if last.seq != self._marked or last.seq == 1:
            self._marked = last.seq
            await write_mark(self.drive, self.spreadsheet_id, Mark(last.generation, last.seq, last.token))

    async def _protect(self) -> None:
        """Keep people's hands off the engine's tabs. If it cannot be, the journal's chain tells what they did."""
        requests = [protection(JOURNAL_ID, "Quire's journal"), protection(STATE_ID, "Quire's state")]
        try:
            await self.book.sheets.spreadsheets_batch_update(self.spreadsheet_id, requests, repeatable=False)
        except GoogleError as error:
            log.warning("the tabs of %s could not be protected: %s", self.url, error)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        while self._pumping is not None:
            await asyncio.wait({self._pumping})
        if self._reading is not None:
            await asyncio.wait({self._reading})
        async with self._read_lock:
            await self.transport.close()
        self._work.set()

    async def now(self) -> float:
        return self.clock.now()

    # -- reading ---------------------------------------------------------------------------------------------------

    async def _sync(self, lane: Lane = Lane.CLAIM) -> None:
        """Apply what a read shows that begins after this call. Callers at the same time share one."""
        if self._reading is None:
            self._reading = asyncio.ensure_future(self._read_next(lane))
            self._reading.add_done_callback(lambda task: task.cancelled() or task.exception())
        await asyncio.shield(self._reading)

    async def _read_next(self, lane: Lane) -> None:
        try:
            async with self._read_lock:
                self._reading = None  # whoever asks from now on needs another read
                self._check()
                asked = self.clock.boottime()
                await self._read(lane)
                self._read_at = asked
        except (Unavailable, Unanswered) as error:
            raise LedgerUnavailable(str(error)) from error
        except GoogleError as error:
            raise _ledger_error(error) from error

    def _check(self) -> None:
        if self._closed:
            raise LedgerUnavailable(f"the ledger {self.url} is not open")
        if self._broken is not None:
            raise self._broken

    async def _read(self, lane: Lane) -> None:
        """One request, if the journal is as it was left; else all of it is read again."""
        last = self.replica.last
        assert last is not None
        if self.clock.boottime() - self._whole_at > WHOLE_SECONDS:
            return await self._read_all(lane)
        rows = await self.book.rows(last.position, lane)
        if not rows or len(rows[0]) < 3 or rows[0][2] != last.token:
            return await self._read_all(lane)
        try:
            # Our own commit may have landed meanwhile: then these rows may show it, or more, or not yet.
            counted, void = following(self.replica.last or last, entries(rows[1:], last.position + 1))
        except LedgerError:
            return await self._read_all(lane)  # a part of what is there may lie before the place where we began
        self._apply(counted, void)
        return None

    async def _read_all(self, lane: Lane) -> None:
        """The whole journal. It must go on from where the replica stands, or begin anew after it."""
        replica = self.replica
        self._whole_at = self.clock.boottime()
        for n in range(READS):
            if n:
                await self._pause(n)
            rows = await self.book.rows(1, lane)
            try:
                if self._follow(replica, entries(rows, 1)):
                    break
            except LedgerError as error:
                if n < 1:
                    continue  # once more: a damage is for ever, a stale read is not
                self._broken = error
                raise
        else:
            raise LedgerError(
                f"the book {self.spreadsheet_id} is behind what this process has read in it (entry {replica.seq}): it "
                "was restored to an older version, or its newest rows were deleted. Nothing is claimed: what was done "
                "since then would be done again. Restore the newest version (File > Version history)."
            )
        if self.replica.book != self.spreadsheet_id:
            self._broken = LedgerError(
                f"the book {self.spreadsheet_id} is a copy of {self.replica.book}: two fleets would run the same "
                "records. Use the original, or start with a new, empty book."
            )
            raise self._broken

    def _follow(self, replica: Replica, found: list[Entry]) -> bool:
        """Bring the replica up to these entries; False: they are older than it."""
        last, first = replica.last, beginning(found)
        if last is None or first.seq > last.seq:  # rows of an older generation may be left over where people sorted
            counted, void = following(first, found)
            self._apply([first, *counted], void)
            return True
        same = next((entry for entry in found if entry.token == last.token), None)
        if same is None:
            return False
        # What was applied long ago must still be there, for those who start later.
        counted, void = following(first, found)
        if last.token not in {entry.token for entry in (first, *counted)}:
            raise JournalDamaged(f"entry {last.seq} of the journal of {self.spreadsheet_id} does not count any more")
        replica.last = last._replace(position=same.position)
        self._apply([entry for entry in counted if entry.seq > last.seq], void)
        return True

    def _apply(self, counted: Sequence[Entry], void: Sequence[Entry]) -> None:
        replica = self.replica
        for entry in void:
            if entry.token not in replica.void:
                log.error("two commits followed one another's head in %s: entry %s is void", self.url, entry.token)
                replica.void.append(entry.token)
        for entry in counted:
            replica.apply(entry)
        if replica.woke:
            replica.woke = False
            self._work.set()

    async def _pause(self, n: int) -> None:
        """Full jitter, longer each time. On a clock of its own: told clocks stand still while the network runs."""
        await self.transport.clock.sleep(random.uniform(0.0, min(10.0, max(0.05, self._latency) * 2**n)))

    # -- writing ---------------------------------------------------------------------------------------------------

    async def _ask(
        self, plan: Callable[[Plan], T], lane: Lane, *, alone: bool = False, worker: str = "", lag: float = 0.0
    ) -> T:
        """Decide this verb in the next commit, with others that wait."""
        self._check()
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._jobs.append(_Job(plan, lane, done, alone, worker, lag))
        if self._pumping is None:
            self._pumping = asyncio.ensure_future(self._pump())
        return cast(T, await done)

    async def _pump(self) -> None:
        try:
            while self._jobs:
                jobs = [self._jobs.popleft()]
                while self._jobs and not jobs[0].alone and not self._jobs[0].alone and len(jobs) < SHARED_VERBS:
                    jobs.append(self._jobs.popleft())
                try:
                    await self._decide(jobs)
                except Exception as error:  # noqa: BLE001 - it is told to whoever waits, and the next verbs go on
                    told = _told(error)
                    for job in jobs:
                        if not job.done.done():
                            job.done.set_exception(told)
        finally:
            self._pumping = None
            for job in self._jobs:
                job.done.cancel()

    async def _decide(self, jobs: list[_Job]) -> None:
        """Plan, send, and plan again until it landed, or until a read has shown that there is nothing to write."""
        read = False
        losses = 0
        while True:
            if self._unknown is not None:
                await self._settle_unknown()
            self._check()
            jobs = [job for job in jobs if not job.done.done()]
            if not jobs:
                return
            plan, answers = self._planned(jobs)
            if not plan.writes:
                if not read and self.clock.boottime() - self._read_at >= min(job.lag for job in jobs):
                    await self._sync(min(job.lane for job in jobs))
                    read = True
                    continue
                break
            for job in jobs:
                if job.worker:
                    plan.renew(job.worker)
            if await self._commit(plan, min(job.lane for job in jobs)):
                break
            losses += 1
            read = True
            if losses > 1:
                await self._pause(min(losses, 5))
        for job, answer in answers:
            if not job.done.done():
                if isinstance(answer, Exception):
                    job.done.set_exception(answer)
                else:
                    job.done.set_result(answer)

    def _planned(self, jobs: Sequence[_Job]) -> tuple[Plan, list[tuple[_Job, Any]]]:
        failed: dict[int, Exception] = {}
        while True:
            plan = Plan(self.replica.tables, self.clock.now())
            answers: list[tuple[_Job, Any]] = []
            for n, job in enumerate(jobs):
                if n in failed:
                    answers.append((job, failed[n]))
                    continue
                try:
                    answers.append((job, job.plan(plan)))
                except Exception as error:  # noqa: BLE001 - the verb fails alone, and leaves nothing in the plan
                    failed[n] = error
                    break
            else:
                return plan, answers

    async def _commit(self, plan: Plan, lane: Lane) -> bool:
        """Send the plan as the next entry; False: another entry stands there, which is applied by now."""
        replica = self.replica
        last = replica.last
        assert last is not None
        body = replica.snapshot(self.spreadsheet_id) if plan.snapshot else plan.body(replica)
        entry = new_entry(
            last,
            commit_id=new_id("c_"),
            at=plan.draft.now,
            worker=plan.by,
            body=body,
            snapshot=plan.snapshot,
        )
        mend = plan.mend
        records = tuple(plan.draft.records.values()) if not mend else ()
        return await self._land(_Sent(entry, records, lane, mend), unanswered=False)

    async def _settle_unknown(self) -> None:
        sent, self._unknown = self._unknown, None
        assert sent is not None
        await self._land(sent, unanswered=True)

    async def _land(self, sent: _Sent, *, unanswered: bool) -> bool:
        """Send until it is known whose entry stands at its place. The fence makes every repeat harmless."""
        entry, replica, clock = sent.entry, self.replica, self.transport.clock
        started = clock.boottime()
        with_state = True
        tried: list[str] = []
        silent = tries = 0
        while True:
            if replica.seq >= entry.seq:
                return replica.commits.get(entry.seq) == entry.commit_id
            assert replica.last is not None
            # The head stands on the last entry, or on one that came second and does not count.
            fence = next((token for token in (entry.prev_token, *replica.void[:-6:-1]) if token not in tried), None)
            if fence is None:
                tried.clear()
                silent += 1
                if silent >= READS:
                    raise self._head_lost(sent, unanswered)
                await self._pause(silent)
                continue
            after = replica.last.position
            requests = self.book.commit(entry, after, fence)
            count = len(requests)
            if with_state:
                requests += self._state_requests(sent)
            asked = clock.boottime()
            try:
                echo = await self.book.send(requests, 1 if entry.snapshot else after, sent.lane)
            except Invalid as refusal:
                if is_fence(refusal):
                    tried.append(fence)
                    await self._read_after(sent, unanswered)
                    if replica.seq < entry.seq:  # people may have moved the new rows above the place where we look
                        await self._read_after(sent, unanswered, whole=True)
                elif is_ghost(refusal):
                    self.book.head_name = new_id("QUIRE_HEAD_")
                elif refusal.index is not None and refusal.index >= count:
                    log.warning("the tab state of %s cannot be written: %s", self.url, refusal)
                    with_state, self._state_dirty = False, True
                else:  # rows were deleted, or more
                    tries += 1
                    if tries > READS:
                        raise LedgerError(f"the journal of {self.url} cannot be written: {refusal}") from refusal
                    async with self._read_lock:
                        await self._read_all(sent.lane)
            except Unanswered as error:
                unanswered = True
                tries += 1
                if clock.boottime() - started > PATIENCE:
                    self._unknown = sent
                    raise LedgerUnavailable(str(error)) from error
                await self._pause(min(tries, 6))
                await self._read_after(sent, unanswered)
            except Unavailable as error:
                if unanswered:
                    self._unknown = sent
                raise LedgerUnavailable(str(error)) from error
            else:
                self._latency = clock.boottime() - asked
                return await self._landed(sent, after, echo)

    async def _read_after(self, sent: _Sent, unanswered: bool, *, whole: bool = False) -> None:
        if whole:
            self._whole_at = float("-inf")
        try:
            await self._sync(sent.lane)
        except LedgerUnavailable:
            if unanswered:
                self._unknown = sent
            raise

    def _head_lost(self, sent: _Sent, unanswered: bool) -> LedgerError:
        if unanswered:  # it may have landed, and reads may lag behind
            self._unknown = sent
            return LedgerUnavailable(f"it is not known whether a commit to {self.url} landed: no read shows it yet")
        self._broken = LedgerError(
            f"the head of the ledger {self.url} is gone or was moved: commits are refused although nobody has written. "
            "Somebody deleted or changed the named range QUIRE_HEAD, or its cell; restore the book "
            "to a version before that (File > Version history)."
        )
        return self._broken

    async def _landed(self, sent: _Sent, after: int, echo: list[list[str]]) -> bool:
        """It was accepted. If it came second all the same, it does not count (protocol 12)."""
        entry, replica = sent.entry, self.replica
        rivals = {row[0] for row in echo if len(row) > 1 and row[1] == entry.prev_token and row[0] != entry.token}
        if rivals or not any(row and row[0] == entry.token for row in echo):
            async with self._read_lock:
                await self._read_all(sent.lane)
            return replica.commits.get(entry.seq) == entry.commit_id
        if replica.seq < entry.seq:  # else a read has shown it before the answer came
            height = len(cells(entry))
            position = (1 if entry.snapshot else after) + height
            self._apply(entries(cells(entry), position - height + 1), ())
        if sent.mend:
            self._state_dirty = False
        return replica.commits.get(entry.seq) == entry.commit_id

    def _state_requests(self, sent: _Sent) -> list[dict[str, Any]]:
        if sent.mend:
            return state_anew(list(self.replica.tables.all_records.values()))
        if self._state_dirty:
            return []
        return state_requests(sent.records, self.replica.places)

    # -- verbs that write ------------------------------------------------------------------------------------------

    async def commit(self, changes: Sequence[Change]) -> list[Verdict]:
        workers = {change.worker for change in changes if change.worker is not None}
        lane = Lane.RECEIPT if any(map(_has_receipts, changes)) else Lane.SETTLE

        def plan(plan: Plan) -> list[Verdict]:
            verdicts = [plan.draft.change(change) for change in changes]
            plan.by = next(iter(workers), plan.by)
            return verdicts

        verdicts = await self._ask(plan, lane, worker=next(iter(workers)) if len(workers) == 1 else "")
        if not self._acted and any(receipt.open for change in changes for receipt in change.receipts):
            self._acted = True
            await self._mark()
        return verdicts

    async def claim(self, claim: Claim) -> Claimed:
        self._work.clear()
        self._own.add(claim.worker)
        return await self._ask(lambda plan: plan.claim(claim), Lane.CLAIM, worker=claim.worker)

    async def send(self, sends: Sequence[Send]) -> list[Verdict]:
        return await self._ask(lambda plan: [plan.draft.send(sent) for sent in sends], Lane.SETTLE)

    async def beat(self, worker: Worker, holding: Holding) -> Beaten:
        def plan(plan: Plan) -> Beaten:
            beaten = plan.beat(worker, holding)
            if beaten is None:
                raise WorkerClosed(f"worker {worker.worker_id} was closed: its lease ran out")
            return beaten

        return await self._ask(plan, Lane.BEAT)

    async def farewell(self, worker_id: str) -> None:
        await self._ask(lambda plan: plan.farewell(worker_id), Lane.BEAT)

    async def recover(self, limit: int = 500, dead: Sequence[str] = ()) -> Recovered:
        recovered = await self._ask(
            lambda plan: plan.recover(limit, dead, calm=self._calm()), Lane.CLAIM, lag=self.traits.poll_seconds
        )
        processes = {(worker.boot_id, worker.pid) for worker in recovered.open}
        for write in (False, True):
            self.transport.budgets.of(write).sharers = max(1, len(processes))
        await self._tidy()
        return recovered

    def _calm(self) -> bool:
        """Whether silence means anything: Google has answered for a while, and this clock is right."""
        transport = self.transport
        if self.clock is SYSTEM and abs(transport.skew) > SKEW_SECONDS:
            return False
        return transport.troubled_at is None or transport.clock.boottime() - transport.troubled_at > CALM_SECONDS

    async def _tidy(self) -> None:
        """Mend the tab state if it could not be written, and compact the journal if it has grown."""
        if self.clock.boottime() - self._marked_at >= MARK_SECONDS:
            await self._mark()
        if self._state_dirty:
            await self.mend()
        if self._grown():
            await self.compact(self._grown)

    def _grown(self) -> bool:
        grown = self.replica.written
        return grown > COMPACT_CHARACTERS and grown > 2 * self.replica.snapshot_size

    async def mend(self) -> None:
        """Write the tab ``state`` anew. The ledger does not need it; people do."""
        try:
            tabs, titles, _ = await self.book.look()
            if STATE_ID not in tabs:
                made = self.book.state_tab(titles)
                await self.book.sheets.spreadsheets_batch_update(self.spreadsheet_id, made, repeatable=True)
        except GoogleError as error:
            log.warning("the tab state of %s cannot be mended: %s", self.url, error)
            return

        def plan(plan: Plan) -> None:
            plan.mend = True

        await self._ask(plan, Lane.VIEW, alone=True)

    async def compact(self, still: Callable[[], bool] = lambda: True) -> bool:
        """Begin a new generation whose first entry says it all; the entries before it go. False: it is too much.

        ``still``: asked again when it is planned, since another process may have done it meanwhile.
        """
        size = len(self.replica.snapshot(self.spreadsheet_id))
        if size > SNAPSHOT_CHARACTERS:
            log.warning("the journal of %s is not compacted: a snapshot has %d characters", self.url, size)
            return False

        def plan(plan: Plan) -> None:
            plan.snapshot = still()

        await self._ask(plan, Lane.ARCHIVE, alone=True)
        return True

    async def order(self, order: Order) -> Standing:
        await self._ask(lambda plan: plan.order(order), Lane.RECEIPT, alone=True)
        return self._standing()

    async def keep(self, setting: Setting) -> bool:
        return await self._ask(lambda plan: plan.keep(setting), Lane.SETTLE)

    async def forget(self, events: Sequence[Event]) -> int:
        return await self._ask(lambda plan: plan.forget(events), Lane.ARCHIVE, alone=True)

    async def restore(self, type_: type[Row], given: Sequence[Row], epoch: int) -> None:
        def plan(plan: Plan) -> None:
            if not plan.view.sealed:
                raise LedgerError(f"the ledger {self.url} is open; rows are copied into a closed one only")
            plan.restored = (type_, given, epoch)

        await self._ask(plan, Lane.ARCHIVE, alone=True)
        self._state_dirty = True

    # -- verbs that read -------------------------------------------------------------------------------------------

    def _standing(self) -> Standing:
        now, tables = self.clock.now(), self.replica.tables
        controls = tuple(tables.all_controls.values())
        return Standing(now, tables.epoch, controls, tuple(tables.open_intents(now)), tables.sealed)

    async def standing(self) -> Standing:
        await self._sync(Lane.VIEW)
        return self._standing()

    def _seen(self, record: Record) -> Record:
        return as_seen(record, self.replica.tables.all_controls.values())

    def _held_here(self, record_ids: Sequence[str]) -> bool:
        """These records run under workers of this process, so what they have written is known here."""
        rows = [self.replica.tables.record(record_id) for record_id in record_ids]
        return all(row is not None and row.status is Status.RUNNING and row.worker in self._own for row in rows)

    async def load(self, record_ids: Sequence[str]) -> list[Record]:
        await self._sync(Lane.VIEW)
        rows = (self.replica.tables.record(record_id) for record_id in record_ids)
        return [self._seen(row) for row in rows if row is not None]

    async def find(self, query: Query) -> list[Record]:
        await self._sync(Lane.VIEW)
        tables = self.replica.tables
        rows = tables.children_of(query.parent_id) if query.parent_id else tables.all_records.values()
        return tables.find(query, map(self._seen, rows))

    async def counts(self) -> list[Count]:
        await self._sync(Lane.VIEW)
        tables = self.replica.tables
        return tables.counts(map(self._seen, tables.all_records.values()))

    async def events(self, *, record_id: str = "", after: int = 0, limit: int = 1000) -> list[Event]:
        await self._sync(Lane.ARCHIVE)
        tables = self.replica.tables
        rows = tables.events_of(record_id) if record_id else tables.all_events
        return [event for event in rows if event.seq > after][:limit]

    async def receipts(self, *, record_ids: Sequence[str] = (), keys: Sequence[str] = ()) -> list[Receipt]:
        if keys or not self._held_here(record_ids):
            await self._sync(Lane.CLAIM)
        tables = self.replica.tables
        found = [receipt for record_id in record_ids for receipt in tables.receipts_of(record_id)]
        found += [receipt for key in keys if (receipt := tables.receipt(key)) is not None]
        return sorted(found, key=lambda receipt: (receipt.record_id, receipt.seq))

    async def signals(self, record_id: str) -> list[Signal]:
        await self._sync(Lane.VIEW)
        return self.replica.tables.signals_of(record_id)

    async def fanins(self, parent_id: str) -> list[Fanin]:
        await self._sync(Lane.VIEW)
        return self.replica.tables.fanins(parent_id)

    async def workers(self) -> list[Worker]:
        await self._sync(Lane.VIEW)
        return list(self.replica.tables.all_workers.values())

    async def setting(self, name: str) -> Setting | None:
        await self._sync(Lane.VIEW)
        return self.replica.tables.all_settings.get(name)

    async def settings(self, prefix: str) -> list[Setting]:
        await self._sync(Lane.VIEW)
        return [row for name, row in sorted(self.replica.tables.all_settings.items()) if name.startswith(prefix)]

    async def dump(self, type_: type[Row], *, after: tuple[Any, ...] = (), limit: int = 1000) -> list[Row]:
        if not after:
            await self._sync(Lane.ARCHIVE)
        return [row for row in self.replica.tables.rows_of(type_) if not after or key_of(row) > after][:limit]

    async def settings_warnings(self) -> list[str]:
        """What ``quire doctor`` should say about the book; it proves the fence by racing pairs."""
        from quire.ledger.sheets_doctor import examine

        return await examine(self)

    async def wait_for_work(self, timeout: float) -> None:
        waiter = asyncio.ensure_future(self._work.wait())
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


def _ledger_error(error: GoogleError) -> LedgerError:
    if isinstance(error, Unavailable | Unanswered):
        return LedgerUnavailable(str(error))
    return LedgerError(str(error))


def _told(error: Exception) -> Exception:
    return _ledger_error(error) if isinstance(error, GoogleError) else error
