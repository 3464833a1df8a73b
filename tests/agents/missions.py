"""Blueprints and runs for the tests of missions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import quire
from quire.agents.blueprint.blueprint import Blueprint
from quire.agents.blueprint.reading import load
from quire.agents.missions.flow import compiled
from quire.client.client import Client
from quire.client.handle import Handle
from quire.clock import SYSTEM, Clock


def blueprint(model: Any, **more: Any) -> Blueprint:
    """Three agents, three turns, a reducer; each says its name in its first prompt."""
    names = more.pop("names", ["engineer", "resources", "governor"])
    told = {
        "mission": "colony",
        "model": model,
        "agents": [{"id": name, "prompt": f"[{name}] Plan the colony."} for name in names],
        "turns": {2: "STORM: what now?", 3: "FINAL: the plan."},
        "reducer": {"id": "editor", "prompt": "[editor] Make one plan."},
    }
    return load(told | more)


def agent_of(prompt: str) -> str:
    """Who is asked, by the name in the first prompt."""
    return prompt[1 : prompt.index("]")] if prompt.startswith("[") else "corrector"


@asynccontextmanager
async def opened(
    plan: Blueprint, url: str = "memory:", *, clock: Clock = SYSTEM, deps: Any = None
) -> AsyncIterator[Client]:
    flow = compiled(plan)
    async with quire.aopen(url, workflows=[flow], clock=clock, deps=deps) as client:
        yield client


async def started(client: Client, record_id: str = "m1", inputs: dict[str, Any] | None = None) -> Handle[Any]:
    """Start the client's one workflow and work until nothing is due."""
    [flow] = client.registry.workflows.values()
    handle = await client.start(flow, inputs or {}, id=record_id)
    await client.work()
    return handle
