"""The Drive v3 API over a world."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from hectograph.core import fieldmask, schema
from hectograph.core.clock import stamp
from hectograph.core.discovery import api
from hectograph.core.error import DRIVE, ApiError, not_built
from hectograph.core.http import Request, Response
from hectograph.core.service import MethodCall, Service
from hectograph.drive import comments as drive_comments
from hectograph.drive import drives as drive_drives
from hectograph.drive import pages as drive_pages
from hectograph.drive import permissions as drive_permissions
from hectograph.drive import revisions as drive_revisions
from hectograph.drive import upload as drive_upload
from hectograph.drive.drive import APP_DATA
from hectograph.drive.file import FOLDER, File, file_json, user

#: Google's API, as its discovery document describes it.
API = api("drive.v3")

#: What an export may have at most, in bytes.
LARGEST_EXPORT = 10 * 2**20

_DEFAULT_FILE = fieldmask.parse("kind,id,name,mimeType,driveId,teamDriveId,resourceKey")


#: Methods that need what is not here: labels, client-side encryption, downloads that take minutes.
_NOT_BUILT = frozenset({"files.download", "files.generateCseToken", "files.listLabels", "files.modifyLabels"})
_BUILT = frozenset(
    {"about", "changes", "channels", "comments", "drives", "files", "permissions", "replies", "revisions", "teamdrives"}
)


class DriveApi(Service):
    version = "drive.v3"
    envelope = DRIVE
    strict = False
    pages = ("/drive",)
    switches: ClassVar = {
        # After how many seconds a search finds a new name, a text, or a property; folders and types are found at once.
        "list_lag": (0.0,),
        # What becomes of two changes of one file's permissions within a second.
        "permission_race": ("both", "last"),
    }

    def plays(self, name: str) -> bool:
        return name.rpartition(".")[0] in _BUILT and name not in _NOT_BUILT

    def handle(self, call: MethodCall) -> Response:
        method, parts, request = call.method, call.parts, call.request
        group = method.group
        if not self.plays(method.name):
            raise not_built(self.kind(method))
        with self.world.lock:
            self.world.drive.client = call.caller.client
            if call.media is not None:
                return drive_upload.stored(self, call, call.media)
            if group == "files":
                return self._files(method.name, parts, request)
            if group in {"drives", "teamdrives"}:
                return drive_drives.handle(self, method.name, _inner(parts), request)
            if group in {"permissions", "comments", "replies", "revisions"}:
                file, key = self.world.drive.get(parts["fileId"]), _inner(parts)
                if group == "permissions":
                    return drive_permissions.handle(self, method.name, file, key, request, call.caller.email)
                if group == "revisions":
                    return drive_revisions.handle(self, method.name, file, key, request)
                return drive_comments.handle(self, method.name, file, parts, request)
            return self._rest(method.name, request)

    def show(self, request: Request) -> Response:
        return drive_pages.show(self, request)

    def check_upload(self, call: MethodCall) -> None:
        drive_upload.check(self, call)

    def answer(self, value: Any, message: str, request: Request, default: fieldmask.Mask | None = None) -> Response:
        """An answer cut to the wanted fields, or to those that Drive gives unasked."""
        text = request.one("fields")
        mask = default or {}
        if "fields" in request.query and not text.strip():
            return Response.of({})
        if text:
            try:
                mask = fieldmask.parse(text)
            except fieldmask.BadMask as error:
                raise _bad_selection(text) from error
            for path in fieldmask.paths(mask):
                for size in range(1, len(path) + 1):
                    if not API.schema.has_path(message, path[:size]):
                        raise _bad_selection("/".join(path[:size]))
        return Response.of(fieldmask.chosen(value, mask))

    def object(self, request: Request) -> dict[str, Any]:
        given = request.json()
        if not isinstance(given, dict):
            raise ApiError.drive(400, "parseError", "Parse Error")
        return given

    def integer(self, request: Request, name: str, default: int, low: int, high: int) -> int:
        if name not in request.query:
            return default
        text = request.one(name)
        if not re.fullmatch(r"-?\d+", text):
            raise ApiError.typed(schema.snake(name), "TYPE_INT32", text)
        if not low <= int(text) <= high:
            text = f"Invalid value '{text}'. Values must be within the range: [{low}, {high}]"
            raise ApiError.drive(400, "invalidParameter", text, location=name)
        return int(text)

    def page(self, request: Request) -> int:
        """Where the wanted page of a list begins."""
        text = request.one("pageToken")
        number = text.removeprefix("~!!~") or "0"
        if not number.isdigit():
            raise ApiError.drive(400, "invalid", "Invalid Value", location="pageToken")
        return int(number)

    def next_page(self, start: int) -> str:
        return f"~!!~{start}"

    def needs_fields(self, request: Request) -> None:
        if not request.one("fields"):
            text = "The 'fields' parameter is required for this method."
            raise ApiError.drive(400, "required", text, location="fields")

    def json(self, file: File) -> dict[str, Any]:
        """The resource of a file, with the shared drive or the space that it lies in."""
        out, home = file_json(self.world.drive.seen(file)), self.world.drive.home(file)
        if home == APP_DATA:
            out["spaces"] = [APP_DATA]
        elif home:
            out |= {"driveId": home, "teamDriveId": home}
        return out

    def _home(self, request: Request) -> str | None:
        """Where a list looks: in one shared drive, in the hidden space, or everywhere else."""
        if request.one("spaces") == APP_DATA:
            return APP_DATA
        drive = request.one("driveId") or request.one("teamDriveId")
        if request.one("corpora") in {"drive", "teamDrive"}:
            if not drive:
                text = "The driveId parameter must be specified if and only if corpora is set to drive."
                raise ApiError.drive(400, "invalid", text, location="driveId")
            if drive not in self.world.drive.drives:
                raise ApiError.drive(404, "notFound", f"Shared drive not found: {drive}", location="driveId")
        return drive or None

    def file(self, file: File, request: Request) -> Response:
        return self.answer(self.json(file), "File", request, _DEFAULT_FILE)

    def _files(self, name: str, parts: Mapping[str, str], request: Request) -> Response:
        drive = self.world.drive
        match name:
            case "files.create":
                made = drive.create(self.object(request))
                self.world.dirty()
                return self.file(made, request)
            case "files.list":
                return self._list(request)
            case "files.generateIds":
                return self._generate(request)
            case "files.emptyTrash":
                for held in [f for f in drive.files.values() if f.trashed]:
                    drive.delete(held)
                return Response(204)
            case "files.export" if "mimeType" not in request.query:
                raise ApiError.drive(400, "required", "Required parameter: mimeType", location="mimeType")
            case _:
                file = drive.get(parts["fileId"])
        match name:
            case "files.get":
                if request.one("alt") == "media":
                    return self.download(file, request)
                return self.file(file, request)
            case "files.update":
                drive.update(
                    file, self.object(request), add=request.one("addParents"), remove=request.one("removeParents")
                )
                self.world.dirty()
                return self.file(file, request)
            case "files.copy":
                made = drive.copy(file, self.object(request))
                self.world.dirty()
                return self.file(made, request)
            case "files.delete":
                drive.delete(file)
                self.world.dirty()
                return Response(204)
            case "files.export":
                return self.export(file, request)
            case _:
                return self._watch(request, f"files/{file.file_id}")

    def _generate(self, request: Request) -> Response:
        count = self.integer(request, "count", 10, 1, 1000)
        made = {
            "kind": "drive#generatedIds",
            "space": request.one("space", "drive"),
            "ids": self.world.drive.generate(count),
        }
        return self.answer(made, "GeneratedIds", request)

    def _list(self, request: Request) -> Response:
        size = self.integer(request, "pageSize", 100, 1, 1000)
        found = self.world.drive.search(request.one("q"), request.one("orderBy"), home=self._home(request))
        start = self.page(request)
        out: dict[str, Any] = {"kind": "drive#fileList", "incompleteSearch": False}
        if start + size < len(found):
            out["nextPageToken"] = self.next_page(start + size)
        out["files"] = [self.json(f) for f in found[start : start + size]]
        default: fieldmask.Mask = {"kind": {}, "incompleteSearch": {}, "nextPageToken": {}, "files": _DEFAULT_FILE}
        return self.answer(out, "FileList", request, default)

    def export(self, file: File, request: Request) -> Response:
        if not file.native or file.mime_type == FOLDER:
            raise ApiError.drive(403, "fileNotExportable", "Export only supports Docs Editors files.")
        kind = request.one("mimeType")
        editor = self.world.drive.editors.get(file.mime_type)
        if editor is None or kind.lower() not in editor.exports:
            raise ApiError.drive(400, "badRequest", "The requested conversion is not supported.", location="convertTo")
        content = editor.export(file, kind.lower())
        if len(content) > LARGEST_EXPORT:
            raise ApiError.drive(403, "exportSizeLimitExceeded", "This file is too large to be exported.")
        return Response(200, content, {"Content-Type": kind})

    def download(self, file: File, request: Request) -> Response:
        if file.native or file.content is None:
            raise ApiError.drive(
                403,
                "fileNotDownloadable",
                "Only files with binary content can be downloaded. Use Export with Docs Editors files.",
                location="alt",
            )
        content, headers = file.content, {"Content-Type": file.mime_type}
        span = re.fullmatch(r"bytes=(\d*)-(\d*)", request.headers.get("range", ""))
        if span and (span.group(1) or span.group(2)) and content:
            start = int(span.group(1)) if span.group(1) else max(0, len(content) - int(span.group(2)))
            end = min(int(span.group(2)) if span.group(1) and span.group(2) else len(content) - 1, len(content) - 1)
            if start > end:
                return Response(416, b"", {"Content-Range": f"bytes */{len(content)}"})
            return Response(
                206, content[start : end + 1], {**headers, "Content-Range": f"bytes {start}-{end}/{len(content)}"}
            )
        return Response(200, content, headers)

    def _rest(self, name: str, request: Request) -> Response:
        drive = self.world.drive
        match name:
            case "changes.getStartPageToken":
                made = {"kind": "drive#startPageToken", "startPageToken": str(len(drive.changes) + 1)}
                return self.answer(made, "StartPageToken", request)
            case "changes.list":
                return self._changes(request)
            case "changes.watch":
                return self._watch(request, "changes")
            case "channels.stop":
                return Response(204)
            case _:
                self.needs_fields(request)
                used = sum(len(f.content or b"") for f in drive.files.values())
                about = {
                    "kind": "drive#about",
                    "user": user(self.world.drive.author),
                    "storageQuota": {
                        "limit": str(15 * 2**30),
                        "usage": str(used),
                        "usageInDrive": str(used),
                        "usageInDriveTrash": "0",
                    },
                    "maxUploadSize": "5242880000000",
                    "appInstalled": False,
                    "canCreateDrives": False,
                    "canCreateTeamDrives": False,
                    "importFormats": {
                        kind: [mime_type for mime_type, editor in drive.editors.items() if kind in editor.imports]
                        for kind in sorted({kind for editor in drive.editors.values() for kind in editor.imports})
                    },
                    "exportFormats": {mime_type: sorted(editor.exports) for mime_type, editor in drive.editors.items()},
                }
                return self.answer(about, "About", request)

    def _changes(self, request: Request) -> Response:
        drive = self.world.drive
        token = request.one("pageToken")
        if not token.isdigit():
            raise ApiError.drive(
                400,
                "required" if not token else "invalid",
                "Required parameter: pageToken" if not token else "Invalid Value",
                location="pageToken",
            )
        size = self.integer(request, "pageSize", 100, 1, 1000)
        latest: dict[str, tuple[int, Any]] = {}
        for number, file_id, at in drive.changes[int(token) - 1 :]:
            latest.pop(file_id, None)
            latest[file_id] = (number, at)
        items = list(latest.items())
        out: dict[str, Any] = {"kind": "drive#changeList"}
        if len(items) > size:
            items = items[:size]
            out["nextPageToken"] = str(items[-1][1][0] + 1)
        else:
            out["newStartPageToken"] = str(max(int(token), len(drive.changes) + 1))
        out["changes"] = []
        for file_id, (_, at) in items:
            file = drive.files.get(file_id)
            change: dict[str, Any] = {
                "kind": "drive#change",
                "type": "file",
                "changeType": "file",
                "time": stamp(at),
                "removed": file is None,
                "fileId": file_id,
            }
            if file is not None:
                whole = self.json(file)
                change["file"] = whole if request.one("fields") else fieldmask.chosen(whole, _DEFAULT_FILE)
            out["changes"].append(change)
        return self.answer(out, "ChangeList", request)

    def _watch(self, request: Request, resource: str) -> Response:
        given = self.object(request)
        if given.get("type") not in {"web_hook", "webhook"}:
            raise ApiError.drive(400, "channelUnknown", f"Unknown channel type: {given.get('type')}")
        made = {
            "kind": "api#channel",
            "id": given.get("id", ""),
            "resourceId": "r" + resource[-12:],
            "resourceUri": f"{self.base()}drive/v3/{resource}",
        }
        made |= {k: given[k] for k in ("token", "expiration") if k in given}
        return Response.of(made)


def _bad_selection(path: str) -> ApiError:
    return ApiError.drive(400, "invalidParameter", f"Invalid field selection {path}", location="fields")


def _inner(parts: Mapping[str, str]) -> str:
    """The id of what lies inside the file, or of what is no file."""
    return next((value for name, value in parts.items() if name != "fileId"), "")
