"""A project, an emulator, and a person who sits at the consent page."""

from __future__ import annotations

import json
import threading
import webbrowser
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from hectograph import Emulator
from quire.workspace import accounts
from tests.surfaces.cli.conftest import Project

ANN = "ann@example.org"
CLIENT = "client-1"

FLOWS = """
from datetime import UTC, datetime

from quire import Run, Workflow
from quire.workspace import calendar, docs, drive, gmail

onboard = Workflow("onboard")


@onboard.step
async def work(run: Run) -> str:
    folder = await run.once(drive.folder, run.data["company"])
    copy = await run.once(drive.copy, run.data["template"], "Contract", folder)
    await run.once(docs.fill, copy, {"company": run.data["company"]})
    await run.once(gmail.send, "client@example.com", "Hello", "Welcome.")
    start = datetime(2027, 1, 11, 9, 0, tzinfo=UTC)
    made = await run.once(calendar.event, "Kick-off", start)
    return made.id


mail = Workflow("mail")


@mail.step
async def write(run: Run) -> str:
    return (await run.once(gmail.send, "client@example.com", "Hello", "Welcome.")).subject
"""


class Person:
    """Who sits before the browser: takes the link that is opened, ticks boxes, and continues."""

    def __init__(self) -> None:
        self.account = ANN
        self.declines = False
        #: The words in the names of scopes whose boxes are left unticked.
        self.unticks: tuple[str, ...] = ()
        #: What a browser asks for besides, before it sends the answer.
        self.looks_for_an_icon = True
        self.asked: list[str] = []
        self.problems: list[str] = []

    def open(self, address: str) -> bool:
        threading.Thread(target=self._sits, args=(address,), daemon=True).start()
        return True

    def _sits(self, address: str) -> None:
        try:
            query = parse_qs(urlsplit(address).query)
            self.asked = query["scope"][0].split()
            with httpx2.Client() as browser:
                page = browser.get(address)
                assert page.status_code == 200 and "Select what the app can access" in page.text
                ticked = [one for one in self.asked if not any(word in one for word in self.unticks)]
                form = {"account": self.account, "decision": "deny" if self.declines else "allow", "granted": ticked}
                back = browser.post(address, data=form).headers["location"]
                if self.looks_for_an_icon:
                    assert browser.get(back.partition("?")[0] + "favicon.ico").status_code == 404
                browser.get(back)
        except Exception as error:  # noqa: BLE001 - shown by the test
            self.problems.append(repr(error))


@pytest.fixture
def google() -> Iterator[Emulator]:
    with Emulator(account=ANN) as emulator:
        yield emulator


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> Iterator[Person]:
    somebody = Person()
    monkeypatch.setattr(webbrowser, "open", somebody.open)
    yield somebody
    assert somebody.problems == []


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, google: Emulator) -> Iterator[Project]:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    for name in ("QUIRE_GOOGLE", "GOOGLE_APPLICATION_CREDENTIALS"):
        monkeypatch.delenv(name, raising=False)
    made = Project(folder)
    made.write("flows.py", FLOWS)
    made.write("quire.toml", 'flows = ["flows.py"]\nledger = "sqlite:///ledger.db"\nwho = "ann"\n')
    made.write("credentials.json", client_file(google))
    yield made
    accounts.declare({})
    for name in ("flows",):
        __import__("sys").modules.pop(name, None)


def client_file(google: Emulator, client: str = CLIENT) -> str:
    inner = {
        "client_id": client,
        "client_secret": "a-secret-of-the-client",
        "project_id": "acme-flows",
        "auth_uri": f"{google.url}o/oauth2/auth",
        "token_uri": f"{google.url}token",
        "redirect_uris": ["http://localhost"],
    }
    return json.dumps({"installed": inner})


@pytest.fixture
def control(google: Emulator) -> Callable[[str, Any], Any]:
    """Say something to the emulator itself."""

    def post(path: str, body: Any) -> Any:
        answer = google.call("POST", f"/emulator/{path}", body)
        assert answer.status < 300, answer.body
        return json.loads(answer.body)

    return post
