"""Real processes, really killed: every record ends, nothing is done twice, nothing is lost."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from quire import Record, Status, aopen
from quire.client.client import Client
from quire.clock import SYSTEM
from quire.errors import IllegalMove
from quire.model.codec import parse
from quire.model.event import Event, first_break
from quire.model.receipt import Stage
from tests.runtime.conftest import StartWorker
from tests.runtime.desk import STEPS, WORKFLOWS, Sink

#: Of a worker that is frozen past it; not shorter, for on a busy machine it must not run out before it is frozen.
LEASE = "3s"


@pytest.mark.slow
async def test_workers_killed_at_random_instants_do_everything_once(
    store: str, sink_path: Path, start_worker: StartWorker
) -> None:
    chance = random.Random(7)
    records = 200
    async with aopen(store, workflows=WORKFLOWS, deps=Sink(sink_path)) as client:
        await client.start_many("desk", [{} for _ in range(records)], ids=[f"d{n}" for n in range(records)])
        workers = [start_worker("--forever", "--lease", "30s"), start_worker("--forever", "--lease", "30s")]
        for _ in range(6):
            await SYSTEM.sleep(chance.uniform(0.05, 0.5))
            victim = workers.pop(chance.randrange(len(workers)))
            os.kill(victim.pid, signal.SIGKILL)
            victim.wait()
            workers.append(start_worker("--forever", "--lease", "30s"))
        for number in range(records):
            record = await helped_to_its_end(client, f"d{number}", Sink(sink_path))
            assert record.status is Status.DONE, record.last_error

        wanted = sorted(f"d{record}/{step}" for record in range(records) for step in range(STEPS))
        assert sorted(line.split(" ", 1)[1] for line in Sink(sink_path).lines()) == wanted
        receipts = await client.ledger.receipts(record_ids=[f"d{n}" for n in range(records)])
        assert sorted(parse(r.value) for r in receipts if r.stage is Stage.DONE) == wanted
        for lines in (await logs(client)).values():
            assert first_break(lines) is None


async def helped_to_its_end(client: Client, record_id: str, sink: Sink) -> Record:
    """A record that ran alone in a worker that was killed three times is an error, or asks: a person sees to that."""
    async with asyncio.timeout(60):
        while True:
            record = await client.get(record_id)
            if record.status is Status.ERROR and "ended 3 processes in which it ran alone" in (record.last_error or ""):
                await client.retry(record_id, by="ann@x.eu")
            elif record.status is Status.NEEDS_APPROVAL:
                assert record.question == "Did 'put' happen?"
                text = f"{record_id}/{record.step.removeprefix('step')}"
                happened = any(line.endswith(f" {text}") for line in sink.lines())
                await client.resolve(record_id, happened=happened, value=text, by="ann@x.eu")
            elif record.ended:
                return record
            await SYSTEM.sleep(0.02)


async def logs(client: Client) -> dict[str, list[Event]]:
    """The log of each record."""
    found: dict[str, list[Event]] = {}
    after = 0
    while events := await client.events(after=after, limit=10_000):
        after = events[-1].seq
        for event in events:
            found.setdefault(event.record_id, []).append(event)
    return found


async def test_a_second_process_that_joins_repeats_nothing(
    store: str, sink_path: Path, tmp_path: Path, start_worker: StartWorker
) -> None:
    """The first holds records in the middle of their step when the second comes."""
    async with aopen(store, workflows=WORKFLOWS, deps=Sink(sink_path)) as client:
        word = tmp_path / "word"
        held = [f"p{n}" for n in range(5)]
        await client.start_many("patience", [{"path": str(word)} for _ in held], ids=held)
        start_worker("--forever", "--lease", "60s")
        while sum(record.status is Status.RUNNING for record in await client.find(workflow="patience")) < 5:
            await SYSTEM.sleep(0.01)
        start_worker("--forever", "--lease", "60s")
        await client.start_many("desk", [{} for _ in range(20)], ids=[f"d{n}" for n in range(20)])
        for number in range(20):
            await client.until_ended(f"d{number}", timeout="60s")
        meanwhile = {record.status for record in await client.find(workflow="patience")}
        word.touch()
        for record_id in held:
            await client.until_ended(record_id, timeout="60s")

        assert meanwhile == {Status.RUNNING}
        records = await client.find(limit=100)
        assert {(record.status, record.attempt, record.losses) for record in records} == {(Status.DONE, 0, 0)}
        told = await logs(client)
        assert [[event.kind for event in told[record_id]].count("claimed") for record_id in held] == [1] * 5
    lines = Sink(sink_path).lines()
    assert len(set(lines)) == len(lines) == 20 * STEPS


@pytest.mark.parametrize("name", ["one_act", "one_blind_act"])
async def test_killed_between_the_act_and_its_receipt(
    store: str, sink_path: Path, start_worker: StartWorker, name: str
) -> None:
    """With a probe the truth is found; without one the record asks; nothing is done twice."""
    async with aopen(store, workflows=WORKFLOWS, deps=Sink(sink_path)) as client:
        await client.start(name, {}, id="a")
        victim = start_worker("--stop-at", "2", "--lease", "60s")  # the commit that would bring the receipt
        await asyncio.to_thread(os.waitpid, victim.pid, os.WUNTRACED)
        assert len(Sink(sink_path).lines()) == 1
        victim.kill()
        victim.wait()

        worker = client.worker()
        working = asyncio.ensure_future(worker.run())
        try:
            record = await client.get("a")
            while not (record.ended or record.status is Status.NEEDS_APPROVAL):
                await SYSTEM.sleep(0.02)
                record = await client.get("a")
            if name == "one_blind_act":
                assert record.status is Status.NEEDS_APPROVAL
                assert (record.question or "").startswith("Did 'put_blindly' happen?")
                await client.resolve("a", happened=True, value="a", by="ann@x.eu")
            record = await client.until_ended("a", timeout="60s")
        finally:
            worker.stop()
            await working

        assert (record.status, record.result) == (Status.DONE, '"a"')
    assert len(Sink(sink_path).lines()) == 1


async def test_a_takeover_on_the_same_machine_waits_for_no_lease(
    store: str, sink_path: Path, start_worker: StartWorker
) -> None:
    async with aopen(store, workflows=WORKFLOWS, deps=Sink(sink_path)) as client:
        await client.start("labour", {}, id="l")
        victim = start_worker("--lease", "1h")
        while (await client.get("l")).status is not Status.RUNNING:
            await SYSTEM.sleep(0.01)
        victim.kill()
        victim.wait()
        start_worker("--lease", "1h")

        record = await client.until_ended("l", timeout="20s")

        assert record.status is Status.DONE
        assert "its process is dead" in str(await client.events("l"))


@pytest.mark.slow
async def test_a_chain_of_processes_each_killed_after_two_seconds_finishes_a_minute_of_work(
    stores: list[str], sink_path: Path, start_worker: StartWorker
) -> None:
    """On all stores at once: the time goes by in waiting, not in working."""
    links = await asyncio.gather(*(chained(store, sink_path, start_worker) for store in stores))

    assert min(links) > 3


async def chained(store: str, sink_path: Path, start_worker: StartWorker) -> int:
    """Thirty records of two seconds each; answers how many processes it took."""
    async with aopen(store, workflows=WORKFLOWS, deps=Sink(sink_path)) as client:
        await client.start_many("labour", [{} for _ in range(30)], ids=[f"l{n}" for n in range(30)])
        links = 0
        while links < 40 and not all(record.ended for record in await client.find(workflow="labour")):
            links += 1
            worker = await asyncio.to_thread(start_worker, "--forever", store=store)
            await SYSTEM.sleep(2.0)
            worker.kill()
            worker.wait()

        assert [record.status for record in await client.find(workflow="labour")] == [Status.DONE] * 30
        return links


@pytest.mark.slow
async def test_a_worker_frozen_at_any_commit_acts_on_nothing_that_another_has_taken(
    stores: list[str], tmp_path: Path, start_worker: StartWorker
) -> None:
    """Each commit of ``once`` on each store, before it is sent and after its answer came, all at once."""
    boundaries = [(nth, after) for nth in (1, 2, 3) for after in (False, True)]
    places = [(store, *boundary) for store in stores for boundary in boundaries]

    froze = await asyncio.gather(
        *(
            frozen_at(_of_its_own(store, f"{nth}{after}".lower()), tmp_path / f"{n}.txt", start_worker, nth, after)
            for n, (store, nth, after) in enumerate(places)
        )
    )

    reached = {(store, nth, after) for (store, nth, after), it in zip(places, froze, strict=True) if it}
    # The intent, the receipt, and what the step comes to; the last two may be one commit.
    assert reached >= {place for place in places if place[1] < 3}


def _of_its_own(store: str, name: str) -> str:
    """Another empty ledger on the same store."""
    return f"{store}?schema=at_{name}" if store.startswith("postgres") else store.replace(".db", f"-{name}.db")


async def frozen_at(store: str, sink_path: Path, start_worker: StartWorker, nth: int, after: bool) -> bool:
    """Freeze a worker there until another has taken its record, and let it go on; False: it never came there."""
    async with aopen(store, workflows=WORKFLOWS, deps=Sink(sink_path)) as client:
        await client.start("one_act", {}, id="a")
        options = ["--stop-at", str(nth), "--lease", LEASE, *(["--after"] if after else [])]
        frozen = await asyncio.to_thread(start_worker, *options, store=store, sink=sink_path)
        while (stopped := os.waitpid(frozen.pid, os.WUNTRACED | os.WNOHANG)) == (0, 0):  # noqa: ASYNC222 - it does not
            await SYSTEM.sleep(0.01)
        if not os.WIFSTOPPED(stopped[1]):
            frozen.returncode = os.waitstatus_to_exitcode(stopped[1])
            assert (frozen.returncode, (await client.get("a")).status) == (0, Status.DONE)
            return False
        first_run = (await client.get("a")).run_id
        worker = client.worker()
        working = asyncio.ensure_future(worker.run())
        try:
            record = await client.get("a")
            while not (record.ended or record.status is Status.NEEDS_APPROVAL):
                await SYSTEM.sleep(0.05)
                record = await client.get("a")
            before = len(await client.events("a"))

            os.kill(frozen.pid, signal.SIGCONT)
            if record.status is Status.NEEDS_APPROVAL and Sink(sink_path).lines():
                with suppress(IllegalMove):  # its own receipt, which ends the doubt, too, may have come first
                    await client.resolve("a", happened=True, value="a", by="ann@x.eu")
            record = await client.until_ended("a", timeout="60s")  # "it did not act" wakes what was in doubt
            assert await asyncio.to_thread(frozen.wait) == 0
        finally:
            worker.stop()
            await working

        later = [event for event in (await client.events("a"))[before:] if event.run_id == first_run]
        assert all(event.kind.startswith("effect.") for event in later)
        assert record.status is Status.DONE, record.last_error
        assert len(Sink(sink_path).lines()) == 1
        return True
