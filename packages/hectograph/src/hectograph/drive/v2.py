"""Drive v2 over the same files: the calls that carry ETags, and those that older clients still make."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from hectograph.core import fieldmask
from hectograph.core.error import DRIVE, ApiError, not_built
from hectograph.core.http import Request, Response
from hectograph.core.service import MethodCall, Service
from hectograph.drive import permissions as drive_permissions
from hectograph.drive import upload as drive_upload
from hectograph.drive.file import File, file_json_v2, permission_id, user

if TYPE_CHECKING:
    from hectograph.drive.api import DriveApi

_BUILT = frozenset({"about", "children", "files", "parents", "permissions", "properties"})
_NOT_BUILT = frozenset({"files.generateCseToken", "files.listLabels", "files.modifyLabels", "files.watch"})


class DriveV2(Service):
    version = "drive.v2"
    prefix = "drive.v2"
    envelope = DRIVE
    strict = False

    def plays(self, name: str) -> bool:
        return name.rpartition(".")[0] in _BUILT and name not in _NOT_BUILT

    def handle(self, call: MethodCall) -> Response:
        group, _, verb = call.name.partition(".")
        if not self.plays(call.name):
            raise not_built(self.kind(call.method))
        with self.world.lock:
            self.world.drive.client = call.caller.client
            if call.media is not None:
                return drive_upload.stored(self._files, call, call.media, v2=True)
            return _handle(self._files, group, verb, call.parts, call.request)

    def check_upload(self, call: MethodCall) -> None:
        drive_upload.check(self._files, call)

    @property
    def _files(self) -> DriveApi:
        """Version 3, over whose files this one works."""
        return cast("DriveApi", self.world.services["drive.v3"])


def _handle(api: DriveApi, group: str, verb: str, parts: Mapping[str, str], request: Request) -> Response:
    if group == "about":
        return _about(api, request)
    if verb == "getIdForEmail":
        return answer({"kind": "drive#permissionId", "id": permission_id(parts["email"])}, request)
    if group == "files":
        return _files(api, verb, parts, request)
    file = api.world.drive.get(parts["folderId" if group == "children" else "fileId"])
    key = next((value for name, value in parts.items() if name not in {"fileId", "folderId"}), "")
    match group:
        case "permissions":
            return _permissions(api, verb, file, key, request)
        case "properties":
            return _properties(api, verb, file, key, request)
        case "parents":
            return _parents(api, verb, file, key, request)
        case _:
            return _children(api, verb, file, key, request)


def answer(value: Any, request: Request, etag: str = "") -> Response:
    text = request.one("fields")
    if text:
        try:
            value = fieldmask.chosen(value, fieldmask.parse(text))
        except fieldmask.BadMask as error:
            raise ApiError.drive(
                400, "invalidParameter", f"Invalid field selection {text}", location="fields"
            ) from error
    return Response.of(value, headers={"ETag": etag} if etag else {})


def file_answer(api: DriveApi, file: File, request: Request) -> Response:
    return answer(file_json_v2(api.world.drive.seen(file), api.base()), request, file.etag)


def check_match(file: File, request: Request) -> None:
    """Refuse a conditional write whose ETag is not the file's."""
    wanted = request.headers.get("if-match")
    if wanted is not None and wanted != "*" and file.etag not in [part.strip() for part in wanted.split(",")]:
        raise ApiError.drive(412, "conditionNotMet", "Precondition Failed", location="If-Match", location_type="header")


def v3_body(given: Mapping[str, Any]) -> dict[str, Any]:
    """A v2 body in the words of v3."""
    out = {k: v for k, v in given.items() if k in {"id", "mimeType", "description", "originalFilename"}}
    if "title" in given:
        out["name"] = given["title"]
    if given.get("parents"):
        out["parents"] = [parent["id"] for parent in given["parents"]]
    labels = given.get("labels", {})
    out |= {name: labels[name] for name in ("trashed", "starred") if name in labels}
    for held in given.get("properties", []):
        name = "appProperties" if held.get("visibility") == "PRIVATE" else "properties"
        out.setdefault(name, {})[held["key"]] = held.get("value")
    return out


def _query(text: str) -> str:
    """A v2 search in the words of v3."""
    text = re.sub(r"\btitle\b(?=\s*(=|!=|contains))", "name", text)
    return re.sub(r"\b(modified|created|lastViewedByMe)Date\b", _time_word, text)


def _time_word(match: re.Match[str]) -> str:
    return {"lastViewedByMe": "viewedByMe"}.get(match.group(1), match.group(1)) + "Time"


def _files(api: DriveApi, verb: str, parts: Mapping[str, str], request: Request) -> Response:
    drive = api.world.drive
    match verb:
        case "list":
            size, start = api.integer(request, "maxResults", 100, 1, 1000), api.page(request)
            found = drive.search(_query(request.one("q")))
            out: dict[str, Any] = {
                "kind": "drive#fileList",
                "etag": '"list"',
                "selfLink": f"{api.base()}drive/v2/files",
                "incompleteSearch": False,
            }
            if start + size < len(found):
                out["nextPageToken"] = api.next_page(start + size)
            out["items"] = [file_json_v2(drive.seen(file), api.base()) for file in found[start : start + size]]
            return answer(out, request)
        case "insert":
            made = drive.create(v3_body(api.object(request)))
            api.world.dirty()
            return file_answer(api, made, request)
        case "generateIds":
            count = api.integer(request, "maxResults", 10, 1, 1000)
            ids = {"kind": "drive#generatedIds", "space": "drive", "ids": drive.generate(count)}
            return answer(ids, request)
        case "emptyTrash":
            for held in [f for f in drive.files.values() if f.trashed]:
                drive.delete(held)
            return Response(204)
    file = drive.get(parts["fileId"])
    if verb not in {"get", "export", "copy"}:
        check_match(file, request)
    match verb:
        case "get":
            if request.one("alt") == "media":
                return api.download(file, request)
            return file_answer(api, file, request)
        case "export":
            return api.export(file, request)
        case "delete":
            drive.delete(file)
            api.world.dirty()
            return Response(204)
        case "copy":
            file = drive.copy(file, v3_body(api.object(request)))
        case "trash" | "untrash":
            drive.update(file, {"trashed": verb == "trash"})
        case "touch":
            drive.touched(file)
        case _:
            drive.update(
                file, v3_body(api.object(request)), add=request.one("addParents"), remove=request.one("removeParents")
            )
    api.world.dirty()
    return file_answer(api, file, request)


def _permission(api: DriveApi, file: File, held: Mapping[str, Any]) -> dict[str, Any]:
    role = held["role"]
    out = {
        "kind": "drive#permission",
        "etag": file.etag,
        "id": held["id"],
        "selfLink": f"{api.base()}drive/v2/files/{file.file_id}/permissions/{held['id']}",
        "role": "reader" if role == "commenter" else role,
        "type": held["type"],
    }
    if role == "commenter":
        out["additionalRoles"] = ["commenter"]
    if "displayName" in held:
        out["name"] = held["displayName"]
    out |= {k: held[k] for k in ("emailAddress", "domain", "deleted", "pendingOwner") if k in held}
    if held["type"] in {"anyone", "domain"}:
        out["withLink"] = not held.get("allowFileDiscovery", False)
    return out


def _permissions(api: DriveApi, verb: str, file: File, key: str, request: Request) -> Response:
    drive = api.world.drive
    if verb == "list":
        items = [_permission(api, file, held) for held in file.permissions.values()]
        return answer({"kind": "drive#permissionList", "etag": file.etag, "items": items}, request)
    if verb == "insert":
        given = api.object(request)
        kind, value = given.get("type"), given.get("value") or given.get("emailAddress")
        body = {
            "type": kind,
            "role": "commenter" if "commenter" in given.get("additionalRoles", []) else given.get("role"),
        }
        if kind in {"user", "group"}:
            body["emailAddress"] = value
        if kind == "domain":
            body["domain"] = value
        if kind in {"anyone", "domain"}:
            body["allowFileDiscovery"] = not given.get("withLink", False)
        made = drive_permissions.granted(file, body)
        drive.touched(file, content=False)
        return answer(_permission(api, file, made), request)
    held = file.permissions.get(key)
    if held is None:
        raise ApiError.drive(404, "notFound", f"Permission not found: {key}", location="permissionId")
    if verb == "delete":
        return drive_permissions.handle(api, "permissions.delete", file, key, request)
    if verb in {"update", "patch"}:
        held = file.permissions[key] = {**held, "role": api.object(request).get("role", held["role"])}
        drive.touched(file, content=False)
    return answer(_permission(api, file, held), request)


def _parent(api: DriveApi, file: File, key: str) -> dict[str, Any]:
    return {
        "kind": "drive#parentReference",
        "id": key,
        "selfLink": f"{api.base()}drive/v2/files/{file.file_id}/parents/{key}",
        "parentLink": f"{api.base()}drive/v2/files/{key}",
        "isRoot": key == api.world.drive.root,
    }


def _parents(api: DriveApi, verb: str, file: File, key: str, request: Request) -> Response:
    if verb == "list":
        items = [_parent(api, file, parent) for parent in file.parents]
        return answer({"kind": "drive#parentList", "etag": file.etag, "items": items}, request)
    if verb == "insert":
        key = api.world.drive.get(str(api.object(request).get("id", ""))).file_id
        api.world.drive.update(file, {}, add=key)
        return answer(_parent(api, file, key), request)
    key = api.world.drive.root if key == "root" else key
    if key not in file.parents:
        raise ApiError.drive(404, "notFound", f"Parent not found: {key}", location="parentId")
    if verb == "delete":
        api.world.drive.update(file, {}, remove=key)
        return Response(204)
    return answer(_parent(api, file, key), request)


def _child(api: DriveApi, folder: File, key: str) -> dict[str, Any]:
    return {
        "kind": "drive#childReference",
        "id": key,
        "selfLink": f"{api.base()}drive/v2/files/{folder.file_id}/children/{key}",
        "childLink": f"{api.base()}drive/v2/files/{key}",
    }


def _children(api: DriveApi, verb: str, folder: File, key: str, request: Request) -> Response:
    drive = api.world.drive
    if verb == "list":
        found = [f for f in drive.search(_query(request.one("q"))) if folder.file_id in f.parents]
        items = [_child(api, folder, file.file_id) for file in found]
        return answer({"kind": "drive#childList", "etag": folder.etag, "items": items}, request)
    if verb == "insert":
        key = str(api.object(request).get("id", ""))
    child = drive.get(key)
    if verb == "insert":
        drive.update(child, {}, add=folder.file_id)
    elif folder.file_id not in child.parents:
        raise ApiError.drive(404, "notFound", f"Child not found: {key}", location="childId")
    if verb == "delete":
        drive.update(child, {}, remove=folder.file_id)
        return Response(204)
    return answer(_child(api, folder, key), request)


def _properties(api: DriveApi, verb: str, file: File, key: str, request: Request) -> Response:
    def shown(name: str) -> list[dict[str, Any]]:
        out = []
        for where, visibility in (("properties", "PUBLIC"), ("appProperties", "PRIVATE")):
            for held, value in api.world.drive.seen(file).more.get(where, {}).items():
                if not name or held == name:
                    link = f"{api.base()}drive/v2/files/{file.file_id}/properties/{held}?visibility={visibility}"
                    out.append({"kind": "drive#property", "etag": file.etag, "selfLink": link, "key": held}
                               | {"visibility": visibility, "value": value})  # fmt: skip
        return out

    if verb == "list":
        return answer({"kind": "drive#propertyList", "etag": file.etag, "items": shown("")}, request)
    given = api.object(request) if verb in {"insert", "update", "patch"} else {}
    key = str(given.get("key", key)) if verb == "insert" else key
    visibility = given.get("visibility") or request.one("visibility") or "PRIVATE"
    where = "properties" if visibility.upper() == "PUBLIC" else "appProperties"
    if verb in {"insert", "update", "patch", "delete"}:
        api.world.drive.update(file, {where: {key: given.get("value") if verb != "delete" else None}})
        if verb == "delete":
            return Response(204)
    found = shown(key)
    if not found:
        raise ApiError.drive(404, "notFound", f"Property not found: key = {key} and visibility = {visibility}")
    return answer(found[0], request)


def _about(api: DriveApi, request: Request) -> Response:
    drive = api.world.drive
    used = str(sum(len(f.content or b"") for f in drive.files.values()))
    who = user(drive.author)
    out = {
        "kind": "drive#about",
        "etag": '"about"',
        "selfLink": f"{api.base()}drive/v2/about",
        "name": who["displayName"],
        "user": {**{k: v for k, v in who.items() if k != "me"}, "isAuthenticatedUser": True},
        "quotaBytesTotal": str(15 * 2**30),
        "quotaBytesUsed": used,
        "quotaBytesUsedAggregate": used,
        "quotaBytesUsedInTrash": "0",
        "quotaType": "LIMITED",
        "largestChangeId": str(len(drive.changes)),
        "rootFolderId": drive.root,
        "permissionId": who["permissionId"],
        "isCurrentAppInstalled": False,
        "languageCode": "en-US",
    }
    return answer(out, request)
