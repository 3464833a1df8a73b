"""The pages on which people see and edit: documents, folders, mail, calendars, forms and Chat, in a real browser."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from email.message import EmailMessage
from typing import Any

import pytest

from emulator_api import Api
from hectograph import Emulator

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

pytestmark = pytest.mark.browser

CLIENT = "client@example.com"
APPS = "application/vnd.google-apps."


@pytest.fixture
def api() -> Iterator[Api]:
    with Emulator(account="ann@example.org", time_zone="Europe/Berlin") as running:
        yield Api(running, "ann@example.org")


def at(page: Any, api: Api, path: str) -> Any:
    page.goto(api.emulator.url + path)
    return page


def mailed(api: Api) -> str:
    mail = EmailMessage()
    mail["To"], mail["Subject"] = CLIENT, "Contract <for> Acme"
    mail.set_content("Please sign and send it back.")
    mail.add_attachment(b"%PDF-1.4", maintype="application", subtype="pdf", filename="contract.pdf")
    raw = base64.urlsafe_b64encode(mail.as_bytes()).decode()
    return str(api("POST", "/gmail/v1/users/me/messages/send", {"raw": raw})["threadId"])


def test_a_client_answers_a_mail_and_the_outbox_shows_both(api: Api, page: Any) -> None:
    thread = mailed(api)
    at(page, api, f"mail/{CLIENT}")
    page.get_by_role("link", name="Contract <for> Acme").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="contract.pdf").click()
    assert download.value.suggested_filename == "contract.pdf"
    page.get_by_label("Your answer").fill("Signed.")
    page.get_by_role("button", name="Reply").click()

    page.locator("pre", has_text="Signed.").wait_for()
    found = api("GET", f"/gmail/v1/users/me/threads/{thread}")["messages"]
    assert len(found) == 2 and found[1]["snippet"].startswith("Signed.")
    at(page, api, "outbox")
    assert page.locator(".card b").all_inner_texts() == ["Re: Contract <for> Acme", "Contract <for> Acme"]


def test_a_client_accepts_an_invitation(api: Api, page: Any) -> None:
    times = {n: {"dateTime": f"2026-12-10T1{h}:00:00Z"} for n, h in (("start", 0), ("end", 1))}
    body = {"summary": "Kick-off", "attendees": [{"email": CLIENT}], **times}
    key = api("POST", "/calendar/v3/calendars/primary/events", body)["id"]
    at(page, api, f"calendar/{CLIENT}")
    page.get_by_role("button", name="yes").click()
    page.locator("button.on", has_text="yes").wait_for()

    event = api("GET", f"/calendar/v3/calendars/primary/events/{key}")

    assert event["attendees"][0]["responseStatus"] == "accepted"
    page.get_by_role("button", name="no", exact=True).click()
    page.locator("button.on", has_text="no").wait_for()
    event = api("GET", f"/calendar/v3/calendars/primary/events/{key}")
    assert event["attendees"][0]["responseStatus"] == "declined"


def test_a_person_types_in_a_document_and_makes_a_suggestion(api: Api, page: Any) -> None:
    doc = api("POST", "/v1/documents", {"title": "Contract"})["documentId"]
    text = {"insertText": {"location": {"index": 1}, "text": "Between 😀 and us\nFee: 10\n"}}
    api("POST", f"/v1/documents/{doc}:batchUpdate", {"requests": [text]})
    at(page, api, "docs")
    page.get_by_role("link", name="Contract").click()
    boxes = page.get_by_label("paragraph")
    boxes.nth(0).fill("Between 😀 and Acme")
    boxes.nth(1).fill("Fee: 20\nPaid at once")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Paid at once").wait_for()

    def words() -> str:
        found: bytes = api.raw("GET", f"/drive/v3/files/{doc}/export?mimeType=text/plain")[1]
        return found.decode("utf-8-sig").replace("\r\n", "\n").rstrip("\n")

    assert words() == "Between 😀 and Acme\nFee: 20\nPaid at once"
    boxes.nth(1).fill("Fee: 30")
    api("POST", f"/v1/documents/{doc}:batchUpdate", {"requests": [text]})
    page.get_by_role("button", name="Save").click()
    page.get_by_text("does not match the latest revision").wait_for()
    at(page, api, f"doc/{doc}")
    page.get_by_label("paragraph").nth(0).fill("Suggested")
    page.get_by_label("as suggestions").check()
    page.get_by_role("button", name="Save").click()
    page.wait_for_load_state()
    shown = api("GET", f"/v1/documents/{doc}", suggestionsViewMode="PREVIEW_SUGGESTIONS_ACCEPTED")
    assert "Suggested" in str(shown["body"])


def test_files_are_renamed_shared_thrown_away_and_brought_back(api: Api, page: Any) -> None:
    at(page, api, "drive")
    page.get_by_label("name of the folder").fill("Acme")
    page.get_by_role("button", name="New folder").click()
    page.get_by_role("link", name="Acme").wait_for()
    page.get_by_text("more").click()
    page.get_by_label("address").fill(CLIENT)
    page.get_by_role("button", name="Share").click()
    page.get_by_text(f"{CLIENT} (reader)").wait_for()
    page.get_by_text("more").click()
    page.get_by_label("name", exact=True).fill("Acme Ltd")
    page.get_by_role("button", name="Rename").click()
    page.get_by_role("link", name="Acme Ltd").wait_for()
    page.get_by_text("more").click()
    page.get_by_role("button", name="To the trash").click()
    page.get_by_text("Nothing here.").wait_for()
    at(page, api, "drive/trash")
    page.get_by_role("button", name="Restore").click()
    page.get_by_text("Nothing here.").wait_for()

    (file,) = api("GET", "/drive/v3/files", fields="files(name,trashed,permissions)")["files"]

    assert (file["name"], file["trashed"], len(file["permissions"])) == ("Acme Ltd", False, 2)


def test_a_person_fills_a_form_and_edits_the_answer(api: Api, page: Any) -> None:
    form = api("POST", "/v1/forms", {"info": {"title": "Onboarding"}})["formId"]
    options = [{"value": "small"}, {"value": "large"}, {"isOther": True}]
    kinds = {
        "Company": {"required": True, "textQuestion": {}},
        "Size": {"choiceQuestion": {"type": "CHECKBOX", "options": options}},
        "Start": {"dateQuestion": {}},
    }
    items = [{"title": title, "questionItem": {"question": kind}} for title, kind in kinds.items()]
    requests = [{"createItem": {"item": one, "location": {"index": n}}} for n, one in enumerate(items)]
    api("POST", f"/v1/forms/{form}:batchUpdate", {"requests": requests})
    at(page, api, f"form/{form}")
    assert "not published" in page.content()
    state = {"isPublished": True, "isAcceptingResponses": True}
    api("POST", f"/v1/forms/{form}:setPublishSettings", {"publishSettings": {"publishState": state}})
    api("POST", f"/drive/v3/files/{form}/permissions", {"type": "anyone", "role": "reader"})
    at(page, api, f"form/{form}")
    page.get_by_role("button", name="Submit").click()
    page.get_by_text("Company: This is a required question").wait_for()
    at(page, api, f"form/{form}")
    page.get_by_label("Company").fill("Acme")
    page.get_by_label("large").check()
    page.get_by_label("Other:").check()
    page.get_by_label("other", exact=True).fill("huge")
    page.get_by_label("Start").fill("2026-04-01")
    page.get_by_role("button", name="Submit").click()
    page.get_by_role("link", name="Edit your response").click()
    assert page.get_by_label("large").is_checked()
    page.get_by_label("Company").fill("Acme Ltd")
    page.get_by_role("button", name="Submit").click()
    page.get_by_text("Your response has been recorded.").wait_for()

    (response,) = api("GET", f"/v1/forms/{form}/responses")["responses"]

    values = {v["value"] for one in response["answers"].values() for v in one["textAnswers"]["answers"]}
    assert {"Acme Ltd", "large", "2026-04-01"} <= values and response["lastSubmittedTime"] > response["createTime"]


def test_a_person_writes_in_a_space_and_its_cards_show_no_foreign_markup(api: Api, page: Any) -> None:
    at(page, api, "chat")
    page.get_by_label("New space").fill("Sales")
    page.get_by_role("button", name="Make it").click()
    page.get_by_label("text").fill("what is <b>stuck</b>?")
    page.get_by_role("button", name="Write").click()
    page.get_by_text("what is <b>stuck</b>?").wait_for()
    api.user = "app@acme.iam.gserviceaccount.com"
    (space,) = api("GET", "/v1/spaces")["spaces"]
    widgets = [{"textParagraph": {"text": "<b>bold</b> <script>document.title='x'</script>"}}, {"chipList": {}}]
    card = {"cardId": "c", "card": {"sections": [{"widgets": widgets}]}}
    api("POST", f"/v1/{space['name']}/messages", {"cardsV2": [card]})
    page.reload()
    assert page.locator(".bubble p b").inner_text() == "bold" and page.title() == "Sales"
    assert "chipList" in page.content()


def test_a_person_leaves_a_box_unticked(api: Api, page: Any) -> None:
    query = "client_id=c1&redirect_uri=" + api.emulator.url + "docs&response_type=code&scope=openid%20https://x/drive"
    at(page, api, "o/oauth2/v2/auth?" + query)
    page.get_by_label("https://x/drive").uncheck()
    page.get_by_role("button", name="Continue").click()
    page.wait_for_url("**/docs?**")
    assert "scope=openid" in page.url and "drive" not in page.url.partition("scope")[2]


@pytest.mark.parametrize("width", [1280, 390])
def test_no_page_is_wider_than_the_screen(api: Api, page: Any, width: int) -> None:
    mailed(api)
    for kind in ("document", "spreadsheet", "presentation", "form", "folder"):
        api("POST", "/drive/v3/files", {"name": "a long name of a file " * 4, "mimeType": APPS + kind})
    page.set_viewport_size({"width": width, "height": 800})
    found = {one["mimeType"]: one["id"] for one in api("GET", "/drive/v3/files")["files"]}
    deck, doc = found[APPS + "presentation"], found[APPS + "document"]
    table = {"insertTable": {"rows": 2, "columns": 3, "endOfSegmentLocation": {}}}
    api("POST", f"/v1/documents/{doc}:batchUpdate", {"requests": [table]})
    lists = ("", "drive", "docs", "outbox", "mail", f"mail/{CLIENT}", "calendar", "forms", "chat")
    for path in (*lists, f"slides/{deck}", f"doc/{doc}"):
        at(page, api, path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
