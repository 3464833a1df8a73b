"""Flow files: found, loaded, and told of in one sentence when they are wrong."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from quire.surfaces.cli.flows import load_file
from tests.surfaces.cli.conftest import FLOWS, Project


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("def broken(:\n", "line 1: invalid syntax"),
        ("x = 1\nimport nothing_of_this_name\n", "line 2: No module named 'nothing_of_this_name'; is it installed"),
        ("x = 1\n\ny = x / 0\n", "line 3: ZeroDivisionError: division by zero"),
        ("x = 1\n", "there is no workflow in"),
        ("raise SystemExit(3)\n", "ends the process when it is loaded"),
        ("import quire\nquire.Workflow('a/b')\n", "line 2: 'a/b' is not a name for a workflow"),
        ("import quire\nw = quire.Workflow('w', cap=0)\n", "line 2: the cap of workflow 'w' is 0"),
        (
            "import quire\nw = quire.Workflow('w', data=5)\nw.state('a')\n",
            "the data of workflow 'w' cannot be of type 5",
        ),
        ("import quire\nw = quire.Workflow('w')\n", "workflow 'w' cannot run: it has no steps"),
        ("import quire\nw = quire.Workflow('w')\nw.state('a', then='b')\n", "goes to 'b', which is not a step"),
    ],
)
def test_a_wrong_flow_file_is_told_in_one_sentence(empty: Project, text: str, told: str) -> None:
    empty.write("flows.py", text)

    assert told in empty.error("worker", "flows.py", "--until-idle", code=2)
    assert told.removeprefix("workflow 'w' cannot run: ") in empty.quire("check", "flows.py", code=2).stdout


def test_a_file_that_is_not_there_and_no_file_at_all(empty: Project) -> None:
    assert "there is no flow file" in empty.error("worker", "nope.py", code=4)
    assert "no workflows to run" in empty.error("up", code=2)
    assert "no workflows to run" in empty.error("up", "--reload", code=2)
    assert "no workflows to run" in empty.error("check", code=2)


def test_a_file_that_has_the_name_of_a_module(empty: Project) -> None:
    empty.write("json.py", FLOWS)

    assert "has the name of another module, 'json'" in empty.error("worker", "json.py", code=2)


def test_a_file_that_is_no_module(empty: Project) -> None:
    empty.write("my-flows.py", FLOWS)

    assert "is not a Python module" in empty.error("worker", "my-flows.py", code=2)


def test_flows_import_what_lies_beside_them(empty: Project) -> None:
    (empty.path / "sub").mkdir()
    empty.write("sub/helper_of_flows.py", "NAME = 'helped'\n")
    empty.write(
        "sub/flows.py", "import quire, helper_of_flows\nw = quire.Workflow(helper_of_flows.NAME)\nw.state('a')\n"
    )

    assert "helped is well" in empty.quire("check", "sub/flows.py").stdout


def test_two_files_with_a_workflow_of_one_name(empty: Project) -> None:
    for name in ("one.py", "two.py"):
        empty.write(name, "import quire\nw = quire.Workflow('w')\nw.state('a')\n")

    assert "has a workflow of the same name" in empty.quire("check", "one.py", "two.py", code=2).stdout
    assert "two workflows are named 'w'" in empty.error("worker", "one.py", "two.py", "--until-idle", code=2)


def test_two_workflows_of_one_name_in_one_file(empty: Project) -> None:
    one = "quire.Workflow('w')\n{0}.state('a')\n"
    empty.write("flows.py", f"import quire\nv = {one.format('v')}w = {one.format('w')}")

    assert "flows.py' has a workflow of the same name" in empty.quire("check", "flows.py", code=2).stdout
    assert "two workflows are named 'w'" in empty.error("worker", "flows.py", "--until-idle", code=2)


def test_a_workflow_that_two_files_share_is_one(empty: Project) -> None:
    empty.write("one_of_two.py", "import quire\nw = quire.Workflow('w')\nw.state('a')\n")
    empty.write("two_of_two.py", "from one_of_two import w\n")

    empty.quire("check", "one_of_two.py", "two_of_two.py")
    empty.quire("worker", "one_of_two.py", "two_of_two.py", "--until-idle")


def test_check_names_what_is_well(project: Project) -> None:
    rows = {row["workflow"]: row["steps"] for row in project.json("check")}

    assert rows["publish"] == ["draft", "review", "post", "archive"]
    assert set(rows) == {"publish", "board", "invoice"}


@pytest.mark.parametrize(
    ("deps", "told"),
    [
        ("flows", "names no function"),
        ("nowhere:make", "No module named 'nowhere'"),
        ("flows:nothing", "there is no 'nothing' in 'flows'"),
        ("flows:bad", "ValueError: no key"),
    ],
)
def test_wrong_dependencies_are_told(project: Project, deps: str, told: str) -> None:
    project.write("flows.py", FLOWS + "\ndef bad():\n    raise ValueError('no key')\n")
    project.write("quire.toml", f'flows = ["flows.py"]\nledger = "sqlite:///ledger.db"\ndeps = "{deps}"\n')
    sys.modules.pop("flows", None)

    assert told in project.error("worker", "--until-idle", code=2)
    # Whether it works is seen when it is called, and a check calls nothing.
    assert deps == "flows:bad" or told in project.quire("check", code=2).stdout


def test_dependencies_reach_the_steps(empty: Project) -> None:
    empty.write(
        "flows.py",
        """
from contextlib import asynccontextmanager
from quire import Run, workflow

@asynccontextmanager
async def make():
    yield {"word": "given"}

@workflow
async def w(run: Run) -> str:
    return run.deps["word"]
""",
    )
    empty.write("quire.toml", 'flows = ["flows.py"]\nledger = "ledger.db"\ndeps = "flows:make"\n')
    empty.work()
    empty.quire("start", "w", "--id", "a")
    empty.work()

    assert empty.record("a").result == '"given"'


def test_a_flow_file_is_read_as_it_is_also_if_it_changed_within_the_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    file = tmp_path / "quickly_edited.py"
    seen = []
    for name in ("first", "other"):
        file.write_text(f"from quire import Workflow\nmade = Workflow({name!r})\n")
        os.utime(file, (1_000_000_000, 1_000_000_000))
        seen += [made.name for made in load_file(str(file))]
        del sys.modules["quickly_edited"]

    assert seen == ["first", "other"]


NEEDY = """
from quire import Run, workflow

class Site:
    def __enter__(self):
        print("opened")
        return self

    def __exit__(self, *exc):
        print("closed")

def make_site():
    return Site()

@workflow{deps}
async def article(run: Run[dict, Site]) -> str:
    return type(run.deps).__name__
"""


def test_a_workflow_brings_its_own_dependencies(empty: Project) -> None:
    empty.write("flows.py", NEEDY.replace("{deps}", "(deps=make_site)"))
    empty.write("quire.toml", 'flows = ["flows.py"]\nledger = "ledger.db"\n')
    empty.quire("check")
    empty.work()
    empty.quire("start", "article", "--id", "a")
    told = empty.quire("worker", "--until-idle").output

    assert empty.record("a").result == '"Site"'
    assert told.index("opened") < told.index("DONE") < told.index("closed")


@pytest.mark.parametrize(
    "words", [("check",), ("worker", "--until-idle"), ("up", "--port", "0"), ("tick",)], ids=lambda words: words[0]
)
def test_a_workflow_without_its_dependencies_is_refused_by_name(empty: Project, words: tuple[str, ...]) -> None:
    empty.write("flows.py", NEEDY.replace("{deps}", ""))

    told = empty.quire(*words, "flows.py", code=2)

    assert "workflow 'article' works with a Site, and nothing makes one" in told.output
    assert "Workflow('article', deps=make_deps)" in told.output
