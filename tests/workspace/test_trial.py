"""A trial with a Google of its own, killed at each write: to its ledger and to Google."""

from __future__ import annotations

from typing import Any

import pytest

from quire import Fail, Retry, Run, Workflow
from quire.errors import DefinitionError
from quire.testing import Trial, every_kill
from quire.workspace import calendar, drive, gmail
from tests.workspace.worlds import CLIENT, START

welcome: Workflow[dict[str, Any], Any, None] = Workflow("welcome", on_failure="undo", retry=Retry(8, first="1s"))


@welcome.step
async def step(run: Run[dict[str, Any]]) -> str:
    folder = await run.once(drive.folder, "Acme")
    await run.once(gmail.send, CLIENT, "Welcome", f"Your files: {folder.url}", take_back="Never mind.")
    await run.once(calendar.event, "Kick-off", START, invite=[CLIENT])
    if run.data.get("fails"):
        raise Fail("they have gone")
    return folder.name


def left(trial: Trial[Any, Any, Any]) -> list[tuple[str, str]]:
    return sorted((one["kind"], one["summary"]) for one in trial.google.outbox)


@every_kill
async def test_killed_at_each_write_one_mail_and_one_invitation_leave() -> None:
    async with Trial(welcome, google=True) as trial:
        record = await trial.start({})
        await trial.settle()
        assert record.result == "Acme", record.question
        assert [kind for kind, _ in left(trial)] == ["invitation", "mail"], left(trial)


@every_kill
async def test_killed_at_each_write_what_was_done_is_taken_back_once() -> None:
    async with Trial(welcome, google=True) as trial:
        record = await trial.start({"fails": True})
        await trial.settle()
        await trial.advance("10m")
        assert record.status == "CANCELLED", record.question
        assert [kind for kind, _ in left(trial)] == ["invitation", "invitation", "mail", "mail"], left(trial)


async def test_a_trial_without_google_says_how_to_have_one() -> None:
    async with Trial(welcome) as trial:
        with pytest.raises(DefinitionError, match="google=True"):
            assert trial.google
