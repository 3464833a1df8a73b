"""The raw limit of SQLite from Python: batches through executemany, WAL and synchronous=FULL, one commit each.

Every UPDATE changes its row: SQLite skips the page write and the sync of one that changes nothing.
"""

from __future__ import annotations

import sqlite3
import time

from _adapter import Adapter, Answer, expect_equal, rests, serve, stopwatch, versions

BATCH = 500


class RawSqlite(Adapter):
    def setup(self, url: str, directory: str) -> Answer:
        self.connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("PRAGMA synchronous = FULL")
        self.connection.execute(
            "CREATE TABLE IF NOT EXISTS record (id INTEGER PRIMARY KEY, step INT NOT NULL, data TEXT NOT NULL)"
        )
        self.next = 1
        return {"settings": {"batch": BATCH, "journal": "WAL", "synchronous": "FULL"}, "versions": versions()}

    def batches(self, statement: str, rows: list[tuple[object, ...]]) -> None:
        for begin in range(0, len(rows), BATCH):
            batch = rows[begin : begin + BATCH]
            self.connection.execute("BEGIN IMMEDIATE")
            done = self.connection.executemany(statement, batch)
            self.connection.execute("COMMIT")
            expect_equal("rows written", done.rowcount, len(batch))

    def insert(self, n: int) -> list[int]:
        ids = list(range(self.next, self.next + n))
        self.next += n
        self.batches("INSERT INTO record VALUES (?, 0, 'x')", [(number,) for number in ids])
        return ids

    def update(self, ids: list[int], step: int) -> None:
        self.batches(
            "UPDATE record SET step = ?, data = ? WHERE id = ?", [(step, f"{{{step}}}", number) for number in ids]
        )

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
    serve(RawSqlite())
