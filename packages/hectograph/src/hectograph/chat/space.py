"""Spaces with their members, threads and messages."""

from __future__ import annotations

import random
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from hectograph.core.people import number_of

Json = dict[str, Any]


def micros(moment: datetime) -> str:
    """Return a time as Chat writes it: RFC 3339 with microseconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def person(email: str) -> Json:
    return {
        "name": f"users/{number_of(email)}",
        "displayName": email.partition("@")[0],
        "email": email,
        "type": "HUMAN",
    }


def app(email: str) -> Json:
    return {"name": f"users/{number_of(email)}", "displayName": email.partition("@")[0], "type": "BOT"}


@dataclass
class Message:
    name: str
    thread: str
    sender: Json
    #: The account that made it: only this one may change it.
    owner: str
    created: datetime
    #: What was sent: text, cards and so on.
    fields: Json
    client_id: str = ""
    reply: bool = False
    updated: datetime | None = None
    deleted: datetime | None = None

    def dump(self) -> Json:
        return {**self.__dict__, **{n: t and t.isoformat() for n, t in self._times().items()}}

    def _times(self) -> dict[str, datetime | None]:
        return {"created": self.created, "updated": self.updated, "deleted": self.deleted}

    @classmethod
    def load(cls, held: Json) -> Message:
        times = {n: held[n] and datetime.fromisoformat(held[n]) for n in ("created", "updated", "deleted")}
        return cls(**{**held, **times})


@dataclass
class Space:
    name: str
    title: str
    kind: str = "SPACE"
    threaded: bool = True
    #: The people and apps in it, by address.
    members: dict[str, Json] = field(default_factory=dict)
    messages: dict[str, Message] = field(default_factory=dict)
    #: The thread of each key; a key belongs to the account that chose it.
    keys: dict[str, str] = field(default_factory=dict)
    #: The message of each request id.
    requests: dict[str, str] = field(default_factory=dict)
    webhook: Json = field(default_factory=dict)
    reactions: dict[str, Json] = field(default_factory=dict)

    def json(self) -> Json:
        old = {"SPACE": "ROOM", "DIRECT_MESSAGE": "DM", "GROUP_CHAT": "ROOM"}[self.kind]
        state = "THREADED_MESSAGES" if self.threaded else "UNTHREADED_MESSAGES"
        out: Json = {"name": self.name, "type": old, "spaceType": self.kind, "spaceThreadingState": state}
        if self.title:
            out["displayName"] = self.title
        out["spaceHistoryState"] = "HISTORY_ON"
        out["spaceUri"] = f"https://chat.google.com/room/{self.name.partition('/')[2]}?cls=11"
        return out

    def find(self, name: str) -> Message | None:
        """Return a message by its name, or by the name that its maker chose."""
        key = name.rpartition("/")[2]
        if key.startswith("client-"):
            found = next((one for one in self.messages.values() if one.client_id == key), None)
        else:
            found = self.messages.get(name)
        return None if found is None or found.deleted else found

    def living(self) -> list[Message]:
        return [one for one in self.messages.values() if not one.deleted]

    def dump(self) -> Json:
        out = asdict(self)
        out["messages"] = [one.dump() for one in self.messages.values()]
        return out

    @classmethod
    def load(cls, held: Json) -> Space:
        messages = {one["name"]: Message.load(one) for one in held["messages"]}
        return cls(**{**held, "messages": messages})


class Mint:
    """Names of spaces, threads and messages."""

    def __init__(self) -> None:
        self._random = random.Random(11)

    def word(self, size: int = 11) -> str:
        return "".join(self._random.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-", k=size))


def shown(message: Message, space: Space) -> Json:
    """Return a message as the API answers it."""
    thread: Json = {"name": message.thread}
    for key, name in space.keys.items():
        if name == message.thread and key.partition(" ")[0] == message.owner:
            thread["threadKey"] = key.partition(" ")[2]
    sender = {name: value for name, value in message.sender.items() if name != "email"}
    out: Json = {"name": message.name, "sender": sender, "createTime": micros(message.created)}
    if message.updated:
        out["lastUpdateTime"] = micros(message.updated)
    out |= {name: value for name, value in message.fields.items() if name not in {"thread", "name"}}
    if message.fields.get("text"):
        out |= {"argumentText": message.fields["text"], "formattedText": message.fields["text"]}
    out |= {"thread": thread, "space": {"name": space.name}}
    if message.reply:
        out["threadReply"] = True
    if message.client_id:
        out["clientAssignedMessageId"] = message.client_id
    if message.deleted:
        out |= {"deleteTime": micros(message.deleted), "deletionMetadata": {"deletionType": "CREATOR"}}
        out.pop("text", None)
    return out
