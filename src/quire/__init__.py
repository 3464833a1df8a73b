"""Quire runs agent workflows that must not lose their place.

Every piece of work is a row, every move of a row is a compare-and-swap commit, every irreversible act leaves a receipt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quire.clock import Span as Span
    from quire.errors import QuireError as QuireError
    from quire.machine.approval import Answer as Answer
    from quire.machine.effect import Act as Act
    from quire.machine.effect import Effect as Effect
    from quire.machine.effect import NotDone as NotDone
    from quire.machine.effect import effect as effect
    from quire.machine.effect import rate as rate
    from quire.machine.fanout import Failed as Failed
    from quire.machine.retry import Fail as Fail
    from quire.machine.retry import Retry as Retry
    from quire.machine.source import Cron as Cron
    from quire.machine.source import Inbox as Inbox
    from quire.machine.workflow import Workflow as Workflow
    from quire.machine.workflow import workflow as workflow
    from quire.model.change import Query as Query
    from quire.model.record import Record as Record
    from quire.model.record import Status as Status
    from quire.runtime.run import Pending as Pending
    from quire.runtime.run import Run as Run
    from quire.runtime.run import SyncRun as SyncRun
    from quire.surfaces.client import Client as Client
    from quire.surfaces.client import aopen as aopen
    from quire.surfaces.handle import Handle as Handle
    from quire.surfaces.plain import PlainClient as PlainClient
    from quire.surfaces.plain import open as open

__version__ = "0.1.0"

#: Where each name lives: imported when it is first asked for, so that ``import quire`` stays quick.
_HOMES = {
    "Span": "quire.clock",
    "QuireError": "quire.errors",
    "Answer": "quire.machine.approval",
    "Act": "quire.machine.effect",
    "Effect": "quire.machine.effect",
    "NotDone": "quire.machine.effect",
    "effect": "quire.machine.effect",
    "rate": "quire.machine.effect",
    "Failed": "quire.machine.fanout",
    "Fail": "quire.machine.retry",
    "Retry": "quire.machine.retry",
    "Cron": "quire.machine.source",
    "Inbox": "quire.machine.source",
    "Workflow": "quire.machine.workflow",
    "workflow": "quire.machine.workflow",
    "Query": "quire.model.change",
    "Record": "quire.model.record",
    "Status": "quire.model.record",
    "Pending": "quire.runtime.run",
    "Run": "quire.runtime.run",
    "SyncRun": "quire.runtime.run",
    "Client": "quire.surfaces.client",
    "Handle": "quire.surfaces.handle",
    "aopen": "quire.surfaces.client",
    "PlainClient": "quire.surfaces.plain",
    "open": "quire.surfaces.plain",
}

__all__ = [*_HOMES, "main"]  # noqa: PLE0604 - the names of a dict are strings


def main() -> None:
    """At the end of a file of workflows: ``python flows.py`` is then the same as ``quire up flows.py``."""
    import sys

    from quire.surfaces.cli import run_file

    run_file(sys.argv[0])


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'quire' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(home), name)
    globals()[name] = value
    return value
