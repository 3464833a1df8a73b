"""The doctor: what is well, what to look out for, what is problem."""

from __future__ import annotations

import sqlite3

import pytest

from quire.client.client import Client
from quire.model.codec import dump
from quire.model.side import Setting
from quire.surfaces.cli.begin import doctor
from quire.worker.last_tick import LAST_TICK
from tests.surfaces.cli.conftest import Project


def findings(project: Project, code: int = 0) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {"well": [], "warning": [], "problem": []}
    for row in project.json("doctor", code=code):
        found[row["state"]].append(row["what"])
    return found


def test_a_fresh_project_is_well(project: Project) -> None:
    found = findings(project)

    assert found["problem"] == []
    assert any("opens, writes and reads back" in text for text in found["well"])
    assert any("integrity_check" in text for text in found["well"])
    assert "no problems found" in project.quire("doctor").stdout


def test_no_ledger_yet_and_a_flow_file_that_is_missing(empty: Project) -> None:
    assert any("is not there yet" in text for text in findings(empty)["well"])
    empty.write("quire.toml", 'flows = ["nope.py"]\n')

    assert any("nope.py" in text for text in findings(empty, code=3)["problem"])
    assert not (empty.path / ".quire").exists()


def test_what_is_said_of_the_sqlite_library(monkeypatch: pytest.MonkeyPatch) -> None:
    def said(version: tuple[int, int, int]) -> doctor.Finding:
        monkeypatch.setattr(sqlite3, "sqlite_version_info", version)
        monkeypatch.setattr(sqlite3, "sqlite_version", ".".join(map(str, version)))
        return list(doctor._machine())[1]

    assert said((3, 36, 0)) == (
        "problem",
        "SQLite 3.36.0 is too old: 3.37 is needed; use a newer Python, or PostgreSQL",
    )
    shared = "SQLite 3.40.1: any number of processes on this machine may share a ledger file"
    assert said((3, 40, 1)) == ("well", shared)


def test_a_file_that_is_no_ledger(empty: Project) -> None:
    empty.write("quire.toml", 'ledger = "x.db"\n')
    empty.write("x.db", "this is not a database, but it is long enough to be looked at as one" * 20)

    assert any("is not a ledger" in text for text in findings(empty, code=3)["problem"])
    assert "is not a ledger" in empty.error("list", code=2)


@pytest.mark.parametrize("theirs", ["CREATE TABLE theirs (x)", "PRAGMA application_id = 7", "PRAGMA user_version = 1"])
def test_a_database_of_somebody_else_stays_as_it_is(empty: Project, theirs: str) -> None:
    db = sqlite3.connect(empty.path / "x.db")
    db.execute(theirs)
    db.commit()
    db.close()
    before = (empty.path / "x.db").read_bytes()

    for words in (["list"], ["show", "a"], ["token", "create", "ann"]):
        assert "not a Quire ledger" in empty.error(*words, "--ledger", "x.db", code=2)
    assert "not a Quire ledger" in empty.quire("doctor", "--ledger", "x.db", code=3).stdout
    assert (empty.path / "x.db").read_bytes() == before
    assert [path.name for path in empty.path.iterdir()] == ["x.db"]


@pytest.mark.parametrize(
    ("was", "now"),
    [
        (b"draft and review", b"draft and refuse"),
        (b'{"keyword"', b"{'keyword'"),
        (b"PENDING", b"PENDIFF"),
        (b"cancelled", b"cancelxxx"),
        (b"teapot", b"\xff\xfe\xfd\xfc\xfb\xfa"),
    ],
)
def test_a_file_whose_cells_are_overwritten(project: Project, was: bytes, now: bytes) -> None:
    project.quire("start", "publish", "keyword=teapot", "--id", "t1")
    project.quire("cancel", "t1", "--reason", "draft and review")
    project.quire("start", "publish", "keyword=teapot", "--id", "t2")
    file = project.path / "ledger.db"
    whole = file.read_bytes()
    assert was in whole
    assert findings(project)["problem"] == []
    file.write_bytes(whole.replace(was, now))

    [*_, problem] = findings(project, code=3)["problem"]
    assert "restore a copy" in problem


def test_records_that_wait_without_a_worker(project: Project) -> None:
    project.quire("start", "publish", "keyword=x")

    assert any("no worker is alive and 1 records wait" in text for text in findings(project)["warning"])


def test_a_paused_ledger_is_a_warning(project: Project) -> None:
    project.quire("pause")

    assert any("the ledger is paused" in text for text in findings(project)["warning"])


def test_a_periodic_caller_that_fell_silent(project: Project) -> None:
    async def ticked(client: Client, ago: float) -> None:
        kept = await client.ledger.setting(LAST_TICK)
        told = dump({"at": await client.ledger.now() - ago, "period": 60.0})
        await client.ledger.keep(Setting(LAST_TICK, told, kept.version if kept is not None else 0))

    project.ask(lambda client: ticked(client, 100.0))
    assert any("the last tick was 1 min 40 s ago" in text for text in findings(project)["well"])

    project.ask(lambda client: ticked(client, 200.0))
    assert any("the periodic caller is silent" in text for text in findings(project, code=3)["problem"])


def test_a_folder_with_a_file_that_halts_and_one_that_is_not_there(project: Project) -> None:
    config = (project.path / "quire.toml").read_text()
    project.write("quire.toml", config.replace("who =", 'folder = "files"\nwho ='))
    assert any("is not there yet; a worker makes it" in text for text in findings(project)["well"])
    project.work()
    project.write("files/STOP", "")

    assert any("the file 'STOP' in the folder halts" in text for text in findings(project)["warning"])
