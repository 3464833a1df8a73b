"""Requests and answers as values, apart from any socket."""

from __future__ import annotations

import json
import urllib.parse
from dataclasses import dataclass, field
from typing import Any

from hectograph.core.error import ApiError

JSON = "application/json; charset=UTF-8"


@dataclass
class Request:
    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes = b""
    #: The path with its query as it was sent.
    target: str = ""
    #: The path as it was sent: what is encoded in it stays so.
    encoded_path: str = ""

    @classmethod
    def of(cls, method: str, target: str, headers: dict[str, str], body: bytes) -> Request:
        """Read a request line; a long GET that was sent as a POST is read as what it means."""
        # A caller that joins an address with a slash and a path with a slash means one slash.
        split = urllib.parse.urlsplit("/" + target.lstrip("/") if target.startswith("/") else target)
        query = split.query
        override = headers.get("x-http-method-override", "").upper()
        if override:
            if override == "GET" and headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
                query = "&".join(filter(None, [query, body.decode()]))
                body = b""
            method = override
        path = split.path.rstrip("/") if len(split.path) > 1 and "/values/" not in split.path else split.path
        return cls(
            method,
            urllib.parse.unquote(path),
            urllib.parse.parse_qs(query, keep_blank_values=True),
            headers,
            body,
            target,
            path,
        )

    def one(self, name: str, default: str = "") -> str:
        found = self.query.get(name)
        return found[-1] if found else default

    def flag(self, name: str) -> bool:
        return self.one(name).lower() in {"true", "1", "t", "y", "yes"}

    def flat(self) -> dict[str, str]:
        return {name: values[-1] for name, values in self.query.items()}

    def json(self) -> Any:
        """The body as JSON; an empty body is an empty object."""
        if not self.body.strip():
            return {}
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise ApiError.sheets(400, "Invalid JSON payload received. " + _json_fault(self.body)) from error

    @property
    def user(self) -> str:
        """Who calls: the bearer token, or the key, or nobody in particular."""
        authorization = self.headers.get("authorization", "")
        if authorization.lower().startswith("bearer "):
            return authorization[7:].strip()
        return self.one("access_token") or self.one("key") or "anonymous"


def _json_fault(body: bytes) -> str:
    text = body.decode("utf-8", "replace")
    return f"Expected a value.\n{text[:40]}\n^"


@dataclass
class Response:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
        body = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
        return cls(status, body, {"Content-Type": JSON, **(headers or {})})

    @classmethod
    def refused(cls, error: ApiError) -> Response:
        return cls.of(error.body, error.status, error.headers)


class Dropped(Exception):
    """The connection is to be reset without an answer."""
