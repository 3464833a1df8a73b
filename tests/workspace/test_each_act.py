"""Each act alone: done once whatever write is lost, and taken back once whatever write is lost."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

import pytest

from quire.model.record import Status
from quire.testing import ToldClock
from quire.workspace import Posted, calendar, chat, docs, drive, gmail, pubsub, sheets, slides, tasks
from quire.workspace.calendar.times import from_to
from tests.workspace.worlds import CLIENT, ME, START, Losing, World, only, opened, played_out


@dataclass(frozen=True)
class Case:
    """One act, and what people see of it."""

    name: str
    #: The act with its arguments.
    call: Callable[[World], tuple[Any, ...]]
    seen: Callable[[World], Any]
    after: Any
    undone: Any
    options: Mapping[str, Any] = field(default_factory=dict)


def names(world: World) -> list[str]:
    return sorted(file["name"] for file in world.files(world.clients))


def roles(world: World) -> dict[str, str]:
    listed = world("GET", f"/drive/v3/files/{world.template}/permissions?fields=permissions(emailAddress,role)")
    return {one["emailAddress"]: one["role"] for one in listed["permissions"] if one["role"] != "owner"}


def book(world: World) -> str:
    """The id of a spreadsheet with a header, a row and two placeholders."""
    made: str = world("POST", "/v4/spreadsheets", {"sheets": [{"properties": {"title": "Clients"}}]})["spreadsheetId"]
    values = {"values": [["Name", "Fee"], ["Bolt", 3], ["{{company}}", "{{ fee }}"]]}
    world("PUT", f"/v4/spreadsheets/{made}/values/Clients!A1?valueInputOption=RAW", values)
    world.__dict__["book"] = made
    return made


def cells(world: World) -> Any:
    found = world(
        "GET", f"/v4/spreadsheets/{world.__dict__['book']}/values/Clients?valueRenderOption=UNFORMATTED_VALUE"
    )
    return found["values"][1:]


def deck(world: World) -> str:
    made = world("POST", "/v1/presentations", {"title": "Pitch"})
    box = made["slides"][0]["pageElements"][0]["objectId"]
    insert = {"insertText": {"objectId": box, "text": "For {{company}}"}}
    world("POST", f"/v1/presentations/{made['presentationId']}:batchUpdate", {"requests": [insert]})
    world.__dict__["deck"] = made["presentationId"]
    return str(made["presentationId"])


def slide(world: World) -> str:
    [first] = world("GET", f"/v1/presentations/{world.__dict__['deck']}")["slides"]
    elements = first["pageElements"][0]["shape"]["text"]["textElements"]
    return "".join(one.get("textRun", {}).get("content", "") for one in elements).strip()


def named(world: World) -> str:
    """The template, of which the word "fee" has a name."""
    start = world.text(world.template).index("fee is") + 1
    span = {"startIndex": start, "endIndex": start + 3}
    made = {"createNamedRange": {"name": "what", "range": span}}
    world("POST", f"/v1/documents/{world.template}:batchUpdate", {"requests": [made]})
    return world.template


def mails(world: World) -> list[tuple[str, str]]:
    """Of each mail that left: its receivers, and the last line of its text that is no answer's quote."""
    listed = world("GET", "/gmail/v1/users/me/messages?labelIds=SENT").get("messages", [])
    found = []
    for one in reversed(listed):
        payload = world("GET", f"/gmail/v1/users/me/messages/{one['id']}?format=full")
        headers = {part["name"]: part["value"] for part in payload["payload"]["headers"]}
        found.append((headers.get("To", ""), payload["snippet"]))
    return found


def drafts(world: World) -> list[str]:
    return [one["id"] for one in world("GET", "/gmail/v1/users/me/drafts").get("drafts", ())]


def all_mail(world: World) -> Any:
    """What was sent, and how much left. A draft whose answer was lost may stay: nobody receives it."""
    return mails(world), len(world.left("mail"))


def arrived(world: World) -> str:
    """The id of a mail that a client has sent us."""
    world.person("mail.send", **{"as": CLIENT, "to": ME, "subject": "Offer?", "text": "How much?"})
    return str(world("GET", "/gmail/v1/users/me/messages?labelIds=INBOX")["messages"][0]["id"])


def drafted(world: World) -> str:
    text = f"To: {CLIENT}\r\nSubject: Offer\r\n\r\nPlease"
    raw = base64.urlsafe_b64encode(text.encode()).decode()
    return str(world("POST", "/gmail/v1/users/me/drafts", {"message": {"raw": raw}})["id"])


def meeting(world: World) -> str:
    made = world("POST", "/calendar/v3/calendars/primary/events", {"summary": "Old", **from_to("x", START, "1h", "")})
    return str(made["id"])


def events(world: World) -> list[tuple[str, str, list[str]]]:
    return [
        (
            one["summary"],
            one["start"].get("dateTime", one["start"].get("date")),
            sorted(g["email"] for g in one.get("attendees", ())),
        )
        for one in world.events()
    ]


def space(world: World) -> str:
    found = world("GET", "/v1/spaces").get("spaces") or [
        world("POST", "/v1/spaces", {"displayName": "Team", "spaceType": "SPACE"})
    ]
    return str(found[0]["name"])


def said(world: World) -> list[str]:
    return [one.get("text", "") for one in world("GET", f"/v1/{space(world)}/messages").get("messages", ())]


def posted(world: World) -> Posted:
    made = world("POST", f"/v1/{space(world)}/messages", {"text": "Old"})
    return Posted(made["name"], space(world), "")


def tasks_of(world: World) -> list[str]:
    return [one["title"] for one in world("GET", "/tasks/v1/lists/@default/tasks").get("items", ())]


def topic(world: World) -> str:
    name = "projects/acme/topics/orders"
    world("PUT", f"/v1/{name}", {})
    world("PUT", "/v1/projects/acme/subscriptions/sub", {"topic": name})
    return name


def pulled(world: World) -> set[tuple[str, str]]:
    got = world("POST", "/v1/projects/acme/subscriptions/sub:pull", {"maxMessages": 10}).get("receivedMessages", ())
    return {(base64.b64decode(one["message"]["data"]).decode(), one["message"]["orderingKey"]) for one in got}


VALUES = {"company": "Acme", "fee": "7"}
TEMPLATE = "Dear {{company}},\nthe fee is {{fee}}. Yours, {{ company }}"
FILLED = "Dear Acme,\nthe fee is 7. Yours, Acme"
CASES = [
    Case(
        "calendar.event",
        lambda w: (calendar.event, "Kick-off", START),
        lambda w: (events(w), len(w.left("invitation"))),
        ([("Kick-off", "2026-12-01T09:00:00Z", [CLIENT])], 1),
        ([], 2),
        {"invite": [CLIENT], "meet": True, "location": "Here"},
    ),
    Case(
        "calendar.event on a whole day",
        lambda w: (calendar.event, "Day off", START.date()),
        events,
        [("Day off", "2026-12-01", [])],
        [],
        {"lasts": "1d"},
    ),
    Case(
        "calendar.update",
        lambda w: (calendar.update, meeting(w)),
        events,
        [("New", "2026-12-01T11:00:00Z", [CLIENT])],
        [("Old", "2026-12-01T09:00:00Z", [])],
        {"title": "New", "start": START + timedelta(hours=2), "invite": [CLIENT]},
    ),
    Case(
        "calendar.cancel",
        lambda w: (calendar.cancel, meeting(w)),
        events,
        [],
        [("Old", "2026-12-01T09:00:00Z", [])],
    ),
    Case("chat.post", lambda w: (chat.post.using("bot"), space(w), "Hello"), said, ["Hello"], []),
    Case(
        "chat.post with a card",
        lambda w: (chat.post.using("bot"), space(w)),
        said,
        [""],
        [],
        {"cards": [chat.card("Offer", "Ten?", buttons={"yes": "Yes", "no": "No"})]},
    ),
    Case("chat.update", lambda w: (chat.update, posted(w), "New"), said, ["New"], ["Old"]),
    Case("tasks.add", lambda w: (tasks.add, "Call them"), tasks_of, ["Call them"], [], {"due": START.date()}),
    Case("pubsub.publish", lambda w: (pubsub.publish, topic(w), "go"), pulled, {("go", "r")}, {("go", "r")}),
    Case(
        "gmail.send",
        lambda w: (gmail.send, CLIENT, "Offer", "Please"),
        all_mail,
        ([(CLIENT, "Please")], 1),
        ([(CLIENT, "Please"), (CLIENT, "No more")], 2),
        {"take_back": "No more"},
    ),
    Case(
        "gmail.send of everything",
        lambda w: (gmail.send, f"Ann <{CLIENT}>", "Offer"),
        all_mail,
        ([(f"Ann <{CLIENT}>", "Please look")], 1),
        ([(f"Ann <{CLIENT}>", "Please look")], 1),
        {
            "html": "<p>Please <b>look</b> <img src='cid:logo'></p>",
            "cc": ["bob@example.org"],
            "bcc": "eve@example.org",
            "attach": [("a.txt", b"hello")],
            "inline": {"logo": ("logo.png", b"png")},
            "headers": {"X-Campaign": "7"},
            "as_person": True,
        },
    ),
    Case(
        "gmail.reply",
        lambda w: (gmail.reply, arrived(w), "Ten"),
        all_mail,
        ([(CLIENT, "Ten")], 2),
        ([(CLIENT, "Ten"), (CLIENT, "Twenty")], 3),
        {"take_back": "Twenty"},
    ),
    Case(
        "gmail.draft",
        lambda w: (gmail.draft, CLIENT, "Offer", "Please"),
        lambda w: len(drafts(w)),
        1,
        0,
    ),
    Case(
        "gmail.send_draft",
        lambda w: (gmail.send_draft, drafted(w)),
        all_mail,
        ([(CLIENT, "Please")], 1),
        ([(CLIENT, "Please"), (CLIENT, "No more")], 2),
        {"take_back": "No more"},
    ),
    Case("docs.fill", lambda w: (docs.fill, w.template, VALUES), lambda w: w.text(w.template), FILLED, FILLED),
    Case(
        "docs.fill with braces",
        lambda w: (docs.fill, w.template, {"company": "{{fee}} 🎉", "fee": "{"}),
        lambda w: w.text(w.template),
        "Dear {{fee}} 🎉,\nthe fee is {. Yours, {{fee}} 🎉",
        "Dear {{fee}} 🎉,\nthe fee is {. Yours, {{fee}} 🎉",
    ),
    Case(
        "docs.append",
        lambda w: (docs.append, w.template, "P. S. 🎉\nHello"),
        lambda w: w.text(w.template),
        TEMPLATE + "\nP. S. 🎉\nHello",
        TEMPLATE,
    ),
    Case(
        "docs.append of markdown",
        lambda w: (docs.append, w.template, "# Terms\n\n- **one**\n- two"),
        lambda w: w.text(w.template),
        TEMPLATE + "\nTerms\none\ntwo",
        TEMPLATE,
        {"markdown": True},
    ),
    Case(
        "docs.replace",
        lambda w: (docs.replace, named(w), "what", "price"),
        lambda w: w.text(w.template),
        TEMPLATE.replace("fee is", "price is"),
        TEMPLATE,
    ),
    Case("slides.fill", lambda w: (slides.fill, deck(w), {"company": "Acme"}), slide, "For Acme", "For Acme"),
    Case(
        "sheets.fill",
        lambda w: (sheets.fill, book(w), VALUES),
        cells,
        [["Bolt", 3], ["Acme", 7]],
        [["Bolt", 3], ["Acme", 7]],
    ),
    Case(
        "sheets.row by names",
        lambda w: (sheets.row, book(w), "Clients", {"Fee": 8, "Name": "=Nuts"}),
        cells,
        [["Bolt", 3], ["{{company}}", "{{ fee }}"], ["=Nuts", 8]],
        [["Bolt", 3], ["{{company}}", "{{ fee }}"]],
    ),
    Case(
        "sheets.row in order",
        lambda w: (sheets.row, book(w), "Clients", ["Nuts", date(2026, 12, 1)]),
        cells,
        [["Bolt", 3], ["{{company}}", "{{ fee }}"], ["Nuts", 46357]],
        [["Bolt", 3], ["{{company}}", "{{ fee }}"]],
    ),
    Case("drive.folder", lambda w: (drive.folder, "Acme", w.clients), names, ["Acme"], []),
    Case("drive.file", lambda w: (drive.file, "Hello", "a.txt", w.clients), names, ["a.txt"], []),
    Case("drive.file of bytes", lambda w: (drive.file, b"\xff\x00", "a.bin", w.clients), names, ["a.bin"], []),
    Case("drive.copy", lambda w: (drive.copy, w.template, "Copy", w.clients), names, ["Copy"], []),
    Case("drive.pdf", lambda w: (drive.pdf, w.template, w.clients), names, ["Contract.pdf"], []),
    Case("drive.move", lambda w: (drive.move, w.template, w.clients), names, ["Contract"], []),
    Case("drive.share", lambda w: (drive.share, w.template, CLIENT, "editor"), roles, {CLIENT: "writer"}, {}),
    Case(
        "drive.share with a notice",
        lambda w: (drive.share, w.template, CLIENT),
        lambda w: (roles(w), len(w.left("share"))),
        ({CLIENT: "reader"}, 1),
        ({}, 1),
        {"notify": True, "message": "Have a look."},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
@pytest.mark.parametrize("lost", ["the request", "the answer"])
async def test_it_is_done_once(monkeypatch: pytest.MonkeyPatch, case: Case, lost: str) -> None:
    async def run(world: World, clock: ToldClock) -> None:
        act, *args = case.call(world)
        async with opened(world, [only(act, *args, **case.options)], clock) as client:
            await client.start("only", {}, id="r")
            record = await played_out(client, clock)
        assert record.status is Status.DONE, (record.last_error, record.question)
        assert case.seen(world) == case.after

    assert await Losing(monkeypatch, lost).each(run) >= 1, "the act writes"


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
@pytest.mark.parametrize("lost", ["the request", "the answer"])
async def test_it_is_taken_back_once(monkeypatch: pytest.MonkeyPatch, case: Case, lost: str) -> None:
    async def run(world: World, clock: ToldClock) -> None:
        act, *args = case.call(world)
        async with opened(world, [only(act, *args, fails=True, **case.options)], clock) as client:
            await client.start("only", {}, id="r")
            record = await played_out(client, clock)
        assert record.status is Status.CANCELLED, (record.last_error, record.question)
        assert case.seen(world) == case.undone

    await Losing(monkeypatch, lost).each(run)
