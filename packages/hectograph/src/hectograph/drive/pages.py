"""The page ``/drive``: folders and files, to rename, share, throw away and bring back. Each act goes by the API."""

from __future__ import annotations

import json
import urllib.parse
from typing import TYPE_CHECKING, Any

from hectograph.core.html import back, button, escape, form, given, link, page, table
from hectograph.core.http import Request, Response
from hectograph.drive.file import APPS, DOCUMENT, FOLDER, FORM, PRESENTATION, SPREADSHEET

if TYPE_CHECKING:
    from hectograph.drive.api import DriveApi

Json = dict[str, Any]

_PAGES = {FOLDER: "drive", SPREADSHEET: "book", DOCUMENT: "doc", PRESENTATION: "slides", FORM: "form"}
_FIELDS = "id,name,mimeType,trashed,modifiedTime,parents,permissions(emailAddress,role,type)"


def show(api: DriveApi, request: Request) -> Response:
    key = request.path.strip("/").partition("/")[2]
    if request.method == "POST":
        return _act(api, given(request))
    if key == "trash":
        return page("Trash", _table(api, "trashed = true", "/drive/trash"), "/drive")
    folder = _read(api, f"/drive/v3/files/{key or 'root'}?fields=id,name,mimeType,parents")
    if folder is None or folder["mimeType"] != FOLDER:
        return page("Drive", "<p>There is no such folder.</p>", "/drive", 404)
    here = f"/drive/{key}" if key else "/drive"
    new = form(
        "/drive",
        "<div class=row><input name=name required aria-label='name of the folder'>"
        f"{button('New folder', look='plain')}</div>",
        {"do": "folder", "parent": folder["id"], "back": here},
    )
    parents = "".join(link(f"/drive/{one}", "the folder above") for one in folder.get("parents", ()))
    body = f"<p>{parents} {link('/drive/trash', 'trash')}</p>" + _table(
        api, f"'{folder['id']}' in parents and trashed = false", here
    )
    return page(folder["name"], body + new, "/drive")


def _read(api: DriveApi, path: str) -> Json | None:
    found = api.world.call("GET", path)
    return json.loads(found.body) if found.status == 200 else None


def _table(api: DriveApi, query: str, here: str) -> str:
    fields = urllib.parse.urlencode(
        {"q": query, "fields": f"files({_FIELDS})", "orderBy": "folder,name", "pageSize": 1000}
    )
    found = _read(api, "/drive/v3/files?" + fields) or {"files": []}
    return table(("name", "shared with", "changed", ""), [_row(one, here) for one in found["files"]], "Nothing here.")


def _row(file: Json, here: str) -> list[str]:
    kind = file["mimeType"]
    where = f"/{_PAGES[kind]}/{file['id']}" if kind in _PAGES else f"/drive/v3/files/{file['id']}?alt=media"
    name = link(where, file["name"]) + f"<div class=quiet>{escape(kind.removeprefix(APPS))}</div>"
    if kind in {DOCUMENT, PRESENTATION, SPREADSHEET}:
        name += link(f"/drive/v3/files/{file['id']}/export?mimeType=application%2Fpdf", "PDF")
    shared = "<br>".join(
        escape(f"{one.get('emailAddress') or one['type']} ({one['role']})")
        for one in file.get("permissions", ())
        if one["role"] != "owner"
    )
    hidden = {"id": file["id"], "back": here}
    if file["trashed"]:
        acts = form("/drive", button("Restore", look="plain"), {**hidden, "do": "restore"})
    else:
        roles = "".join(f"<option>{role}</option>" for role in ("reader", "commenter", "writer"))
        share = (
            "<input name=email type=email required size=16 aria-label=address>"
            f"<select name=role aria-label=role>{roles}</select>"
        )
        acts = (
            "<details><summary>more</summary>"
            + form("/drive", f"<div class=row>{share}{button('Share', look='plain')}</div>", {**hidden, "do": "share"})
            + form(
                "/drive",
                f'<div class=row><input name=name size=16 value="{escape(file["name"])}" aria-label="name">'
                f"{button('Rename', look='plain')}</div>",
                {**hidden, "do": "rename"},
            )
            + form("/drive", button("To the trash", look="plain"), {**hidden, "do": "trash"})
            + "</details>"
        )
    return [name, shared, escape(file["modifiedTime"][:16].replace("T", " ")), acts]


def _act(api: DriveApi, sent: dict[str, str]) -> Response:
    path = f"/drive/v3/files/{sent.get('id', '')}"
    match sent["do"]:
        case "trash" | "restore":
            done = api.world.call("PATCH", path, {"trashed": sent["do"] == "trash"})
        case "rename":
            done = api.world.call("PATCH", path, {"name": sent["name"]})
        case "share":
            body = {"type": "user", "role": sent["role"], "emailAddress": sent["email"]}
            done = api.world.call("POST", path + "/permissions", body)
        case "folder":
            done = api.world.call(
                "POST", "/drive/v3/files", {"name": sent["name"], "mimeType": FOLDER, "parents": [sent["parent"]]}
            )
        case other:
            raise ValueError(f"nobody knows how to {other!r} a file")
    if done.status >= 300:
        return page("This did not work", f"<p>{escape(json.loads(done.body)['error']['message'])}</p>", "/drive", 400)
    return back(sent["back"])
