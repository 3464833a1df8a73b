"""Looking: lists, one record, the log, the drawing, the report; as text and as JSON."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from xml.etree import ElementTree

import pytest

from quire.surfaces.cli.layout import fitting
from quire.surfaces.cli.output import Output, harmless, on_one_line
from tests.surfaces.cli.conftest import FLOWS, Project


@pytest.fixture
def busy(project: Project) -> Project:
    for record_id in ("a", "b", "c"):
        project.quire("start", "publish", f"keyword={record_id}", "--id", record_id)
    project.work()
    project.quire("approve", "a", "--edit", "draft=Better.")
    project.work()
    project.quire("start", "board", "--id", "t")
    return project


def test_nothing_there_yet(empty: Project) -> None:
    assert "There is no ledger at" in empty.quire().stdout
    assert "next: quire init" in empty.quire().stdout
    assert empty.json()[0]["exists"] is False
    for words in (("list",), ("show", "a"), ("why", "a"), ("graph",), ("verify",), ("logs",), ("approve", "a")):
        assert "there is no ledger at" in empty.error(*words, code=4)
    assert not list(empty.path.iterdir())


def test_an_empty_file_is_no_ledger_yet(empty: Project) -> None:
    file = empty.write("empty.csv", "")
    there = ("--ledger", "sqlite:///empty.csv")

    assert "There is no ledger at" in empty.quire(*there).stdout
    assert "is not there yet" in empty.quire("doctor", *there).stdout
    for words in (("list",), ("show", "a"), ("verify",), ("retry", "a")):
        assert "there is no ledger at" in empty.error(*words, *there, code=4)
    assert "there is no ledger at" in empty.error("promote", "sqlite:///empty.csv", "sqlite:///new.db", code=4)

    assert file.read_bytes() == b""
    assert list(empty.path.iterdir()) == [file]


@pytest.mark.parametrize(("ledger", "what"), [(".", "a directory"), ("", "a directory"), ("/dev/null", "no file")])
def test_what_is_no_file_is_no_ledger(empty: Project, ledger: str, what: str) -> None:
    for words in ((), ("list",), ("worker", "--until-idle"), ("token", "create", "ann")):
        empty.write("flows.py", FLOWS)
        assert f"is {what}, and a ledger is a file" in empty.error(*words, "--ledger", ledger, code=2)
    assert f"is {what}, and a ledger is a file" in empty.quire("doctor", "--ledger", ledger, code=3).stdout


def test_a_ledger_that_holds_a_moment_beyond_the_calendar_is_shown(busy: Project) -> None:
    busy.quire("start", "publish", "keyword=x", "--id", "late", "--after", "1d")
    busy.quire("token", "create", "ann")
    with closing(sqlite3.connect(busy.path / "ledger.db")) as db:
        db.execute("UPDATE records SET due_at = 2.6e11 WHERE record_id = 'late'")
        for name in ("until", "expires_at"):
            db.execute(f"""UPDATE records SET waits = replace(waits, '"{name}":', '"{name}":999')""")
        db.execute("UPDATE settings SET value = replace(value, '\"expires_at\":null', '\"expires_at\":9e15')")
        db.commit()

    assert "9999-12-31" in busy.quire("show", "late").stdout
    assert "9999-12-31" in busy.quire("show", "b").stdout
    for words in (["why", "late"], ["why", "b"], ["list"], ["list", "--stuck"], ["export", "o.csv"]):
        busy.quire(*words)
        busy.quire(*words, "--json")
    assert "9999-12-31T23:59:59.999Z" in busy.quire("token", "list").stdout


def test_bare_quire_says_in_five_lines_how_it_stands(busy: Project) -> None:
    lines = busy.quire().stdout.splitlines()

    assert len(lines) == 5
    assert "4 of 2 workflows: 1 WAITING, 2 NEEDS_APPROVAL, 1 DONE" in lines[1]
    assert lines[-1] == "  next: quire list --needs-me"
    assert busy.json()[0]["records"]["NEEDS_APPROVAL"] == 2


def test_lists_by_status_step_workflow_and_text(busy: Project) -> None:
    def ids(*words: str) -> set[str]:
        return {row["record_id"] for row in busy.json("list", *words)}

    assert ids() == {"a", "b", "c", "t"}
    assert ids("--status", "needs-approval") == {"b", "c"}
    assert ids("-s", "DONE,WAITING") == {"a", "t"}
    assert ids("--workflow", "board") == {"t"}
    assert ids("--step", "review") == {"b", "c"}
    assert ids("b") == {"b"}
    assert len(ids("--limit", "2")) == 2
    table = busy.quire("list").stdout
    assert table.splitlines()[0].split() == ["record_id", "status", "next_step", "workflow", "updated_at", "about"]
    assert "Publish 'b'?" in table


def test_a_misspelt_filter_is_told_not_answered_with_nothing(busy: Project) -> None:
    assert "did you mean 'NEEDS_APPROVAL'?" in busy.error("list", "--status", "NEEDS_APROVAL", code=2)
    assert "did you mean 'publish'?" in busy.error("list", "--workflow", "pubish", code=4)
    assert "did you mean 'review'?" in busy.error("list", "--workflow", "publish", "--step", "reveiw", code=4)
    busy.quire("list", "--limit", "0", code=2)


def test_json_has_readable_names_iso_times_and_data_as_an_object(busy: Project) -> None:
    [row] = busy.json("list", "b")

    assert row["status"] == "NEEDS_APPROVAL"
    assert row["next_step"] == "review"
    assert row["data"]["keyword"] == "b"
    assert row["updated_at"].endswith("Z") and "T" in row["updated_at"]
    assert row["waits"][0]["question"] == "Publish 'b'?"
    assert row["waits"][0]["choices"] == ["approve", "rewrite", "reject"]
    assert row["dedupe_key"] == "publish|b|review"


def test_show_has_the_question_the_timeline_and_the_receipts(busy: Project) -> None:
    asked, done = busy.quire("show", "b").stdout, busy.quire("show", "a").stdout

    assert "question  Publish 'b'?" in asked
    assert "choices   approve | rewrite | reject   may edit draft, words" in asked
    assert "shown     About b." in asked
    assert "put_online" in done
    assert "answered 'approve' by ann@x.eu (cli), edited draft" in done
    [row] = busy.json("show", "a")
    assert [event["kind"] for event in row["events"]][:3] == ["started", "claimed", "moved"]
    assert {receipt["name"] for receipt in row["receipts"]} >= {"put_online"}


def test_show_lists_children(project: Project) -> None:
    _with_children(project)

    told = project.quire("show", "m").stdout

    assert "children  3 in fan-out 1: 0 open, 0 failed" in told
    assert len(project.json("show", "m")[0]["children"]) == 3
    assert {row["parent_id"] for row in project.json("list", "--parent", "m")} == {"m"}


def _with_children(project: Project) -> None:
    project.write(
        "many.py",
        """
from quire import Run, workflow

@workflow
async def one(run: Run) -> int:
    return run.data["n"] * 2

@workflow
async def all_of_them(run: Run) -> int:
    return sum(await run.map(one, [{"n": n} for n in range(3)]))
""",
    )
    project.quire("worker", "many.py", "--until-idle")
    project.quire("start", "all_of_them", "--id", "m")
    project.quire("worker", "many.py", "--until-idle")


def test_the_log_of_one_of_all_and_its_end(busy: Project) -> None:
    assert busy.quire("logs", "b").stdout.splitlines()[-1].endswith("asked at review: question " + _hash(busy, "b"))
    assert len(busy.quire("logs", "-n", "3").stdout.splitlines()) == 3
    assert busy.json("logs", "-n", "1")[0]["record_id"] == "t"
    seqs = [row["seq"] for row in busy.json("logs", "-n", "1000")]
    assert seqs == sorted(seqs) and len(seqs) == 20
    assert busy.json("logs", "-n", "0") == []
    assert {row["kind"] for row in busy.json("logs", "--kind", "answered")} <= {"answered"}
    assert "not found" in busy.error("logs", "nope", code=4)


def _hash(project: Project, record_id: str) -> str:
    return str(project.json("show", record_id)[0]["waits"][0]["name"])


def test_diff_tells_changes_by_the_log_and_compares_the_data(busy: Project) -> None:
    told = busy.quire("diff", "a").stdout
    [row] = busy.json("diff", "a", "2", "4")

    assert '+  "draft": "Better."' in told
    assert {event["version"] for event in row["events"]} == {3, 4}
    assert "has no version 99" in busy.error("diff", "a", "1", "99", code=2)
    busy.quire("diff", "a", "-1", code=2)
    busy.quire("diff", "a", "x", code=2)


def test_diff_of_what_the_present_step_changed(project: Project) -> None:
    project.write(
        "step.py",
        "from quire import Run, workflow\n@workflow\nasync def counts(run: Run) -> None:\n"
        "    run.data['total'] = 7\n    run.data['gone'] = 1\n    await run.wait('go')\n",
    )
    project.quire("worker", "step.py", "--until-idle")
    project.quire("start", "counts", "total:=1", "--id", "s")
    project.quire("worker", "step.py", "--until-idle")

    [told] = project.json("diff", "s")
    assert told["changes"] == {"total": [1, 7], "gone": [None, 1]}
    assert told["came"] == ["gone"] and told["unknown"] == [] and told["end"] == ""
    assert '+  "total": 7' in project.quire("diff", "s").stdout


@pytest.mark.parametrize(
    ("room", "shown"),
    [
        (200, {0: 22, 1: 14, 2: 9, 3: 8, 4: 20, 5: 60}),
        (120, {0: 22, 1: 14, 2: 9, 3: 8, 4: 20, 5: 30}),
        (80, {0: 22, 1: 14, 2: 9, 3: 8, 5: 13}),
        (60, {0: 22, 1: 14, 5: 16}),
        (50, {0: 22, 1: 14}),
        (20, {0: 22, 1: 14}),
    ],
)
def test_a_narrow_terminal_shows_fewer_columns_before_it_breaks_an_id(room: int, shown: dict[int, int]) -> None:
    assert fitting([22, 14, 9, 8, 20, 60], room, 2) == shown


@pytest.mark.parametrize("columns", [10, 20, 30, 40, 50, 80, 200])
def test_ids_and_statuses_stay_whole_on_every_terminal(
    project: Project, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    project.quire("start", "publish", "keyword=x", "--id", "a_record_with_a_long_name")
    project.work()
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(Output, "terminal", property(lambda self: True, lambda self, value: None), raising=False)

    shown = project.quire("list").stdout.split()
    assert "a_record_with_a_long_name" in shown
    assert "NEEDS_APPROVAL" in shown


@pytest.mark.parametrize(
    ("typed", "meant"), [("helo", "hello"), ("hllo", "hello"), ("hello_world_fro_ann", "hello_world_from_ann")]
)
def test_the_nearest_id_is_named(project: Project, typed: str, meant: str) -> None:
    for record_id in ("hello", "hello_world_from_ann", "other"):
        project.quire("start", "publish", "keyword=x", "--id", record_id)

    assert f"not found. Did you mean {meant!r}?" in project.error("show", typed, code=4)


def test_the_drawing_in_three_ways(busy: Project) -> None:
    terminal = busy.quire("graph", "publish").stdout
    mermaid = busy.quire("graph", "publish", "--format", "mermaid").stdout
    busy.quire("graph", "publish", "--format", "svg", "--to", "g.svg")

    assert "[review ] ─▶ post, draft ↺, archive   ● 2 NEEDS_APPROVAL" in terminal
    assert 'state "review (2 NEEDS_APPROVAL)" as s1' in mermaid
    ElementTree.parse(busy.path / "g.svg")
    assert "2 NEEDS_APPROVAL" not in busy.quire("graph", "publish", "--no-counts").stdout
    assert {row["definition"]["name"] for row in busy.json("graph")} == {"publish", "board", "invoice"}
    assert "an SVG shows one workflow" in busy.error("graph", "--format", "svg", code=2)
    assert "there is no workflow 'nope'" in busy.error("graph", "nope", code=4)
    assert "cannot be written" in busy.error("graph", "publish", "--to", "/nowhere/at/all.txt", code=2)


def test_the_report_is_computed_from_the_log(project: Project) -> None:
    _with_children(project)

    [row] = project.json("report", "m")
    told = project.quire("report", "m").stdout

    assert row["children"] == 3
    assert row["wall_seconds"] >= row["running_seconds"] > 0
    assert row["hops"] == 5
    assert [step["step"] for step in row["steps"]] == ["all_of_them"]
    assert "from first start to last end" in told
    project.quire("start", "board", "--id", "t")
    assert "has not been claimed yet" in project.quire("report", "t").stdout
    assert "not found" in project.error("report", "nope", code=4)


def test_watching_for_a_while(busy: Project) -> None:
    told = busy.quire("watch", "--for", "0.2s", "--every", "50ms").stdout

    assert len(told.splitlines()) == 1
    assert "2 NEEDS_APPROVAL at review" in told
    assert busy.json("watch", "--for", "10ms", "--every", "50ms")[0]["workers"] == 0
    assert "at least 50ms" in busy.error("watch", "--every", "0s", code=2)
    assert "there is no workflow" in busy.error("watch", "--workflow", "nope", "--for", "0s", code=4)


def test_control_characters_are_shown_not_obeyed(project: Project) -> None:
    assert harmless("a\x1b[31mb\u202ec\x07") == "a\\x1b[31mb\\x202ec\\x07"
    assert on_one_line("a\nb\t c", 4) == "a b…"
    project.quire("start", "publish", "keyword=\x1b]0;owned\x07", "--id", "a")
    project.work()

    for words in (("list",), ("show", "a"), ("why", "a"), ("logs",), ("diff", "a"), ("graph",)):
        assert "\x1b]0" not in project.quire(*words).stdout
    assert json.loads(project.quire("list", "--json").stdout)["data"]["keyword"] == "\x1b]0;owned\x07"


def test_ids_are_quoted_in_the_commands_that_are_shown(project: Project) -> None:
    project.quire("start", "publish", "keyword=x", "--id", "a; rm -rf ~")
    project.quire("start", "publish", "keyword=x", "--id=-x")

    assert "back: quire retry 'a; rm -rf ~'" in project.quire("cancel", "a; rm -rf ~").stdout
    assert "back: quire retry -- -x" in project.quire("cancel", "--", "-x").stdout


FALLS = """
from quire import Fail, Run, workflow


def look_up(prices: dict) -> int:
    return prices["nope"]


@workflow
async def pricing(run: Run[dict]) -> int:
    try:
        return look_up({})
    except KeyError as error:
        raise Fail("no price, with password=hunter2") from error
"""


def test_a_record_that_broke_shows_the_lines_of_the_users_own_code(empty: Project) -> None:
    empty.write("pricing.py", FALLS)
    empty.write("quire.toml", 'flows = ["pricing.py"]\nledger = "sqlite:///ledger.db"\n')
    empty.quire("worker", "--until-idle")
    empty.quire("start", "pricing", "--id", "p")

    worked = empty.quire("worker", "--until-idle")
    shown = empty.quire("show", "p").stdout
    [told] = empty.json("show", "p")
    logged = empty.quire("logs", "p").stdout
    listed = empty.quire("list").stdout

    [line] = [line for line in worked.stderr.splitlines() if "try 1" in line]
    assert "not tried again: Fail: no price, with password=[redacted]" in line
    assert "[pricing.py:14 in pricing: raise Fail(" in line
    assert '  File "pricing.py", line 6, in look_up' in shown and '    return prices["nope"]' in shown
    assert "quire.workflows.retry.Fail: no price" in shown
    [broke] = [event for event in told["events"] if event["kind"] == "broke"]
    assert [link["type"] for link in broke["body"]["trace"]] == ["quire.workflows.retry.Fail", "KeyError"]
    assert broke["body"]["trace"][1]["frames"][-1]["file"] == "pricing.py"
    assert "hunter2" not in worked.stderr + worked.stdout + shown + json.dumps(told) + logged + listed
    assert "trace" not in logged, "a line of the log stays one line"
