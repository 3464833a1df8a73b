"""What all acts on files share: how a file is looked at, checked and put into the trash."""

from __future__ import annotations

from typing import Any

from quire.google.drive import FOLDER
from quire.google.error import Missing
from quire.workflows.effect import Act, Kept, NotDone
from quire.workflows.retry import Fail
from quire.workspace.connection import google, refusing
from quire.workspace.values import File, FileLike, id_of

ROOT = "root"
FIELDS = "id,name,mimeType,webViewLink,trashed,parents,createdTime,appProperties,md5Checksum"
APPS = "application/vnd.google-apps."


def as_file(found: dict[str, Any]) -> File:
    """The value for a file as Drive shows it."""
    file_id = str(found["id"])
    link = str(found.get("webViewLink") or f"https://drive.google.com/open?id={file_id}")
    name, mime, md5 = (str(found.get(word, "")) for word in ("name", "mimeType", "md5Checksum"))
    return File(file_id, name, link, mime, md5)


async def look(act: Act[Any], file: FileLike) -> dict[str, Any]:
    """Return what Drive says of a file. One that is not there, or in the trash, is refused."""
    with refusing():
        there = await (await google(act.connection)).drive.files_get(id_of(file), fields=FIELDS)
    if there.get("trashed"):
        raise Fail(f"{there.get('name', '')!r} is in the trash; take it out, or give another file")
    return there


async def check_folder(act: Act[Any], parent: FileLike) -> None:
    """Refuse a parent that is no folder."""
    there = await look(act, parent)
    if there.get("mimeType") != FOLDER:
        raise Fail(f"{there.get('name', '')!r} is no folder; give the id or the link of a folder as parent")


async def new_id(act: Act[Any]) -> str:
    """Draw an id for a file to come."""
    [file_id] = await (await google(act.connection)).drive.files_generate_ids(1)
    return file_id


async def by_id(act: Act[Any], file_id: str) -> File | NotDone:
    """A file that somebody has trashed or deleted since was made all the same; one that never came is not there."""
    try:
        return as_file(await (await google(act.connection)).drive.files_get(file_id, fields=FIELDS))
    except Missing as error:
        return NotDone(str(error))


async def trash(act: Act[Any], file_id: str) -> None:
    """Put a file into the trash; one that is gone stays gone."""
    try:
        await (await google(act.connection)).drive.files_update(file_id, {"trashed": True}, fields="id")
    except Missing:
        return


async def trash_unchanged(act: Act[Any], made: File) -> Kept | None:
    """Put a file into the trash, unless somebody has given it another content."""
    there = await by_id(act, made.id)
    if made.md5 and isinstance(there, File) and there.md5 != made.md5:
        return Kept(f"{made.name!r} has another content by now; it stays")
    await trash(act, made.id)
    return None
