"""The Drive v3 API over a world, and the calls of v2 that carry ETags."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from quire.testing.emulator import fieldmask, schema
from quire.testing.emulator.clock import stamp
from quire.testing.emulator.drive_file import FOLDER, SPREADSHEET, File, file_json, file_json_v2, user
from quire.testing.emulator.error import ApiError
from quire.testing.emulator.export import FORMATS, exported
from quire.testing.emulator.http import Request, Response
from quire.testing.emulator.world import World

_F = r"/drive/v3/files/(?P<file>[^/]+)"
_V2 = r"/drive/v2/files/(?P<file>[^/]+)"

#: name, verb, path, whether it writes
ROUTES: tuple[tuple[str, str, str, bool], ...] = (
    ("files.generateIds", "GET", r"/drive/v3/files/generateIds", False),
    ("files.emptyTrash", "DELETE", r"/drive/v3/files/trash", True),
    ("files.create", "POST", r"/drive/v3/files", True),
    ("files.list", "GET", r"/drive/v3/files", False),
    ("files.get", "GET", _F, False),
    ("files.update", "PATCH", _F, True),
    ("files.delete", "DELETE", _F, True),
    ("files.copy", "POST", _F + "/copy", True),
    ("files.export", "GET", _F + "/export", False),
    ("files.watch", "POST", _F + "/watch", False),
    ("permissions.create", "POST", _F + "/permissions", True),
    ("permissions.list", "GET", _F + "/permissions", False),
    ("permissions.get", "GET", _F + "/permissions/(?P<item>[^/]+)", False),
    ("permissions.update", "PATCH", _F + "/permissions/(?P<item>[^/]+)", True),
    ("permissions.delete", "DELETE", _F + "/permissions/(?P<item>[^/]+)", True),
    ("comments.create", "POST", _F + "/comments", True),
    ("comments.list", "GET", _F + "/comments", False),
    ("comments.get", "GET", _F + "/comments/(?P<item>[^/]+)", False),
    ("comments.update", "PATCH", _F + "/comments/(?P<item>[^/]+)", True),
    ("comments.delete", "DELETE", _F + "/comments/(?P<item>[^/]+)", True),
    ("replies.create", "POST", _F + "/comments/(?P<item>[^/]+)/replies", True),
    ("replies.list", "GET", _F + "/comments/(?P<item>[^/]+)/replies", False),
    ("replies.get", "GET", _F + "/comments/(?P<item>[^/]+)/replies/(?P<reply>[^/]+)", False),
    ("replies.update", "PATCH", _F + "/comments/(?P<item>[^/]+)/replies/(?P<reply>[^/]+)", True),
    ("replies.delete", "DELETE", _F + "/comments/(?P<item>[^/]+)/replies/(?P<reply>[^/]+)", True),
    ("revisions.list", "GET", _F + "/revisions", False),
    ("revisions.get", "GET", _F + "/revisions/(?P<item>[^/]+)", False),
    ("revisions.update", "PATCH", _F + "/revisions/(?P<item>[^/]+)", True),
    ("revisions.delete", "DELETE", _F + "/revisions/(?P<item>[^/]+)", True),
    ("changes.getStartPageToken", "GET", r"/drive/v3/changes/startPageToken", False),
    ("changes.list", "GET", r"/drive/v3/changes", False),
    ("changes.watch", "POST", r"/drive/v3/changes/watch", False),
    ("channels.stop", "POST", r"/drive/v3/channels/stop", False),
    ("drives.list", "GET", r"/drive/v3/drives", False),
    ("drives.create", "POST", r"/drive/v3/drives", True),
    ("drives.get", "GET", r"/drive/v3/drives/(?P<drive>[^/]+)", False),
    ("drives.update", "PATCH", r"/drive/v3/drives/(?P<drive>[^/]+)", True),
    ("drives.delete", "DELETE", r"/drive/v3/drives/(?P<drive>[^/]+)", True),
    ("about.get", "GET", r"/drive/v3/about", False),
    ("v2.files.list", "GET", r"/drive/v2/files", False),
    ("v2.files.insert", "POST", r"/drive/v2/files", True),
    ("v2.files.get", "GET", _V2, False),
    ("v2.files.update", "PUT", _V2, True),
    ("v2.files.patch", "PATCH", _V2, True),
    ("v2.files.delete", "DELETE", _V2, True),
)

_DEFAULT_FILE = fieldmask.parse("kind,id,name,mimeType,driveId,teamDriveId,resourceKey")
_DEFAULT_PERMISSION = fieldmask.parse("kind,id,type,role,allowFileDiscovery")
_DEFAULT_REVISION = fieldmask.parse("kind,id,mimeType,modifiedTime")


def find(request: Request) -> tuple[str, dict[str, str], bool] | None:
    for name, verb, pattern, write in ROUTES:
        if verb == request.method:
            match = re.fullmatch(pattern, request.path)
            if match:
                return name, match.groupdict(), write
    return None


class DriveApi:
    def __init__(self, world: World, base: Callable[[], str]) -> None:
        self.world = world
        self.base = base

    def handle(self, name: str, parts: dict[str, str], request: Request) -> Response:
        with self.world.lock:
            if name.startswith("v2."):
                return self._v2(name, parts, request)
            group = name.partition(".")[0]
            if group == "files":
                return self._files(name, parts, request)
            if group == "permissions":
                return self._permissions(name, self.world.drive.get(parts["file"]), parts, request)
            if group in {"comments", "replies"}:
                return self._comments(name, self.world.drive.get(parts["file"]), parts, request)
            if group == "revisions":
                return self._revisions(name, self.world.drive.get(parts["file"]), parts, request)
            if group == "drives":
                return self._drives(name, parts, request)
            return self._rest(name, request)

    def answer(self, value: Any, message: str, request: Request, default: fieldmask.Mask | None = None) -> Response:
        """An answer cut to the wanted fields, or to those that Drive gives unasked."""
        text = request.one("fields")
        mask = default or {}
        if text:
            try:
                mask = fieldmask.parse(text)
            except fieldmask.BadMask as error:
                raise _bad_selection(text) from error
            for path in fieldmask.paths(mask):
                for size in range(1, len(path) + 1):
                    if not schema.drive().has_path(message, path[:size]):
                        raise _bad_selection("/".join(path[:size]))
        return Response.of(fieldmask.chosen(value, mask))

    def file(self, file: File, request: Request) -> Response:
        return self.answer(file_json(file), "File", request, _DEFAULT_FILE)

    def _files(self, name: str, parts: dict[str, str], request: Request) -> Response:
        drive = self.world.drive
        match name:
            case "files.create":
                made = drive.create(_object(request))
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
            case _:
                file = drive.get(parts["file"])
        match name:
            case "files.get":
                if request.one("alt") == "media":
                    return download(file, request)
                return self.file(file, request)
            case "files.update":
                drive.update(file, _object(request), add=request.one("addParents"), remove=request.one("removeParents"))
                self.world.dirty()
                return self.file(file, request)
            case "files.copy":
                made = drive.copy(file, _object(request))
                self.world.dirty()
                return self.file(made, request)
            case "files.delete":
                drive.delete(file)
                self.world.dirty()
                return Response(204)
            case "files.export":
                return self._export(file, request)
            case _:
                return self._watch(request, f"files/{file.file_id}")

    def _generate(self, request: Request) -> Response:
        count = int(request.one("count", "10"))
        if not 1 <= count <= 1000:
            raise ApiError.drive(
                400, "invalid", f"Invalid value '{count}'. Values must be within the range: [1, 1000]", location="count"
            )
        made = {
            "kind": "drive#generatedIds",
            "space": request.one("space", "drive"),
            "ids": self.world.drive.generate(count),
        }
        return self.answer(made, "GeneratedIds", request)

    def _list(self, request: Request) -> Response:
        size = int(request.one("pageSize", "100") or 100)
        if not 1 <= size <= 1000:
            raise ApiError.drive(
                400,
                "invalid",
                f"Invalid value '{size}'. Values must be within the range: [1, 1000]",
                location="pageSize",
            )
        found = self.world.drive.search(request.one("q"), request.one("orderBy"))
        start = _token(request)
        out: dict[str, Any] = {"kind": "drive#fileList", "incompleteSearch": False}
        if start + size < len(found):
            out["nextPageToken"] = f"~!!~{start + size}"
        out["files"] = [file_json(f) for f in found[start : start + size]]
        default: fieldmask.Mask = {"kind": {}, "incompleteSearch": {}, "nextPageToken": {}, "files": _DEFAULT_FILE}
        return self.answer(out, "FileList", request, default)

    def _export(self, file: File, request: Request) -> Response:
        if not file.native or file.mime_type == FOLDER:
            raise ApiError.drive(
                403,
                "fileNotExportable",
                "Export only supports Docs Editors files.",
                location="file",
                location_type="parameter",
            )
        kind = request.one("mimeType")
        if not kind:
            raise ApiError.drive(400, "required", "Required parameter: mimeType", location="mimeType")
        if file.mime_type != SPREADSHEET or kind not in FORMATS:
            raise ApiError.drive(400, "badRequest", "The requested conversion is not supported.", location="convertTo")
        book = self.world.library.shelf(file.file_id).current
        return Response(200, exported(book, kind, self.world.now), {"Content-Type": kind})

    def _permissions(self, name: str, file: File, parts: dict[str, str], request: Request) -> Response:
        drive = self.world.drive
        match name:
            case "permissions.create":
                return self.answer(drive.permit(file, _object(request)), "Permission", request, _DEFAULT_PERMISSION)
            case "permissions.list":
                default: fieldmask.Mask = {"kind": {}, "nextPageToken": {}, "permissions": _DEFAULT_PERMISSION}
                found = {"kind": "drive#permissionList", "permissions": list(file.permissions.values())}
                return self.answer(found, "PermissionList", request, default)
        held = drive.permission(file, parts["item"])
        match name:
            case "permissions.update":
                given = _object(request)
                new = {
                    **held,
                    **{k: given[k] for k in ("role", "expirationTime", "pendingOwner") if given.get(k) is not None},
                }
                file.permissions[parts["item"]] = new
                drive.touched(file, content=False)
                return self.answer(new, "Permission", request, _DEFAULT_PERMISSION)
            case "permissions.delete":
                if held.get("role") == "owner":
                    raise ApiError.drive(
                        403,
                        "insufficientFilePermissions",
                        "The user does not have sufficient permissions for this file.",
                    )
                del file.permissions[parts["item"]]
                drive.touched(file, content=False)
                return Response(204)
        return self.answer(held, "Permission", request, _DEFAULT_PERMISSION)

    def _comments(self, name: str, file: File, parts: dict[str, str], request: Request) -> Response:
        if not name.endswith(".delete"):
            _needs_fields(request)
        drive = self.world.drive
        if name == "comments.create":
            return self.answer(drive.comment(file, _object(request)), "Comment", request)
        if name == "comments.list":
            size, start = int(request.one("pageSize", "20")), _token(request)
            items = [c for c in reversed(file.comments.values()) if request.flag("includeDeleted") or not c["deleted"]]
            out: dict[str, Any] = {"kind": "drive#commentList", "comments": items[start : start + size]}
            if start + size < len(items):
                out["nextPageToken"] = f"~!!~{start + size}"
            return self.answer(out, "CommentList", request)
        held = file.comments.get(parts["item"])
        if held is None:
            raise ApiError.drive(404, "notFound", f"Comment not found: {parts['item']}.", location="commentId")
        match name:
            case "comments.update":
                content = str(_object(request).get("content", held["content"]))
                new = {**held, "content": content, "htmlContent": content, "modifiedTime": stamp(self.world.now())}
                file.comments[parts["item"]] = new
                return self.answer(new, "Comment", request)
            case "comments.delete":
                del file.comments[parts["item"]]
                return Response(204)
            case "replies.create":
                given = _object(request)
                now = stamp(self.world.now())
                reply = {
                    "kind": "drive#reply",
                    "id": f"{parts['item']}r{len(held['replies'])}",
                    "createdTime": now,
                    "modifiedTime": now,
                    "author": held["author"],
                    "deleted": False,
                    "content": given.get("content", ""),
                    "htmlContent": given.get("content", ""),
                }
                new = {**held, "replies": [*held["replies"], reply], "modifiedTime": now}
                if given.get("action"):
                    reply["action"] = given["action"]
                    new["resolved"] = given["action"] == "resolve"
                file.comments[parts["item"]] = new
                return self.answer(reply, "Reply", request)
            case "replies.get" | "replies.update" | "replies.delete":
                return self._reply(name, file, held, parts, request)
            case "replies.list":
                return self.answer({"kind": "drive#replyList", "replies": held["replies"]}, "ReplyList", request)
        return self.answer(held, "Comment", request)

    def _reply(
        self, name: str, file: File, comment: dict[str, Any], parts: dict[str, str], request: Request
    ) -> Response:
        found = next((reply for reply in comment["replies"] if reply["id"] == parts["reply"]), None)
        if found is None:
            raise ApiError.drive(404, "notFound", f"Reply not found: {parts['reply']}.", location="replyId")
        rest = [reply for reply in comment["replies"] if reply is not found]
        if name == "replies.delete":
            file.comments[parts["item"]] = {**comment, "replies": rest}
            return Response(204)
        if name == "replies.update":
            content = str(_object(request).get("content", found["content"]))
            new = {**found, "content": content, "htmlContent": content, "modifiedTime": stamp(self.world.now())}
            replies = [new if reply is found else reply for reply in comment["replies"]]
            file.comments[parts["item"]] = {**comment, "replies": replies}
            found = new
        return self.answer(found, "Reply", request)

    def _revisions(self, name: str, file: File, parts: dict[str, str], request: Request) -> Response:
        if file.mime_type == FOLDER:
            raise ApiError.drive(403, "revisionsNotSupported", "The file does not support revisions.")
        listed: dict[str, dict[str, Any]] = {}
        for held in file.revisions:
            listed[held.revision_id] = {
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
            number = (
                str(self.world.library.shelf(file.file_id).current.version + 1)
                if file.mime_type == SPREADSHEET
                else "1"
            )
            listed[number] = {
                "kind": "drive#revision",
                "id": number,
                "mimeType": file.mime_type,
                "modifiedTime": stamp(file.modified),
                "published": False,
                "lastModifyingUser": user(file.owner),
            }
        if name == "revisions.list":
            default: fieldmask.Mask = {"kind": {}, "nextPageToken": {}, "revisions": _DEFAULT_REVISION}
            out = {"kind": "drive#revisionList", "revisions": list(listed.values())}
            return self.answer(out, "RevisionList", request, default)
        found = listed.get(parts["item"])
        if found is None:
            raise ApiError.drive(404, "notFound", f"Revision not found: {parts['item']}.", location="revisionId")
        if name == "revisions.update":
            keep = bool(_object(request).get("keepForever", False))
            for revision in file.revisions:
                if revision.revision_id == parts["item"]:
                    revision.keep_forever = keep
            found = {**found, "keepForever": keep}
        if name == "revisions.delete":
            file.revisions = [r for r in file.revisions if r.revision_id != parts["item"]]
            return Response(204)
        if request.one("alt") == "media":
            content = next(r.content for r in file.revisions if r.revision_id == parts["item"])
            return Response(200, content, {"Content-Type": file.mime_type})
        return self.answer(found, "Revision", request, _DEFAULT_REVISION)

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
                _needs_fields(request)
                used = sum(len(f.content or b"") for f in drive.files.values())
                about = {
                    "kind": "drive#about",
                    "user": user(self.world.account),
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
                    "importFormats": {"text/csv": [SPREADSHEET]},
                    "exportFormats": {SPREADSHEET: sorted(FORMATS)},
                }
                return self.answer(about, "About", request)

    def _drives(self, name: str, parts: dict[str, str], request: Request) -> Response:
        """Shared drives: a list of names, so that a client that looks for one finds it."""
        held = self.world.drive.drives
        if name == "drives.list":
            return self.answer({"kind": "drive#driveList", "drives": list(held.values())}, "DriveList", request)
        if name == "drives.create":
            key = "0A" + self.world.drive.new_id()[:17]
            held[key] = {"kind": "drive#drive", "id": key, "name": _object(request).get("name", "")}
            self.world.drive.add_drive(key, held[key]["name"])
            return self.answer(held[key], "Drive", request)
        found = held.get(parts["drive"])
        if found is None:
            text = f"Shared drive not found: {parts['drive']}"
            raise ApiError.drive(404, "notFound", text, location="driveId")
        if name == "drives.delete":
            del held[parts["drive"]]
            return Response(204)
        if name == "drives.update":
            held[parts["drive"]] = found = {**found, **_object(request)}
        return self.answer(found, "Drive", request)

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
        size = int(request.one("pageSize", "100") or 100)
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
                whole = file_json(file)
                change["file"] = whole if request.one("fields") else fieldmask.chosen(whole, _DEFAULT_FILE)
            out["changes"].append(change)
        return self.answer(out, "ChangeList", request)

    def _watch(self, request: Request, resource: str) -> Response:
        given = _object(request)
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

    def _v2(self, name: str, parts: dict[str, str], request: Request) -> Response:
        drive = self.world.drive
        if name == "v2.files.list":
            found = drive.search(request.one("q"))
            items = [file_json_v2(f, self.base()) for f in found[: int(request.one("maxResults", "100"))]]
            return self._v2_answer({"kind": "drive#fileList", "etag": '"list"', "items": items}, request)
        if name == "v2.files.insert":
            made = drive.create(v3_body(_object(request)))
            return self.v2_file(made, request)
        file = drive.get(parts["file"])
        if name != "v2.files.get":
            check_match(file, request)
        match name:
            case "v2.files.get":
                if request.one("alt") == "media":
                    return download(file, request)
            case "v2.files.delete":
                drive.delete(file)
                self.world.dirty()
                return Response(204)
            case _:
                drive.update(
                    file, v3_body(_object(request)), add=request.one("addParents"), remove=request.one("removeParents")
                )
                self.world.dirty()
        return self.v2_file(file, request)

    def v2_file(self, file: File, request: Request) -> Response:
        return self._v2_answer(file_json_v2(file, self.base()), request, file.etag)

    def _v2_answer(self, value: Any, request: Request, etag: str = "") -> Response:
        text = request.one("fields")
        if text:
            value = fieldmask.chosen(value, fieldmask.parse(text))
        return Response.of(value, headers={"ETag": etag} if etag else {})


def check_match(file: File, request: Request) -> None:
    """Refuse a conditional write whose ETag is not the file's."""
    wanted = request.headers.get("if-match")
    if wanted is not None and wanted != "*" and file.etag not in [part.strip() for part in wanted.split(",")]:
        raise ApiError.drive(412, "conditionNotMet", "Precondition Failed", location="If-Match", location_type="header")


def v3_body(given: dict[str, Any]) -> dict[str, Any]:
    """A v2 body in the words of v3."""
    out = {k: v for k, v in given.items() if k in {"id", "mimeType", "description", "originalFilename"}}
    if "title" in given:
        out["name"] = given["title"]
    if given.get("parents"):
        out["parents"] = [parent["id"] for parent in given["parents"]]
    if "trashed" in given.get("labels", {}):
        out["trashed"] = given["labels"]["trashed"]
    for held in given.get("properties", []):
        name = "appProperties" if held.get("visibility") == "PRIVATE" else "properties"
        out.setdefault(name, {})[held["key"]] = held.get("value")
    return out


def download(file: File, request: Request) -> Response:
    if file.native or file.content is None:
        raise ApiError.drive(
            403,
            "fileNotDownloadable",
            "Only files with binary content can be directly downloaded. Use Export with Docs Editors files.",
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


def _object(request: Request) -> dict[str, Any]:
    given = request.json()
    if not isinstance(given, dict):
        raise ApiError.drive(400, "parseError", "Parse Error")
    return given


def _token(request: Request) -> int:
    text = request.one("pageToken")
    if not text:
        return 0
    number = text.removeprefix("~!!~")
    if not number.isdigit():
        raise ApiError.drive(400, "invalid", "Invalid Value", location="pageToken")
    return int(number)


def _needs_fields(request: Request) -> None:
    if not request.one("fields"):
        raise ApiError.drive(400, "required", "The 'fields' parameter is required for this method.", location="fields")


def _bad_selection(path: str) -> ApiError:
    return ApiError.drive(400, "invalidParameter", f"Invalid field selection {path}", location="fields")
