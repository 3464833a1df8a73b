"""Notification channels of Calendar: an address hears that something changed, never what."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from hectograph.core.delivery import Delivery
from hectograph.core.error import CALENDAR

#: How long a channel lives unless its maker says otherwise.
_DAYS = 7


@dataclass
class Channel:
    channel_id: str
    #: What is watched.
    key: str
    resource_id: str
    place: str
    address: str
    token: str
    until: datetime
    number: int = 0


class Channels:
    def __init__(self, delivery: Delivery) -> None:
        self.delivery = delivery
        self.held: dict[str, Channel] = {}

    def dump(self) -> Any:
        return [{**one.__dict__, "until": one.until.isoformat()} for one in self.held.values()]

    def load(self, held: Any) -> None:
        for one in held:
            self.held[one["channel_id"]] = Channel(**{**one, "until": datetime.fromisoformat(one["until"])})

    def open(self, key: str, given: dict[str, Any], place: str) -> dict[str, Any]:
        """Begin to tell an address of changes; the first message says ``sync``."""
        address, name = str(given.get("address", "")), str(given.get("id", ""))
        if not name or not address.startswith(("https://", "http://localhost", "http://127.0.0.1", "http://[::1]")):
            text = "WebHook callback must be HTTPS: " + address if name else "Missing channel id."
            raise CALENDAR.refusal(400, text, "push.webhookUrlNotHttps" if name else "required")
        if name in self.held:
            raise CALENDAR.refusal(400, f"Channel id {name} not unique", "channelIdNotUnique")
        until = self.delivery.now() + timedelta(seconds=int(given.get("params", {}).get("ttl", _DAYS * 86400)))
        if given.get("expiration"):
            until = min(until, datetime.fromtimestamp(int(given["expiration"]) / 1000, until.tzinfo))
        resource = hashlib.sha1(key.encode()).hexdigest()[:27]
        made = Channel(name, key, resource, place, address, str(given.get("token", "")), until)
        self.held[name] = made
        self._send(made, "sync")
        out = {"kind": "api#channel", "id": name, "resourceId": resource, "resourceUri": place}
        return out | ({"token": made.token} if made.token else {}) | {"expiration": _millis(until)}

    def close(self, name: str, resource: str) -> bool:
        found = self.held.get(name)
        if found is None or found.resource_id != resource:
            return False
        del self.held[name]
        return True

    def tell(self, key: str) -> None:
        """Tell every channel on this resource that something changed."""
        now = self.delivery.now()
        for one in [one for one in self.held.values() if one.key == key]:
            if one.until > now:
                self._send(one, "exists")
            else:
                del self.held[one.channel_id]

    def _send(self, channel: Channel, state: str) -> None:
        channel.number += 1
        headers = {
            "X-Goog-Channel-ID": channel.channel_id,
            "X-Goog-Message-Number": str(channel.number),
            "X-Goog-Resource-ID": channel.resource_id,
            "X-Goog-Resource-State": state,
            "X-Goog-Resource-URI": channel.place,
            "X-Goog-Channel-Expiration": channel.until.strftime("%a, %d %b %Y %H:%M:%S GMT"),
            **({"X-Goog-Channel-Token": channel.token} if channel.token else {}),
        }
        self.delivery.post(channel.address, b"", headers)


def _millis(moment: datetime) -> str:
    return str(int(moment.timestamp()) * 1000)
