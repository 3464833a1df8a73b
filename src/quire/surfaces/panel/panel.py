"""The panel: a spreadsheet in front of any ledger, in which people see every record, command, stop and start work.

One look is one read, what follows from it in the ledger, and at the most one write:

1. read the tabs, as people left them;
2. obey the words that were typed, and STOP;
3. ask the ledger what changed;
4. give new rows of inboxes their ids, start what has one;
5. write: what the engine shows into its hidden tabs, new rows into inserted ones, and what was typed over back to what
   it was, each cell only if it still is as it was read.

Everything is decided from what was just read, so a write that failed, or whose answer was lost, is made good by the
next look. The panel never fails a record: whatever goes wrong here is logged, and tried again later.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Self

from quire.client.client import Client
from quire.clock import iso
from quire.errors import QuireError
from quire.folder.base import Folder
from quire.google.error import Invalid, NotShared
from quire.model.change import Standing
from quire.model.record import Record
from quire.surfaces import waking
from quire.surfaces.panel import control, drawing, heal, inbox, reading, result
from quire.surfaces.panel.binding import Written
from quire.surfaces.panel.book import Book, Rows, Tab
from quire.surfaces.panel.cells import At, Request, refers, replace
from quire.surfaces.panel.changes import Changes, Watcher, rows_of
from quire.surfaces.panel.columns import arranged
from quire.surfaces.panel.commands import BY, Command, obey
from quire.surfaces.panel.inboxes import Inboxes
from quire.surfaces.panel.inboxes import Pass as InboxPass
from quire.surfaces.panel.layout import COMMAND, INBOX_ID, PANEL_ID, PANEL_ROW, STATE, STATE_ID, TABLE_ID, TABLES_ID
from quire.surfaces.panel.lease import Lease
from quire.surfaces.panel.reading import Table
from quire.surfaces.panel.table import Row, panel_row
from quire.surfaces.panel.tables import lines
from quire.surfaces.panel.tables.kept import Problems
from quire.surfaces.panel.tables.tables import Pass as TablePass
from quire.surfaces.panel.tables.tables import Tables
from quire.surfaces.panel.tabs import Tabs

log = logging.getLogger(__name__)

#: After a failure the next look comes later and later, up to this.
LONGEST_PAUSE = 60.0
#: However often it is woken, so long lies between two looks: 30 writes a minute at the most.
SHORTEST_PAUSE = 2.0
#: So often it is looked whether a process that has no panel was called to wake it.
HINT_SECONDS = 1.0
#: Looks that follow each other at once: new rows get their ids in the first, and are started in the second.
MOST_AT_ONCE = 4


class Panel:
    """Use it as ``async with Panel(client, url) as panel``; ``run`` looks until it is stopped."""

    def __init__(
        self,
        client: Client,
        url: str,
        *,
        groups: Mapping[str, Sequence[str]] | None = None,
        folder: Folder | None = None,
        columns: Mapping[str, str] | None = None,
    ) -> None:
        """``folder``: where the files of records stand; data that are too long for a cell are linked there.

        ``columns``: what the columns of the state table are called, in their order, and the row of its ``header``.
        """
        self.client = client
        self.book = Book(url)
        self.groups = groups or {}
        self.lease = Lease(client.ledger, self.book.spreadsheet_id, client.clock)
        self._arrangement = arranged(columns or {})
        self.tabs = Tabs(client, self.book, self.lease, self._arrangement)
        self._problems = Problems(client.ledger, self.book)
        self._watcher = Watcher(client)
        self._inboxes = Inboxes(client, self.book, self._problems)
        self._tables = Tables(client, self.book, self.groups, self._file_of)
        self._folder = folder
        #: What each hidden row holds, by our last write; None: not known.
        self._places: dict[int, str] | None = None
        self._drawn: Written[Row] = Written()
        #: Rows that are still to be drawn.
        self._left: dict[str, Row] = {}
        #: Records beside which a word stood already when their row first showed what they ask now.
        self._torn: set[str] = set()
        self._offered: list[Request] | None = None
        self._standing: Standing | None = None
        self._not_shown = 0
        self._woken = asyncio.Event()
        #: The version of the last hint; -1: none was looked for yet.
        self._hint = -1
        self._stopped = False

    async def __aenter__(self) -> Self:
        await self.book.open()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.book.close()

    def _file_of(self, record: Record) -> str:
        """The state file of a record, with all its data; empty: there is no folder."""
        if self._folder is None:
            return ""
        return f"{self._folder.url.rstrip('/')}/{self._folder.layout(record.workflow).state(record.record_id)}"

    # -- running ---------------------------------------------------------------------------------------------------

    @property
    def pause(self) -> tuple[float, float]:
        """Between two looks: while something goes on, and while nothing does.

        A store that is itself polled seldom pays for each look with the same quota: there it is rarer still, so that
        an idle worker and its panel together make at most 12 reads a minute.
        """
        poll = self.client.ledger.traits.poll_seconds
        return (poll, poll) if poll <= 5.0 else (poll, 2.5 * poll)

    @property
    def hinted(self) -> bool:
        """Whether it should look whenever a record was settled; not where its looks and the records share a quota."""
        return self.client.ledger.traits.poll_seconds <= 5.0

    async def run(self) -> None:
        """Look again and again. No failure gets out: the panel is never in the way of the records."""
        self.client.wakers.append(self.wake)
        failures = 0
        try:
            while not self._stopped:
                busy, idle = self.pause
                try:
                    wait = busy if await self.look() else idle
                    failures = 0
                except Exception as error:
                    failures += 1
                    wait = min(LONGEST_PAUSE, idle * 2 ** min(failures, 5))
                    self._lost()
                    level = logging.WARNING if isinstance(error, QuireError) else logging.ERROR
                    details = None if isinstance(error, QuireError) else error
                    text = "the panel %s cannot be kept up: %s; the next try is in %.0f s"
                    log.log(level, text, self.book.url, error, wait, exc_info=details)
                await self._rest(wait)
        finally:
            self.client.wakers.remove(self.wake)
            try:
                await self.lease.release()
            except QuireError:
                log.info("the panel's lease runs out by itself")

    async def _rest(self, span: float) -> None:
        ended = self.client.clock.boottime()
        sleeping = asyncio.ensure_future(self.client.clock.sleep(span))
        waits = {sleeping, asyncio.ensure_future(self._woken.wait())}
        if self.hinted:
            waits.add(asyncio.ensure_future(self._hinted_elsewhere()))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
        if not self._stopped:
            await self.client.clock.sleep(max(0.0, ended + SHORTEST_PAUSE - self.client.clock.boottime()))
        self._woken.clear()

    async def _hinted_elsewhere(self) -> None:
        """Return when another process was called to wake the panel (``waking``): where looking for it costs little."""
        while True:
            await self.client.clock.sleep(HINT_SECONDS)
            try:
                version = await waking.last_hint(self.client.ledger)
            except QuireError:
                continue
            known, self._hint = self._hint, version
            if known not in (-1, version):
                return

    def wake(self) -> None:
        """Look now, or very soon. A hint: without it the next look comes by itself."""
        self._woken.set()

    def stop(self) -> None:
        self._stopped = True
        self._woken.set()

    def _lost(self) -> None:
        """What the book and this process know of each other is not sure any more: begin with a fresh look."""
        self._places = self._offered = None
        self._left.clear()
        self._drawn.forget()
        self._inboxes.forget()
        self._tables.forget()
        self.tabs.forget()
        self._watcher.begin_anew()

    # -- one look --------------------------------------------------------------------------------------------------

    async def look(self, *, at_once: bool = False) -> bool:
        """Look once; answers whether anything was going on. ``at_once``: take new rows of inboxes as they are."""
        if not await self.lease.held():
            return False
        if self.lease.new():  # another may have drawn meanwhile
            self._lost()
        await self.tabs.look()
        went_on = False
        for _ in range(MOST_AT_ONCE):
            try:
                done, again = await self._once(at_once=at_once)
            except BaseException:
                self._lost()
                raise
            went_on |= done
            if not again:
                break
        return went_on

    async def _once(self, *, at_once: bool) -> tuple[bool, bool]:
        made = self.tabs.made
        grids = await self.tabs.read()
        if self.tabs.made != made:
            self._places = self._offered = None
            self._watcher.begin_anew()
        state = reading.hidden_rows(grids[STATE_ID])
        title = self.tabs.title(STATE_ID)
        restored = self._restored(state, grids[TABLE_ID], title)
        panel = state.pop(PANEL_ROW, None)
        edited = heal.hidden(state, self._drawn)
        restored += [drawing.hidden_row(place, state[place]) for place in edited]
        table = reading.read(grids[TABLE_ID], state, title, self._arrangement)
        if await self._problems.name(TABLE_ID, self.tabs.title(TABLE_ID), "", table.doubled):
            return False, False
        if table.renamed and await self.tabs.renamed():
            return False, True
        if table.missing:
            await self.tabs.repair_header(table, grids[TABLE_ID])
            return True, True
        replies, clears = await self._commands(table, state)
        unticked, stopped = await self._stop(grids[PANEL_ID])
        changes = await self._changes(state, grids)
        passed = await self._look_at_inboxes(grids, changes, at_once=at_once)
        tables = await self._look_at_tables(grids, changes, at_once=at_once)
        shown = await self.book.shown(heal.unreadable(table))
        healed = heal.heal(table, shown, blanks=self.tabs.blanks)
        notes = {state[place].record_id: note for place, note in edited.items()}
        rows = self._left | rows_of(changes, state, {**notes, **tables.notes, **healed.notes, **replies})
        bare = self.tabs.found[TABLE_ID].rows <= table.header + 1
        drawn = drawing.draw(table, rows, state, len(grids[STATE_ID]), title, bare=bare)
        self._not_shown = drawn.hidden
        own = await self._own_row(changes, panel, stopped)
        wrote = await self._write(
            [
                [*restored, *drawn.state, *own, *clears, *unticked],
                drawn.births,
                [*healed.requests, *control.repair(grids[PANEL_ID], title, blanks=self.tabs.blanks)],
                passed.requests,
                tables.hidden,
                *tables.visible.values(),
                self._dropdowns(table, drawn.after, born=bool(drawn.births)),
                *self._results(changes.records),
            ],
            {id(part): sheet_id for sheet_id, part in tables.visible.items()},
        )
        if wrote is not None:
            self._left = drawn.left
            self._places = {PANEL_ROW: "@panel", **{place: row.record_id for place, row in drawn.after.items()}}
            self._drawn.know(drawn.after)
            self._torn = await self._typed_before(state, drawn.after, title)
            await self._tables.typed_before(self.tabs.tables, self.tabs.title(TABLES_ID))
        went_on = bool(wrote) or bool(changes.records) or passed.soon or tables.soon
        return went_on, passed.again or tables.again or drawn.more

    async def _look_at_inboxes(self, grids: Mapping[int, Rows], changes: Changes, *, at_once: bool) -> InboxPass:
        return await self._inboxes.look(
            self.tabs.inboxes,
            grids,
            {record.record_id: record for record in changes.records},
            title=self.tabs.title(INBOX_ID),
            columns={sheet_id: tab.columns for sheet_id, tab in self.tabs.found.items()},
            blanks=self.tabs.blanks,
            at_once=at_once,
        )

    async def _look_at_tables(self, grids: Mapping[int, Rows], changes: Changes, *, at_once: bool) -> TablePass:
        return await self._tables.look(
            self.tabs.tables,
            grids,
            changes,
            title=self.tabs.title(TABLES_ID),
            widths={sheet_id: tab.columns for sheet_id, tab in self.tabs.found.items()},
            ranges=self.book.ranges,
            blanks=self.tabs.blanks,
            at_once=at_once,
        )

    async def _changes(self, state: Mapping[int, Row], grids: Mapping[int, Sequence[Sequence[Any]]]) -> Changes:
        known: list[str] = []
        if self._places is None:
            known = [row.record_id for row in state.values()]
            known += [row.record_id for row in inbox.hidden_rows(grids.get(INBOX_ID, ())).values()]
            known += [row.record_id for row in lines.hidden_rows(grids.get(TABLES_ID, ())).values()]
        return await self._watcher.changes(known)

    async def _write(self, parts: Sequence[Sequence[Request]], tables: Mapping[int, int]) -> bool | None:
        """All of it in one batch. If a part is refused, each goes by itself, so that one odd cell stops nothing else.

        Answers whether there was anything to write; None: not all of it could be. ``tables``: which parts are of the
        tabs of tables: one that is refused is let be for a while.
        """
        parts = [part for part in parts if part]
        if not parts:
            return False
        try:
            await self.book.write([request for part in parts for request in part])
            return True
        except (Invalid, NotShared) as error:
            log.warning("the panel %s: a part is refused: %s", self.book.url, error)
        self._lost()
        for part in parts:
            try:
                await self.book.write(part)
            except (Invalid, NotShared) as refusal:
                log.warning("the panel %s: this part is left out: %s", self.book.url, refusal)
                if id(part) in tables:
                    self._tables.refused(tables[id(part)], str(refusal))
        return None

    # -- what people asked for -------------------------------------------------------------------------------------

    async def _commands(self, table: Table, state: Mapping[int, Row]) -> tuple[dict[str, str], list[Request]]:
        """Obey what was typed. The cell is cleared in the batch that shows the answer."""
        replies: dict[str, str] = {}
        clears: list[Request] = []
        column = table.columns[COMMAND]
        for line in table.lines:
            word, moved = str(line.command).strip(), reading.typed_step(line, state[line.place])
            if not word and not moved:
                continue
            at = At(TABLE_ID, line.row, column)
            if refers(line.command) is not None:  # of ours: it met this cell when people moved columns
                clears.append(replace(at, line.command, ""))
                continue
            torn = line.record_id in self._torn
            command = Command(line.record_id, word or moved, state[line.place], torn=torn, moves=not word)
            reply = await obey(self.client, self.book.spreadsheet_id, command, self.client.clock, self.groups)
            log.info("the panel %s: %r beside %r: %s", self.book.url, command.word, line.record_id, reply)
            replies[line.record_id] = reply
            if word:
                text = line.command if isinstance(line.command, str) else (await self.book.shown([at])).get(at, "")
                clears += [replace(at, text, "")] if text else []
        return replies, clears

    async def _typed_before(self, before: Mapping[int, Row], after: Mapping[int, Row], title: str) -> set[str]:
        """Where rows show a new question: beside which of them a word stands that was typed for something else.

        It came between our read and our write. One more read, and only when somebody is asked something new.
        """
        new = {row.record_id for at, row in after.items() if row.code and at in before and row.code != before[at].code}
        if not new:
            return set()
        grids = await self.book.read([TABLE_ID])
        lines = reading.read(grids[TABLE_ID], after, title, self._arrangement).lines
        return {line.record_id for line in lines if line.record_id in new and str(line.command).strip()}

    async def _stop(self, grid: Sequence[Sequence[Any]]) -> tuple[list[Request], str]:
        """The STOP box halts, and is unticked in the batch that says so."""
        box = control.stop(grid)
        if box is None:
            return [], ""
        standing = await self.client.halt(by=BY, reason="STOP in the panel")
        self._standing = standing
        count = len(standing.under_way)
        text = f"halted at {iso(standing.now)[:19]}Z; {count} effects were under way; quire resume goes on"
        log.warning("the panel %s: STOP: %s", self.book.url, text)
        return [replace(box, "TRUE", "FALSE")], text

    # -- what they see ---------------------------------------------------------------------------------------------

    async def _own_row(self, changes: Changes, panel: Row | None, stopped: str) -> list[Request]:
        """How the ledger stands, in the hidden row of the panel itself."""
        if changes.standing is not None:
            self._standing = changes.standing
        elif self._standing is None or panel is None or self.lease.renewed():
            self._standing = await self.client.standing()
        reply = stopped or self.tabs.answer or (panel.reply if panel is not None else "")
        self.tabs.answer = ""
        wanted = panel_row(self._standing, reply, self._not_shown)
        return [] if wanted == panel else [drawing.hidden_row(PANEL_ROW, wanted)]

    def _restored(self, state: dict[int, Row], grid: Sequence[Sequence[Any]], title: str) -> list[Request]:
        """Somebody changed the order of the hidden rows: put each id back where the visible rows look for it.

        Rows that were inserted or deleted there took the references along; then nothing is to be put back.
        """
        known = self._places
        if known is None or all(place in state and state[place].record_id == id_ for place, id_ in known.items()):
            return []
        self._watcher.begin_anew()
        self._places = None
        lines = reading.read(grid, state, title, self._arrangement).lines
        ids = {row.record_id for row in state.values()}
        torn = [line for line in lines if any(d.name == "record_id" and d.found in ids for d in line.damages)]
        if 2 * len(torn) <= len(lines):
            return []
        log.warning("the panel %s: the hidden tab was changed and is put back", self.book.url)
        by_id = {row.record_id: row for row in state.values()}
        blank = Row(*[""] * len(STATE))
        state.clear()
        state |= {place: by_id.get(id_, blank._replace(record_id=id_)) for place, id_ in known.items()}
        return [drawing.hidden_row(place, row) for place, row in state.items()]

    def _dropdowns(self, table: Table, state: Mapping[int, Row], *, born: bool) -> list[Request]:
        """What may be typed in each row; said again whenever rows or words have changed."""
        wanted = drawing.dropdowns(table, state)
        if wanted == self._offered and not born:
            return []
        if born:  # the new rows move the others down: the next look says it
            self._offered = None
            return []
        self._offered = wanted
        return wanted

    def _results(self, records: Sequence[Record]) -> list[list[Request]]:
        """Tabs for the results of missions, each once."""
        parts = []
        for record in records:
            made = result.result_tab(record)
            if made is not None and made.sheet_id not in self.tabs.found:
                titles = [tab.title for tab in self.tabs.found.values()]
                self.tabs.found[made.sheet_id] = Tab(made.sheet_id, made.title, len(made.rows), 4)
                parts.append(made.requests(titles))
        return parts
