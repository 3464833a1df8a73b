"""How a process is started that works on the same ledger with the same workflows (``quire.worker.apart``).

It finds the workflows as its parent did: by the flow files that ``quire worker`` or ``quire up`` was given, or by the
modules in which Python code declared them. Workflows of the script itself (``__main__``), or made within a function,
cannot be found by another process: then there is none, and suspects run alone in the worker.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from quire.clock import SYSTEM
from quire.workflows.workflow import Workflow

if TYPE_CHECKING:
    from quire.client.client import Client
    from quire.worker.apart import Spawn

_COMMAND = (sys.executable, "-m", "quire.surfaces.apart")


def _spawn(**setup: Any) -> Spawn | None:
    from quire.worker.apart import Spawn

    return Spawn(_COMMAND, {**setup, "path": sys.path}) if os.name == "posix" else None


def of_files(flags: Mapping[str, Any], file: str | None, files: Sequence[str]) -> Spawn | None:
    """By the flow files of a command, and its configuration."""
    return _spawn(flags=dict(flags), file=file, files=list(files))


def of_client(client: Client) -> Spawn | None:
    """By the modules of the client's workflows; None if another process would not find all of them, or the ledger."""
    own = client.dependencies.given is not None or client.clock is not SYSTEM
    if client.address is None or own or not client.ledger.traits.shared:
        return None
    places = [_place(workflow) for workflow in client.registry.workflows.values()]
    if not places or any(place is None for place in places):
        return None
    return _spawn(ledger=client.address, who=client.who, public_url=client.public_url, places=places)


def _place(workflow: Workflow[Any, Any, Any]) -> tuple[str, str] | None:
    """The module and the name under which the workflow is found."""
    for step in workflow.steps.values():
        module = getattr(step.fn, "__module__", None)
        known = sys.modules.get(module) if module is not None and module != "__main__" else None
        for name, value in list(vars(known).items()) if known is not None else ():
            if value is workflow:
                return str(module), name
    return None
