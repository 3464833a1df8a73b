"""Where a tool runs that does durable acts itself: in which run, in which conversation, under which name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quire.agents.receipts import Receipts

#: In the metadata of a tool: it keeps receipts of its own, and needs none around it.
DURABLE = "quire_durable"


@dataclass
class Conversation:
    """What one conversation has done in the pass under way. A pass that is repeated comes to the same."""

    #: How many acts left the house.
    left: int = 0
    #: It has read what others wrote, and no person has answered since.
    read_outside: bool = False
    #: Addresses that stood in what it read.
    addresses: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Call:
    """One call of a tool."""

    receipts: Receipts
    #: The same whenever the step is repeated.
    name: str
    conversation: Conversation


_CALL: ContextVar[Call] = ContextVar("call")


@contextmanager
def within(receipts: Receipts, name: str) -> Iterator[None]:
    """Let the tool that is called here know where it is."""
    token = _CALL.set(Call(receipts, name, receipts.conversation))
    try:
        yield
    finally:
        _CALL.reset(token)


def here() -> Call | None:
    """Return the call of the tool that runs here; None outside of a durable conversation."""
    return _CALL.get(None)
