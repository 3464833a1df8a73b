"""Retry, cancel, undo, pause, resume, halt."""

from __future__ import annotations

import pytest

from quire.model.record import Status
from tests.surfaces.cli.conftest import Project


@pytest.fixture
def failed(project: Project) -> Project:
    """Three records in ERROR, one DONE."""
    for record_id, keyword in (("e1", "broken"), ("e2", "broken"), ("e3", "broken"), ("d", "fine")):
        project.quire("start", "publish", f"keyword={keyword}", "--id", record_id)
    project.work()
    for record_id in ("e1", "e2", "e3", "d"):
        project.quire("approve", record_id)
    project.work()
    return project


def test_one_record_is_retried_where_it_stopped(failed: Project) -> None:
    told = failed.quire("retry", "e1")

    assert "e1 was ERROR at post; it is tried again at post" in told.stdout
    assert "back: quire cancel e1" in told.stdout
    assert failed.record("e1").status is Status.PENDING


def test_all_of_a_filter_are_retried(failed: Project) -> None:
    failed.quire("edit", "e1", "keyword=mended", "hot=yes")

    assert "3 records would be retried" in failed.quire("retry", "--status", "ERROR", "--dry-run").stdout
    assert failed.json("retry", "--status", "error", "--where", "keyword=mended")[0]["retried"] == 1
    assert failed.record("e1").status is Status.PENDING
    assert (
        failed.json("retry", "--workflow", "publish", "--error", "the site is gone", "--at", "post")[0]["retried"] == 2
    )
    assert "there is nothing to retry" in failed.quire("retry", "--status", "ERROR").stdout
    assert "there is no workflow 'publsh'" in failed.error("retry", "-w", "publsh", code=4)
    assert "has no step 'pots'" in failed.error("retry", "-w", "publish", "--at", "pots", code=4)
    failed.work()
    assert failed.record("e1").status is Status.DONE
    assert failed.record("e2").status is Status.ERROR


def test_a_retry_that_cannot_be(failed: Project) -> None:
    before = failed.contents()

    assert "cannot retry 'd': it is DONE" in failed.error("retry", "d", code=3)
    assert "not found" in failed.error("retry", "nope", code=4)
    assert "has no step 'psot'; did you mean 'post'?" in failed.error("retry", "e1", "--from", "psot", code=4)
    assert "only ERROR and CANCELLED are retried, not DONE" in failed.error("retry", "--status", "DONE", code=2)
    assert "not a condition" in failed.error("retry", "--where", "nothing", code=2)
    for words in ((), ("e1", "--status", "ERROR"), ("--status", "ERROR", "--from", "post"), ("--status", "BROKEN")):
        failed.quire("retry", *words, code=2)

    assert failed.contents() == before


def test_a_rewind_enters_a_step_anew(failed: Project) -> None:
    failed.quire("retry", "e1", "--from", "draft")

    assert failed.record("e1").step == "draft"
    assert failed.record("e1").visit > 3


def test_cancel_and_its_way_back(project: Project) -> None:
    project.quire("start", "publish", "keyword=x", "--id", "a")

    assert "back: quire retry a" in project.quire("cancel", "a", "--reason", "wrong client").stdout
    assert "(wrong client)" in project.quire("why", "a").stdout
    assert "cannot cancel 'a': it is CANCELLED" in project.error("cancel", "a", code=3)
    project.quire("retry", "a")
    assert project.record("a").status is Status.PENDING


def test_undo_of_one_that_is_done(failed: Project) -> None:
    told = failed.quire("undo", "d")

    assert "d is cancelled as soon as a worker has undone what it did" in told.stdout
    assert "its effects are to be undone" in failed.quire("why", "d").stdout
    failed.work()
    assert failed.record("d").status is Status.CANCELLED
    assert "what it did was undone" in failed.quire("why", "d").stdout
    assert "it was undone already" in failed.error("undo", "d", code=3)
    assert "effect put_online: undone" in failed.quire("logs", "d").stdout
    failed.quire("verify")


def test_pause_and_resume_of_one_workflow(project: Project) -> None:
    project.quire("start", "publish", "keyword=x", "--id", "a")

    told = project.quire("pause", "publish", "--reason", "provider is down")
    assert "paused workflow 'publish'" in told.stdout
    assert "back: quire resume publish" in told.stdout
    project.work()
    assert project.record("a").status is Status.PENDING
    why = project.quire("why", "a").stdout
    assert "workflow 'publish' is paused by ann@x.eu" in why
    assert "(provider is down)" in why
    project.quire("resume", "publish")
    project.work()
    assert project.record("a").status is Status.NEEDS_APPROVAL
    assert "there is no workflow 'nope'" in project.error("pause", "nope", code=4)


def test_halt_and_what_it_cancelled(project: Project) -> None:
    project.quire("start", "publish", "keyword=x", "--id", "a")
    project.work()
    project.quire("start", "publish", "keyword=x", "--id", "p")

    [row] = project.json("halt", "--wait", "--reason", "wrong prices")
    assert row["quiet"] is True
    assert row["halted"] == ["*"]
    assert project.record("a").status is Status.CANCELLED
    assert "was cancelled by a halt by ann@x.eu" in project.quire("why", "a").stdout
    assert "the ledger is halted" in project.quire().stdout
    assert "  next: quire resume" in project.quire().stdout

    project.quire("cancel", "p")  # for good: no resume brings it back
    assert "1 record that a halt cancelled stay so" in project.quire("resume").stdout
    assert "it holds 1 record, 1 of which asks a person" in project.quire("halt").stdout
    assert "what the halt cancelled goes on: 1 record" in project.quire("resume", "--cancelled").stdout
    project.quire("start", "publish", "keyword=x", "--id", "q")
    project.work()
    assert project.record("a").status is Status.NEEDS_APPROVAL
    assert project.record("p").status is Status.CANCELLED
    assert project.record("q").status is Status.NEEDS_APPROVAL


def test_a_halt_that_is_not_quiet_in_time_says_so(project: Project) -> None:
    assert "not a span of time" in project.error("halt", "--wait", "--timeout", "ever", code=2)
    assert project.json()[0]["halted"] == []


def test_a_file_named_stop_halts_before_a_worker_claims_and_is_taken_away_before_a_resume(project: Project) -> None:
    project.write("quire.toml", (project.path / "quire.toml").read_text().replace("who =", 'folder = "."\nwho ='))
    project.quire("start", "publish", "keyword=x", "--id", "a")
    stop = project.write("STOP", "")

    project.work()

    assert project.record("a").status is Status.CANCELLED
    assert "file STOP in the folder" in project.error("start", "publish", "keyword=y", code=3)
    assert "take it away first" in project.error("resume", "--cancelled", code=3)
    stop.unlink()
    project.quire("resume", "--cancelled")
    project.work()
    assert project.record("a").status is Status.NEEDS_APPROVAL
