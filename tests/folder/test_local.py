"""A folder in a local directory: whole files or none, written once, replaced by newer ones, removed."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from quire.folder.base import Directory, FolderError, Gone, Once, Rank, Replace
from quire.folder.disk import Disk
from quire.folder.local import LocalFolder
from tests.folder.flows import files


def state(version: int, lines: int, text: str = "") -> bytes:
    return json.dumps({"version": version, "lines": lines, "text": text}).encode()


async def test_what_is_written_once_stays_as_it_was_first(tmp_path: Path) -> None:
    folder = LocalFolder(tmp_path / "folder")
    await folder.open()

    await folder.write(
        [Once("Workflows/w/artifacts/a.json", b"first"), Once("Workflows/w/artifacts/a.json", b"second")]
    )
    await folder.write([Once("Workflows/w/artifacts/a.json", b"third")])

    assert await folder.read("Workflows/w/artifacts/a.json", "Workflows/w/none") == [b"first", None]
    await folder.close()


@pytest.mark.parametrize("count", [1, 20], ids=["one by one", "together"])
async def test_a_lower_rank_never_takes_the_place_of_a_higher_one(tmp_path: Path, count: int) -> None:
    folder = LocalFolder(tmp_path / "folder")
    await folder.open()
    paths = [f"Workflows/w/state/{number}.json" for number in range(count)]

    for rank in (Rank(2, 5), Rank(1, 9), Rank(2, 4), Rank(2, 6)):
        await folder.write([Replace(path, state(*rank), rank) for path in paths])

    assert set(await folder.read(*paths)) == {state(2, 6)}
    await folder.write([Replace(path, state(1, 1), Rank(1, 1)) for path in paths])
    assert set(await folder.read(*paths)) == {state(2, 6)}
    await folder.close()


async def test_what_has_no_rank_in_it_any_more_is_replaced(tmp_path: Path) -> None:
    folder = LocalFolder(tmp_path / "folder")
    await folder.open()
    await folder.write([Replace("Workflows/w/state/a.json", b"typed over by hand")])

    await folder.write([Replace("Workflows/w/state/a.json", state(1, 1), Rank(1, 1))])

    assert await folder.read("Workflows/w/state/a.json") == [state(1, 1)]
    await folder.close()


async def test_removing_what_is_not_there_is_no_error(tmp_path: Path) -> None:
    folder = LocalFolder(tmp_path / "folder")
    await folder.open()
    await folder.write([Once("Workflows/w/locks/a.lock", b"1"), Gone("Workflows/w/locks/a.lock")])

    await folder.write([Gone("Workflows/w/locks/a.lock"), Gone("Workflows/x/locks/b.lock")])

    assert await folder.paths("Workflows") == []
    await folder.close()


async def test_ten_processes_that_make_the_tree_at_once_make_one(tmp_path: Path) -> None:
    folders = [LocalFolder(tmp_path / "folder") for _ in range(10)]

    await asyncio.gather(*(folder.open() for folder in folders))
    await asyncio.gather(*(folder.prepare("seo_publish") for folder in folders))

    assert len({folder.folder_id for folder in folders}) == 1
    assert sorted(os.listdir(tmp_path / "folder" / "Workflows" / "seo_publish")) == [
        "README.md",
        "artifacts",
        "config",
        "locks",
        "logs",
        "state",
    ]
    assert (tmp_path / "folder/Workflows/seo_publish/artifacts/drafts").is_dir()
    assert b"Schema 1" in files(tmp_path)["Workflows/seo_publish/README.md"]
    for folder in folders:
        await folder.close()


async def test_nothing_is_left_on_its_way(tmp_path: Path) -> None:
    folder = LocalFolder(tmp_path / "folder")
    await folder.open()
    await folder.write([Once("Workflows/w/a", b"1"), Once("Workflows/w/a", b"2"), Directory("Workflows/w/b")])
    await folder.write([Replace(f"Workflows/w/{n}", state(2, 1), Rank(2, 1)) for n in range(9)])
    await folder.write([Replace(f"Workflows/w/{n}", state(1, 1), Rank(1, 1)) for n in range(9)])

    assert os.listdir(tmp_path / "folder" / ".quire") == []
    await folder.close()


async def test_what_a_killed_process_left_an_hour_ago_is_tidied_away(tmp_path: Path) -> None:
    temporary = tmp_path / "folder" / ".quire"
    temporary.mkdir(parents=True)
    (temporary / "old.1").write_bytes(b"half")
    (temporary / "new.1").write_bytes(b"half")
    os.utime(temporary / "old.1", (1_000_000, 1_000_000))

    folder = LocalFolder(tmp_path / "folder")
    await folder.open()

    assert os.listdir(temporary) == ["new.1"]
    await folder.close()


async def test_a_directory_that_somebody_removed_is_made_again(tmp_path: Path) -> None:
    folder = LocalFolder(tmp_path / "folder")
    await folder.open()
    await folder.write([Once("Workflows/w/artifacts/a", b"1")])
    (tmp_path / "folder/Workflows/w/artifacts/a").unlink()
    (tmp_path / "folder/Workflows/w/artifacts").rmdir()

    await folder.write([Once("Workflows/w/artifacts/a", b"2")])

    assert await folder.read("Workflows/w/artifacts/a") == [b"2"]
    await folder.close()


async def test_a_full_disk_is_an_error_that_names_the_folder(tmp_path: Path) -> None:
    class FullDisk(Disk):
        def temporary(self, path: str, content: bytes, *, durable: bool = True) -> None:
            if content == b"big":
                raise OSError(28, "No space left on device")
            super().temporary(path, content, durable=durable)

    folder = LocalFolder(tmp_path / "folder", disk=FullDisk())
    await folder.open()

    with pytest.raises(FolderError, match=r"folder.*cannot be used: .*No space left"):
        await folder.write([Once("Workflows/w/a", b"big")])
    await folder.close()


async def test_a_file_system_without_a_joint_sync_gets_one_for_each_file(tmp_path: Path) -> None:
    synced = []

    class PlainDisk(Disk):
        def sync(self, directory: str) -> bool:
            return False

        def sync_file(self, path: str) -> None:
            synced.append(path)
            super().sync_file(path)

    folder = LocalFolder(tmp_path / "folder", disk=PlainDisk())
    await folder.open()

    await folder.write([Once(f"Workflows/w/{number}", b"1") for number in range(30)])

    assert len(synced) == 30
    await folder.close()


async def test_a_fence_that_falls_stops_between_two_files(tmp_path: Path) -> None:
    folder = LocalFolder(tmp_path / "folder")
    await folder.open()
    left = 2

    def fence() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise RuntimeError("the lease is lost")

    with pytest.raises(RuntimeError, match="the lease is lost"):
        await folder.write([Once(f"Workflows/w/{number}", b"1") for number in range(5)], fence)

    assert await folder.paths("Workflows") == ["Workflows/w/0", "Workflows/w/1"]
    await folder.close()


async def test_when_one_of_many_fails_the_error_is_told_and_nobody_goes_on_behind_it(tmp_path: Path) -> None:
    class SickDisk(Disk):
        def replace(self, temporary: str, path: str) -> None:
            if path.endswith("/13"):
                raise OSError(5, "Input/output error")
            super().replace(temporary, path)

    folder = LocalFolder(tmp_path / "folder", disk=SickDisk())
    await folder.open()

    with pytest.raises(FolderError, match="Input/output error"):
        await folder.write([Replace(f"Workflows/w/{number}", b"1") for number in range(40)])

    there = await folder.paths("Workflows")
    assert 30 <= len(there) < 40
    await folder.write([Replace("Workflows/w/13x", b"1")])
    assert await folder.paths("Workflows") == sorted([*there, "Workflows/w/13x"])
    await folder.close()


@pytest.mark.parametrize("link", ["/etc/passwd", "Workflows/../secret", "Workflows", "other/a", "Workflows//a", ""])
def test_a_link_leads_nowhere_but_into_the_folder(tmp_path: Path, link: str) -> None:
    assert LocalFolder(tmp_path).path_of(link) is None
    assert LocalFolder(tmp_path).path_of("Workflows/w/artifacts/a") == "Workflows/w/artifacts/a"
