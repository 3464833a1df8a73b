"""Filling decks: every ``{{name}}`` of shapes, tables and notes takes its value, guarded by the deck's revision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from quire.google.error import Invalid
from quire.workflows.effect import Act, NotDone, PrepareAgain
from quire.workflows.retry import Fail
from quire.workspace.connection import google, refusing, sure
from quire.workspace.declaring import Given, google_effect
from quire.workspace.filling import PLACE, check_braces, check_plain, compare, name_of, replacing, shown
from quire.workspace.values import FileLike, Filled, id_of


def _texts(node: Any) -> Iterator[str]:
    """The text of each shape and cell below this node."""
    if isinstance(node, Mapping):
        elements = node.get("textElements")
        if isinstance(elements, list):
            yield "".join(str((element.get("textRun") or {}).get("content", "")) for element in elements)
        for key, inner in node.items():
            if key != "textElements":
                yield from _texts(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from _texts(inner)


def _places(deck: Mapping[str, Any]) -> Counter[str]:
    return Counter(found[0] for text in _texts(deck.get("slides", [])) for found in PLACE.finditer(text))


async def _check(act: Act[Any], given: Given) -> dict[str, Any]:
    texts = {name: shown(name, value, given.locale) for name, value in given.values.items()}
    check_plain(texts)
    with refusing():
        deck = await (await google(act.connection)).presentations.get(id_of(given.deck))
    title = str(deck.get("title", ""))
    if "revisionId" not in deck:
        raise Fail(f"this account may read the deck {title!r}, not change it; share it as an editor")
    check_braces(_texts(deck.get("slides", [])), title)
    found = _places(deck)
    compare(found, given.values, title, missing=given.missing, extra=given.extra)
    places = {place: count for place, count in found.items() if name_of(place) in given.values}
    return {"revision": str(deck["revisionId"]), "places": places}


async def _find(act: Act[Any], given: Given) -> Filled | NotDone:
    left = _places(await (await google(act.connection)).presentations.get(id_of(given.deck)))
    if waiting := sorted(left.keys() & act.prepared["places"].keys()):
        return PrepareAgain(f"{', '.join(waiting)} of the deck still wait for their values")
    return Filled(id_of(given.deck), sum(act.prepared["places"].values()))


@google_effect(check=_check, find=_find)
async def fill(
    act: Act[Any],
    deck: FileLike,
    values: Mapping[str, Any],
    *,
    locale: str = "",
    missing: str = "fail",
    extra: str = "fail",
) -> Filled:
    """Replace each ``{{name}}`` of a deck by the value of that name, in the style of the placeholder."""
    places = act.prepared["places"]
    texts = {name: shown(name, value, locale) for name, value in values.items()}
    requests = replacing("replaceAllText", {place: name_of(place) for place in places}, texts)
    try:
        with sure():
            if requests:
                presentations = (await google(act.connection)).presentations
                await presentations.batch_update(id_of(deck), requests, revision=act.prepared["revision"])
    except NotDone as error:
        if isinstance(error.__cause__, Invalid) and "revision" in str(error):
            raise PrepareAgain(str(error)) from error
        raise
    return Filled(id_of(deck), sum(places.values()))
