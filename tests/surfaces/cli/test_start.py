"""Starting one record and many: data as it is typed, files with bad lines, exit codes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

import pytest

from quire.client.client import Client
from quire.errors import InputError
from quire.ledger.sqlite.ledger import SqliteLedger
from quire.model.record import Record, Status
from quire.surfaces.cli.values import fitted, given, pairs
from quire.surfaces.cli.work import start
from tests.surfaces.cli.conftest import FLOWS, Project

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "share": {"type": "number"},
        "hot": {"type": "boolean"},
        "tags": {"type": "array"},
        "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        "kind": {"$ref": "#/$defs/Kind"},
    },
    "$defs": {"Kind": {"enum": ["a", "b"]}},
}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("text", "3", "3"),
        ("text", "", ""),
        ("count", "3", 3),
        ("count", "three", "three"),
        ("share", "0.5", 0.5),
        ("hot", "true", True),
        ("hot", "yes", True),
        ("hot", "No", False),
        ("hot", "1", True),
        ("tags", '["a"]', ["a"]),
        ("maybe", "", None),
        ("maybe", "4", 4),
        ("either", "4", "4"),
        ("kind", "a", "a"),
        ("unknown", "4", "4"),
    ],
)
def test_a_value_becomes_what_the_schema_wants(name: str, text: str, value: object) -> None:
    found = fitted(name, text, SCHEMA)

    assert found == value
    assert type(found) is type(value)


def test_fields_with_json_and_equal_signs() -> None:
    assert pairs(["a=b=c", "n:=3", 'o:={"x":[1]}', "empty="]) == {"a": "b=c", "n": 3, "o": {"x": [1]}, "empty": ""}


@pytest.mark.parametrize("word", ["nothing", "=x", "a:=", "a:={", ":=3", ""])
def test_what_is_no_field_is_refused(word: str) -> None:
    with pytest.raises(InputError):
        pairs([word])


def test_a_field_twice_is_refused() -> None:
    with pytest.raises(InputError, match="twice"):
        pairs(["a=1", "a=2"])


def test_data_must_be_an_object() -> None:
    with pytest.raises(InputError, match="object of named fields"):
        given("[1]", [])
    with pytest.raises(InputError, match="not JSON"):
        given("{", [])
    with pytest.raises(InputError, match="cannot be read"):
        given("@nowhere.json", [])
    assert given('{"a": 1, "b": 2}', ["b=3"]) == {"a": 1, "b": "3"}


def test_start_checks_data_by_the_registered_definition_without_the_users_code(project: Project) -> None:
    project.write("flows.py", "raise SystemExit('nobody imports this')")

    [row] = project.json("start", "publish", "keyword=quires", "words=3", "hot=yes", "--id", "a")

    assert row["data"] == {"keyword": "quires", "words": 3, "hot": True}
    assert (row["status"], row["next_step"], row["undo"]) == ("PENDING", "draft", "quire cancel a")
    assert "keyword: Field required" in project.error("start", "publish", code=2)
    assert "words: Input should be a valid integer" in project.error(
        "start", "publish", "keyword=x", "words=many", code=2
    )
    # A workflow that the ledger does not know may stand in a flow file that no worker has read yet.
    project.write("flows.py", FLOWS)
    assert "there is no workflow 'publsh' in this ledger; did you mean 'publish'?" in project.error(
        "start", "publsh", code=4
    )


def test_the_same_start_again_starts_nothing_and_another_is_refused(project: Project) -> None:
    project.quire("start", "publish", "keyword=x", "--id", "a")

    again = project.quire("start", "publish", "keyword=x", "--id", "a")
    project.work()
    later = project.quire("start", "publish", "keyword=x", "--id", "a")

    assert "started a of publish" in again.stdout
    assert "a was started before; it is NEEDS_APPROVAL" in later.stdout
    assert "exists already and was started with other data" in project.error(
        "start", "publish", "keyword=y", "--id", "a", code=3
    )


def test_data_from_a_file_and_from_standard_input(project: Project) -> None:
    project.write("a.json", '{"keyword": "file"}')

    project.quire("start", "publish", "--data", "@a.json", "--id", "a")
    project.quire("start", "publish", "--data", "-", "--id", "b", given='{"keyword": "stdin"}')

    assert json.loads(project.record("a").data) == {"keyword": "file"}
    assert json.loads(project.record("b").data) == {"keyword": "stdin"}


def test_a_start_later_and_with_a_priority(project: Project) -> None:
    project.quire("start", "publish", "keyword=x", "--id", "a", "--after", "1h", "--priority", "5")

    record = project.record("a")
    assert record.priority == 5
    assert record.due_at is not None and record.due_at - record.created_at > 3500
    assert "not a span of time" in project.error("start", "publish", "keyword=x", "--after", "soon", code=2)


def test_numbers_that_no_store_takes_are_refused(project: Project) -> None:
    much = "9" * 23
    start = ("start", "publish", "keyword=x")

    assert "is not in the range" in project.error(*start, "--priority", much, code=2)
    assert "is not in the range" in project.error(*start, "--priority", "-1000001", code=2)
    assert "shorter than 300 years" in project.error(*start, "--after", "3000000d", code=2)
    assert "is not in the range" in project.error("logs", "-n", much, code=2)
    assert project.json("list") == []


# -- following -----------------------------------------------------------------------------------------------------


def test_following_tells_how_it_ended_by_the_exit_code(project: Project) -> None:
    for record_id, keyword in (("done", "x"), ("waits", "y"), ("broken", "broken"), ("gone", "z")):
        project.quire("start", "publish", f"keyword={keyword}", "--id", record_id)
    project.work()
    for record_id in ("done", "broken"):
        project.quire("approve", record_id)
    project.quire("cancel", "gone")
    project.work()

    def followed(record_id: str, keyword: str, code: int) -> str:
        return project.quire("start", "publish", f"keyword={keyword}", "--id", record_id, "--follow", code=code).stdout

    assert 'DONE: "About x."' in followed("done", "x", 0)
    assert "the site is gone" in followed("broken", "broken", 5)
    assert "was cancelled" in followed("gone", "z", 6)
    assert "answer with quire approve waits" in followed("waits", "y", 7)
    project.quire("start", "board", "--id", "rests", "--follow", code=7)


def test_following_as_json_is_one_object_a_line(project: Project) -> None:
    project.quire("start", "board", "--id", "a")

    lines = project.json("start", "board", "--id", "a", "--follow", code=7)

    assert [line.get("kind") for line in lines] == ["started", None]
    assert lines[-1]["status"] == "WAITING"


# -- many ----------------------------------------------------------------------------------------------------------

CSV = """record_id,keyword,words,tags
k1,one,1,"[""a""]"
k2,"two, with a comma",,[]
k3,three
k4,four,many,[]
,five,5,[]
k1,other,1,[]
k7,seven,7,[]
"""


def test_a_csv_with_bad_lines_keeps_the_good_ones_and_names_the_bad(project: Project) -> None:
    project.write("k.csv", CSV)

    result = project.quire("start", "publish", "--from", "k.csv", code=2)

    assert "line 4: it has 2 cells, the header has 4" in result.stdout
    assert "line 5: words: Input should be a valid integer" in result.stdout
    assert "line 6: its 'record_id' is empty" in result.stdout
    assert "line 7: a record 'k1' of 'publish' exists already and was started with other data" in result.stdout
    assert "started 2 records of publish; 5 lines were bad and left out" in result.stdout
    assert json.loads(project.record("k1").data) == {"keyword": "one", "words": 1, "tags": ["a"]}
    assert json.loads(project.record("k7").data)["keyword"] == "seven"


def test_all_or_none_starts_nothing_if_a_line_is_bad(project: Project) -> None:
    project.write("k.csv", CSV)
    before = project.contents()

    lines = project.json("start", "publish", "--from", "k.csv", "--all-or-none", code=2)

    assert [line["line"] for line in lines[:-1]] == [3, 4, 5, 6, 7]
    assert lines[-1] == {"started": 0, "again": 0, "bad": 5}
    assert project.contents() == before


def test_all_or_none_starts_all_of_a_good_file_and_a_second_time_none(project: Project) -> None:
    project.write("k.jsonl", "".join(f'{{"record_id": "k{n}", "keyword": "x{n}"}}\n' for n in range(1200)))

    first = project.json("start", "publish", "--from", "k.jsonl", "--all-or-none")
    second = project.json("start", "publish", "--from", "k.jsonl", "--all-or-none")

    assert first == [{"started": 1200, "again": 0, "bad": 0}]
    assert second == [{"started": 0, "again": 1200, "bad": 0}]


def test_jsonl_with_bad_lines(project: Project) -> None:
    project.write(
        "k.jsonl", '{"keyword": "a"}\n\nnot json\n[1]\n{"keyword": "b", "record_id": 7}\n{"record_id": true}\n'
    )

    lines = project.json("start", "publish", "--from", "k.jsonl", code=2)

    assert [line.get("line") for line in lines] == [3, 4, 6, None]
    assert lines[-1]["started"] == 2
    assert project.record("7").workflow == "publish"


def test_standard_input_is_told_by_its_first_character(project: Project) -> None:
    project.quire("start", "publish", "--from", "-", given="record_id,keyword\na,csv\n")
    project.quire("start", "publish", "--from", "-", given='{"record_id": "b", "keyword": "jsonl"}\n')

    assert json.loads(project.record("a").data) == {"keyword": "csv"}
    assert json.loads(project.record("b").data) == {"keyword": "jsonl"}


def test_a_byte_that_is_no_text_spoils_its_line_only(project: Project) -> None:
    given_bytes = b'\xef\xbb\xbfrecord_id,keyword\na,good\nb,b\xff\xfed\nc,"two\nlines"\nd,nul\x00\ne,fine\n'

    lines = project.json("start", "publish", "--from", "-", "--format", "csv", code=2, given=given_bytes)

    assert [line.get("line") for line in lines[:-1]] == [3, 6]
    assert lines[-1]["started"] == 3
    assert json.loads(project.record("c").data) == {"keyword": "two\nlines"}


def test_an_id_column_of_ones_own(project: Project) -> None:
    project.write("k.csv", "number,keyword\n17,x\n")

    project.quire("start", "publish", "--from", "k.csv", "--id-field", "number")

    assert json.loads(project.record("17").data) == {"keyword": "x"}
    assert "there is no column 'nope'" in project.error(
        "start", "publish", "--from", "k.csv", "--id-field", "nope", code=2
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "the file is empty"),
        ("a,,b\n", "column 2 has no name"),
        ("a,a\n", "the column 'a' stands twice"),
        ('"a\n', "line 1 is not CSV"),
    ],
)
def test_a_header_that_cannot_be_used(project: Project, text: str, told: str) -> None:
    project.write("k.csv", text)

    assert told in project.error("start", "publish", "--from", "k.csv", code=2)


def test_options_that_do_not_go_together(project: Project) -> None:
    project.write("k.csv", "keyword\nx\n")
    before = project.contents()

    for words in (
        ("--from", "k.csv", "keyword=x"),
        ("--from", "k.csv", "--id", "a"),
        ("--from", "k.csv", "--follow"),
        ("--all-or-none",),
        ("--format", "csv"),
        ("--from", "nowhere.csv"),
        ("--from", "k.csv", "--format", "xml"),
    ):
        project.quire("start", "publish", *words, code=2)

    assert project.contents() == before


def test_nothing_starts_while_it_is_halted(project: Project) -> None:
    project.write("k.csv", "keyword\nx\ny\n")
    project.quire("halt")

    assert "is halted" in project.error("start", "publish", "keyword=x", code=3)
    assert "is halted" in project.error("start", "publish", "--from", "k.csv", code=3)
    assert project.json("list") == []


def test_ids_that_cannot_be(project: Project) -> None:
    for record_id in ("", " a", "a\nb", "x" * 501):
        assert "not a record id" in project.error("start", "publish", "keyword=x", "--id", record_id, code=2)
    assert "is not text" in project.error("start", "publish", "keyword=x", "--id", "\ud800", code=2)


def test_ids_of_any_script(project: Project) -> None:
    for record_id in ("kw:a|b/c_d'e\"f", "ключ", "💥", "a b", "x" * 500, "-dash", "--help-me"):
        project.quire("start", "publish", "keyword=x", f"--id={record_id}")

        assert project.record(record_id).status is Status.PENDING
        assert project.quire("why", "--", record_id).stdout.startswith(repr(record_id))


KILLED = """
import os, signal
from quire.rules import changes
from quire.surfaces.cli import cli

decide, count = changes.decide, 0


def until_killed(draft, change):
    global count
    count += 1
    if count == 700:
        os.kill(os.getpid(), signal.SIGKILL)
    return decide(draft, change)


changes.decide = until_killed
cli.main(["start", "publish", "--from", "k.csv", *WORDS])
"""


@pytest.mark.parametrize(("words", "there"), [(["--all-or-none"], 0), ([], 500)])
def test_a_kill_in_the_middle_leaves_all_or_none(project: Project, words: list[str], there: int) -> None:
    project.write("k.csv", "record_id,keyword\n" + "".join(f"k{n},word {n}\n" for n in range(1000)))

    told = subprocess.run(
        [sys.executable, "-c", KILLED.replace("*WORDS", f"*{words}")],
        cwd=project.path,
        capture_output=True,
        check=False,
    )

    assert told.returncode == -signal.SIGKILL, told.stderr
    found = project.ask(lambda client: client.find(workflow="publish", limit=2000))
    assert len(found) == there
    assert project.json("start", "publish", "--from", "k.csv", *words) == [
        {"started": 1000 - there, "again": there, "bad": 0}
    ]


def test_all_or_none_starts_none_if_another_process_comes_between_the_look_and_the_commit(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("k.csv", "record_id,keyword\na,x\nb,y\nc,z\n")
    look = start._Many._clashes

    async def looked(many: start._Many, client: Client, records: list[tuple[int, Record]]) -> None:
        await look(many, client, records)
        await client.start("publish", {"keyword": "another"}, id="b")

    monkeypatch.setattr(start._Many, "_clashes", looked)

    lines = project.json("start", "publish", "--from", "k.csv", "--all-or-none", code=2)

    assert [line["line"] for line in lines[:-1]] == [3]
    assert lines[-1] == {"started": 0, "again": 0, "bad": 1}
    assert [row.record_id for row in project.ask(lambda client: client.find(workflow="publish"))] == ["b"]


def test_a_store_whose_commits_are_small_refuses_all_or_none_of_a_long_file(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SqliteLedger, "traits", SqliteLedger.traits._replace(one_commit=2))
    project.write("k.csv", "record_id,keyword\na,x\nb,y\nc,z\n")

    assert "at most 2 records in one commit" in project.error(
        "start", "publish", "--from", "k.csv", "--all-or-none", code=2
    )
    assert project.ask(lambda client: client.find(workflow="publish")) == []


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("k.csv", b"record_id,keyword\nb,y\ncaf\xe9,x\n"),
        ("k.csv", b"record_id,keyword\nb,y\nc,caf\xe9\n"),
        ("k.jsonl", b'{"record_id":"b","keyword":"y"}\n\n{"record_id":"c","keyword":"caf\xe9"}\n'),
    ],
)
def test_a_line_that_is_no_utf_8_is_told_as_such(project: Project, name: str, content: bytes) -> None:
    (project.path / name).write_bytes(content)

    *bad, last = project.json("start", "publish", "--from", name, code=2)

    assert bad == [{"line": 3, "problem": "not UTF-8: save the file as UTF-8 and give it again"}]
    assert last == {"started": 1, "again": 0, "bad": 1}


def test_a_file_in_another_encoding_is_told_as_such(project: Project) -> None:
    (project.path / "k.csv").write_bytes("record_id,keyword\na,x\n".encode("utf-16"))

    assert "line 1 is not UTF-8: save the file as UTF-8" in project.error("start", "publish", "--from", "k.csv", code=2)


def test_whoever_stops_a_start_hears_how_many_were_started(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write("k.csv", "record_id,keyword\n" + "".join(f"k{n},word {n}\n" for n in range(1200)))
    commit, batches = SqliteLedger.commit, 0

    async def stopped(ledger: SqliteLedger, changes: Any) -> Any:
        nonlocal batches
        batches += len(changes) > 1
        if batches == 2:  # while the second batch is under way
            os.kill(os.getpid(), signal.SIGINT)
        return await commit(ledger, changes)

    monkeypatch.setattr(SqliteLedger, "commit", stopped)

    told = project.quire("start", "publish", "--from", "k.csv", code=130)

    assert told.stderr.split("\n\n") == ["1000 records were started before it was stopped", "quire: stopped\n"]
    assert len(project.ask(lambda client: client.find(workflow="publish", limit=2000))) == 1000


def test_a_start_before_the_first_worker_reads_the_flow_files(empty: Project) -> None:
    empty.quire("init")
    assert not (empty.path / ".quire").exists()

    refused = empty.quire("start", "greeet", "name=Ann", code=4)
    assert "there is no workflow 'greeet' in this ledger; did you mean 'greet'?" in refused.stderr
    assert not (empty.path / ".quire").exists()

    empty.quire("start", "greet", "name=Ann", "--id", "hello")
    empty.quire("worker", "--until-idle")
    assert "Send this?" in empty.quire("why", "hello").output


def test_a_start_in_a_ledger_that_knows_the_workflow_imports_nothing(project: Project) -> None:
    project.work()
    project.write("flows.py", "raise RuntimeError('imported')")

    project.quire("start", "publish", "keyword=quires", "--id", "k")
