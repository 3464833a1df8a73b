"""LangGraph with its own checkpointers, the same adapter for both stores.

Settings: ``durability="sync"`` (each step is saved before the next one begins), 50 invocations at once, on uvloop. It
has no queue and no worker: W1 has no enqueue, and the cap of W5 is the caller's semaphore.
"""

from __future__ import annotations

import asyncio
import operator
import os
from typing import Annotated, Any, ClassVar, TypedDict

import uvloop
from _adapter import Adapter, Answer, Journal, Tally, expect_equal, rests, sqlite_bytes, stopwatch, text_of, versions
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

AT_ONCE = 50
bodies = Tally()
journal: Journal | None = None


class Line(TypedDict):
    number: int
    done: bool


class Family(TypedDict):
    children: int
    parts: Annotated[list[int], operator.add]
    total: int


class Talk(TypedDict):
    turns: int
    size: int
    messages: Annotated[list[str], operator.add]


class LangGraphAdapter(Adapter):
    round = (20, 10)
    loop_factory = staticmethod(uvloop.new_event_loop)
    missing: ClassVar[dict[str, str]] = {
        "idle": "no worker: nothing is running while nothing is invoked",
        "fill": "no queue: finished threads are never looked at again",
        "enqueue": "no queue and no worker processes",
    }

    async def setup(self, url: str, directory: str) -> Answer:
        self.url = url
        self.directory = directory
        self.on_postgres = url.startswith("postgresql")
        self.count = 0
        if self.on_postgres:
            from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
            from psycopg.rows import dict_row
            from psycopg_pool import AsyncConnectionPool

            options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
            self.pool: Any = AsyncConnectionPool(url, min_size=4, max_size=20, open=False, kwargs=options)
            await self.pool.open()
            self.saver: Any = AsyncPostgresSaver(self.pool)
            names = ["langgraph-checkpoint-postgres", "psycopg"]
        else:
            import aiosqlite
            from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

            self.pool = await aiosqlite.connect(os.path.join(directory, "ledger.db"))
            await self.pool.execute("PRAGMA synchronous = FULL")
            self.saver = AsyncSqliteSaver(self.pool)
            names = ["langgraph-checkpoint-sqlite", "aiosqlite"]
        await self.saver.setup()
        return {
            "settings": {
                "durability": "sync",
                "at once": AT_ONCE,
                "pool": 20 if self.on_postgres else 1,
                "loop": "uvloop",
            },
            "versions": versions("langgraph", "langgraph-checkpoint", "uvloop", *names),
        }

    async def close(self) -> None:
        await self.pool.close()

    def line(self, steps: int, seconds: float | None = None) -> Any:
        graph = StateGraph(Line)
        for step in range(steps):
            graph.add_node(f"s{step}", _node(step, steps, seconds))
        graph.add_edge(START, "s0")
        for step in range(steps - 1):
            graph.add_edge(f"s{step}", f"s{step + 1}")
        graph.add_edge(f"s{steps - 1}", END)
        return graph.compile(checkpointer=self.saver)

    def thread(self, name: str | None = None) -> dict[str, Any]:
        self.count += 1
        return {"configurable": {"thread_id": name or f"{os.getpid()}-{self.count}"}, "recursion_limit": 10_000}

    async def invoke(self, graph: Any, state: Any, config: dict[str, Any] | None = None) -> Any:
        return await graph.ainvoke(state, config or self.thread(), durability="sync")

    async def crowd(self, graph: Any, states: list[Any], at_once: int = AT_ONCE) -> list[Any]:
        gate = asyncio.Semaphore(at_once)

        async def one(state: Any) -> Any:
            async with gate:
                return await self.invoke(graph, state)

        return await asyncio.gather(*(one(state) for state in states))

    async def w1(self, n: int) -> Answer:
        graph = self.line(1)
        bodies.expect(n)
        with stopwatch() as ran:
            results = await self.crowd(graph, [{"number": number, "done": False} for number in range(n)])
            seconds = ran()
        bodies.check()
        expect_equal("finished", sum(result["done"] for result in results), n)
        return {"n": n, "drain_seconds": seconds}

    async def w2(self, records: int, steps: int) -> Answer:
        graph = self.line(steps)
        bodies.expect(records)
        with stopwatch() as ran:
            results = await self.crowd(graph, [{"number": number, "done": False} for number in range(records)])
            seconds = ran()
        bodies.check()
        expect_equal("finished", sum(result["done"] for result in results), records)
        return {"steps": records * steps, "seconds": seconds}

    async def w3(self, n: int, pause: float) -> Answer:
        graph = self.line(1)
        latencies = []
        bodies.expect(n)
        for number, rest in enumerate(rests(n, pause)):
            await asyncio.sleep(rest)
            with stopwatch() as took:
                await self.invoke(graph, {"number": number, "done": False})
                latencies.append(took() * 1000)
        bodies.check()
        return {"latencies_ms": latencies}

    async def w4(self, children: int) -> Answer:
        graph = StateGraph(Family)

        async def child(state: dict[str, Any]) -> dict[str, Any]:
            bodies.hit()
            return {"parts": [state["number"]]}

        async def reduce(state: Family) -> dict[str, Any]:
            return {"total": sum(state["parts"])}

        graph.add_node("split", lambda state: {})
        graph.add_node("child", child)
        graph.add_node("reduce", reduce)
        graph.add_edge(START, "split")
        graph.add_conditional_edges(
            "split", lambda state: [Send("child", {"number": number}) for number in range(state["children"])], ["child"]
        )
        graph.add_edge("child", "reduce")
        graph.add_edge("reduce", END)
        compiled = graph.compile(checkpointer=self.saver)
        bodies.expect(children)
        with stopwatch() as ran:
            result = await self.invoke(compiled, {"children": children, "parts": [], "total": 0})
            seconds = ran()
        bodies.check()
        expect_equal("sum", result["total"], children * (children - 1) // 2)
        return {"children": children, "seconds": seconds}

    async def w5(self, n: int, seconds: float, cap: int) -> Answer:
        graph = self.line(1, seconds)
        bodies.expect(n)
        with stopwatch() as ran:
            await self.crowd(graph, [{"number": number, "done": False} for number in range(n)], at_once=cap)
            total = ran()
        bodies.check()
        return {"seconds": total, "ideal": n * seconds / cap}

    async def crash(self, records: int, steps: int, step_seconds: float, concurrency: int, path: str) -> Answer:
        global journal
        journal = Journal(path)
        bodies.expect(10**9)
        asyncio.get_running_loop().create_task(self.travel(records, steps, step_seconds, concurrency))
        return {"started": True}

    async def resume(self, records: int, steps: int, step_seconds: float, concurrency: int, path: str) -> Answer:
        """The caller must know every thread. An empty ``next`` does not prove that one has ended; ``done`` does."""
        global journal
        journal = Journal(path)
        bodies.expect(10**9)
        await self.travel(records, steps, step_seconds, concurrency)
        return {"finished": records}

    async def travel(self, records: int, steps: int, seconds: float, concurrency: int) -> None:
        graph = self.line(steps, seconds)
        gate = asyncio.Semaphore(concurrency)

        async def one(record: int) -> None:
            async with gate:
                config = self.thread(f"journey-{record}")
                saved = await graph.aget_state(config)
                if saved.values.get("done"):
                    return
                state = None if saved.created_at is not None else {"number": record, "done": False}
                result = await self.invoke(graph, state, config)
                expect_equal(f"record {record} done", result["done"], True)

        await asyncio.gather(*(one(record) for record in range(records)))

    async def w10(self, turns: int, turn_bytes: int) -> Answer:
        graph = StateGraph(Talk)
        graph.add_node("speak", lambda state: {"messages": [text_of(state["size"], len(state["messages"]))]})
        graph.add_edge(START, "speak")
        graph.add_conditional_edges("speak", lambda state: END if len(state["messages"]) >= state["turns"] else "speak")
        compiled = graph.compile(checkpointer=self.saver)
        before = await self.size()
        result = await self.invoke(compiled, {"turns": turns, "size": turn_bytes, "messages": []})
        expect_equal("characters", sum(map(len, result["messages"])), turns * turn_bytes)
        return {"bytes": await self.size() - before}

    async def size(self) -> int:
        if not self.on_postgres:
            await self.pool.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            return sqlite_bytes(os.path.join(self.directory, "ledger.db"))
        async with self.pool.connection() as connection:
            cursor = await connection.execute("SELECT pg_database_size(current_database()) AS size")
            row = await cursor.fetchone()
            return int(row["size"])


def _node(step: int, steps: int, seconds: float | None) -> Any:
    last = step == steps - 1

    async def node(state: Line) -> dict[str, Any]:
        if seconds is not None:
            await asyncio.sleep(seconds)
        if journal is not None:
            journal.act(state["number"], step)
        if last:
            bodies.hit()
        return {"done": last}

    return node
