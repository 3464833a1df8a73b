"""The projector: the folder follows the commits, whatever stops it and whoever goes on."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from quire import Run, Workflow
from quire.client.client import Client
from quire.clock import SYSTEM
from quire.errors import LeaseLost, LedgerUnavailable
from quire.folder import table
from quire.folder.base import FolderError, unfenced
from quire.folder.disk import Disk
from quire.folder.local import LocalFolder
from quire.folder.projector import Projector
from quire.ledger.base import Ledger
from quire.ledger.memory.ledger import MemoryLedger
from quire.ledger.postgres.ledger import PostgresLedger
from quire.ledger.sqlite.ledger import SqliteLedger
from quire.model.change import Change, Claim, Holding, Slot
from quire.model.receipt import Kind, Stage
from quire.model.row import replace
from quire.model.side import Worker
from quire.run.dependencies import Dependencies
from quire.testing import ToldClock
from quire.upkeep.verify import verify
from tests.folder.flows import ALL, broken, files, opened, publish, steps, stuck, tell

BASE = "Workflows/seo_publish"


async def published(client: Client, record_id: str, keyword: str = "dashboards") -> None:
    await client.start(publish, {"keyword": keyword}, id=record_id)
    await client.work()
    await client.answer(record_id, "approve")
    await client.work()


def shown(where: Path, path: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((where / "folder" / path).read_bytes())
    return value


async def test_a_record_from_draft_to_archive_is_in_the_folder_as_the_seed_says(tmp_path: Path) -> None:
    record_id = "cmp_2026_03_spring_drop:prt_4183"
    async with opened(tmp_path) as (client, folder):
        await published(client, record_id)
        await Projector(client.ledger, folder, client.clock).catch_up()
        record = await client.get(record_id)
        found = await verify(client, folder)

    assert found.ok, found.differences
    state = shown(tmp_path, f"{BASE}/state/state_{record_id}.json")
    receipt = shown(tmp_path, f"{BASE}/artifacts/receipt_{record_id}_PUBLISH.json")
    [row] = csv.DictReader(io.StringIO(files(tmp_path)[f"{BASE}/state/state_table.csv"].decode()))
    assert list(row)[:7] == [
        "record_id",
        "status",
        "next_step",
        "dedupe_key",
        "last_run_id",
        "last_error",
        "updated_at",
    ]
    assert (row["record_id"], row["status"], row["next_step"], row["last_run_id"]) == (
        record_id,
        "DONE",
        "",
        record.run_id,
    )
    assert {name: state[name] or "" for name in list(row)[:7]} == {name: row[name] for name in list(row)[:7]}
    assert (state["version"], state["data"]["draft"]) == (record.version, "About dashboards")
    assert receipt["published_url"] == "https://example.org/dashboards"
    assert (receipt["record_id"], receipt["step"], receipt["run_id"]) == (record_id, "PUBLISH", record.run_id)
    assert receipt["dedupe_key"].startswith(f"seo_publish|{record_id}|PUBLISH|put_online|")
    assert (receipt["place"], receipt["value"]["place"]) == ("front", "front")
    assert receipt["published_at"].endswith("Z") and receipt["signature"]
    assert not [path for path in files(tmp_path) if "/locks/" in path]


async def test_each_run_has_one_log_by_the_date_of_its_start(tmp_path: Path) -> None:
    clock = ToldClock(1767225600.0 - 60)
    async with opened(tmp_path, clock) as (client, folder):
        await client.start(publish, {"keyword": "x"}, id="a")
        await client.work()
        clock.advance("2h")
        await client.answer("a", "approve", note="good")
        await client.work()
        await Projector(client.ledger, folder, clock).catch_up()
        claims = [event for event in await client.events("a") if event.kind == "claimed"]

    logs = sorted(path for path in files(tmp_path) if "/logs/" in path)
    assert [path.split("/")[3] for path in logs] == ["2025-12-31", "2026-01-01"]
    assert {path.rpartition("/")[2] for path in logs} == {f"{claim.run_id}.json" for claim in claims}
    asked, done = (shown(tmp_path, path) for path in logs)
    assert (asked["status"], done["status"]) == ("NEEDS_APPROVAL", "DONE")
    assert (asked["workflow_name"], asked["started_at"]) == ("seo_publish", "2025-12-31T23:59:00.000Z")
    assert asked["inputs"]["record_id"] == "a" and asked["inputs"]["config_version"]
    assert {"at", "action", "name"} <= set(asked["actions"][0]) and asked["actions"][0]["name"] == "drafted"
    assert done["outputs"]["receipts"] == ["receipt_a_PUBLISH.json"]
    assert next(entry for entry in done["actions"] if entry["action"] == "effect")["stage"] == "done"
    assert done["errors"] == []


async def test_the_log_of_a_run_whose_worker_died_is_finished_by_whoever_recovers_it(tmp_path: Path) -> None:
    clock = ToldClock()
    async with opened(tmp_path, clock) as (client, folder):
        await client.start(publish, {"keyword": "x"}, id="a")
        worker = Worker("w_dead", "", "elsewhere", "", 1, 0.0, 0.0, 30.0, None, "[]")
        await client.ledger.beat(worker, Holding({}))
        await client.ledger.claim(Claim("c1", "w_dead", (Slot("seo_publish", "draft", 3600.0),), 1))
        projector = Projector(client.ledger, folder, clock)
        await projector.catch_up()
        assert not [path for path in files(tmp_path) if "/logs/" in path]
        clock.advance("5m")
        await client.ledger.recover()
        await Projector(client.ledger, folder, clock).catch_up()
        found = await verify(client, folder)

    [path] = [path for path in files(tmp_path) if "/logs/" in path]
    log = shown(tmp_path, path)
    assert (log["run_id"], log["status"], log["inputs"]["worker"]) == ("run_c1_0", "CRASHED", "w_dead")
    assert log["ended_at"] == "2026-01-01T00:05:00.000Z"
    assert log["errors"][0]["error"] == "its lease ran out"
    assert found.ok, found.differences


async def test_an_error_is_in_the_log_and_in_the_table_without_what_looks_like_a_key(tmp_path: Path) -> None:
    async with opened(tmp_path) as (client, folder):
        await client.start(broken, id="a")
        await client.work()
        await Projector(client.ledger, folder, client.clock).catch_up()

    [path] = [path for path in files(tmp_path) if "/logs/" in path]
    log = shown(tmp_path, path)
    assert log["status"] == "ERROR"
    assert log["errors"][0]["error"].startswith("RuntimeError: it fell; the key was [redacted]")
    assert log["errors"][0]["trace"][0]["frames"][-1]["file"] == "tests/folder/flows.py"
    assert not [action for action in log["actions"] if "trace" in action]
    assert b"sk-" not in files(tmp_path)[path]


async def test_an_act_under_way_has_a_lock_until_its_receipt(tmp_path: Path) -> None:
    async with opened(tmp_path) as (client, folder):
        await client.start(stuck, id="a/b")
        acting = asyncio.Event()
        client.dependencies = Dependencies(acting)
        worker = client.worker()
        worker.grace = 0.0
        running = asyncio.ensure_future(worker.run())
        await acting.wait()
        await Projector(client.ledger, folder, client.clock).catch_up()
        [path] = [path for path in files(tmp_path) if "/locks/" in path]
        lock = shown(tmp_path, path)
        record = await client.get("a/b")
        assert (await verify(client, folder)).ok
        # The act ends in the worker's own way: nobody knows how it went, then a person says that it did not happen.
        for pass_ in worker.holds.passes.values():
            pass_.lose()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        [intent] = await client.ledger.receipts(record_ids=["a/b"])
        void = Change("v", "a/b", 0, None, receipts=(replace(intent, stage=Stage.VOID),))
        await client.ledger.commit([void])
        await Projector(client.ledger, folder, client.clock).catch_up()

    assert path == "Workflows/stuck/locks/lock_stuck|a%2Fb|hang|never_ends|1.lock"
    assert lock["dedupe_key"] == "stuck|a/b|hang|never_ends|1"
    assert (lock["run_id"], lock["owner"], lock["record_id"]) == (record.run_id, record.worker, "a/b")
    assert lock["created_at"] == "2026-01-01T00:00:00.000Z" and lock["expires_at"] == "2026-01-01T00:00:30.000Z"
    assert not [path for path in files(tmp_path) if "/locks/" in path]


async def test_several_effects_of_a_step_have_a_file_each_and_the_first_has_the_plain_name(tmp_path: Path) -> None:
    async with opened(tmp_path) as (client, folder):
        await client.start(steps, id="a")
        await client.work()
        await client.retry("a", step="first")
        await client.work()
        await Projector(client.ledger, folder, client.clock).catch_up()
        done = [kept for kept in await client.ledger.receipts(record_ids=["a"]) if kept.kind is Kind.ONCE]
        found = await verify(client, folder)

    receipts = {
        path.rpartition("/")[2]: json.loads(text) for path, text in files(tmp_path).items() if "receipt_" in path
    }
    assert len(receipts) == len(done) == 4
    assert receipts["receipt_a_first.json"]["effect"] == "tell"
    assert {text["key"] for text in receipts.values()} == {kept.key for kept in done}
    assert found.ok, found.differences


async def test_records_whose_names_would_read_the_same_share_no_receipt(tmp_path: Path) -> None:
    flow = Workflow("w")

    @flow.step(then="b_c")
    async def c(run: Run[dict[str, Any]]) -> None:
        await run.once(tell, run.record_id)

    @flow.step
    async def b_c(run: Run[dict[str, Any]]) -> None:
        await run.once(tell, run.record_id)

    async with opened(tmp_path) as (client, folder):
        client.registry.add(flow)
        for record_id in ("a_b", "a"):
            await client.start(flow, id=record_id)
        await client.work()
        await Projector(client.ledger, folder, client.clock).catch_up()
        found = await verify(client, folder)

    receipts = [json.loads(text) for path, text in files(tmp_path).items() if "/receipt_" in path]
    assert {(text["record_id"], text["step"]) for text in receipts} == {
        (record_id, step) for record_id in ("a_b", "a") for step in ("c", "b_c")
    }
    assert len(receipts) == 4
    assert found.ok, found.differences


HOSTILE = ["a:b|c/d_e'f", "ü" * 100, "價格" * 150, "../../etc/passwd", ".", "=cmd|' /C calc'!A0", "A", "a", "x" * 500]


async def test_ids_of_any_kind_have_files_that_lead_back_to_them(tmp_path: Path) -> None:
    async with opened(tmp_path) as (client, folder):
        await client.start_many(steps, [{} for _ in HOSTILE], ids=HOSTILE)
        await client.work()
        await Projector(client.ledger, folder, client.clock).catch_up()
        found = await verify(client, folder)

    states = [json.loads(text) for path, text in files(tmp_path).items() if "/state/state_" in path and "json" in path]
    rows = list(csv.DictReader(io.StringIO(files(tmp_path)["Workflows/steps/state/state_table.csv"].decode())))
    assert {state["record_id"] for state in states} == set(HOSTILE)
    assert {row["record_id"].removeprefix("'") for row in rows} == set(HOSTILE)
    assert all(f"Workflows/steps/state/{row['file']}" in files(tmp_path) for row in rows)
    assert found.ok, found.differences


def _as_before(table: bytes) -> bytes:
    """A table as it was written before texts that begin with an apostrophe got one of their own."""
    return table.replace(b"''", b"'")


async def test_ids_that_look_like_guarded_ones_have_lines_of_their_own(tmp_path: Path) -> None:
    ids = ["=1", "'=1", "''=1", "'a", "a"]
    async with opened(tmp_path) as (client, folder):
        await client.start_many(steps, [{} for _ in ids], ids=ids)
        await client.work()
        await Projector(client.ledger, folder, client.clock).catch_up()
        found = await verify(client, folder)

    rows = list(csv.DictReader(io.StringIO(files(tmp_path)["Workflows/steps/state/state_table.csv"].decode())))
    assert sorted(row["record_id"] for row in rows) == sorted(["'=1", "''=1", "'" * 3 + "=1", "''a", "a"])
    assert found.ok, found.differences


async def test_a_table_of_before_is_in_order_and_its_lines_give_way_to_new_ones(tmp_path: Path) -> None:
    path = tmp_path / "folder/Workflows/steps/state/state_table.csv"
    async with opened(tmp_path) as (client, folder):
        await client.start_many(steps, [{}, {}, {}], ids=["'a", "'b", "=1"])
        await client.work()
        await Projector(client.ledger, folder, client.clock).catch_up()
        path.write_bytes(_as_before(path.read_bytes()))
        found = await verify(client, folder)
        old = path.read_bytes()
        rows = {row["record_id"]: list(row.values()) for row in table.rows_of(old)}
        new = table.merged(old, {"'a": ["'" + rows["'a"][0], *rows["'a"][1:]]})

    assert found.ok, found.differences
    assert sorted(row["record_id"] for row in table.rows_of(new)) == ["''a", "'=1", "'b"]


# --- crashes ----------------------------------------------------------------------------------------------------------


class Stopped(BaseException):
    """The process is gone."""


class StoppingDisk(Disk):
    """Does so many things and then no more."""

    def __init__(self, left: int) -> None:
        self.left = left

    def _count(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Stopped

    def temporary(self, path: str, content: bytes, *, durable: bool = True) -> None:
        self._count()
        if self.left == 0:
            content = content[: len(content) // 2]  # a write that is torn
        super().temporary(path, content, durable=False)

    def replace(self, temporary: str, path: str) -> None:
        self._count()
        super().replace(temporary, path)

    def name_once(self, temporary: str, path: str) -> None:
        self._count()
        super().name_once(temporary, path)

    def remove(self, path: str) -> None:
        self._count()
        super().remove(path)

    def make_directory(self, path: str) -> None:
        self._count()
        super().make_directory(path)

    def sync_directory(self, path: str) -> None:
        self._count()  # the machine stays up: what is not synced is there all the same

    def sync(self, directory: str) -> bool:
        self._count()
        return True


class Killed(Projector):
    """Says no farewell."""

    async def _leave(self) -> None:
        if self.cursor.place != self._at:
            return
        await super()._leave()


@pytest.mark.slow
async def test_stopped_after_any_file_operation_the_next_one_completes_the_folder(tmp_path: Path) -> None:
    clock = ToldClock()
    async with opened(tmp_path, clock) as (client, _):
        await published(client, "a")
        await client.start_many(steps, [{}, {}], ids=["b", "c"])
        await client.work()
        whole: dict[str, bytes] | None = None
        stopped, operations = True, -1
        while stopped:
            operations += 1
            where = tmp_path / str(operations)
            stopped = await _stopped_after(operations, client, where)
            assert all(json.loads(text) for path, text in files(where).items() if path.endswith(".json"))
            clock.advance("1m")
            folder = LocalFolder(where / "folder", disk=StoppingDisk(1_000_000))
            await folder.open()
            await Projector(client.ledger, folder, clock, batch=5).catch_up()
            if operations % 20 == 0 or not stopped:
                found = await verify(client, folder)
                assert found.ok, (operations, found.differences)
            await folder.close()
            whole = files(where) if whole is None else whole
            assert files(where) == whole, operations

    assert operations > 80


async def _stopped_after(operations: int, client: Client, where: Path) -> bool:
    """A projector that is killed after so many file operations; False: it came to its end before."""
    folder = LocalFolder(where / "folder", disk=StoppingDisk(operations))
    try:
        await folder.open()
        await Killed(client.ledger, folder, client.clock, batch=7).catch_up()
    except Stopped:
        return True
    finally:
        await folder.close()
    return False


async def test_stopped_before_the_cursor_moved_the_same_files_are_written_again(tmp_path: Path) -> None:
    clock = ToldClock()
    async with opened(tmp_path, clock) as (client, folder):
        await published(client, "a")

        class Deaf(LedgerProxy):
            async def keep(self, setting: Any) -> bool:
                if json.loads(setting.value)["seq"] > 0:
                    raise LedgerUnavailable("the answer is lost")
                return await self.ledger.keep(setting)

        with pytest.raises(LedgerUnavailable):
            await Projector(Deaf(client.ledger), folder, client.clock).catch_up()  # type: ignore[arg-type] # a proxy
        before = files(tmp_path)
        clock.advance("1m")
        count = await Projector(client.ledger, folder, clock).catch_up()

        assert count > 0
        assert files(tmp_path) == before
        assert (await verify(client, folder)).ok


class LedgerProxy:
    """Passes everything on, and remembers what."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.called: list[str] = []

    def __getattr__(self, name: str) -> Any:
        self.called.append(name)
        return getattr(self.ledger, name)


async def test_it_reads_the_ledger_and_writes_nothing_there_but_its_own_cursor(tmp_path: Path) -> None:
    async with opened(tmp_path) as (client, folder):
        await published(client, "a")
        proxy = LedgerProxy(client.ledger)

        await Projector(proxy, folder, client.clock).catch_up()  # type: ignore[arg-type] # a proxy

        assert set(proxy.called) <= {"events", "load", "receipts", "find", "setting", "keep", "now"}
        kept = {setting.name for setting in await client.ledger.settings("")} - {"ledger_id"}  # the worker's
        assert {name for name in kept if not name.startswith(("definition/", "keyring"))} == {
            f"projector/{folder.folder_id}"
        }


async def test_a_frozen_projector_writes_nothing_after_another_has_taken_over(tmp_path: Path) -> None:
    clock = ToldClock()
    async with opened(tmp_path, clock) as (client, folder):
        await published(client, "a")
        frozen = Projector(client.ledger, folder, clock)
        assert await frozen._hold()
        events = await client.ledger.events(after=0)
        seen, paths, configs = await frozen.projection.gather(events)
        planned = frozen.projection.plan(seen, paths, configs)
        clock.advance("5m")
        await client.retry("a", step="archive")
        await client.work()
        await Projector(client.ledger, folder, clock).catch_up()
        before = files(tmp_path)

        with pytest.raises(LeaseLost):
            await frozen._write(planned)
        with pytest.raises(LeaseLost):
            await frozen.cursor.save(frozen.cursor.place)

        assert files(tmp_path) == before
        # Even without the fence an older state does not take the place of a newer one.
        await folder.write(planned.writes)
        assert shown(tmp_path, f"{BASE}/state/state_a.json")["version"] == (await client.get("a")).version


async def test_one_projects_at_a_time_and_another_takes_over_when_its_lease_ran_out(tmp_path: Path) -> None:
    clock = ToldClock()
    async with opened(tmp_path, clock) as (client, folder):
        await published(client, "a")
        first, second = (Projector(client.ledger, folder, clock) for _ in range(2))
        assert await first._hold()

        with pytest.raises(FolderError, match="another process projects this folder"):
            await second.catch_up(wait=False)
        clock.advance("25s")
        assert await first._hold(), "whoever is alive renews"
        clock.advance("34s")

        assert await second.catch_up(wait=False) > 0
        assert (await verify(client, folder)).ok


async def test_writing_that_takes_longer_than_the_lease_keeps_the_lease(tmp_path: Path) -> None:
    clock = ToldClock()
    async with opened(tmp_path, clock) as (client, folder):
        await published(client, "a")
        slow = Projector(client.ledger, folder, clock)
        write = folder.write

        async def slowly(writes: Any, fence: Any = unfenced) -> None:
            for _ in range(10):
                clock.advance("6s")
                while slow.cursor.fading:  # it is being renewed in another thread
                    clock.advance(0.1)
                    await SYSTEM.sleep(0.01)
            await write(writes, fence)

        folder.write = slowly  # type: ignore[method-assign] # a disk that takes a minute for each batch
        assert await slow.catch_up() > 0
        folder.write = write  # type: ignore[method-assign] # as it was

        assert (await verify(client, folder)).ok


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Ledger:
    if request.param == "memory":
        return MemoryLedger(ToldClock())
    if request.param == "sqlite":
        return SqliteLedger(tmp_path / "ledger.db", ToldClock())
    return PostgresLedger(request.getfixturevalue("postgres_url"), ToldClock())


async def test_any_ledger_has_a_folder(tmp_path: Path, store: Ledger) -> None:
    clock = ToldClock()
    folder = LocalFolder(tmp_path / "folder", portable=True)
    async with Client(store, workflows=ALL, clock=clock) as client:
        await folder.open()
        await published(client, "Kw:1")
        await Projector(store, folder, clock, batch=3).catch_up()
        found = await verify(client, folder)
        await folder.close()

    assert found.ok, found.differences
    assert f"{BASE}/state/state_Kw%3A1~c1.json" in files(tmp_path)


async def test_it_runs_behind_a_worker_and_ends_when_told(tmp_path: Path) -> None:
    async with opened(tmp_path, SYSTEM) as (client, folder):
        projector = Projector(client.ledger, folder, SYSTEM)
        running = asyncio.ensure_future(projector.run())
        await client.start_many(steps, [{} for _ in range(50)])
        await client.work()
        while await projector.lag():
            await SYSTEM.sleep(0.05)
        projector.stop()
        await running

        found = await verify(client, folder)
        assert found.ok, found.differences
        assert found.behind == 0
        assert (await projector.cursor.look())[1].owner == ""  # type: ignore[union-attr] # it has run


async def test_a_folder_that_cannot_be_written_is_tried_again_and_the_ledger_goes_on(tmp_path: Path) -> None:
    class SickDisk(Disk):
        sick = False

        def temporary(self, path: str, content: bytes, *, durable: bool = True) -> None:
            if self.sick and content:
                raise OSError(28, "No space left on device")
            super().temporary(path, content, durable=durable)

    disk = SickDisk()
    async with opened(tmp_path, SYSTEM, LocalFolder(tmp_path / "folder", disk=disk)) as (client, folder):
        disk.sick = True
        projector = Projector(client.ledger, folder, SYSTEM)
        running = asyncio.ensure_future(projector.run())
        await published(client, "a")
        assert (await client.get("a")).status == "DONE"
        assert (await projector.lag()).lines > 0
        disk.sick = False
        while await projector.lag():
            await SYSTEM.sleep(0.1)
        projector.stop()
        await running

        found = await verify(client, folder)
        assert found.ok, found.differences


@pytest.mark.parametrize("path", ["steps/state/state_table.csv", "seo_publish/state/state_table.csv"])
async def test_a_table_whose_writing_failed_is_written_by_the_next_one(tmp_path: Path, path: str) -> None:
    class SickDisk(Disk):
        sick = True

        def replace(self, temporary: str, to: str) -> None:
            if self.sick and to.endswith(path):
                raise OSError(5, "Input/output error")
            super().replace(temporary, to)

    disk = SickDisk()
    async with opened(tmp_path, folder=LocalFolder(tmp_path / "folder", disk=disk)) as (client, folder):
        await published(client, "a")
        await client.start(steps, id="b")
        await client.work()
        projector = Projector(client.ledger, folder, client.clock)
        with pytest.raises(FolderError, match="Input/output error"):
            await projector.catch_up()
        disk.sick = False

        await projector.catch_up()

        found = await verify(client, folder)
        assert found.ok, found.differences
        assert f"Workflows/{path}" in files(tmp_path)


async def test_lag_says_how_many_lines_and_how_old(tmp_path: Path) -> None:
    clock = ToldClock()
    async with opened(tmp_path, clock) as (client, folder):
        projector = Projector(client.ledger, folder, clock)
        assert not await projector.lag()
        await client.start_many(steps, [{} for _ in range(5)])
        clock.advance("90s")

        assert await projector.lag() == (5, False, 90.0)
        assert await projector.lag(most=3) == (3, True, 90.0)
        await projector.catch_up()
        assert await projector.lag() == (0, False, 0.0)


async def test_several_versions_of_a_record_become_one_write(tmp_path: Path) -> None:
    written: list[str] = []

    class CountingDisk(Disk):
        def replace(self, temporary: str, path: str) -> None:
            written.append(path)
            super().replace(temporary, path)

    folder = LocalFolder(tmp_path / "folder", disk=CountingDisk())
    async with opened(tmp_path, folder=folder) as (client, _):
        await published(client, "a")
        await Projector(client.ledger, folder, client.clock).catch_up()
        assert len([path for path in written if "state_a.json" in path]) == 1
        for priority in range(5):
            await client.prioritise("a", priority)
        await Projector(client.ledger, folder, client.clock).catch_up()
        assert len([path for path in written if "state_a.json" in path]) == 2


async def test_a_table_that_was_tampered_with_is_made_anew(tmp_path: Path) -> None:
    table = tmp_path / "folder" / BASE / "state" / "state_table.csv"
    async with opened(tmp_path) as (client, folder):
        await published(client, "a")
        await published(client, "b")
        await Projector(client.ledger, folder, client.clock).catch_up()
        table.write_text("sorted,by,hand\n1,2,3\n")
        await client.prioritise("b", 3)
        await Projector(client.ledger, folder, client.clock).catch_up()

        assert (await verify(client, folder)).ok


async def test_a_folder_filled_anew_mends_what_was_altered_and_lost(tmp_path: Path) -> None:
    async with opened(tmp_path) as (client, folder):
        await published(client, "a")
        await Projector(client.ledger, folder, client.clock).catch_up()
        whole = files(tmp_path)
        base = tmp_path / "folder" / BASE
        (base / "state/state_a.json").write_text('{"version": 99, "lines": 99, "status": "DONE"}')
        (base / "artifacts/receipt_a_PUBLISH.json").unlink()
        (base / "locks/lock_x.lock").write_text("{}")
        for path in (base / "logs").rglob("*.json"):
            path.unlink()
        assert not (await verify(client, folder)).ok

        await Projector(client.ledger, folder, client.clock).catch_up(anew=True)

        found = await verify(client, folder)
        assert found.ok, found.differences
        assert files(tmp_path) == whole


async def test_a_second_folder_of_a_ledger_has_the_same_names_and_contents(tmp_path: Path) -> None:
    async with opened(tmp_path) as (client, folder):
        await published(client, "a")
        await client.start_many(steps, [{}, {}], ids=["b", "c:d"])
        await client.work()
        await Projector(client.ledger, folder, client.clock, batch=3).catch_up()
        other = LocalFolder(tmp_path / "other" / "folder")
        await other.open()
        await Projector(client.ledger, other, client.clock).catch_up()
        await other.close()

    one, two = files(tmp_path), files(tmp_path / "other")
    table = f"{BASE}/state/state_table.csv"
    assert one.keys() == two.keys()
    assert {path for path in one if one[path] != two[path]} <= {table, "Workflows/steps/state/state_table.csv"}


async def test_deleting_everything_in_the_folder_changes_no_decision(tmp_path: Path) -> None:
    async with opened(tmp_path) as (client, folder):
        await client.start(publish, {"keyword": "x"}, id="a")
        await client.work()
        await client.answer("a", "approve")
        await Projector(client.ledger, folder, client.clock).catch_up()
        shutil.rmtree(tmp_path / "folder" / "Workflows")
        await client.work()

        record = await client.get("a")
        assert record.status == "DONE" and record.result == '"https://example.org/x"'
