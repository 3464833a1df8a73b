"""Real processes, really killed: a mission loses no word and asks for nothing twice."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest

import quire
from quire.agents.missions.flow import compiled
from quire.agents.missions.report import Report
from quire.agents.missions.story import Story, read
from quire.model.record import Status
from tests.agents.conftest import Serve
from tests.agents.missions import agent_of, blueprint
from tests.agents.stand_in import Answer, Asked

ROOT = Path(__file__).parents[2]
NAMES = ["engineer", "resources", "governor"]


def place(asked: Asked) -> tuple[str, int]:
    return agent_of(asked.prompts[0]), asked.turn


@pytest.mark.slow
async def test_every_turn_in_a_new_process_and_every_process_killed(serve: Serve, tmp_path: Path) -> None:
    allowed = {1}  # the turn that is answered; requests of a later one are left without an answer
    lines_dropped = threading.Event()

    def answer(asked: Asked) -> Answer:
        who, turn = place(asked)
        stage = 4 if who == "editor" else turn
        if stage not in allowed:
            return Answer(parked=lines_dropped)
        return Answer(f"<{who} in turn {turn}: {asked.number}>")

    server = serve(answer)
    url, path = f"sqlite:///{tmp_path / 'ledger.db'}", tmp_path / "colony.json"
    plan = blueprint(server.model("openai"))
    path.write_text(json.dumps(plan.as_json()), encoding="utf-8")
    async with quire.aopen(url, workflows=[compiled(plan)]) as client:
        await client.start("colony", {}, id="m1")

    def waiting(stage: int) -> bool:
        """Everybody has ended the turn before and asks for this one."""
        asked = {place(entry.asked) for entry in server.log if not entry.answered}
        return ("editor", 1) in asked if stage == 4 else {(name, stage) for name in NAMES} <= asked

    with _workers(url, path) as told:
        for stage in (2, 3, 4, 5):
            assert len(set(told("3"))) == 3  # processes
            if stage < 5:
                server.wait_for(lambda stage=stage: waiting(stage), 120)  # type: ignore[misc]
            else:
                server.wait_for(lambda: ("editor", 1) in {place(asked) for asked in server.answered}, 120)
                async with quire.aopen(url) as client:
                    record = await client.until_ended("m1", timeout="30s")
            assert told("kill") == []
            lines_dropped.set()
            lines_dropped = threading.Event()
            allowed = {stage}

    assert record.status is Status.DONE
    answers = Counter(place(asked) for asked in server.answered)
    assert answers == {**{(name, turn): 1 for name in NAMES for turn in (1, 2, 3)}, ("editor", 1): 1}
    texts = {place(entry.asked): _text(entry.asked) for entry in server.log if entry.answered}
    for asked in server.answered:
        who, turn = place(asked)
        if turn == 3:  # word for word, though each turn was in a new process
            said = [text for name, text in asked.said if name == "model"]
            assert said == [texts[who, 1], texts[who, 2]]
            assert asked.prompts == [f"[{who}] Plan the colony.", "STORM: what now?", "FINAL: the plan."]
    report = Report.model_validate_json(record.result or "")
    assert report.text == texts["editor", 1]
    [reduction] = [asked for asked in server.answered if place(asked)[0] == "editor"]
    for name in NAMES:
        assert f"## Report of {name}\n\n{texts[name, 3]}" in reduction.prompt
    async with quire.aopen(url) as client:
        story = await read(client.ledger, "m1")
    assert story.spent.calls == len(server.log) == 17  # what the provider was asked, and may bill
    assert story.spent.lost == len(server.log) - len(server.answered) == 7
    assert "17 calls (7 begun, cost not known)" in story.spent.in_words()
    assert report.spent == story.spent
    turns = [[_worker_of(story, f"may {name}/{turn} 1.1") for name in NAMES] for turn in (1, 2, 3)]
    assert [len(set(workers)) for workers in turns] == [3, 3, 3]  # each agent had a process of its own
    assert not set(turns[1]) & set(turns[2])  # and others in turn 3 than in turn 2


@contextmanager
def _workers(url: str, path: Path) -> Iterator[Callable[[str], list[str]]]:
    """Starts and kills workers as it is told; answers with the processes that live then."""
    command = [sys.executable, "-m", "tests.agents.work", url, str(path)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as origin:
        assert origin.stdin is not None and origin.stdout is not None

        def told(line: str) -> list[str]:
            print(line, file=origin.stdin, flush=True)
            return origin.stdout.readline().split()  # type: ignore[union-attr]  # it is a pipe

        yield told


def _worker_of(story: Story, name: str) -> str:
    [worker] = {receipt.worker for receipt in story.receipts if receipt.name == name}
    return worker


def _text(asked: Asked) -> str:
    who, turn = place(asked)
    return f"<{who} in turn {turn}: {asked.number}>"


def _sqlite_is_free(url: str) -> bool:
    """Another writer gets in while the models answer."""
    with sqlite3.connect(url.removeprefix("sqlite:///"), timeout=0.5) as other:
        other.execute("BEGIN IMMEDIATE")
        other.rollback()
    other.close()
    return True


def _postgres_is_free(url: str) -> bool:
    """No transaction is open since the models were asked, a second ago; and without one no lock of rows is."""
    with psycopg.connect(url, autocommit=True) as other:
        [busy] = other.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database() "
            "AND xact_start < clock_timestamp() - interval '0.7 seconds'"
        ).fetchone() or [1]
    return busy == 0


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
async def test_agents_run_side_by_side_and_nothing_is_locked_meanwhile(
    serve: Serve, tmp_path: Path, store: str, request: pytest.FixtureRequest
) -> None:
    seconds, free, kept = 2.0, [], []
    url = f"sqlite:///{tmp_path / 'ledger.db'}" if store == "sqlite" else str(request.getfixturevalue("postgres_url"))
    is_free = _sqlite_is_free if store == "sqlite" else _postgres_is_free

    def answer(asked: Asked) -> Answer:
        if asked.turn < 2:
            return Answer("ready")
        kept.append(_kept_waiting())
        threading.Event().wait(seconds / 2)
        free.append(is_free(url))
        return Answer("done", delay=seconds / 2)

    server = serve(answer)
    plan = blueprint(server.model("openai"), max_turns=2, turns={2: "STORM"}, barrier=True)
    flow = compiled(plan)
    async with quire.aopen(url, workflows=[flow]) as client:
        await client.start(flow, {}, id="m1")
        await client.work()

    calls = [entry for entry in server.log if entry.asked.turn == 2]
    together = max(call.ended for call in calls) - min(call.began for call in calls)
    slowest = max(call.ended - call.began for call in calls)
    assert (len(calls), free) == (3, [True] * 3)
    assert slowest >= seconds
    assert together - slowest - _kept_from_us(kept[0], kept[-1]) <= 0.02 * slowest


def _kept_waiting() -> dict[str, float]:
    """How many seconds each thread of this process was ready and had no processor. Empty where the system keeps mum."""
    found = {}
    for thread in Path("/proc/self/task").glob("*/schedstat"):
        with suppress(OSError):  # it has ended
            found[thread.parent.name] = int(thread.read_text().split()[1]) / 1e9
    return found


def _kept_from_us(before: dict[str, float], after: dict[str, float]) -> float:
    """What other programs took of the time between two looks: it is none of ours. On a quiet machine, nothing."""
    return sum(seconds - before.get(thread, 0.0) for thread, seconds in after.items())
