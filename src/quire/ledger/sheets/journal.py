"""The journal of a book as one process follows it: what it has read, and how it lands an entry.

The replica changes only here, by entries that the book shows, and by our own once Google has accepted them. Whether a
commit without an answer landed is decided by the entry at its sequence number and by nothing else; until that is known
nothing else is sent (protocol 13).
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from quire.clock import Clock, new_id
from quire.errors import LedgerError, LedgerUnavailable
from quire.google.budget import Urgency
from quire.google.error import GoogleError, Invalid, Unanswered, Unavailable
from quire.ledger.sheets.book import Book, Echo, Run, is_fence, is_ghost, is_order, state_anew, state_requests
from quire.ledger.sheets.journal_guard import Seen
from quire.ledger.sheets.journal_rows import Entry, JournalDamaged, beginning, cells, entries, following
from quire.ledger.sheets.long_values import LongValues
from quire.ledger.sheets.mark import Mark, leave_heads, leave_seen
from quire.ledger.sheets.replica import Replica
from quire.ledger.sheets.rescue import leave_rescue
from quire.ledger.sheets.state_guard import Looked
from quire.ledger.sheets.takeover import Witness
from quire.model.record import Record

log = logging.getLogger(__name__)

#: How long an unanswered commit is pursued before its caller hears that its fate is unknown.
PATIENCE = 120.0
#: Reads after which a refused fence without a newer entry is no stale read any more.
READS = 6
#: The whole journal is read again so often, not only its end: people may have moved its rows.
WHOLE_SECONDS = 600.0


class Sent(NamedTuple):
    """A commit whose fate is not known yet."""

    entry: Entry
    records: tuple[Record, ...]
    urgency: Urgency
    rewrite_state: bool


@dataclass(slots=True)
class Sending:
    """How far the sending of one entry has come."""

    #: When it began, on ``clock.boottime``.
    since: float
    #: A try had no answer: it may have landed.
    unanswered: bool
    #: The tab ``state`` is written with it.
    with_state: bool = True
    #: The places of the head that were refused.
    tried: list[str] = field(default_factory=list)
    #: How often all of them were refused, and how often something else went wrong.
    silent: int = 0
    tries: int = 0


class Log:
    def __init__(self, book: Book, long_values: LongValues, witness: Witness, clock: Clock, url: str) -> None:
        self.book = book
        self.long_values = long_values
        self.witness = witness
        self.clock = clock
        self.url = url
        self.transport = book.sheets.transport
        self.replica = Replica()
        self.closed = False
        self.broken: LedgerError | None = None
        #: A commit that was given up without an answer: its fate comes first.
        self.unknown: Sent | None = None
        #: The tab ``state`` could not be written.
        self.state_dirty = False
        #: When the last read began, on the ledger's own clock.
        self.read_at = float("-inf")
        #: When the whole journal was last read.
        self.whole_at = float("-inf")
        self.looked = Looked(clock)
        self.seen = Seen()
        #: Set when something may have become due.
        self.work = asyncio.Event()
        #: The entry with which the rescue ends that was left.
        self._rescued = 0
        self._latency = 0.0
        self._reading: asyncio.Task[None] | None = None
        self._read_lock = asyncio.Lock()

    async def quiet(self) -> None:
        """Return when no read is under way."""
        if self._reading is not None:
            await asyncio.wait({self._reading})
        async with self._read_lock:
            return

    def check(self) -> None:
        if self.closed:
            raise LedgerUnavailable(f"the ledger {self.url} is not open")
        if self.broken is not None:
            raise self.broken

    async def pause(self, n: int) -> None:
        """Full jitter, longer each time, and with each process that competes.

        On a clock of its own: clocks of tests stand still while the network runs.
        """
        crowd = self.transport.budgets.writes.sharers
        longest = min(10.0, max(0.05, self._latency) * crowd * 2**n)
        await self.transport.clock.sleep(random.uniform(0.0, longest))

    # -- reading ---------------------------------------------------------------------------------------------------

    async def sync(self, urgency: Urgency = Urgency.CLAIM) -> None:
        """Apply what a read shows that begins after this call. Callers at the same time share one."""
        if self._reading is None:
            self._reading = asyncio.ensure_future(self._read_next(urgency))
            self._reading.add_done_callback(lambda task: task.cancelled() or task.exception())
        await asyncio.shield(self._reading)

    async def _read_next(self, urgency: Urgency) -> None:
        try:
            async with self._read_lock:
                self._reading = None  # whoever asks from now on needs another read
                self.check()
                asked = self.clock.boottime()
                await self._read(urgency)
                self.read_at = asked
        except GoogleError as error:
            raise ledger_error(error) from error

    async def _read(self, urgency: Urgency) -> None:
        """One request, if the journal is as it was left, as far as it is looked at; else all of it is read again."""
        last = self.replica.last
        assert last is not None
        if self.clock.boottime() - self.whole_at > WHOLE_SECONDS:
            return await self.read_all(urgency)
        part = self.looked.part(self.replica) if not self.state_dirty else None
        old = self.seen.part()
        try:
            shown = await self.book.read(last.position, urgency, seen=old, state=part)
        except LedgerError:
            return await self.read_all(urgency)  # the tab is gone
        rows = shown.rows
        if not rows or len(rows[0]) < 3 or rows[0][2] != last.token:
            return await self.read_all(urgency)
        try:
            found = entries(rows[1:], last.position + 1)
            if not self._all_there(found):
                return await self.read_all(urgency)
            await self.long_values.fetch(found, self.replica.blobs)
            # Our own commit may have landed meanwhile: then these rows may show it, or more, or not yet.
            counted, void = following(self.replica.last or last, found)
        except LedgerError:
            return await self.read_all(urgency)  # a part of what is there may lie before the place where we began
        self._apply(counted, void)
        for entry in counted:
            self.seen.add(entry)
        if old is not None and (shown.seen is None or self.seen.differ(old, shown.header or [], shown.seen)):
            return await self.read_all(urgency)  # people have moved rows, or worse
        if part is not None and self.looked.changed(self.replica, part, shown.state):
            log.warning("somebody changed the tab state of %s; it is written anew", self.url)
            self.state_dirty = True
        return None

    def _all_there(self, found: Sequence[Entry]) -> bool:
        """Whether all that the book accepted before each of these is known: rows of rivals may stand elsewhere."""
        replica = self.replica
        known = {entry.token for entry in found} | {replica.last.token if replica.last else "", ""}
        return not replica.void and all(entry.accepted in known for entry in found if entry.seq > replica.seq)

    async def read_whole(self, urgency: Urgency) -> None:
        """The whole journal, from its first row, as the next read would not."""
        async with self._read_lock:
            await self.read_all(urgency)

    async def read_all(self, urgency: Urgency) -> None:
        """The whole journal. It must go on from where the replica stands, or begin anew after it."""
        replica, book_id = self.replica, self.book.spreadsheet_id
        self.whole_at = self.clock.boottime()
        for n in range(READS):
            if n:
                await self.pause(n)
            try:
                rows = await self.book.rows(1, urgency)
                found = entries(rows, 1)
                await self.long_values.fetch(found, replica.blobs)
                if self._follow(replica, found):
                    self.seen.learn(rows)
                    break
            except LedgerError as error:
                if n < 1:
                    continue  # once more: a damage is for ever, a stale read is not
                self.broken = error
                await self._leave_word()
                raise
        else:
            await self._leave_word()
            raise LedgerError(
                f"the book {book_id} is behind what this process has read in it (entry {replica.seq}): it "
                "was restored to an older version, or its newest rows were deleted. Nothing is claimed: what was done "
                "since then would be done again. Restore the newest version (File > Version history); or let its "
                "records ask you what goes on ('quire adopt')."
            )
        if replica.book != book_id:
            self.broken = LedgerError(
                f"the book {book_id} is a copy of {replica.book}: two fleets would run the same records. Use the "
                "original; or make this one a ledger of its own with 'quire adopt': each open record asks you then "
                "whether it goes on here."
            )
            raise self.broken

    async def _leave_word(self) -> None:
        """What this process knows may be all that is left: keep it for who starts next, and for ``doctor --repair``."""
        drive, book_id, last = self.long_values.drive, self.book.spreadsheet_id, self.replica.last
        if last is None:
            await leave_heads(drive, book_id, [token for token, _ in await self.book.heads()])
        elif last.seq > self._rescued:
            self._rescued = last.seq
            await leave_seen(drive, book_id, Mark(last.generation, last.seq, last.token, last.commit_id))
            await leave_rescue(drive, book_id, self.replica)

    def _follow(self, replica: Replica, found: list[Entry]) -> bool:
        """Bring the replica up to these entries; False: they are older than it."""
        last, first = replica.last, beginning(found)
        if last is None or first.seq > last.seq:  # rows of an older generation may be left over where people sorted
            counted, void = following(first, found)
            self._apply([first, *counted], void, live=last is not None)
            return True
        same = next((entry for entry in (*found, first) if entry.token == last.token), None)
        if same is None:
            return False
        # What was applied long ago must still be there, for those who start later.
        counted, void = following(first, found)
        if last.token not in {entry.token for entry in (first, *counted)}:
            raise JournalDamaged(
                f"entry {last.seq} of the journal of {self.book.spreadsheet_id} does not count any more"
            )
        replica.last = last._replace(position=same.position)
        self._apply([entry for entry in counted if entry.seq > last.seq], void)
        return True

    def _apply(self, counted: Sequence[Entry], void: Sequence[Entry], *, live: bool = True) -> None:
        """``live``: these came while this process was reading, not before."""
        replica = self.replica
        for entry in counted:
            whose = replica.apply(entry, self.long_values.texts)
            self.witness.saw(whose, float(entry.at), live=live)
        for entry in void:
            if entry.token not in replica.void:
                log.error("several commits on one head were accepted in %s: entry %s is void", self.url, entry.token)
                replica.void.append(entry.token)
        if counted:
            self.long_values.committed(replica.files)
        if replica.woke:
            replica.woke = False
            self.work.set()

    # -- writing ---------------------------------------------------------------------------------------------------

    async def settle_unknown(self) -> None:
        """Learn what became of the commit that was given up; nothing else may be planned before (protocol 13)."""
        sent, self.unknown = self.unknown, None
        if sent is not None:
            await self.land(sent, unanswered=True)

    async def land(self, sent: Sent, *, unanswered: bool = False, paid: bool = False) -> bool:
        """Send until it is known whose entry stands at its place. The fence makes every repeat harmless.

        ``paid``: the quota of the first request has been taken already.
        """
        entry, replica, clock = sent.entry, self.replica, self.transport.clock
        sending = Sending(clock.boottime(), unanswered)
        while True:
            if replica.seq >= entry.seq:
                return replica.commits.get(entry.seq) == entry.commit_id
            assert replica.last is not None
            # The head stands on the last entry, or on one that does not count. The newest of these is tried first.
            heads = (entry.prev_token, *reversed(replica.void))
            fence = next((token for token in heads if token not in sending.tried), None)
            if fence is None:
                await self._begin_again(sent, sending)
                continue
            after = replica.last.position
            requests = self.book.commit(entry, after, fence)
            count = len(requests)
            runs: Sequence[Run] = ()
            if sending.with_state:
                more, runs = self._state_requests(sent)
                requests += more
            asked, place = clock.boottime(), 1 if entry.snapshot else after
            try:
                echo = await self.book.send(requests, place, sent.urgency, runs=runs, paid=paid)
            except Invalid as refusal:
                if is_fence(refusal):
                    sending.tried.append(fence)
                    await self._read_after(sent, sending.unanswered)
                    if replica.seq < entry.seq:  # people may have moved the new rows above the place where we look
                        await self._read_after(sent, sending.unanswered, whole=True)
                else:
                    of_state = bool(runs) if refusal.index is None else refusal.index >= count
                    await self._heed(refusal, sent, sending, of_state=of_state)
            except Unanswered as error:
                sending.unanswered = True
                sending.tries += 1
                if clock.boottime() - sending.since > PATIENCE:
                    self.unknown = sent
                    raise LedgerUnavailable(str(error)) from error
                await self.pause(min(sending.tries, 6))
                await self._read_after(sent, unanswered=True)
            except Unavailable as error:
                if sending.unanswered:
                    self.unknown = sent
                raise LedgerUnavailable(str(error)) from error
            else:
                self._latency = clock.boottime() - asked
                self.witness.landed(asked, self.transport.troubled_at)
                if not echo.state_is_right:
                    log.warning("people moved rows in the tab state of %s; it is repaired soon", self.url)
                    self.state_dirty = True
                return await self._landed(sent, after, echo)
            paid = False

    async def _begin_again(self, sent: Sent, sending: Sending) -> None:
        """Every place on which the head may stand was refused. Try them again, a few times."""
        sending.tried.clear()
        sending.silent += 1
        if sending.silent >= READS:
            raise self._head_lost(sent, sending.unanswered)
        await self.pause(sending.silent)

    async def _heed(self, refusal: Invalid, sent: Sent, sending: Sending, *, of_state: bool) -> None:
        """Do what lets the next try succeed, where it was not the fence that refused.

        ``of_state``: the refused request is one of those that write the tab ``state``.
        """
        if refusal.index is None and await self.book.renamed():
            return  # the batch asks for cells in the answer, and can name their tab by its title only
        if is_order(refusal) and not self.book.narrow:
            self.book.narrow = True
        elif is_ghost(refusal):
            self.book.head_name = new_id("QUIRE_HEAD_")
        elif of_state:
            log.warning("the tab state cannot be written; the next worker makes it anew (%s)", refusal)
            sending.with_state, self.state_dirty = False, True
        else:  # rows were deleted, or more
            sending.tries += 1
            if sending.tries > READS:
                raise LedgerError(f"the journal of {self.url} cannot be written: {refusal}") from refusal
            await self.read_whole(sent.urgency)

    async def _read_after(self, sent: Sent, unanswered: bool, *, whole: bool = False) -> None:
        if whole:
            self.whole_at = float("-inf")
        try:
            await self.sync(sent.urgency)
        except LedgerUnavailable:
            if unanswered:
                self.unknown = sent
            raise

    def _head_lost(self, sent: Sent, unanswered: bool) -> LedgerError:
        if unanswered:  # it may have landed, and reads may lag behind
            self.unknown = sent
            return LedgerUnavailable(f"it is not known whether a commit to {self.url} landed: no read shows it yet")
        self.broken = LedgerError(
            f"the head of the ledger {self.url} is gone or was moved: commits are refused although nobody has written. "
            "Somebody deleted or changed the named range QUIRE_HEAD, or its cell, or wrote a row into the journal; "
            "'quire doctor' tells which, and 'quire doctor --repair' repairs it where that is safe."
        )
        return self.broken

    async def _landed(self, sent: Sent, after: int, echo: Echo) -> bool:
        """It was accepted. If it was not the first all the same, it does not count (protocol 12)."""
        entry, replica = sent.entry, self.replica
        rivals = {row[0] for row in echo.tokens if len(row) > 1 and row[1] == entry.prev_token} - {entry.token}
        there = any(row and row[0] == entry.token for row in echo.tokens)
        if rivals or not there or echo.accepted not in (entry.prev_token, "", *replica.void):
            await self.read_whole(sent.urgency)
            return replica.commits.get(entry.seq) == entry.commit_id
        if replica.seq < entry.seq:  # else a read has shown it before the answer came
            height = len(cells(entry))
            position = (1 if entry.snapshot else after) + height
            self._apply(written := entries(cells(entry), position - height + 1), ())
            self.seen.add(written[0])
            if self._rescued:
                await self._leave_word()  # this entry was on its way when the damage was found
        if sent.rewrite_state:
            self.state_dirty = False
        return replica.commits.get(entry.seq) == entry.commit_id

    def _state_requests(self, sent: Sent) -> tuple[list[dict[str, Any]], Sequence[Run]]:
        if sent.rewrite_state:
            return state_anew(list(self.replica.tables.all_records.values())), ()
        if self.state_dirty:
            return [], ()
        return state_requests(sent.records, self.replica.places)


def ledger_error(error: GoogleError) -> LedgerError:
    """What Google's refusal means for who asked the ledger."""
    if isinstance(error, Unavailable | Unanswered):
        return LedgerUnavailable(str(error))
    return LedgerError(str(error))
