"""The Chat v1 API: spaces, members and messages."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from hectograph.chat import pages
from hectograph.chat.events import Events
from hectograph.chat.space import Json, Message, Mint, Space, app, micros, person, shown
from hectograph.chat.spaces import Spaces
from hectograph.core import schema
from hectograph.core.error import ApiError
from hectograph.core.http import Request, Response
from hectograph.core.people import Caller
from hectograph.core.quota import Charge, Limit
from hectograph.core.service import Act, MethodCall, Play, Service

if TYPE_CHECKING:
    from hectograph.world import World

_BOT = "https://www.googleapis.com/auth/chat.bot"

_CLIENT_ID = re.compile(r"client-[a-z0-9-]{1,56}")

#: The most bytes of a message, and the longest key of a thread.
_LARGEST, _LONGEST_KEY = 32_000, 4_000

#: What an update may name.
_CHANGEABLE = ("text", "attachment", "cards", "cardsV2", "accessoryWidgets", "quotedMessageMetadata")

_WEBHOOK = "webhook"


class ChatApi(Service):
    version = "chat.v1"
    pages = ("/chat",)
    also_takes = frozenset({"token"})
    limits: ClassVar = {
        "read": Limit(per_user=900, per_project=3000),
        "message_write": Limit(per_user=3000, per_project=3000),
        "write": Limit(per_user=300, per_project=600),
        "space_write": Limit(per_user=60, per_project=1_000_000),
    }
    switches: ClassVar = {
        # Whether a webhook honours ``requestId`` and ``messageId``.
        "webhook_request_id": (False, True),
    }

    def __init__(self, world: World, base: Callable[[], str]) -> None:
        super().__init__(world, base)
        self.held: dict[str, Space] = {}
        self.mint = Mint()
        self.events = Events(self)
        self.spaces = Spaces(self)

    def methods(self) -> Mapping[str, Play]:
        messages: dict[str, Play] = {
            "create": self.create,
            "get": self.get,
            "list": self.list_messages,
            "patch": self.patch,
            "update": self.patch,
            "delete": self.delete,
        }
        return {**{f"spaces.messages.{name}": play for name, play in messages.items()}, **self.spaces.methods()}

    def acts(self) -> Mapping[str, Act]:
        return self.events.acts()

    def show(self, request: Request) -> Response:
        return pages.show(self, request)

    def charges(self, call: MethodCall) -> Iterable[Charge]:
        if not call.method.write:
            return [Charge("read")]
        if not call.name.startswith("spaces.messages."):
            return [Charge("write")]
        place = (call.parts.get("parent") or call.parts.get("name", "")).split("/messages")[0]
        return [Charge("message_write"), Charge("space_write", key=place)]

    def dump(self) -> Any:
        files = {key: [kind, base64.b64encode(content).decode()] for key, (kind, content) in self.spaces.files.items()}
        return {"spaces": [one.dump() for one in self.held.values()], "app": self.events.app, "files": files}

    def load(self, held: Any) -> None:
        self.events.app = held["app"]
        self.spaces.files = {key: (kind, base64.b64decode(text)) for key, (kind, text) in held["files"].items()}
        self.held = {one["name"]: Space.load(one) for one in held["spaces"]}

    def clear(self) -> None:
        self.held.clear()

    # Who calls, and where.

    def is_app(self, caller: Caller) -> bool:
        """Whether a Chat app calls, and not a person: cards are for apps alone."""
        if caller.scopes is not None:
            return _BOT in caller.scopes
        return caller.email.endswith(".gserviceaccount.com")

    def sender(self, caller: Caller) -> Json:
        return app(caller.email) if self.is_app(caller) else person(caller.email)

    def gone(self) -> ApiError:
        return self.refuse(404, "Requested entity was not found.")

    def space(self, name: str) -> Space:
        found = self.held.get("/".join(name.split("/")[:2]))
        if found is None:
            raise self.gone()
        return found

    def place(self, call: MethodCall) -> Space:
        """Return the space that the path names, where the caller is in it."""
        space = self.space(call.parts.get("parent") or call.parts["name"])
        if self._by_webhook(call, space):
            return space
        if space.members and call.caller.email not in space.members and not self.is_app(call.caller):
            raise self.refuse(403, "The caller does not have permission")
        return space

    def _by_webhook(self, call: MethodCall, space: Space) -> bool:
        """Whether a webhook calls; one whose key or token is wrong is refused."""
        given = {name: call.text(name) for name in ("key", "token")}
        if not given["token"] or call.request.headers.get("authorization"):
            return False
        if given != space.webhook:
            raise self.envelope.bad_credentials()
        return True

    # Messages.

    def create(self, call: MethodCall) -> Any:
        space = self.place(call)
        webhook = self._by_webhook(call, space)
        given = self._given(call, webhook)
        owner = _WEBHOOK if webhook else call.caller.email
        request, client_id = call.text("requestId"), call.text("messageId")
        if webhook and not self.world.switches["webhook_request_id"]:
            request = client_id = ""
        if request in space.requests:
            return self._repeated(space, space.requests[request], owner, call, webhook)
        if client_id:
            self._check_client_id(space, client_id)
        thread, reply = self._thread(space, given, call, owner)
        sender = (
            {"name": "users/webhook", "displayName": "Webhook", "type": "BOT"} if webhook else self.sender(call.caller)
        )
        made = self.add(space, given, sender, owner, thread, reply, client_id)
        if request:
            space.requests[request] = made.name
        return self._answer(made, space, webhook)

    def _given(self, call: MethodCall, webhook: bool) -> Json:
        given = call.body()
        size = len(json.dumps(given, ensure_ascii=False).encode())
        if size > _LARGEST:
            raise self.refuse(400, f"Message is too large: {size} bytes. The limit is {_LARGEST} bytes.")
        if not any(given.get(name) for name in _CHANGEABLE):
            place = call.parts.get("parent") or call.parts["name"]
            text = (
                f"Message cannot be empty. Discarding empty create message request in {'/'.join(place.split('/')[:2])}."
            )
            raise self.refuse(400, text)
        cards = given.get("cards") or given.get("cardsV2") or given.get("accessoryWidgets")
        if cards and not webhook and not self.is_app(call.caller):
            raise self.refuse(400, "Message cannot have cards for requests carrying human credentials.")
        return given

    def _repeated(self, space: Space, name: str, owner: str, call: MethodCall, webhook: bool) -> Any:
        """Answer a request id that was there: with the first message, also if the second one differs."""
        first = space.messages[name]
        if first.owner != owner:
            text = "The request ID was used by another caller."
            raise self.refuse(409, text, status="ALREADY_EXISTS")
        return self._answer(first, space, webhook)

    def _check_client_id(self, space: Space, client_id: str) -> None:
        if not _CLIENT_ID.fullmatch(client_id):
            text = (
                "The message ID must begin with `client-`, hold up to 63 characters, and only lowercase letters, "
                "numbers, and hyphens."
            )
            raise self.refuse(400, text)
        if any(one.client_id == client_id for one in space.messages.values()):
            text = f"The message ID {client_id} is already used in this space."
            raise self.refuse(409, text, status="ALREADY_EXISTS")

    def _thread(self, space: Space, given: Json, call: MethodCall, owner: str) -> tuple[str, bool]:
        """Return the thread of a new message, "" for a new one, and whether the message is a reply."""
        option = call.text("messageReplyOption")
        wanted = given.get("thread", {})
        name, key = str(wanted.get("name", "")), str(wanted.get("threadKey", "")) or call.text("threadKey")
        if len(key) > _LONGEST_KEY:
            raise self.refuse(400, f"The thread key is longer than {_LONGEST_KEY} characters.")
        if not option.startswith("REPLY_") or not space.threaded:
            return "", False
        found = name if any(one.thread == name for one in space.messages.values()) else ""
        if key:
            found = space.keys.get(f"{owner} {key}", "")
        if found:
            return found, True
        if option == "REPLY_MESSAGE_OR_FAIL":
            raise self.gone()
        if key:
            space.keys[f"{owner} {key}"] = made = f"{space.name}/threads/{self.mint.word()}"
            return made, False
        return "", False

    def add(
        self, space: Space, given: Json, sender: Json, owner: str, thread: str, reply: bool, client_id: str = ""
    ) -> Message:
        """Put a message into a space, in a new thread unless one is named."""
        thread = thread or f"{space.name}/threads/{self.mint.word()}"
        word = thread.rpartition("/")[2]
        key = f"{word}.{self.mint.word()}" if reply else f"{word}.{word}"
        name = f"{space.name}/messages/{key}"
        fields = {k: v for k, v in given.items() if k not in {"createTime", "clientAssignedMessageId", "thread"}}
        made = Message(name, thread, sender, owner, self.world.now(), fields, client_id, reply)
        space.messages[name] = made
        if owner == _WEBHOOK or sender["type"] == "BOT":
            line = str(fields.get("text") or "a card").split("\n")[0]
            self.world.outgoing.send("chat", owner, (space.name,), line, json.dumps(fields, ensure_ascii=False))
        return made

    def _answer(self, made: Message, space: Space, webhook: bool) -> Json:
        if webhook:
            return {**made.fields, "name": made.name, "thread": {"name": made.thread}}
        return shown(made, space)

    def message(self, call: MethodCall, space: Space) -> Message:
        found = space.find(call.parts["name"])
        if found is None:
            raise self.gone()
        return found

    def get(self, call: MethodCall) -> Any:
        space = self.place(call)
        return shown(self.message(call, space), space)

    def patch(self, call: MethodCall) -> Any:
        """Change a message of one's own; with ``allowMissing`` a message under a name of one's own is made."""
        space, name = self.place(call), call.parts["name"]
        given = call.body()
        found, key = space.find(name), name.rpartition("/")[2]
        if found is None:
            if not call.flag("allowMissing") or not key.startswith("client-"):
                raise self.gone()
            self._check_client_id(space, key)
            given = self._given(call, webhook=False)
            made = self.add(space, given, self.sender(call.caller), call.caller.email, "", False, key)
            return shown(made, space)
        if found.owner != call.caller.email:
            raise self.refuse(403, "The caller does not have permission")
        for field in self._mask(call):
            found.fields.pop(field, None)
            if field in given:
                found.fields[field] = given[field]
        if not any(found.fields.get(field) for field in _CHANGEABLE):
            raise self.refuse(400, "Message cannot be empty.")
        found.updated = self.world.now()
        return shown(found, space)

    def _mask(self, call: MethodCall) -> list[str]:
        names = [schema.camel(word.strip()) for word in call.text("updateMask").split(",") if word.strip()]
        if not names:
            raise self.refuse(400, "Update mask is required.")
        if names == ["*"]:
            return list(_CHANGEABLE)
        wrong = [name for name in names if name not in _CHANGEABLE]
        if wrong:
            raise self.refuse(400, f"Invalid update mask provided. Unsupported update path: {wrong[0]}")
        return names

    def delete(self, call: MethodCall) -> Any:
        space = self.place(call)
        found = self.message(call, space)
        if found.owner != call.caller.email:
            raise self.refuse(403, "The caller does not have permission")
        replies = [one for one in space.living() if one.thread == found.thread and one is not found and one.reply]
        if replies and not found.reply:
            if not call.flag("force"):
                text = "The message has threaded replies. Set force to true to delete it with them."
                raise self.refuse(400, text, status="FAILED_PRECONDITION")
            for one in replies:
                one.deleted = self.world.now()
        found.deleted = self.world.now()
        return {}

    def list_messages(self, call: MethodCall) -> Any:
        space = self.place(call)
        found = list(space.messages.values()) if call.flag("showDeleted") else space.living()
        for clause in filter(None, re.split(r"\s+AND\s+", call.text("filter"))):
            found = [one for one in found if self._passes(clause, one)]
        if "desc" in call.text("orderBy").lower():
            found.reverse()
        return self.page(call, "messages", [shown(one, space) for one in found], 25)

    def _passes(self, clause: str, message: Message) -> bool:
        match = re.fullmatch(r'\s*(create_time|createTime|thread\.name)\s*(>=|<=|=|>|<)\s*"?([^"]+)"?\s*', clause)
        if match is None:
            raise self.refuse(400, f"Invalid filter: {clause}")
        name, sign, value = match.groups()
        mine = message.thread if name == "thread.name" else micros(message.created)
        if name != "thread.name":
            value = value.replace("Z", ".000000Z") if "." not in value else value
        return {">": mine > value, "<": mine < value, ">=": mine >= value, "<=": mine <= value, "=": mine == value}[
            sign
        ]

    def page(self, call: MethodCall, word: str, found: list[Json], usual: int) -> Json:
        size, token = call.number("pageSize", usual, 1000) or usual, call.text("pageToken")
        if token and not token.isdigit():
            raise self.refuse(400, "Invalid page token.")
        start = int(token or 0)
        out: Json = {word: found[start : start + size]} if found[start : start + size] else {}
        if start + size < len(found):
            out["nextPageToken"] = str(start + size)
        return out
