"""The emulator's own calls, under ``/emulator``: faults, settings, clock, counters, the person, versions of a book.

| call | what |
|---|---|
| ``GET/POST/DELETE /emulator/faults`` | the rules of ``faults.py``; ``DELETE /emulator/faults/ID`` takes one away |
| ``GET/POST /emulator/settings`` | quotas, name lag, latency, account, switches |
| ``GET/POST /emulator/clock`` | ``{"now": iso}``, ``{"advance_seconds": n}``, ``{"real": true}`` |
| ``GET/DELETE /emulator/counters`` | requests by kind, user and status |
| ``POST /emulator/person`` | what a person does: at a sheet see ``person.py``, elsewhere ``acts`` of the API |
| ``GET /emulator/pushes`` | what was posted to Chat apps, channels and subscriptions |
| ``GET/POST /emulator/accounts`` | bearer tokens with account, scopes, OAuth client; see ``core/people.py`` |
| ``GET/POST /emulator/oauth`` | OAuth clients, delegation, impersonation; see ``signin.py`` |
| ``GET /emulator/outbox`` | what left the house: mails, invitations, share notices |
| ``GET /emulator/certs``, ``/emulator/jwks`` | the key by which the emulator signs what Google would sign |
| ``GET /emulator/books`` | ids, titles, versions |
| ``GET /emulator/books/ID/versions`` | the versions that can be restored |
| ``POST /emulator/reset`` | everything gone, as when just started |
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from hectograph.core import signing
from hectograph.core.clock import stamp
from hectograph.core.http import Request, Response
from hectograph.person import Person
from hectograph.signin import SignIn
from hectograph.world import World


class Control:
    def __init__(self, world: World, sign_in: SignIn) -> None:
        self.world = world
        self.sign_in = sign_in
        self.person = Person(world)

    def handle(self, request: Request) -> Response:
        path = request.path.removeprefix("/emulator").strip("/")
        try:
            return Response.of(self._run(request.method, path, request))
        except (ValueError, KeyError, TypeError, re.error) as error:
            return Response.of({"error": {"code": 400, "message": str(error)}}, 400)

    def _run(self, method: str, path: str, request: Request) -> Any:
        world = self.world
        head, _, rest = path.partition("/")
        match method, head:
            case "GET", "faults":
                return {"faults": world.faults.json()}
            case "POST", "faults":
                given = request.json()
                made = [world.faults.add(rule) for rule in (given if isinstance(given, list) else [given])]
                return {"faults": [rule.json() for rule in made]}
            case "DELETE", "faults":
                world.faults.remove(rest or None)
                if not rest:
                    world.ghosts.clear()
                return {"faults": world.faults.json()}
            case "GET", "settings":
                return world.settings()
            case "POST", "settings":
                world.set(request.json())
                return world.settings()
            case "GET", "clock":
                return self._clock()
            case "POST", "clock":
                return self._tell(request.json())
            case "GET", "counters":
                return {"counters": dict(sorted(world.counters.items()))}
            case "DELETE", "counters":
                world.counters.clear()
                return {"counters": {}}
            case "GET", "accounts":
                return {"accounts": [caller.json() for caller in world.people.declared.values()]}
            case "POST", "accounts":
                return world.people.declare(request.json()).json()
            case "GET", "oauth":
                return world.people.oauth
            case "POST", "oauth":
                return self.sign_in.set(request.json())
            case "GET", "outbox":
                return {"left": [one.json() for one in world.outgoing.left]}
            case "POST", "person":
                given = request.json()
                return world.act(given) if "." in str(given.get("do", "")) else self.person.act(given)
            case "GET", "pushes":
                return {"pushes": world.delivery.log}
            case "GET", "books":
                return self._versions(rest.partition("/")[0]) if rest else {"books": world.books()}
            case "GET", "certs":
                return {signing.key().key_id: signing.key().certificate()}
            case "GET", "jwks":
                return {"keys": [signing.key().jwk()]}
            case "POST", "reset":
                world.clear()
                return {}
            case _:
                raise ValueError(f"no such call: {method} /emulator/{path}; see control.py")

    def _versions(self, book_id: str) -> dict[str, Any]:
        shelf = self.world.library.shelf(book_id)
        listed = [{"version": book.version, "at": stamp(at)} for at, book in [*shelf.past, (shelf.at, shelf.current)]]
        return {"versions": listed}

    def _clock(self) -> dict[str, Any]:
        return {"now": stamp(self.world.now()), "told": self.world.clock.told}

    def _tell(self, given: dict[str, Any]) -> dict[str, Any]:
        clock = self.world.clock
        if given.get("real"):
            clock.tell(None)
        if "now" in given:
            told = datetime.fromisoformat(str(given["now"]))
            clock.tell(told if told.tzinfo else told.replace(tzinfo=UTC))
        if "advance_seconds" in given:
            clock.advance(float(given["advance_seconds"]))
        return self._clock()
