"""Errors as Google words them: the envelope of each family of APIs, and the texts that many calls share."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    502: "UNAVAILABLE",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


class ApiError(Exception):
    """An answer other than 2xx: a status, headers and a JSON body."""

    def __init__(self, status: int, body: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        super().__init__(status, body, headers)
        self.status = status
        self.body = body
        self.headers = headers or {}

    @property
    def message(self) -> str:
        return str(self.body.get("error", {}).get("message", ""))

    @classmethod
    def sheets(
        cls, code: int, message: str, details: list[Any] | None = None, *, status: str | None = None
    ) -> ApiError:
        """Sheets always has ``status`` and never ``errors``."""
        error: dict[str, Any] = {"code": code, "message": message, "status": status or _STATUS.get(code, "UNKNOWN")}
        if details:
            error["details"] = details
        return cls(code, {"error": error})

    @classmethod
    def drive(
        cls,
        status: int,
        reason: str,
        message: str,
        *,
        location: str | None = None,
        location_type: str = "parameter",
        domain: str = "global",
    ) -> ApiError:
        """Drive has ``errors`` and, but for authentication, no ``status``."""
        item = {"message": message, "domain": domain, "reason": reason}
        if location is not None:
            item |= {"location": location, "locationType": location_type}
        error: dict[str, Any] = {"code": status, "message": message, "errors": [item]}
        if status == 401:
            error["status"] = "UNAUTHENTICATED"
        return cls(status, {"error": error})

    @classmethod
    def typed(cls, field: str, kind: str, value: str) -> ApiError:
        """A parameter of a Drive call whose value is not of its type."""
        text = f"Invalid value at '{field}' ({kind}), {json.dumps(value)}"
        made = cls.bad_request([(field, text)])
        made.body["error"]["errors"] = [{"message": text, "reason": "invalid"}]
        return made

    @classmethod
    def bad_request(cls, violations: Sequence[tuple[str, str]]) -> ApiError:
        """A body or parameter that the JSON reader refuses, with a violation per field."""
        listed: list[dict[str, str]] = []
        for field, text in violations:
            listed.append({"field": field, "description": text} if field else {"description": text})
        detail = {"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": listed}
        return cls.sheets(400, "\n".join(text for _, text in violations), [detail])


class Invalid(Exception):
    """A request that cannot be applied: its text, without the prefix that says which request of the batch it was."""


def invalid(text: str) -> ApiError:
    return ApiError.sheets(400, text)


def not_found() -> ApiError:
    return ApiError.sheets(404, "Requested entity was not found.")


def file_not_found(file_id: str) -> ApiError:
    return ApiError.drive(404, "notFound", f"File not found: {file_id}.", location="fileId")


_BAD_TOKEN = (
    "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other "
    "valid authentication credential. See https://developers.google.com/identity/sign-in/web/devconsole-project."
)
_NO_TOKEN = (
    "Request is missing required authentication credential. Expected OAuth 2 access token, login cookie or other valid "
    "authentication credential. See https://developers.google.com/identity/sign-in/web/devconsole-project."
)
_UNREGISTERED = (
    "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other "
    "form of API consumer identity to call this API."
)


@dataclass(frozen=True)
class Envelope:
    """How a family of APIs writes its refusals. ``EDITORS``, ``DRIVE``, ``CALENDAR`` and ``GMAIL`` are the families."""

    #: A refusal lists ``errors`` with domain and reason.
    listed: bool
    #: A refusal has ``status``.
    status: bool
    #: What a caller without any credentials gets.
    anonymous: int = 401

    def refusal(
        self,
        code: int,
        message: str,
        reason: str = "",
        *,
        status: str = "",
        domain: str = "global",
        location: str = "",
        location_type: str = "parameter",
        details: list[Any] | None = None,
        first: str = "",
    ) -> ApiError:
        """Return a refusal in this family's form. ``first`` is the text of the listed error where it is another one."""
        error: dict[str, Any] = {"code": code, "message": message}
        if self.listed:
            item = {
                "message": first or message,
                "domain": domain,
                "reason": reason or _REASONS.get(code, "backendError"),
            }
            error["errors"] = [item | ({"location": location, "locationType": location_type} if location else {})]
        if self.status or status:
            error["status"] = status or _STATUS.get(code, "UNKNOWN")
        if details:
            error["details"] = details
        return ApiError(code, {"error": error})

    def no_credentials(self) -> ApiError:
        if self.anonymous == 403:
            return self.refusal(403, _UNREGISTERED, "forbidden")
        return self._sign_in(_NO_TOKEN, "Login Required.", "required")

    def bad_credentials(self) -> ApiError:
        """Return the answer to a token that has run out or was withdrawn."""
        return self._sign_in(_BAD_TOKEN, "Invalid Credentials", "authError")

    def _sign_in(self, text: str, first: str, reason: str) -> ApiError:
        made = self.refusal(
            401, text, reason, first=first, status="UNAUTHENTICATED", location="Authorization", location_type="header"
        )
        made.headers["WWW-Authenticate"] = 'Bearer realm="https://accounts.google.com/", error="invalid_token"'
        return made

    def scope_missing(self, service: str, method: str) -> ApiError:
        """Return the answer to a token none of whose scopes allows the method."""
        detail = {
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": "ACCESS_TOKEN_SCOPE_INSUFFICIENT",
            "domain": "googleapis.com",
            "metadata": {"service": service, "method": method},
        }
        text, first = "Request had insufficient authentication scopes.", "Insufficient Permission"
        if self is DRIVE:  # the older form
            return self.refusal(403, f"{first}: {text}", "insufficientPermissions")
        return self.refusal(
            403, text, "insufficientPermissions", first=first, status="PERMISSION_DENIED", details=[detail]
        )


_REASONS = {
    400: "badRequest",
    401: "authError",
    403: "forbidden",
    404: "notFound",
    409: "conflict",
    501: "notImplemented",
}

#: Docs, Slides, Sheets, Forms, Chat.
EDITORS = Envelope(listed=False, status=True)
DRIVE = Envelope(listed=True, status=False, anonymous=403)
CALENDAR = Envelope(listed=True, status=False)
GMAIL = Envelope(listed=True, status=True)


def not_built(method: str) -> ApiError:
    """A method that Google has and the emulator does not play."""
    text = f"The emulator knows the method {method} but does not play it."
    return EDITORS.refusal(501, text)
