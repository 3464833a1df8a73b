"""What a Chat app hears, and what people do in spaces: ``POST /emulator/person`` and the page ``/chat``.

| do | takes |
|---|---|
| ``chat.space`` | ``title``, ``id``, ``threaded``: makes a space; answers its name and the address of its webhook |
| ``chat.app`` | ``url`` of the app, ``audience`` (its project number unless told), ``email`` |
| ``chat.write`` | ``as``, ``space``, ``text``, ``thread``: the app hears it as ``MESSAGE`` |
| ``chat.click`` | ``as``, ``message``, ``function`` or ``button`` (its text), ``inputs``: heard as ``CARD_CLICKED`` |
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hectograph.chat.space import Json, Message, Space, micros, person, shown
from hectograph.core import signing
from hectograph.core.quota import PROJECT
from hectograph.core.service import Act

if TYPE_CHECKING:
    from hectograph.chat.api import ChatApi

ISSUER = "chat@system.gserviceaccount.com"


class Events:
    def __init__(self, api: ChatApi) -> None:
        self.api = api
        #: Where the app listens, and as whom it writes.
        self.app: Json = {}

    def acts(self) -> Mapping[str, Act]:
        return {"chat.space": self.space, "chat.app": self.set_app, "chat.write": self.write, "chat.click": self.click}

    def space(self, given: Mapping[str, Any]) -> Any:
        made = self.api.spaces.made(
            str(given.get("title", "Space")), name=str(given.get("id", "")), threaded=bool(given.get("threaded", True))
        )
        self.api.world.dirty()
        return {"name": made.name, "webhook": self.webhook(made)}

    def webhook(self, space: Space) -> str:
        return f"{self.api.base()}v1/{space.name}/messages?key={space.webhook['key']}&token={space.webhook['token']}"

    def set_app(self, given: Mapping[str, Any]) -> Any:
        self.app = {
            "url": str(given["url"]),
            "audience": str(given.get("audience") or PROJECT),
            "email": str(given.get("email") or self.api.world.account),
        }
        self.api.world.dirty()
        return self.app

    def _space(self, name: str) -> Space:
        found = self.api.held.get("/".join(name.split("/")[:2]))
        if found is None:
            raise ValueError(f"there is no space {name!r}")
        return found

    def write(self, given: Mapping[str, Any]) -> Any:
        email, text = str(given["as"]), str(given["text"])
        space = self._space(str(given["space"]))
        thread = str(given.get("thread", ""))
        self.api.spaces.join(space, email)
        made = self.api.add(space, {"text": text}, person(email), email, thread, bool(thread))
        self._tell(space, email, {"type": "MESSAGE", "message": shown(made, space)}, made)
        self.api.world.dirty()
        return {"name": made.name, "thread": made.thread}

    def click(self, given: Mapping[str, Any]) -> Any:
        email = str(given["as"])
        space = self._space(str(given["message"]))
        message = space.find(str(given["message"]))
        if message is None:
            raise ValueError(f"there is no message {given['message']!r}")
        action = self._action(message, given)
        parameters = {one["key"]: one["value"] for one in action.get("parameters", ())}
        inputs = {
            name: {"stringInputs": {"value": value if isinstance(value, list) else [str(value)]}}
            for name, value in dict(given.get("inputs") or {}).items()
        }
        event = {
            "type": "CARD_CLICKED",
            "message": shown(message, space),
            "action": {
                "actionMethodName": action["function"],
                "parameters": [{"key": key, "value": value} for key, value in parameters.items()],
            },
            "common": {"invokedFunction": action["function"], "parameters": parameters, "formInputs": inputs},
        }
        self.api.spaces.join(space, email)
        self._tell(space, email, event, message)
        return {"clicked": action["function"], "parameters": parameters}

    def _action(self, message: Message, given: Mapping[str, Any]) -> Json:
        """Return the action of the button that is meant."""
        wanted = {str(given.get("function", "")), str(given.get("button", ""))} - {""}
        known = []
        for button in buttons(message.fields):
            action = button.get("onClick", {}).get("action")
            if action is None:
                continue
            known.append(button.get("text", action.get("function", "")))
            if wanted & {button.get("text", ""), action.get("function", "")}:
                return dict(action)
        raise ValueError(f"the message has no button {' '.join(wanted)!r}; its buttons: {', '.join(known) or 'none'}")

    def added(self, space: Space) -> None:
        self._tell(space, self.api.world.account, {"type": "ADDED_TO_SPACE"}, None)

    def _tell(self, space: Space, email: str, event: Json, about: Message | None) -> None:
        """Post an event to the app, signed as Google signs; what the app answers is done in the space."""
        if not self.app:
            return
        now = self.api.world.now()
        zone = {"id": self.api.world.time_zone, "offset": 0}
        common = {"userLocale": "en", "hostApp": "CHAT", "platform": "WEB", "timeZone": zone}
        whole: Json = {
            **event,
            "eventTime": micros(now),
            "user": {**person(email), "domainId": email.rpartition("@")[2]},
            "space": space.json(),
            "common": {**common, **event.get("common", {})},
        }
        if about is not None:
            whole["thread"] = {"name": about.thread}
        claims = {
            "iss": ISSUER,
            "aud": self.app["audience"],
            "email": ISSUER,
            "email_verified": True,
            "iat": int(now.timestamp()),
            "exp": int(now.timestamp()) + 3600,
        }
        headers = {"Content-Type": "application/json", "Authorization": "Bearer " + signing.token(claims)}

        def done(status: int, body: bytes) -> None:
            if status == 200:
                with self.api.world.lock:
                    self._answered(space, about, body)

        self.api.world.delivery.post(self.app["url"], json.dumps(whole).encode(), headers, done)

    def _answered(self, space: Space, about: Message | None, body: bytes) -> None:
        try:
            given = json.loads(body or b"{}")
        except ValueError:
            return
        if not isinstance(given, dict) or not (given.get("text") or given.get("cardsV2") or given.get("cards")):
            return
        kind = given.pop("actionResponse", {}).get("type", "NEW_MESSAGE")
        fields = self.api.api.schema.check("Message", given, loose=True)
        email = self.app["email"]
        if kind == "UPDATE_MESSAGE" and about is not None:
            kept = {k: v for k, v in about.fields.items() if k not in {"text", "cards", "cardsV2"}}
            about.fields, about.updated = {**kept, **fields}, self.api.world.now()
        else:
            sender = {"name": "users/app", "displayName": email.partition("@")[0], "type": "BOT"}
            self.api.add(space, fields, sender, email, about.thread if about else "", about is not None)
        self.api.world.dirty()


def buttons(node: Any) -> Iterator[Json]:
    """Yield everything in a card that can be clicked."""
    if isinstance(node, dict):
        if "onClick" in node:
            yield node
        for value in node.values():
            yield from buttons(value)
    elif isinstance(node, list):
        for value in node:
            yield from buttons(value)
