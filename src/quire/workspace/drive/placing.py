"""Where a file stands. A move is a state, "its parent is this folder": saying it twice is saying it once."""

from __future__ import annotations

from typing import Any

from quire.google.error import Missing
from quire.workflows.effect import Act, Kept, NotDone
from quire.workflows.retry import Fail
from quire.workspace.connection import google, sure
from quire.workspace.declaring import Given, google_effect
from quire.workspace.drive.looking import FIELDS, as_file, check_folder, look
from quire.workspace.values import File, FileLike, id_of


async def _check(act: Act[Any], given: Given) -> dict[str, str]:
    there = await look(act, given.file)
    await check_folder(act, given.to)
    if there["id"] == id_of(given.to):
        raise Fail(f"the folder {there.get('name', '')!r} cannot be moved into itself")
    parents = there.get("parents") or [""]
    return {"from": str(parents[0]), "to": id_of(given.to)}


async def _find(act: Act[Any], given: Given) -> File | NotDone:
    there = await (await google(act.connection)).drive.files_get(id_of(given.file), fields=FIELDS)
    parents = there.get("parents") or []
    if id_of(given.to) in parents:
        return as_file(there)
    if act.prepared["from"] in parents or not (parents or act.prepared["from"]):
        return NotDone(f"{there.get('name', '')!r} is where it was")
    raise LookupError(f"{there.get('name', '')!r} is in a third folder by now: somebody has moved it")


async def _undo(act: Act[Any], moved: File) -> Kept | None:
    drive = (await google(act.connection)).drive
    before, to = act.prepared["from"], act.prepared["to"]
    try:
        parents = (await drive.files_get(moved.id, fields=FIELDS)).get("parents") or []
    except Missing:
        return Kept(f"{moved.name!r} is gone")
    if before in parents or not before:
        return None
    if to not in parents:
        return Kept(f"{moved.name!r} is in another folder by now; it stays there")
    await drive.files_move(moved.id, add=before, remove=to, fields="id")
    return None


@google_effect(check=_check, find=_find, undo=_undo, timeout="30s")
async def move(act: Act[Any], file: FileLike, to: FileLike) -> File:
    """Move a file or a folder into another folder."""
    drive = (await google(act.connection)).drive
    before = act.prepared["from"]
    with sure():
        if before == id_of(to):
            return as_file(await drive.files_get(id_of(file), fields=FIELDS))
        return as_file(await drive.files_move(id_of(file), add=id_of(to), remove=before, fields=FIELDS))
