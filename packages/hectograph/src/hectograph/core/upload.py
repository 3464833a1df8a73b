"""Uploads: the bytes alone, bytes with metadata in one body, and sessions that can be resumed.

The paths are those of the discovery documents. An upload ends as an ordinary call of its method, with the metadata as
the body and the file beside it (``MethodCall.media``).
"""

from __future__ import annotations

import base64
import json
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from hectograph.core.error import DRIVE, ApiError
from hectograph.core.http import Request, Response
from hectograph.core.service import Media, MethodCall

Finish = Callable[[MethodCall], Response]


@dataclass
class _Session:
    call: MethodCall
    content_type: str
    finish: Finish
    content: bytes = b""


class Uploads:
    """The uploads under way."""

    def __init__(self, base: Callable[[], str]) -> None:
        self.base = base
        self.sessions: dict[str, _Session] = {}

    def handle(self, call: MethodCall, check: Callable[[MethodCall], None], finish: Finish) -> Response:
        """Take a file, or a part of one. ``check`` may refuse a session early; ``finish`` gets the whole."""
        request = call.request
        session = request.one("upload_id")
        if session:
            return self._continue(session, request)
        kind = request.one("uploadType", "media")
        if kind == "resumable":
            check(call)
            return self._begin(call, finish)
        if kind == "multipart":
            given, content, content_type = multipart(request)
            return finish(_whole(call, json.dumps(given).encode(), content, content_type))
        content_type = request.headers.get("content-type", "application/octet-stream")
        return finish(_whole(call, b"", request.body, content_type))

    def _begin(self, call: MethodCall, finish: Finish) -> Response:
        request = call.request
        given = request.json()
        session = secrets.token_urlsafe(32)
        content_type = request.headers.get("x-upload-content-type") or given.get("mimeType", "application/octet-stream")
        self.sessions[session] = _Session(call, str(content_type), finish)
        path, _, query = request.target.partition("?")
        place = f"{self.base()}{path.lstrip('/')}?{query}&upload_id={session}"
        return Response(200, b"", {"Location": place, "X-GUploader-UploadID": session, "Content-Type": "text/plain"})

    def _continue(self, session: str, request: Request) -> Response:
        held = self.sessions.get(session)
        if held is None:
            raise DRIVE.refusal(404, "Upload session not found.", "notFound")
        if request.method == "DELETE":
            del self.sessions[session]
            return Response(499)
        span = re.fullmatch(r"bytes (?:(\d+)-(\d+)|\*)/(\d+|\*)", request.headers.get("content-range", ""))
        if span is None:
            held.content = request.body
        else:
            start, _, total = span.groups()
            if start is not None:
                if int(start) > len(held.content):
                    return _unfinished(held)
                held.content = held.content[: int(start)] + request.body
            if total == "*" or len(held.content) < int(total):
                return _unfinished(held)
        del self.sessions[session]
        return held.finish(_whole(held.call, held.call.request.body, held.content, held.content_type))


def _whole(call: MethodCall, body: bytes, content: bytes, content_type: str) -> MethodCall:
    return replace(call, request=replace(call.request, body=body), media=Media(content, content_type))


def _unfinished(held: _Session) -> Response:
    size = len(held.content)
    return Response(308, b"", {"Range": f"bytes=0-{size - 1}"} if size else {})


def multipart(request: Request) -> tuple[dict[str, Any], bytes, str]:
    """Return the metadata and the media of a multipart/related body."""
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
        content = base64.b64decode(content)
    return given, content, out[1][0].get("content-type", "application/octet-stream")
