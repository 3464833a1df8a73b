"""Writing into documents: at the end, or over a part that has a name.

What is put in has the name ``quire:…`` in the same batch, which the document's revision guards: the name says that it
was done, and where, so that it can be taken back if nobody has changed it.
"""

from __future__ import annotations

from typing import Any

from quire.google.error import Invalid, Missing
from quire.workflows.effect import Act, Kept, NotDone, PrepareAgain
from quire.workflows.retry import Fail
from quire.workspace.connection import google, refusing, sure
from quire.workspace.declaring import Given, google_effect
from quire.workspace.docs.markdown import written
from quire.workspace.docs.reading import named_ranges, paragraphs, text_of, units
from quire.workspace.filling import shown
from quire.workspace.values import FileLike, Written, id_of, outside_key


def _mark(act: Act[Any]) -> str:
    return f"quire:{outside_key(act.key)}"


async def _read(act: Act[Any], document: FileLike) -> dict[str, Any]:
    with refusing():
        read = await (await google(act.connection)).documents.get(id_of(document))
    if "revisionId" not in read:
        raise Fail(
            f"this account may read the document {read.get('title', '')!r}, not change it; share it as an editor"
        )
    return read


async def _check_append(act: Act[Any], given: Given) -> dict[str, Any]:
    if not given.text.strip():
        raise Fail("there is nothing to append: the text is empty")
    read = await _read(act, given.document)
    last = [one for one in paragraphs(read) if not one.segment and one.tab == _first_tab(read)][-1]
    return {"revision": read["revisionId"], "tab": last.tab, "end": last.indexes[-1], "blank": last.text == "\n"}


def _first_tab(read: dict[str, Any]) -> str:
    return str(read["tabs"][0]["tabProperties"]["tabId"])


async def _find(act: Act[Any], given: Given) -> Written | NotDone:
    read = await (await google(act.connection)).documents.get(id_of(given.document))
    if found := named_ranges(read, _mark(act)):
        return Written(id_of(given.document), _mark(act), text_of(read, found[0]))
    return PrepareAgain("the document has not what was to be written")


async def _batch(act: Act[Any], document: FileLike, requests: list[dict[str, Any]], text: str) -> Written:
    try:
        with sure():
            await (await google(act.connection)).documents.batch_update(
                id_of(document), requests, revision=act.prepared["revision"]
            )
    except NotDone as error:
        if isinstance(error.__cause__, Invalid) and "revision" in str(error):
            raise PrepareAgain(str(error)) from error
        raise
    return Written(id_of(document), _mark(act), text)


async def _undo(act: Act[Any], made: Written) -> Kept | None:
    """Delete what was put in, or put back what stood there, unless somebody has written into it since."""
    documents = (await google(act.connection)).documents
    before = act.prepared.get("before", "")
    try:
        read = await documents.get(made.document)
    except Missing:
        return None
    found = named_ranges(read, made.mark)
    if not found:
        return None  # it is gone already
    part = {name: value for name, value in found[0].items() if name != "namedRangeId"}
    if text_of(read, part) != made.text:
        return Kept("somebody has changed what was written; it stays")
    start = {name: value for name, value in part.items() if name not in ("startIndex", "endIndex")}
    start["index"] = int(part.get("startIndex", 0))
    requests: list[dict[str, Any]] = [
        {"deleteNamedRange": {"namedRangeId": found[0]["namedRangeId"]}},
        {"deleteContentRange": {"range": part}},
    ]
    if before:
        requests.append({"insertText": {"location": start, "text": before}})
        span = {**part, "endIndex": start["index"] + units(before)}
        requests.append({"createNamedRange": {"name": act.prepared["name"], "range": span}})
    await documents.batch_update(made.document, requests, revision=str(read["revisionId"]))
    return None


@google_effect(check=_check_append, find=_find, undo=_undo)
async def append(act: Act[Any], document: FileLike, text: str, *, markdown: bool = False) -> Written:
    """Put a text at the end of a document, in its first tab, as paragraphs of its own.

    ``markdown``: headings, lists, bold and italic of the text become such of the document.
    """
    ready = act.prepared
    body, styles = written(text) if markdown else (shown("text", text).rstrip("\n"), [])
    lead = "" if ready["blank"] else "\n"
    first = ready["end"] + len(lead)
    where = {"tabId": ready["tab"]}
    span = where | {"startIndex": first, "endIndex": first + units(body)}
    requests: list[dict[str, Any]] = [
        {"insertText": {"location": where | {"index": ready["end"]}, "text": lead + body}},
        {"createNamedRange": {"name": _mark(act), "range": span}},
        *(style.request(where, first) for style in styles),
    ]
    return await _batch(act, document, requests, body)


async def _check_replace(act: Act[Any], given: Given) -> dict[str, Any]:
    if not given.text:
        raise Fail(f"the new text of {given.name!r} is empty: Google would forget the name with it")
    read = await _read(act, given.document)
    found = named_ranges(read, given.name)
    if not found:
        raise Fail(
            f"the document {read.get('title', '')!r} has no part named {given.name!r}; define it by a named range"
        )
    if len(found) > 1:
        raise Fail(
            f"{given.name!r} names {len(found)} parts of the document {read.get('title', '')!r}; it may name one"
        )
    part = {name: value for name, value in found[0].items() if name != "namedRangeId"}
    before = text_of(read, part)
    return {"revision": read["revisionId"], "part": part, "before": before, "name": given.name}


@google_effect(check=_check_replace, find=_find, undo=_undo)
async def replace(act: Act[Any], document: FileLike, name: str, text: str) -> Written:
    """Replace what stands in the part of a document that has this name. The name stays over the new text."""
    part, body = act.prepared["part"], shown("text", text)
    span = {**part, "endIndex": int(part.get("startIndex", 0)) + units(body)}
    requests: list[dict[str, Any]] = [
        {"replaceNamedRangeContent": {"namedRangeName": name, "text": body}},
        {"createNamedRange": {"name": _mark(act), "range": span}},
    ]
    return await _batch(act, document, requests, body)
