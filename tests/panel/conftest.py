"""One emulator for the session, a book and a ledger for each test, and a person at the sheet."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from hectograph import Emulator
from quire import Fail, Inbox, Retry, Run, Workflow, workflow
from quire.client.client import Client
from quire.google.drive import SPREADSHEET
from quire.surfaces.panel import Panel
from quire.testing import ToldClock


@pytest.fixture(scope="session")
def running_emulator() -> Iterator[Emulator]:
    with Emulator() as running:
        yield running


@pytest.fixture(scope="session", autouse=True)
def emulator_before_tests(running_emulator: Emulator) -> None:
    """Start it before the first test: nothing that a test starts may outlive it."""


class Sheet:
    """A book, as a person and as a test see it."""

    def __init__(self, emulator: Emulator) -> None:
        self.emulator = emulator
        made = self("POST", "/drive/v3/files", {"name": "Panel", "mimeType": SPREADSHEET})
        self.book_id: str = made["id"]
        self.url = f"sheets://{self.book_id}?endpoint={emulator.url}"

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.emulator.call(method, path, body)
        assert answer.status < 300, answer.body
        return json.loads(answer.body) if answer.body else None

    def person(self, do: str, sheet: str = "state_table", **given: Any) -> Any:
        return self("POST", "/emulator/person", {"book": self.book_id, "do": do, "sheet": sheet, **given})

    def fault(self, fault: str, **given: Any) -> None:
        self("POST", "/emulator/faults", {"fault": fault, "book": self.book_id, **given})

    def calm(self) -> None:
        self("DELETE", "/emulator/faults")

    def counters(self) -> dict[str, int]:
        """Calls by Google's names for them."""
        found: dict[str, int] = self("GET", "/emulator/counters")["counters"]
        return {name.removeprefix("kind "): count for name, count in found.items() if name.startswith("kind sheets.")}

    def forget_counters(self) -> None:
        self("DELETE", "/emulator/counters")

    def grid(self, tab: str = "state_table", render: str = "FORMATTED_VALUE") -> list[list[Any]]:
        path = f"/v4/spreadsheets/{self.book_id}/values/{tab.replace(' ', '%20')}?valueRenderOption={render}"
        found: list[list[Any]] = self("GET", path).get("values", [])
        return found

    def rows(self, tab: str = "state_table") -> list[dict[str, Any]]:
        """The filled rows below the header, by its names, with the row's number as people count."""
        grid = self.grid(tab)
        header = grid[0]
        found = []
        for number, cells in enumerate(grid[1:], 2):
            if any(value != "" for value in cells):
                padded = [*cells, *[""] * (len(header) - len(cells))]
                found.append({"#": number, **dict(zip(header, padded, strict=False))})
        return found

    def row(self, record_id: str, tab: str = "state_table") -> dict[str, Any]:
        found = [row for row in self.rows(tab) if row["record_id"] == record_id]
        assert found, f"{record_id} has no row in {self.grid(tab)}"
        return found[0]

    def column(self, name: str, tab: str = "state_table") -> str:
        return "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[self.grid(tab)[0].index(name)]

    def type(self, record_id: str, column: str, text: str, tab: str = "state_table") -> None:
        """Type into the row of a record."""
        self.person("edit", tab, cell=f"{self.column(column, tab)}{self.row(record_id, tab)['#']}", text=text)

    def meta(self, fields: str) -> Any:
        return self("GET", f"/v4/spreadsheets/{self.book_id}?includeGridData=true&fields={fields}")


@pytest.fixture
def sheet(running_emulator: Emulator) -> Iterator[Sheet]:
    made = Sheet(running_emulator)
    yield made
    made.calm()
    made("POST", "/emulator/settings", {"quotas": False, "switches": {"find_replace_sees_blanks": True}})


@pytest.fixture
def clock() -> ToldClock:
    return ToldClock()


class Article(BaseModel):
    keyword: str
    draft: str = ""


class Lead(BaseModel):
    company: str
    employees: int = 0
    score: int | None = None


#: While it holds words, posting an article about one of them fails; and how often each was posted.
BROKEN: set[str] = set()
POSTED: list[str] = []


def make_publish() -> Workflow[Article, str, None]:
    publish: Workflow[Article, str, None] = Workflow("publish", data=Article, result=str)

    @publish.step(then="review")
    async def draft(run: Run[Article]) -> None:
        run.data.draft = f"About {run.data.keyword}."

    @publish.step(then=["post", "draft", "archive"])
    async def review(run: Run[Article]) -> Literal["post", "draft", "archive"]:
        answer = await run.ask(
            f"Publish {run.data.keyword!r}?", show=run.data.draft, choices=["approve", "rewrite", "reject"]
        )
        return {"approve": "post", "rewrite": "draft"}.get(answer.choice, "archive")  # type: ignore[return-value]

    @publish.step(then="archive", retry=Retry(1))
    async def post(run: Run[Article]) -> None:
        POSTED.append(run.data.keyword)
        if run.data.keyword in BROKEN:
            raise Fail(f"the site {run.data.keyword!r} is gone")

    @publish.step
    async def archive(run: Run[Article]) -> str:
        return run.data.draft

    return publish


def make_board() -> Workflow[dict[str, Any], Any, None]:
    board: Workflow[dict[str, Any], Any, None] = Workflow("board")
    board.state("TODO", then=["DOING"])
    board.state("DOING", then=["DONE", "TODO"])
    board.state("DONE")
    return board


def make_leads() -> Workflow[Lead, None, None]:
    @workflow(name="score_lead", on=[Inbox("Leads", write_back=["score"])])
    async def score_lead(run: Run[Lead]) -> None:
        run.data.score = len(run.data.company) + run.data.employees

    return score_lead


@asynccontextmanager
async def opened(sheet: Sheet, ledger: str = "memory:", clock: ToldClock | None = None) -> AsyncIterator[Panel]:
    """A client of a ledger, and its panel."""
    POSTED.clear()
    BROKEN.clear()
    options: dict[str, Any] = {"clock": clock} if clock is not None else {}
    flows: list[Workflow[Any, Any, Any]] = [make_publish(), make_board(), make_leads()]
    async with Client(ledger, workflows=flows, who="tester", **options) as client, Panel(client, sheet.url) as panel:
        yield panel


async def asking(panel: Panel, record_id: str = "a1", keyword: str = "tea") -> None:
    """A record that asks whether to publish, shown in the sheet."""
    await panel.client.start("publish", {"keyword": keyword}, id=record_id)
    await panel.client.work()
    await panel.look()
