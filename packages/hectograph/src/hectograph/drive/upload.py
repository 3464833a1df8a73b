"""What becomes of a file that was uploaded to Drive, in the words of v3 and of v2."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hectograph.core.http import Response
from hectograph.core.service import Media, MethodCall
from hectograph.drive import v2 as drive_v2

if TYPE_CHECKING:
    from hectograph.drive.api import DriveApi


def check(api: DriveApi, call: MethodCall) -> None:
    """Refuse an upload to a file that is not there, or whose ETag is another."""
    if "fileId" in call.parts:
        drive_v2.check_match(api.world.drive.get(call.parts["fileId"]), call.request)


def stored(api: DriveApi, call: MethodCall, media: Media, *, v2: bool = False) -> Response:
    """Make the file, or replace its content."""
    drive, request = api.world.drive, call.request
    given = request.json()
    given = drive_v2.v3_body(given) if v2 else given
    if "fileId" in call.parts:
        file = drive.get(call.parts["fileId"])
        drive_v2.check_match(file, request)
        if given:
            drive.update(file, given, add=request.one("addParents"), remove=request.one("removeParents"))
        drive.write(file, media.content, given.get("mimeType") or media.content_type)
    else:
        file = drive.create(given, media.content, media.content_type.partition(";")[0].strip())
    api.world.dirty()
    return drive_v2.file_answer(api, file, request) if v2 else api.file(file, request)
