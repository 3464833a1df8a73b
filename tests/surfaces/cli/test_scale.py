"""A hundred thousand records: looking stays quick, and so does starting them."""

from __future__ import annotations

import time

import pytest

from tests.surfaces.cli.conftest import Project

COUNT = 100_000


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_hundred_thousand_records(project: Project) -> None:
    lines = (f'kw_{number:06},"keyword {number}, with a comma"\n' for number in range(COUNT))
    project.write("k.csv", "record_id,keyword\n" + "".join(lines))

    began = time.process_time()
    told = project.json("start", "publish", "--from", "k.csv")
    took = time.process_time() - began

    assert told == [{"started": COUNT, "again": 0, "bad": 0}]
    # Processor time: the wall clock of a machine that does other things as well says nothing of this command.
    assert took < 20
    for words in (
        (),
        ("list",),
        ("list", "--needs-me"),
        ("list", "--status", "ERROR"),
        ("show", "kw_050000"),
        ("why", "kw_050000"),
        ("graph", "publish"),
    ):
        began = time.process_time()
        project.quire(*words)
        assert time.process_time() - began < 1, words
    began = time.process_time()
    project.quire("verify")
    assert time.process_time() - began < 20
