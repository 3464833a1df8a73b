"""Takes a request to the call it means, through the faults, and back."""

from __future__ import annotations

import email.utils
import json
import random
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC
from typing import Any

from hectograph import control, outbox, page
from hectograph.apis import services
from hectograph.core import html
from hectograph.core.discovery import Method
from hectograph.core.error import DRIVE, ApiError, not_found
from hectograph.core.faults import REASONS, Call, Rule, wait_at
from hectograph.core.http import Dropped, Request, Response
from hectograph.core.quota import PROJECT, Exceeded
from hectograph.core.service import MethodCall, Service
from hectograph.core.upload import Uploads
from hectograph.signin import SignIn
from hectograph.world import World

#: Clients with an address of their own leave out the path of the service; the rest of the path is unmistakable.
_LEFT_OUT = ("/calendar/v3", "/drive/v3")

#: The parameters of a path that name what a fault rule may ask for.
_FILES = ("spreadsheetId", "fileId", "folderId", "documentId", "presentationId", "formId", "calendarId", "tasklist")


class App:
    """The whole emulator as a function from a request to an answer."""

    def __init__(self, world: World, base: Callable[[], str]) -> None:
        self.world = world
        self.services = services(world, base)
        self.uploads = Uploads(base)
        self.pages = {word: service for service in self.services for word in service.pages}
        self.sign_in = SignIn(world)
        self.control = control.Control(world, self.sign_in)
        self.page = page.Page(world)
        world.type, world.call = self.control.person.act, self._called
        self._jitter = random.Random(0)

    def handle(self, request: Request) -> Response:
        """Answer a request; raises ``Dropped`` where the connection is to be reset."""
        path = request.path
        self.world.drive.author = self.world.account
        if path.startswith("/emulator"):
            return self.control.handle(request)
        if (signed := self.sign_in.handle(request)) is not None:
            return signed
        if path.startswith("/batch"):
            return self._multipart_batch(request)
        if path == "/outbox":
            return outbox.show(self.world)
        if path in {"/", "/favicon.ico"} or path.startswith("/book/"):
            return self.page.handle(request)
        word, _, rest = path[1:].partition("/")
        if (service := self.pages.get("/" + word)) is not None and not re.match(r"v\d", rest):
            return self._page(service, request)
        return self._api(request)

    def _called(self, verb: str, target: str, body: Any = None) -> Response:
        """Call an API on behalf of a page."""
        data = b"" if body is None else json.dumps(body).encode()
        return self.answer(Request.of(verb, target, {"authorization": f"Bearer {self.world.account}"}, data))

    def _page(self, service: Service, request: Request) -> Response:
        """Show a page. What a person cannot do is said on a page, too."""
        try:
            return service.show(request)
        except (ValueError, KeyError) as error:
            return html.page("This did not work", f"<p>{html.escape(str(error))}</p>", status=400)

    def _api(self, request: Request) -> Response:
        for service in self.services:
            found = service.api.find_upload(request)
            if found is not None:
                return self._served(service, self._call(service, *found, request), uploaded=True)
        for before in ("", *_LEFT_OUT):
            meant = replace(request, path=before + request.path, encoded_path=before + request.encoded_path)
            for service in self.services:
                found = service.api.find(meant)
                if found is not None:
                    return self._served(service, self._call(service, *found, request))
        self.world.count("unknown")
        if request.path.startswith("/drive/"):
            return Response.refused(DRIVE.refusal(404, "Not Found"))
        return Response.refused(not_found())

    def _call(self, service: Service, method: Method, parts: dict[str, str], request: Request) -> MethodCall:
        inside = _inside(request) if method.name.endswith("batchUpdate") else frozenset()
        file = next((parts[name] for name in _FILES if name in parts), "")
        kind = service.kind(method)
        seen = Call(kind, request.target, request.method, request.user, method.write, file, inside)
        caller = self.world.people.caller(request.user, self.world.account)
        return MethodCall(service.api, method, parts, request, caller, seen)

    def _served(self, service: Service, call: MethodCall, *, uploaded: bool = False) -> Response:
        world, seen = self.world, call.seen
        world.drive.author = call.caller.email
        world.count(
            *(f"kind {seen.kind}", "writes" if seen.write else "reads", f"user {seen.user}"),
            *(f"request {name}" for name in seen.inside),
        )
        try:
            self._before(service, call)
            if uploaded:
                answer = self.uploads.handle(call, service.check_upload, service.handle)
            else:
                answer = service.handle(call)
        except ApiError as error:
            answer = Response.refused(error)
        self._after(service, seen)
        world.count(f"status {answer.status}")
        now = world.now()
        answer.headers.setdefault("Date", email.utils.format_datetime(now.astimezone(UTC), usegmt=True))
        return answer

    def _before(self, service: Service, method_call: MethodCall) -> None:
        """All that may go wrong before anything is done."""
        world, faults, call = self.world, self.world.faults, method_call.seen
        if world.latency_seconds:
            world.clock.sleep(world.latency_seconds)
        for slow in faults.take_all(call, "latency"):
            world.clock.sleep(self._seconds(slow))
        for gate in faults.take_all(call, "barrier"):
            wait_at(gate)
        if world.switches.require_auth and call.user == "anonymous":
            raise service.envelope.no_credentials()
        if not method_call.caller.lives(world.now()):
            raise service.envelope.bad_credentials()
        service.permit(method_call)
        if (rule := faults.take(call, "rate_limit")) is not None:
            counter = "write" if call.write else "read"
            raise self._limited(service.over(Exceeded(counter, str(rule.given.get("scope", "user")))), rule)
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
            raise _told(rule, service)
        if faults.take(call, "reset") is not None:
            raise Dropped
        if "sortRange" in call.inside and faults.take(call, "sort_500") is not None:
            raise ApiError.sheets(500, "Internal error encountered.")
        charges = list(service.charges(method_call))
        # The tokens of one account share its limits; a token that nobody declared has limits of its own.
        user = method_call.caller.email if call.user in world.people.declared else call.user
        refused = world.quota.charge(service.name, user, charges, world.now())
        if refused is not None:
            world.count("refused by quota")
            raise self._limited(service.over(refused), None)

    def _limited(self, error: ApiError, rule: Rule | None) -> ApiError:
        told = rule.given.get("retry_after") if rule else None
        if told is not None or self.world.switches.retry_after:
            seconds = told if told is not None else 60 - self.world.now().second
            error.headers["Retry-After"] = str(seconds)
        return error

    def _after(self, service: Service, call: Call) -> None:
        """All that may go wrong once it is done."""
        faults = self.world.faults
        for late in faults.take_all(call, "late_answer"):
            self.world.clock.sleep(self._seconds(late))
        if faults.take(call, "lost_answer") is not None:
            raise Dropped
        if (rule := faults.take(call, "error_after")) is not None:
            raise _told(rule, service)

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


def _told(rule: Rule, service: Service) -> ApiError:
    """Return the refusal that a rule asks for. A reason that is known brings its status, text and domain."""
    reason = str(rule.given.get("reason", "backendError"))
    known = REASONS.get(reason) if "reason" in rule.given else None
    status = int(rule.given.get("status", known.status if known else 503))
    usual = {
        500: "Internal error encountered.",
        503: "The service is currently unavailable.",
        403: "The caller does not have permission",
    }
    text = known.message if known else usual.get(status, "The emulator was told to fail.")
    message = str(rule.given.get("message", text))
    if status == 401 and "message" not in rule.given:
        return service.envelope.bad_credentials()
    details = [_disabled(service)] if reason == "accessNotConfigured" else None
    return service.refuse(status, message, reason, domain=known.domain if known else "global", details=details)


def _disabled(service: Service) -> dict[str, Any]:
    return {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "SERVICE_DISABLED",
        "domain": "googleapis.com",
        "metadata": {"service": service.api.host, "consumer": f"projects/{PROJECT}"},
    }
