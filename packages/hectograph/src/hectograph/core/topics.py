"""How an API tells a Pub/Sub topic of something without knowing the API of Pub/Sub."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Broker(Protocol):
    def known(self, topic: str) -> bool: ...

    def publish(self, topic: str, data: bytes, attributes: Mapping[str, str]) -> str: ...


class Topics:
    """The topics of Pub/Sub, as other APIs see them."""

    def __init__(self) -> None:
        self.broker: Broker | None = None

    def known(self, topic: str) -> bool:
        return self.broker is not None and self.broker.known(topic)

    def publish(self, topic: str, data: bytes, attributes: Mapping[str, str]) -> None:
        """Publish a message. A topic that is gone hears nothing."""
        if self.broker is not None and self.broker.known(topic):
            self.broker.publish(topic, data, attributes)
