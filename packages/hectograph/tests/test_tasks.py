"""Tasks v1."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from emulator_api import Api, Refused
from emulator_direct import Direct
from google_client import building
from hectograph import Emulator

TASKS = "/tasks/v1/lists/@default/tasks"


@pytest.fixture
def api() -> Api:
    return Direct()


@pytest.fixture
def tasks() -> Iterator[Any]:
    with Emulator() as running, building(running) as build:
        yield build("tasks", "v1")


def test_googles_client_adds_completes_and_clears(tasks: Any) -> None:
    made = tasks.tasklists().insert(body={"title": "Work"}).execute()
    body = {"title": "Call", "due": "2026-03-10T15:30:00Z", "notes": "quire: k1"}
    task = tasks.tasks().insert(tasklist=made["id"], body=body).execute()
    done = tasks.tasks().patch(tasklist=made["id"], task=task["id"], body={"status": "completed"}).execute()
    tasks.tasks().clear(tasklist=made["id"]).execute()

    assert (task["due"], task["status"], task["position"]) == ("2026-03-10T00:00:00.000Z", "needsAction", "0" * 20)
    assert done["completed"] and "items" in tasks.tasks().list(tasklist=made["id"]).execute()
    assert tasks.tasks().list(tasklist=made["id"]).execute()["items"] == []
    (hidden,) = tasks.tasks().list(tasklist=made["id"], showHidden=True).execute()["items"]
    assert hidden["hidden"] is True and hidden["notes"] == "quire: k1"


def titles(api: Api, **query: Any) -> list[str]:
    return [one["title"] for one in api("GET", TASKS, **query)["items"]]


def test_new_tasks_come_first_and_move_where_they_are_told(api: Api) -> None:
    one, two, three = (api("POST", TASKS, {"title": word}) for word in ("one", "two", "three"))
    assert titles(api) == ["three", "two", "one"]
    api("POST", f"{TASKS}/{three['id']}/move", previous=one["id"])
    assert titles(api) == ["two", "one", "three"]
    child = api("POST", f"{TASKS}/{three['id']}/move", parent=two["id"])
    assert child["parent"] == two["id"] and child["position"] == "0" * 20
    api("DELETE", f"{TASKS}/{two['id']}")
    assert titles(api) == ["one"] and sorted(titles(api, showDeleted="true")) == ["one", "three", "two"]


def test_a_task_that_is_taken_up_again_is_not_completed(api: Api) -> None:
    made = api("POST", TASKS, {"title": "one", "status": "completed"})
    assert titles(api, showCompleted="false") == [] and made["completed"] == "2026-03-04T12:00:00.000Z"
    again = api("PATCH", f"{TASKS}/{made['id']}", {"status": "needsAction", "title": None})
    assert "completed" not in again and again["title"] == ""


@pytest.mark.parametrize(
    ("verb", "path", "body", "status", "text"),
    [
        ("GET", "/tasks/v1/lists/none/tasks", None, 404, "Task list not found."),
        ("GET", TASKS + "/none", None, 404, "Task not found."),
        ("POST", TASKS, {"title": "x" * 1025}, 400, "Invalid Value"),
        ("POST", TASKS, {"due": "soon"}, 400, "Request contains an invalid argument."),
        ("POST", TASKS + "?parent=none", {"title": "x"}, 400, "Invalid task ID"),
        ("DELETE", "/tasks/v1/users/@me/lists/@default", None, 400, "Invalid Value"),
    ],
)
def test_what_cannot_be_is_refused(api: Api, verb: str, path: str, body: Any, status: int, text: str) -> None:
    with pytest.raises(Refused) as error:
        api(verb, path, body)
    assert (error.value.status, error.value.message) == (status, text) and titles(api) == []


def test_lists_belong_to_accounts_and_pages_hold_twenty(api: Api) -> None:
    for number in range(25):
        api("POST", TASKS, {"title": str(number)})
    page = api("GET", TASKS)
    assert len(page["items"]) == 20
    assert len(api("GET", TASKS, pageToken=page["nextPageToken"])["items"]) == 5
    api.user = "bob@example.com"
    assert titles(api) == []
