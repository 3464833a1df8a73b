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
    #: What a user imports first; its import time is part of W7.
    module: str
    store: Store
    kind: Kind
    #: What the reader must know before comparing.
    note: str = ""
    #: Smaller sizes for a peer that would take too long, by workload. Rates stay comparable, seconds do not.
    sizes: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def script(self) -> Path:
        return PEERS / f"{self.name}.py"


QUIRE_NOTE = "W8 acts through an effect with a probe, which the peers' plain steps do not have"
SLOW_STEPS = {"W11": {"transitions": 10_000}}

ROSTER = [
    Peer(
        name="quire_sqlite",
        label="Quire, SQLite",
        venv="quire",
        module="quire",
        store="sqlite",
        kind="quire",
        note=QUIRE_NOTE,
    ),
    Peer(
        name="quire_postgres",
        label="Quire, PostgreSQL",
        venv="quire",
        module="quire",
        store="postgres",
        kind="quire",
        note=QUIRE_NOTE,
    ),
    Peer(
        name="dbos_sqlite",
        label="DBOS, SQLite",
        venv="dbos",
        module="dbos",
        store="sqlite",
        kind="engine",
        note="leaves SQLite in rollback-journal mode",
        sizes={"W1": {"n": 800}, "W2": {"records": 100, "steps": 10}, "W6": {"n": 800}, **SLOW_STEPS},
    ),
    Peer(
        name="dbos_postgres",
        label="DBOS, PostgreSQL",
        venv="dbos",
        module="dbos",
        store="postgres",
        kind="engine",
        note="W3 starts the workflow directly; the queue at a 10 ms poll is in the raw figures",
        sizes=SLOW_STEPS,
    ),
    Peer(
        name="absurd_postgres",
        label="Absurd, PostgreSQL",
        venv="absurd",
        module="absurd_sdk",
        store="postgres",
        kind="engine",
        note="W4: the parent awaits its children's results one after the other",
        sizes=SLOW_STEPS,
    ),
    Peer(
        name="langgraph_sqlite",
        label="LangGraph, SQLite",
        venv="langgraph",
        module="langgraph.graph",
        store="sqlite",
        kind="engine",
        note="no queue and no worker: the caller invokes; W4 is one run with parallel nodes",
        sizes={"W1": {"n": 1000}, **SLOW_STEPS},
    ),
    Peer(
        name="langgraph_postgres",
        label="LangGraph, PostgreSQL",
        venv="langgraph",
        module="langgraph.graph",
        store="postgres",
        kind="engine",
        note="no queue and no worker: the caller invokes; W4 is one run with parallel nodes",
        sizes={"W1": {"n": 1000}, **SLOW_STEPS},
    ),
    Peer(
        name="temporal_dev",
        label="Temporal dev server",
        venv="temporal",
        module="temporalio.client",
        store="temporal",
        kind="engine",
        note="`start-dev` on an SQLite file, not a production cluster; W4 is 1,000 activities",
        sizes={
            "W1": {"n": 300},
            "W2": {"records": 50, "steps": 10},
            "W3": {"n": 60, "pause": 0.02},
            "W11": {"transitions": 2_000},
        },
    ),
    Peer(
        name="prefect_server",
        label="Prefect, local server",
        venv="prefect",
        module="prefect",
        store="prefect",
        kind="engine",
        note="flows are called in the process, without a work pool",
        sizes={
            "W1": {"n": 30},
            "W2": {"records": 8, "steps": 10},
            "W3": {"n": 15, "pause": 0.02},
            "W4": {"children": 200},
            "W11": {"transitions": 200},
        },
    ),
    Peer(
        name="procrastinate_postgres",
        label="Procrastinate, PostgreSQL",
        venv="procrastinate",
        module="procrastinate",
        store="postgres",
        kind="queue",
        note="W2 is a chain of jobs; W4 is counted in the process",
        sizes=SLOW_STEPS,
    ),
    Peer(
        name="pgqueuer_postgres",
        label="PgQueuer, PostgreSQL",
        venv="pgqueuer",
        module="pgqueuer",
        store="postgres",
        kind="queue",
        note="W2 is a chain of jobs; W4 is counted in the process; completions are written in batches",
        sizes={"W11": {"transitions": 20_000}},
    ),
    Peer(
        name="huey_sqlite",
        label="Huey, SQLite",
        venv="huey",
        module="huey",
        store="sqlite",
        kind="queue",
        note="W2 is a pipeline of tasks; a dequeued task is not acknowledged",
        sizes={"W11": {"transitions": 20_000}},
    ),
    Peer(
        name="celery_redis",
        label="Celery, Redis",
        venv="celery",
        module="celery.app.base",
        store="redis",
        kind="queue",
        note="Redis with appendfsync always, acks late; W2 is a chain of tasks",
        sizes=SLOW_STEPS,
    ),
    Peer(
        name="raw_sqlite",
        label="raw limit, SQLite",
        venv="raw",
        module="sqlite3",
        store="sqlite",
        kind="raw",
        note="batches of 500 UPDATEs from Python, nothing else",
    ),
    Peer(
        name="raw_postgres",
        label="raw limit, PostgreSQL",
        venv="raw",
        module="psycopg",
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
