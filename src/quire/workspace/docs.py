"""Filling documents: every ``{{name}}`` takes its value, in one batch that the document's revision guards."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

from quire.errors import did_you_mean
from quire.google.error import Invalid
from quire.workflows.effect import Act, NotDone, Prepare, PrepareAgain, effect
from quire.workflows.retry import Fail
from quire.workspace.connection import actor, google, refusing, sure
from quire.workspace.values import FileLike, Filled, id_of

_PLACE = re.compile(r"\{\{\s*([\w.-]+)\s*\}\}")


def placeholders(document: Mapping[str, Any]) -> Counter[str]:
    """Return the placeholders as they are written, in all tabs, tables, headers, footers and footnotes."""
    return Counter(found[0] for text in _texts(document) for found in _PLACE.finditer(text))


def _texts(node: Any) -> Iterator[str]:
    """The text of each paragraph below this node: a placeholder may be cut into runs of several styles."""
    if isinstance(node, Mapping):
        elements = node.get("elements")
        if isinstance(elements, list):
            yield "".join(str((element.get("textRun") or {}).get("content", "")) for element in elements)
        for key, inner in node.items():
            if key != "elements":
                yield from _texts(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from _texts(inner)


def _shown(name: str, value: Any) -> str:
    """The text that stands for a value in the document."""
    text = f"{value:%d %B %Y}".lstrip("0") if isinstance(value, date) else str(value)
    if "{{" in text:
        raise Fail(f"the value of {name!r} holds '{{{{': it would be taken for a placeholder")
    return text


async def _check(act: Act[Any], document: FileLike, values: Mapping[str, Any]) -> dict[str, Any]:
    """Compare the placeholders of the document with the values, and note the revision that was read."""
    with refusing():
        read = await (await google(act.connection)).documents.get(id_of(document))
    found = placeholders(read.get("tabs") or read.get("body") or {})
    names = {_name(place) for place in found}
    for name in values:
        if name not in names:
            known = did_you_mean(name, names) if names else "; it has none"
            raise Fail(f"the document {read.get('title', '')!r} has no placeholder {{{{{name}}}}}{known}")
    for name in sorted(names - values.keys()):
        known = did_you_mean(name, values)
        raise Fail(f"there is no value for {{{{{name}}}}} of the document {read.get('title', '')!r}{known}")
    for name, value in values.items():
        _shown(name, value)
    return {"revision": str(read.get("revisionId", "")), "places": dict(found)}


def _name(place: str) -> str:
    match = _PLACE.fullmatch(place)
    assert match is not None
    return match[1]


async def _find(act: Act[Any], document: FileLike, values: Mapping[str, Any]) -> Filled | NotDone:
    """The batch is done as a whole or not at all: a placeholder that is left says that it was not."""
    read = await (await google(act.connection)).documents.get(id_of(document))
    left = placeholders(read.get("tabs") or read.get("body") or {}).keys() & act.prepared["places"].keys()
    if left:
        return PrepareAgain(f"{', '.join(sorted(left))} of the document still wait for their values")
    return Filled(id_of(document), sum(act.prepared["places"].values()))


@effect(probe=_find, fenced=True, prepare=Prepare(_check), actor=actor)
async def fill(act: Act[Any], document: FileLike, values: Mapping[str, Any]) -> Filled:
    """Replace each ``{{name}}`` of a document by the value of that name, in the style of the placeholder.

    Every placeholder needs a value and every value a placeholder. If somebody types meanwhile, Google refuses the
    batch, and it is made anew for the document as it is then.
    """
    texts = {place: _shown(_name(place), values[_name(place)]) for place in act.prepared["places"]}
    requests = [
        {"replaceAllText": {"containsText": {"text": place, "matchCase": True}, "replaceText": text}}
        for place, text in texts.items()
    ]
    documents = (await google(act.connection)).documents
    try:
        with sure():
            await documents.batch_update(id_of(document), requests, revision=act.prepared["revision"])
    except NotDone as error:
        if isinstance(error.__cause__, Invalid):
            raise PrepareAgain(str(error)) from error
        raise
    return Filled(id_of(document), sum(act.prepared["places"].values()))
