"""Documents as files: plain text, HTML, Markdown and PDF; and documents made from text and HTML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from html.parser import HTMLParser
from typing import Any

from hectograph.core.pdf import Line, pdf
from hectograph.core.utf16 import code_units
from hectograph.docs import styles
from hectograph.docs.document import Document, Tab, minted
from hectograph.docs.render import ACCEPTED, seen
from hectograph.docs.segment import Block, Segment, blocks, line_end
from hectograph.docs.unit import CELL, END, ROW, TABLE, TEXT, Unit, joined, with_more, with_style

TEXT_TYPE, HTML, PDF = "text/plain", "text/html", "application/pdf"
MARKDOWN = frozenset({"text/markdown", "text/x-markdown"})
EXPORTS = frozenset({TEXT_TYPE, HTML, PDF}) | MARKDOWN
IMPORTS = frozenset({TEXT_TYPE, HTML})

_HEADINGS = {f"HEADING_{level}": level for level in range(1, 7)} | {"TITLE": 1, "SUBTITLE": 2}
_SIZES = {"TITLE": 26.0, "SUBTITLE": 15.0, "HEADING_1": 20.0, "HEADING_2": 16.0, "HEADING_3": 14.0, "HEADING_4": 12.0}


@dataclass
class Paragraph:
    """A paragraph as people see it."""

    units: Sequence[Unit]
    #: The place of its cell, where it stands in a table.
    cell: tuple[int, int] | None = None
    breaks: bool = False

    @property
    def text(self) -> str:
        return joined(self.units).rstrip("\n").replace("\v", "\n")

    @property
    def kind(self) -> str:
        return str(self.units[-1].more.get("style", {}).get("namedStyleType", "NORMAL_TEXT"))

    @property
    def bullet(self) -> dict[str, Any] | None:
        return self.units[-1].more.get("bullet")


def paragraphs(document: Document) -> Iterator[Paragraph]:
    """Return everything that is to be read, in its order: for each tab header, body, footnotes and footer."""
    for tab in document.tabs.values():
        for segment in tab.segments:
            units = seen(segment.units, ACCEPTED)
            for block in blocks(units, 0, len(units)):
                yield from _inside(units, block, None)


def _inside(units: Sequence[Unit], block: Block, cell: tuple[int, int] | None) -> Iterator[Paragraph]:
    if block.kind == "paragraph":
        held = units[block.start : block.end]
        yield Paragraph(held, cell, any(unit.kind == "pageBreak" for unit in held))
    for row_at, row in enumerate(block.rows):
        for column, held_cell in enumerate(row.cells):
            for inner in blocks(units, held_cell.start + 1, held_cell.end):
                yield from _inside(units, inner, (row_at, column))


def plain(document: Document) -> str:
    return "\n".join(("* " if one.bullet else "") + one.text for one in paragraphs(document))


def exported(document: Document, title: str, kind: str) -> bytes:
    if kind == TEXT_TYPE:
        # Google begins the file with the mark of UTF-8 and ends lines as Windows does.
        return ("\ufeff" + plain(document).replace("\n", "\r\n")).encode()
    if kind == PDF:
        return pdf(map(_line, paragraphs(document)), title)
    if kind in MARKDOWN:
        return _markdown(document).encode()
    return _html(document, title).encode()


def _line(one: Paragraph) -> Line:
    text = ("• " if one.bullet else "") + one.text
    size = _SIZES.get(one.kind, 11.0)
    return Line(text, size, bool(one.units[0].style.get("bold")) or one.kind == "HEADING_1", one.breaks)


def _markdown(document: Document) -> str:
    out: list[str] = []
    for one in paragraphs(document):
        text = "".join(_marked(run, "**", "*") for run in _runs(one)).strip()
        mark = "#" * _HEADINGS[one.kind] + " " if one.kind in _HEADINGS else ""
        if one.bullet:
            mark = "  " * one.bullet.get("nestingLevel", 0) + "* "
        if text:
            out.append(mark + text)
    return "\n\n".join(out) + "\n"


def _marked(run: Sequence[Unit], bold: str, italic: str) -> str:
    text = joined(run).rstrip("\n")
    for name, mark in (("bold", bold), ("italic", italic)):
        if run[0].style.get(name) and text.strip():
            text = f"{mark}{text}{mark}"
    url = run[0].style.get("link", {}).get("url")
    return f"[{text}]({url})" if url and text else text


def _runs(one: Paragraph) -> Iterator[list[Unit]]:
    run: list[Unit] = []
    for unit in one.units:
        if unit.kind != TEXT:
            continue
        if run and run[0].style != unit.style:
            yield run
            run = []
        run.append(unit)
    if run:
        yield run


def _html(document: Document, title: str) -> str:
    body: list[str] = []
    for tab in document.tabs.values():
        for segment in tab.segments:
            units = seen(segment.units, ACCEPTED)
            body += [_html_block(units, block) for block in blocks(units, 0, len(units))]
    head = f'<meta content="text/html; charset=UTF-8" http-equiv="content-type"><title>{escape(title)}</title>'
    return f"<html><head>{head}</head><body>{''.join(body)}</body></html>"


def _html_block(units: Sequence[Unit], block: Block) -> str:
    if block.kind == TABLE:
        rows = []
        for row in block.rows:
            cells = (blocks(units, cell.start + 1, cell.end) for cell in row.cells)
            inner = "".join("<td>" + "".join(_html_block(units, one) for one in cell) + "</td>" for cell in cells)
            rows.append(f"<tr>{inner}</tr>")
        return f"<table>{''.join(rows)}</table>"
    if block.kind != "paragraph":
        return ""
    one = Paragraph(units[block.start : block.end])
    tag = f"h{_HEADINGS[one.kind]}" if one.kind in _HEADINGS else "p"
    inner = "".join(_html_run(run) for run in _runs(one))
    return f"<ul><li>{inner}</li></ul>" if one.bullet else f"<{tag}>{inner}</{tag}>"


def _html_run(run: Sequence[Unit]) -> str:
    text = escape(joined(run).rstrip("\n")).replace("\v", "<br>")
    for name, tag in (("bold", "b"), ("italic", "i"), ("underline", "u")):
        if run[0].style.get(name) and text:
            text = f"<{tag}>{text}</{tag}>"
    url = run[0].style.get("link", {}).get("url")
    return f'<a href="{escape(url)}">{text}</a>' if url and text else text


def imported(tab: Tab, content: bytes, content_type: str) -> None:
    """Put what was uploaded into an empty tab."""
    text = content.decode("utf-8-sig", "replace")
    if content_type.partition(";")[0].strip() == HTML:
        reader = _Reader(tab)
        reader.feed(text)
        reader.close()
        new = reader.finished()
    else:
        lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
        new = [unit for line in lines for unit in [*_letters(line), line_end()]]
    tab.body = Segment("", [tab.body.units[0], *new])


def _letters(text: str, style: dict[str, Any] | None = None) -> list[Unit]:
    return [Unit(TEXT, one, style or {}) for one in code_units(text)]


@dataclass
class _Reader(HTMLParser):
    """Reads paragraphs, headings, lists, tables, links and three styles; everything else is read for its text."""

    tab: Tab
    units: list[Unit] = field(default_factory=list)
    styles: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    kind: str = "NORMAL_TEXT"
    lists: list[str] = field(default_factory=list)
    in_item: bool = False
    skipped: int = 0

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in {"script", "style", "title"}:
            self.skipped += 1
        elif tag in _STYLES or tag == "a":
            url = dict(attrs).get("href")
            look = _STYLES.get(tag) or ({"link": {"url": url}, "underline": True} if url else {})
            self.styles.append((tag, look))
        elif tag in {"ul", "ol"}:
            key = minted("kix.list.")
            preset = "BULLET_DISC_CIRCLE_SQUARE" if tag == "ul" else "NUMBERED_DECIMAL_ALPHA_ROMAN"
            self.tab.lists[key] = {"listProperties": {"nestingLevels": styles.nesting_levels(preset)}}
            self.lists.append(key)
        elif tag == "br":
            self.units += _letters("\v")
        elif tag == "table":
            self._end_paragraph()
            if not self.units or self.units[-1].kind == END:
                self.units.append(line_end())  # a table follows a paragraph
            self.units.append(Unit(TABLE, more={"columns": []}))
        elif tag == "tr":
            self.units.append(Unit(ROW))
        elif tag in {"td", "th"}:
            self.units.append(Unit(CELL))
        elif tag in _BLOCKS:
            self._end_paragraph()
            self.kind = f"HEADING_{tag[1]}" if tag[0] == "h" and tag[1:].isdigit() else "NORMAL_TEXT"
            self.in_item = tag == "li"

    def handle_endtag(self, tag: str) -> None:
        if tag in {"script", "style", "title"}:
            self.skipped = max(0, self.skipped - 1)
        elif tag in _STYLES or tag == "a":
            if any(name == tag for name, _ in self.styles):
                at = max(at for at, (name, _) in enumerate(self.styles) if name == tag)
                del self.styles[at]
        elif tag in {"ul", "ol"}:
            self._end_paragraph()
            del self.lists[-1:]
        elif tag in {"td", "th"}:
            self._end_paragraph()
            if self.units[-1].kind == CELL:
                self.units.append(line_end())
        elif tag == "table":
            self._end_table()
        elif tag in _BLOCKS:
            self._end_paragraph(tag == "p")
            self.kind, self.in_item = "NORMAL_TEXT", False

    def handle_data(self, data: str) -> None:
        fresh = not self.units or self.units[-1].line_end or not self.units[-1].inline
        text = " ".join(data.split())
        if self.skipped or (fresh and not text):
            return
        before = " " if data[:1].isspace() and not fresh else ""
        after = " " if data[-1:].isspace() and text else ""
        look: dict[str, Any] = {}
        for _, one in self.styles:
            look |= one
        self.units += _letters((before + text + after) if text else " ", look)

    def _end_paragraph(self, empty: bool = False) -> None:
        last = self.units[-1] if self.units else None
        open_text = last is not None and last.inline and not last.line_end
        if not open_text and not empty:
            return
        end = line_end({"namedStyleType": self.kind, "direction": "LEFT_TO_RIGHT"})
        if self.in_item and self.lists:
            depth = {"nestingLevel": len(self.lists) - 1} if len(self.lists) > 1 else {}
            end = with_more(end, bullet={"listId": self.lists[-1], **depth, "textStyle": {}})
        self.units.append(with_style(end, {}))

    def _end_table(self) -> None:
        """Close a table: every row gets as many cells as the widest."""
        start = max((at for at, unit in enumerate(self.units) if unit.kind == TABLE), default=-1)
        if start < 0:
            return
        rows: list[list[list[Unit]]] = []
        for unit in self.units[start + 1 :]:
            if unit.kind == ROW:
                rows.append([])
            elif unit.kind == CELL and rows:
                rows[-1].append([unit])
            elif rows and rows[-1]:
                rows[-1][-1].append(unit)
        width = max(map(len, rows), default=0)
        del self.units[start:]
        if not width:
            return
        self.units.append(Unit(TABLE, more={"columns": [{"widthType": "EVENLY_DISTRIBUTED"} for _ in range(width)]}))
        for row in rows:
            self.units.append(Unit(ROW))
            for cell in [*row, *([Unit(CELL), line_end()] for _ in range(width - len(row)))]:
                self.units += cell if cell[-1].line_end else [*cell, line_end()]
        self.units.append(Unit(END))

    def finished(self) -> list[Unit]:
        """Return what was read; it ends in a line end."""
        self._end_paragraph()
        if not self.units or not self.units[-1].line_end:
            self.units.append(line_end())
        return self.units


_BLOCKS = frozenset({"p", "div", "li", "h1", "h2", "h3", "h4", "h5", "h6"})
_STYLES: dict[str, dict[str, Any]] = {
    **{tag: {"bold": True} for tag in ("b", "strong")},
    **{tag: {"italic": True} for tag in ("i", "em")},
    "u": {"underline": True},
}
