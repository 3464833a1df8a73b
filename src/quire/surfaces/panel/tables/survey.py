"""What a tab that people have looks like: its header, status column, ids and fields, guessed from what stands in it.

``quire table look`` tells it, and ``quire table init`` writes the workflow from it. Pure, but for ``read``.
"""

from __future__ import annotations

import keyword
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from quire.errors import InputError, did_you_mean
from quire.model.codec import dump
from quire.surfaces.panel.book import Book
from quire.surfaces.panel.cells import letters
from quire.surfaces.panel.inbox import normal
from quire.workflows.states import Move
from quire.workflows.words import VOCABULARIES, same

_ID_NAME = re.compile(r"(^|_)(id|no|nr|num|number|nummer|key|ref|reference|code)($|_)")
_ENDED = ("done", "error", "cancelled")
_OPEN = ("runs", "yielded", "asks", "waits")
_TOP_ROWS = 30
#: How Google's formats of numbers are called in Python, and in words.
_FORMATS = {
    "DATE": ("date", "dates"),
    "DATE_TIME": ("datetime", "moments"),
    "TIME": ("time", "times"),
    "CURRENCY": ("Decimal", "money"),
    "PERCENT": ("float", "percent"),
}


class Cell(NamedTuple):
    """A cell: what it says, and as what."""

    text: str = ""
    #: A type of Python.
    kind: str = "str"
    words: str = ""


class Column(NamedTuple):
    at: int
    name: str
    cells: tuple[Cell, ...]

    @property
    def field(self) -> str:
        name = re.sub(r"\W", "_", normal(self.name))
        name = f"f_{name}" if name[:1].isdigit() or not name else name
        return f"{name}_" if keyword.iskeyword(name) else name

    @property
    def filled(self) -> list[Cell]:
        return [cell for cell in self.cells if cell.text.strip()]

    @property
    def kind(self) -> tuple[str, str]:
        """The type that all its cells fit, and how it is called in words."""
        kinds = Counter((cell.kind, cell.words) for cell in self.filled)
        if len(kinds) == 1:
            return next(iter(kinds))
        if kinds and {kind for kind, _ in kinds} <= {"int", "float", "Decimal"}:
            return ("Decimal", "money") if any(kind == "Decimal" for kind, _ in kinds) else ("float", "numbers")
        return "str", ""


class Survey(NamedTuple):
    tab: str
    #: From 0.
    header: int
    #: The numbers of the rows with data, as people count.
    rows: tuple[int, ...]
    columns: tuple[Column, ...]
    status: Column
    named_range: str
    vocabulary: str
    id: Column | None
    write_back: tuple[Column, ...]

    @property
    def words(self) -> Mapping[str, str]:
        return VOCABULARIES[self.vocabulary]

    @property
    def fields(self) -> list[Column]:
        taken = {self.status.at, *(column.at for column in self.write_back)} | ({self.id.at} if self.id else set())
        return [column for column in self.columns if column.at not in taken and normal(column.name)]

    def counted(self) -> Counter[str]:
        return Counter(cell.text for cell in self.status.cells)

    def among(self, *names: str) -> list[int]:
        """The places of rows whose status is one of these words."""
        words = {same(self.words[name]).replace("{step}", "") for name in names} - {""}
        return [at for at, cell in enumerate(self.status.cells) if same(cell.text) in words]

    def shared(self) -> dict[str, list[int]]:
        """Ids that several rows share, and the numbers of those rows."""
        found: dict[str, list[int]] = {}
        for number, cell in zip(self.rows, self.id.cells if self.id is not None else (), strict=False):
            if cell.text.strip():
                found.setdefault(cell.text.strip(), []).append(number)
        return {text: numbers for text, numbers in found.items() if len(numbers) > 1}


async def read(book: Book, tab: str, status: str, header: int | None) -> Survey:
    """Read one tab, or the one that looks most like a table if none is named. Writes nothing."""
    fields = (
        "namedRanges(name,range),sheets(properties(sheetId,title,hidden),data.rowData.values(formattedValue,"
        "effectiveValue,userEnteredValue,effectiveFormat.numberFormat.type))"
    )
    found = await book.sheets.spreadsheets_get(book.spreadsheet_id, fields=fields)
    sheets = [sheet for sheet in found.get("sheets", []) if not sheet["properties"].get("hidden")]
    titles = [sheet["properties"]["title"] for sheet in sheets]
    if tab and tab.casefold() not in [title.casefold() for title in titles]:
        raise InputError(f"there is no tab {tab!r} in this book{did_you_mean(tab, titles)}; it has {', '.join(titles)}")
    surveys = []
    for sheet in sheets:
        title = sheet["properties"]["title"]
        if tab and title.casefold() != tab.casefold():
            continue
        own = {
            named["range"].get("startColumnIndex", 0): named["name"]
            for named in found.get("namedRanges", [])
            if named.get("range", {}).get("sheetId", 0) == sheet["properties"].get("sheetId", 0)
        }
        grid = _grid(sheet)
        if (made := survey(title, grid, own, status, header)) is not None:
            surveys.append(made)
    if not surveys:
        where = f"the tab {tab!r}" if tab else "this book"
        what = f"a column {status!r}" if status else "a status column: one that says Ready, PENDING or the like"
        raise InputError(f"{where} has no row that is a header with {what}; name it with --status and --header")
    return max(surveys, key=lambda each: len(each.status.filled))


def _grid(sheet: Mapping[str, Any]) -> list[list[Cell]]:
    data = sheet.get("data") or [{}]
    return [[_cell(value) for value in row.get("values", [])] for row in data[0].get("rowData", [])]


def _cell(value: Mapping[str, Any]) -> Cell:
    text = str(value.get("formattedValue", ""))
    effective = value.get("effectiveValue", {})
    form = value.get("effectiveFormat", {}).get("numberFormat", {}).get("type", "")
    if "boolValue" in effective:
        return Cell(text, "bool", "boxes")
    if "numberValue" in effective:
        if form in _FORMATS:
            return Cell(text, *_FORMATS[form])
        number = effective["numberValue"]
        return Cell(text, "int", "numbers") if float(number).is_integer() else Cell(text, "float", "numbers")
    return Cell(text)


def survey(
    tab: str, grid: Sequence[Sequence[Cell]], ranges: Mapping[int, str], status: str, header: int | None
) -> Survey | None:
    """``ranges``: columns that a named range means; ``status``: the header of the status column, or a named range."""
    tops = [header - 1] if header is not None else range(min(_TOP_ROWS, len(grid)))
    scores = [
        (score, -top, -at)
        for top in tops
        if 0 <= top < len(grid) and sum(bool(cell.text.strip()) for cell in grid[top]) > 1
        for at in range(len(grid[top]))
        if (score := _score(grid, top, at, status, ranges.get(at, ""))) is not None
    ]
    if not scores:
        return None
    _, top, at = max(scores)
    return _found(tab, grid, ranges, -top, -at)


def _score(grid: Sequence[Sequence[Cell]], top: int, at: int, status: str, named: str) -> int | None:
    """How much the column under this cell looks like a status column; None: it is none, or not the wanted one."""
    known = {same(word) for words in VOCABULARIES.values() for word in words.values()}
    name = grid[top][at].text
    if not name.strip() or same(name) in known or (status and normal(status) not in (normal(name), normal(named))):
        return None
    said = [row[at].text for row in grid[top + 1 :] if at < len(row) and row[at].text.strip()]
    hits = sum(same(text) in known for text in said)
    if not status and (not hits or 2 * hits < len(said)):
        return None
    return hits + ("stat" in normal(name))


def _found(tab: str, grid: Sequence[Sequence[Cell]], ranges: Mapping[int, str], top: int, at: int) -> Survey:
    rows = [number for number in range(top + 1, len(grid)) if any(cell.text.strip() for cell in grid[number])]
    columns = [
        Column(column, cell.text.strip(), tuple(_at(grid[row], column) for row in rows))
        for column, cell in enumerate(grid[top])
        if cell.text.strip()
    ]
    status = next(column for column in columns if column.at == at)
    said = Counter(same(cell.text) for cell in status.filled)

    def fits(name: str) -> tuple[int, int]:
        words = {same(word) for word in VOCABULARIES[name].values()}
        ready = said[same(VOCABULARIES[name]["ready"])]
        return sum(count for text, count in said.items() if text in words), ready

    vocabulary = max(VOCABULARIES, key=fits)
    made = Survey(
        tab,
        top,
        tuple(row + 1 for row in rows),
        tuple(columns),
        status,
        ranges.get(at, ""),
        vocabulary,
        _id_column([column for column in columns if column is not status], len(rows)),
        (),
    )
    ready, ended = set(made.among("ready")), set(made.among("done"))
    back = [
        column
        for column in columns
        if column not in (status, made.id) and ready and ended and _blank_until_the_end(column, ready, ended)
    ]
    return made._replace(write_back=tuple(back))


def _at(row: Sequence[Cell], column: int) -> Cell:
    return row[column] if column < len(row) else Cell()


def _blank_until_the_end(column: Column, ready: set[int], ended: set[int]) -> bool:
    """Whether the column is blank in rows that are ready, and filled in those that have ended: a result."""
    filled = {at for at, cell in enumerate(column.cells) if cell.text.strip()}
    return not filled & ready and 2 * len(filled & ended) > len(ended)


def _id_column(columns: Sequence[Column], rows: int) -> Column | None:
    """The column of ids: filled in nearly all rows, nearly all different, and called like one."""
    found = []
    for column in columns:
        texts = [cell.text.strip() for cell in column.filled]
        named = bool(_ID_NAME.search(normal(column.name)))
        if named and texts and 10 * len(texts) >= 9 * rows and 4 * len(set(texts)) >= 3 * len(texts):
            found.append(column)
    return found[0] if found else None


# -- in words ----------------------------------------------------------------------------------------------------------


def in_words(found: Survey) -> list[str]:
    """What ``quire table look`` prints."""
    title = ""
    if found.header:
        title = " (row 1 is a title)" if found.header == 1 else f" (rows 1–{found.header} are a title)"
    counts = [f"{_quoted(text)} {count}" for text, count in found.counted().most_common()]
    also = (
        " (also a named range)" if found.named_range and normal(found.named_range) == normal(found.status.name) else ""
    )
    if found.named_range and not also:
        also = f" (the named range {found.named_range})"
    lines = [
        f"{found.tab}: header in row {found.header + 1}{title}; {len(found.rows)} rows",
        f"  status     {_column(found.status)}{also}, in the words of {found.vocabulary}     {' · '.join(counts)}",
    ]
    shared = found.shared()
    if found.id is None:
        lines.append("  identity   no column of ids: a column Quire_ID is added")
    else:
        unique = len({cell.text.strip() for cell in found.id.filled})
        doubled = "; ".join(f"rows {_and(numbers)} share {text!r}" for text, numbers in list(shared.items())[:3])
        lines.append(f"  identity   {_column(found.id)}, {unique} different ones" + (f"; {doubled}" if doubled else ""))
    fields = [
        f"{each.field} ← {letters(each.at)} {each.name!r}" + (f" ({each.kind[1]})" if each.kind[1] else "")
        for each in found.fields
    ]
    lines.append(f"  fields     {' · '.join(fields) or 'none'}")
    if found.write_back:
        lines.append(f"  results    {' · '.join(_column(each) for each in found.write_back)}")
    return [*lines, f"  {_plan(found)}"]


def _plan(found: Survey) -> str:
    doubled = {number for numbers in found.shared().values() for number in numbers}
    ready = found.among("ready")
    named = [at for at in ready if found.rows[at] in doubled]
    strangers = [at for at in found.among(*_OPEN) if at not in ready]
    ended = [at for at in found.among(*_ENDED) if at not in ready]
    blank = sum(not cell.text.strip() for cell in found.status.cells)
    parts = [f"would start {_rows(len(ready) - len(named))}", f"leave {len(ended)}"]
    if strangers:
        parts.append(f"ask about {len(strangers)} ({found.status.cells[strangers[0]].text}, by whom is not known)")
    if named:
        assert found.id is not None
        parts.append(f"name {len(named)} (same {found.id.name})")
    other = len(found.rows) - len(ready) - len(ended) - len(strangers) - blank
    if other:
        parts.append(f"leave {other} with other words")
    if blank:
        parts.append(f"{blank} blank, ignored")
    return " · ".join(parts)


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"


def _and(numbers: Sequence[int]) -> str:
    return " and ".join(map(str, numbers[:2])) + (f" and {len(numbers) - 2} more" if len(numbers) > 2 else "")


def _quoted(text: str) -> str:
    if not text.strip():
        return "blank"
    return text if text == text.strip() else f'"{text}"'


def _column(column: Column) -> str:
    return f'column {letters(column.at)} "{column.name}"'


# -- as code -----------------------------------------------------------------------------------------------------------


def _table(found: Survey) -> str:
    given = [repr(found.tab), f"status={found.status.name!r}"]
    if found.vocabulary != "READY":
        given.append(f"words={found.vocabulary}")
    if found.id is not None:
        given.append(f"id={found.id.name!r}")
    if found.write_back:
        given.append(f"write_back={[column.field for column in found.write_back]}")
    return f"Table({', '.join(given)})"


def as_code(found: Survey) -> str:
    """What ``quire table init`` prints: a file of workflows for this tab."""
    parts = normal(found.tab).encode("ascii", "ignore").decode().split("_")
    model, step = "".join(part.capitalize() for part in parts), "_".join(parts)
    if not (model.isidentifier() and step.isidentifier()):
        model, step = f"Row{model}", f"rows_{step}"
    vocabulary = [found.vocabulary] if found.vocabulary != "READY" else []
    lines = [
        f'"""The rows of {found.tab!r}, from {found.words["ready"]} to the end: quire up flows.py --panel sheets://ID"""',
        "",
        *_imports(found),
        "from pydantic import BaseModel",
        "",
        f"from quire import {', '.join([*vocabulary, 'Run', 'Table', 'workflow'])}",
        "",
        "",
        f"class {model}(BaseModel):",
        *_model(found),
        "",
        "",
        f"@workflow(on=[{_table(found)}])",
        f"async def {step}(run: Run[{model}]) -> None:",
        "    # What is to be done for a row goes here. An act that must not happen twice: await run.once(act, ...)",
        f"    {_act(found)}",
    ]
    return "\n".join(lines) + "\n"


def _imports(found: Survey) -> list[str]:
    kinds = {column.kind[0] for column in (*found.fields, *found.write_back)}
    dates = sorted(kinds & {"date", "datetime", "time"})
    lines = [f"from datetime import {', '.join(dates)}"] if dates else []
    lines += ["from decimal import Decimal"] if "Decimal" in kinds else []
    return [*lines, ""] if lines else []


def _model(found: Survey) -> list[str]:
    """The fields: those that every row which is ready has come first, for they are needed."""
    ready = found.among("ready") or range(len(found.rows))
    needed = [each for each in found.fields if all(each.cells[at].text.strip() for at in ready)]
    others = [each for each in (*found.fields, *found.write_back) if each not in needed]
    lines = [f"    {each.field}: {each.kind[0]}" for each in needed]
    return [*lines, *(f"    {each.field}: {each.kind[0]} | None = None" for each in others)] or ["    pass"]


def _act(found: Survey) -> str:
    if not found.write_back:
        return "print(run.data)"
    back = found.write_back[0]
    value = f'f"done: {{run.data.{found.fields[0].field}}}"' if found.fields else '"done"'
    return f"run.data.{back.field} = {value if back.kind[0] == 'str' else 'None'}"


def moves(found: Survey) -> list[Move]:
    """The words that stand in the column, as states. Which may follow which is a guess, to be corrected."""
    order = {same(word): place for place, word in enumerate(found.words.values())}
    said = sorted(
        {cell.text.strip() for cell in found.status.filled},
        key=lambda text: (order.get(same(text), 3.5), text),
    )
    ended = {same(found.words[name]) for name in _ENDED}
    names: list[str] = []
    for text in said:
        if same(text) not in {same(name) for name in names}:
            names.append(text)
    open_ = [text for text in names if same(text) not in ended]
    return [Move(text, target) for at, text in enumerate(open_) for target in [*open_[at + 1 :], *_ends(names, ended)]]


def _ends(names: Sequence[str], ended: set[str]) -> list[str]:
    return [text for text in names if same(text) in ended]


def as_states(found: Survey, tab: str = "") -> str:
    """What ``quire table init --states`` prints: a part of ``quire.toml``. ``tab``: where the moves were written."""
    name = normal(found.tab) or "rows"
    given = [f"[states.{name if name.isascii() else dump(name)}]"]
    given += [f"tab = {dump(found.tab)}", f"status = {dump(found.status.name)}"]
    if found.id is not None:
        given.append(f"id = {dump(found.id.name)}")
    if found.vocabulary != "READY":
        given.append(f"words = {dump(found.vocabulary)}")
    if tab:
        return "\n".join([*given, f"moves = {dump(tab)}"]) + "\n"
    guessed = moves(found)
    given.append('# A guess: correct which state may follow which. who = ["finance"] lets only them make a move.')
    lines = []
    for origin in dict.fromkeys(move.origin for move in guessed):
        targets = ", ".join(dump(move.target) for move in guessed if move.origin == origin)
        lines.append(f"  {{ from = {dump(origin)}, to = [{targets}] }},")
    return "\n".join([*given, "moves = [", *lines, "]"]) + "\n"
