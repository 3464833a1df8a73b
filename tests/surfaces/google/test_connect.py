"""Signing in against the emulator's consent page: what is asked for, granted, missing, kept and refused."""

from __future__ import annotations

import base64
import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hectograph import Emulator
from quire.google import kept
from quire.surfaces.google import words
from quire.workspace.uses import scopes_of, uses_of, widened
from tests.surfaces.cli.conftest import Project
from tests.surfaces.google.conftest import ANN, Person

AUTH = "https://www.googleapis.com/auth/"


def test_the_fewest_scopes_of_the_flows_are_asked_for_granted_tried_and_kept(
    project: Project, person: Person, tmp_path: Path
) -> None:
    said = project.quire("connect").output

    asked = [scope.removeprefix(AUTH) for scope in person.asked]
    assert asked == [
        "openid", "userinfo.email", "drive", "gmail.compose", "gmail.metadata", "calendar.events",
    ]  # fmt: skip
    assert "onboard uses drive.folder drive.copy docs.fill gmail.send calendar.event" in said
    assert "gcloud services enable drive.googleapis.com docs.googleapis.com gmail.googleapis.com" in said
    assert f"granted 4 as {ANN}" in said and said.count("checked ✓") == 4
    path = kept.path_of(ANN)
    assert path.is_relative_to(tmp_path / "home") and stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_no_secret_is_in_any_file_but_its_own_nor_in_what_is_printed(
    project: Project, person: Person, tmp_path: Path, google: Emulator
) -> None:
    """The flows run with the sign-in, and then the ledger, the folder, the logs and the settings are read through."""
    project.write("quire.toml", project.path.joinpath("quire.toml").read_text() + 'folder = "Files"\n[google]\n'
                  f'account = "{ANN}"\n')  # fmt: skip
    printed = project.quire("connect").output
    printed += project.quire("start", "mail", "a=b", "--id", "one").output
    printed += project.quire("worker", "--until-idle").output
    printed += project.quire("show", "one").output + project.quire("config").output
    printed += project.quire("doctor", "--google", code=None).output
    made = kept.read(ANN)
    assert "DONE" in printed

    secrets = [made.refresh_token, made.client_secret, "ya29.emulated"]
    own = {kept.path_of(ANN), project.path / "credentials.json"}
    for file in (file for file in tmp_path.rglob("*") if file.is_file() and file not in own):
        content = file.read_bytes()
        assert not [secret for secret in secrets if secret.encode() in content], file
    assert not [secret for secret in secrets if secret in printed]
    assert made.refresh_token not in repr(made)


def test_boxes_left_unticked_are_named_with_what_needs_them(project: Project, person: Person) -> None:
    person.unticks = ("calendar",)

    said = project.quire("connect", code=3).output

    assert "missing These boxes were left unticked: calendar.events (onboard uses calendar.event)" in said
    assert "quire connect --add calendar.events" in said
    assert AUTH + "calendar.events" not in kept.read(ANN).scopes

    person.unticks = ()
    said = project.quire("connect", "--add", "calendar.events").output
    assert "missing" not in said and AUTH + "calendar.events" in kept.read(ANN).scopes


def test_add_widens_what_was_granted_before(project: Project, person: Person) -> None:
    project.quire("connect")
    project.write("flows.py", "from quire import Workflow\nw = Workflow('w')\nw.state('A')\n")
    __import__("sys").modules.pop("flows")

    project.quire("connect", "--add", "tasks")

    assert {AUTH + "tasks", AUTH + "drive", AUTH + "gmail.compose"} <= set(kept.read(ANN).scopes)
    assert [scope.removeprefix(AUTH) for scope in person.asked] == ["openid", "userinfo.email", "tasks"]


def test_send_only_asks_for_no_restricted_scope_of_mail(project: Project, person: Person) -> None:
    said = project.quire("connect", "--mail", "send-only").output

    assert [one for one in person.asked if "gmail" in one] == [AUTH + "gmail.send"]
    assert "gmail.send: there is no call that changes nothing with it" in said
    assert 'mail = "send-only"' in said


def test_a_sign_in_of_an_app_in_testing_says_its_seven_days_at_once_and_from_the_fifth_day_on(
    project: Project, person: Person, control: Callable[[str, Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    control("oauth", {"clients": {"client-1": {"testing": True}}})
    assert words.SEVEN_DAYS in project.quire("connect").output

    assert "! the sign-in" not in project.quire("doctor", "--google").output
    made = kept.read(ANN)
    from dataclasses import replace

    assert made.ends_at is not None
    kept.keep(replace(made, ends_at=made.ends_at - 5.5 * kept.DAY))
    said = project.quire("doctor", "--google").output
    assert f"! the sign-in of {ANN} ends in 1.5 days" in said


def test_another_account_than_the_named_one_keeps_nothing(project: Project, person: Person) -> None:
    project.write("quire.toml", project.path.joinpath("quire.toml").read_text() + f'[google]\naccount = "{ANN}"\n')
    person.account = "bob@example.org"

    said = project.quire("connect", code=3).output

    assert f"bob@example.org is signed in, and [google] names {ANN}; nothing is done" in said
    assert kept.accounts() == []


def test_who_declines_keeps_nothing(project: Project, person: Person) -> None:
    person.declines = True

    assert "the sign-in was declined in the browser; nothing was kept" in project.quire("connect", code=3).output
    assert kept.accounts() == []


def test_without_a_client_file_the_way_to_one_is_said(project: Project) -> None:
    (project.path / "credentials.json").unlink()

    assert project.error("connect", code=2) == words.NO_CLIENT


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ('{"web": {}}', "make one of the kind 'Desktop app'"),
        ('{"type": "service_account"}', "give it with --credentials"),
        ("[]", "is no client file"),
        ("{", "cannot be read"),
    ],
)
def test_a_wrong_client_file_is_refused_with_what_to_do(project: Project, content: str, sentence: str) -> None:
    project.write("credentials.json", content)

    assert sentence in project.error("connect", code=2)


def test_forget_deletes_the_sign_in(project: Project, person: Person) -> None:
    project.quire("connect")
    project.quire("connect", "--forget")
    assert kept.accounts() == []
    assert "nobody is connected" in project.error("connect", "--forget", code=3)


def test_a_file_that_others_can_read_is_not_used(project: Project, person: Person) -> None:
    project.quire("connect")
    kept.path_of(ANN).chmod(0o644)

    said = project.quire("doctor", "--google", code=3).output
    assert f"others can read '{kept.path_of(ANN)}'; run: chmod 600" in said


# -- machines ------------------------------------------------------------------------------------------------------


BOT = "bot@acme.iam.gserviceaccount.com"


def key_file(google: Emulator) -> str:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    given = {"type": "service_account", "client_email": BOT, "client_id": "1177", "private_key": pem,
             "private_key_id": "k1", "project_id": "acme", "token_uri": f"{google.url}token"}  # fmt: skip
    return json.dumps(given)


def test_a_service_account_that_acts_for_a_person_prints_what_an_administrator_needs(
    project: Project, google: Emulator, control: Callable[[str, Any], Any]
) -> None:
    project.write("robot.json", key_file(google))
    project.write(
        "quire.toml",
        'flows = ["flows.py"]\nledger = "sqlite:///ledger.db"\n[google]\ncredentials = "robot.json"\n'
        f'subject = "{ANN}"\nendpoint = "{google.url}"\n',
    )
    said = project.quire("connect").output
    assert words.DELEGATION in said and "client id 1177, scopes " + AUTH + "drive," in said
    assert f"granted as {ANN}" in said and said.count("checked ✓") == 4

    control("oauth", {"delegation": {BOT: [AUTH + "drive"]}})
    refused = project.quire("connect", code=3).output
    assert "An administrator must allow the service account's client id these scopes" in refused


def test_the_machines_own_identity_impersonates_a_service_account(
    project: Project, google: Emulator, control: Callable[[str, Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("adc.json", key_file(google).replace(BOT, "vm@acme.iam.gserviceaccount.com"))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(project.path / "adc.json"))
    project.write(
        "quire.toml",
        'flows = ["flows.py"]\nledger = "sqlite:///ledger.db"\n[google]\n'
        f'credentials = "impersonate:{BOT}"\nsubject = "{ANN}"\nendpoint = "{google.url}"\n',
    )
    said = project.quire("connect").output
    assert f"granted as {ANN}" in said and words.NO_KEYS in said

    control("oauth", {"token_creators": {BOT: ["someone.else@example.org"]}})
    assert "roles/iam.serviceAccountTokenCreator" in project.quire("connect", code=3).output


def test_the_machines_own_credentials_are_tried_and_the_command_for_gcloud_is_said(
    project: Project, google: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("adc.json", key_file(google))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(project.path / "adc.json"))
    project.write(
        "quire.toml",
        f'flows = ["flows.py"]\nledger = "sqlite:///l.db"\n[google]\ncredentials = "adc"\nendpoint = "{google.url}"\n',
    )
    said = project.quire("connect", code=None).output

    assert "gcloud auth application-default login --client-id-file=credentials.json --scopes=" + AUTH + "drive," in said
    assert f"granted as {BOT}" in said


# -- the doctor ----------------------------------------------------------------------------------------------------


def test_the_doctor_tries_scopes_acts_and_open_questions_and_leaves_nothing(
    project: Project, person: Person, google: Emulator
) -> None:
    project.quire("connect")
    said = project.quire("doctor", "--google").output

    for text in (
        "gmail.send: a draft was made and deleted",
        "calendar.event: an event without guests",
        "drive.folder, drive.copy: a file was made and went to the trash",
        "docs.fill: a document was made, filled",
        "a Message-ID of our own is replaced in a draft",
        "a second event with the same id is refused, also after the first was deleted",
        "an export right after a change holds the new text",
    ):
        assert text in said, said
    assert json.loads(google.call("GET", "/emulator/outbox").body)["left"] == []
    assert "drafts" not in json.loads(google.call("GET", "/gmail/v1/users/me/drafts").body)
    files = json.loads(google.call("GET", "/drive/v3/files?q=trashed%3Dfalse").body)["files"]
    assert [file for file in files if "Quire tries" in file["name"]] == []


def test_the_doctor_names_a_permission_that_is_missing_and_an_api_that_is_off(
    project: Project, person: Person, control: Callable[[str, Any], Any]
) -> None:
    person.unticks = ("calendar",)
    project.quire("connect", code=3)
    control("faults", {"fault": "error", "kind": "gmail.users.drafts.list", "reason": "accessNotConfigured"})

    said = project.quire("doctor", "--google", code=3).output

    assert "✗ calendar.events: it is not granted; run: quire connect --add calendar.events" in said
    assert "✗ gmail.compose: the API gmail.googleapis.com is switched off; switch it on: https://console" in said


def test_the_sweep_deletes_drafts_of_ours_that_are_old_and_belong_to_no_act(
    project: Project, person: Person, google: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.quire("connect")
    raw = base64.urlsafe_b64encode(b"X-Quire-Key: abc\r\nSubject: left over\r\n\r\nhello").decode()
    google.call("POST", "/gmail/v1/users/me/drafts", {"message": {"raw": raw}})
    mine = base64.urlsafe_b64encode(b"Subject: mine\r\n\r\nx").decode()
    google.call("POST", "/gmail/v1/users/me/drafts", {"message": {"raw": mine}})

    project.quire("doctor", "--google", "--sweep")
    assert len(json.loads(google.call("GET", "/gmail/v1/users/me/drafts").body)["drafts"]) == 2  # it is too young

    from quire.surfaces.google import sweep

    monkeypatch.setattr(sweep, "_DAY_MS", -1)
    project.quire("start", "mail", "a=b", "--id", "one")
    assert "1 drafts that no act names are deleted" in project.quire("doctor", "--google", "--sweep").output
    assert len(json.loads(google.call("GET", "/gmail/v1/users/me/drafts").body)["drafts"]) == 1


# -- pure ----------------------------------------------------------------------------------------------------------


def test_scopes_are_the_narrowest_that_do() -> None:
    assert scopes_of(["drive.folder"]) == ("drive.file",)
    assert scopes_of(["drive.copy", "docs.fill"]) == ("drive",)
    assert scopes_of(["gmail.send", "gmail.thread"]) == ("gmail.compose", "gmail.readonly")
    assert scopes_of(["gmail.send"], mail="send-only") == ("gmail.send",)
    assert scopes_of([], sheet=True) == ("drive", "spreadsheets")
    assert widened(["calendar", "drive.folder"]) == ("calendar.events", "drive.file")
    assert uses_of([]).scopes == ()


def test_the_guide_holds_the_sentences_that_are_printed() -> None:
    guide = Path(__file__).parents[3] / "docs" / "guides" / "connect-google.md"
    text = " ".join(guide.read_text(encoding="utf-8").split())
    for sentence in words.ALL:
        assert sentence in text, sentence
