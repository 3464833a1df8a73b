"""Folders, files and PDFs: each carries an id that Google gave out before, so a second create with it is refused."""

from __future__ import annotations

import mimetypes
from typing import Any

from quire.google.drive import FOLDER
from quire.workflows.effect import Act, Kept, NotDone
from quire.workflows.retry import Fail
from quire.workspace.connection import google, sure
from quire.workspace.declaring import Given, google_effect
from quire.workspace.drive.looking import (
    APPS,
    FIELDS,
    ROOT,
    as_file,
    by_id,
    check_folder,
    look,
    new_id,
    trash,
    trash_unchanged,
)
from quire.workspace.values import File, FileLike, id_of

PDF = "application/pdf"
#: What one upload takes here; a larger file belongs into Drive by other means.
MOST_BYTES = 50_000_000


async def _find(act: Act[Any], given: Given) -> File | NotDone:
    return await by_id(act, act.prepared["id"])


async def _check_name(act: Act[Any], given: Given) -> None:
    if not given.name.strip():
        raise Fail("a folder needs a name")
    await check_folder(act, given.parent)


async def _draw(act: Act[Any], given: Given) -> dict[str, str]:
    return {"id": await new_id(act)}


async def _trash_folder(act: Act[Any], made: File) -> Kept | None:
    drive = (await google(act.connection)).drive
    held = await drive.files_list(f"'{made.id}' in parents and trashed = false", fields="files(id,name)")
    if held:
        return Kept(f"the folder {made.name!r} holds {held[0].get('name', '')!r}, which this record did not make")
    await trash(act, made.id)
    return None


@google_effect(check=_check_name, reserve=_draw, find=_find, undo=_trash_folder, timeout="30s")
async def folder(act: Act[Any], name: str, parent: FileLike = ROOT) -> File:
    """Make a folder. ``parent``: the folder in which it stands, as a value, an id or a link."""
    body = {**act.prepared, "name": name, "mimeType": FOLDER, "parents": [id_of(parent)]}
    with sure():
        return as_file(await (await google(act.connection)).drive.files_create(body, fields=FIELDS))


async def _check_file(act: Act[Any], given: Given) -> None:
    if not given.name.strip():
        raise Fail("a file needs a name")
    if not isinstance(given.content, str | bytes):
        raise Fail(f"the content of {given.name!r} is {type(given.content).__name__}; give text or bytes")
    if len(given.content) > MOST_BYTES:
        raise Fail(f"{given.name!r} has {len(given.content) / 1e6:.0f} MB, and {MOST_BYTES // 1_000_000} is the most")
    await check_folder(act, given.parent)


@google_effect(check=_check_file, reserve=_draw, find=_find, undo=trash_unchanged)
async def file(act: Act[Any], content: str | bytes, name: str, parent: FileLike = ROOT, mime: str = "") -> File:
    """Keep text or bytes as a file in a folder."""
    kind = mime or mimetypes.guess_type(name)[0] or ("text/plain" if isinstance(content, str) else "")
    body = {
        **act.prepared,
        "name": name,
        "mimeType": kind or "application/octet-stream",
        "parents": [id_of(parent)],
    }
    data = content.encode() if isinstance(content, str) else content
    with sure():
        return as_file(await (await google(act.connection)).drive.files_create(body, data, fields=FIELDS))


async def _check_pdf(act: Act[Any], given: Given) -> dict[str, str]:
    await check_folder(act, given.parent)
    there = await look(act, given.document)
    if not str(there.get("mimeType", "")).startswith(APPS):
        raise Fail(f"{there.get('name', '')!r} is no Google document, so Drive makes no PDF of it")
    return {"name": given.name or f"{there['name']}.pdf"}


async def _draw_pdf(act: Act[Any], given: Given) -> dict[str, str]:
    return {"id": await new_id(act), **act.prepared}


@google_effect(check=_check_pdf, reserve=_draw_pdf, find=_find, undo=trash_unchanged)
async def pdf(act: Act[Any], document: FileLike, parent: FileLike = ROOT, name: str = "") -> File:
    """Keep a document as a PDF in a folder."""
    drive = (await google(act.connection)).drive
    with sure():
        content = await drive.files_export(id_of(document), PDF)
        body = {**act.prepared, "mimeType": PDF, "parents": [id_of(parent)]}
        return as_file(await drive.files_create(body, content, fields=FIELDS))
