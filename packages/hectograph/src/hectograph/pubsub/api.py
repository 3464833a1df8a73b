"""The Pub/Sub v1 API, as far as notices of Google Workspace need it."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from hectograph.core import signing
from hectograph.core.clock import stamp
from hectograph.core.error import ApiError
from hectograph.core.people import number_of
from hectograph.core.service import MethodCall, Play, Service

if TYPE_CHECKING:
    from hectograph.world import World

_EMPTY = (
    "One or more messages in the publish request is empty. Each message must contain either non-empty data, or at "
    "least one attribute."
)

#: The longest deadline, and the one of a subscription that names none.
_LONGEST, _USUAL = 600, 10

#: The statuses by which a receiver acknowledges a push.
_TAKEN = frozenset({102, 200, 201, 202, 204})


@dataclass
class Held:
    """A message in one subscription."""

    message: dict[str, Any]
    #: Not before this moment it is given out (again).
    due: datetime
    ack_id: str = ""
    attempts: int = 0


@dataclass
class Subscription:
    spec: dict[str, Any]
    held: list[Held] = field(default_factory=list)

    @property
    def deadline(self) -> int:
        return int(self.spec.get("ackDeadlineSeconds", _USUAL))

    @property
    def endpoint(self) -> str:
        return str(self.spec.get("pushConfig", {}).get("pushEndpoint", ""))


class PubsubApi(Service):
    version = "pubsub.v1"

    def __init__(self, world: World, base: Callable[[], str]) -> None:
        super().__init__(world, base)
        self.topics: dict[str, dict[str, Any]] = {}
        self.subscriptions: dict[str, Subscription] = {}
        self.policies: dict[str, Any] = {}
        self._minted = 0
        world.topics.broker = self

    def methods(self) -> Mapping[str, Play]:
        found: dict[str, Play] = {
            "topics.create": self.create_topic,
            "topics.get": self.get_topic,
            "topics.list": self.list_topics,
            "topics.patch": self.patch_topic,
            "topics.delete": self.delete_topic,
            "topics.publish": self.publish_all,
            "topics.subscriptions.list": self.of_topic,
            "subscriptions.create": self.create,
            "subscriptions.get": self.get,
            "subscriptions.list": self.list,
            "subscriptions.patch": self.patch,
            "subscriptions.delete": self.delete,
            "subscriptions.pull": self.pull,
            "subscriptions.acknowledge": self.acknowledge,
            "subscriptions.modifyAckDeadline": self.extend,
            "subscriptions.modifyPushConfig": self.change_push,
        }
        for kind in ("topics", "subscriptions"):
            found |= {f"{kind}.getIamPolicy": self.policy, f"{kind}.setIamPolicy": self.set_policy}
        return {f"projects.{name}": play for name, play in found.items()}

    def dump(self) -> Any:
        waiting = {name: [one.message for one in held.held] for name, held in self.subscriptions.items()}
        specs = {name: held.spec for name, held in self.subscriptions.items()}
        plain = {"topics": self.topics, "policies": self.policies, "minted": self._minted}
        return {**plain, "subscriptions": specs, "waiting": waiting}

    def load(self, held: Any) -> None:
        self.topics, self.policies, self._minted = held["topics"], held["policies"], held["minted"]
        now = self.world.now()
        for name, spec in held["subscriptions"].items():
            messages = [Held(one, now) for one in held["waiting"][name]]
            self.subscriptions[name] = Subscription(spec, messages)
            for one in messages:
                self._push(self.subscriptions[name], one)

    def clear(self) -> None:
        self.topics.clear()
        self.subscriptions.clear()
        self.policies.clear()

    # What other APIs use.

    def known(self, topic: str) -> bool:
        return topic in self.topics

    def publish(self, topic: str, data: bytes, attributes: Mapping[str, str], ordering: str = "") -> str:
        """Give a message to every subscription of a topic, and return its id."""
        self._minted += 1
        now = self.world.now()
        key = str(10_000_000_000 + self._minted)
        message: dict[str, Any] = {"data": base64.b64encode(data).decode()} if data else {}
        if attributes:
            message["attributes"] = dict(attributes)
        message |= {
            "messageId": key,
            "publishTime": stamp(now),
        }
        if ordering:
            message["orderingKey"] = ordering
        for subscription in self.subscriptions.values():
            if subscription.spec["topic"] == topic:
                held = Held(message, now)
                subscription.held.append(held)
                self._push(subscription, held)
        return key

    # Topics.

    def _topic(self, name: str) -> dict[str, Any]:
        if name not in self.topics:
            raise self._missing(name)
        return self.topics[name]

    def _missing(self, name: str) -> ApiError:
        return self.refuse(404, f"Resource not found (resource={name.rpartition('/')[2]}).")

    def _check_name(self, name: str, taken: Mapping[str, Any]) -> None:
        word = name.rpartition("/")[2]
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9._~+%-]{2,254}", word) or word.startswith("goog"):
            raise self.refuse(400, f"Invalid resource name given (name={name}).")
        if name in taken:
            text = f"Resource already exists in the project (resource={word})."
            raise self.refuse(409, text, status="ALREADY_EXISTS")

    def create_topic(self, call: MethodCall) -> Any:
        name, given = call.parts["name"], call.body()
        self._check_name(name, self.topics)
        self.topics[name] = {**given, "name": name}
        return self.topics[name]

    def get_topic(self, call: MethodCall) -> Any:
        return self._topic(call.parts["topic"])

    def list_topics(self, call: MethodCall) -> Any:
        found = [one for name, one in self.topics.items() if name.startswith(call.parts["project"] + "/")]
        return {"topics": found} if found else {}

    def patch_topic(self, call: MethodCall) -> Any:
        topic = self._topic(call.parts["name"])
        topic.update({k: v for k, v in call.body().get("topic", {}).items() if k != "name"})
        return topic

    def delete_topic(self, call: MethodCall) -> Any:
        name = call.parts["topic"]
        self._topic(name)
        del self.topics[name]
        for subscription in self.subscriptions.values():
            if subscription.spec["topic"] == name:
                subscription.spec["topic"] = "_deleted-topic_"
        return {}

    def publish_all(self, call: MethodCall) -> Any:
        name, messages = call.parts["topic"], call.body().get("messages", [])
        self._topic(name)
        if not messages:
            raise self.refuse(
                400,
                "The value for message_count is too small. You passed 0 in the request, but the minimum value is 1.",
            )
        read = []
        for one in messages:
            try:
                data = base64.b64decode(one.get("data", ""), validate=True)
            except (ValueError, binascii.Error) as error:
                raise self.refuse(
                    400, "Invalid value at 'messages[0].data' (TYPE_BYTES), Base64 decoding failed"
                ) from error
            if not data and not one.get("attributes"):
                raise self.refuse(400, _EMPTY)
            read.append((data, one.get("attributes", {}), one.get("orderingKey", "")))
        return {"messageIds": [self.publish(name, *one) for one in read]}

    def of_topic(self, call: MethodCall) -> Any:
        name = call.parts["topic"]
        self._topic(name)
        return {"subscriptions": [key for key, one in self.subscriptions.items() if one.spec["topic"] == name]}

    def policy(self, call: MethodCall) -> Any:
        return self.policies.get(call.parts["resource"], {"etag": "ACAB"})

    def set_policy(self, call: MethodCall) -> Any:
        self.policies[call.parts["resource"]] = {"etag": "ACAB", **call.body().get("policy", {})}
        return self.policy(call)

    # Subscriptions.

    def _subscription(self, call: MethodCall) -> Subscription:
        name = call.parts["subscription"]
        if name not in self.subscriptions:
            raise self._missing(name)
        return self.subscriptions[name]

    def _checked(self, spec: dict[str, Any]) -> dict[str, Any]:
        seconds = int(spec.get("ackDeadlineSeconds", 0) or _USUAL)
        if not _USUAL <= seconds <= _LONGEST:
            text = f"Invalid ack deadline given: {seconds}. Must be between {_USUAL} and {_LONGEST} seconds."
            raise self.refuse(400, text)
        if spec.get("filter"):
            raise self.refuse(501, "The emulator does not play filters of subscriptions.")
        usual: dict[str, Any] = {"pushConfig": {}, "messageRetentionDuration": "604800s", "state": "ACTIVE"}
        return {**usual, **spec, "ackDeadlineSeconds": seconds}

    def create(self, call: MethodCall) -> Any:
        name, given = call.parts["name"], call.body()
        self._check_name(name, self.subscriptions)
        self._topic(str(given.get("topic", "")))
        self.subscriptions[name] = Subscription(self._checked({**given, "name": name}))
        return self.subscriptions[name].spec

    def get(self, call: MethodCall) -> Any:
        return self._subscription(call).spec

    def list(self, call: MethodCall) -> Any:
        start = call.parts["project"] + "/"
        found = [one.spec for name, one in self.subscriptions.items() if name.startswith(start)]
        return {"subscriptions": found} if found else {}

    def patch(self, call: MethodCall) -> Any:
        name = call.parts["name"]
        if name not in self.subscriptions:
            raise self._missing(name)
        held, given = self.subscriptions[name], call.body()
        fields = str(given.get("updateMask", "")).split(",")
        changes = {key: value for key, value in given.get("subscription", {}).items() if key in fields}
        held.spec = self._checked({**held.spec, **changes, "name": name})
        return held.spec

    def delete(self, call: MethodCall) -> Any:
        self._subscription(call)
        del self.subscriptions[call.parts["subscription"]]
        return {}

    def pull(self, call: MethodCall) -> Any:
        held, given, now = self._subscription(call), call.body(), self.world.now()
        most = int(given.get("maxMessages", 0))
        if most < 1:
            raise self.refuse(400, f"Invalid maximum number of messages given (max_messages={most}).")
        out: list[dict[str, Any]] = []
        busy: set[str] = set()
        for one in held.held:
            order = one.message.get("orderingKey", "") if held.spec.get("enableMessageOrdering") else ""
            if one.due > now or (order and order in busy) or len(out) >= most:
                busy.add(order)
                continue
            one.attempts += 1
            one.due = now + timedelta(seconds=held.deadline)
            one.ack_id = f"{one.message['messageId']}-{one.attempts}"
            out.append({"ackId": one.ack_id, "message": one.message})
        return {"receivedMessages": out} if out else {}

    def acknowledge(self, call: MethodCall) -> Any:
        """Take messages as received. An id whose deadline has passed acknowledges nothing."""
        held, now, wanted = self._subscription(call), self.world.now(), set(call.body().get("ackIds", ()))
        held.held = [one for one in held.held if one.ack_id not in wanted or one.due <= now]
        return {}

    def extend(self, call: MethodCall) -> Any:
        held, given, now = self._subscription(call), call.body(), self.world.now()
        for one in held.held:
            if one.ack_id in given.get("ackIds", ()):
                one.due = now + timedelta(seconds=int(given.get("ackDeadlineSeconds", 0)))
        return {}

    def change_push(self, call: MethodCall) -> Any:
        held = self._subscription(call)
        held.spec["pushConfig"] = call.body().get("pushConfig", {})
        for one in held.held:
            self._push(held, one)
        return {}

    def _push(self, subscription: Subscription, held: Held) -> None:
        """Post a message to the subscription's address, where it has one, until it is taken."""
        if not subscription.endpoint:
            return
        message = {**held.message, "message_id": held.message["messageId"], "publish_time": held.message["publishTime"]}
        body = json.dumps({"message": message, "subscription": subscription.spec["name"]}).encode()
        headers = {"Content-Type": "application/json", **self._bearer(subscription)}

        def done(status: int, _: bytes) -> None:
            with self.world.lock:
                held.attempts += 1
                if status in _TAKEN:
                    subscription.held = [one for one in subscription.held if one is not held]
                elif held in subscription.held:
                    least = _seconds(subscription.spec.get("retryPolicy", {}).get("minimumBackoff", "10s"))
                    held.due = self.world.now() + timedelta(seconds=min(_LONGEST, least * 2 ** (held.attempts - 1)))
                    self._push(subscription, held)

        self.world.delivery.post(subscription.endpoint, body, headers, done, held.due)

    def _bearer(self, subscription: Subscription) -> dict[str, str]:
        oidc = subscription.spec.get("pushConfig", {}).get("oidcToken")
        if not oidc:
            return {}
        email, now = oidc.get("serviceAccountEmail", ""), int(self.world.now().timestamp())
        claims = {
            "iss": "https://accounts.google.com",
            "aud": oidc.get("audience") or subscription.endpoint,
            "azp": email,
            "email": email,
            "email_verified": True,
            "sub": number_of(email),
            "iat": now,
            "exp": now + 3600,
        }
        return {"Authorization": "Bearer " + signing.token(claims)}


def _seconds(text: str) -> float:
    return float(text.removesuffix("s") or 10)
