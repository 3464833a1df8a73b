"""The world of ``quire demo onboarding``: a book of clients, a template and a folder at the emulator."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files as resources
from typing import Any, NamedTuple

#: Calls an API of Google: method, path, body; answers what it answers.
Call = Callable[[str, str, Any], Any]

ME, CLIENT = "ann@example.org", "carl@acme.example"
_TAB = 11
_HEADER = ["company", "email", "fee", "start", "Task_Status", "folder", "contract"]
_ROWS = [
    _HEADER,
    ["Acme", CLIENT, "1200", "2027-02-01", "Ready", "", ""],
    ["Initech", "bill@initech.example", "800", "2027-03-01", "", "", ""],
]
_TEXT = (
    "Contract\n\nThis contract is between us and {{company}}.\nThe fee is {{fee}} a month.\nWork begins on {{start}}.\n"
)


class World(NamedTuple):
    """The ids of what there is."""

    book: str
    template: str
    folder: str


def flows() -> str:
    """The workflow: the same text as in ``examples/onboarding``."""
    return resources(__name__).joinpath("flows.py.txt").read_text(encoding="utf-8")


def make(call: Call) -> World:
    """Make what a team has before it begins: its book, its template, its folder for clients."""
    folder = call("POST", "/drive/v3/files", {"name": "Clients", "mimeType": "application/vnd.google-apps.folder"})
    template = call("POST", "/v1/documents", {"title": "Template of a contract"})["documentId"]
    insert = {"insertText": {"location": {"index": 1}, "text": _TEXT}}
    call("POST", f"/v1/documents/{template}:batchUpdate", {"requests": [insert]})
    tab = {"properties": {"sheetId": _TAB, "title": "Clients"}}
    book = call("POST", "/v4/spreadsheets", {"properties": {"title": "Clients of a team"}, "sheets": [tab]})
    book_id = book["spreadsheetId"]
    values = {"range": "Clients!A1", "values": _ROWS}
    call("PUT", f"/v4/spreadsheets/{book_id}/values/Clients!A1?valueInputOption=USER_ENTERED", values)
    bold = {
        "repeatCell": {
            "range": {"sheetId": _TAB, "endRowIndex": 1},
            "cell": {"userEnteredFormat": {"textFormat": {"bold": True}}},
            "fields": "userEnteredFormat.textFormat.bold",
        }
    }
    call("POST", f"/v4/spreadsheets/{book_id}:batchUpdate", {"requests": [bold]})
    return World(book_id, template, folder["id"])


def files(world: World, endpoint: str) -> dict[str, str]:
    """The files of the project, with the ids of this world."""
    text = flows().replace("the-template-of-our-contracts", world.template)
    panel = f"sheets://{world.book}?endpoint={endpoint.rstrip('/')}"
    toml = f'flows = ["flows.py"]\nledger = "sqlite:///ledger.db"\npanel = "{panel}"\nwho = "{ME}"\n\n[google]\n'
    toml += f'account = "{ME}"\nendpoint = "{endpoint}"\ndomain = "example.org"\n'
    return {"flows.py": text.replace("the-folder-of-our-clients", world.folder), "quire.toml": toml}


def hello(world: World, url: str) -> list[str]:
    """What a person does in the demo, and where."""
    return [
        f"1. the book:     {url}book/{world.book}   tab Clients: when Acme says 'Needs approval', type send",
        f"2. the mailbox:  {url}mail/{CLIENT}   you are the client: read the mail, and answer it",
        f"3. the calendar: {url}calendar/{CLIENT}   accept the date",
        f"   all that left: {url}outbox   the files: {url}drive",
    ]
