"""What does not fit a workflow's model is refused at every door, with the model's own sentence, and changes nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import pytest
from click.testing import CliRunner
from pydantic import BaseModel, ConfigDict, Field

from quire import Run, Workflow
from quire.client.client import Client
from quire.errors import InputError
from quire.model.codec import codec
from quire.model.fit import Fit
from quire.model.record import Record, Status
from quire.model.wait import load_waits
from quire.surfaces.chat.mcp.server import called
from quire.surfaces.chat.mcp.tools import Desk
from quire.surfaces.cli import cli
from quire.surfaces.server.auth.tokens import Role
from quire.surfaces.server.hooks import sign
from tests.surfaces.server.conftest import calling


class Line(BaseModel):
    text: str = ""
    count: int = 1


class Bill(BaseModel):
    net: Annotated[Decimal, Field(ge=0, decimal_places=2)]
    due: date
    iban: Annotated[str, Field(pattern="^[A-Z]{2}[0-9]+$")] = "DE1"
    share: Annotated[float, Field(gt=0, le=1)] = 1.0
    lines: list[Line] = []
    paid: Decimal | None = None


def make_bill() -> Workflow[Bill, str, None]:
    bill: Workflow[Bill, str, None] = Workflow("bill", data=Bill, result=str)

    @bill.step
    async def check(run: Run[Bill]) -> str:
        answer = await run.ask("Pay it?", show=run.data.net, edit=["net", "due"])
        return f"{answer.choice} {run.data.net}"

    return bill


GOOD = {"net": "12.50", "due": "2026-01-05"}
#: What is given wrong, beside what is right, and the sentence.
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "a word for a Decimal": ({"net": "abc"}, "net: Input should be a valid decimal"),
    "below the least": ({"net": "-1"}, "net: Input should be greater than or equal to 0"),
    "too many places": ({"net": "1.234"}, "net: Decimal input should have no more than 2 decimal places"),
    "a word for a date": ({"due": "tomorrow"}, "due: Input should be a valid date"),
    "against the pattern": ({"iban": "12"}, "iban: String should match pattern"),
    "above the most": ({"share": 2}, "share: Input should be less than or equal to 1"),
    "within a list": ({"lines": [{"count": "x"}]}, "lines.0.count: Input should be a valid integer"),
    "an optional Decimal": ({"paid": "soon"}, "paid: Input should be a valid decimal"),
    "an unknown field": ({"nett": "3"}, "nett: there is no such field; did you mean 'net'?"),
    "an unknown field within": (
        {"lines": [{"coumt": 1}]},
        "lines.0.coumt: there is no such field; did you mean 'count'?",
    ),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("knows", [True, False])
def test_the_model_and_its_registered_schema_say_the_same(case: str, knows: bool) -> None:
    more, sentence = BAD[case]
    made = codec(Bill)
    fit = Fit(json.loads(json.dumps(made.schema)), "workflow 'bill'", made if knows else None)

    with pytest.raises(InputError) as caught:
        fit.taken(GOOD | more, "the data")

    assert str(caught.value).startswith(f"the data does not fit workflow 'bill': {sentence}")


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    name: str


class Named(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    full_name: str = Field(alias="fullName")


@pytest.mark.parametrize("knows", [True, False])
def test_fields_that_the_model_allows_are_taken(knows: bool) -> None:
    opened, named, table = codec(Open), codec(Named), codec(dict[str, int])
    fit = Fit(opened.schema, "", opened if knows else None)
    assert fit.taken({"name": "a", "more": 1}, "") == '{"name":"a","more":1}'
    fit = Fit(named.schema, "", named if knows else None)
    assert fit.taken({"fullName": "a"}, "") == fit.taken({"full_name": "a"}, "") == '{"full_name":"a"}'
    assert Fit(table.schema, "", table if knows else None).taken({"any": 1}, "") == '{"any":1}'


# -- the doors -------------------------------------------------------------------------------------------------


Door = Callable[[Client, dict[str, Any], Path], Awaitable[str]]


async def by_python(client: Client, data: dict[str, Any], path: Path) -> str:
    with pytest.raises(InputError) as caught:
        await client.start("bill", data)
    return str(caught.value)


async def by_many(client: Client, data: dict[str, Any], path: Path) -> str:
    with pytest.raises(InputError) as caught:
        await client.start_many("bill", [GOOD, data])
    return str(caught.value)


async def by_api(client: Client, data: dict[str, Any], path: Path) -> str:
    async with calling(client) as http:
        answer = await http.post("/api/records", json={"workflow": "bill", "data": data})
    assert answer.status_code == 400, answer.text
    return str(answer.json()["message"])


async def by_hook(client: Client, data: dict[str, Any], path: Path) -> str:
    async with calling(client) as http:
        secret = (await http.put("/api/hooks/shop", json={"workflow": "bill"})).json()["secret"]
        body, time = json.dumps(data).encode(), str(int(client.clock.now()))
        headers = {"X-Quire-Time": time, "X-Quire-Nonce": "nonce-0001", "Content-Type": "application/json"}
        headers["X-Quire-Signature"] = sign(secret, time, "nonce-0001", body)
        answer = await http.post("/hooks/shop", content=body, headers=headers)
    assert answer.status_code == 400, answer.text
    return str(answer.json()["message"])


async def by_chat(client: Client, data: dict[str, Any], path: Path) -> str:
    with pytest.raises(InputError) as caught:
        await called(Desk(client, Role.OPERATOR), "start", {"workflow": "bill", "data": data})
    return str(caught.value)


DOORS: dict[str, Door] = {
    "Python": by_python,
    "many at once": by_many,
    "the API": by_api,
    "a hook": by_hook,
    "a chat": by_chat,
}


async def registered(path: Path) -> str:
    """The address of a ledger in which a worker has registered the workflow."""
    url = f"sqlite:///{path}/ledger.db"
    async with Client(url, workflows=[make_bill()]) as client:
        await client.work()
    return url


async def records_of(url: str) -> Sequence[Record]:
    """The records, after a worker was there."""
    async with Client(url, workflows=[make_bill()]) as client:
        await client.work()
        return await client.find()


async def asking(url: str) -> None:
    """A record that asks."""
    async with Client(url, workflows=[make_bill()], who="ann@x.eu") as client:
        await client.start("bill", GOOD, id="b")
        await client.work()


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("knows", [True, False])
async def test_no_door_lets_in_what_does_not_fit(door: str, knows: bool, tmp_path: Path) -> None:
    url = await registered(tmp_path)
    async with Client(url, workflows=[make_bill()] if knows else []) as client:
        for more, sentence in BAD.values():
            assert f"does not fit workflow 'bill': {sentence}" in await DOORS[door](client, GOOD | more, tmp_path)
        assert await client.find() == []


def test_the_command_line_lets_nothing_in_either(tmp_path: Path) -> None:
    url = asyncio.run(registered(tmp_path))
    for word, sentence in {
        "net=abc": "net: Input should be a valid decimal",
        "net=-1": "net: Input should be greater than or equal to 0",
        "due=tomorrow": "due: Input should be a valid date",
        "nett=3": "nett: there is no such field; did you mean 'net'?",
    }.items():
        words = ["start", "bill", "--ledger", url, "--data", json.dumps(GOOD), word]
        result = CliRunner().invoke(cli, words)
        assert (result.exit_code, result.stdout) == (2, "")
        assert f"does not fit workflow 'bill': {sentence}" in result.stderr
    assert asyncio.run(records_of(url)) == []


def test_a_csv_names_each_bad_line_with_its_field(tmp_path: Path) -> None:
    url = asyncio.run(registered(tmp_path))
    file = tmp_path / "bills.csv"
    file.write_text(
        "record_id,net,due,iban\n"
        "good,12.50,2026-01-05,DE1\n"
        "word,much,2026-01-05,DE1\n"
        "less,-3,2026-01-05,DE1\n"
        "when,3,soon,DE1\n"
        "iban,3,2026-01-05,1\n"
    )
    result = CliRunner().invoke(cli, ["start", "bill", "--ledger", url, "--from", str(file)])

    assert result.exit_code == 2
    assert [line.split(",")[0] for line in result.stdout.splitlines()[:5]] == [
        "line 3: net: Input should be a valid decimal",
        "line 4: net: Input should be greater than or equal to 0",
        "line 5: due: Input should be a valid date or datetime",
        "line 6: iban: String should match pattern '^[A-Z]{2}[0-9]+$'",
        "started 1 record of bill; 4 lines were bad and left out",
    ]
    [record] = asyncio.run(records_of(url))
    assert (record.record_id, record.status) == ("good", Status.NEEDS_APPROVAL)


def test_a_csv_with_a_column_that_the_workflow_does_not_have_starts_nothing(tmp_path: Path) -> None:
    url = asyncio.run(registered(tmp_path))
    file = tmp_path / "bills.csv"
    file.write_text("record_id,nett,due\ngood,12.50,2026-01-05\n")

    result = CliRunner().invoke(cli, ["start", "bill", "--ledger", url, "--from", str(file)])

    assert (result.exit_code, result.stdout) == (2, "")
    assert "line 1: nett: there is no such field; did you mean 'net'? (nothing was started)" in result.stderr


# -- edits of an answer ----------------------------------------------------------------------------------------


async def approve_by_python(client: Client, edits: dict[str, Any]) -> str:
    with pytest.raises(InputError) as caught:
        await client.answer("b", "approve", edits=edits)
    return str(caught.value)


async def approve_by_api(client: Client, edits: dict[str, Any]) -> str:
    async with calling(client) as http:
        answer = await http.post("/api/records/b/answer", json={"choice": "approve", "edits": edits})
    assert answer.status_code == 400, answer.text
    return str(answer.json()["message"])


async def approve_by_link(client: Client, edits: dict[str, Any]) -> str:
    async with calling(client) as http:
        link = (await http.post("/api/records/b/link", json={"person": "ann@x.eu"})).json()["url"].partition("#")[2]
        answer = await http.post("/api/link/answer", json={"link": link, "choice": "approve", "edits": edits})
    assert answer.status_code == 400, answer.text
    return str(answer.json()["message"])


async def approve_by_chat(client: Client, edits: dict[str, Any]) -> str:
    [wait] = load_waits((await client.get("b")).waits)
    given = {"record_id": "b", "choice": "approve", "edits": edits, "hash": (wait.about or {})["hash"]}
    with pytest.raises(InputError) as caught:
        await called(Desk(client, Role.OPERATOR), "approve", given)
    return str(caught.value)


APPROVING = {
    "Python": approve_by_python,
    "the API": approve_by_api,
    "a link": approve_by_link,
    "a chat": approve_by_chat,
}


@pytest.mark.parametrize("door", APPROVING)
@pytest.mark.parametrize("knows", [True, False])
async def test_an_edit_that_does_not_fit_is_refused_and_the_question_stays_open(
    door: str, knows: bool, tmp_path: Path
) -> None:
    url = await registered(tmp_path)
    await asking(url)
    async with Client(url, workflows=[make_bill()] if knows else [], who="ann@x.eu") as client:
        before = await client.events("b")
        for value, sentence in (("abc", "valid decimal"), ("-1", "greater than or equal to 0")):
            told = await APPROVING[door](client, {"net": value})
            assert told.startswith("the data of 'b' does not fit workflow 'bill': net: Input should be ")
            assert sentence in told
        assert (await client.get("b")).status is Status.NEEDS_APPROVAL
        assert await client.events("b") == before
    async with Client(url, workflows=[make_bill()]) as client:
        await client.answer("b", "approve", edits={"net": "3"})
        await client.work()
        assert (await client.get("b")).result == '"approve 3"'


def test_the_command_line_refuses_such_an_edit_too(tmp_path: Path) -> None:
    url = asyncio.run(registered(tmp_path))
    asyncio.run(asking(url))

    result = CliRunner().invoke(cli, ["approve", "b", "--ledger", url, "--edit", "net=abc"])

    assert (result.exit_code, result.stdout) == (2, "")
    assert "the data of 'b' does not fit workflow 'bill': net: Input should be a valid decimal" in result.stderr
    [record] = asyncio.run(records_of(url))
    assert record.status is Status.NEEDS_APPROVAL


async def test_a_field_that_a_record_had_before_may_stay_when_it_is_edited(tmp_path: Path) -> None:
    url = await registered(tmp_path)
    older: Workflow[dict[str, Any], str, None] = Workflow("bill")

    @older.step
    async def check(run: Run[dict[str, Any]]) -> str:
        await run.ask("Pay it?")
        return ""

    async with Client(url, workflows=[older]) as client:
        await client.start("bill", GOOD | {"memo": "of before"}, id="b")
        await client.work()
    async with Client(url, workflows=[make_bill()]) as client:
        await client.edit("b", GOOD | {"memo": "of before", "net": "3"})
        with pytest.raises(InputError, match="memos: there is no such field"):
            await client.edit("b", GOOD | {"memos": "new"})
