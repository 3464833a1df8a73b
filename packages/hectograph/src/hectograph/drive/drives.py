"""Shared drives (and team drives, their older name): a list, each also a folder in which files may lie."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hectograph.core import fieldmask
from hectograph.core.clock import stamp
from hectograph.core.error import ApiError
from hectograph.core.http import Request, Response

if TYPE_CHECKING:
    from hectograph.drive.api import DriveApi

_DEFAULT = fieldmask.parse("kind,id,name")


def handle(api: DriveApi, name: str, key: str, request: Request) -> Response:
    drive = api.world.drive
    held = drive.drives
    team = name.startswith("teamdrives.")
    noun, listed = ("TeamDrive", "teamDrives") if team else ("Drive", "drives")
    kind = "drive#teamDrive" if team else "drive#drive"
    verb = name.partition(".")[2]
    if verb == "list":
        size, start = api.integer(request, "pageSize", 10, 1, 100), api.page(request)
        items = [{**item, "kind": kind} for item in held.values()]
        out: dict[str, Any] = {"kind": f"{kind}List", listed: items[start : start + size]}
        if start + size < len(items):
            out["nextPageToken"] = api.next_page(start + size)
        return api.answer(out, f"{noun}List", request, {"kind": {}, "nextPageToken": {}, listed: _DEFAULT})
    if verb == "create":
        if not request.one("requestId"):
            raise ApiError.drive(400, "required", "Required parameter: requestId", location="requestId")
        made = "0A" + drive.new_id()[:17]
        given = api.object(request)
        held[made] = {
            "kind": "drive#drive",
            "id": made,
            "name": given.get("name", ""),
            "colorRgb": given.get("colorRgb", "#8c6e63"),
            "createdTime": stamp(api.world.now()),
            "hidden": False,
        }
        drive.add_drive(made, held[made]["name"])
        return api.answer({**held[made], "kind": kind}, noun, request, _DEFAULT)
    found = held.get(key)
    if found is None:
        text = f"Shared drive not found: {key}"
        raise ApiError.drive(404, "notFound", text, location="teamDriveId" if team else "driveId")
    match verb:
        case "delete":
            if any(key in file.parents for file in drive.files.values()):
                raise ApiError.drive(
                    403, "cannotDeleteNonEmptyDrive", "A shared drive with files in it cannot be deleted."
                )
            del held[key]
            drive.files.pop(key, None)
            return Response(204)
        case "update":
            held[key] = found = {**found, **{k: v for k, v in api.object(request).items() if k not in {"id", "kind"}}}
        case "hide" | "unhide":
            held[key] = found = {**found, "hidden": verb == "hide"}
    return api.answer({**found, "kind": kind}, noun, request, _DEFAULT)
