"""The rows of tables of people's become records, where they stand; and what people type there is asked of the ledger.

A row that is ready is first *bound*: one batch writes its hidden row and puts our references into its cells, each only
if it still holds what was read. Its status then says that it runs. When the next read shows the reference beside the
row's own id, its record is started, under an id that comes from the row's. So a row starts once, whoever dies between.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from quire.client.client import Client
from quire.clock import iso, new_id
from quire.errors import InputError
from quire.explain.why import Around
from quire.explain.words import record_link
from quire.model.codec import dump, parse
from quire.model.record import Record
from quire.surfaces.panel.binding import RECORD_ID, Grid, Written, added, hidden_rows, trimmed
from quire.surfaces.panel.book import Book
from quire.surfaces.panel.cells import At, Request, fill, replace, values
from quire.surfaces.panel.changes import Changes
from quire.surfaces.panel.inbox import is_id, normal, slug
from quire.surfaces.panel.layout import TABLE_STATE, TABLES_ID
from quire.surfaces.panel.starting import Given, Reading, Starter, edited, lacking, says_edited, taken_already
from quire.surfaces.panel.table import asked_of, asks, code, cut, why_text
from quire.surfaces.panel.tables import again
from quire.surfaces.panel.tables import kept as keeping
from quire.surfaces.panel.tables import lines as pure
from quire.surfaces.panel.tables import requests as asking
from quire.surfaces.panel.tables.declaration import (
    CONTEXT,
    NOTE,
    STATUS,
    Declared,
    find_columns,
    is_form,
    word_of,
)
from quire.surfaces.panel.tables.kept import MOST_UNASKED, Kept
from quire.surfaces.panel.tables.lines import NEW, SAID, STARTED, WAITS, Line, TableRow
from quire.workflows.words import same

log = logging.getLogger(__name__)

#: New rows that one batch binds.
MOST_ROWS = 500
#: Rows that are named in one sentence.
MOST_NAMED = 5
#: What Google takes in one cell, with room to spare.
MOST_CHARACTERS = 45_000
#: A tab of which a write was refused is let be for so long.
REST_SECONDS = 600.0


class Pass(NamedTuple):
    """What one look at the tables asks for."""

    #: Requests for the hidden rows, and for each tab.
    hidden: list[Request]
    visible: dict[int, list[Request]]
    again: bool
    soon: bool
    #: What to say in the state table of records whose row is gone, or back.
    notes: dict[str, str]


class Tables:
    def __init__(
        self, client: Client, book: Book, groups: Mapping[str, Sequence[str]], files: Callable[[Record], str]
    ) -> None:
        self._client = client
        self._files = files
        self._book = book
        self._groups = groups
        self._starter = Starter(client, book)
        self._written: Written[TableRow] = Written()
        #: Rows that were ready at the last look, by tab: one that is being typed is let be.
        self._seen: dict[int, set[str]] = {}
        self._gone: dict[int, frozenset[int]] = {}
        self._kept: dict[int, tuple[Kept, int]] = {}
        #: Tabs that refused a write, and until when they are let be.
        self._rests: dict[int, float] = {}
        #: Records beside which a word stood already when their row first showed what they ask now.
        self.torn: set[str] = set()
        #: Rows that ask something else since the last look.
        self._asked: dict[int, TableRow] = {}

    def forget(self) -> None:
        self._written.forget()

    async def look(
        self,
        tables: Mapping[int, Declared],
        grids: Mapping[int, Grid],
        changes: Changes,
        *,
        title: str,
        widths: Mapping[int, int],
        ranges: Mapping[int, Mapping[str, int]],
        blanks: bool,
        at_once: bool,
    ) -> Pass:
        """``widths``: how many columns each tab has; ``ranges``: named ranges of each tab, and their columns."""
        found = pure.hidden_rows(grids.get(TABLES_ID, ()))
        hidden = dict(found)
        self._written.restore(hidden)
        size = max(len(grids.get(TABLES_ID, ())), 1)
        asked = Pass([], {}, False, False, {})
        wanted = dict(hidden)
        for sheet_id, table in tables.items():
            if self._client.clock.boottime() < self._rests.get(sheet_id, 0.0):
                continue
            look = _Look(self, table, sheet_id, grids.get(sheet_id, ()), hidden, wanted, changes, title, size, blanks)
            made = await look.run(ranges.get(sheet_id, {}), widths.get(sheet_id, 0), at_once=at_once)
            asked.visible[sheet_id] = look.requests
            asked.notes.update(look.notes)
            asked = asked._replace(again=asked.again or made, soon=asked.soon or bool(self._seen.get(sheet_id)))
        self._show(tables, wanted, changes)
        self._written.know(wanted)
        self._asked = {
            place: row for place, row in wanted.items() if row.code and place in found and row.code != found[place].code
        }
        return asked._replace(hidden=hidden_rows(TABLES_ID, found, wanted, size, _cells))

    def refused(self, sheet_id: int, why: str) -> None:
        """Google refused what was to be written into this tab: a protected cell, perhaps. It is let be for a while."""
        log.warning("the table in tab %s of %s is let be for %.0f s: %s", sheet_id, self._book.url, REST_SECONDS, why)
        self._rests[sheet_id] = self._client.clock.boottime() + REST_SECONDS

    async def typed_before(self, tables: Mapping[int, Declared], title: str) -> None:
        """Where rows show a new question: beside which of them a word stands that was typed for something else.

        It came between our read and our write. One more read, and only when somebody is asked something new.
        """
        asked, self._asked = self._asked, {}
        tabs = {int(row.tab) for row in asked.values()} & tables.keys()
        grids = await self._book.read(sorted(tabs)) if tabs else {}
        for sheet_id, grid in grids.items():
            columns = find_columns(
                tables[sheet_id], grid, self._book.ranges.get(sheet_id, {}), self._kept[sheet_id][0].called
            )
            if not columns.problem:
                sheet = pure.read(tables[sheet_id], columns, sheet_id, grid, asked, title)
                typed = [line for line in sheet.lines if line.place is not None and not line.shows and line.typed]
                self.torn |= {asked[line.place].record_id for line in typed if line.place is not None}

    def _show(self, tables: Mapping[int, Declared], wanted: dict[int, TableRow], changes: Changes) -> None:
        """What the rows of records say that changed."""
        records = {record.record_id: record for record in changes.records}
        for place, row in wanted.items():
            record = records.get(row.record_id)
            table = tables.get(int(row.tab)) if row.tab.isdigit() else None
            if record is not None and table is not None and row.mark == STARTED:
                wanted[place] = self.shown(table, row, record, changes.around.get(record.record_id))

    def shown(self, table: Declared, row: TableRow, record: Record, around: Around | None) -> TableRow:
        """The hidden row of a record as it stands."""
        kind = around.ended.kind if around is not None and around.ended is not None else ""
        asked = asked_of(record)
        where = record_link(self._client.public_url, record.record_id)
        note = row.note
        if row.version != str(record.version):
            note = record.last_error or record.question or ""
        if says_edited(row.note):
            note = edited(note, is_edited=True)
        slots: dict[str, Any] = {
            "show attempts": record.attempt,
            "show updated_at": iso(record.updated_at),
            "show why": why_text(record, around) if around is not None else "",
            "show asks": asks(asked) if asked is not None else "",
            f"show {RECORD_ID}": record.record_id,
            "show link": where or "",
            CONTEXT: _context(record, self._files(record), where),
        }
        slots |= written_back(table.write_back, record, "back ")
        return row._replace(
            word=word_of(table, record, kind),
            note=cut(note, record.record_id, where),
            version=str(record.version),
            code=code(asked) if asked is not None else "",
            slots=trimmed([slots[name] for name in table.slots]),
        )

    # -- what the ledger remembers -----------------------------------------------------------------------------------

    async def kept(self, sheet_id: int, table: Declared) -> Kept:
        kept, version = await keeping.load(self._client.ledger, self._book.spreadsheet_id, sheet_id)
        self._kept[sheet_id] = kept, version
        return kept._replace(tab=table.tab, workflow=table.workflow)

    async def keep(self, sheet_id: int, new: Kept) -> None:
        kept, version = self._kept[sheet_id]
        if new.problem != kept.problem or new.named != kept.named:
            new = new._replace(since=await self._client.ledger.now())
            if new.problem or new.named:
                log.warning(
                    "the table %r of %s: %s",
                    new.tab,
                    self._book.url,
                    "; ".join(filter(None, [new.problem, *new.named])),
                )
        if new != kept:
            await keeping.save(self._client.ledger, self._book.spreadsheet_id, sheet_id, new, version)


class _Look:
    """One look at one tab."""

    def __init__(
        self,
        tables: Tables,
        table: Declared,
        sheet_id: int,
        grid: Grid,
        hidden: Mapping[int, TableRow],
        wanted: dict[int, TableRow],
        changes: Changes,
        title: str,
        size: int,
        blanks: bool,
    ) -> None:
        self.tables = tables
        self.table = table
        self.sheet_id = sheet_id
        self.grid = grid
        self.hidden = hidden
        self.wanted = wanted
        self.changes = changes
        self.title = title
        self.size = size
        self.blanks = blanks
        self.requests: list[Request] = []
        self.notes: dict[str, str] = {}
        self.named: list[str] = []

    async def run(self, ranges: Mapping[str, int], wide: int, *, at_once: bool) -> bool:
        """Answers whether to look again at once."""
        tables, table = self.tables, self.table
        kept = await tables.kept(self.sheet_id, table)
        columns = find_columns(table, self.grid, ranges, kept.called)
        if columns.problem:
            await tables.keep(self.sheet_id, kept._replace(problem=columns.problem))
            return False
        self.sheet = sheet = pure.read(table, columns, self.sheet_id, self.grid, self.wanted, self.title)
        self.kept = kept = kept._replace(problem="", called={**kept.called, **columns.called})
        ready = [line for line in sheet.lines if line.place is None and self._starts(line, kept)]
        if not kept.begun:
            if len(ready) > MOST_UNASKED and not table.yes:
                text = (
                    f"{len(ready)} rows of {table.tab!r} say {table.ready!r}. Nothing of them was started yet: a first "
                    f"look that finds more than {MOST_UNASKED} asks once. quire table go starts them"
                )
                await tables.keep(self.sheet_id, kept._replace(problem=text))
                return False
            self.kept = kept = kept._replace(begun=True)
        if columns.missing:
            self.requests += added(self.sheet_id, columns.header, columns.missing, self.grid, wide, blanks=self.blanks)
            await tables.keep(self.sheet_id, kept)
            return True
        shown = await tables._book.shown(self._unreadable())
        again = await self._people(shown)
        self._clear(shown)
        if await self._is_time():
            again |= self._bind(ready, kept, at_once=at_once or table.at is not None)
        again |= await self._start()
        self._name()
        kept = self.kept._replace(named=self.named, take=self._still_to_take(kept))
        await tables.keep(self.sheet_id, kept)
        return again

    async def _is_time(self) -> bool:
        """Whether rows that are ready may start now: always, or when the schedule had a moment since the last look."""
        if self.table.at is None:
            return True
        now = await self.tables._client.ledger.now()
        since = self.kept.scheduled or now
        due = bool(self.table.at.between(since, now, most=1))
        if due or not self.kept.scheduled:
            self.kept = self.kept._replace(scheduled=now)
        return due

    # -- reading -----------------------------------------------------------------------------------------------------

    def _starts(self, line: Line, kept: Kept) -> bool:
        """Whether an unbound row asks to be started."""
        if line.formula:
            return False
        if line.typed is None:
            return self._in_ledger(line)  # our reference broke: its hidden row is gone
        if same(line.typed) == "":
            return self.table.blank == "start" and not lacking(self.table, line.given) and not line.foreign
        return same(line.typed) in (same(self.table.ready), same(again.AGAIN)) or self._taken(line, kept)

    def _in_ledger(self, line: Line) -> bool:
        return bool(line.key)

    def _taken(self, line: Line, kept: Kept) -> bool:
        return bool(kept.take) and (line.key in kept.take or line.fingerprint in kept.take)

    def _still_to_take(self, kept: Kept) -> list[str]:
        started = {row.key for row in self.wanted.values()} | {row.fingerprint for row in self.wanted.values()}
        return [each for each in kept.take if each not in started]

    def _unreadable(self) -> list[At]:
        return [gap.at for line in self.sheet.lines for gap in line.gaps if not isinstance(gap.found, str)]

    # -- rows that are bound -----------------------------------------------------------------------------------------

    async def _people(self, shown: Mapping[At, str]) -> bool:
        """What people did to rows that are bound: requests, edits, cells of ours that they typed over."""
        again = False
        foreign = self._foreign()
        for line in self.sheet.lines:
            place = line.place
            if place is None:
                continue
            row = self.wanted[place]
            text = self._text(line, shown)
            if row.mark != STARTED and text is not None and not self._still_ready(line, row, text):
                self._let_go(line, place)
                continue
            if row.mark == WAITS and (row.fingerprint != line.fingerprint) and self._complete(line):
                row = row._replace(mark=NEW, word=self.table.begun_word, note="", fingerprint=line.fingerprint)
                again = True
            if line.shows:
                self.tables.torn.discard(row.record_id)
            if row.mark == STARTED and (renewed := await self._renewed(line, row, text)) is not None:
                row, text, again = renewed, None, True
            if row.mark == STARTED:
                row, acted = await self._asked(line, row, text)
                again |= acted
                is_edited = row.fingerprint != line.fingerprint
                row = row._replace(note=edited(row.note, is_edited=is_edited))
            if text is not None:
                row = row._replace(was=text)
            elif line.shows and row.mark == STARTED and row.was and place not in foreign:
                row = row._replace(was="")
            self.wanted[place] = row
            self._mend(line, row, shown)
        return again

    async def _renewed(self, line: Line, row: TableRow, text: str | None) -> TableRow | None:
        """The row about to start its next record: somebody asked for that in the cell or by a command; None: nobody."""
        asked = text is not None and same(text) == same(again.AGAIN)
        target = again.current(row.record_id, self.kept.runs)
        if target == row.record_id and not asked:
            return None
        found = await self.tables._client.ledger.load([row.record_id])
        if not found or not found[0].ended:
            return None  # typed: refused like any word that may not be typed there
        if target == row.record_id:
            self.kept = self.kept._replace(runs=self.kept.runs | again.next_run(row.record_id))
            target = again.current(row.record_id, self.kept.runs)
        log.info("the table %r: the row of %r runs again, as %r", self.table.tab, row.record_id, target)
        was = text if text is not None else self.table.ready
        return again.rebound(row, line, target, self.table.begun_word, was)

    def _foreign(self) -> set[int]:
        column = self.sheet.columns.ours[STATUS]
        everyone = (*self.sheet.lines, *self.sheet.twice)
        found = [self.sheet.bound.shown(line.cells[column]) for line in everyone if line.foreign]
        return {place for place in found if place is not None}

    def _text(self, line: Line, shown: Mapping[At, str]) -> str | None:
        """What was typed as the status of a bound row, as it looks; None: nothing was."""
        if line.typed is None or line.formula:
            return None
        at = At(self.sheet_id, line.row, self.sheet.columns.ours[STATUS])
        return line.typed if isinstance(line.typed, str) else shown.get(at, str(line.typed))

    def _still_ready(self, line: Line, row: TableRow, text: str) -> bool:
        """Whether a row that has not started still asks for it."""
        return same(text) in (same(self.table.ready), same(row.was), same(row.word)) or (line.foreign and not text)

    async def _asked(self, line: Line, row: TableRow, text: str | None) -> tuple[TableRow, bool]:
        """Obey what was typed over the status. The same word again, before our reference was seen there, is not new."""
        if text is None or same(text) in ("", same(row.word)) or (row.was and same(text) == same(row.was)):
            return row, False
        if row.record_id in self.tables.torn:
            self.tables.torn.discard(row.record_id)
            note = "what is asked has changed since it was shown; look at it again, then answer"
            return row._replace(note=note), True
        client, book = self.tables._client, self.tables._book.spreadsheet_id
        note = await asking.obey(client, book, self.table, row, text, self.tables._groups, torn=False)
        log.info("the table %r: %r beside %r: %s", self.table.tab, text, row.record_id, note or "done")
        return row._replace(note=cut(note)), True

    def _complete(self, line: Line) -> bool:
        return not [name for name in lacking(self.table, line.given) if name not in _object(line.context)]

    def _mend(self, line: Line, row: TableRow, shown: Mapping[At, str]) -> None:
        """Put our cells of a bound row right, each if it still is as it was read."""
        bound = self.sheet.bound
        for gap in line.gaps:
            if gap.name == STATUS and line.formula:
                continue
            if gap.name == CONTEXT and row.mark == WAITS:
                continue
            kept = not gap.name.startswith("back ")
            self.requests += bound.repair(gap, kept=kept, blanks=self.blanks, shown=shown)

    def _let_go(self, line: Line, place: int) -> None:
        """A person took back what was not started yet: the row is theirs again."""
        row = self.wanted[place]
        self.wanted[place] = TableRow._make([*[""] * len(TABLE_STATE), ()])
        for name, column in self.sheet.columns.ours.items():
            text = line.cells[column] if column < len(line.cells) else ""
            if self.sheet.bound.shown(text) == place or (name == RECORD_ID and text == row.record_id):
                self.requests.append(replace(At(self.sheet_id, line.row, column), str(text), ""))

    # -- cells of ours elsewhere -------------------------------------------------------------------------------------

    def _clear(self, shown: Mapping[At, str]) -> None:
        """Take away what met a wrong row, and give such a row back the status that it said."""
        self.requests += [replace(at, text, "") for at, text in self.sheet.strays]
        for line in (*self.sheet.lines, *self.sheet.twice):
            if line.place is not None:
                continue
            for name, column in self.sheet.columns.ours.items():
                text = line.cells[column] if column < len(line.cells) else ""
                if self.sheet.bound.shown(text) is None:
                    continue
                back = str(line.typed) if name == STATUS else str(line.context) if name == CONTEXT else ""
                if name != STATUS or not self._is_ready(line):
                    log.info("the table %r: a cell of row %d is put back", self.table.tab, line.row + 1)
                    self.requests.append(replace(At(self.sheet_id, line.row, column), text, back))

    def _is_ready(self, line: Line) -> bool:
        return same(line.typed) == same(self.table.ready) and line not in self.sheet.twice

    def _say(self, line: Line, text: str) -> None:
        """A note in a row that has no hidden row; empty: take it away."""
        column = self.sheet.columns.ours[NOTE]
        at = At(self.sheet_id, line.row, column)
        if line.note == text:
            return
        if line.note in SAID:
            self.requests.append(replace(at, str(line.note), text))
        elif line.note == "" and text:
            self.requests += fill(at, text, blanks=self.blanks)

    def _name(self) -> None:
        """Say what is wrong with single rows: in the row where there is room, in doctor and in the log."""
        for line in self.sheet.copies:
            self._name_copy(line)
        twice = [line for line in self.sheet.twice if self._asks(line)]
        plain = [line for line in self.sheet.lines if line.place is None]
        formulas = [line for line in plain if line.formula]
        nameless = [line for line in plain if self._nameless(line) and self._asks(line)]
        said = {id(line): text for lines, text in ((twice, pure.TWICE), (nameless, pure.NO_ID)) for line in lines}
        for line in (*twice, *plain):
            self._say(line, said.get(id(line), ""))
        for rows, one, many in (
            (twice, "has the same id as another row, and is", "have the same id as another row, and are"),
            (
                nameless,
                "says that it is ready and has no id: it is",
                "say that they are ready and have no id: they are",
            ),
            (formulas, "has a formula as its status: it is", "have formulas as their status: they are"),
        ):
            if rows:
                self.named.append(f"{_rows(rows)} {one if len(rows) == 1 else many} not started")
        self._name_strangers([line for line in plain if self._strange(line)])
        if gone := self._gone():
            self.named.append(f"the rows of {_listed(gone)} are gone; their records go on")

    def _name_strangers(self, strangers: Sequence[Line]) -> None:
        if strangers:
            what = "says that it runs" if len(strangers) == 1 else "say that they run"
            text = f"{_rows(strangers)} {what}, but not by Quire: left as found; quire table take ROW runs one"
            self.named.append(text)

    def _name_copy(self, line: Line) -> None:
        bound = self.sheet.bound
        if bound.shown(line.note) is not None and line.place is not None:
            self.requests += bound.name_copy(NOTE, line.row, line.place, pure.COPY)
        elif line.note != pure.COPY:
            self._say(line, pure.TWICE)

    def _nameless(self, line: Line) -> bool:
        return self.sheet.columns.id is not None and not line.key

    def _strange(self, line: Line) -> bool:
        """Whether a row says that it runs, though not by Quire."""
        words = self.table.words
        runs = {same(words[name]) for name in ("runs", "yielded", "waits", "asks")} | {same(self.table.begun_word)}
        return not (line.foreign or line.formula or self._asks(line)) and same(line.typed or "") in runs

    def _asks(self, line: Line) -> bool:
        return not line.formula and line.typed is not None and same(line.typed) == same(self.table.ready)

    def _gone(self) -> list[str]:
        """Records that go on although their row is not there. Their rows in the state table say so."""
        gone, tables = self.sheet.gone, self.tables
        before = tables._gone.get(self.sheet_id, frozenset())
        tables._gone[self.sheet_id] = gone
        ended = {same(self.table.words[name]) for name in ("done", "error", "cancelled")}
        found = []
        for place in sorted(gone):
            row = self.wanted[place]
            if row.mark == STARTED and row.record_id and same(row.word) not in ended:
                found.append(row.record_id)
                if place not in before:
                    self.notes[row.record_id] = f"its row in {self.table.tab!r} is gone; the record goes on"
        for place in before - gone:
            if place in self.wanted and self.wanted[place].record_id:
                self.notes[self.wanted[place].record_id] = ""
        return found

    # -- binding -----------------------------------------------------------------------------------------------------

    def _bind(self, ready: Sequence[Line], kept: Kept, *, at_once: bool) -> bool:
        """Give rows that are ready their hidden rows, and our references, once nobody types in them any more."""
        tables, sheet = self.tables, self.sheet
        whole = [line for line in ready if sheet.columns.id is None or line.key]
        before = tables._seen.get(self.sheet_id, set())
        form = is_form(sheet.columns, self.grid)
        bound = 0
        fresh = set()
        for line in whole:
            seen = f"{line.key}|{line.fingerprint}"
            if not (form or at_once or seen in before):
                fresh.add(seen)
                continue
            if bound < MOST_ROWS:
                self._bind_one(line)
            bound += 1
        tables._seen[self.sheet_id] = fresh
        return bound > 0

    def _bind_one(self, line: Line) -> None:
        table, sheet = self.table, self.sheet
        place = max([self.size - 1, *self.wanted]) + 1
        if sheet.columns.id is not None:
            record_id = f"{normal(table.tab) or 'row'}-{line.key}"
        else:
            record_id = line.key if is_id(line.key) else new_id(f"{slug(table.workflow)}_")
        record_id = again.current(record_id, self.kept.runs)
        was = "" if line.typed is None else str(line.typed)
        given = _object(line.context)
        lacks = [name for name in lacking(table, line.given) if name not in given]
        context = line.context if isinstance(line.context, str) else ""
        word, note, mark = table.begun_word, "", NEW
        if lacks:
            word, mark = was or table.ready, WAITS
            note = f"needed, but blank: {', '.join(lacks)}"
        row = TableRow(
            record_id,
            word,
            note,
            str(self.sheet_id),
            line.key if sheet.columns.id is not None else record_id,
            mark,
            line.fingerprint,
            was,
            "",
            "",
            context,
        )
        self.wanted[place] = row
        bound = sheet.bound.also(place, record_id)
        for gap in bound.gaps(line.row, line.cells, place):
            if gap.name == STATUS:
                kept = bool(was)
            elif gap.name == CONTEXT:
                kept = mark == NEW
            else:
                kept = gap.found in SAID
            self.requests += bound.repair(gap, kept=kept, blanks=self.blanks)

    # -- starting ----------------------------------------------------------------------------------------------------

    async def _start(self) -> bool:
        """Start rows that are bound, and say so: the read that shows it came after the write."""
        tables, table, sheet = self.tables, self.table, self.sheet
        waiting = {
            line.place: line
            for line in sheet.lines
            if line.place is not None
            and line.place in self.hidden
            and self.hidden[line.place].mark == NEW
            and self.wanted[line.place].mark == NEW
            and line.shows
        }
        if not waiting:
            return False
        there = await tables._starter.there(self.hidden[place].record_id for place in waiting)
        reading = tables._starter.reading(table, self.sheet_id, [line.given for line in waiting.values()])
        now = await tables._client.ledger.now()
        starts: dict[int, Awaitable[tuple[str, Record | None]]] = {}
        answers: dict[int, tuple[str, Record | None]] = {}
        for place, line in waiting.items():
            row = self.wanted[place]
            dedupe = again.dedupe_key(tables._book.spreadsheet_id, self.sheet_id, row)
            record = there.get(row.record_id)
            if record is not None:
                taken = record.workflow != table.workflow or record.dedupe_key != dedupe
                answers[place] = (taken_already(record), None) if taken else ("", record)
            elif not row.was and table.blank != "start":
                answers[place] = "its status was lost, and its record is not in this ledger: type a status", None
            elif (given := await self._given(reading, row, line)) is not None:
                starts[place] = self._started(row, given, dedupe, now)
        # All at once: a ledger writes what comes together in one commit.
        answers |= dict(zip(starts, await asyncio.gather(*starts.values()), strict=True))
        for place, (why, started) in answers.items():
            row = self.wanted[place]._replace(fingerprint=waiting[place].fingerprint)
            if started is not None:
                self.wanted[place] = tables.shown(table, row._replace(mark=STARTED, was=""), started, None)
                continue
            ready = row.was or table.ready
            self.wanted[place] = row._replace(mark=WAITS, word=ready, note=cut(why), was=ready)
        return True

    async def _given(self, reading: Reading, row: TableRow, line: Line) -> Given | None:
        """What the row says now; None: it was moved between the reads."""
        columns = self.sheet.columns
        id_column = columns.id if columns.id is not None else columns.ours[RECORD_ID]
        return await reading.given(columns.inputs, id_column, row.key, line.given)

    async def _started(self, row: TableRow, given: Given, dedupe: str, now: float) -> tuple[str, Record | None]:
        """The record, or why there is none."""
        try:
            more = _data(row.started, self.table)
        except InputError as error:
            return str(error), None
        _, why, record = await self.tables._starter.start(self.table, row.record_id, dedupe, given, now, more)
        return why, record


# -- pieces ------------------------------------------------------------------------------------------------------------


def written_back(names: Sequence[str], record: Record, prefix: str = "") -> dict[str, Any]:
    """The fields of a record's result or data that stand beside its row, as cells hold them."""
    from quire.surfaces.panel.inboxes import values_of

    return {f"{prefix}{name}": value for name, value in zip(names, values_of(names, record), strict=True)}


def _context(record: Record, file: str, where: str | None) -> str:
    """The data, or where they stand if they are longer than a cell: in the record's file of the folder."""
    if len(record.data) <= MOST_CHARACTERS:
        return record.data
    more = {"file": file} if file else {}
    return dump({"longer_than_a_cell": len(record.data), "see": where or f"quire show {record.record_id}", **more})


def _object(text: Any) -> dict[str, Any]:
    try:
        found = parse(text) if isinstance(text, str) and text.strip() else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _data(text: str, table: Declared) -> dict[str, Any]:
    """What the context column gives as data."""
    if not text.strip():
        return {}
    try:
        found = parse(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise InputError(f"the context of the row is no JSON object: {text[:60]!r}")
    known = set(table.fields)
    return {name: value for name, value in found.items() if not known or name in known}


def _rows(lines: Sequence[Line]) -> str:
    numbers = [str(line.row + 1) for line in lines]
    return f"row {numbers[0]}" if len(lines) == 1 else f"rows {_listed(numbers)}"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def _cells(row: TableRow) -> list[dict[str, Any]]:
    return values([*row[: len(TABLE_STATE)], *row.slots])
