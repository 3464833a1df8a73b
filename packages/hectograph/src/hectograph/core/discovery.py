"""Google's discovery documents: which methods an API has, at which paths, with which parameters and messages.

Each document is stored in ``documents/`` without its descriptions, compressed. ``api("sheets.v4")`` reads one and
compiles it once. So routes, parameters and schemas are Google's own, and only behaviour is written by hand. To take
newer documents from an installed google-api-python-client:

    python -m hectograph.core.renew
"""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from hectograph.core.http import Request
from hectograph.core.schema import Schema, compiled

DOCUMENTS = Path(__file__).parent / "documents"

#: Path parameters that may hold slashes although the document does not say so: a range names a sheet by its title.
_WITH_SLASHES = frozenset({"range"})

#: The last word of methods that are called with another verb than GET and change nothing.
_READS = frozenset({"batchGetByDataFilter", "download", "getByDataFilter", "query", "search", "stop", "watch"})


@dataclass(frozen=True)
class Method:
    """One method of an API."""

    #: Google's id without the API's name: ``spreadsheets.values.get``.
    name: str
    verb: str
    pattern: re.Pattern[str]
    #: It changes something. Google counts reads and writes against quotas of their own.
    write: bool
    #: The names of the query parameters that it declares, with their types.
    parameters: Mapping[str, str]
    #: The message of its answer, or "" where it has none.
    answer: str
    #: A token that carries scopes needs one of these.
    scopes: tuple[str, ...]
    #: The message of its body, or "" where it has none.
    body: str
    #: The words that a query parameter may have, where the document lists them.
    words: Mapping[str, frozenset[str]]
    #: The paths that take a file beside the body, or in its place.
    upload: re.Pattern[str] | None

    @property
    def group(self) -> str:
        """The resource that it belongs to: ``permissions`` of ``permissions.list``."""
        return self.name.rpartition(".")[0]


class Api:
    """One version of one API."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.name: str = document["name"]
        #: The host at which Google serves it.
        self.host: str = str(document["rootUrl"]).removeprefix("https://").strip("/")
        self.schema: Schema = compiled(document)
        #: Query parameters that every method takes.
        self.common: Mapping[str, str] = {name: spec["type"] for name, spec in document["parameters"].items()}
        base = "/" + str(document["servicePath"])
        found = sorted(_methods(document), key=lambda spec: _precedence(base + spec["path"]))
        self.methods = tuple(_method(base, spec) for spec in found)
        #: All paths begin with one of these: a cheap look before the patterns.
        self._heads = tuple({(base + spec["path"]).partition("{")[0] for spec in found})
        self._uploads = tuple(method for method in self.methods if method.upload is not None)

    def find(self, request: Request) -> tuple[Method, dict[str, str]] | None:
        """Return the method that the request calls, with the values of its path's parameters.

        The path is matched as it was sent, because an encoded slash belongs to a value. A client that encodes the
        whole path is understood, too.
        """
        if not request.path.startswith(self._heads):
            return None
        for path in dict.fromkeys((request.encoded_path, request.path)):
            for method in self.methods:
                if method.verb == request.method and (match := method.pattern.fullmatch(path)) is not None:
                    return method, {name: unquote(value) for name, value in match.groupdict().items()}
        return None

    def find_upload(self, request: Request) -> tuple[Method, dict[str, str]] | None:
        """Return the method to which the request sends a file. A request of a session may have any verb."""
        session = "upload_id" in request.query
        for method in self._uploads:
            if not session and method.verb != request.method:
                continue
            if method.upload is not None and (match := method.upload.fullmatch(request.encoded_path)) is not None:
                return method, {name: unquote(value) for name, value in match.groupdict().items()}
        return None


@cache
def api(name: str) -> Api:
    """Return the API of this name and version, such as ``drive.v3``."""
    return Api(json.loads(lzma.decompress((DOCUMENTS / f"{name}.json.xz").read_bytes())))


def _method(base: str, spec: Mapping[str, Any]) -> Method:
    name = str(spec["id"]).partition(".")[2]
    parameters = spec.get("parameters", {})
    return Method(
        name=name,
        verb=spec["httpMethod"],
        pattern=_pattern(base + spec["path"], parameters),
        write=spec["httpMethod"] != "GET" and name.rpartition(".")[2] not in _READS,
        parameters={name: held["type"] for name, held in parameters.items() if held["location"] == "query"},
        answer=spec.get("response", {}).get("$ref", ""),
        scopes=tuple(spec.get("scopes", ())),
        body=spec.get("request", {}).get("$ref", ""),
        words={name: frozenset(held["enum"]) for name, held in parameters.items() if "enum" in held},
        upload=_upload(spec, parameters),
    )


def _upload(spec: Mapping[str, Any], parameters: Mapping[str, Any]) -> re.Pattern[str] | None:
    protocols = spec.get("mediaUpload", {}).get("protocols", {})
    paths = [_pattern(held["path"], parameters).pattern for held in protocols.values()]
    if not paths:
        return None
    # Both paths differ by their first word alone.
    return re.compile("(?:/resumable)?" + min(paths, key=len), re.DOTALL)


def _methods(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from node.get("methods", {}).values()
    for resource in node.get("resources", {}).values():
        yield from _methods(resource)


def _precedence(path: str) -> tuple[int, int]:
    """Order paths so that a literal one comes before one with a parameter in its place."""
    return path.count("{"), -len(path)


def _pattern(path: str, parameters: Mapping[str, Any]) -> re.Pattern[str]:
    out = ""
    for piece in re.split(r"(\{[^}]*\})", path):
        if not piece.startswith("{"):
            # Google takes a slash before the verb of a method, too: ``…/ID/:batchUpdate``.
            out += re.escape(piece).replace(":", "/?:")
            continue
        name = piece.strip("{}+")
        shape = str(parameters.get(name, {}).get("pattern", "")).strip("^$")
        out += f"(?P<{name}>{shape or ('.+' if name in _WITH_SLASHES else '[^/]+')})"
    return re.compile(out, re.DOTALL)
