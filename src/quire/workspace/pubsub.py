"""Messages to a topic of Pub/Sub: at least once, as Pub/Sub is. Consumers drop a second one by ``quire_key``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from quire.workflows.effect import Act
from quire.workflows.retry import Fail
from quire.workspace.connection import google, sure
from quire.workspace.declaring import Given, google_effect
from quire.workspace.values import Published, outside_key

_TOPIC = re.compile(r"projects/[^/\s]+/topics/[^/\s]+")
MOST_BYTES = 10_000_000


async def _check(act: Act[Any], given: Given) -> None:
    if not _TOPIC.fullmatch(given.topic):
        raise Fail(f"{given.topic!r} is no topic; write it like 'projects/acme/topics/orders'")
    if not given.data and not given.attributes:
        raise Fail("the message is empty: give data or attributes")
    if len(given.data) > MOST_BYTES:
        raise Fail(f"the message has {len(given.data) / 1e6:.0f} MB, and Pub/Sub takes 10; publish a link to it")
    for name in given.attributes:
        if name == "quire_key" or name.startswith("goog"):
            raise Fail(f"the attribute {name!r} is set by others; give it another name")


@google_effect(check=_check, repeat=True, fenced=False, timeout="30s")
async def publish(act: Act[Any], topic: str, data: str = "", *, attributes: Mapping[str, str] = {}) -> Published:
    """Publish a message, in the order of its record. It may come twice, with the same attribute ``quire_key``."""
    key = outside_key(act.key)
    with sure():
        message_id = await (await google(act.connection)).pubsub.publish(
            topic, data, {**attributes, "quire_key": key}, ordering_key=act.record_id
        )
    return Published(topic, message_id, key)
