"""The quick start, done by a newcomer from the wheel alone: init, up, start, approve, kill, go on."""

from __future__ import annotations

import json
from pathlib import Path

from tests.first_hour.newcomer import Newcomer
from tests.wheels import ROOT

OWN = '''"""Invoices: mailed once, after somebody agrees, and tried again when the server is away."""

from pathlib import Path

from pydantic import BaseModel

from quire import Act, Retry, Run, Workflow, effect


class Invoice(BaseModel):
    customer: str
    cents: int = 0


class Post:
    """Stands for a mail server: it is away at the first try."""

    def send(self, key: str, text: str) -> None:
        if not Path("awake").exists():
            Path("awake").touch()
            raise ConnectionError("the server is away")
        with open("sent.txt", "a") as sent:
            sent.write(f"{text}\\n")


def make_post():
    yield Post()
    Path("closed").touch()


@effect(repeat=True)
async def mail(act: Act[Post], text: str) -> str:
    act.deps.send(act.key, text)
    return text


invoice = Workflow("invoice", data=Invoice, result=str, deps=make_post, retry=Retry(5, first="10ms"))


@invoice.step(then=["send", "drop"])
async def review(run: Run[Invoice, Post]) -> str:
    return "send" if await run.ask(f"Send {run.data.cents} to {run.data.customer}?", edit=["cents"]) else "drop"


@invoice.step
async def send(run: Run[Invoice, Post]) -> str:
    return await run.once(mail, f"{run.data.customer} owes {run.data.cents}")


@invoice.step
async def drop(run: Run[Invoice, Post]) -> str:
    return ""
'''


def test_nothing_comes_from_the_repository(newcomer: Newcomer, fresh: Path) -> None:
    told = newcomer.type("python3 -c 'import quire, hectograph; print(quire.__file__); print(hectograph.__file__)'")

    assert all(line.startswith(str(fresh)) for line in told.split())
    assert str(ROOT) not in told


def test_a_first_workflow_survives_a_kill(newcomer: Newcomer) -> None:
    newcomer.tells("quire init", "wrote quire.toml", "wrote flows.py", "next: quire up")
    newcomer.tells("quire check", "flows.py: greet is well: draft → review → deliver → drop")

    up = newcomer.beside("quire up --port 0")
    assert "worker + API + dashboard on http://127.0.0.1:" in up.until("worker + API")
    up.until("workflows: greet")
    newcomer.tells("quire start greet name=Ann --id hello --follow", "Send this?", code=7)
    newcomer.tells("quire list --needs-me", "hello", "NEEDS_APPROVAL", "Send this?")
    up.kill()
    newcomer.tells("quire why hello", "'hello' at step 'review' asks", "'Send this?'")
    newcomer.tells("quire approve hello --edit text='Good morning, Ann!'", "answered 'Send this?' of hello")

    newcomer.type("quire worker --until-idle")
    newcomer.tells("quire show hello", "DONE", "Good morning, Ann!")


def test_an_own_workflow_with_mail_approval_and_retries_survives_a_kill(newcomer: Newcomer) -> None:
    newcomer.write("flows.py", OWN)
    newcomer.tells("quire init", "left flows.py as it is")
    up = newcomer.beside("quire up --port 0")
    up.until("workflows: invoice")
    newcomer.tells("quire start invoice customer=Ann cents=300 --id i1 --follow", "Send 300 to Ann?", code=7)
    up.kill()
    newcomer.tells("quire approve i1 --edit cents=250", "answered 'Send 300 to Ann?' of i1 with 'approve'")

    newcomer.type("quire worker --until-idle")

    shown = json.loads(newcomer.type("quire show i1 --json").splitlines()[0])
    assert shown["status"] == "DONE", shown
    assert (newcomer.home / "sent.txt").read_text() == "Ann owes 250\n"
    assert (newcomer.home / "closed").exists()


def test_a_worker_that_is_told_to_end_leaves_nothing_running(newcomer: Newcomer) -> None:
    newcomer.type("quire init")
    up = newcomer.beside("quire up --port 0")
    up.until("workflows: greet")

    assert up.stop() == 0
    newcomer.tells("quire why nobody", "not found", code=4)


def test_the_demo_runs_from_the_wheel(newcomer: Newcomer) -> None:
    newcomer.tells("quire demo --articles 4", "kill -9")


def test_a_file_that_ends_in_main_runs_alone_and_is_imported_in_peace(newcomer: Newcomer) -> None:
    newcomer.write("flows.py", "import quire\n" + OWN + "\nquire.main()\n")
    alone = newcomer.beside("python3 flows.py --port 0")
    alone.until("workflows: invoice")
    assert alone.stop() == 0

    up = newcomer.beside("quire up flows.py --port 0")
    up.until("workflows: invoice")
    assert up.stop() == 0
    newcomer.tells("quire check flows.py", "invoice is well")
