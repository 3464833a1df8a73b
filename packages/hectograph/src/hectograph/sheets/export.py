"""Books as files: CSV and TSV of one sheet, a small XLSX of all of them, and placeholders that say so."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Callable
from datetime import datetime
from html import escape

from hectograph.sheets import a1
from hectograph.sheets.book import Book, Sheet
from hectograph.sheets.cell import Cell, Value
from hectograph.sheets.parse import entered
from hectograph.sheets.render import Reader
from hectograph.sheets.values import put

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
ODS = "application/x-vnd.oasis.opendocument.spreadsheet"

FORMATS = {
    "text/csv",
    "text/tab-separated-values",
    XLSX,
    "application/pdf",
    "application/zip",
    ODS,
    "application/vnd.oasis.opendocument.spreadsheet",
}


def exported(book: Book, kind: str, now: Callable[[], datetime]) -> bytes:
    reader = Reader(book, now)
    first = book.sheets[book.first_sheet()]
    if kind == "text/csv":
        return _csv(rows(reader, first), ",")
    if kind == "text/tab-separated-values":
        lines = ["\t".join(text.replace("\t", " ").replace("\n", " ") for text in row) for row in rows(reader, first)]
        return "\r\n".join(lines).encode()
    if kind == XLSX:
        return _xlsx(reader)
    if kind == "application/pdf":
        return _pdf(book.properties["title"])
    return _zip_html(reader)


def rows(reader: Reader, sheet: Sheet) -> list[list[str]]:
    """The shown texts of a sheet, as a rectangle up to the last filled cell."""
    lines = reader.values(sheet, sheet.whole(), "FORMATTED_VALUE", "SERIAL_NUMBER", False)
    width = max(map(len, lines), default=0)
    return [line + [""] * (width - len(line)) for line in lines]


def _csv(lines: list[list[str]], mark: str) -> bytes:
    out = io.StringIO()
    csv.writer(out, delimiter=mark, lineterminator="\r\n").writerows(lines)
    return out.getvalue().removesuffix("\r\n").encode()


def imported(book: Book, data: bytes, now: datetime) -> None:
    """Replace everything in a book by one sheet with the lines of a CSV, as an upload with conversion does."""
    lines = list(csv.reader(io.StringIO(data.decode("utf-8", "replace"), newline="")))
    keep = book.order[0]
    for sheet_id in book.order[1:]:
        book.drop(sheet_id)
    book.named = {}
    book.metadata = {}
    title = book.sheets[keep].title
    sheet = Sheet(keep, title, max(1000, len(lines)), max(26, max(map(len, lines), default=1)))
    book.order.remove(keep)
    book.add(sheet, 0)
    book.memo.clear()
    for row, line in enumerate(lines):
        for column, text in enumerate(line):
            if text:
                put(sheet, row, column, entered(text, year=now.year))


def _xlsx(reader: Reader) -> bytes:
    book = reader.book
    sheets = list(book.all_sheets())
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    names = "".join(
        f'<sheet name="{escape(sheet.title)[:31]}" sheetId="{n}" r:id="rId{n}"/>' for n, sheet in enumerate(sheets, 1)
    )
    links = "".join(
        f'<Relationship Id="rId{n}" Type="{relations}/worksheet" Target="worksheets/sheet{n}.xml"/>'
        for n in range(1, len(sheets) + 1)
    )
    sheet_type = "application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"
    overrides = "".join(
        f'<Override PartName="/xl/worksheets/sheet{n}.xml" ContentType="{sheet_type}"/>'
        for n in range(1, len(sheets) + 1)
    )
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "[Content_Types].xml",
            f'<?xml version="1.0"?><Types xmlns="{package}/content-types">'
            '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            '<Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-officedocument.'
            f'spreadsheetml.sheet.main+xml"/>{overrides}</Types>',
        )
        archive.writestr(
            "_rels/.rels",
            f'<?xml version="1.0"?><Relationships xmlns="{package}/relationships"><Relationship Id="rId1" '
            f'Type="{relations}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        )
        archive.writestr(
            "xl/workbook.xml",
            f'<?xml version="1.0"?><workbook xmlns="{main}" xmlns:r="{relations}"><sheets>{names}</sheets></workbook>',
        )
        archive.writestr(
            "xl/_rels/workbook.xml.rels",
            f'<?xml version="1.0"?><Relationships xmlns="{package}/relationships">{links}</Relationships>',
        )
        for n, sheet in enumerate(sheets, 1):
            archive.writestr(f"xl/worksheets/sheet{n}.xml", _sheet_xml(reader, sheet, main))
    return out.getvalue()


def _sheet_xml(reader: Reader, sheet: Sheet, main: str) -> str:
    parts = [f'<?xml version="1.0" encoding="UTF-8"?><worksheet xmlns="{main}"><sheetData>']
    last = -1
    for row, column, cell in sheet.cells(sheet.whole()):
        if cell.value is None:
            continue
        if row != last:
            parts.append(("</row>" if last >= 0 else "") + f'<row r="{row + 1}">')
            last = row
        parts.append(_cell_xml(reader, sheet, row, column, cell))
    parts.append(("</row>" if last >= 0 else "") + "</sheetData></worksheet>")
    return "".join(parts)


def _cell_xml(reader: Reader, sheet: Sheet, row: int, column: int, cell: Cell) -> str:
    name = f"{a1.letters(column)}{row + 1}"
    value: Value = reader.effective(sheet, row, column, cell)
    if isinstance(value, bool):
        return f'<c r="{name}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, float):
        return f'<c r="{name}"><v>{value!r}</v></c>'
    text = escape(reader.formatted(sheet, row, column, cell))
    return f'<c r="{name}" t="inlineStr"><is><t xml:space="preserve">{text}</t></is></c>'


def _zip_html(reader: Reader) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for sheet in reader.book.all_sheets():
            body = "".join(
                "<tr>" + "".join(f"<td>{escape(text)}</td>" for text in line) + "</tr>" for line in rows(reader, sheet)
            )
            archive.writestr(f"{sheet.title}.html", f"<!doctype html><table>{body}</table>")
    return out.getvalue()


def _pdf(title: str) -> bytes:
    """One page that says that it is a placeholder: the emulator does not draw sheets."""
    text = f"{title}: the emulator does not draw PDF".encode("ascii", "replace").replace(b"(", b"[").replace(b")", b"]")
    stream = b"BT /F1 14 Tf 40 780 Td (" + text + b") Tj ET"
    fonts = b"<< /Font << /F1 5 0 R >> >>"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources %s >>" % fonts,
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    out, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n%strailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (
        len(objects) + 1,
        table,
        len(objects) + 1,
        start,
    )
    return out
