"""A worker is killed over a mail, with the defaults of `@effect`: nobody waits for who is known to be dead."""

from __future__ import annotations

import time

import pytest

from tests.first_hour.newcomer import Newcomer

FLOWS = '''"""Mails: sent once, also if the worker is killed over one."""

import os
import signal
from pathlib import Path

from pydantic import BaseModel

from quire import Act, NotDone, Run, effect, workflow

OUTBOX = Path("outbox.txt")


class Mail(BaseModel):
    to: str


def killed_once() -> None:
    if not Path("killed").exists():
        Path("killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)


async def was_sent(act: Act, to: str) -> str | NotDone:
    with open("probes.txt", "a") as probes:
        probes.write("probed\\n")
    return to if OUTBOX.exists() and act.key in OUTBOX.read_text() else NotDone()


@effect(probe=was_sent)
async def send(act: Act, to: str) -> str:
    # before
    with OUTBOX.open("a") as outbox:
        outbox.write(f"{act.key} {to}\\n")
    # after
    return to


@workflow
async def mail(run: Run[Mail]) -> str:
    return await run.once(send, run.data.to)
'''


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_mail_over_which_the_worker_was_killed_is_settled_soon(newcomer: Newcomer, moment: str) -> None:
    flows = FLOWS.replace(f"# {moment}", "killed_once()")
    if moment == "before":  # it is not there: that it comes to light late is waited for, as long as the effect says
        flows = flows.replace("probe=was_sent", 'probe=was_sent, settle="2s"')
    newcomer.write("flows.py", flows)
    newcomer.type("quire init && quire start mail to=ann@x.eu --id m1")
    newcomer.type("quire worker --until-idle", code=-9)
    newcomer.tells("quire show m1", "RUNNING")

    begun = time.monotonic()
    newcomer.beside("quire worker")
    newcomer.tells("quire start mail to=ann@x.eu --id m1 --follow", "DONE")

    assert time.monotonic() - begun < 60  # with the old defaults it was 89 s
    assert len((newcomer.home / "outbox.txt").read_text().splitlines()) == 1
    probes = (newcomer.home / "probes.txt").read_text().count("probed")
    assert probes == (2 if moment == "before" else 1)
