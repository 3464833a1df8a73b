"""Rotation: lines move to the archive and nothing is lost, wherever it is killed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from quire.client.client import Client
from quire.errors import LedgerError, LedgerUnavailable
from quire.folder.base import FolderError
from quire.folder.local import LocalFolder
from quire.folder.projector import Projector
from quire.folder.segment import path_of, read_segment
from quire.model.event import Event
from quire.model.row import field_values
from quire.model.side import Setting
from quire.testing import ToldClock
from quire.upkeep.rotate import rotate
from quire.upkeep.verify import verify
from tests.folder.flows import files, opened, publish, steps
from tests.folder.test_projector import LedgerProxy, Stopped


async def ended(client: Client, clock: ToldClock, *ids: str) -> list[Event]:
    """Records that ended long ago; and one that has not."""
    await client.start_many(steps, [{} for _ in ids], ids=ids)
    await client.start(publish, {"keyword": "x"}, id="open")
    await client.work()
    lines = await client.events(limit=10_000)
    clock.advance("40d")
    return lines


async def test_the_logs_of_ended_records_move_and_verification_still_succeeds(tmp_path: Path) -> None:
    clock = ToldClock()
    async with opened(tmp_path, clock) as (client, folder):
        lines = await ended(client, clock, "a", "b", "c")
        mine = [line for line in lines if line.record_id != "open"]

        done = await rotate(client, folder, clock=clock)

        left = await client.events(limit=10_000)
        [content] = await folder.read(path_of(1))
        assert done == (1, len(mine), len(mine) - 3, 0, 1)  # the worker that ended a month ago goes, too
        assert [line.record_id for line in left if line.record_id != "open"] == ["a", "b", "c"]
        assert [line for line in left if line.record_id == "open"] == [
            line for line in lines if line.record_id == "open"
        ]
        assert sorted(read_segment(1, content).lines, key=field_values) == sorted(mine, key=field_values)
        found = await verify(client, folder)
        assert found.ok, found.differences
        assert found.lines == len(lines)
        assert (await verify(client)).ok
        assert await rotate(client, folder, clock=clock) == (0, 0, 0, 0, 0)


async def test_what_ended_lately_stays(tmp_path: Path) -> None:
    clock = ToldClock()
    async with opened(tmp_path, clock) as (client, folder):
        await client.start(steps, id="a")
        await client.work()
        clock.advance("50m")

        assert await rotate(client, folder, older_than=0, clock=clock) == (0, 0, 0, 0, 0)


async def test_a_record_that_goes_on_after_its_rotation_is_rotated_again_and_its_chain_holds(tmp_path: Path) -> None:
    clock = ToldClock()
    async with opened(tmp_path, clock) as (client, folder):
        await ended(client, clock, "a", "b")
        await rotate(client, folder, clock=clock, segment_lines=1)
        await client.retry("a", step="first")
        await client.work()
        await Projector(client.ledger, folder, clock).catch_up()
        between = await verify(client, folder)
        clock.advance("40d")

        done = await rotate(client, folder, clock=clock)

        found = await verify(client, folder)
        assert between.ok, between.differences
        assert found.ok, found.differences
        assert done.segments == 1 and done.lines > 0
        record = await client.get("a")
        assert [line.n for line in await client.events("a")] == [record.log_seq]
        assert found.lines == record.log_seq + (await client.get("b")).log_seq + (await client.get("open")).log_seq


class StoppingLedger(LedgerProxy):
    """Answers so many writes and then no more; the last one may have landed or not."""

    def __init__(self, ledger: Any, left: int, landed: bool) -> None:
        super().__init__(ledger)
        self.left, self.landed = left, landed

    async def _write(self, write: Any) -> Any:
        self.left -= 1
        if self.left < 0 and not self.landed:
            raise Stopped
        answer = await write
        if self.left < 0:
            raise Stopped
        return answer

    async def keep(self, setting: Setting) -> bool:
        if not setting.name.startswith("archive"):
            return await self.ledger.keep(setting)
        write = self.ledger.keep(setting)
        try:
            return bool(await self._write(write))
        finally:
            write.close()

    async def forget(self, events: Any) -> int:
        write = self.ledger.forget(events)
        try:
            return int(await self._write(write))
        finally:
            write.close()


@pytest.mark.parametrize("landed", [False, True], ids=["write-lost", "answer-lost"])
async def test_killed_at_any_write_the_next_rotation_finishes_it(tmp_path: Path, landed: bool) -> None:
    stopped, writes = True, -1
    while stopped:
        writes += 1
        clock = ToldClock()
        async with opened(tmp_path / str(writes), clock) as (client, folder):
            lines = await ended(client, clock, "a", "b")
            dying: Any = StoppingLedger(client.ledger, writes, landed)
            try:
                await rotate(dying, folder, clock=clock, segment_lines=1)
                stopped = False
            except Stopped:
                between = await verify(client, folder)
                assert between.ok, (writes, between.differences)
            clock.advance("1m")

            await rotate(client, folder, clock=clock, segment_lines=1)

            found = await verify(client, folder)
            assert found.ok, (writes, found.differences)
            assert found.lines == len(lines)
            assert len([line for line in await client.events(limit=1000) if line.record_id != "open"]) == 2
    assert writes == 6


async def test_a_segment_that_was_written_but_not_named_is_taken_as_it_is(tmp_path: Path) -> None:
    clock = ToldClock()
    async with opened(tmp_path, clock) as (client, folder):
        await ended(client, clock, "a")
        dying: Any = StoppingLedger(client.ledger, 0, landed=False)
        with pytest.raises(Stopped):
            await rotate(dying, folder, clock=clock)
        before = files(tmp_path)[path_of(1)]
        await client.retry("a", step="second")
        await client.work()
        clock.advance("1m")

        await rotate(client, folder, clock=clock)

        assert files(tmp_path)[path_of(1)] == before
        assert (await verify(client, folder)).ok


async def test_lines_that_do_not_read_back_as_they_are_in_the_ledger_are_not_removed(tmp_path: Path) -> None:
    clock = ToldClock()
    async with opened(tmp_path, clock) as (client, folder):
        lines = await ended(client, clock, "a")

        class BadFolder(LocalFolder):
            async def read(self, *paths: str) -> list[bytes | None]:
                found = await super().read(*paths)
                return [text.replace(b'"claimed"', b'"klaimed"') if text and "Archive" in path else text
                        for path, text in zip(paths, found, strict=True)]  # fmt: skip

        bad = BadFolder(tmp_path / "folder")
        await bad.open()
        with pytest.raises(FolderError, match=r"the ledger has: line 2 of 'a' differs; nothing was removed"):
            await rotate(client, bad, clock=clock)
        await bad.close()

        assert await client.events(limit=10_000) == lines
        await rotate(client, folder, clock=clock)
        assert (await verify(client, folder)).ok


@pytest.mark.parametrize(
    ("harm", "what"),
    [
        (lambda path: path.unlink(), "is missing"),
        (lambda path: path.write_bytes(path.read_bytes().replace(b"claimed", b"klaimed", 1)), "does not follow"),
        (lambda path: path.write_bytes(path.read_bytes() + b"oops\n"), "is not JSON"),
        (
            lambda path: path.write_bytes(b"\n".join(path.read_bytes().splitlines()[:-1]) + b"\n"),
            "is not what its first",
        ),
        (
            lambda path: path.write_bytes(path.read_bytes().replace(b'"made_at": "2', b'"made_at": "3')),
            "ledger remembers",
        ),
    ],
)
async def test_a_segment_that_was_harmed_is_named(tmp_path: Path, harm: Any, what: str) -> None:
    clock = ToldClock()
    async with opened(tmp_path, clock) as (client, folder):
        await ended(client, clock, "a")
        await rotate(client, folder, clock=clock)
        harm(tmp_path / "folder" / path_of(1))

        found = await verify(client, folder)

        assert found.first is not None
        assert (found.first.kind, found.first.where) == ("archive", path_of(1))
        assert what in found.first.what


async def test_two_rotations_at_once_do_not_both_name_a_segment(tmp_path: Path) -> None:
    clock = ToldClock()
    async with opened(tmp_path, clock) as (client, folder):
        await ended(client, clock, "a", "b")

        class Beaten(LedgerProxy):
            async def keep(self, setting: Setting) -> bool:
                if setting.name == "archive":
                    await rotate(client, folder, clock=clock)
                return await self.ledger.keep(setting)

        slow: Any = Beaten(client.ledger)
        with pytest.raises(LedgerError, match="another rotation is under way"):
            await rotate(slow, folder, clock=clock)

        assert (await verify(client, folder)).ok


async def test_the_archive_stays_in_one_folder(tmp_path: Path) -> None:
    clock = ToldClock()
    async with opened(tmp_path, clock) as (client, folder):
        await ended(client, clock, "a")
        await rotate(client, folder, clock=clock)
        other = LocalFolder(tmp_path / "other")
        await other.open()

        with pytest.raises(FolderError, match="is in another folder"):
            await rotate(client, other, clock=clock)
        await other.close()


async def test_a_new_folder_of_a_rotated_ledger_shows_all_records(tmp_path: Path) -> None:
    clock = ToldClock()
    async with opened(tmp_path, clock) as (client, folder):
        await ended(client, clock, "a", "b")
        await rotate(client, folder, clock=clock)
        other = LocalFolder(tmp_path / "other" / "folder")
        await other.open()
        await Projector(client.ledger, other, clock).catch_up()
        await other.close()

    kinds = ("/state/", "/artifacts/")
    shown = {path for path in files(tmp_path / "other") if any(kind in path for kind in kinds)}
    assert shown == {path for path in files(tmp_path) if any(kind in path for kind in kinds)}
    receipt = json.loads(files(tmp_path / "other")["Workflows/steps/artifacts/receipt_a_first.json"])
    assert receipt["value"] == "told ann"


async def test_a_ledger_that_does_not_answer_loses_nothing(tmp_path: Path) -> None:
    clock = ToldClock()
    async with opened(tmp_path, clock) as (client, folder):
        lines = await ended(client, clock, "a")

        class Away(LedgerProxy):
            async def forget(self, events: Any) -> int:
                raise LedgerUnavailable("no answer")

        away: Any = Away(client.ledger)
        with pytest.raises(LedgerUnavailable):
            await rotate(away, folder, clock=clock)

        assert await client.events(limit=10_000) == lines
        await rotate(client, folder, clock=clock)
        found = await verify(client, folder)
        assert found.ok and found.lines == len(lines)
