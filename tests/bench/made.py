"""Results as a run of the bench would keep them, made for tests."""

from __future__ import annotations

from typing import Any

QUIET: dict[str, Any] = {"fdatasync_ms": 0.07, "spin_ms": 3.0, "foreign_cores": 0.0, "noisy": []}
NOISY: dict[str, Any] = {**QUIET, "noisy": ["others used 1.00 cores"]}

KINDS = {
    "quire_sqlite": ("Quire, SQLite", "sqlite", "quire"),
    "quire_postgres": ("Quire, PostgreSQL", "postgres", "quire"),
    "dbos_sqlite": ("DBOS, SQLite", "sqlite", "engine"),
    "dbos_postgres": ("DBOS, PostgreSQL", "postgres", "engine"),
    "pgqueuer_postgres": ("PgQueuer, PostgreSQL", "postgres", "queue"),
    "huey_sqlite": ("Huey, SQLite", "sqlite", "queue"),
    "raw_sqlite": ("raw limit, SQLite", "sqlite", "raw"),
}


def run(workload: str, peer: str, repetition: int = 0, *, noisy: bool = False, **figures: Any) -> dict[str, Any]:
    return {
        "workload": workload,
        "peer": peer,
        "repetition": repetition,
        "sizes": {},
        "figures": figures,
        "noise": NOISY if noisy else QUIET,
        "took": 1.0,
    }


def w1(peer: str, rate: float, repetition: int = 0, *, noisy: bool = False, **more: Any) -> dict[str, Any]:
    return run("W1", peer, repetition, noisy=noisy, n=1000, enqueue_seconds=0.5, drain_seconds=1000 / rate, **more)


def w2(peer: str, rate: float, repetition: int = 0, *, noisy: bool = False) -> dict[str, Any]:
    return run("W2", peer, repetition, noisy=noisy, steps=1000, seconds=1000 / rate)


def w3(peer: str, ms: float) -> dict[str, Any]:
    return run("W3", peer, latencies_ms=[ms] * 5)


def results(*runs: dict[str, Any], **more: Any) -> dict[str, Any]:
    workloads = {found["workload"]: {"title": f"about {found['workload']}", "sizes": {}} for found in runs}
    peers = {
        name: {"label": label, "store": store, "kind": kind, "note": "", "packages": {}}
        for name, (label, store, kind) in KINDS.items()
    }
    return {
        "begun_at": "2026-01-01T00:00:00+00:00",
        "ended_at": "2026-01-01T00:50:00+00:00",
        "quick": False,
        "repeat": 3,
        "machine": {"cores": 2, "best_probe": {"fdatasync_ms": 0.07, "spin_ms": 3.0}},
        "peers": peers,
        "unavailable": {},
        "workloads": workloads,
        "runs": list(runs),
        "profiles": [],
        **more,
    }
