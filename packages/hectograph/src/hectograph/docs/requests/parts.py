"""Headers, footers and footnotes, breaks, pictures, lists and tabs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hectograph.core import fieldmask
from hectograph.core.error import Invalid
from hectograph.docs import styles
from hectograph.docs.batch import Batch
from hectograph.docs.document import Tab, minted
from hectograph.docs.render import tab_properties
from hectograph.docs.segment import Segment, line_end
from hectograph.docs.unit import SECTION, TEXT, Unit, joined, with_more


def _create_edge(name: str) -> Callable[[Batch, dict[str, Any]], dict[str, Any]]:
    """Return the request that makes a header or a footer; ``name`` says which."""
    word = name.capitalize()

    def create(batch: Batch, request: dict[str, Any]) -> dict[str, Any]:
        batch.direct(f"create{word}")
        where = request.get("sectionBreakLocation") or {}
        tab = batch.document.tab(where.get("tabId", ""))
        if request.get("type") != "DEFAULT":
            raise Invalid("The type must be specified.")
        at = where.get("index", 0)
        tab.body.check_index(at)
        if tab.body.units[at].kind != SECTION:
            raise Invalid("The section break location must be that of a section break.")
        field = f"default{word}Id"
        style = tab.document_style if at == 0 else dict(tab.body.units[at].more["style"])
        if field in style:
            raise Invalid(f"Default {name} already exists. A default {name} already exists in the section.")
        key = minted()
        getattr(tab, f"{name}s")[key] = Segment(key, [line_end()])
        if at == 0:
            tab.document_style[field] = key
        else:
            tab.body.units[at] = with_more(tab.body.units[at], style={**style, field: key})
        return {f"{name}Id": key}

    return create


def _delete_edge(name: str) -> Callable[[Batch, dict[str, Any]], None]:
    word = name.capitalize()

    def delete(batch: Batch, request: dict[str, Any]) -> None:
        key = str(request.get(f"{name}Id", ""))
        tab = batch.document.tab(request.get("tabId", ""))
        if getattr(tab, f"{name}s").pop(key, None) is None:
            raise Invalid(f"The {name} with ID {key} was not found.")
        field = f"default{word}Id"
        if tab.document_style.get(field) == key:
            del tab.document_style[field]
        for at, unit in enumerate(tab.body.units):
            if unit.kind == SECTION and unit.more["style"].get(field) == key:
                style = {k: v for k, v in unit.more["style"].items() if k != field}
                tab.body.units[at] = with_more(unit, style=style)

    return delete


def create_footnote(batch: Batch, request: dict[str, Any]) -> dict[str, Any]:
    tab, segment, at = batch.place(request)
    if segment.segment_id:
        raise Invalid("Footnotes cannot be created inside a header, footer or footnote.")
    segment.check_place(at)
    key = minted()
    tab.footnotes[key] = Segment(key, [Unit(TEXT, " "), line_end()])
    _put_element(batch, segment, at, Unit("footnoteReference", more={"footnoteId": key}))
    return {"footnoteId": key}


def _put_element(batch: Batch, segment: Segment, at: int, unit: Unit) -> None:
    added = batch.suggestion(f"Add: {unit.kind}")
    style = {} if unit.kind == "footnoteReference" else segment.neighbour(at).style
    segment.put(at, [Unit(unit.kind, "", style, unit.more, segment.names_at(at), added)])


def insert_page_break(batch: Batch, request: dict[str, Any]) -> None:
    """Put a page break in, with a line end after it."""
    _, segment, at = batch.place(request)
    if segment.segment_id:
        raise Invalid("Page breaks cannot be inserted inside a header, footer or footnote.")
    segment.check_place(at)
    if segment.in_table(at):
        raise Invalid("Page breaks cannot be inserted inside a table.")
    segment.insert_text(at, "\n")
    _put_element(batch, segment, at, Unit("pageBreak"))


def insert_section_break(batch: Batch, request: dict[str, Any]) -> None:
    """Put a line end and a section break in."""
    batch.direct("insertSectionBreak")
    _, segment, at = batch.place(request)
    if segment.segment_id:
        raise Invalid("Section breaks cannot be inserted inside a header, footer or footnote.")
    segment.check_place(at)
    if segment.in_table(at):
        raise Invalid("Section breaks cannot be inserted inside a table.")
    segment.insert_text(at, "\n")
    kind = request.get("sectionType", "CONTINUOUS")
    segment.put(at + 1, [Unit(SECTION, more={"style": {**styles.SECTION, "sectionType": kind}})])


def insert_inline_image(batch: Batch, request: dict[str, Any]) -> dict[str, Any]:
    tab, segment, at = batch.place(request)
    uri = str(request.get("uri", ""))
    if not uri.startswith(("http://", "https://")) or len(uri.encode()) > 2048:
        raise Invalid(
            "There was a problem retrieving the image. The provided image should be publicly accessible, within size "
            "limit, and in supported formats."
        )
    if segment.segment_id in tab.footnotes:
        raise Invalid("Inline images cannot be inserted inside a footnote.")
    segment.check_place(at)
    key = minted()
    given = request.get("objectSize") or {}
    side = styles.points(100)
    height, width = given.get("height"), given.get("width")
    size = {"height": height or width or side, "width": width or height or side}
    picture: dict[str, Any] = {"imageProperties": {"contentUri": uri, "sourceUri": uri, "cropProperties": {}}}
    picture |= {"embeddedObjectBorder": {"color": {"color": {"rgbColor": {}}}, "width": styles.points(0)}}
    picture["embeddedObjectBorder"] |= {"dashStyle": "SOLID", "propertyState": "NOT_RENDERED"}
    picture |= {"size": size, **{f"margin{edge}": styles.points(9) for edge in ("Top", "Bottom", "Right", "Left")}}
    tab.objects[key] = {"objectId": key, "inlineObjectProperties": {"embeddedObject": picture}}
    _put_element(batch, segment, at, Unit("inlineObjectElement", more={"inlineObjectId": key}))
    return {"objectId": key}


def insert_person(batch: Batch, request: dict[str, Any]) -> None:
    _, segment, at = batch.place(request)
    given = dict(request.get("personProperties") or {})
    if "@" not in str(given.get("email", "")):
        raise Invalid("The person's email must be specified.")
    segment.check_place(at)
    _put_element(batch, segment, at, Unit("person", more={"personId": minted(), "personProperties": given}))


def create_paragraph_bullets(batch: Batch, request: dict[str, Any]) -> None:
    """Make a list of the paragraphs of a range. Tabs before their texts say how deep they lie, and are taken out."""
    batch.direct("createParagraphBullets")
    tab, segment, start, end = batch.range(request)
    preset = str(request.get("bulletPreset") or "BULLET_DISC_CIRCLE_SQUARE")
    key = minted("kix.list.")
    levels = styles.nesting_levels(preset)
    tab.lists[key] = {"listProperties": {"nestingLevels": levels}}
    for first, stop in reversed(segment.paragraphs(start, end)):
        text = joined(segment.units[first:stop])
        depth = min(len(text) - len(text.lstrip("\t")), 8)
        bullet: dict[str, Any] = {"listId": key, **({"nestingLevel": depth} if depth else {}), "textStyle": {}}
        unit = segment.units[stop - 1]
        indents = {name: levels[depth][name] for name in ("indentFirstLine", "indentStart")}
        segment.units[stop - 1] = with_more(unit, bullet=bullet, style={**unit.more["style"], **indents})
        del segment.units[first : first + depth]
    _forget_lists(tab)


def delete_paragraph_bullets(batch: Batch, request: dict[str, Any]) -> None:
    batch.direct("deleteParagraphBullets")
    tab, segment, start, end = batch.range(request)
    for _, stop in segment.paragraphs(start, end):
        segment.units[stop - 1] = with_more(segment.units[stop - 1], bullet=None)
    _forget_lists(tab)


def _forget_lists(tab: Tab) -> None:
    used = {unit.more["bullet"]["listId"] for held in tab.segments for unit in held.units if "bullet" in unit.more}
    tab.lists = {key: value for key, value in tab.lists.items() if key in used}


def update_document_style(batch: Batch, request: dict[str, Any]) -> None:
    batch.direct("updateDocumentStyle")
    tab = batch.document.tab(request.get("tabId", ""))
    mask = batch.mask(request, "DocumentStyle")
    tab.document_style = fieldmask.merged(tab.document_style, request.get("documentStyle") or {}, mask)


def add_document_tab(batch: Batch, request: dict[str, Any]) -> dict[str, Any]:
    batch.direct("addDocumentTab")
    document = batch.document
    given = request.get("tabProperties") or {}
    parent = given.get("parentTabId", "")
    if parent:
        document.tab(parent)
    tab = Tab(minted("t."), given.get("title") or f"Tab {len(document.tabs) + 1}", parent, given.get("iconEmoji", ""))
    _arrange(batch, tab, given.get("index"))
    return {"tabProperties": tab_properties(document, tab)}


def _arrange(batch: Batch, tab: Tab, index: int | None) -> None:
    """Put a tab at its place among those with the same parent."""
    document = batch.document
    siblings = [held for held in document.children(tab.parent) if held is not tab]
    at = len(siblings) if index is None else index
    if not 0 <= at <= len(siblings):
        raise Invalid(f"The tab index {at} is out of bounds.")
    siblings.insert(at, tab)
    rest = [held for held in document.tabs.values() if held.parent != tab.parent and held is not tab]
    # The first of the top tabs is the document's first tab, so they stand in front.
    ordered = siblings + rest if not tab.parent else rest + siblings
    document.tabs = {held.tab_id: held for held in ordered}


def delete_tab(batch: Batch, request: dict[str, Any]) -> None:
    """Delete a tab with all tabs below it; one tab must stay."""
    batch.direct("deleteTab")
    document = batch.document
    tab = document.tab(str(request.get("tabId", "")) or "-")
    gone, found = {tab.tab_id}, {tab.tab_id}
    while found:
        found = {held.tab_id for held in document.tabs.values() if held.parent in found}
        gone |= found
    if len(gone) == len(document.tabs):
        raise Invalid("The last tab of a document cannot be deleted.")
    document.tabs = {key: held for key, held in document.tabs.items() if key not in gone}


def update_document_tab_properties(batch: Batch, request: dict[str, Any]) -> None:
    batch.direct("updateDocumentTabProperties")
    given = request.get("tabProperties") or {}
    tab = batch.document.tab(str(given.get("tabId", "")) or "-")
    mask = batch.mask(request, "TabProperties")
    every = "*" in mask
    if every or "title" in mask:
        tab.title = str(given.get("title", "")) or tab.title
    if every or "iconEmoji" in mask:
        tab.icon = str(given.get("iconEmoji", ""))
    if "parentTabId" in mask:
        tab.parent = str(given.get("parentTabId", ""))
        batch.document.tab(tab.parent)
    if "index" in mask or "parentTabId" in mask:
        _arrange(batch, tab, given.get("index") if "index" in mask else None)


def insert_comment(batch: Batch, request: dict[str, Any]) -> dict[str, Any]:
    """Make a comment on a range; Drive keeps it once the batch has landed."""
    _, segment, start, end = batch.range(request)
    quote = joined(segment.units[start:end])
    key = minted("AAAA", 8)
    batch.comments.append({"id": key, "content": str(request.get("content", "")), "quote": quote})
    post = {"postId": key, "content": request.get("content", ""), "author": {"me": True, "displayName": batch.account}}
    return {"commentThread": {"commentId": key, "headPost": post, "plainTextQuote": quote, "status": "OPEN"}}


HANDLERS: dict[str, Callable[[Batch, dict[str, Any]], dict[str, Any] | None]] = {
    "createHeader": _create_edge("header"),
    "createFooter": _create_edge("footer"),
    "deleteHeader": _delete_edge("header"),
    "deleteFooter": _delete_edge("footer"),
    "createFootnote": create_footnote,
    "insertPageBreak": insert_page_break,
    "insertSectionBreak": insert_section_break,
    "insertInlineImage": insert_inline_image,
    "insertPerson": insert_person,
    "createParagraphBullets": create_paragraph_bullets,
    "deleteParagraphBullets": delete_paragraph_bullets,
    "updateDocumentStyle": update_document_style,
    "addDocumentTab": add_document_tab,
    "deleteTab": delete_tab,
    "updateDocumentTabProperties": update_document_tab_properties,
    "insertComment": insert_comment,
}
