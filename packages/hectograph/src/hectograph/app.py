"""Takes a request to the call it means, through the faults, and back."""

from __future__ import annotations

import email.utils
import json
import random
import re
from collections.abc import Callable
from datetime import UTC
from typing import Any

from hectograph import control, page
from hectograph.core import discovery
from hectograph.core.discovery import Method
from hectograph.core.error import ApiError, not_built, not_found
from hectograph.core.faults import Call, Rule, wait_at
from hectograph.core.http import Dropped, Request, Response
from hectograph.core.quota import exceeded
from hectograph.drive import api as drive_api
from hectograph.drive import upload
from hectograph.drive import v2 as drive_v2
from hectograph.sheets import api as sheets_api
from hectograph.world import World

Work = Callable[[Call], Response]

#: The APIs whose methods are known, the busiest first. Only Sheets and Drive are played so far.
VERSIONS = (
    *("sheets.v4", "drive.v3", "drive.v2", "docs.v1", "gmail.v1", "calendar.v3", "chat.v1", "forms.v1", "slides.v1"),
    *("tasks.v1", "pubsub.v1"),
)


class App:
    """The whole emulator as a function from a request to an answer."""

    def __init__(self, world: World, base: Callable[[], str]) -> None:
        self.world = world
        self.sheets = sheets_api.SheetsApi(world)
        self.drive = drive_api.DriveApi(world, base)
        self.uploads = upload.UploadApi(self.drive)
        self.control = control.Control(world)
        self.page = page.Page(world)
        self._jitter = random.Random(0)

    def handle(self, request: Request) -> Response:
        """Answer a request; raises ``Dropped`` where the connection is to be reset."""
        path = request.path
        if path.startswith("/emulator"):
            return self.control.handle(request)
        if path == "/token" or path.endswith("/oauth2/v4/token"):
            return self._token()
        if path.startswith("/batch"):
            return self._multipart_batch(request)
        if path in {"/", "/favicon.ico"} or path.startswith("/book/"):
            return self.page.handle(request)
        return self._api(request)

    def _token(self) -> Response:
        """Whoever asks gets a token: the emulator checks no signature."""
        token = "emulated-" + "".join(self._jitter.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=24))
        return Response.of({"access_token": token, "expires_in": 3599, "token_type": "Bearer"})

    def _api(self, request: Request) -> Response:
        uploaded = upload.find(request)
        if uploaded is not None:
            name, parts = uploaded
            return self._served(
                request,
                f"drive.{name}",
                True,
                str(parts["file"] or ""),
                frozenset(),
                lambda call: self.uploads.handle(parts, request),
            )
        for version in VERSIONS:
            found = discovery.api(version).find(request)
            if found is not None:
                return self._call(version, *found, request)
        self.world.count("unknown")
        if request.path.startswith("/drive/"):
            return Response.refused(ApiError.drive(404, "notFound", "Not Found"))
        return Response.refused(not_found())

    def _call(self, version: str, method: Method, parts: dict[str, str], request: Request) -> Response:
        file = next((parts[name] for name in ("spreadsheetId", "fileId", "folderId") if name in parts), "")
        inside: frozenset[str] = frozenset()
        match version:
            case "sheets.v4":
                kind = f"sheets.{method.name}"
                inside = _inside(request) if kind == "sheets.spreadsheets.batchUpdate" else inside

                def work(call: Call) -> Response:
                    return Response.of(self.sheets.handle(method, parts, request, call))
            case "drive.v3":
                kind = f"drive.{method.name}"

                def work(call: Call) -> Response:
                    return self.drive.handle(method, parts, request)
            case "drive.v2":
                kind = f"drive.v2.{method.name}"

                def work(call: Call) -> Response:
                    return drive_v2.handle(self.drive, method, parts, request)
            case _:
                kind = f"{version.partition('.')[0]}.{method.name}"

                def work(call: Call) -> Response:
                    raise not_built(kind)

        return self._served(request, kind, method.write, file, inside, work)

    def _served(
        self, request: Request, kind: str, write: bool, book: str, inside: frozenset[str], work: Work
    ) -> Response:
        world = self.world
        call = Call(kind, request.target, request.method, request.user, write, book, inside)
        world.count(
            f"kind {kind}", "writes" if write else "reads", f"user {call.user}", *(f"request {name}" for name in inside)
        )
        try:
            self._before(request, call)
            answer = work(call)
        except ApiError as error:
            answer = Response.refused(error)
        self._after(call)
        world.count(f"status {answer.status}")
        now = world.now()
        answer.headers.setdefault("Date", email.utils.format_datetime(now.astimezone(UTC), usegmt=True))
        return answer

    def _before(self, request: Request, call: Call) -> None:
        """All that may go wrong before anything is done."""
        world, faults = self.world, self.world.faults
        drive = call.kind.startswith("drive.")
        if world.latency_seconds:
            world.clock.sleep(world.latency_seconds)
        for slow in faults.take_all(call, "latency"):
            world.clock.sleep(self._seconds(slow))
        for gate in faults.take_all(call, "barrier"):
            wait_at(gate)
        if world.switches.require_auth and call.user == "anonymous":
            raise _no_auth(drive)
        if (rule := faults.take(call, "rate_limit")) is not None:
            raise self._limited(exceeded(call.write, str(rule.given.get("scope", "user"))), rule)
        if faults.take(call, "drive_rate_limit") is not None:
            raise ApiError.drive(
                403,
                "userRateLimitExceeded",
                "User Rate Limit Exceeded. Rate of requests for user exceed "
                "configured project quota, you may consider re-evaluating expected per-user traffic to the "
                "API and adjust project quota limits accordingly.",
                domain="usageLimits",
            )
        if (rule := faults.take(call, "error")) is not None:
            raise _told(rule, drive)
        if faults.take(call, "reset") is not None:
            raise Dropped
        if "sortRange" in call.inside and faults.take(call, "sort_500") is not None:
            raise ApiError.sheets(500, "Internal error encountered.")
        if not drive:
            refused = world.quota.charge(call.user, call.write, world.now())
            if refused is not None:
                world.count("refused by quota")
                raise self._limited(refused, None)

    def _limited(self, error: ApiError, rule: Rule | None) -> ApiError:
        told = rule.given.get("retry_after") if rule else None
        if told is not None or self.world.switches.retry_after:
            seconds = told if told is not None else 60 - self.world.now().second
            error.headers["Retry-After"] = str(seconds)
        return error

    def _after(self, call: Call) -> None:
        """All that may go wrong once it is done."""
        faults = self.world.faults
        for late in faults.take_all(call, "late_answer"):
            self.world.clock.sleep(self._seconds(late))
        if faults.take(call, "lost_answer") is not None:
            raise Dropped
        if (rule := faults.take(call, "error_after")) is not None:
            raise _told(rule, call.kind.startswith("drive."))

    def _seconds(self, rule: Rule) -> float:
        return float(rule.given.get("seconds", 0.3)) + self._jitter.random() * float(rule.given.get("jitter", 0.0))

    def answer(self, request: Request) -> Response:
        """As ``handle``, with refusals raised after the work turned into answers."""
        try:
            return self.handle(request)
        except ApiError as error:
            return Response.refused(error)

    def _multipart_batch(self, request: Request) -> Response:
        """Google's batch endpoint: several HTTP requests in one multipart body, each answered in its own part."""
        found = re.search(r'boundary="?([^";]+)"?', request.headers.get("content-type", ""))
        if found is None:
            return Response.refused(ApiError.drive(400, "badContent", "The batch has no boundary."))
        mark = found.group(1).encode()
        out = b""
        for piece in request.body.split(b"--" + mark)[1:-1]:
            head, _, inner = piece.replace(b"\r\n", b"\n").lstrip(b"\n").partition(b"\n\n")
            content_id = re.search(rb"Content-ID:\s*<?([^>\n]+)>?", head, re.IGNORECASE)
            top, _, body = inner.partition(b"\n\n")
            line, *lines = top.decode().split("\n")
            method, target, *_ = line.split(" ")
            headers = dict(request.headers)
            headers.pop("content-type", None)
            for text in lines:
                name, _, value = text.partition(":")
                headers[name.strip().lower()] = value.strip()
            answer = self.answer(Request.of(method, target, headers, body.rstrip(b"\n")))
            answer_id = b"response-" + content_id.group(1) if content_id else b"response"
            out += b"--answer\r\nContent-Type: application/http\r\nContent-ID: <" + answer_id + b">\r\n\r\n"
            out += f"HTTP/1.1 {answer.status} Answer\r\n".encode()
            for key, value in {**answer.headers, "Content-Length": str(len(answer.body))}.items():
                out += f"{key}: {value}\r\n".encode()
            out += b"\r\n" + answer.body + b"\r\n"
        return Response(200, out + b"--answer--", {"Content-Type": "multipart/mixed; boundary=answer"})


def _inside(request: Request) -> frozenset[str]:
    try:
        given: Any = json.loads(request.body or b"{}")
        return frozenset(kind for item in given.get("requests", []) if isinstance(item, dict) for kind in item)
    except (ValueError, AttributeError, TypeError):
        return frozenset()


def _no_auth(drive: bool) -> ApiError:
    if drive:
        return ApiError.drive(
            403,
            "forbidden",
            "Method doesn't allow unregistered callers (callers without established "
            "identity). Please use API Key or other form of API consumer identity to call this API.",
        )
    return ApiError.unauthenticated(drive=False)


def _told(rule: Rule, drive: bool) -> ApiError:
    status = int(rule.given.get("status", 503))
    usual = {
        500: "Internal error encountered.",
        503: "The service is currently unavailable.",
        403: "The caller does not have permission",
    }
    text = str(rule.given.get("message", usual.get(status, "The emulator was told to fail.")))
    return ApiError.drive(status, "backendError", text) if drive else ApiError.sheets(status, text)
