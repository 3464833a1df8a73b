"""Copies of a ledger, put back: what was open asks before it goes on."""

from __future__ import annotations

import pytest

from tests.surfaces.cli.conftest import Project


def test_a_copy_is_put_back_and_its_open_records_ask(project: Project) -> None:
    project.quire("start", "publish", "--id", "a", "--data", '{"keyword": "x"}')
    assert "copied 1 records" in project.quire("backup", "copy.db").stdout
    project.quire("start", "publish", "--id", "b", "--data", '{"keyword": "y"}')

    assert "with --over it is replaced" in project.error("restore", "copy.db", code=2)
    said = project.quire("restore", "copy.db", "--over").stdout
    assert "restored 1 records" in said and "1 open records ask you" in said
    [row] = project.json("list")
    assert row["record_id"] == "a" and row["status"] == "NEEDS_APPROVAL"
    assert any("went back in time" in row["what"] for row in project.json("doctor") if row["state"] == "warning")
    assert "still ask" in project.error("adopt", "--end", code=2)
    assert "1 records go on" in project.quire("adopt", "--all", "go-on").stdout
    project.quire("adopt", "--end")
    assert "nothing to end" in project.error("adopt", "--end", code=2)
    assert (project.path / "ledger.db.before").exists()


@pytest.mark.parametrize("word", ["backup", "restore"])
def test_what_is_no_copy_is_refused_and_nothing_changes(project: Project, word: str) -> None:
    project.quire("start", "publish", "--id", "a", "--data", '{"keyword": "x"}')
    project.write("x.db", "this is no database")
    if word == "restore":
        assert "is not a Quire ledger" in project.error("restore", "x.db", "--over", code=2)
    else:
        assert "no directory" in project.error("backup", "nowhere/copy.db", code=4)
        assert "which this would overwrite" in project.error("backup", "ledger.db", code=2)
        assert "copies ledgers in a file" in project.error(word, "c.db", "--ledger", "postgresql://h/d", code=2)
    assert [row["record_id"] for row in project.json("list")] == ["a"]
