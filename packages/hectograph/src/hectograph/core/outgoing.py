"""What leaves the house: mails, invitations, share notices, chat messages. The page ``/outbox`` shows them.

An API that lets something leave calls ``send``. Whoever delivers (Gmail, into the mailboxes) subscribes to it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from hectograph.core.clock import Now, stamp


@dataclass(frozen=True)
class Left:
    """One thing that left."""

    at: str
    #: "mail", "invitation", "share", "chat", "push".
    kind: str
    sender: str
    to: tuple[str, ...]
    #: One line for people.
    summary: str
    #: The whole of it: a mail as its source, anything else as JSON.
    content: str = ""

    def json(self) -> dict[str, Any]:
        return asdict(self) | {"to": list(self.to)}


class Outgoing:
    def __init__(self, now: Now) -> None:
        self.now = now
        self.left: list[Left] = []
        self.subscribers: list[Callable[[Left], None]] = []

    def send(self, kind: str, sender: str, to: tuple[str, ...], summary: str, content: str = "") -> Left:
        """Note that something leaves, and give it to whoever delivers it."""
        one = Left(stamp(self.now()), kind, sender, to, summary, content)
        self.left.append(one)
        for deliver in self.subscribers:
            deliver(one)
        return one

    def dump(self) -> list[dict[str, Any]]:
        return [one.json() for one in self.left]

    def load(self, held: list[dict[str, Any]]) -> None:
        self.left = [Left(**{**one, "to": tuple(one["to"])}) for one in held]
