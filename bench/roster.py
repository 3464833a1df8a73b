"""Who is measured: Quire, its peers, and the raw limit of the stores."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Store = Literal["sqlite", "postgres", "redis", "temporal", "prefect"]
Kind = Literal["quire", "engine", "queue", "raw"]

PEERS = Path(__file__).resolve().parent / "peers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    #: Also the name of its file under ``peers/``.
    name: str
    label: str
    venv: str
    #: What a program imports first, in Python; the time that this takes is part of W7.
    imports: str
    store: Store
    kind: Kind
    #: What the reader must know before comparing.
    note: str = ""
    #: Smaller sizes for a peer that would take too long, by workload. Rates stay comparable, seconds do not.
    sizes: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: Repetitions at the most: a peer that is slower by a hundred times than the others takes most of a run.
    repeat: int = 99

    @property
    def script(self) -> Path:
        return PEERS / f"{self.name}.py"


#: The package loads its parts when they are asked for, so a bare ``import quire`` would say too little.
QUIRE_IMPORTS = "from quire import Client, Run, Workflow, aopen, effect"
QUIRE_NOTE = "W8 acts through an effect with a probe, which the peers' plain steps do not have"

ROSTER = [
    Peer(
        name="quire_sqlite",
        label="Quire, SQLite",
        venv="quire",
        imports=QUIRE_IMPORTS,
        store="sqlite",
        kind="quire",
        note=QUIRE_NOTE,
    ),
    Peer(
        name="quire_postgres",
        label="Quire, PostgreSQL",
        venv="quire",
        imports=QUIRE_IMPORTS,
        store="postgres",
        kind="quire",
        note=QUIRE_NOTE,
    ),
    Peer(
        name="dbos_sqlite",
        label="DBOS, SQLite",
        venv="dbos",
        imports="import dbos",
        store="sqlite",
        kind="engine",
        note="leaves SQLite in rollback-journal mode",
        sizes={"W1": {"n": 800}, "W2": {"records": 100, "steps": 10}},
    ),
    Peer(
        name="dbos_postgres",
        label="DBOS, PostgreSQL",
        venv="dbos",
        imports="import dbos",
        store="postgres",
        kind="engine",
        note="W3 starts the workflow directly, and beside it through the queue at a 10 ms poll",
        sizes={"W9": {"n": 2000}},
    ),
    Peer(
        name="absurd_postgres",
        label="Absurd, PostgreSQL",
        venv="absurd",
        imports="import absurd_sdk",
        store="postgres",
        kind="engine",
        note="W4: the parent awaits its children's results one after the other",
        sizes={"W9": {"n": 2000}},
    ),
    Peer(
        name="langgraph_sqlite",
        label="LangGraph, SQLite",
        venv="langgraph",
        imports="import langgraph.graph",
        store="sqlite",
        kind="engine",
        note="no queue and no worker: the caller invokes; W4 is one run with parallel nodes",
        sizes={"W1": {"n": 1000}},
    ),
    Peer(
        name="langgraph_postgres",
        label="LangGraph, PostgreSQL",
        venv="langgraph",
        imports="import langgraph.graph",
        store="postgres",
        kind="engine",
        note="no queue and no worker: the caller invokes; W4 is one run with parallel nodes",
        sizes={"W1": {"n": 1000}},
    ),
    Peer(
        name="temporal_dev",
        label="Temporal dev server",
        venv="temporal",
        imports="import temporalio.client",
        store="temporal",
        kind="engine",
        note="`start-dev` on an SQLite file, not a production cluster; W4 is 1,000 activities",
        sizes={
            "W1": {"n": 300},
            "W2": {"records": 50, "steps": 10},
            "W3": {"n": 60, "pause": 0.02},
        },
        repeat=2,
    ),
    Peer(
        name="prefect_server",
        label="Prefect, local server",
        venv="prefect",
        imports="import prefect",
        store="prefect",
        kind="engine",
        note="flows are called in the process, without a work pool",
        sizes={
            "W1": {"n": 20},
            "W2": {"records": 4, "steps": 10},
            "W3": {"n": 15, "pause": 0.02},
            "W4": {"children": 100},
        },
        repeat=1,
    ),
    Peer(
        name="procrastinate_postgres",
        label="Procrastinate, PostgreSQL",
        venv="procrastinate",
        imports="import procrastinate",
        store="postgres",
        kind="queue",
        note="W2 is a chain of jobs; W4 is counted in the process",
        sizes={"W9": {"n": 2000}},
    ),
    Peer(
        name="pgqueuer_postgres",
        label="PgQueuer, PostgreSQL",
        venv="pgqueuer",
        imports="import pgqueuer",
        store="postgres",
        kind="queue",
        note="W2 is a chain of jobs; W4 is counted in the process; completions are written in batches",
    ),
    Peer(
        name="huey_sqlite",
        label="Huey, SQLite",
        venv="huey",
        imports="import huey",
        store="sqlite",
        kind="queue",
        note="W2 is a pipeline of tasks; a dequeued task is not acknowledged",
    ),
    Peer(
        name="celery_redis",
        label="Celery, Redis",
        venv="celery",
        imports="import celery.app.base",
        store="redis",
        kind="queue",
        note="Redis with appendfsync always, acks late; W2 is a chain of tasks",
    ),
    Peer(
        name="raw_sqlite",
        label="raw limit, SQLite",
        venv="raw",
        imports="import sqlite3",
        store="sqlite",
        kind="raw",
        note="batches of 500 UPDATEs from Python, nothing else",
    ),
    Peer(
        name="raw_postgres",
        label="raw limit, PostgreSQL",
        venv="raw",
        imports="import psycopg",
        store="postgres",
        kind="raw",
        note="batches of 500 UPDATEs from Python, nothing else",
    ),
]


def choose(names: list[str]) -> list[Peer]:
    """Peers by name or by the beginning of a name; nothing means all."""
    if not names:
        return ROSTER
    for name in names:
        if not any(peer.name.startswith(name) for peer in ROSTER):
            raise SystemExit(f"no peer {name!r}; there are: {', '.join(peer.name for peer in ROSTER)}")
    return [peer for peer in ROSTER if any(peer.name.startswith(name) for name in names)]
