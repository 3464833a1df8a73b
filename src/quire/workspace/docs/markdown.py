"""Markdown as a text and its styles: headings, lists, bold, italic and links."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from quire.workspace.docs.reading import units
from quire.workspace.filling import shown


@dataclass(frozen=True, slots=True)
class Style:
    """A style over a part of a text that is to be put in."""

    start: int
    end: int
    #: The kind of request, and what it says besides the range.
    kind: str
    says: dict[str, Any]

    def request(self, where: dict[str, Any], first: int) -> dict[str, Any]:
        span = where | {"startIndex": first + self.start, "endIndex": first + self.end}
        return {self.kind: {**self.says, "range": span}}


_INLINE = {"strong": {"bold": True}, "em": {"italic": True}}
_BULLETS = {"bullet_list_open": "BULLET_DISC_CIRCLE_SQUARE", "ordered_list_open": "NUMBERED_DECIMAL_ALPHA_ROMAN"}


def written(text: str) -> tuple[str, list[Style]]:
    """Return the text as it stands in the document, and its styles."""
    from markdown_it import MarkdownIt

    body, styles, lists, heading = "", [], [], ""
    for token in MarkdownIt("commonmark").parse(text):
        if token.type in _BULLETS:
            lists.append(_BULLETS[token.type])
        elif token.type in ("bullet_list_close", "ordered_list_close"):
            lists.pop()
        elif token.type == "heading_open":
            heading = f"HEADING_{token.tag[1]}"
        elif token.type in ("fence", "code_block"):
            body += shown("text", token.content).rstrip("\n") + "\n"
        elif token.type == "inline":
            start = units(body)
            body, inline = _inline(body, token.children or [])
            styles += inline
            end = units(body)
            if heading:
                says = {"paragraphStyle": {"namedStyleType": heading}, "fields": "namedStyleType"}
                styles.append(Style(start, end, "updateParagraphStyle", says))
                heading = ""
            if lists:
                styles.append(Style(start, end, "createParagraphBullets", {"bulletPreset": lists[-1]}))
            body += "\n"
    return body.rstrip("\n"), styles


def _inline(body: str, tokens: list[Any]) -> tuple[str, list[Style]]:
    styles: list[Style] = []
    open_at: dict[str, tuple[int, dict[str, Any]]] = {}
    for token in tokens:
        word = token.type.removesuffix("_open").removesuffix("_close")
        if token.type in ("softbreak", "hardbreak"):
            body += " " if token.type == "softbreak" else "\v"
        elif token.type.endswith("_open"):
            link = {"link": {"url": token.attrGet("href")}} if word == "link" else _INLINE.get(word, {})
            open_at[word] = (units(body), link)
        elif token.type.endswith("_close") and word in open_at:
            start, style = open_at.pop(word)
            if style and units(body) > start:
                says = {"textStyle": style, "fields": ",".join(style)}
                styles.append(Style(start, units(body), "updateTextStyle", says))
        else:
            body += shown("text", token.content)
    return body, styles
