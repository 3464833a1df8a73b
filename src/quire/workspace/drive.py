"""Folders, copies and PDFs in Drive.

A folder and an uploaded file carry an id that Google gave out before: a second create with it is refused, and the file
is found by it. Google takes no id for the copy of a document. So a copy bears a mark among its properties, and is
looked for by its folder and its mark; if a twin shows, the older one counts and the other goes to the trash.
"""

from __future__ import annotations

from typing import Any

from quire.google.drive import FOLDER
from quire.google.error import Missing
from quire.workflows.effect import Act, NotDone, Prepare, effect
from quire.workflows.retry import Fail
from quire.workspace.connection import actor, google, refusing, sure
from quire.workspace.values import File, FileLike, id_of, outside_key

ROOT = "root"
PDF = "application/pdf"
_FIELDS = "id,name,mimeType,webViewLink,trashed,parents,createdTime,appProperties"


def _file(found: dict[str, Any]) -> File:
    file_id = str(found["id"])
    link = str(found.get("webViewLink") or f"https://drive.google.com/open?id={file_id}")
    return File(file_id, str(found.get("name", "")), link, str(found.get("mimeType", "")))


async def _check_folder(act: Act[Any], parent: FileLike) -> None:
    there = await (await google(act.connection)).drive.files_get(id_of(parent), fields="id,name,mimeType,trashed")
    if there.get("mimeType") != FOLDER:
        raise Fail(f"{there.get('name', '')!r} is no folder; give the id or the link of a folder as parent")
    if there.get("trashed"):
        raise Fail(f"the folder {there.get('name', '')!r} is in the trash; take it out, or give another parent")


async def _new_id(act: Act[Any]) -> str:
    [file_id] = await (await google(act.connection)).drive.files_generate_ids(1)
    return file_id


async def _by_id(act: Act[Any], file_id: str) -> File | NotDone:
    """A file that somebody has trashed or deleted since was made all the same; one that never came is not there."""
    try:
        return _file(await (await google(act.connection)).drive.files_get(file_id, fields=_FIELDS))
    except Missing as error:
        return NotDone(str(error))


async def _trash(act: Act[Any], file_id: str) -> None:
    try:
        await (await google(act.connection)).drive.files_update(file_id, {"trashed": True}, fields="id")
    except Missing:
        return  # it is gone already


# -- folders -------------------------------------------------------------------------------------------------------


async def _check_new_folder(act: Act[Any], name: str, parent: FileLike = ROOT) -> None:
    if not name.strip():
        raise Fail("a folder needs a name")
    with refusing():
        await _check_folder(act, parent)


async def _reserve_folder(act: Act[Any], name: str, parent: FileLike = ROOT) -> str:
    return await _new_id(act)


async def _find_folder(act: Act[Any], name: str, parent: FileLike = ROOT) -> File | NotDone:
    return await _by_id(act, act.prepared)


async def _undo_folder(act: Act[Any], made: File) -> None:
    """A folder in which somebody has put something else stays."""
    held = await (await google(act.connection)).drive.files_list(
        f"'{made.id}' in parents and trashed = false", fields="files(id)"
    )
    if not held:
        await _trash(act, made.id)


@effect(
    probe=_find_folder,
    undo=_undo_folder,
    fenced=True,
    prepare=Prepare(_check_new_folder, _reserve_folder),
    actor=actor,
)
async def folder(act: Act[Any], name: str, parent: FileLike = ROOT) -> File:
    """Make a folder. ``parent``: the folder in which it stands, as a value, an id or a link."""
    body = {"id": act.prepared, "name": name, "mimeType": FOLDER, "parents": [id_of(parent)]}
    with sure():
        return _file(await (await google(act.connection)).drive.files_create(body, fields=_FIELDS))


# -- copies --------------------------------------------------------------------------------------------------------


async def _check_copy(act: Act[Any], template: FileLike, name: str, parent: FileLike = ROOT) -> str:
    with refusing():
        await _check_folder(act, parent)
        there = await (await google(act.connection)).drive.files_get(id_of(template), fields="id,name,mimeType,trashed")
    if there.get("mimeType") == FOLDER:
        raise Fail(f"{there.get('name', '')!r} is a folder, and Drive copies no folders")
    return str(there.get("name", ""))


async def _find_copy(act: Act[Any], template: FileLike, name: str, parent: FileLike = ROOT) -> File | NotDone:
    mark = outside_key(act.key)
    drive = (await google(act.connection)).drive
    listed = await drive.files_list(f"'{id_of(parent)}' in parents", fields=f"files({_FIELDS})")
    ours = [found for found in listed if (found.get("appProperties") or {}).get("quire") == mark]
    if not ours:
        return NotDone(f"there is no copy {name!r} in its folder")
    first, *twins = sorted(ours, key=lambda found: (str(found.get("createdTime", "")), str(found["id"])))
    for twin in twins:
        await _trash(act, str(twin["id"]))
    return _file(first)


async def _undo_file(act: Act[Any], made: File) -> None:
    await _trash(act, made.id)


@effect(probe=_find_copy, undo=_undo_file, fenced=True, prepare=Prepare(_check_copy), actor=actor, timeout="60s")
async def copy(act: Act[Any], template: FileLike, name: str, parent: FileLike = ROOT) -> File:
    """Copy a file, such as a document that serves as a template, into a folder."""
    body = {"name": name, "parents": [id_of(parent)], "appProperties": {"quire": outside_key(act.key)}}
    with sure():
        return _file(await (await google(act.connection)).drive.files_copy(id_of(template), body, fields=_FIELDS))


# -- PDFs ----------------------------------------------------------------------------------------------------------


async def _check_pdf(act: Act[Any], document: FileLike, parent: FileLike = ROOT, name: str = "") -> str:
    with refusing():
        await _check_folder(act, parent)
        there = await (await google(act.connection)).drive.files_get(id_of(document), fields="id,name,mimeType")
    if not str(there.get("mimeType", "")).startswith("application/vnd.google-apps."):
        raise Fail(f"{there.get('name', '')!r} is no Google document, so Drive makes no PDF of it")
    return str(there["name"])


async def _reserve_pdf(act: Act[Any], document: FileLike, parent: FileLike = ROOT, name: str = "") -> dict[str, str]:
    return {"id": await _new_id(act), "name": name or f"{act.prepared}.pdf"}


async def _find_pdf(act: Act[Any], document: FileLike, parent: FileLike = ROOT, name: str = "") -> File | NotDone:
    return await _by_id(act, act.prepared["id"])


@effect(
    probe=_find_pdf,
    undo=_undo_file,
    fenced=True,
    prepare=Prepare(_check_pdf, _reserve_pdf),
    actor=actor,
    timeout="60s",
)
async def pdf(act: Act[Any], document: FileLike, parent: FileLike = ROOT, name: str = "") -> File:
    """Keep a document as a PDF in a folder."""
    drive = (await google(act.connection)).drive
    with sure():
        content = await drive.files_export(id_of(document), PDF)
        body = {**act.prepared, "mimeType": PDF, "parents": [id_of(parent)]}
        return _file(await drive.files_create(body, content, fields=_FIELDS))
