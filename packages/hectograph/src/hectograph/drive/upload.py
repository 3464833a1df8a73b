"""Uploads to Drive: the bytes alone, bytes with metadata in one body, and sessions that can be resumed."""

from __future__ import annotations

import json
import re
import secrets
from typing import Any

from hectograph.core.error import ApiError
from hectograph.core.http import Request, Response
from hectograph.drive.api import DriveApi
from hectograph.drive.v2 import check_match, file_answer, v3_body

_PATH = re.compile(r"/(?:resumable/)?upload/drive/(?P<api>v[23])/files(?:/(?P<file>[^/]+))?")


def find(request: Request) -> tuple[str, dict[str, str | None]] | None:
    match = _PATH.fullmatch(request.path)
    if match is None:
        return None
    prefix = "v2." if match.group("api") == "v2" else ""
    return prefix + ("files.update" if match.group("file") else "files.create"), match.groupdict()


class UploadApi:
    def __init__(self, drive_api: DriveApi) -> None:
        self.drive_api = drive_api
        self.world = drive_api.world

    def handle(self, parts: dict[str, str | None], request: Request) -> Response:
        with self.world.lock:
            kind = request.one("uploadType", "media")
            session = request.one("upload_id")
            if session:
                return self._continue(session, request)
            if kind == "resumable":
                return self._begin(parts, request)
            if kind == "multipart":
                given, content, content_type = multipart(request)
            else:
                given, content = {}, request.body
                content_type = request.headers.get("content-type", "application/octet-stream")
            return self._finish(parts, request, given, content, content_type)

    def _finish(
        self, parts: dict[str, str | None], request: Request, given: dict[str, Any], content: bytes, content_type: str
    ) -> Response:
        drive = self.world.drive
        v2 = parts["api"] == "v2"
        given = v3_body(given) if v2 else given
        if parts["file"]:
            file = drive.get(parts["file"])
            check_match(file, request)
            if given:
                drive.update(file, given, add=request.one("addParents"), remove=request.one("removeParents"))
            drive.write(file, content, given.get("mimeType") or content_type)
        else:
            file = drive.create(given, content, content_type.partition(";")[0].strip())
        self.world.dirty()
        return file_answer(self.drive_api, file, request) if v2 else self.drive_api.file(file, request)

    def _begin(self, parts: dict[str, str | None], request: Request) -> Response:
        given = request.json()
        if parts["file"]:
            check_match(self.world.drive.get(parts["file"]), request)
        session = secrets.token_urlsafe(32)
        self.world.uploads[session] = {
            "parts": parts,
            "given": given,
            "type": request.headers.get("x-upload-content-type", given.get("mimeType", "application/octet-stream")),
            "content": b"",
            "target": request,
        }
        path = request.target.partition("?")[0].lstrip("/")
        query = request.target.partition("?")[2]
        place = f"{self.drive_api.base()}{path}?{query}&upload_id={session}"
        return Response(200, b"", {"Location": place, "X-GUploader-UploadID": session, "Content-Type": "text/plain"})

    def _continue(self, session: str, request: Request) -> Response:
        held = self.world.uploads.get(session)
        if held is None:
            raise ApiError.drive(404, "notFound", "Upload session not found.")
        if request.method == "DELETE":
            del self.world.uploads[session]
            return Response(499)
        span = re.fullmatch(r"bytes (?:(\d+)-(\d+)|\*)/(\d+|\*)", request.headers.get("content-range", ""))
        if span is None:
            held["content"] = request.body
        else:
            start, _, total = span.groups()
            if start is not None:
                if int(start) > len(held["content"]):
                    return self._unfinished(held)
                held["content"] = held["content"][: int(start)] + request.body
            if total == "*" or len(held["content"]) < int(total):
                return self._unfinished(held)
        del self.world.uploads[session]
        return self._finish(held["parts"], held["target"], held["given"], held["content"], held["type"])

    def _unfinished(self, held: dict[str, Any]) -> Response:
        size = len(held["content"])
        return Response(308, b"", {"Range": f"bytes=0-{size - 1}"} if size else {})


def multipart(request: Request) -> tuple[dict[str, Any], bytes, str]:
    """The metadata and the media of a multipart/related body."""
    found = re.search(r'boundary="?([^";]+)"?', request.headers.get("content-type", ""))
    if found:
        mark = b"--" + found.group(1).encode()
    else:
        # A replayed body without its header still begins with its boundary.
        mark = request.body.lstrip().split(b"\n", 1)[0].strip()
    pieces = request.body.split(mark)[1:-1]
    if len(pieces) != 2 or not mark.startswith(b"--"):
        raise ApiError.drive(400, "badContent", "Malformed multipart body.")
    out: list[tuple[dict[str, str], bytes]] = []
    for piece in pieces:
        head, _, body = piece.lstrip(b"\r\n").partition(b"\r\n\r\n" if b"\r\n\r\n" in piece else b"\n\n")
        headers = {}
        for line in head.decode("utf-8", "replace").splitlines():
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        body = body.removesuffix(b"\r\n") if body.endswith(b"\r\n") else body.removesuffix(b"\n")
        out.append((headers, body))
    try:
        given = json.loads(out[0][1] or b"{}")
    except ValueError as error:
        raise ApiError.drive(400, "parseError", "Parse Error") from error
    content = out[1][1]
    if out[1][0].get("content-transfer-encoding", "").lower() == "base64":
        import base64

        content = base64.b64decode(content)
    return given, content, out[1][0].get("content-type", "application/octet-stream")
