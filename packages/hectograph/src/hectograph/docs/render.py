"""A document as the JSON that ``documents.get`` answers, in each of the modes for suggestions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from hectograph.docs import styles
from hectograph.docs.document import Document, Tab
from hectograph.docs.segment import Block, Segment, blocks
from hectograph.docs.unit import SECTION, TABLE, TEXT, Unit, joined

INLINE, ACCEPTED, WITHOUT = "SUGGESTIONS_INLINE", "PREVIEW_SUGGESTIONS_ACCEPTED", "PREVIEW_WITHOUT_SUGGESTIONS"


def seen(units: Sequence[Unit], mode: str) -> list[Unit]:
    """Return the units that a mode shows."""
    if mode == ACCEPTED:
        return [unit for unit in units if not unit.removed]
    if mode == WITHOUT:
        return [unit for unit in units if not unit.added]
    return list(units)


def document_json(document: Document, title: str, *, mode: str = INLINE, tabs: bool = False) -> dict[str, Any]:
    """Return the document with the content of its first tab, or with all its tabs."""
    out: dict[str, Any] = {"title": title}
    if tabs:
        out["tabs"] = [_tab(document, tab, mode) for tab in document.children("")]
    else:
        out |= content(document.first, mode, tabs=False)
    return out | {
        "revisionId": document.revision_id,
        "suggestionsViewMode": mode,
        "documentId": document.document_id,
    }


def tab_properties(document: Document, tab: Tab) -> dict[str, Any]:
    siblings = [held.tab_id for held in document.children(tab.parent)]
    depth, above = 0, tab.parent
    while above:
        depth, above = depth + 1, document.tabs[above].parent
    out: dict[str, Any] = {"tabId": tab.tab_id, "title": tab.title, "index": siblings.index(tab.tab_id)}
    if tab.parent:
        out |= {"parentTabId": tab.parent, "nestingLevel": depth}
    if tab.icon:
        out["iconEmoji"] = tab.icon
    return out


def _tab(document: Document, tab: Tab, mode: str) -> dict[str, Any]:
    out: dict[str, Any] = {
        "tabProperties": tab_properties(document, tab),
        "documentTab": content(tab, mode, tabs=True),
    }
    children = document.children(tab.tab_id)
    if children:
        out["childTabs"] = [_tab(document, child, mode) for child in children]
    return out


def content(tab: Tab, mode: str, *, tabs: bool) -> dict[str, Any]:
    """Return what is in a tab. ``tabs``: whether ranges say in which tab they lie."""
    numbers = _footnote_numbers(tab, mode)
    out: dict[str, Any] = {"body": {"content": _structure(tab.body, mode, numbers)}}
    for name, one in (("headers", "headerId"), ("footers", "footerId"), ("footnotes", "footnoteId")):
        held: Mapping[str, Segment] = getattr(tab, name)
        if held:
            out[name] = {
                key: {one: key, "content": _structure(segment, mode, numbers)} for key, segment in held.items()
            }
    out |= {"documentStyle": tab.document_style, "namedStyles": {"styles": tab.named_styles}}
    if tab.lists:
        out["lists"] = tab.lists
    if ranges := named_ranges(tab, mode, tabs=tabs):
        out["namedRanges"] = ranges
    if tab.objects:
        out["inlineObjects"] = tab.objects
    return out


def _footnote_numbers(tab: Tab, mode: str) -> dict[str, str]:
    ids = [unit.more["footnoteId"] for unit in seen(tab.body.units, mode) if unit.kind == "footnoteReference"]
    return {key: str(number) for number, key in enumerate(ids, 1)}


def named_ranges(tab: Tab, mode: str, *, tabs: bool) -> dict[str, Any]:
    """Return the named ranges by their names: several may have one name, and one may lie in several pieces."""
    pieces: dict[str, list[dict[str, Any]]] = {}
    for segment in tab.segments:
        at = 0
        for names, run in groupby(seen(segment.units, mode), lambda unit: unit.names):
            end = at + len(list(run))
            for key in names:
                held = pieces.setdefault(key, [])
                if held and held[-1]["endIndex"] == at and held[-1].get("segmentId", "") == segment.segment_id:
                    held[-1]["endIndex"] = end
                else:
                    place = {"segmentId": segment.segment_id} if segment.segment_id else {}
                    begins = {"startIndex": at} if at else {}
                    held.append(place | begins | {"endIndex": end} | ({"tabId": tab.tab_id} if tabs else {}))
            at = end
    out: dict[str, Any] = {}
    for key, name in tab.names.items():
        if key in pieces:
            group = out.setdefault(name, {"name": name, "namedRanges": []})
            group["namedRanges"].append({"namedRangeId": key, "name": name, "ranges": pieces[key]})
    return out


def _structure(segment: Segment, mode: str, numbers: Mapping[str, str]) -> list[dict[str, Any]]:
    units = seen(segment.units, mode)
    inline = mode == INLINE
    return [_block(units, block, numbers, inline) for block in blocks(units, 0, len(units))]


def _placed(start: int, end: int) -> dict[str, Any]:
    """Return a place; a beginning of 0 is left out."""
    return {"startIndex": start, "endIndex": end} if start else {"endIndex": end}


def _block(units: Sequence[Unit], block: Block, numbers: Mapping[str, str], inline: bool) -> dict[str, Any]:
    out = _placed(block.start, block.end)
    first = units[block.start]
    if block.kind == SECTION:
        return out | {"sectionBreak": {"sectionStyle": first.more["style"]} | _suggestions(first, inline)}
    if block.kind == TABLE:
        return out | {"table": _table(units, block, numbers, inline)}
    last = units[block.end - 1]
    paragraph: dict[str, Any] = {
        "elements": _elements(units, block.start, block.end, numbers, inline),
        "paragraphStyle": last.more["style"],
    }
    if "bullet" in last.more:
        paragraph["bullet"] = last.more["bullet"]
    return out | {"paragraph": paragraph}


def _suggestions(unit: Unit, inline: bool) -> dict[str, Any]:
    if not inline:
        return {}
    added = {"suggestedInsertionIds": sorted(unit.added)} if unit.added else {}
    return added | ({"suggestedDeletionIds": sorted(unit.removed)} if unit.removed else {})


def _elements(
    units: Sequence[Unit], start: int, end: int, numbers: Mapping[str, str], inline: bool
) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    at = start
    while at < end:
        unit = units[at]
        stop = at + 1
        if unit.kind == TEXT:
            while stop < end and (units[stop].like(unit) if inline else _same_look(units[stop], unit)):
                stop += 1
            held: dict[str, Any] = {"textRun": {"content": joined(units[at:stop])}}
            held["textRun"] |= _suggestions(unit, inline) | {"textStyle": dict(unit.style)}
        else:
            inner = {**unit.more, **_suggestions(unit, inline), "textStyle": dict(unit.style)}
            if unit.kind == "footnoteReference":
                inner["footnoteNumber"] = numbers.get(str(unit.more["footnoteId"]), "")
            held = {unit.kind: inner}
        out.append(_placed(at, stop) | held)
        at = stop
    return out


def _same_look(one: Unit, other: Unit) -> bool:
    return one.kind == other.kind == TEXT and one.style == other.style


def _table(units: Sequence[Unit], block: Block, numbers: Mapping[str, str], inline: bool) -> dict[str, Any]:
    rows = []
    for row in block.rows:
        cells = []
        for cell in row.cells:
            inside = [_block(units, one, numbers, inline) for one in blocks(units, cell.start + 1, cell.end)]
            style = {**styles.CELL, **units[cell.start].more.get("style", {})}
            cells.append({**_placed(cell.start, cell.end), "content": inside, "tableCellStyle": style})
        style = {**styles.ROW, **units[row.start].more.get("style", {})}
        rows.append({**_placed(row.start, row.end), "tableCells": cells, "tableRowStyle": style})
    first = units[block.start]
    return {
        "rows": len(rows),
        "columns": len(first.more["columns"]),
        "tableRows": rows,
        "tableStyle": {"tableColumnProperties": first.more["columns"]},
    } | _suggestions(first, inline)
