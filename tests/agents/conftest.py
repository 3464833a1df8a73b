"""What tests of agents have: keys that are none, and models that are asked over real HTTP on loopback."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.agents.stand_in import Answer, Asked, StandIn, stand_in

#: The key of every provider in these tests. It must not turn up anywhere.
KEY = "k3y-0f-n0-provider-4711"


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> str:
    for name in ("GEMINI_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, KEY)
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    return KEY


Serve = Callable[[Callable[[Asked], Answer | str]], StandIn]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts a stand-in with these answers; it is closed after the test."""
    with ExitStack() as servers:
        yield lambda answer: servers.enter_context(stand_in(answer))
