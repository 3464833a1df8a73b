"""Exports: a table, a workbook, and evidence that a stranger checks with nothing but Python."""

from __future__ import annotations

import csv
import errno
import gc
import io
import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from quire.client.client import Client
from quire.errors import InputError
from quire.model.change import Query
from quire.model.record import Record
from quire.model.row import replace
from quire.testing import ToldClock
from quire.upkeep.evidence import source_of
from quire.upkeep.export import RECORD_COLUMNS, _cells, export
from quire.upkeep.rotate import rotate
from quire.upkeep.workbook import Workbook
from tests.folder.flows import opened, publish, steps

HOSTILE = ["=1+1", "a:b|c/d_e'f", "Zürich 價格", "@SUM(1)", "x" * 400]


async def worked(client: Client) -> None:
    await client.start_many(steps, [{"n": 2**60, "text": "=HYPERLINK(1)"} for _ in HOSTILE], ids=HOSTILE)
    await client.start(publish, {"keyword": "x"}, id="asks")
    await client.work()


async def test_a_table_has_the_seven_columns_first_and_computes_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path) as (client, _):
        await worked(client)
        done = await export(client, tmp_path / "out" / "records.csv")
        some = await export(client, tmp_path / "some.csv", workflow="steps", status=["DONE"])

    rows = list(csv.DictReader(io.StringIO(done.path.read_text(), newline="")))
    assert tuple(rows[0]) == RECORD_COLUMNS
    assert ",".join(RECORD_COLUMNS[:7]) == "record_id,status,next_step,dedupe_key,last_run_id,last_error,updated_at"
    assert {row["record_id"].removeprefix("'") for row in rows} == {*HOSTILE, "asks"}
    assert not [cell for row in rows for cell in row.values() if cell.startswith(("=", "@", "+"))]
    assert (done.records, some.records) == (6, 5)
    assert json.loads(next(row for row in rows if row["record_id"] == "asks")["data"])["draft"] == "About x"


async def test_the_parents_id_is_not_computed_either(tmp_path: Path) -> None:
    async with opened(tmp_path) as (client, _):
        await client.start(steps, {}, id="=1+1")
        await client.work()
        [record] = await client.find()

    assert dict(zip(RECORD_COLUMNS, _cells(replace(record, parent_id="=1+1")), strict=True))["parent_id"] == "'=1+1"


async def test_a_workbook_opens_and_its_text_is_text(tmp_path: Path) -> None:
    from openpyxl import load_workbook

    async with opened(tmp_path) as (client, _):
        await worked(client)
        await client.start(steps, {"long": "y" * 40_000}, id="long")
        done = await export(client.ledger, tmp_path / "records.xlsx")
        lines = len(await client.events(limit=10_000))

    book = load_workbook(done.path)
    assert book.sheetnames == ["state_table", "log", "receipts"]
    table = [list(row) for row in book["state_table"].iter_rows()]
    ids = {row[0].value: row for row in table[1:]}
    assert [cell.value for cell in table[0]] == list(RECORD_COLUMNS)
    assert set(ids) == {*HOSTILE, "asks", "long"}
    assert all(cell.data_type != "f" and cell.hyperlink is None for row in table for cell in row)
    assert str(ids["long"][-2].value).endswith("(40011 characters; whole in the JSONL)")
    assert book["log"].max_row == lines + 1
    assert book["receipts"].max_row > 10


async def test_a_sheet_that_is_full_goes_on_in_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from openpyxl import load_workbook

    monkeypatch.setattr("quire.upkeep.workbook.SHEET_ROWS", 3)

    async def rows() -> AsyncIterator[list[int]]:
        for number in range(5):
            yield [number]

    book = Workbook(tmp_path / "a.xlsx")
    assert await book.sheet("log", ["n"], rows()) == 5
    book.close()

    assert load_workbook(tmp_path / "a.xlsx").sheetnames == ["log", "log 2", "log 3"]


@pytest.mark.parametrize("name", ["a.pdf", "a.xls", "a.docx"])
async def test_a_form_that_is_none_is_refused(tmp_path: Path, name: str) -> None:
    async with opened(tmp_path) as (client, _):
        with pytest.raises(InputError, match="is not a form of export"):
            await export(client, tmp_path / name)
        assert not (tmp_path / name).exists()


# --- evidence ---------------------------------------------------------------------------------------------------------


def checked(pack: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """What the stranger sees: an interpreter without Quire, in a directory of its own."""
    command = [sys.executable, "-I", "-S", str(pack / "check.py"), *options]
    return subprocess.run(command, capture_output=True, text=True, cwd=pack.parent, env={}, check=False)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A pack and its fingerprint; the keyring lies beside it."""
    import asyncio

    where = tmp_path_factory.mktemp("evidence")

    async def make() -> str:
        async with opened(where) as (client, _):
            await worked(client)
            done = await export(client, where / "pack")
            keyring = await client.ledger.setting("keyring")
            assert keyring is not None
            (where / "keyring.json").write_text(keyring.value)
            return done.fingerprint

    with ThreadPoolExecutor(1) as other_thread:  # a browser test may have left its loop running in this one
        return where / "pack", other_thread.submit(lambda: asyncio.run(make())).result()


@pytest.fixture
def pack(made: tuple[Path, str], tmp_path: Path) -> Path:
    shutil.copytree(made[0], tmp_path / "pack")
    return tmp_path / "pack"


def test_a_stranger_finds_a_pack_in_order(pack: Path, made: tuple[Path, str]) -> None:
    plain = checked(pack)
    signed = checked(pack, "--fingerprint", made[1], "--keyring", str(made[0].parent / "keyring.json"))

    assert (plain.returncode, plain.stderr) == (0, "")
    assert plain.stdout.startswith("In order: 6 records, ")
    assert f"Fingerprint: {made[1]}" in plain.stdout
    assert signed.returncode == 0 and "10 signatures checked" in signed.stdout
    assert sorted(path.name for path in pack.iterdir()) == [
        "README.txt",
        "check.py",
        "events.jsonl",
        "evidence.xlsx",
        "manifest.json",
        "receipts.jsonl",
        "records.jsonl",
    ]


def test_the_checking_program_needs_nothing_but_the_standard_library(pack: Path) -> None:
    import ast

    tree = ast.parse((pack / "check.py").read_text())
    named = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    named |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}

    assert {name.partition(".")[0] for name in named} <= sys.stdlib_module_names


def changed(name: str, line: int, old: str, new: str) -> Callable[[Path], None]:
    def harm(pack: Path) -> None:
        lines = (pack / name).read_text().splitlines(keepends=True)
        assert old in lines[line - 1]
        lines[line - 1] = lines[line - 1].replace(old, new, 1)
        (pack / name).write_text("".join(lines))

    return harm


def dropped(name: str, line: int) -> Callable[[Path], None]:
    def harm(pack: Path) -> None:
        lines = (pack / name).read_text().splitlines(keepends=True)
        del lines[line - 1]
        (pack / name).write_text("".join(lines))

    return harm


@pytest.mark.parametrize(
    ("harm", "told"),
    [
        (changed("events.jsonl", 8, '"kind": "', '"kind": "x'), "WRONG events.jsonl line 8: line "),
        (changed("events.jsonl", 8, '"at": 1', '"at": 2'), "WRONG events.jsonl line 8: line "),
        (dropped("events.jsonl", 8), "does not follow line "),
        (dropped("records.jsonl", 2), "has a log, but is not a record"),
        (changed("records.jsonl", 2, '"log_seq": ', '"log_seq": 1'), "WRONG records.jsonl line 2: "),
        (changed("receipts.jsonl", 1, '"value": "', '"value": "x'), "receipts.jsonl: its SHA-256 is not the one"),
        (lambda pack: (pack / "evidence.xlsx").unlink(), "evidence.xlsx: the manifest lists it"),
        (lambda pack: (pack / "more.txt").write_text("x"), "more.txt: the manifest does not list it"),
        (changed("events.jsonl", 3, "{", "["), "WRONG events.jsonl line 3: it is not JSON"),
    ],
)
def test_a_stranger_is_told_what_was_tampered_with(pack: Path, harm: Callable[[Path], None], told: str) -> None:
    harm(pack)

    found = checked(pack)

    assert found.returncode == 1, found
    assert told in found.stdout
    assert found.stderr == ""


def test_a_pack_that_was_rewritten_as_a_whole_is_found_by_its_fingerprint_and_its_signatures(
    pack: Path, made: tuple[Path, str]
) -> None:
    import hashlib

    changed("receipts.jsonl", 1, '"value": "', '"value": "x')(pack)
    manifest = json.loads((pack / "manifest.json").read_text())
    for entry in manifest["files"]:
        entry["sha256"] = hashlib.sha256((pack / entry["name"]).read_bytes()).hexdigest()
    (pack / "manifest.json").write_text(json.dumps(manifest))

    assert checked(pack).returncode == 0
    assert "its fingerprint is" in checked(pack, "--fingerprint", made[1]).stdout
    signed = checked(pack, "--keyring", str(made[0].parent / "keyring.json"))
    assert signed.returncode == 1
    assert "receipts.jsonl line 1: the receipt of 'tell' of '=1+1' is not signed" in signed.stdout


def test_what_is_no_pack_is_told_so(tmp_path: Path, pack: Path) -> None:
    (pack / "manifest.json").unlink()

    found = checked(pack)

    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr.startswith("this is not an evidence pack")


async def test_a_zip_holds_the_same_and_is_written_once(tmp_path: Path) -> None:
    async with opened(tmp_path) as (client, _):
        await worked(client)
        done = await export(client, tmp_path / "evidence.zip")
        with pytest.raises(InputError, match="is there already"):
            await export(client, tmp_path / "evidence.zip")

    with zipfile.ZipFile(done.path) as archive:
        archive.extractall(tmp_path / "out")
    assert checked(tmp_path / "out" / "evidence").returncode == 0
    manifest = json.loads((tmp_path / "out" / "evidence" / "manifest.json").read_text())
    assert "SHA-256" in manifest["rule"]
    assert manifest["counts"]["records"] == 6


async def test_evidence_of_a_rotated_ledger_holds_the_archived_lines_too(tmp_path: Path) -> None:
    clock = ToldClock()
    async with opened(tmp_path, clock) as (client, folder):
        await worked(client)
        clock.advance("40d")
        await rotate(client, folder, clock=clock)
        await client.retry("=1+1", step="first")
        await client.work()
        with pytest.raises(InputError, match="give the folder"):
            await export(client, tmp_path / "none")
        await export(client, tmp_path / "pack", folder=folder)
        await export(client, tmp_path / "part", folder=folder, workflow="steps")

    assert checked(tmp_path / "pack").returncode == 0, checked(tmp_path / "pack")
    assert checked(tmp_path / "part").stdout.startswith("In order: 5 records")
    assert not (tmp_path / "none").exists()


async def test_records_that_go_on_during_the_export_spoil_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path) as (client, _):
        await worked(client)
        ledger = client.ledger
        find, count = ledger.find, 0

        async def busy(query: Query) -> list[Record]:
            nonlocal count
            found = await find(query)
            if found and not count:
                count += 1
                await client.retry("a:b|c/d_e'f", step="first")
                await client.start(steps, id="zz_new")
                await client.work()
            return found

        ledger.find = busy  # type: ignore[method-assign] # something happens between two reads
        await export(client, tmp_path / "pack")

    assert checked(tmp_path / "pack").returncode == 0, checked(tmp_path / "pack").stdout


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ann:geheim@db.example:5432/quire", "postgresql://db.example/quire"),
        ("sqlite:////home/ann/ledger.db", "sqlite:"),
        ("memory:", "memory:"),
    ],
)
def test_the_manifest_names_the_ledger_without_its_password(url: str, shown: str) -> None:
    assert source_of(url) == shown


@pytest.mark.parametrize("name", ["x.csv", "x.xlsx", "x.zip"])
async def test_a_disk_that_is_full_is_told_with_the_name_of_the_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    async with opened(tmp_path) as (client, _):
        await worked(client)
        with monkeypatch.context() as patch:
            patch.setattr(Path, "replace", full)
            patch.setattr(zipfile.ZipFile, "write", full)  # by this xlsxwriter makes its file
            patch.setattr(zipfile.ZipFile, "close", full)  # which it leaves open
            with pytest.raises(InputError, match=f"{name}' cannot be written: No space left on device"):
                await export(client, tmp_path / name)
            gc.collect()

    assert "Exception ignored" not in capsys.readouterr().err
