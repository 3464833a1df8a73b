"""Filling documents: every ``{{name}}`` takes its value, in one batch that the document's revision guards.

Where each value is a plain text, placeholders are replaced by their text. Where one holds a brace, or is a picture or
rows of a table, the batch is made of edits at indexes, from the end backwards, so that no value is ever taken for a
placeholder; then a named range in the same batch says that it is done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from quire.google.error import Invalid
from quire.workflows.effect import Act, NotDone, PrepareAgain
from quire.workflows.retry import Fail
from quire.workspace.connection import google, refusing, sure
from quire.workspace.declaring import Given, google_effect
from quire.workspace.docs.edits import edits
from quire.workspace.docs.reading import named_ranges, paragraphs, places
from quire.workspace.docs.values import Image, Rows
from quire.workspace.filling import check_braces, compare, replacing, shown
from quire.workspace.values import FileLike, Filled, id_of, outside_key


def _names(values: Mapping[str, Any]) -> list[str]:
    """The names of placeholders that the values fill: rows have one for each of their fields."""
    found = []
    for name, value in values.items():
        found += [f"{name}.{field}" for field in value.fields] if isinstance(value, Rows) else [name]
    return found


def _check_rows(name: str, value: Rows, locale: str) -> None:
    for number, row in enumerate(value.rows, 1):
        for field in value.fields:
            if field not in row:
                raise Fail(f"row {number} of {name!r} has no {field!r}, as the others have")
            shown(f"{name}.{field}", row[field], locale)


def _plain(values: Mapping[str, Any], locale: str) -> bool:
    """Whether each value is a text that no placeholder could be made of."""
    plain = True
    for name, value in values.items():
        if isinstance(value, Rows):
            _check_rows(name, value, locale)
            plain = False
        elif isinstance(value, Image):
            if not value.uri.startswith(("https://", "http://")):
                raise Fail(f"the picture {name!r} is at {value.uri!r}; give an address that Google can open")
            plain = False
        else:
            text = shown(name, value, locale)
            plain = plain and "{" not in text and "}" not in text
    return plain


def _rows_of(values: Mapping[str, Any]) -> dict[str, Rows]:
    return {name: value for name, value in values.items() if isinstance(value, Rows)}


async def _check(act: Act[Any], given: Given) -> dict[str, Any]:
    """Compare the placeholders of the document with the values, and note the revision that was read."""
    plain = _plain(given.values, given.locale)
    with refusing():
        read = await (await google(act.connection)).documents.get(id_of(given.document))
    title, found = str(read.get("title", "")), places(read)
    if "revisionId" not in read:
        raise Fail(f"this account may read the document {title!r}, not change it; share it as an editor")
    check_braces((one.text for one in paragraphs(read)), title)
    # Rows without fields have no rows: the placeholders of their template are theirs all the same.
    empty = tuple(f"{name}." for name, value in _rows_of(given.values).items() if not value.rows)
    counted = Counter(one.text for one in found if not (empty and one.name.startswith(empty)))
    compare(counted, _names(given.values), title, missing=given.missing, extra=given.extra)
    names = set(_names(given.values))
    kept = {
        place.text: place.name for place in found if place.name in names or (empty and place.name.startswith(empty))
    }
    for one in found:
        if one.name.partition(".")[0] in _rows_of(given.values) and one.paragraph.row is None:
            raise Fail(f"{one.text} of the document {title!r} stands in no table: there is no row to repeat")
    return {
        "revision": str(read["revisionId"]),
        "places": dict(Counter(one.text for one in found if one.text in kept)),
        "names": kept,
        "plain": plain,
    }


def _filled(act: Act[Any], document: FileLike) -> Filled:
    return Filled(id_of(document), sum(act.prepared["places"].values()))


async def _find(act: Act[Any], given: Given) -> Filled | NotDone:
    """The batch is done as a whole or not at all: a placeholder that is left says that it was not."""
    read = await (await google(act.connection)).documents.get(id_of(given.document))
    if not act.prepared["places"]:
        return _filled(act, given.document)
    if not act.prepared["plain"]:
        done = bool(named_ranges(read, _mark(act)))
        return _filled(act, given.document) if done else PrepareAgain("the document was not filled")
    left = {one.text for one in places(read)} & act.prepared["places"].keys()
    if left:
        return PrepareAgain(f"{', '.join(sorted(left))} of the document still wait for their values")
    return _filled(act, given.document)


def _mark(act: Act[Any]) -> str:
    return f"quire:{outside_key(act.key)}"


async def _requests(act: Act[Any], document: FileLike, values: Mapping[str, Any], locale: str) -> list[dict[str, Any]]:
    if act.prepared["plain"]:
        texts = {name: shown(name, value, locale) for name, value in values.items()}
        return replacing("replaceAllText", act.prepared["names"], texts)
    read = await (await google(act.connection)).documents.get(id_of(document))
    if read.get("revisionId") != act.prepared["revision"]:
        raise PrepareAgain("somebody has changed the document meanwhile")
    wanted = [one for one in places(read) if one.text in act.prepared["names"]]
    return edits(wanted, values, locale, _mark(act))


@google_effect(check=_check, find=_find)
async def fill(
    act: Act[Any],
    document: FileLike,
    values: Mapping[str, Any],
    *,
    locale: str = "",
    missing: str = "fail",
    extra: str = "fail",
) -> Filled:
    """Replace each ``{{name}}`` of a document by the value of that name, in the style of the placeholder.

    Values are texts, numbers and dates as ``locale`` writes them, ``docs.Image`` and ``docs.Rows``. Every placeholder
    needs a value and every value a placeholder, unless ``missing="keep"`` or ``extra="ignore"``. If somebody types
    meanwhile, Google refuses the batch, and it is made anew for the document as it is then.
    """
    if not act.prepared["places"]:
        return _filled(act, document)
    documents = (await google(act.connection)).documents
    try:
        with sure():
            requests = await _requests(act, document, values, locale)
            await documents.batch_update(id_of(document), requests, revision=act.prepared["revision"])
    except NotDone as error:
        if isinstance(error.__cause__, Invalid) and "revision" in str(error):
            raise PrepareAgain(str(error)) from error
        raise
    return _filled(act, document)
