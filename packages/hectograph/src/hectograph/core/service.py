"""How an API comes into the emulator: one folder with one subclass of ``Service``, which holds behaviour only.

Google's discovery document of the API already gives routes, parameters, messages, scopes and upload paths
(``core/discovery.py``). A subclass declares the rest:

    class Tasks(Service):
        version = "tasks.v1"               # the document: core/documents/tasks.v1.json.xz
        envelope = CALENDAR                # how refusals are written: EDITORS, DRIVE, CALENDAR or GMAIL (core/error.py)
        strict = False                     # unknown query parameters are ignored, not refused
        limits = {"queries": Limit(per_user=600, per_project=10_000)}     # a minute (core/quota.py)
        switches = {"tasks_position": ("first", "last")}                  # unknown behaviour; the first is the default

        def __init__(self, world, base):
            super().__init__(world, base)
            self.lists = {}                # the state of the API: ordinary Python objects

        def methods(self):                 # Google's method name: the function that plays it
            return {"tasks.insert": self.insert, "tasks.list": self.list}

        def insert(self, call: MethodCall) -> Any:
            given = call.body()            # checked against the schema; unknown fields are refused already
            ...
            return {"kind": "tasks#task", ...}     # JSON, cut to ``fields``; or a Response, sent as it is

        def charges(self, call): return [Charge("queries")]
        def dump(self): ...                # JSON of the state, for ``--file``; ``load`` and ``clear`` likewise

``hectograph/apis.py`` lists the classes: one line there, and the API is served. What is done for every API alike:

* routing, also of uploads (``call.media`` has the file) and batches; a method that is not in ``methods`` answers 501;
* the lock: a method runs alone, ``self.world.lock`` is held, and a method that writes marks the world as changed;
* faults by Google's method names (``core/faults.py``), counters, quotas, sign-in and scopes (``core/people.py``);
* ``fields`` masks, typed query parameters, and the refusals of both in the words of Google.

A refusal is raised: ``self.refuse(404, "Not Found", "notFound")``. The caller is ``call.caller`` (``.email``); time is
``self.world.now()``. APIs import nothing of each other but the file list of Drive. They meet in ``core/``: a mail that
leaves (an invitation, a share notice) is given to ``self.world.outgoing.send(...)``, and Gmail takes it from there. An
API whose files lie in Drive registers an ``Editor`` (``drive/editor.py``). Pages for people: ``pages`` and ``show``;
what people do there and by ``POST /emulator/person``: ``acts``. What is posted to an address, such as an event for a
Chat app: ``self.world.delivery``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from hectograph.core import discovery, fieldmask, quota, schema
from hectograph.core.discovery import Method
from hectograph.core.error import EDITORS, ApiError, Envelope, not_built
from hectograph.core.faults import Call
from hectograph.core.fieldmask import Mask
from hectograph.core.http import Request, Response
from hectograph.core.people import Caller
from hectograph.core.quota import Charge, Exceeded, Limit

if TYPE_CHECKING:
    from hectograph.world import World

#: What every method takes although no document says so.
_UNDECLARED = frozenset({"userIp", "$userProject"})

_UNBOUND = (
    "Invalid JSON payload received. Unknown name \"{name}\": Cannot bind query parameter. Field '{name}' could not be "
    "found in request message."
)


@dataclass(frozen=True)
class Media:
    """A file that came with a request."""

    content: bytes
    content_type: str


@dataclass
class MethodCall:
    """One call of one method."""

    api: discovery.Api
    method: Method
    #: The values of the path's parameters.
    parts: Mapping[str, str]
    request: Request
    caller: Caller
    #: What the fault rules see of this call.
    seen: Call
    media: Media | None = None
    #: Which parts of the answer are wanted; empty means all.
    mask: Mask = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.method.name

    def body(self, also: frozenset[str] = frozenset(), *, loose: bool = False) -> dict[str, Any]:
        """Return the body, checked against the method's message; fields named in ``also`` are let through.

        With ``loose`` unknown fields are ignored: the older APIs do so.
        """
        message = self.method.body
        at = "" if message.endswith("Request") else schema.snake(message[:1].lower() + message[1:])
        found: dict[str, Any] = self.api.schema.check(message, self.request.json(), at, also=also, loose=loose)
        return found

    def text(self, name: str, default: str = "") -> str:
        return self.request.one(name, default)

    def texts(self, name: str) -> list[str]:
        """Return every value of a parameter that may be repeated."""
        return self.request.query.get(name, [])

    def flag(self, name: str, default: bool = False) -> bool:
        return self.request.flag(name) if name in self.request.query else default

    def number(self, name: str, default: int, most: int | None = None) -> int:
        """Return a whole number; more than ``most`` counts as ``most``."""
        text = self.request.one(name)
        value = int(text) if text else default
        return value if most is None else min(value, most)


#: A method's behaviour: it returns JSON, or a whole answer.
Play = Callable[[MethodCall], Any]

#: What a person does: it takes the JSON of ``POST /emulator/person`` and returns JSON.
Act = Callable[[Mapping[str, Any]], Any]


class Service:
    """One version of one of Google's APIs. The head of this module says how to write one."""

    version: ClassVar[str]
    #: What stands before a method's name in counters and fault rules, unless it is the API's name.
    prefix: ClassVar[str] = ""
    envelope: ClassVar[Envelope] = EDITORS
    #: Whether a query parameter that the document does not have is refused.
    strict: ClassVar[bool] = True
    #: Query parameters that it takes although no document says so.
    also_takes: ClassVar[frozenset[str]] = frozenset()
    #: How much of what a minute allows. A Docs Editors API counts "read" and "write".
    limits: ClassVar[Mapping[str, Limit]] = {}
    #: Behaviours of Google that nobody has verified: the possible words, the likeliest first.
    switches: ClassVar[Mapping[str, tuple[Any, ...]]] = {}
    #: The first words of the addresses of its pages for people, such as ``/mail``.
    pages: ClassVar[tuple[str, ...]] = ()

    def __init__(self, world: World, base: Callable[[], str]) -> None:
        self.world = world
        #: Returns the emulator's own address, with a slash at its end.
        self.base = base
        self.api = discovery.api(self.version)
        self.name = self.api.name
        world.services[self.version] = self
        world.quota.declare(self.name, {**world.quota.limits.get(self.name, {}), **self.limits})
        for name, words in self.switches.items():
            world.switches.declare(name, words)

    def methods(self) -> Mapping[str, Play]:
        """Return what is played, by Google's method names. Everything else answers 501."""
        raise NotImplementedError

    def plays(self, name: str) -> bool:
        """Whether a method has behaviour."""
        return name in self.methods()

    def acts(self) -> Mapping[str, Act]:
        """Return what people do, by the words of ``do``: ``mail.reply``, ``calendar.answer``."""
        return {}

    def charges(self, call: MethodCall) -> Iterable[Charge]:
        """Return what a call costs: one read or one write, where those are limited."""
        return [Charge("write" if call.method.write else "read")] if self.limits else []

    def over(self, found: Exceeded) -> ApiError:
        """Return the answer to a call that a limit refuses."""
        noun = found.counter.replace("_", " ")
        return quota.exceeded(self.api.host, noun[:1].upper() + noun[1:], found.scope)

    def check_upload(self, call: MethodCall) -> None:
        """Refuse an upload before its bytes come, where there is a reason to."""

    def show(self, request: Request) -> Response:
        """Answer a request below one of ``pages``."""
        raise NotImplementedError

    def dump(self) -> Any:
        """Return the state as JSON."""
        return {}

    def load(self, held: Any) -> None:
        """Take the state that ``dump`` returned."""

    def clear(self) -> None:
        """Forget everything."""

    # What follows is the same for all.

    def kind(self, method: Method) -> str:
        return f"{self.prefix or self.name}.{method.name}"

    def refuse(self, code: int, message: str, reason: str = "", **more: Any) -> ApiError:
        """Return a refusal in this API's form, to be raised."""
        return self.envelope.refusal(code, message, reason, **more)

    def permit(self, call: MethodCall) -> None:
        """Refuse a token none of whose scopes allows the method."""
        scopes = call.caller.scopes
        if scopes is None or not call.method.scopes or scopes.intersection(call.method.scopes):
            return
        words = [word[:1].upper() + word[1:] for word in call.name.split(".")]
        raise self.envelope.scope_missing(self.api.host, ".".join([*self.version.split("."), *words]))

    def handle(self, call: MethodCall) -> Response:
        """Answer a call that may be served."""
        play = self.methods().get(call.name)
        if play is None:
            raise not_built(self.kind(call.method))
        self.check(call)
        call.mask = self.wanted(call)
        with self.world.lock:
            found = play(call)
            if call.method.write:
                self.world.dirty()
        return self._answered(found, call)

    def _answered(self, found: Any, call: MethodCall) -> Response:
        """Return what a method returned as an answer, cut to the wanted fields."""
        if isinstance(found, Response):
            return found
        return Response.of(fieldmask.chosen(found, call.mask) if call.mask else found)

    def check(self, call: MethodCall) -> None:
        """Refuse parameters that the method does not have, and values that are not of their type."""
        known = {**self.api.common, **call.method.parameters}
        if call.method.verb == "GET":
            known.pop("uploadType", None)
        wrong: list[tuple[str, str]] = []
        for name, values in call.request.query.items():
            real = name if name in known else schema.camel(name)
            if real not in known:
                if self.strict and name not in _UNDECLARED | self.also_takes and call.media is None:
                    wrong.append(("", _UNBOUND.format(name=name)))
            elif name not in self.api.common:
                wrong += _mistyped(self.api, call.method, real, known[real], values)
        if wrong:
            raise self.mistyped(wrong)

    def mistyped(self, wrong: list[tuple[str, str]]) -> ApiError:
        """Return the refusal of a call whose parameters are not as the document has them."""
        made = ApiError.bad_request(wrong)
        return self.refuse(400, made.message, "invalid", details=made.body["error"]["details"])

    def wanted(self, call: MethodCall) -> Mask:
        """Return the mask of the parameter ``fields``; one that names no field of the answer is refused."""
        text = call.request.one("fields")
        if not text:
            return {}
        try:
            mask = fieldmask.parse(text)
        except fieldmask.BadMask as error:
            raise self.bad_field(text) from error
        for path in fieldmask.paths(mask):
            if not self.api.schema.has_path(call.method.answer, path):
                raise self.bad_field(".".join(path))
        return mask

    def bad_field(self, path: str) -> ApiError:
        text = f"Error expanding 'fields' parameter. Cannot find matching fields for path '{path}'."
        detail = {
            "@type": "type.googleapis.com/google.rpc.BadRequest",
            "fieldViolations": [{"field": path, "description": text}],
        }
        return self.refuse(400, "Request contains an invalid argument.", details=[detail])


def _mistyped(
    api: discovery.Api, method: Method, name: str, kind: str, values: Iterable[str]
) -> Iterable[tuple[str, str]]:
    at = schema.snake(name)
    words = method.words.get(name)
    for value in values:
        if words is not None and value not in words:
            yield at, f"Invalid value at '{at}' ({api.schema.package}{name[:1].upper()}{name[1:]}), {json.dumps(value)}"
        elif kind == "boolean" and value.lower() not in schema.WORDS:
            yield at, f"Invalid value at '{at}' (TYPE_BOOL), {json.dumps(value)}"
        elif kind == "integer" and not re.fullmatch(r"-?\d+", value):
            yield at, f"Invalid value at '{at}' (TYPE_INT32), {json.dumps(value)}"
