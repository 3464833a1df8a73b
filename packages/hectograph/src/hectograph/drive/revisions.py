"""The revisions of a file: each upload of a plain file, the newest state of a Docs Editors file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hectograph.core import fieldmask
from hectograph.core.clock import stamp
from hectograph.core.error import ApiError
from hectograph.core.http import Request, Response
from hectograph.drive.file import FOLDER, File, user

if TYPE_CHECKING:
    from hectograph.drive.api import DriveApi

DEFAULT = fieldmask.parse("kind,id,mimeType,modifiedTime")


def listed(api: DriveApi, file: File) -> dict[str, dict[str, Any]]:
    out: dict[str, dict[str, Any]] = {}
    for held in file.revisions:
        out[held.revision_id] = {
            "kind": "drive#revision",
            "id": held.revision_id,
            "mimeType": held.mime_type,
            "modifiedTime": stamp(held.at),
            "keepForever": held.keep_forever,
            "published": False,
            "lastModifyingUser": user(file.owner),
            "originalFilename": file.name,
            "size": str(len(held.content)),
        }
    if file.native:
        editor = api.world.drive.editors.get(file.mime_type)
        number = editor.revision(file) if editor is not None else "1"
        for key, at in {"1": file.created, number: file.modified}.items():
            out[key] = {
                "kind": "drive#revision",
                "id": key,
                "mimeType": file.mime_type,
                "modifiedTime": stamp(at),
                "published": False,
                "lastModifyingUser": user(file.owner),
            }
    return out


def handle(api: DriveApi, name: str, file: File, key: str, request: Request) -> Response:
    if file.mime_type == FOLDER:
        raise ApiError.drive(403, "revisionsNotSupported", "The file does not support revisions.")
    held = listed(api, file)
    if name == "revisions.list":
        size, start = api.integer(request, "pageSize", 200, 1, 1000), api.page(request)
        items = list(held.values())
        out: dict[str, Any] = {"kind": "drive#revisionList", "revisions": items[start : start + size]}
        if start + size < len(items):
            out["nextPageToken"] = api.next_page(start + size)
        return api.answer(out, "RevisionList", request, {"kind": {}, "nextPageToken": {}, "revisions": DEFAULT})
    found = held.get(list(held)[-1] if key == "head" and held else key)
    if found is None:
        raise ApiError.drive(404, "notFound", f"Revision not found: {key}.", location="revisionId")
    if name == "revisions.update":
        keep = bool(api.object(request).get("keepForever", False))
        for revision in file.revisions:
            if revision.revision_id == found["id"]:
                revision.keep_forever = keep
        found = {**found, "keepForever": keep}
    if name == "revisions.delete":
        if file.native:
            raise ApiError.drive(403, "revisionDeletionNotSupported", "The file does not support revision deletion.")
        if len(file.revisions) < 2:
            raise ApiError.drive(400, "cannotDeleteOnlyRevision", "The only revision of a file cannot be deleted.")
        file.revisions = [r for r in file.revisions if r.revision_id != found["id"]]
        return Response(204)
    if request.one("alt") == "media":
        content = next((r.content for r in file.revisions if r.revision_id == found["id"]), b"")
        return Response(200, content, {"Content-Type": file.mime_type})
    return api.answer(found, "Revision", request, DEFAULT)
