"""The raw limit of PostgreSQL from Python: batches through psycopg and unnest, one commit each, nothing else.

Every UPDATE changes its row: writing the same value again could be skipped by a store, and would measure nothing.
"""

from __future__ import annotations

import time
from typing import Any

import psycopg
from _adapter import Adapter, Answer, expect_equal, rests, serve, stopwatch, versions

BATCH = 500


class RawPostgres(Adapter):
    def setup(self, url: str, directory: str) -> Answer:
        self.connection: psycopg.Connection[Any] = psycopg.connect(url, autocommit=True)
        self.connection.execute(
            "CREATE TABLE IF NOT EXISTS record (id bigint PRIMARY KEY, step int NOT NULL, data text NOT NULL)"
        )
        self.next = 0
        return {
            "settings": {"batch": BATCH, "statement": "UPDATE ... FROM unnest, binary arrays"},
            "versions": versions("psycopg"),
        }

    def insert(self, n: int) -> list[int]:
        ids = list(range(self.next, self.next + n))
        self.next += n
        for begin in range(0, n, BATCH):
            self.connection.execute(
                "INSERT INTO record SELECT id, 0, 'x' FROM unnest(%b::bigint[]) AS new(id)",
                (ids[begin : begin + BATCH],),
            )
        return ids

    def update(self, ids: list[int], step: int) -> None:
        for begin in range(0, len(ids), BATCH):
            batch = ids[begin : begin + BATCH]
            done = self.connection.execute(
                "UPDATE record SET step = new.step, data = new.data FROM unnest(%b::bigint[], %b::int[], %b::text[])"
                " AS new(id, step, data) WHERE record.id = new.id",
                (batch, [step] * len(batch), [f"{{{step}}}"] * len(batch)),
            )
            expect_equal("rows updated", done.rowcount, len(batch))

    def w1(self, n: int) -> Answer:
        with stopwatch() as enqueued:
            ids = self.insert(n)
            enqueue_seconds = enqueued()
        with stopwatch() as drained:
            self.update(ids, 1)
            drain_seconds = drained()
        return {"n": n, "enqueue_seconds": enqueue_seconds, "drain_seconds": drain_seconds}

    def w2(self, records: int, steps: int) -> Answer:
        with stopwatch() as ran:
            ids = self.insert(records)
            for step in range(1, steps + 1):
                self.update(ids, step)
            seconds = ran()
        return {"steps": records * steps, "seconds": seconds}

    def w3(self, n: int, pause: float) -> Answer:
        """The least that a durable record costs: one commit for its start, one for its end."""
        latencies = []
        for rest in rests(n, pause):
            time.sleep(rest)
            with stopwatch() as took:
                self.update(self.insert(1), 1)
                latencies.append(took() * 1000)
        return {"latencies_ms": latencies}

    def w4(self, children: int) -> Answer:
        with stopwatch() as ran:
            parent = self.insert(1)
            self.update(self.insert(children), 1)
            self.update(parent, 1)
            seconds = ran()
        return {"children": children, "seconds": seconds}

    missing = dict.fromkeys(["w5", "fill", "idle", "crash", "enqueue", "w10"], "nothing but rows")


if __name__ == "__main__":
    serve(RawPostgres())
