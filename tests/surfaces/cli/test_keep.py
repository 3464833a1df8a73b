"""Verify, export, rotate, promote: what was recorded is kept, moved whole, and what was tampered with is named."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import sqlite3
from pathlib import Path

import pytest

from quire.client.client import Client
from quire.errors import IllegalMove, LedgerError, LedgerUnavailable
from quire.ledger.base import Ledger
from quire.ledger.memory.ledger import MemoryLedger
from quire.ledger.sqlite.ledger import SqliteLedger
from quire.model.change import Order, Send
from quire.model.receipt import Receipt
from quire.model.record import Record, Status
from quire.upkeep import promote
from tests.surfaces.cli.conftest import TOML, Project


@pytest.fixture
def done(project: Project) -> Project:
    for record_id in ("a", "b", "c"):
        project.quire("start", "publish", f"keyword={record_id}", "--id", record_id)
    project.work()
    for record_id in ("a", "b"):
        project.quire("approve", record_id)
    project.work()
    return project


def tamper(project: Project, sql: str) -> None:
    db = sqlite3.connect(project.path / "ledger.db")
    assert db.execute(sql).rowcount >= 1
    db.commit()
    db.close()


# -- verify --------------------------------------------------------------------------------------------------------


def test_a_sound_ledger(done: Project) -> None:
    assert "no difference" in done.quire("verify").stdout
    [row] = done.json("verify")
    assert (row["ok"], row["records"], row["differences"]) == (True, 3, [])
    assert done.json("verify", "a")[0]["records"] == 1
    assert "not found" in done.error("verify", "nope", code=4)
    assert "there is no folder" in done.error("verify", "--folder", "nowhere", code=4)


@pytest.mark.parametrize(
    ("sql", "where", "what"),
    [
        ("UPDATE events SET body = '{}' WHERE record_id = 'b' AND n = 3", "b", "line 3 ('moved'"),
        ("DELETE FROM events WHERE record_id = 'b' AND n = 2", "b", "line 3"),
        ("UPDATE events SET at = at + 1 WHERE record_id = 'a' AND n = 1", "a", "line 1 ('started'"),
        (
            "DELETE FROM events WHERE record_id = 'a' AND n = (SELECT max(n) FROM events WHERE record_id = 'a')",
            "a",
            "its log ends at line",
        ),
        ("UPDATE receipts SET value = '\"x\"' WHERE kind = 'once' AND record_id = 'a'", "a", "does not verify"),
        ("UPDATE receipts SET key_id = 'k9' WHERE kind = 'once' AND record_id = 'a'", "a", "does not verify"),
        ("UPDATE records SET open_intents = 1 WHERE record_id = 'a'", "a", "0 open intents, the record says 1"),
        ("DELETE FROM records WHERE record_id = 'a'", "a", "it has a log, but the record is not there"),
    ],
)
def test_what_was_tampered_with_is_named(done: Project, sql: str, where: str, what: str) -> None:
    tamper(done, sql)

    [row] = done.json("verify", code=3)

    assert row["ok"] is False
    assert row["differences"][0]["where"] == where
    assert what in row["differences"][0]["what"]
    assert f"{where}: " in done.quire("verify", code=3).stdout.split("first difference: ")[1]


def test_a_fan_in_that_does_not_add_up(project: Project) -> None:
    project.write(
        "many.py",
        "from quire import Run, workflow\n@workflow\nasync def one(run: Run) -> int:\n    return 1\n"
        "@workflow\nasync def them(run: Run) -> int:\n    return sum(await run.map(one, [{}, {}]))\n",
    )
    project.quire("worker", "many.py", "--until-idle")
    project.quire("start", "them", "--id", "m")
    project.quire("worker", "many.py", "--until-idle")
    assert project.json("verify")[0]["fanins"] == 1
    tamper(project, 'UPDATE fanins SET "left" = 1')

    assert "0 open children, the fan-in says 1" in project.json("verify", code=3)[0]["differences"][0]["what"]


# -- rotate --------------------------------------------------------------------------------------------------------


def age(project: Project) -> None:
    """Records that ended, ended a while ago."""
    tamper(project, "UPDATE records SET updated_at = updated_at - 7200")


def test_lines_of_ended_records_are_archived_and_none_is_lost(done: Project) -> None:
    (done.path / "files").mkdir()
    before = done.json("logs", "-n", "1000")
    age(done)

    [row] = done.json("rotate", "--older", "1h", "--folder", "files")

    after = done.json("logs", "-n", "1000")
    assert row["segments"] == 1
    assert row["forgotten"] == len(before) - len(after) > 0
    assert {line["record_id"] for line in before} == {line["record_id"] for line in after} == {"a", "b", "c"}
    assert done.json("verify")[0]["ok"]
    assert done.json("verify", "--folder", "files")[0]["ok"]
    assert "there is nothing to archive" in done.quire("rotate", "--older", "1h", "--folder", "files").stdout


def test_what_ended_lately_stays(done: Project) -> None:
    (done.path / "files").mkdir()
    before = done.contents()[:2]

    assert "there is nothing to archive" in done.quire("rotate", "--folder", "files").stdout
    assert "not a span of time" in done.error("rotate", "--older", "x", code=2)
    assert "the archive needs a folder" in done.error("rotate", code=2)
    assert "is not a folder: a directory, or drive://FOLDER_ID" in done.error(
        "verify", "--config", _remote(done, "ftp://x"), code=2
    )
    assert "names no folder" in done.error("verify", "--config", _remote(done, "drive://"), code=2)

    assert done.contents()[:2] == before


def _remote(project: Project, folder: str) -> str:
    return str(project.write("remote.toml", f'ledger = "ledger.db"\nfolder = "{folder}"\n'))


def test_a_retried_record_goes_on_from_the_archived_chain(done: Project) -> None:
    (done.path / "files").mkdir()
    age(done)
    done.quire("rotate", "--older", "1h", "--folder", "files")
    done.quire("retry", "a", "--from", "draft")
    done.work()
    done.quire("approve", "a")
    done.work()

    assert done.record("a").status is Status.DONE
    assert done.json("verify")[0]["ok"]


@pytest.mark.parametrize("words", [["rotate"], ["verify"], ["export", "out.csv"]])
def test_a_folder_that_is_not_there_is_not_made(done: Project, words: list[str]) -> None:
    assert "there is no folder 'fiels/x'" in done.error(*words, "--folder", "fiels/x", code=4)
    assert not (done.path / "fiels").exists() and not (done.path / "out.csv").exists()


def test_a_folder_that_cannot_be_deletes_nothing(done: Project) -> None:
    done.write("file", "no directory")
    age(done)
    before = done.contents()

    done.quire("rotate", "--older", "1h", "--folder", "file", code=2)

    assert done.contents() == before


def test_a_worker_writes_the_configured_folder_behind_the_commits(project: Project) -> None:
    project.write("quire.toml", 'folder = "files"\n' + TOML)
    project.quire("start", "publish", "keyword=x", "--id", "kw_x")
    project.work()

    shown = project.path / "files" / "Workflows" / "publish" / "state" / "state_kw_x.json"
    assert '"NEEDS_APPROVAL"' in shown.read_text()
    [row] = project.json("verify")
    assert (row["ok"], row["folder"]) == (True, True)

    shown.write_text(shown.read_text().replace("NEEDS_APPROVAL", "DONE"))
    assert not project.json("verify", code=3)[0]["ok"]


# -- export --------------------------------------------------------------------------------------------------------


def test_a_csv_begins_with_the_columns_of_the_state_table(done: Project) -> None:
    done.quire("export", "out.csv", "--status", "DONE")

    rows = list(csv.reader(io.StringIO((done.path / "out.csv").read_text(encoding="utf-8-sig"))))
    assert rows[0][:7] == [
        "record_id",
        "status",
        "next_step",
        "dedupe_key",
        "last_run_id",
        "last_error",
        "updated_at",
    ]
    assert [row[0] for row in rows[1:]] == ["a", "b"]


def test_a_workbook_and_an_evidence_pack(done: Project) -> None:
    assert "wrote 3 records" in done.quire("export", "out.xlsx").stdout
    [row] = done.json("export", "pack.zip")

    assert (done.path / "out.xlsx").read_bytes()[:2] == b"PK"
    assert len(row["fingerprint"]) == 64


def test_an_export_that_cannot_be(done: Project) -> None:
    done.quire("export", code=2)
    done.quire("export", "", code=2)
    done.quire("export", "/proc/nowhere/x.csv", code=2)
    assert "not a form of export" in done.error("export", "out.pdf", code=2)
    assert "there is no workflow 'nope'" in done.error("export", "out.csv", "--workflow", "nope", code=4)
    done.quire("export", "out.csv", "--format", "pdf", code=2)
    assert not (done.path / "out.csv").exists()


@pytest.mark.parametrize("name", ["ledger.db", "ledger.db-wal", "ledger.db-shm", "quire.toml", "flows.py"])
def test_nothing_is_written_over_what_the_project_lives_on(done: Project, name: str) -> None:
    before = {path.name: path.read_bytes() for path in done.path.iterdir() if path.is_file()}
    (done.path / "sub").mkdir()
    (done.path / "link.csv").symlink_to(name)
    spellings = [name, str(done.path / name), f"sub/../{name}", "link.csv"]
    if name in before:
        (done.path / "other.csv").hardlink_to(done.path / name)
        spellings.append("other.csv")

    for target in spellings:
        for words in (
            ["export", target, "--format", "csv"],
            ["export", target, "--format", "xlsx"],
            ["graph", "publish", "--to", target],
            ["mission", "report", "a", "--out", target],
        ):
            assert "would overwrite; name another file" in done.error(*words, code=2)

    assert {name: (done.path / name).read_bytes() for name in before} == before
    assert "no difference" in done.quire("verify").stdout


def test_an_export_may_be_written_again(done: Project) -> None:
    done.quire("export", "out.csv")
    first = (done.path / "out.csv").read_bytes()
    done.quire("export", "out.csv")
    assert (done.path / "out.csv").read_bytes() == first

    done.quire("graph", "publish", "--to", "out.csv")
    assert (done.path / "out.csv").read_bytes() != first


def test_a_drawing_is_also_written_where_the_answer_is_json(done: Project) -> None:
    told = done.quire("graph", "publish", "--to", "out.mmd", "--json")

    assert json.loads(told.stdout)["definition"]["name"] == "publish"
    assert "publish" in (done.path / "out.mmd").read_text()


# -- promote -------------------------------------------------------------------------------------------------------


def test_a_ledger_moves_whole_and_the_source_says_where_to(done: Project) -> None:
    new = f"sqlite:///{done.path / 'new.db'}"

    told = done.quire("promote", "ledger.db", "new.db")

    assert "moved to" in told.stdout
    assert "is sealed" in done.error("start", "publish", "keyword=x", code=3)
    assert "its records are at" in done.quire("why", "c").stdout
    assert "sealed" in done.quire().stdout
    assert f'next: set ledger = "{new}" in quire.toml' in done.quire().stdout
    assert {row["record_id"] for row in done.json("list", "--ledger", new)} == {"a", "b", "c"}
    done.quire("verify", "--ledger", new)
    done.quire("approve", "c", "--ledger", new)
    done.quire("worker", "--until-idle", "--ledger", new)
    assert done.json("list", "c", "--ledger", new)[0]["status"] == "DONE"


def test_a_ledger_moves_from_sqlite_to_postgresql_and_works_on_there(done: Project, postgres_url: str) -> None:
    told = done.quire("promote", "ledger.db", postgres_url)

    assert "moved to postgresql://" in told.stdout
    assert "is sealed" in done.error("start", "publish", "keyword=x", code=3)
    assert {row["record_id"] for row in done.json("list", "--ledger", postgres_url)} == {"a", "b", "c"}
    done.quire("approve", "c", "--ledger", postgres_url)
    done.quire("worker", "--until-idle", "--ledger", postgres_url)
    assert done.json("list", "c", "--ledger", postgres_url)[0]["status"] == "DONE"
    assert done.json("verify", "--ledger", postgres_url)[0]["ok"]
    assert "the last tick" not in done.quire("doctor", "--ledger", postgres_url, code=None).stdout


def test_a_promotion_may_be_repeated_but_opens_once(done: Project) -> None:
    done.quire("promote", "ledger.db", "new.db")

    done.quire("promote", "ledger.db", "new.db")
    assert "was opened already" in done.error("promote", "ledger.db", "new.db", "--abort", code=3)
    done.quire("promote", "ledger.db", "new.db", "--late")
    done.write("empty.toml", "")
    asyncio.run(_made(done.path / "other.db"))
    assert "was opened already, with the records of" in done.error("promote", "other.db", "new.db", code=3)


async def _made(path: Path) -> None:
    async with Client(f"sqlite:///{path}"):
        pass


def test_a_promoted_ledger_moves_on(done: Project) -> None:
    done.quire("promote", "ledger.db", "new.db")

    done.quire("promote", "new.db", "newer.db")

    assert "newer.db" in done.error("start", "publish", "keyword=x", "--ledger", "new.db", code=3)
    done.quire("approve", "c", "--ledger", "newer.db")
    done.quire("worker", "--until-idle", "--ledger", "newer.db")
    assert done.json("verify", "--ledger", "newer.db")[0]["ok"]


def test_a_promotion_into_a_ledger_with_records_of_its_own_is_refused_and_the_source_goes_on(done: Project) -> None:
    done.quire("worker", "--until-idle", "--ledger", "other.db")
    done.quire("start", "publish", "keyword=x", "--ledger", "other.db")

    assert "has records of its own" in done.error("promote", "ledger.db", "other.db", code=3)

    assert "is not sealed" in done.error("promote", "ledger.db", "other.db", "--abort", code=3)
    done.quire("start", "publish", "keyword=x")


def test_a_moved_ledger_names_its_target_and_makes_no_other(done: Project) -> None:
    done.quire("promote", "ledger.db", "new.db")
    before = done.contents()

    for option in ((), ("--abort",), ("--late",)):
        told = done.error("promote", "ledger.db", "other.db", *option, code=3)
        assert f"are at sqlite:///{done.path / 'new.db'}" in told

    assert done.contents() == before
    assert not (done.path / "other.db").exists()
    (done.path / "new.db").unlink()
    for option in ((), ("--late",)):
        assert "there is no ledger at" in done.error("promote", "ledger.db", "new.db", *option, code=4)
    assert "was opened already" in done.error("promote", "ledger.db", "new.db", "--abort", code=3)
    assert not (done.path / "new.db").exists()


def test_nothing_is_taken_back_nor_carried_over_where_nothing_was_moved(done: Project) -> None:
    assert "is not sealed" in done.error("promote", "ledger.db", "new.db", "--abort", code=3)
    assert "there is no ledger at" in done.error("promote", "ledger.db", "new.db", "--late", code=4)
    assert not (done.path / "new.db").exists()


def test_a_promotion_whose_half_filled_target_was_removed_is_taken_back(done: Project) -> None:
    target = f"sqlite:///{done.path / 'new.db'}"
    done.ask(lambda client: client.ledger.order(Order("seal", "*", "ann", target=f"(on their way to) {target}")))

    done.quire("promote", "ledger.db", "new.db", "--abort")

    assert not (done.path / "new.db").exists()
    done.quire("start", "publish", "keyword=x")


def test_a_promotion_that_did_not_work_prints_the_command_that_takes_it_back(
    done: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lost(*given: object) -> None:
        raise LedgerUnavailable("the store did not answer")

    monkeypatch.setattr(SqliteLedger, "restore", lost)

    told = done.quire("promote", "ledger.db", "new.db", code=1).stderr

    [back] = [line.split("until: quire ")[1] for line in told.splitlines() if "--abort" in line]
    done.quire(*back.split())
    done.quire("start", "publish", "keyword=x")
    monkeypatch.undo()
    assert "moved to" in done.quire("promote", str(done.path / "ledger.db"), str(done.path / "new.db")).stdout


def test_a_character_that_the_target_cannot_keep_is_named_and_the_source_goes_on(
    done: Project, postgres_url: str
) -> None:
    tamper(done, "UPDATE records SET note = 'x' || char(0) WHERE record_id = 'b'")

    told = done.quire("promote", "ledger.db", postgres_url, code=2).stderr

    assert "the record 'b' cannot be kept in postgresql://" in told
    assert "its note holds a NUL character; correct the step" in told
    assert "quire retry b --from STEP" in told
    assert "the source is open again" in told
    done.quire("start", "publish", "keyword=x", "--id", "d")
    tamper(done, "UPDATE records SET note = 'x' WHERE record_id = 'b'")
    done.quire("promote", "ledger.db", postgres_url)
    assert {row["record_id"] for row in done.json("list", "--ledger", postgres_url)} == {"a", "b", "c", "d"}
    assert done.json("verify", "--ledger", postgres_url)[0]["ok"]


def test_addresses_that_cannot_be_promoted(done: Project) -> None:
    before = done.contents()
    (done.path / "link.db").symlink_to(done.path / "ledger.db")
    (done.path / "sub").mkdir()

    for same in ("sqlite:///ledger.db", "link.db", f"sqlite:///{done.path}/sub/../ledger.db"):
        assert "the same ledger" in done.error("promote", "ledger.db", same, code=2)
    assert "name a ledger that stays" in done.error("promote", "ledger.db", "memory:", code=2)
    assert "name a ledger that stays" in done.error("promote", "memory:", "new.db", code=2)
    assert "there is no ledger" in done.error("promote", "nope.db", "new.db", code=4)
    assert "not a ledger that Quire knows" in done.error("promote", "ledger.db", "ftp://x", code=2)
    done.quire("promote", "ledger.db", "new.db", "--late", "--abort", code=2)
    done.quire("promote", "ledger.db", code=2)

    assert done.contents() == before


@pytest.mark.parametrize("forward", [True, False], ids=["sqlite-to-memory", "memory-to-sqlite"])
async def test_between_stores_every_table_is_the_same(tmp_path: Path, forward: bool) -> None:
    source: Ledger = SqliteLedger(tmp_path / "a.db") if forward else MemoryLedger()
    target: Ledger = MemoryLedger() if forward else SqliteLedger(tmp_path / "b.db")
    await _filled(source)
    await target.open()

    made = await promote.promote(source, target, by="ann@x.eu", wait=1.0)

    assert made.tables["records"].rows == 5
    assert await promote.summaries(source) == await promote.summaries(target)
    [raw] = [row for row in await target.dump(Record) if row.record_id == "long"]
    assert len(raw.data) > 200_000
    await source.close()
    await target.close()


async def _filled(ledger: Ledger) -> None:
    """Records, receipts, signals, a fan-in, blobs, and what a halt cancelled by definition only."""
    from quire import Run, workflow

    @workflow
    async def one(run: Run) -> int:
        return 1

    @workflow
    async def them(run: Run) -> int:
        total = sum(await run.map(one, [{}, {}]))
        await run.wait("go")
        return total

    async with Client(ledger, workflows=[one, them]) as client:
        await client.start(them, {}, id="m")
        await client.work()
        await client.ledger.send([Send("s_1", "m", "other", '{"x":1}', "ann")])
        await client.start(one, {"text": "x" * 200_000}, id="long")
        await client.halt()
        await client.resume()
        await client.start(one, {}, id="late", after="1h")
        ledger.close = _nothing  # type: ignore[method-assign]  # the test goes on with it
    del ledger.close


async def _nothing() -> None: ...


async def test_rows_are_not_copied_into_an_open_ledger(tmp_path: Path) -> None:
    for ledger in (MemoryLedger(), SqliteLedger(tmp_path / "a.db")):
        await ledger.open()
        with pytest.raises(LedgerError, match="is open"):
            await ledger.restore(Receipt, [], 1)
        await ledger.close()


async def test_a_store_that_cannot_be_copied_says_so() -> None:
    ledger = MemoryLedger()
    with pytest.raises(NotImplementedError, match="cannot be copied yet"):
        await Ledger.dump(ledger, Record)
    with pytest.raises(NotImplementedError, match="cannot take over a copy"):
        await Ledger.restore(ledger, Record, [], 1)


async def test_a_target_that_is_the_grave_of_another_ledger_is_refused(tmp_path: Path) -> None:
    source, target = MemoryLedger(), MemoryLedger()
    await target.order(Order("seal", "*", "ann", target="elsewhere"))

    with pytest.raises(IllegalMove, match="is sealed"):
        await promote.promote(source, target, by="ann", wait=0.1)
    assert (await source.standing()).sealed == ""


def test_a_mirror_copies_what_is_new(project: Project) -> None:
    project.quire("start", "publish", "keyword=quires", "--id", "a")

    first = project.json("mirror", "rows")[0]
    second = project.quire("mirror", "rows").stdout

    assert first["lines"] == 1 and first["records"] == 1
    assert second == "there is nothing new\n"
    assert [path.name for path in (project.path / "rows" / "schema").iterdir()] != []
    assert "for BigQuery load the JSON lines" in project.error("mirror", "bigquery://set", code=2)
