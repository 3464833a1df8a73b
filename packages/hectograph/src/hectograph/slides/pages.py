"""The page ``/slides/ID``: the texts of a presentation, to read and to change."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hectograph.core.html import back, button, escape, form, given, page
from hectograph.core.http import Request, Response

if TYPE_CHECKING:
    from hectograph.slides.api import SlidesApi

Json = dict[str, Any]


def show(api: SlidesApi, request: Request) -> Response:
    key = request.path.strip("/").partition("/")[2]
    found = api.world.call("GET", f"/v1/presentations/{key}")
    if found.status != 200:
        return page("Slides", "<p>There is no such presentation.</p>", "/drive", 404)
    deck: Json = json.loads(found.body)
    if request.method == "POST":
        return _saved(api, deck, given(request))
    out = ""
    for number, slide in enumerate(deck.get("slides", ()), 1):
        shapes = "".join(_shape(one) for one in slide.get("pageElements", ()))
        out += f"<div class=card><div class=quiet>slide {number}</div>{shapes}</div>"
    return page(deck["title"], form(f"/slides/{key}", out + button("Save")), "/drive")


def _plain(element: Json) -> str:
    runs = element.get("shape", {}).get("text", {}).get("textElements", ())
    return "".join(one.get("textRun", {}).get("content", "") for one in runs).removesuffix("\n")


def _shape(element: Json) -> str:
    if "shape" not in element:
        return (
            f"<p class=quiet>[{escape(next(iter(element.keys() - {'objectId', 'size', 'transform'}), 'element'))}]</p>"
        )
    name = escape(element["objectId"])
    look = 'aria-label="text of a shape" style="min-height:2.4rem"'
    return f'<textarea name="{name}" {look}>{escape(_plain(element))}</textarea>'


def _saved(api: SlidesApi, deck: Json, sent: dict[str, str]) -> Response:
    requests: list[Json] = []
    for slide in deck.get("slides", ()):
        for element in slide.get("pageElements", ()):
            key, old = element["objectId"], _plain(element)
            new = sent.get(key, old).replace("\r\n", "\n")
            if new == old:
                continue
            if old:
                requests.append({"deleteText": {"objectId": key, "textRange": {"type": "ALL"}}})
            if new:
                requests.append({"insertText": {"objectId": key, "text": new}})
    if requests:
        done = api.world.call("POST", f"/v1/presentations/{deck['presentationId']}:batchUpdate", {"requests": requests})
        if done.status != 200:
            said = json.loads(done.body)["error"]["message"]
            return page("Not saved", f"<p>{escape(said)}</p>", "/drive", 409)
    return back(f"/slides/{deck['presentationId']}")
