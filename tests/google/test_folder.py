"""A folder in Drive: files by ids that the ledger remembers; no twins, whatever is lost."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hectograph import Emulator
from quire.client.client import Client
from quire.folder.base import Directory, FolderError, Gone, Once, Rank, Replace
from quire.folder.drive import DriveFolder
from quire.folder.projector import Projector
from quire.google.drive import SPREADSHEET
from quire.ledger.memory.ledger import MemoryLedger
from quire.ledger.sheets.ledger import SheetsLedger
from quire.testing import ToldClock
from tests.folder.flows import ALL, publish
from tests.google.conftest import control

FOLDER = "application/vnd.google-apps.folder"


def call(emulator: Emulator, method: str, path: str, body: Any = None) -> Any:
    answer = emulator.call(method, path, body)
    assert answer.status < 300, answer.body
    return json.loads(answer.body) if answer.body else None


@pytest.fixture
def root(emulator: Emulator) -> str:
    made: str = call(emulator, "POST", "/drive/v3/files", {"name": "Quire", "mimeType": FOLDER})["id"]
    return made


@asynccontextmanager
async def opened(emulator: Emulator, root: str, ledger: MemoryLedger) -> AsyncIterator[DriveFolder]:
    folder = DriveFolder(f"drive://{root}?endpoint={emulator.url}", ledger)
    await folder.open()
    try:
        yield folder
    finally:
        await folder.close()


def names(emulator: Emulator) -> list[str]:
    return sorted(file["name"] for file in call(emulator, "GET", "/drive/v3/files?pageSize=1000")["files"])


def state(version: int, lines: int) -> bytes:
    return json.dumps({"version": version, "lines": lines}).encode()


async def test_what_is_written_once_stays_as_it_was_first(emulator: Emulator, root: str) -> None:
    ledger = MemoryLedger()
    async with opened(emulator, root, ledger) as one, opened(emulator, root, ledger) as two:
        await one.write([Once("Workflows/w/artifacts/a.json", b"first")])
        await two.write([Once("Workflows/w/artifacts/a.json", b"second")])

        assert one.folder_id == two.folder_id
        assert await two.read("Workflows/w/artifacts/a.json", "Workflows/w/none") == [b"first", None]
        assert await one.paths("Workflows") == ["Workflows/w/artifacts/a.json"]
    assert names(emulator) == [".folder.json", "Quire", "Workflows", "a.json", "artifacts", "w"]


async def test_a_file_in_drive_has_the_type_of_what_it_holds(emulator: Emulator, root: str) -> None:
    """Drive opens a file by its type: a PDF that is called text does not open."""
    office = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
    wanted = {
        "offer.pdf": (b"%PDF-1.7", "application/pdf"),
        "offer.docx": (b"PK\x03\x04\xff", office),
        "rows.csv": (b"a,b", "text/csv"),
        "brief.md": (b"# Brief", "text/markdown"),
        "logs.jsonl.gz": (b"\x1f\x8b\xff", "application/gzip"),
        "notes": ("Grüße".encode(), "text/plain"),
        "scan": (b"\x89\xff\x00", "application/octet-stream"),
    }
    async with opened(emulator, root, MemoryLedger()) as folder:
        await folder.write([Once(f"Workflows/w/artifacts/{name}", content) for name, (content, _) in wanted.items()])

    files = call(emulator, "GET", "/drive/v3/files?pageSize=1000&fields=files(name,mimeType)")["files"]
    types = {file["name"]: file["mimeType"] for file in files}
    assert {name: types[name] for name in wanted} == {name: kind for name, (_, kind) in wanted.items()}


async def test_a_lower_rank_never_takes_the_place_of_a_higher_one(emulator: Emulator, root: str) -> None:
    async with opened(emulator, root, MemoryLedger()) as folder:
        for rank in (Rank(2, 5), Rank(1, 9), Rank(2, 4), Rank(2, 6)):
            await folder.write([Replace("Workflows/w/state/a.json", state(*rank), rank)])

        assert await folder.read("Workflows/w/state/a.json") == [state(2, 6)]


async def test_a_removed_file_is_gone_and_may_come_again(emulator: Emulator, root: str) -> None:
    async with opened(emulator, root, MemoryLedger()) as folder:
        await folder.write([Once("Workflows/w/locks/a", b"1"), Gone("Workflows/w/locks/a"), Gone("Workflows/x/b")])
        assert await folder.paths("Workflows") == []

        await folder.write([Gone("Workflows/w/locks/a"), Once("Workflows/w/locks/a", b"2")])

        assert await folder.read("Workflows/w/locks/a") == [b"2"]


@pytest.mark.parametrize("fault", ["lost_answer", "reset", "error", "drive_rate_limit"])
async def test_whatever_is_lost_there_is_one_file_per_path(emulator: Emulator, root: str, fault: str) -> None:
    for nth in range(6):
        ledger = MemoryLedger()
        control(emulator, "POST", "faults", {"fault": fault, "kind": "^drive.files.(create|update)", "skip": nth})
        async with opened(emulator, root, ledger) as folder:
            await folder.write([Directory(f"Workflows/{nth}"), Once(f"Workflows/{nth}/a", b"1")])
            await folder.write([Replace(f"Workflows/{nth}/a", b"2")])
            assert await folder.read(f"Workflows/{nth}/a") == [b"2"]
        control(emulator, "DELETE", "faults")
    assert names(emulator).count("a") == 6


async def test_ten_processes_that_make_the_tree_at_once_make_one(emulator: Emulator, root: str) -> None:
    ledger = MemoryLedger()
    folders = [DriveFolder(f"drive://{root}?endpoint={emulator.url}", ledger) for _ in range(10)]

    await asyncio.gather(*(folder.open() for folder in folders))
    await asyncio.gather(*(folder.prepare("seo_publish") for folder in folders))

    assert len({folder.folder_id for folder in folders}) == 1
    assert names(emulator).count("README.md") == names(emulator).count("drafts") == 1
    for folder in folders:
        await folder.close()


async def test_files_that_people_put_there_are_read(emulator: Emulator, root: str) -> None:
    async with opened(emulator, root, MemoryLedger()) as folder:
        await folder.prepare("w")
        config = next(
            f for f in call(emulator, "GET", "/drive/v3/files?pageSize=1000")["files"] if f["name"] == "config"
        )
        made = await folder.drive.files_create({"name": "limits.json", "parents": [config["id"]]}, b'{"most": 3}')
        assert made["id"]

        paths = await folder.paths("Workflows/w/config")

        assert paths == ["Workflows/w/config/limits.json"]
        assert await folder.read(*paths) == [b'{"most": 3}']


async def test_the_projector_fills_it(emulator: Emulator, root: str) -> None:
    clock = ToldClock()
    ledger = MemoryLedger(clock)
    async with (
        Client(ledger, workflows=ALL, clock=clock, who="ann") as client,
        opened(emulator, root, ledger) as folder,
    ):
        await client.start(publish, {"keyword": "dashboards"}, id="r")
        await client.work()
        await Projector(ledger, folder, clock).catch_up()

        [content] = await folder.read("Workflows/seo_publish/state/state_r.json")

    assert json.loads(content or b"")["status"] == "NEEDS_APPROVAL"


async def test_many_new_files_are_one_commit_of_a_sheets_ledger(emulator: Emulator, root: str) -> None:
    """Their ids are remembered together; afterwards nothing is written to the ledger at all."""
    book = call(emulator, "POST", "/drive/v3/files", {"name": "Book", "mimeType": SPREADSHEET})["id"]
    ledger = SheetsLedger(f"sheets://{book}?endpoint={emulator.url}", ToldClock())
    await ledger.open()
    try:
        folder = DriveFolder(f"drive://{root}?endpoint={emulator.url}", ledger)
        await folder.open()
        seq = ledger.replica.seq
        files = [Replace(f"Workflows/w/state/{n}.json", b"1") for n in range(40)]
        await folder.write(files)
        assert ledger.replica.seq <= seq + 2
        seq = ledger.replica.seq
        await folder.write([write._replace(content=b"2") for write in files])
        await folder.close()
        again = DriveFolder(f"drive://{root}?endpoint={emulator.url}", ledger)
        await again.open()
        assert await again.read(*(write.path for write in files)) == [b"2"] * 40
        assert ledger.replica.seq == seq
        await again.close()
    finally:
        await ledger.close()
    assert names(emulator).count("7.json") == 1


async def test_what_drive_refuses_is_told_in_a_sentence(emulator: Emulator, root: str) -> None:
    no_room = "Service Accounts do not have storage quota. Leverage shared drives instead."
    async with opened(emulator, root, MemoryLedger()) as folder:
        fault = {"fault": "error", "kind": "drive.files.create", "status": 403, "message": no_room, "count": None}
        control(emulator, "POST", "faults", fault)
        with pytest.raises(FolderError, match=r"no storage of its own: use a folder in a shared drive"):
            await folder.write([Once(f"Workflows/w/{n}", b"1") for n in range(3)])


async def test_a_folder_that_is_not_there_is_named(emulator: Emulator) -> None:
    with pytest.raises(FolderError, match=r"drive://nowhere.*shared with"):
        async with opened(emulator, "nowhere", MemoryLedger()):
            pass


async def test_a_file_named_stop_that_a_person_put_there_is_seen(emulator: Emulator, root: str) -> None:
    ledger = MemoryLedger()
    async with opened(emulator, root, ledger) as folder:
        await folder.prepare("w")
        assert await folder.stops(["w", "v"]) == {}
        base = json.loads((await ledger.setting(f"drive/{root}/Workflows/w")).value)["id"]  # type: ignore[union-attr]
        call(emulator, "POST", "/drive/v3/files", {"name": "STOP", "parents": [base]})
        call(emulator, "POST", "/drive/v3/files", {"name": "STOP"})  # elsewhere in the same account

        assert await folder.stops(["w", "v"]) == {"w": "Workflows/w/STOP"}

        call(emulator, "POST", "/drive/v3/files", {"name": "STOP.txt", "parents": [root]})
        assert await folder.stops(["w", "v"]) == {"w": "Workflows/w/STOP", "": "STOP.txt"}
