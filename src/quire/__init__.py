"""Quire runs agent workflows that must not lose their place.

Every piece of work is a row, every move of a row is a compare-and-swap commit, every irreversible act leaves a receipt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quire.client.client import Client as Client
    from quire.client.client import aopen as aopen
    from quire.client.handle import Handle as Handle
    from quire.client.plain import PlainClient as PlainClient
    from quire.client.plain import open as open
    from quire.clock import Span as Span
    from quire.errors import QuireError as QuireError
    from quire.model.change import Query as Query
    from quire.model.record import Record as Record
    from quire.model.record import Status as Status
    from quire.run.run import Pending as Pending
    from quire.run.run import Run as Run
    from quire.run.run import SyncRun as SyncRun
    from quire.workflows.approval import Answer as Answer
    from quire.workflows.effect import Act as Act
    from quire.workflows.effect import Dropped as Dropped
    from quire.workflows.effect import Effect as Effect
    from quire.workflows.effect import NotDone as NotDone
    from quire.workflows.effect import Prepare as Prepare
    from quire.workflows.effect import PrepareAgain as PrepareAgain
    from quire.workflows.effect import effect as effect
    from quire.workflows.effect import rate as rate
    from quire.workflows.fanout import Failed as Failed
    from quire.workflows.google_sources import Form as Form
    from quire.workflows.google_sources import Inbound as Inbound
    from quire.workflows.retry import Fail as Fail
    from quire.workflows.retry import Retry as Retry
    from quire.workflows.sources import Cron as Cron
    from quire.workflows.sources import Inbox as Inbox
    from quire.workflows.sources import Table as Table
    from quire.workflows.words import AGENT as AGENT
    from quire.workflows.words import DRIVE as DRIVE
    from quire.workflows.words import QUEUE as QUEUE
    from quire.workflows.words import READY as READY
    from quire.workflows.workflow import Workflow as Workflow
    from quire.workflows.workflow import workflow as workflow

__version__ = "0.1.0"

#: Where each name lives: imported when it is first asked for, so that ``import quire`` stays quick.
_HOMES = {
    "Span": "quire.clock",
    "QuireError": "quire.errors",
    "Answer": "quire.workflows.approval",
    "Act": "quire.workflows.effect",
    "Dropped": "quire.workflows.effect",
    "Effect": "quire.workflows.effect",
    "NotDone": "quire.workflows.effect",
    "Prepare": "quire.workflows.effect",
    "PrepareAgain": "quire.workflows.effect",
    "effect": "quire.workflows.effect",
    "rate": "quire.workflows.effect",
    "Failed": "quire.workflows.fanout",
    "Fail": "quire.workflows.retry",
    "Retry": "quire.workflows.retry",
    "Cron": "quire.workflows.sources",
    "Inbox": "quire.workflows.sources",
    "Form": "quire.workflows.google_sources",
    "Inbound": "quire.workflows.google_sources",
    "Table": "quire.workflows.sources",
    "READY": "quire.workflows.words",
    "AGENT": "quire.workflows.words",
    "QUEUE": "quire.workflows.words",
    "DRIVE": "quire.workflows.words",
    "Workflow": "quire.workflows.workflow",
    "workflow": "quire.workflows.workflow",
    "Query": "quire.model.change",
    "Record": "quire.model.record",
    "Status": "quire.model.record",
    "Pending": "quire.run.run",
    "Run": "quire.run.run",
    "SyncRun": "quire.run.run",
    "Client": "quire.client.client",
    "Handle": "quire.client.handle",
    "aopen": "quire.client.client",
    "PlainClient": "quire.client.plain",
    "open": "quire.client.plain",
}

__all__ = [*_HOMES, "main"]  # noqa: PLE0604 - the names of a dict are strings


def main() -> None:
    """At the end of a file of workflows: ``python flows.py`` is then the same as ``quire up flows.py``.

    Where the file is imported, as ``quire up`` does, it does nothing: ``if __name__ == "__main__":`` is not needed.
    """
    import sys

    if sys._getframe(1).f_globals.get("__name__") != "__main__":
        return
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
