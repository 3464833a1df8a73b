"""The tabs of one book: made where they are missing, inboxes found, and what this book can do proven on itself."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from quire.client.client import Client
from quire.clock import iso
from quire.errors import LedgerError
from quire.google.error import Invalid
from quire.ledger import engine
from quire.surfaces.panel import inbox, layout, result
from quire.surfaces.panel.binding import added
from quire.surfaces.panel.book import Book, Rows, Tab
from quire.surfaces.panel.cells import Request, fill, replaced, write
from quire.surfaces.panel.columns import Arrangement
from quire.surfaces.panel.layout import INBOX_ID, PANEL_ID, PROOF, STATE_ID, TABLE_ID, TABLES_ID
from quire.surfaces.panel.lease import Lease
from quire.surfaces.panel.reading import Table
from quire.surfaces.panel.tables.declaration import Declared
from quire.surfaces.panel.tables.declaration import declared as tables_of

log = logging.getLogger(__name__)

#: New workflows may come, with inboxes: the tabs are looked through so often.
LOOK_SECONDS = 600.0


class Tabs:
    def __init__(self, client: Client, book: Book, lease: Lease, arrangement: Arrangement) -> None:
        self.arrangement = arrangement
        self._client = client
        self._book = book
        self._lease = lease
        self.found: dict[int, Tab] = {}
        self.inboxes: dict[int, inbox.Inbox] = {}
        self.tables: dict[int, Declared] = {}
        #: This book's findReplace sees blank cells.
        self.blanks = False
        #: How often tabs were made: whoever knew what stood in them does not any more.
        self.made = 0
        #: What to say to a person who deleted a tab of the engine's; empty: nobody did.
        self.answer = ""
        self._looked_at = float("-inf")

    def _answer_deletion(self, tabs: Mapping[int, Tab], *, inboxes: bool, tables: bool) -> None:
        """Note that a hidden tab is gone which was there: its cells come back from the ledger. People are answered."""
        there = bool(self.found) or bool(self._lease.tabs)
        hidden = {STATE_ID: True, INBOX_ID: inboxes, TABLES_ID: tables}
        gone = [layout.title_of(sheet_id) for sheet_id, wanted in hidden.items() if wanted and sheet_id not in tabs]
        known = [sheet_id for sheet_id in hidden if sheet_id in (self.found or tabs)]
        if there and known and gone:
            at = iso(self._client.clock.now())[:19]
            self.answer = (
                f"the hidden tab {' and '.join(gone)} was deleted: it is made anew from the ledger, and cells that "
                f"showed #REF! are put right ({at}Z); to part from Quire, copy the columns and paste their values"
            )
            log.warning("the panel %s: %s", self._book.url, self.answer)

    def forget(self) -> None:
        self._looked_at = float("-inf")

    def title(self, sheet_id: int) -> str:
        return self.found[sheet_id].title if sheet_id in self.found else ""

    async def look(self) -> None:
        """Set up what is missing, unless that was done a short while ago."""
        if self._client.clock.boottime() - self._looked_at < LOOK_SECONDS:
            return
        tabs = await self._book.tabs()
        definitions = await engine.definitions(self._client.ledger)
        declared = [each for known in definitions for each in inbox.declared(known)]
        tables = [each for known in definitions for each in tables_of(known)]
        requests = _made(self.arrangement, tabs, inboxes=bool(declared), tables=bool(tables))
        self._answer_deletion(tabs, inboxes=bool(declared), tables=bool(tables))
        places, made = self._inbox_tabs(declared, tabs)
        if requests or made:
            try:
                await self._book.write([*requests, *made])
            except Invalid as error:  # another process made them at the same moment
                log.info("the tabs of the panel %s: %s", self._book.url, error)
            self.made += 1
            tabs = await self._book.tabs()
            if {TABLE_ID, STATE_ID, PANEL_ID} - tabs.keys():
                raise LedgerError(f"the tabs of the panel {self._book.url} cannot be made")
        self.found = tabs
        self.inboxes = {sheet_id: each for sheet_id, each in places.items() if sheet_id in tabs}
        self.tables = self._table_tabs(tables)
        bound = {each.tab: sheet_id for sheet_id, each in self.inboxes.items()}
        await self._lease.save(bound | {each.tab: sheet_id for sheet_id, each in self.tables.items()})
        if not self.blanks:
            self.blanks = await fills_blanks(self._book)
        self._looked_at = self._client.clock.boottime()

    def _inbox_tabs(
        self, declared: Sequence[inbox.Inbox], tabs: Mapping[int, Tab]
    ) -> tuple[dict[int, inbox.Inbox], list[Request]]:
        """The tab of each inbox: the one that it had, or the one of that title, or a new one."""
        places: dict[int, inbox.Inbox] = {}
        requests: list[Request] = []
        by_title = {tab.title.casefold(): sheet_id for sheet_id, tab in tabs.items()}
        for each in declared:
            sheet_id = self._lease.tabs.get(each.tab)
            if sheet_id not in tabs:
                sheet_id = by_title.get(each.tab.casefold())
            if sheet_id is None:
                sheet_id = result.sheet_id_of(f"inbox {each.tab}")
                fields = [field for field in each.fields if field not in each.write_back]
                requests += layout.make_inbox(sheet_id, each.tab, [*fields, *each.write_back])
            places[sheet_id] = each
        return places, requests

    def _table_tabs(self, tables: Sequence[Declared]) -> dict[int, Declared]:
        """The tab of each table: the one that it had, or the one of that title. One that is not there is named."""
        by_title = {tab.title.casefold(): sheet_id for sheet_id, tab in self.found.items()}
        places: dict[int, Declared] = {}
        for each in tables:
            sheet_id = self._lease.tabs.get(each.tab)
            if sheet_id not in self.found:
                sheet_id = by_title.get(each.tab.casefold())
            if sheet_id is None:
                log.warning("the panel %s has no tab %r, which %r works with", self._book.url, each.tab, each.workflow)
            elif sheet_id in places or sheet_id in self.inboxes:
                log.warning("the tab %r is bound to one workflow; %r is left out", each.tab, each.workflow)
            else:
                places[sheet_id] = each
        return places

    async def read(self) -> dict[int, Rows]:
        """Everything that a look needs, in one request."""
        try:
            return await self._book.read(self._wanted())
        except Invalid:  # a tab was deleted
            self.forget()
            await self.look()
            return await self._book.read(self._wanted())

    async def renamed(self) -> bool:
        """Look at the tabs again; answers whether one has another title now."""
        before = {sheet_id: tab.title for sheet_id, tab in self.found.items()}
        self.found = await self._book.tabs()
        return any(self.title(sheet_id) != before.get(sheet_id) for sheet_id in (STATE_ID, INBOX_ID, TABLES_ID))

    def _wanted(self) -> list[int]:
        wanted = [TABLE_ID, STATE_ID, PANEL_ID, *self.inboxes, *self.tables]
        return [*wanted, *(sheet_id for sheet_id in (INBOX_ID, TABLES_ID) if sheet_id in self.found)]

    async def repair_header(self, table: Table, grid: Rows) -> None:
        """Columns of ours are gone: their names come back after the last column that is used; then their cells do."""
        tabs = await self._book.tabs()
        titles = [self.arrangement.titles[name] for name in table.missing]
        wide = tabs[TABLE_ID].columns
        await self._book.write(added(TABLE_ID, table.header, titles, grid, wide, blanks=self.blanks))
        log.warning("the panel %s: the columns %s are back at the end", self._book.url, ", ".join(table.missing))


def _made(arrangement: Arrangement, tabs: Mapping[int, Tab], *, inboxes: bool, tables: bool) -> list[Request]:
    """What makes the panel's tabs that are not there."""
    titles = [tab.title for tab in tabs.values()]
    state_title = tabs[STATE_ID].title if STATE_ID in tabs else layout.free_title("quire_state", titles)
    requests: list[Request] = []
    if STATE_ID not in tabs:
        requests += layout.make_state(titles)
    if TABLE_ID not in tabs:
        header = [arrangement.titles[name] for name in arrangement.order]
        requests += layout.make_table(titles, arrangement.order, header, arrangement.header)
    if PANEL_ID not in tabs:
        requests += layout.make_panel(titles, state_title)
    if inboxes and INBOX_ID not in tabs:
        requests += layout.make_inbox_state(titles)
    if tables and TABLES_ID not in tabs:
        requests += layout.make_table_state(titles)
    return requests


async def fills_blanks(book: Book) -> bool:
    """Whether a blank cell can be filled on the condition that it is blank, shown on a cell of our own."""
    clear = write(PROOF.sheet_id, PROOF.row, PROOF.column, [[{}]])
    replies = await book.write([clear, *fill(PROOF, "proof", blanks=True), clear])
    found = replaced(replies[2]) if len(replies) > 2 else False
    if not found:
        log.warning("this book cannot fill a cell only if it is blank: cells are written by their place instead")
    return found
