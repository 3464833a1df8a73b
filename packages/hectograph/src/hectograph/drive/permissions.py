"""Who may do what with a file: permissions as Drive v3 gives, changes and refuses them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from email.message import EmailMessage
from typing import TYPE_CHECKING, Any

from hectograph.core import fieldmask
from hectograph.core.error import ApiError
from hectograph.core.http import Request, Response
from hectograph.drive.file import File, link, permission_id

if TYPE_CHECKING:
    from hectograph.drive.api import DriveApi

DEFAULT = fieldmask.parse("kind,id,type,role,allowFileDiscovery")
_TYPES = {"user", "group", "domain", "anyone"}
_ROLES = {"owner", "organizer", "fileOrganizer", "writer", "commenter", "reader"}


def handle(api: DriveApi, name: str, file: File, key: str, request: Request, sharer: str = "") -> Response:
    drive = api.world.drive
    if name in {"permissions.create", "permissions.update", "permissions.delete"}:
        _race(api, file)
    if name == "permissions.create":
        made = granted(file, api.object(request), transfer=request.flag("transferOwnership"))
        _notify(api, file, made, request, sharer or api.world.account)
        drive.touched(file, content=False)
        return api.answer(made, "Permission", request, DEFAULT)
    if name == "permissions.list":
        size = api.integer(request, "pageSize", 100, 1, 100)
        start = api.page(request)
        items = list(file.permissions.values())
        out: dict[str, Any] = {"kind": "drive#permissionList", "permissions": items[start : start + size]}
        if start + size < len(items):
            out["nextPageToken"] = api.next_page(start + size)
        return api.answer(out, "PermissionList", request, {"kind": {}, "nextPageToken": {}, "permissions": DEFAULT})
    held = file.permissions.get(key)
    if held is None:
        raise ApiError.drive(404, "notFound", f"Permission not found: {key}.", location="permissionId")
    if name == "permissions.update":
        given = api.object(request)
        new = _changed(file, held, given, request)
        file.permissions[key] = new
        drive.touched(file, content=False)
        return api.answer(new, "Permission", request, DEFAULT)
    if name == "permissions.delete":
        if held.get("role") == "owner":
            raise ApiError.drive(
                403, "insufficientFilePermissions", "The user does not have sufficient permissions for this file."
            )
        del file.permissions[key]
        drive.touched(file, content=False)
        return Response(204)
    return api.answer(held, "Permission", request, DEFAULT)


#: Two changes of one file's permissions that come so close overlap.
_OVERLAP = timedelta(seconds=1)


def _race(api: DriveApi, file: File) -> None:
    """Lose the change before this one, where it was just now and the switch says that only the last one counts."""
    if api.world.switches["permission_race"] != "last":
        return
    now = api.world.now()
    at, before = file.race or (None, {})
    if at is not None and now - at < _OVERLAP:
        file.permissions = dict(before)
    file.race = (now, dict(file.permissions))


def _notify(api: DriveApi, file: File, made: Mapping[str, Any], request: Request, sharer: str) -> None:
    """Mail a person or a group that a file was shared; that happens each time, unless the caller asks for none."""
    if made["type"] not in {"user", "group"} or request.one("sendNotificationEmail").lower() == "false":
        return
    mail = EmailMessage()
    mail["From"], mail["To"] = sharer, made["emailAddress"]
    mail["Subject"] = f"Item shared with you: “{' '.join(file.name.split())}”"
    said = request.one("emailMessage")
    mail.set_content(f"{sharer} has shared an item with you as {made['role']}.\n\n{said}\n{link(file)}\n")
    summary = f"shared {file.name} with {made['emailAddress']} as {made['role']}"
    api.world.outgoing.send("share", sharer, (made["emailAddress"],), summary, mail.as_string())


def _required(name: str) -> ApiError:
    text = f"The permission {name} field is required."
    return ApiError.drive(400, "required", text, location=f"permission.{name}", location_type="other")


def _wrong(name: str) -> ApiError:
    text = f"The specified {name} is invalid or not applicable for the given permission type."
    return ApiError.drive(400, "invalid", text, location=f"permission.{name}", location_type="other")


def _owned(role: Any, transfer: bool, pending: bool) -> None:
    """Refuse to make an owner but by a transfer that its receiver has agreed to."""
    if role != "owner":
        return
    if not transfer:
        raise ApiError.drive(
            403,
            "forbidden",
            "The transferOwnership parameter must be enabled when the permission role is 'owner'.",
            location="transferOwnership",
        )
    if not pending:
        raise ApiError.drive(
            403,
            "consentRequiredForOwnershipTransfer",
            "Consent is required to transfer ownership of a file to another user.",
        )


def granted(file: File, given: Mapping[str, Any], *, transfer: bool = False) -> dict[str, Any]:
    """Give a permission on a file; who has one already gets it changed."""
    kind, role = given.get("type"), given.get("role")
    if not kind:
        raise _required("type")
    if not role:
        raise _required("role")
    if kind not in _TYPES:
        raise _wrong("type")
    if role not in _ROLES:
        raise _wrong("role")
    made: dict[str, Any] = {"kind": "drive#permission", "type": kind, "role": role}
    email, domain = given.get("emailAddress"), given.get("domain")
    if kind in {"user", "group"}:
        if not email or "@" not in email or len(email.split()) != 1:
            raise _wrong("emailAddress")
        made |= {"id": permission_id(email), "emailAddress": email, "displayName": email.partition("@")[0]}
        made["deleted"] = False
        if kind == "user":
            made["pendingOwner"] = bool(given.get("pendingOwner", False))
    elif kind == "domain":
        if not domain:
            raise _wrong("domain")
        made |= {"id": permission_id(domain) + "k", "domain": domain, "displayName": domain}
        made["allowFileDiscovery"] = bool(given.get("allowFileDiscovery", False))
    else:
        if email:
            raise _wrong("emailAddress")
        found = bool(given.get("allowFileDiscovery", False))
        made |= {"id": "anyone" if found else "anyoneWithLink", "allowFileDiscovery": found}
    held = file.permissions.get(made["id"], {})
    if held.get("role") == "owner" and role == "owner":
        return held
    _owned(role, transfer, bool(held.get("pendingOwner")))
    _pending(made)
    if given.get("expirationTime"):
        made["expirationTime"] = given["expirationTime"]
    file.permissions[made["id"]] = made
    return made


def _pending(made: Mapping[str, Any]) -> None:
    if made.get("pendingOwner") and made["role"] != "writer":
        raise ApiError.drive(
            403,
            "pendingOwnerWriterRequired",
            "The target user cannot be a pending owner because the target user does not have a writer role for the "
            "file.",
        )


def _changed(file: File, held: dict[str, Any], given: Mapping[str, Any], request: Request) -> dict[str, Any]:
    role = given.get("role")
    if role is not None and role not in _ROLES:
        raise _wrong("role")
    if held.get("role") != "owner":
        _owned(role, request.flag("transferOwnership"), bool(held.get("pendingOwner")))
    new = {**held, **{k: given[k] for k in ("role", "expirationTime", "pendingOwner") if given.get(k) is not None}}
    if request.flag("removeExpiration"):
        new.pop("expirationTime", None)
    if role == "owner" and held.get("role") != "owner":
        new["pendingOwner"] = False
        for key, other in file.permissions.items():
            if other.get("role") == "owner":
                file.permissions[key] = {**other, "role": "writer"}
        file.owner = str(new.get("emailAddress", file.owner))
    else:
        _pending(new)
    return new
