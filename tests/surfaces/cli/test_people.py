"""Answers, resolves, signals, moves, edits: what changed is printed, with the verb that takes it back."""

from __future__ import annotations

import json

import pytest

from quire.errors import InputError
from quire.model.receipt import Stage
from quire.model.record import Status
from tests.surfaces.cli.conftest import Project


@pytest.fixture
def asking(project: Project) -> Project:
    for record_id in ("a", "b", "c"):
        project.quire("start", "publish", f"keyword={record_id}", "--id", record_id)
    project.work()
    return project


def test_approving_goes_ahead_and_is_in_the_log(asking: Project) -> None:
    told = asking.quire("approve", "a", "--note", "fine")

    assert "answered \"Publish 'a'?\" of a with 'approve'" in told.stdout
    assert "back: quire retry a --from review" in told.stdout
    asking.work()
    assert asking.record("a").status is Status.DONE
    [line] = asking.json("logs", "a", "--kind", "answered")
    assert line["body"] | {"question": ""} == {
        "choice": "approve",
        "by": "ann@x.eu",
        "via": "cli",
        "note": "fine",
        "question": "",
    }


def test_edit_and_approve_of_named_fields(asking: Project) -> None:
    asking.quire("approve", "a", "--edit", "draft=Better.", "--edit", "words=7")
    asking.work()

    assert asking.record("a").result == '"Better."'
    assert json.loads(asking.record("a").data)["words"] == 7
    assert "may not edit 'keyword'" in asking.error("approve", "b", "--edit", "keyword=x", code=2)


def test_reject_and_another_choice(asking: Project) -> None:
    asking.quire("reject", "a")
    asking.quire("answer", "b", "rewrite", "--note", "more figures")
    asking.work()

    assert asking.record("a").status is Status.DONE
    assert asking.record("b").status is Status.NEEDS_APPROVAL
    assert asking.record("b").visit == 4


def test_a_question_without_a_reject_says_what_it_offers(project: Project) -> None:
    project.write(
        "other.py",
        "from quire import Run, workflow\n@workflow\nasync def pick(run: Run) -> str:\n"
        "    return (await run.ask('Which?', choices=['left', 'right'])).choice\n",
    )
    project.quire("worker", "other.py", "--until-idle")
    project.quire("start", "pick", "--id", "p")
    project.quire("worker", "other.py", "--until-idle")

    assert "offers no 'reject'; answer with quire answer p left | right" in project.error("reject", "p", code=3)
    assert "did you mean 'right'?" in project.error("answer", "p", "rihgt", code=2)
    assert "answer with quire answer p left|right" in project.quire("why", "p").stdout
    project.quire("answer", "p", "right")


def test_who_may_not_answer_is_told_so(asking: Project) -> None:
    assert "eve@x.eu may not answer this; it is for editors" in asking.error("approve", "a", "--as", "eve@x.eu", code=3)
    assert asking.record("a").status is Status.NEEDS_APPROVAL


def test_an_answer_to_what_was_not_seen_is_refused(asking: Project) -> None:
    [row] = asking.json("show", "a")
    seen = row["waits"][0]["hash"]

    assert "has changed since it was shown" in asking.error("approve", "a", "--seen", "0" * 64, code=3)
    asking.quire("approve", "a", "--seen", seen)


def test_what_asks_nothing_takes_no_answer(asking: Project) -> None:
    asking.quire("approve", "a")
    before = asking.contents()

    assert "asks nothing; it is PENDING" in asking.error("approve", "a", code=3)
    assert "asks nothing" in asking.error("reject", "a", code=3)
    assert "not found" in asking.error("approve", "nope", code=4)
    assert asking.contents() == before


def test_what_waits_for_me(asking: Project) -> None:
    mine = asking.json("list", "--needs-me")
    hers = asking.json("list", "--needs-me", "--as", "eve@x.eu")

    assert {row["record_id"] for row in mine} == {"a", "b", "c"}
    assert hers == []
    assert "nothing waits for you" in asking.quire("list", "--needs-me", "--as", "eve@x.eu").stderr


def test_what_waits_for_me_stands_in_order(asking: Project) -> None:
    by_age = [row["record_id"] for row in asking.json("list", "--needs-me", "--by", "age")]

    assert sorted(by_age) == ["a", "b", "c"]
    assert [row["record_id"] for row in asking.json("list", "--needs-me", "--limit", "1")] == by_age[:1]
    assert "1 of 3 that wait for you are shown" in asking.quire("list", "--needs-me", "--limit", "1").stderr
    assert "add --needs-me" in asking.error("list", "--by", "age", code=2)
    assert "'expires'" in asking.error("list", "--needs-me", "--by", "expires", code=2)


DOUBTFUL = """
from quire import Act, Run, effect, workflow

@effect(timeout="0.2s")
async def pay(act: Act) -> str:
    raise RuntimeError("the line went dead")

@workflow
async def invoice2(run: Run) -> str:
    return await run.once(pay)
"""


@pytest.fixture
def doubtful(empty: Project) -> Project:
    empty.write("flows.py", DOUBTFUL)
    empty.write("quire.toml", 'flows = ["flows.py"]\nledger = "ledger.db"\nwho = "ann@x.eu"\n')
    empty.work()
    for record_id in ("a", "b"):
        empty.quire("start", "invoice2", "--id", record_id)
    for _ in range(20):
        empty.quire("worker", "--budget", "1s")
        if {row["status"] for row in empty.json("list")} == {"NEEDS_APPROVAL"}:
            break
    return empty


def test_an_effect_in_doubt_is_resolved_by_a_person(doubtful: Project) -> None:
    assert "Did 'pay' happen?" in doubtful.quire("why", "a").stdout
    assert {row["stuck"] for row in doubtful.json("list", "--stuck")} == {"doubt"}
    assert {row["record_id"] for row in doubtful.json("list", "--needs-me")} == {"a", "b"}
    assert "say so with quire resolve a --happened | --not" in doubtful.error("approve", "a", code=3)
    for words in ((), ("--not", "--value", "1"), ("--happened", "--value", "{")):
        doubtful.quire("resolve", "a", *words, code=2)

    doubtful.quire("resolve", "a", "--happened", "--value", '"paid"')
    doubtful.work()

    assert doubtful.record("a").result == '"paid"'
    assert "nothing of 'a' is in doubt" in doubtful.error("resolve", "a", "--not", code=3)
    doubtful.quire("resolve", "b", "--not")
    [receipt] = doubtful.ask(lambda client: client.ledger.receipts(record_ids=["b"]))
    assert receipt.stage is Stage.VOID
    doubtful.quire("verify")


def test_a_signal_with_fields_and_with_a_value(project: Project) -> None:
    for record_id in ("i1", "i2"):
        project.quire("start", "invoice", "--id", record_id)
    project.work()
    assert "waits for the signal 'paid', without end" in project.quire("why", "i1").stdout

    project.quire("signal", "i1", "paid", "amount:=120.5")
    project.quire("signal", "i2", "paid", "--value", '{"amount": 7}', "--signal-id", "bank-1")
    project.quire("signal", "i2", "paid", "--value", '{"amount": 8}', "--signal-id", "bank-1")
    project.work()

    assert (project.record("i1").result, project.record("i2").result) == ("120.5", "7.0")
    assert "takes no signals: it is DONE" in project.error("signal", "i1", "paid", code=3)
    assert "not found" in project.error("signal", "nope", "paid", code=4)
    project.quire("signal", "i1", "paid", "a=1", "--value", "1", code=2)


def test_a_move_along_a_declared_way_and_beside_it(project: Project) -> None:
    project.quire("start", "board", "--id", "t")

    assert "moved t from TODO to DOING" in project.quire("move", "t", "DOING").stdout
    assert "Invalid state transition: Cannot move from DOING to REVIEW" in project.error("move", "t", "REVIEW", code=3)
    assert "quire move t DONE|TODO" in project.quire("why", "t").stdout
    project.quire("move", "t", "DONE")
    assert project.record("t").status is Status.DONE


def test_an_edit_by_fields_by_data_and_of_another_version(asking: Project) -> None:
    told = asking.quire("edit", "a", "draft=Better.", "words=3")

    assert "changed draft, words of a" in told.stdout
    assert "back: quire edit a --data" in told.stdout
    assert json.loads(asking.record("a").data)["words"] == 3
    assert "nothing was changed" in asking.quire("edit", "a", "words=3").stdout
    assert "has changed since it was read" in asking.error("edit", "a", "words=4", "--version", "1", code=3)
    asking.quire("edit", "a", "--data", '{"keyword": "new"}')
    assert json.loads(asking.record("a").data) == {"keyword": "new"}


def test_an_edit_that_the_registered_schema_does_not_take_is_refused(asking: Project) -> None:
    before = asking.contents()

    assert "words: Input should be a valid integer" in asking.error("edit", "a", "words=many", code=2)
    assert "keyword: Field required" in asking.error("edit", "a", "--data", "{}", code=2)
    assert "words: Input should be a valid integer" in asking.error("approve", "a", "--edit", "words=many", code=2)

    assert asking.contents() == before


def test_an_edit_in_an_editor(asking: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    editor = asking.write(
        "editor.py", "import sys\np = sys.argv[1]\nt = open(p).read()\nopen(p, 'w').write(t.replace('About', 'On'))\n"
    )
    import sys

    monkeypatch.setenv("VISUAL", f"{sys.executable} {editor}")
    assert "give the fields, like draft=Better, or --data" in asking.error("edit", "a", code=2)
    monkeypatch.setattr("quire.surfaces.cli.work.acts._somebody_types", lambda: True)
    asking.quire("edit", "a")
    assert json.loads(asking.record("a").data)["draft"] == "On a."

    editor.write_text("import sys\nopen(sys.argv[1], 'w').write('no json')\n")
    before = asking.record("a")
    assert "is not JSON" in asking.error("edit", "a", code=2)
    assert asking.record("a") == before


def test_two_of_three_must_agree(project: Project) -> None:
    project.write(
        "other.py",
        "from quire import Run, workflow\n@workflow\nasync def agree(run: Run) -> str:\n"
        "    return (await run.ask('Spend it?', by='editors', quorum=2)).by\n",
    )
    project.quire("worker", "other.py", "--until-idle")
    project.quire("start", "agree", "--id", "p")
    project.quire("worker", "other.py", "--until-idle")

    assert "1 of 2 have answered" in project.quire("approve", "p").stdout
    assert "has answered already" in project.error("approve", "p", code=2)
    assert "(1 of 2 have answered)" in project.quire("why", "p").stdout
    project.quire("approve", "p", "--as", "bob@x.eu")
    project.quire("worker", "other.py", "--until-idle")
    assert project.record("p").result == '"ann@x.eu, bob@x.eu"'


def test_whoever_imports_no_flows_is_held_to_the_registered_schema_too(project: Project) -> None:
    project.quire("start", "publish", "keyword=x", "--id", "a")
    project.work()
    before = project.contents()

    with pytest.raises(InputError, match="does not fit workflow 'publish': words: Input should be a valid integer"):
        project.ask(
            lambda client: client.answer(
                "a", "approve", by="ann@x.eu", edits={"words": "many"}, groups={"editors": ["ann@x.eu"]}
            )
        )
    with pytest.raises(InputError, match="does not fit workflow 'publish': keyword: Field required"):
        project.ask(lambda client: client.edit("a", {"draft": "x"}))

    assert project.contents() == before
