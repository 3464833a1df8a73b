"""Spaces themselves, who is in them, the reactions to messages, and files beside them."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hectograph.chat.space import Json, Space, app, person
from hectograph.core.http import Response
from hectograph.core.people import number_of
from hectograph.core.service import MethodCall, Play

if TYPE_CHECKING:
    from hectograph.chat.api import ChatApi


class Spaces:
    def __init__(self, api: ChatApi) -> None:
        self.api = api
        self.files: dict[str, tuple[str, bytes]] = {}

    def methods(self) -> Mapping[str, Play]:
        return {
            "spaces.get": lambda call: self.api.place(call).json(),
            "spaces.list": self.list_spaces,
            "spaces.create": self.create,
            "spaces.setup": self.set_up,
            "spaces.patch": self.patch,
            "spaces.delete": self.delete,
            "spaces.findDirectMessage": self.direct,
            "spaces.members.list": self.members,
            "spaces.members.get": self.member,
            "spaces.members.create": self.add_member,
            "spaces.members.delete": self.remove_member,
            "spaces.messages.reactions.create": self.react,
            "spaces.messages.reactions.list": self.reactions,
            "media.upload": self.upload,
            "media.download": self.download,
        }

    def made(self, title: str, kind: str = "SPACE", name: str = "", *, threaded: bool = True) -> Space:
        """Make a space with a webhook of its own."""
        key = f"spaces/{name or 'AAAA' + self.api.mint.word(7)}"
        if key in self.api.held:
            raise ValueError(f"the space {key} is there already")
        space = Space(key, title, kind, threaded)
        space.webhook = {"key": "emulated-key", "token": self.api.mint.word(40)}
        self.api.held[key] = space
        return space

    def list_spaces(self, call: MethodCall) -> Any:
        kinds = set(re.findall(r'"(\w+)"', call.text("filter")))
        email = call.caller.email
        found = [
            one.json()
            for one in self.api.held.values()
            if (not kinds or one.kind in kinds)
            and (not one.members or email in one.members or self.api.is_app(call.caller))
        ]
        return self.api.page(call, "spaces", found, 100)

    def create(self, call: MethodCall) -> Any:
        given = call.body()
        if given.get("spaceType", "SPACE") == "SPACE" and not given.get("displayName"):
            raise self.api.refuse(400, "space.display_name is required for a space of the type SPACE.")
        space = self.made(given.get("displayName", ""), given.get("spaceType", "SPACE"))
        self._join(space, call.caller.email, owner=True)
        return space.json()

    def set_up(self, call: MethodCall) -> Any:
        given = call.body()
        wanted = [one.get("member", {}).get("name", "").removeprefix("users/") for one in given.get("memberships", [])]
        spec = given.get("space", {})
        kind = spec.get("spaceType", "SPACE")
        if kind == "DIRECT_MESSAGE":
            found = self._direct(call.caller.email, wanted[0] if wanted else "app")
            if found is not None:
                return found.json()
        space = self.made(spec.get("displayName", ""), kind, threaded=kind != "DIRECT_MESSAGE")
        for email in (call.caller.email, *filter(None, wanted)):
            self._join(space, email, owner=email == call.caller.email)
        return space.json()

    def _join(self, space: Space, email: str, *, owner: bool = False) -> Json:
        bot = email.endswith(".gserviceaccount.com") or email == "app"
        who = app(email) if bot else person(email)
        made = {
            "name": f"{space.name}/members/{number_of(email)}",
            "state": "JOINED",
            "role": "ROLE_MANAGER" if owner else "ROLE_MEMBER",
            "member": {key: value for key, value in who.items() if key != "email"},
        }
        space.members[email] = made
        if bot:
            self.api.events.added(space)
        return made

    def join(self, space: Space, email: str) -> Json:
        return space.members.get(email) or self._join(space, email)

    def _direct(self, one: str, other: str) -> Space | None:
        for space in self.api.held.values():
            if space.kind == "DIRECT_MESSAGE" and {one, other} <= space.members.keys():
                return space
        return None

    def direct(self, call: MethodCall) -> Any:
        found = self._direct(call.caller.email, call.text("name").removeprefix("users/"))
        if found is None:
            raise self.api.gone()
        return found.json()

    def patch(self, call: MethodCall) -> Any:
        space, given = self.api.place(call), call.body()
        space.title = given.get("displayName", space.title)
        return space.json()

    def delete(self, call: MethodCall) -> Any:
        space = self.api.place(call)
        del self.api.held[space.name]
        return {}

    def members(self, call: MethodCall) -> Any:
        return self.api.page(call, "memberships", list(self.api.place(call).members.values()), 100)

    def _member(self, call: MethodCall) -> tuple[Space, str]:
        space, key = self.api.place(call), call.parts["name"].rpartition("/")[2]
        for email, held in space.members.items():
            if held["name"].endswith("/" + key) or email == key:
                return space, email
        raise self.api.gone()

    def member(self, call: MethodCall) -> Any:
        space, email = self._member(call)
        return space.members[email]

    def add_member(self, call: MethodCall) -> Any:
        name = str(call.body().get("member", {}).get("name", "")).removeprefix("users/")
        if "@" not in name and name != "app":
            raise self.api.refuse(400, "The member must be named by an address: users/ann@example.com")
        return self._join(self.api.place(call), name)

    def remove_member(self, call: MethodCall) -> Any:
        space, email = self._member(call)
        return space.members.pop(email)

    def react(self, call: MethodCall) -> Any:
        space = self.api.space(call.parts["parent"])
        found = space.find(call.parts["parent"])
        if found is None:
            raise self.api.gone()
        name = f"{found.name}/reactions/{self.api.mint.word(8)}"
        space.reactions[name] = {"name": name, **call.body(), "user": self.api.sender(call.caller)}
        return space.reactions[name]

    def reactions(self, call: MethodCall) -> Any:
        space = self.api.space(call.parts["parent"])
        found = [one for name, one in space.reactions.items() if name.startswith(call.parts["parent"] + "/")]
        return self.api.page(call, "reactions", found, 25)

    def upload(self, call: MethodCall) -> Any:
        if call.media is None:
            raise self.api.refuse(400, "There is no file in the request.")
        token = base64.urlsafe_b64encode(self.api.mint.word(30).encode()).decode()
        self.files[token] = (call.media.content_type, call.media.content)
        return {"attachmentDataRef": {"resourceName": token, "attachmentUploadToken": token}}

    def download(self, call: MethodCall) -> Any:
        kind, content = self.files.get(call.parts["resourceName"], ("", b""))
        if not kind:
            raise self.api.gone()
        return Response(200, content, {"Content-Type": kind})
