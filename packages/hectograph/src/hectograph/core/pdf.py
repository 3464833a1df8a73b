"""Writes a small PDF that holds text and nothing else: lines on pages, in reading order, plain enough for any reader.

Latin text stands in the file as it is. Other text is written with a font of Unicode code points that carries the table
from glyphs to letters, so that what is copied or searched is right; how it looks depends on the viewer's fonts.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass

WIDTH, HEIGHT, MARGIN = 612, 792, 72

#: A letter of Helvetica is about half as wide as it is high.
_LETTER = 0.5


@dataclass(frozen=True)
class Line:
    """A paragraph; it is wrapped where it is too long for a page."""

    text: str
    size: float = 11
    bold: bool = False
    #: It begins a new page.
    breaks: bool = False


def pdf(lines: Iterable[Line], title: str, *, width: float = WIDTH, height: float = HEIGHT) -> bytes:
    """Return a PDF file with the lines."""
    pages = [_page(page) for page in _pages(lines, width, height)]
    objects: list[bytes] = [b"<< /Type /Catalog /Pages 2 0 R >>", b""]
    fonts = b"<< /F1 3 0 R /F2 4 0 R /F3 5 0 R >>"
    objects += [
        *_FONTS,
        _stream(_TO_UNICODE),
        f"<< /Title {_latin(title)} /Producer (hectograph) >>".encode("cp1252", "replace"),
        b"<< /Registry (Adobe) /Ordering (Identity) /Supplement 0 >>",
    ]
    first = len(objects) + 1
    for at, page in enumerate(pages):
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {width:g} {height:g}] /Contents {first + 2 * at + 1} 0 R "
            f"/Resources << /Font ".encode()
            + fonts
            + b" >> >>"
        )
        objects.append(_stream(page))
    kids = " ".join(f"{first + 2 * at} 0 R" for at in range(len(pages)))
    objects[1] = f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode()
    return _file(objects)


def _file(objects: list[bytes]) -> bytes:
    """Return the objects with the table of their places."""
    out = bytearray(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
    places = []
    for number, held in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n".encode() + held + b"\nendobj\n"
    table = len(out)
    out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    for place in places:
        out += f"{place:010} 00000 n \n".encode()
    out += f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R /Info 9 0 R >>\nstartxref\n{table}\n%%EOF\n".encode()
    return bytes(out)


def _stream(data: bytes) -> bytes:
    return f"<< /Length {len(data)} >>\nstream\n".encode() + data + b"\nendstream"


def _pages(lines: Iterable[Line], width: float, height: float) -> list[list[tuple[float, Line]]]:
    """Return the wrapped lines of each page with their heights above its bottom."""
    pages: list[list[tuple[float, Line]]] = [[]]
    top = height - MARGIN
    at = top
    for line in lines:
        if line.breaks and pages[-1]:
            pages.append([])
            at = top
        room = max(10, int((width - 2 * MARGIN) / (line.size * _LETTER)))
        for text in textwrap.wrap(line.text, room, drop_whitespace=True) or [""]:
            at -= line.size * 1.3
            if at < MARGIN:
                pages.append([])
                at = top - line.size * 1.3
            pages[-1].append((at, Line(text, line.size, line.bold)))
    return pages


def _page(lines: list[tuple[float, Line]]) -> bytes:
    out = [b"BT"]
    for at, line in lines:
        if not line.text:
            continue
        try:
            shown = _latin(line.text).encode("cp1252")
            font = "F2" if line.bold else "F1"
        except UnicodeEncodeError:
            shown, font = f"<{line.text.encode('utf-16-be', 'surrogatepass').hex()}>".encode(), "F3"
        out.append(f"/{font} {line.size:g} Tf 1 0 0 1 {MARGIN} {at:.2f} Tm ".encode() + shown + b" Tj")
    out.append(b"ET")
    return b"\n".join(out)


def _latin(text: str) -> str:
    """Return a text as a PDF writes one; line ends become spaces."""
    text = text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
    return "(" + " ".join(text.splitlines()) + ")"


#: The objects 3 to 7: two fonts for Latin text, and one with its parts for any other.
_FONTS = [
    line.encode()
    for line in """\
<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>
<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica-Bold /Encoding /WinAnsiEncoding >>
<< /Type /Font /Subtype /Type0 /BaseFont /Any /Encoding /Identity-H /DescendantFonts [6 0 R] /ToUnicode 8 0 R >>
<< /Type /Font /Subtype /CIDFontType2 /BaseFont /Any /CIDSystemInfo 10 0 R /DW 500 /FontDescriptor 7 0 R >>
<< /Type /FontDescriptor /FontName /Any /Flags 4 /FontBBox [0 -200 1000 800] /ItalicAngle 0 /Ascent 800 /StemV 80 >>
""".splitlines()
]

#: Every glyph of the Unicode font is the UTF-16 code unit of its number.
_TO_UNICODE = b"""/CIDInit /ProcSet findresource begin
12 dict begin
begincmap
/CIDSystemInfo << /Registry (Adobe) /Ordering (UCS) /Supplement 0 >> def
/CMapName /Adobe-Identity-UCS def
/CMapType 2 def
1 begincodespacerange
<0000> <FFFF>
endcodespacerange
1 beginbfrange
<0000> <FFFF> <0000>
endbfrange
endcmap
CMapName currentdict /CMap defineresource pop
end
end"""
