"""Pub/Sub: topics, pulls with deadlines, pushes with signed tokens."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from emulator_api import Api, Refused
from emulator_direct import Direct
from google_client import building
from hectograph import Emulator
from receiver import receiving

TOPIC, SUBSCRIPTION = "projects/acme/topics/mail", "projects/acme/subscriptions/reader"


@pytest.fixture
def api() -> Api:
    return Direct()


@pytest.fixture
def pubsub() -> Iterator[Any]:
    with Emulator() as running, building(running) as build:
        yield build("pubsub", "v1")


def test_googles_client_publishes_pulls_and_acknowledges(pubsub: Any) -> None:
    projects = pubsub.projects()
    projects.topics().create(name=TOPIC, body={}).execute()
    projects.subscriptions().create(name=SUBSCRIPTION, body={"topic": TOPIC}).execute()
    body = {"messages": [{"data": base64.b64encode(b"hi").decode(), "attributes": {"k": "v"}}]}
    (key,) = projects.topics().publish(topic=TOPIC, body=body).execute()["messageIds"]

    (got,) = (
        projects.subscriptions().pull(subscription=SUBSCRIPTION, body={"maxMessages": 5}).execute()["receivedMessages"]
    )

    assert (got["message"]["messageId"], base64.b64decode(got["message"]["data"])) == (key, b"hi")
    assert got["message"]["attributes"] == {"k": "v"}
    projects.subscriptions().acknowledge(subscription=SUBSCRIPTION, body={"ackIds": [got["ackId"]]}).execute()
    assert projects.subscriptions().pull(subscription=SUBSCRIPTION, body={"maxMessages": 5}).execute() == {}


def subscribed(api: Api, **more: Any) -> None:
    api("PUT", f"/v1/{TOPIC}", {})
    api("PUT", f"/v1/{SUBSCRIPTION}", {"topic": TOPIC, **more})


def publish(api: Api, *texts: str, **more: Any) -> list[str]:
    messages = [{"data": base64.b64encode(text.encode()).decode(), **more} for text in texts]
    found: list[str] = api("POST", f"/v1/{TOPIC}:publish", {"messages": messages})["messageIds"]
    return found


def pulled(api: Api) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = api("POST", f"/v1/{SUBSCRIPTION}:pull", {"maxMessages": 9}).get(
        "receivedMessages", []
    )
    return found


def test_a_message_comes_again_after_its_deadline_and_a_late_acknowledgement_does_nothing(api: Api) -> None:
    subscribed(api)
    publish(api, "one")
    (first,) = pulled(api)
    assert pulled(api) == []
    api("POST", "/emulator/clock", {"advance_seconds": 11})
    api("POST", f"/v1/{SUBSCRIPTION}:acknowledge", {"ackIds": [first["ackId"]]})

    (second,) = pulled(api)

    assert second["message"] == first["message"] and second["ackId"] != first["ackId"]
    api("POST", f"/v1/{SUBSCRIPTION}:modifyAckDeadline", {"ackIds": [second["ackId"]], "ackDeadlineSeconds": 0})
    assert len(pulled(api)) == 1


def test_ordered_messages_wait_for_those_before_them(api: Api) -> None:
    subscribed(api, enableMessageOrdering=True)
    publish(api, "one", "two", orderingKey="k")
    assert len(pulled(api)) == 2  # given out in order, together
    assert pulled(api) == []


@pytest.mark.parametrize(
    ("verb", "path", "body", "status", "text"),
    [
        ("POST", f"/v1/{TOPIC}:publish", {"messages": [{}]}, 400, "is empty"),
        ("POST", f"/v1/{TOPIC}:publish", {"messages": []}, 400, "message_count"),
        ("PUT", f"/v1/{TOPIC}", {}, 409, "already exists"),
        ("GET", "/v1/projects/acme/topics/none", None, 404, "Resource not found (resource=none)."),
        ("PUT", f"/v1/{SUBSCRIPTION}2", {"topic": TOPIC, "ackDeadlineSeconds": 700}, 400, "Invalid ack deadline"),
        ("PUT", f"/v1/{SUBSCRIPTION}2", {"topic": TOPIC, "filter": "attributes:x"}, 501, "does not play filters"),
    ],
)
def test_what_cannot_be_is_refused(api: Api, verb: str, path: str, body: Any, status: int, text: str) -> None:
    subscribed(api)
    with pytest.raises(Refused) as error:
        api(verb, path, body)
    assert error.value.status == status and text in error.value.message


def test_a_push_is_signed_and_repeated_until_it_is_taken(emulator: Emulator) -> None:
    from google.auth import jwt

    api = Api(emulator)
    with receiving() as receiver:
        receiver.statuses = [500, 200]
        oidc = {"serviceAccountEmail": "push@acme.iam.gserviceaccount.com", "audience": "quire"}
        config = {"pushEndpoint": receiver.url + "/push", "oidcToken": oidc}
        subscribed(api, pushConfig=config, retryPolicy={"minimumBackoff": "0.05s"})
        (key,) = publish(api, "hello")

        first, second = receiver.next(), receiver.next()

    assert first.body == second.body and first.json["message"]["messageId"] == key
    assert first.json["message"]["message_id"] == key and first.json["subscription"] == SUBSCRIPTION
    certificates = json.loads(emulator.call("GET", "/emulator/certs").body)
    token = second.headers["authorization"].removeprefix("Bearer ")
    claims = jwt.decode(token, certificates, audience="quire")  # type: ignore[no-untyped-call]  # untyped
    assert claims["email"] == oidc["serviceAccountEmail"] and claims["iss"] == "https://accounts.google.com"
