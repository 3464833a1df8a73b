"""Chat v1: messages that are made once, threads, webhooks, and what a Chat app hears."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from emulator_api import Api, Refused
from emulator_direct import Direct
from google_client import building
from hectograph import Emulator
from receiver import receiving

CARD = {
    "cardId": "c",
    "card": {
        "header": {"title": "Send it?"},
        "sections": [
            {
                "widgets": [
                    {"textInput": {"name": "note", "label": "Note"}},
                    {"buttonList": {"buttons": [
                        {"text": word, "onClick": {"action": {"function": "answer", "parameters": [
                            {"key": "choice", "value": word.lower()}]}}} for word in ("Send", "Stop")
                    ]}},
                ]
            }
        ],
    },
}  # fmt: skip


@pytest.fixture
def api() -> Api:
    made = Direct()
    made.user = "app@acme.iam.gserviceaccount.com"
    return made


@pytest.fixture
def space(api: Api) -> str:
    return str(person(api, "chat.space", title="Sales", id="AAAA1")["name"])


def person(api: Api, do: str, **given: Any) -> Any:
    return api("POST", "/emulator/person", {"do": do, **given})


def post(api: Api, space: str, text: str = "hi", body: dict[str, Any] | None = None, **query: Any) -> Any:
    return api("POST", f"/v1/{space}/messages", {"text": text, **(body or {})}, **query)


def outbox(api: Api) -> list[str]:
    return [one["summary"] for one in api("GET", "/emulator/outbox")["left"]]


@pytest.fixture
def chat() -> Iterator[Any]:
    with Emulator() as running, building(running) as build:
        yield build("chat", "v1").spaces()


def test_googles_client_makes_a_space_and_writes_in_it(chat: Any) -> None:
    space = chat.create(body={"displayName": "Sales", "spaceType": "SPACE"}).execute()["name"]
    made = chat.messages().create(parent=space, body={"text": "hi"}, messageId="client-k1", requestId="k1").execute()
    got = chat.messages().get(name=f"{space}/messages/client-k1").execute()
    chat.messages().patch(name=made["name"], updateMask="text", body={"text": "new"}).execute()

    assert got == made and made["clientAssignedMessageId"] == "client-k1"
    assert made["sender"]["type"] == "BOT" and made["thread"]["name"].startswith(f"{space}/threads/")
    assert [one["text"] for one in chat.messages().list(parent=space).execute()["messages"]] == ["new"]
    chat.messages().delete(name=f"{space}/messages/client-k1").execute()
    assert chat.messages().list(parent=space).execute() == {}


def test_a_request_id_gives_the_first_message_also_if_the_second_differs(api: Api, space: str) -> None:
    first = post(api, space, "one", requestId="r1", messageId="client-a")
    assert post(api, space, "two", requestId="r1", messageId="client-a") == first
    assert outbox(api) == ["one"]
    api.user = "other@acme.iam.gserviceaccount.com"
    with pytest.raises(Refused) as error:
        post(api, space, requestId="r1")
    assert error.value.status == 409


def test_a_message_id_is_taken_once(api: Api, space: str) -> None:
    made = post(api, space, messageId="client-a")
    for key, status in (("client-a", 409), ("k1", 400), ("client-A", 400), ("client-" + "a" * 57, 400)):
        with pytest.raises(Refused) as error:
            post(api, space, messageId=key)
        assert error.value.status == status
    api("DELETE", f"/v1/{made['name']}")
    with pytest.raises(Refused) as error:
        post(api, space, messageId="client-a")
    assert error.value.body["error"]["status"] == "ALREADY_EXISTS"


def test_a_patch_that_may_miss_makes_the_message(api: Api, space: str) -> None:
    path = f"/v1/{space}/messages/client-k"
    with pytest.raises(Refused) as error:
        api("PATCH", path, {"text": "x"}, updateMask="text")
    assert error.value.status == 404
    for text in ("one", "two"):
        api("PATCH", path, {"text": text}, updateMask="*", allowMissing="true")
    assert api("GET", path)["text"] == "two" and outbox(api) == ["one"]


def test_threads_form_by_key_only_where_a_reply_is_asked_for(api: Api, space: str) -> None:
    keyed = {"thread": {"threadKey": "record-1"}}
    option = "REPLY_MESSAGE_FALLBACK_TO_NEW_THREAD"
    first = post(api, space, body=keyed, messageReplyOption=option)
    second = post(api, space, body=keyed, messageReplyOption=option)
    plain = post(api, space, body=keyed)
    assert second["thread"]["name"] == first["thread"]["name"] != plain["thread"]["name"]
    assert second["threadReply"] is True and "threadReply" not in first
    with pytest.raises(Refused) as error:
        post(api, space, body={"thread": {"threadKey": "none"}}, messageReplyOption="REPLY_MESSAGE_OR_FAIL")
    assert error.value.status == 404
    with pytest.raises(Refused) as error:
        api("DELETE", f"/v1/{first['name']}")
    assert error.value.status == 400
    api("DELETE", f"/v1/{first['name']}", force="true")
    assert [one["name"] for one in api("GET", f"/v1/{space}/messages")["messages"]] == [plain["name"]]


@pytest.mark.parametrize(
    ("user", "body", "text"),
    [
        ("ann@example.org", {"cardsV2": [CARD]}, "Message cannot have cards for requests carrying human credentials."),
        ("app@acme.iam.gserviceaccount.com", {}, "Message cannot be empty."),
        ("app@acme.iam.gserviceaccount.com", {"text": "é" * 16_000}, "The limit is 32000 bytes."),
    ],
)
def test_messages_that_cannot_be_are_refused(api: Api, space: str, user: str, body: Any, text: str) -> None:
    api.user = user
    with pytest.raises(Refused) as error:
        api("POST", f"/v1/{space}/messages", body)
    assert error.value.status == 400 and text in error.value.message


def test_only_its_maker_changes_a_message_and_an_app_may_not_list(api: Api, space: str) -> None:
    made = post(api, space)
    api.user = "ann@example.org"
    for verb, query in (("PATCH", {"updateMask": "text"}), ("DELETE", {})):
        with pytest.raises(Refused) as error:
            api(verb, f"/v1/{made['name']}", {"text": "x"} if query else None, **query)
        assert error.value.status == 403
    bot = "https://www.googleapis.com/auth/chat.bot"
    api("POST", "/emulator/accounts", {"token": "bot", "email": "app@acme.iam.gserviceaccount.com", "scopes": [bot]})
    api.user = "bot"
    assert api("GET", f"/v1/{made['name']}")["text"] == "hi"
    with pytest.raises(Refused) as error:
        api("GET", f"/v1/{space}/messages")
    assert error.value.body["error"]["details"][0]["reason"] == "ACCESS_TOKEN_SCOPE_INSUFFICIENT"


def hook(api: Api, url: str, body: dict[str, Any]) -> tuple[int, Any]:
    sent = json.dumps(body).encode()
    from hectograph.core.http import Request

    assert isinstance(api, Direct)
    answer = api.app.answer(Request.of("POST", url.removeprefix("http://emulator"), {}, sent))
    return answer.status, json.loads(answer.body)


@pytest.mark.parametrize("honoured", [False, True])
def test_a_webhook_posts_with_its_key_alone(api: Api, honoured: bool) -> None:
    api("POST", "/emulator/settings", {"switches": {"webhook_request_id": honoured}})
    url = person(api, "chat.space", title="Team")["webhook"]
    status, made = hook(api, url + "&requestId=r1", {"text": "hello"})
    _, again = hook(api, url + "&requestId=r1", {"text": "hello"})

    assert status == 200 and set(made) == {"text", "name", "thread"}
    assert (again["name"] == made["name"]) == honoured and len(outbox(api)) == (1 if honoured else 2)
    status, error = hook(api, url + "x", {"text": "hello"})
    assert (status, error["error"]["status"]) == (401, "UNAUTHENTICATED")


def test_a_space_takes_sixty_writes_a_minute_from_all_together(api: Api, space: str) -> None:
    api("POST", "/emulator/settings", {"quotas": True})
    url = f"http://emulator/v1/{space}/messages?"
    for number in range(60):
        api.user = f"app{number % 3}@acme.iam.gserviceaccount.com"
        post(api, space)
    with pytest.raises(Refused) as error:
        post(api, space)
    assert error.value.status == 429 and url
    other = person(api, "chat.space", title="Other")["name"]
    post(api, other)


def test_an_app_hears_what_people_write_and_click_and_its_answers_are_done(emulator: Emulator) -> None:
    from google.auth import jwt

    api = Api(emulator, "app@acme.iam.gserviceaccount.com")
    space = person(api, "chat.space", title="Sales")["name"]
    with receiving() as receiver:
        person(api, "chat.app", url=receiver.url + "/google/chat", audience="12345", email=api.user)
        receiver.answer = {"text": "Shall I?", "cardsV2": [CARD]}
        wrote = person(api, "chat.write", **{"as": "ann@example.org", "space": space, "text": "what is stuck?"})
        heard = receiver.next()
        card = _until(api, space, 2)[-1]
        receiver.answer = {"actionResponse": {"type": "UPDATE_MESSAGE"}, "text": "Sent."}
        click = {"as": "ann@example.org", "message": card["name"], "button": "Send", "inputs": {"note": "ok"}}
        person(api, "chat.click", **click)
        clicked = receiver.next().json
        changed = _until(api, space, 2, text="Sent.")[-1]

    event = heard.json
    assert (event["type"], event["message"]["text"], event["user"]["email"]) == (
        "MESSAGE",
        "what is stuck?",
        "ann@example.org",
    )
    certificates = json.loads(emulator.call("GET", "/emulator/certs").body)
    token = heard.headers["authorization"].removeprefix("Bearer ")
    claims = jwt.decode(token, certificates, audience="12345")  # type: ignore[no-untyped-call]  # untyped
    assert claims["iss"] == "chat@system.gserviceaccount.com"
    assert card["thread"]["name"] == wrote["thread"]
    assert clicked["type"] == "CARD_CLICKED" and clicked["common"]["parameters"] == {"choice": "send"}
    assert clicked["common"]["formInputs"] == {"note": {"stringInputs": {"value": ["ok"]}}}
    assert clicked["action"] == {"actionMethodName": "answer", "parameters": [{"key": "choice", "value": "send"}]}
    assert changed["name"] == card["name"] and "cardsV2" not in changed


def _until(api: Api, space: str, count: int, text: str = "") -> list[dict[str, Any]]:
    """Look until so many messages are there: the app's answer is done after it was given."""
    for _ in range(2000):
        found: list[dict[str, Any]] = api("GET", f"/v1/{space}/messages")["messages"]
        if len(found) >= count and text in found[-1].get("text", ""):
            return found
    raise AssertionError(found)


def test_a_button_that_is_not_there_is_named(api: Api, space: str) -> None:
    made = post(api, space, body={"cardsV2": [CARD]})
    with pytest.raises(Refused) as error:
        person(api, "chat.click", **{"as": "ann@example.org", "message": made["name"], "button": "Burn"})
    assert error.value.message == "the message has no button 'Burn'; its buttons: Send, Stop"


def test_members_and_direct_messages(api: Api) -> None:
    api.user = "ann@example.org"
    body = {"space": {"spaceType": "DIRECT_MESSAGE"}, "memberships": [{"member": {"name": "users/bob@example.com"}}]}
    made = api("POST", "/v1/spaces:setup", body)
    assert api("POST", "/v1/spaces:setup", body)["name"] == made["name"]
    assert api("GET", "/v1/spaces:findDirectMessage", name="users/bob@example.com")["name"] == made["name"]
    assert len(api("GET", f"/v1/{made['name']}/members")["memberships"]) == 2
    api.user = "eve@example.com"
    with pytest.raises(Refused) as error:
        post(api, made["name"])
    assert error.value.status == 403


def test_spaces_survive_a_restart(tmp_path: Any) -> None:
    path = tmp_path / "world.json"
    with Emulator(path=path) as first:
        api = Api(first)
        space = person(api, "chat.space", title="Sales")["name"]
        made = post(api, space, requestId="r1")
    with Emulator(path=path) as second:
        api = Api(second)
        assert post(api, space, "other", requestId="r1") == made
