"""Calls of Pub/Sub v1 under Google's own names."""

from __future__ import annotations

import base64
from collections.abc import Mapping

from quire.google.budget import Urgency
from quire.google.transport import Transport

PUBSUB = "https://pubsub.googleapis.com/"


class PubSub:
    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    async def publish(self, topic: str, data: str, attributes: Mapping[str, str], *, ordering_key: str) -> str:
        """Publish one message and return its id. A repeat is a second message, with the same attributes."""
        message = {"data": base64.b64encode(data.encode()).decode(), "attributes": dict(attributes)}
        answer = await self.transport.call(
            "POST",
            f"{self.transport.endpoint or PUBSUB}v1/{topic}:publish",
            what=f"publishing to {topic}",
            urgency=Urgency.SETTLE,
            write=True,
            repeatable=True,
            body={"messages": [{**message, "orderingKey": ordering_key}]},
            metered=False,
        )
        return str(answer.json["messageIds"][0])
