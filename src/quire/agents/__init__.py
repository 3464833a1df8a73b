"""Agents: missions from a blueprint, conversations that outlive their process, durable agents for others.

Importing this package loads no agent library; that happens when the first agent speaks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quire.agents.acting.tools import workspace_tools as workspace_tools
    from quire.agents.blueprint.blueprint import Blueprint as Blueprint
    from quire.agents.blueprint.reading import load as load
    from quire.agents.conversation import converse as converse
    from quire.agents.durability import DurableAgent as DurableAgent
    from quire.agents.durability import durable as durable
    from quire.agents.missions.flow import mission as mission
    from quire.agents.missions.report import Report as Report
    from quire.agents.receipts import Receipts as Receipts
    from quire.agents.view import mission_view as mission_view

_HOMES = {
    "Blueprint": "quire.agents.blueprint.blueprint",
    "load": "quire.agents.blueprint.reading",
    "converse": "quire.agents.conversation",
    "DurableAgent": "quire.agents.durability",
    "durable": "quire.agents.durability",
    "mission": "quire.agents.missions.flow",
    "Receipts": "quire.agents.receipts",
    "Report": "quire.agents.missions.report",
    "mission_view": "quire.agents.view",
    "workspace_tools": "quire.agents.acting.tools",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(home), name)
    globals()[name] = value
    return value
