"""``quire google``: single acts as records, done once, shown before, and taken back."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from hectograph import Emulator
from tests.surfaces.cli.conftest import Project
from tests.surfaces.google.conftest import ANN

CLIENT = "client@example.com"


@pytest.fixture(autouse=True)
def signed_in(project: Project, google: Emulator) -> None:
    text = project.path.joinpath("quire.toml").read_text()
    project.write("quire.toml", f'{text}\n[google]\naccount = "{ANN}"\nendpoint = "{google.url}"\n')


def got(google: Emulator, path: str) -> Any:
    return json.loads(google.call("GET", path).body)


def left(google: Emulator) -> list[Any]:
    found: list[Any] = got(google, "/emulator/outbox")["left"]
    return found


def test_a_mail_is_sent_once_under_its_id_and_can_be_undone(project: Project, google: Emulator) -> None:
    project.write("letter.txt", "Welcome to us.")
    words = ["google", "mail", "--to", CLIENT, "--subject", "Hello", "--body", "@letter.txt", "--id", "m1"]
    words += ["--take-back", "Please ignore it."]
    assert "quire undo m1" in project.quire(*words).output
    project.quire(*words)
    [mail] = left(google)
    assert "Hello" in str(mail)

    project.quire("undo", "m1")
    project.quire("google", "work")
    assert len(left(google)) == 2 and "CANCELLED" in project.quire("list").output


def test_a_dry_run_shows_what_would_be_done_and_does_nothing(project: Project, google: Emulator) -> None:
    said = project.quire("google", "mail", "--to", CLIENT, "--subject", "Hello", "--body", "x", "--dry-run").output

    assert '"subject": "Hello"' in said and f'"account": "{ANN}"' in said and "nothing was done" in said
    assert left(google) == [] and not (project.path / "ledger.db").exists()


def test_what_cannot_be_done_is_one_sentence(project: Project, google: Emulator) -> None:
    assert (
        "no e-mail address"
        in project.quire("google", "mail", "--to", "nobody", "--subject", "Hello", "--body", "x", code=5).output
    )
    assert "is no moment" in project.error("google", "event", "Kick-off", "tomorrow", code=2)
    assert "'acme' has no value" in project.error("google", "fill", "DOC", "acme", code=2)
    assert left(google) == []


def test_files_documents_events_and_rows(project: Project, google: Emulator) -> None:
    [folder] = project.json("google", "folder", "Acme")
    document = json.loads(google.call("POST", "/v1/documents", {"title": "Contract"}).body)["documentId"]
    insert = {"insertText": {"location": {"index": 1}, "text": "For {{company}}"}}
    google.call("POST", f"/v1/documents/{document}:batchUpdate", {"requests": [insert]})
    [copy] = project.json("google", "copy", document, "Contract Acme", "--parent", folder["made"]["id"])
    project.quire("google", "fill", copy["made"]["id"], "company=Acme")
    assert "For Acme" in project.quire("google", "read", copy["made"]["id"]).output
    project.quire("google", "pdf", copy["made"]["id"], "--parent", folder["made"]["id"])
    project.quire("google", "event", "Kick-off", "2027-01-11T09:00+01:00", "--id", "e1")
    [event] = got(google, "/calendar/v3/calendars/primary/events")["items"]
    assert event["summary"] == "Kick-off"

    names = {file["name"] for file in got(google, "/drive/v3/files")["files"]}
    assert {"Acme", "Contract Acme", "Contract Acme.pdf"} <= names


def test_people_release_what_asks(project: Project, google: Emulator) -> None:
    words = ["google", "mail", "--to", CLIENT, "--subject", "Hello", "--body", "x", "--id", "m1", "--ask"]
    assert "m1 needs approval: quire approve m1" in project.quire(*words, code=7).output
    assert left(google) == []

    project.quire("approve", "m1")
    project.quire("google", "work")
    assert len(left(google)) == 1


def test_a_missing_permission_waits_with_the_command(
    project: Project, google: Emulator, control: Callable[[str, Any], Any]
) -> None:
    control("accounts", {"token": ANN, "email": ANN, "scopes": ["https://www.googleapis.com/auth/drive"]})
    said = project.quire("google", "event", "Kick-off", "2027-01-11T09:00+01:00", "--id", "e1", code=7).output

    assert "e1 waits; quire why e1 says for what" in said
    assert "quire connect --add calendar" in project.quire("why", "e1").output
