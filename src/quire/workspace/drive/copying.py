"""Copies, as of a document that serves as a template.

Google takes no id for the copy of a document. So a copy gets a mark among its properties, set in the very call that
makes it, and is looked for by its folder and its mark. If a twin shows, the older one counts and the other goes to the
trash.
"""

from __future__ import annotations

from typing import Any

from quire.google.drive import FOLDER
from quire.workflows.effect import Act, NotDone
from quire.workflows.retry import Fail
from quire.workspace.connection import google, sure
from quire.workspace.declaring import Given, google_effect
from quire.workspace.drive.looking import FIELDS, ROOT, as_file, check_folder, look, trash
from quire.workspace.values import File, FileLike, id_of, outside_key


async def _check(act: Act[Any], given: Given) -> str:
    await check_folder(act, given.parent)
    there = await look(act, given.template)
    if there.get("mimeType") == FOLDER:
        raise Fail(f"{there.get('name', '')!r} is a folder, and Drive copies no folders")
    return str(there.get("name", ""))


async def _find(act: Act[Any], given: Given) -> File | NotDone:
    mark = outside_key(act.key)
    drive = (await google(act.connection)).drive
    listed = await drive.files_list(f"'{id_of(given.parent)}' in parents", fields=f"files({FIELDS})")
    ours = [found for found in listed if (found.get("appProperties") or {}).get("quire") == mark]
    if not ours:
        return NotDone(f"there is no copy {given.name!r} in its folder")
    first, *twins = sorted(ours, key=lambda found: (str(found.get("createdTime", "")), str(found["id"])))
    for twin in twins:
        await trash(act, str(twin["id"]))
    return as_file(first)


async def _undo(act: Act[Any], made: File) -> None:
    await trash(act, made.id)


@google_effect(check=_check, find=_find, undo=_undo, fenced="settled")
async def copy(act: Act[Any], template: FileLike, name: str, parent: FileLike = ROOT) -> File:
    """Copy a file, such as a document that serves as a template, into a folder."""
    body = {"name": name, "parents": [id_of(parent)], "appProperties": {"quire": outside_key(act.key)}}
    with sure():
        return as_file(await (await google(act.connection)).drive.files_copy(id_of(template), body, fields=FIELDS))
