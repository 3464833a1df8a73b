"""What a newcomer types wrong is refused where it is typed, changes nothing, and is said with the remedy."""

from __future__ import annotations

from tests.first_hour.newcomer import Newcomer

FLOWS = '''"""Bills: paid once somebody agrees."""

import asyncio
from datetime import date
from decimal import Decimal

from pydantic import BaseModel, Field

from quire import Act, Retry, Run, effect, workflow


class Bill(BaseModel):
    net: Decimal = Field(ge=0)
    due: date = date(2026, 1, 1)
    code: str = Field(default="AB12", pattern="^[A-Z]{2}[0-9]{2}$")


class Paid(BaseModel):
    amount: int


class Kind(str):
    """A kind of text, as libraries return it."""


@effect
def send(act: Act, to: str) -> str:
    with open("sent.txt", "a") as outbox:
        outbox.write(f"{to}\\n")
    return Kind(f"<{to}@example.org>")


@workflow
async def bill(run: Run[Bill]) -> str:
    if not await run.ask("Pay?", show=str(run.data.net), edit=["net"]):
        return "rejected"
    paid = await run.wait("paid", Paid)
    return f"{await run.once(send, 'ann')} {run.data.net} {paid.amount}"


@workflow
async def typo(run: Run[Bill]) -> bool:
    return bool(await run.ask("Pay?", by=["finanace"]))


def key_of(bill: dict) -> str:
    return bill["nope"]


@workflow(retry=Retry(2, first="10ms"))
async def broken(run: Run[Bill]) -> str:
    try:
        return key_of({})
    except KeyError as error:
        raise ValueError("the bill has no key; token sk-abcdefgh1234567890abcdefgh") from error


@workflow
async def slow(run: Run[Bill]) -> str:
    await asyncio.sleep(3)
    return "done"
'''

LINES = "net,due,code\\n1,2026-01-01,AB12\\n-3,2026-01-01,AB12\\nabc,2026-01-01,AB12\\n4,soon,AB12\\n5,2026-01-01,xx\\n"


def begun(newcomer: Newcomer) -> None:
    newcomer.write("flows.py", FLOWS)
    newcomer.write("quire.toml", 'flows = ["flows.py"]\n[groups]\nfinance = ["ann@example.org"]\n')
    newcomer.type("quire worker --until-idle")


def test_data_that_does_not_fit_starts_nothing(newcomer: Newcomer) -> None:
    begun(newcomer)
    for words, said in (
        ("net=abc", "the data does not fit workflow 'bill': net: Input should be a valid decimal"),
        ("net=-1", "net: Input should be greater than or equal to 0"),
        ("net=1 due=tomorrow", "due: Input should be a valid date"),
        ("net=1 code=zz", "code: String should match pattern"),
        ("nett=1", "nett: there is no such field; did you mean 'net'?"),
    ):
        newcomer.tells(f"quire start bill {words}", said, code=2)
    newcomer.tells("quire list", "no records")

    newcomer.type(f"printf '{LINES}' > bills.csv")
    newcomer.tells(
        "quire start bill --from bills.csv",
        "line 3: net: Input should be greater than or equal to 0",
        "line 4: net: Input should be a valid decimal",
        "line 5: due: Input should be a valid date",
        "line 6: code: String should match pattern",
        "started 1 record of bill; 4 lines were bad and left out",
        code=2,
    )


def test_an_edit_a_signal_and_an_approver_that_do_not_fit_are_refused(newcomer: Newcomer) -> None:
    begun(newcomer)
    newcomer.tells("quire check", "there is no group 'finanace'; did you mean 'finance'?", code=2)
    newcomer.type("quire start bill net=5 --id b && quire start typo net=1 --id t && quire worker --until-idle")

    newcomer.tells("quire approve b --edit net=abc", "net: Input should be a valid decimal", code=2)
    newcomer.tells("quire approve b --edit nett=1", "the answer may not edit 'nett'; it may edit net", code=2)
    newcomer.tells("quire show b", "NEEDS_APPROVAL", "Pay?")
    newcomer.tells("quire approve t --as mallory", "mallory may not answer this", code=3)
    newcomer.tells("quire why t", "nobody can answer: there is no group 'finanace'")
    newcomer.tells("quire doctor", "nobody can answer: there is no group 'finanace'", code=3)

    newcomer.type("quire approve b --edit net=7 && quire worker --until-idle")
    newcomer.tells("quire signal b pai amount:=3", "did you mean 'paid'?", code=2)
    newcomer.tells("quire signal b paid amount=x", "amount: Input should be a valid integer", code=2)
    newcomer.tells("quire show b", "WAITING")
    newcomer.type("quire signal b paid amount:=3 && quire worker --until-idle")
    newcomer.tells("quire show b", "DONE", "<ann@example.org> 7 3")  # a kind of text is kept as text
    assert (newcomer.home / "sent.txt").read_text() == "ann\n"


def test_an_error_is_shown_with_its_lines_and_its_cause_and_without_secrets(newcomer: Newcomer) -> None:
    begun(newcomer)
    newcomer.type("quire start broken net=1 --id x")
    said = newcomer.tells("quire worker --until-idle", "try 1 of step 'broken' failed", "flows.py:55 in broken")
    assert "sk-abcdefgh" not in said
    shown = newcomer.tells("quire show x", "line 47, in key_of", 'return bill["nope"]', "KeyError: 'nope'")
    assert "the direct cause" in shown and "sk-abcdefgh" not in shown


def test_a_step_that_is_too_long_for_a_slice_is_named_with_what_fits(newcomer: Newcomer) -> None:
    begun(newcomer)
    newcomer.type("quire start slow net=1 --id s")
    newcomer.tells("quire tick --budget 1500ms", "is too short for it", "quire tick --budget")
    newcomer.tells("quire tick --budget 1500ms", "it does not fit into this slice and is not begun")
    newcomer.tells("quire why s", "does not fit into a slice of 1.5 s")
    newcomer.tells("quire doctor", "does not fit into a slice of 1.5 s", code=3)
    newcomer.tells("quire tick --budget 30s", "1 record finished")


def test_a_halt_holds_until_a_person_resumes(newcomer: Newcomer) -> None:
    begun(newcomer)
    newcomer.type("quire start bill net=5 --id b && quire worker --until-idle")
    newcomer.tells("quire halt --reason 'wrong prices'", "halted")
    newcomer.type("quire worker --until-idle")
    newcomer.tells("quire show b", "CANCELLED")
    newcomer.type("quire resume --cancelled && quire worker --until-idle")
    newcomer.tells("quire show b", "NEEDS_APPROVAL", "Pay?")
