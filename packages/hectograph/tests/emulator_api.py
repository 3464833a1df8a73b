"""A small client for the tests: a request, its status and its JSON."""

from __future__ import annotations

import http.client
import json
import urllib.parse
from dataclasses import dataclass, field
from typing import Any

from hectograph import Emulator

SPREADSHEET = "application/vnd.google-apps.spreadsheet"


class Refused(Exception):
    """An answer other than 2xx."""

    def __init__(self, status: int, body: Any, headers: dict[str, str]) -> None:
        super().__init__(status, body)
        self.status = status
        self.body = body
        self.headers = headers

    @property
    def message(self) -> str:
        return str(self.body["error"]["message"])


@dataclass
class Api:
    """One caller; every call has a connection of its own, so that threads may share it."""

    emulator: Emulator
    user: str = "one"
    headers: dict[str, str] = field(default_factory=dict)

    def raw(
        self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> tuple[int, bytes, dict[str, str]]:
        connection = http.client.HTTPConnection(self.emulator.host, self.emulator.port, timeout=30)
        try:
            connection.request(method, path, body or None, {"Authorization": f"Bearer {self.user}", **(headers or {})})
            answer = connection.getresponse()
            return answer.status, answer.read(), {k.lower(): v for k, v in answer.getheaders()}
        finally:
            connection.close()

    def __call__(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        if query:
            path += "?" + urllib.parse.urlencode(query, doseq=True)
        data = b"" if body is None else json.dumps(body).encode()
        status, raw, headers = self.raw(method, path, data, {"Content-Type": "application/json", **self.headers})
        found = json.loads(raw) if raw else None
        if status >= 300:
            raise Refused(status, found, headers)
        return found

    def book(self, title: str = "Book") -> Book:
        made = self("POST", "/drive/v3/files", {"name": title, "mimeType": SPREADSHEET})
        return Book(self, made["id"])


@dataclass
class Book:
    """A spreadsheet under test."""

    api: Api
    book_id: str

    @property
    def path(self) -> str:
        return f"/v4/spreadsheets/{self.book_id}"

    def values(self, text: str, **query: Any) -> list[list[Any]]:
        found: list[list[Any]] = self.get(text, **query).get("values", [])
        return found

    def get(self, text: str, **query: Any) -> dict[str, Any]:
        found: dict[str, Any] = self.api("GET", f"{self.path}/values/{urllib.parse.quote(text)}", **query)
        return found

    def put(self, text: str, values: list[list[Any]], mode: str = "RAW", **query: Any) -> dict[str, Any]:
        path = f"{self.path}/values/{urllib.parse.quote(text)}"
        found: dict[str, Any] = self.api("PUT", path, {"values": values}, valueInputOption=mode, **query)
        return found

    def type(self, text: str, values: list[list[Any]]) -> dict[str, Any]:
        return self.put(text, values, "USER_ENTERED")

    def append(self, text: str, values: list[list[Any]], **query: Any) -> dict[str, Any]:
        path = f"{self.path}/values/{urllib.parse.quote(text)}:append"
        query.setdefault("valueInputOption", "RAW")
        found: dict[str, Any] = self.api("POST", path, {"values": values}, **query)
        return found

    def batch(self, *requests: dict[str, Any], **more: Any) -> dict[str, Any]:
        found: dict[str, Any] = self.api("POST", f"{self.path}:batchUpdate", {"requests": list(requests), **more})
        return found

    def meta(self, **query: Any) -> dict[str, Any]:
        found: dict[str, Any] = self.api("GET", self.path, **query)
        return found

    def person(self, do: str, **given: Any) -> dict[str, Any]:
        body = {"book": self.book_id, "do": do, **given}
        found: dict[str, Any] = self.api("POST", "/emulator/person", body)
        return found


def named(key: str, name: str = "HEAD", row: int = 0) -> dict[str, Any]:
    grid = {"sheetId": 0, "startRowIndex": row, "endRowIndex": row + 1, "startColumnIndex": 0, "endColumnIndex": 1}
    return {"addNamedRange": {"namedRange": {"namedRangeId": key, "name": name, "range": grid}}}


def swap(old: str, new: str) -> list[dict[str, Any]]:
    """The ledger's compare-and-swap: fence, delete, add."""
    return [
        {"updateNamedRange": {"namedRange": {"namedRangeId": old, "range": {"sheetId": 0}}, "fields": "range"}},
        {"deleteNamedRange": {"namedRangeId": old}},
        named(new),
    ]


def upload(api: Api, name: str, content: bytes, kind: str = "text/plain", **more: object) -> str:
    head = json.dumps({"name": name, **more}).encode()
    body = b"--b\r\nContent-Type: application/json\r\n\r\n" + head + b"\r\n--b\r\nContent-Type: " + kind.encode()
    body += b"\r\n\r\n" + content + b"\r\n--b--"
    headers = {"Content-Type": 'multipart/related; boundary="b"'}
    status, raw, _ = api.raw("POST", "/upload/drive/v3/files?uploadType=multipart", body, headers)
    assert status == 200, raw
    return str(json.loads(raw)["id"])
