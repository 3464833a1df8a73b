"""A question that nobody can answer: it fails closed, and everything that looks says why."""

from __future__ import annotations

import pytest

from quire.errors import IllegalMove
from quire.model.record import Status
from tests.surfaces.cli.conftest import Project

FLOWS = """
from quire import Run, workflow


@workflow
async def pay(run: Run) -> str:
    return (await run.ask("Pay?", by=["finanace"])).choice


@workflow
async def board(run: Run) -> str:
    return (await run.ask("Go?", by=["ann", "bob", "cy"], quorum=2)).choice
"""
TOML = """flows = ["flows.py"]
ledger = "sqlite:///ledger.db"
who = "mallory"

[groups]
finance = ["ann@x.eu"]
"""


@pytest.fixture
def asked(empty: Project) -> Project:
    empty.write("flows.py", FLOWS)
    empty.write("quire.toml", TOML)
    empty.work()
    empty.quire("start", "pay", "--id", "p")
    empty.quire("start", "board", "--id", "b")
    empty.work()
    return empty


NOBODY = "nobody can answer: there is no group 'finanace'; did you mean 'finance'?"


def test_a_mistyped_group_is_nobody_and_everything_that_looks_says_so(asked: Project) -> None:
    assert NOBODY in asked.error("approve", "p", code=3)
    assert NOBODY in asked.quire("why", "p").output
    assert f"1 record asks, but {NOBODY}" in asked.quire("doctor", code=3).output
    assert f"step 'pay' asks 'finanace': {NOBODY}" in asked.quire("check", code=2).output
    assert asked.record("p").status is Status.NEEDS_APPROVAL


def test_whoever_is_not_named_has_no_vote(asked: Project) -> None:
    assert "mallory may not answer this; it is for ann, bob, cy" in asked.error("approve", "b", code=3)
    with pytest.raises(IllegalMove, match="somebody without a name may not answer"):
        asked.ask(lambda client: client.answer("b", "approve", by=""))
    asked.ask(lambda client: client.answer("b", "approve", by="ann"))
    assert asked.record("b").status is Status.NEEDS_APPROVAL
    asked.ask(lambda client: client.answer("b", "approve", by="cy"))
    asked.work()
    assert asked.record("b").result == '"approve"'


def test_named_groups_and_their_members_are_well(asked: Project) -> None:
    asked.write("quire.toml", TOML + 'finanace = ["bo@x.eu"]\nboard = ["ann", "bob", "cy"]\n')

    assert "is well" in asked.quire("check").output
    assert "nobody can answer" not in asked.quire("doctor", code=None).output
    asked.quire("approve", "p", code=3)
    asked.ask(lambda client: client.answer("p", "approve", by="bo@x.eu", groups={"finanace": ["bo@x.eu"]}))
