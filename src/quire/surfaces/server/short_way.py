"""The short way to an answer: the API's addresses, found in a table and called with arguments that are checked once.

FastAPI documents the addresses, and answers whatever this table does not take: an address that it does not know,
somebody who may not, an argument that does not fit. So every refusal is FastAPI's, and what is in order is spared its
generic routing and dependencies, which cost more than the answer.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args, get_origin
from urllib.parse import parse_qsl

from fastapi import params
from fastapi.routing import APIRoute
from pydantic import BaseModel, TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from quire.surfaces.server.auth.gate import Actor
from quire.surfaces.server.auth.tokens import Role

#: Makes what an endpoint gets as ``at`` from the request and whoever came.
Maker = Callable[[Request, Actor], Any]


class _Misfit(Exception):
    """It goes the long way."""


@dataclass(slots=True)
class _Argument:
    """One argument of an endpoint, from the path, the query or a header."""

    name: str
    key: str
    kind: type
    adapter: TypeAdapter[Any]
    many: bool
    default: Any


@dataclass(slots=True)
class _Way:
    """One address: how it is recognised, what it takes, who may."""

    endpoint: Callable[..., Any]
    #: The parts between slashes; a name in braces takes any.
    parts: tuple[str, ...]
    role: Role
    arguments: list[_Argument] = field(default_factory=list)
    #: Names of arguments that are read from the path as they are, with what they go through.
    names: dict[str, Callable[[str], str]] = field(default_factory=dict)
    body: tuple[str, TypeAdapter[Any], bool] | None = None

    def fits(self, parts: Sequence[str]) -> bool:
        return all(mine == its or (mine[:1] == "{" and its) for mine, its in zip(self.parts, parts, strict=True))


class ShortWay:
    """Stands behind the gate and before FastAPI."""

    def __init__(self, inner: ASGIApp, ways: Iterable[tuple[APIRoute, _Way]], make: Maker) -> None:
        self.inner = inner
        self.make = make
        self._fixed: dict[tuple[str, str], _Way] = {}
        self._open: dict[tuple[str, int], list[_Way]] = {}
        for route, way in ways:
            for method in route.methods or ():
                if "{" in route.path:
                    self._open.setdefault((method, len(way.parts)), []).append(way)
                else:
                    self._fixed[method, route.path] = way

    def find(self, method: str, path: str) -> tuple[_Way, tuple[str, ...]] | None:
        """The address that this is, with its parts."""
        way = self._fixed.get((method, path))
        if way is not None:
            return way, ()
        parts = tuple(path.split("/"))
        for way in self._open.get((method, len(parts)), ()):
            if way.fits(parts):
                return way, parts
        return None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = self.find(scope["method"], scope["path"]) if scope["type"] == "http" else None
        actor: Actor | None = scope.get("state", {}).get("actor")
        if found is None or actor is None or actor.role.rank < found[0].role.rank:
            await self.inner(scope, receive, send)
            return
        way, parts = found
        read = _Read(receive)
        try:
            arguments = _arguments(way, parts, scope)
            if way.body is not None:
                arguments |= await _body(way.body, scope, read)
        except (_Misfit, ValidationError, ValueError):
            await self.inner(scope, read.again, send)
            return
        request = Request(scope, receive)
        answer = await way.endpoint(at=self.make(request, actor), **arguments)
        await answer(scope, receive, send)


class _Read:
    """A body that was read and can be read again."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._kept: list[Message] = []

    async def all(self) -> bytes:
        parts = []
        while True:
            message = await self._receive()
            self._kept.append(message)
            if message["type"] != "http.request":
                raise _Misfit
            parts.append(message.get("body", b""))
            if not message.get("more_body", False):
                return b"".join(parts)

    async def again(self) -> Message:
        return self._kept.pop(0) if self._kept else await self._receive()


def _arguments(way: _Way, parts: tuple[str, ...], scope: Scope) -> dict[str, Any]:
    """Return the arguments from path, query and headers; ``ValidationError`` or ``_Misfit``: one does not fit."""
    arguments: dict[str, Any] = {}
    for mine, its in zip(way.parts, parts, strict=False):
        if mine[:1] == "{" and (read := way.names.get(mine[1:-1])) is not None:
            if len(its) > 500:
                raise _Misfit
            arguments[mine[1:-1]] = read(its)
    if not way.arguments:
        return arguments
    query: dict[str, list[str]] | None = None
    for argument in way.arguments:
        given: list[str] | None
        if argument.kind is params.Query:
            if query is None:
                query = {}
                for key, value in parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True):
                    query.setdefault(key, []).append(value)
            given = query.get(argument.key)
        elif argument.kind is params.Header:
            key_ = argument.key.encode()
            given = [value.decode("latin-1") for key, value in scope["headers"] if key == key_] or None
        else:
            given = [parts[way.parts.index("{" + argument.key + "}")]]
        if given is None:
            if argument.default is inspect.Parameter.empty:
                raise _Misfit
            arguments[argument.name] = argument.default
        else:
            arguments[argument.name] = argument.adapter.validate_python(given if argument.many else given[-1])
    return arguments


async def _body(body: tuple[str, TypeAdapter[Any], bool], scope: Scope, read: _Read) -> dict[str, Any]:
    name, adapter, optional = body
    content = await read.all()
    if not content:
        if optional:
            return {name: None}
        raise _Misfit
    kinds = [value for key, value in scope["headers"] if key == b"content-type"]
    if not kinds or kinds[0].partition(b";")[0].strip().lower() != b"application/json":
        raise _Misfit
    return {name: adapter.validate_python(json.loads(content))}


def ways_of(
    routes: Iterable[Any], roles: Mapping[Any, Role], names: Mapping[Any, Callable[[str], str]]
) -> list[tuple[APIRoute, _Way]]:
    """The addresses that have a short way, for any application; reading their endpoints takes a while.

    ``roles``: the annotations that say who may. ``names``: those of names in the path, and their reading.
    """
    known = [(route, _way(route, roles, names)) for route in routes if isinstance(route, APIRoute)]
    return [(route, way) for route, way in known if way is not None]


def _way(route: APIRoute, roles: Mapping[Any, Role], names: Mapping[Any, Callable[[str], str]]) -> _Way | None:
    """What the table needs to know of an address; None: its endpoint takes something that is not known here."""
    way = _Way(route.endpoint, tuple(route.path.split("/")), Role.ADMIN)
    hints = inspect.get_annotations(route.endpoint, eval_str=True)
    known = False
    for name, parameter in inspect.signature(route.endpoint).parameters.items():
        hint = hints[name]
        default = parameter.default
        role = roles.get(hint)
        if role is not None:
            way.role, known = role, True
        elif hint in names:
            way.names[name] = names[hint]
        elif (model := _model(hint)) is not None:
            way.body = (name, TypeAdapter(model), default is None and model is not hint)
        else:
            kind: type = next((type(one) for one in get_args(hint)[1:] if isinstance(one, params.Param)), params.Query)
            if "{" + name + "}" in way.parts:
                kind = params.Path
            key = name.replace("_", "-") if kind is params.Header else name
            many = "list[" in str(get_args(hint)[0] if get_origin(hint) is not None else hint)
            way.arguments.append(_Argument(name, key, kind, TypeAdapter(hint), many, default))
    return way if known else None


def _model(hint: Any) -> type[BaseModel] | None:
    """Return the body's model, if this argument is the body."""
    for one in (hint, *get_args(hint)):
        if isinstance(one, type) and issubclass(one, BaseModel):
            return one
    return None
