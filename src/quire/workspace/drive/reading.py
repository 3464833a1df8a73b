"""What steps read of files: plain functions for ``run.call``."""

from __future__ import annotations

from quire.workflows.retry import Fail
from quire.workspace.connection import google, refusing
from quire.workspace.drive.looking import APPS
from quire.workspace.values import FileLike, id_of

_PLAIN = {
    f"{APPS}document": "text/plain",
    f"{APPS}presentation": "text/plain",
    f"{APPS}spreadsheet": "text/csv",
}


async def text(file: FileLike, *, using: str = "") -> str:
    """Return the text of a file; of a Google document, deck or sheet what Drive exports as plain text or CSV."""
    drive = (await google(using)).drive
    with refusing():
        about = await drive.files_get(id_of(file), fields="id,name,mimeType")
        mime = str(about.get("mimeType", ""))
        if mime.startswith(APPS):
            if mime not in _PLAIN:
                raise Fail(f"{about.get('name', '')!r} is a {mime.removeprefix(APPS)}, and has no text")
            content = await drive.files_export(id_of(file), _PLAIN[mime])
        else:
            content = await drive.files_get_media(id_of(file))
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Fail(f"{about.get('name', '')!r} holds no text; read it with drive.export, or attach it") from error


async def export(file: FileLike, mime: str = "application/pdf", *, using: str = "") -> bytes:
    """Return a Google document in another format, or the bytes of any other file."""
    drive = (await google(using)).drive
    with refusing():
        about = await drive.files_get(id_of(file), fields="id,mimeType")
        if str(about.get("mimeType", "")).startswith(APPS):
            return await drive.files_export(id_of(file), mime)
        return await drive.files_get_media(id_of(file))
