"""The pages ``/docs`` and ``/doc/ID``: a document in which a person types, or makes suggestions.

A paragraph is a box. What a person changes goes the way of the API, so that revisions move as they do for programs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from hectograph.core.html import back, button, escape, form, given, link, page, table
from hectograph.core.http import Request, Response
from hectograph.core.utf16 import size
from hectograph.drive.file import DOCUMENT

if TYPE_CHECKING:
    from hectograph.docs.api import DocsApi

Json = dict[str, Any]


def show(api: DocsApi, request: Request) -> Response:
    word, *rest = request.path.strip("/").split("/")
    if word == "docs" or not rest:
        return _all(api)
    found = api.world.call("GET", f"/v1/documents/{rest[0]}")
    if found.status != 200:
        return page("Documents", "<p>There is no such document.</p>", "/docs", 404)
    document: Json = json.loads(found.body)
    if request.method == "POST":
        return _saved(api, document, given(request))
    return _document(document)


def _all(api: DocsApi) -> Response:
    with api.world.lock:
        files = [one for one in api.world.drive.files.values() if one.mime_type == DOCUMENT and not one.trashed]
    rows = [[link(f"/doc/{one.file_id}", one.name), f"{one.modified:%d %b %Y %H:%M}"] for one in files]
    return page("Documents", table(("document", "changed"), rows, "No documents yet."), "/docs")


def _paragraphs(content: list[Json]) -> Iterator[Json]:
    """Yield every paragraph, those in tables among them."""
    for block in content:
        if "paragraph" in block:
            yield block
        for row in block.get("table", {}).get("tableRows", ()):
            for cell in row["tableCells"]:
                yield from _paragraphs(cell["content"])


def _text(block: Json) -> str | None:
    """Return the text of a paragraph without its end, or None where more than text is in it."""
    elements = block["paragraph"]["elements"]
    if any("textRun" not in one for one in elements):
        return None
    return "".join(one["textRun"]["content"] for one in elements).removesuffix("\n")


def _document(document: Json) -> Response:
    body = "".join(_block(block) for block in document["body"]["content"])
    save = (
        "<div class=row><label><input type=checkbox name=suggest value=1> as suggestions</label>"
        + button("Save")
        + "</div>"
    )
    pdf = f"/drive/v3/files/{document['documentId']}/export?mimeType=application%2Fpdf"
    head = f"<p>{link(pdf, 'as PDF')} · <span class=quiet>{escape(document['documentId'])}</span></p>"
    hidden = {"revision": document.get("revisionId", "")}
    return page(document["title"], head + form(f"/doc/{document['documentId']}", body + save, hidden), "/docs")


def _block(block: Json) -> str:
    if "table" in block:
        rows = "".join(
            "<tr>"
            + "".join(f"<td>{''.join(map(_block, cell['content']))}</td>" for cell in row["tableCells"])
            + "</tr>"
            for row in block["table"]["tableRows"]
        )
        return f"<table>{rows}</table>"
    if "paragraph" not in block:
        return ""
    text = _text(block)
    if text is None:
        return "<p class=quiet>[a picture, a break or a field]</p>"
    style = block["paragraph"].get("paragraphStyle", {}).get("namedStyleType", "NORMAL_TEXT")
    weight = ' style="font-weight:600"' if style.startswith(("HEADING", "TITLE")) else ""
    lines = max(1, text.count("\v") + len(text) // 90 + 1)
    name = f"p{block.get('startIndex', 0)}"
    return (
        f'<textarea name="{name}" rows={lines} aria-label="paragraph" style="min-height:2.4rem"{weight}>'
        f"{escape(text)}</textarea>"
    )


def _saved(api: DocsApi, document: Json, sent: dict[str, str]) -> Response:
    """Bring changed paragraphs into the document, the last one first, so that no index moves before its turn."""
    requests: list[Json] = []
    for block in reversed(list(_paragraphs(document["body"]["content"]))):
        start, old = int(block.get("startIndex", 0)), _text(block)
        new = sent.get(f"p{start}")
        if old is None or new is None or (new := new.replace("\r\n", "\n")) == old:
            continue
        if old:
            span = {"startIndex": start, "endIndex": start + size(old)}
            requests.append({"deleteContentRange": {"range": span}})
        if new:
            requests.append({"insertText": {"location": {"index": start}, "text": new}})
    place = f"/doc/{document['documentId']}"
    if not requests:
        return back(place)
    control: Json = {"requiredRevisionId": sent.get("revision", "")}
    if sent.get("suggest"):
        control = {"writeMode": "SUGGEST"}
    done = api.world.call(
        "POST", f"/v1/documents/{document['documentId']}:batchUpdate", {"requests": requests, "writeControl": control}
    )
    if done.status != 200:
        said = json.loads(done.body)["error"]["message"]
        return page(
            "Not saved", f"<p>{escape(said)}</p><p>{link(place, 'Look at the document as it is now')}</p>", "/docs", 409
        )
    return back(place)
