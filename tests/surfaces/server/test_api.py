"""The addresses of the API, without a network."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import unquote

import pytest
from starlette.routing import Route

from quire.client.client import Client
from quire.errors import LedgerUnavailable
from quire.explain.stuck import cause_of as cause
from quire.model.address import part_of
from quire.model.record import Status
from quire.surfaces.server import app
from tests.surfaces.server.conftest import BROKEN, calling, opened


async def asking(client: Client, record_id: str = "a1", keyword: str = "tea") -> None:
    """A record that asks whether to publish."""
    await client.start("publish", {"keyword": keyword}, id=record_id)
    await client.work()


async def test_a_record_is_started_shown_answered_and_ends() -> None:
    async with opened() as client, calling(client) as http:
        started = await http.post("/api/records", json={"workflow": "publish", "data": {"keyword": "tea"}})
        record_id = started.json()["record_id"]
        await client.work()
        shown = (await http.get(f"/api/records/{record_id}")).json()
        hash_ = shown["record"]["waits"][0]["hash"]
        answered = await http.post(
            f"/api/records/{record_id}/answer", json={"choice": "approve", "seen": hash_, "note": "good"}
        )
        await client.work()

        assert started.status_code == 201
        assert shown["why"]["kind"] == "asks"
        assert [event["kind"] for event in shown["events"]][:2] == ["started", "claimed"]
        assert shown["timeline"][-1]["kind"] == "asks"
        assert answered.status_code == 200
        record = await client.get(record_id)
        assert (record.status, record.result) == (Status.DONE, '"About tea."')
        events = await client.events(record_id)
        assert '"by":"tester"' in events[0].body
        assert any(event.kind == "answered" and '"by":"tester"' in event.body for event in events)


async def test_the_same_idempotency_key_is_the_same_record_and_other_data_is_refused() -> None:
    async with opened() as client, calling(client) as http:
        body: dict[str, Any] = {"workflow": "publish", "data": {"keyword": "tea"}}
        first = await http.post("/api/records", json=body, headers={"Idempotency-Key": "k1"})
        again = await http.post("/api/records", json=body, headers={"Idempotency-Key": "k1"})
        body["data"] = {"keyword": "coffee"}
        other = await http.post("/api/records", json=body, headers={"Idempotency-Key": "k1"})

        assert (first.status_code, again.status_code, other.status_code) == (201, 200, 409)
        assert first.json()["record_id"] == again.json()["record_id"]
        assert other.json()["error"] == "AlreadyExists"


async def test_records_are_listed_filtered_and_paged() -> None:
    async with opened() as client, calling(client) as http:
        items = [{"data": {"keyword": "tea"}, "record_id": f"r{n:03}"} for n in range(25)]
        many = await http.post("/api/records/batch", json={"workflow": "publish", "items": items})
        page = (await http.get("/api/records", params={"limit": 10})).json()
        rest = (await http.get("/api/records", params={"limit": 20, "after": page["next"]})).json()
        waiting = (await http.get("/api/records", params={"status": "WAITING"})).json()
        found = (await http.get("/api/records", params={"text": "r01", "status": ["PENDING", "DONE"]})).json()
        grid = (await http.get("/api/grid", params={"limit": 3})).json()

        assert len(many.json()["record_ids"]) == 25
        assert [row["record_id"] for row in page["records"]] == [f"r{n:03}" for n in range(10)]
        assert len(rest["records"]) == 15 and rest["next"] is None
        assert waiting["records"] == []
        assert len(found["records"]) == 10
        assert grid["columns"][0] == "record_id" and len(grid["rows"]) == 3


async def test_what_people_are_asked_is_paged_and_filtered() -> None:
    async with opened() as client, calling(client) as http:
        for name in ("a1", "a2", "a3"):
            await asking(client, name)
        every = (await http.get("/api/approvals")).json()
        second = (await http.get("/api/approvals", params={"limit": 1, "offset": 1, "by": "age"})).json()
        none = (await http.get("/api/approvals", params={"workflow": "order"})).json()
        odd = [await http.get("/api/approvals", params=given) for given in ({"by": "name"}, {"offset": -1})]

        assert [row["record_id"] for row in every["approvals"]] == ["a1", "a2", "a3"]
        assert every["total"] == 3 and every["workflows"] == {"publish": 3}
        assert [row["record_id"] for row in second["approvals"]] == ["a2"] and second["total"] == 3
        assert none == {"approvals": [], "total": 0, "workflows": {"publish": 3}}
        assert [answer.status_code for answer in odd] == [422, 422]


async def test_an_edit_holds_the_version_that_was_read() -> None:
    async with opened() as client, calling(client) as http:
        await asking(client)
        version = (await http.get("/api/records/a1")).headers["etag"]
        edit = {"data": {"keyword": "tea", "draft": "Better."}}
        good = await http.put("/api/records/a1/data", json=edit, headers={"If-Match": version})
        stale = await http.put("/api/records/a1/data", json=edit, headers={"If-Match": version})
        odd = await http.put("/api/records/a1/data", json=edit, headers={"If-Match": "x"})

        assert (good.status_code, stale.status_code, odd.status_code) == (200, 412, 400)
        assert good.json()["data"]["draft"] == "Better."


async def test_an_answer_to_what_was_not_shown_is_refused() -> None:
    async with opened() as client, calling(client) as http:
        await asking(client)
        refused = await http.post("/api/records/a1/answer", json={"choice": "approve", "seen": "0" * 64})
        unknown = await http.post("/api/records/a1/answer", json={"choice": "perhaps"})

        assert (refused.status_code, unknown.status_code) == (409, 400)
        assert "has changed" in refused.json()["message"]
        assert (await client.get("a1")).status is Status.NEEDS_APPROVAL


async def test_what_was_edited_meanwhile_is_not_approved_with_what_was_shown_before() -> None:
    async with opened() as client, calling(client) as http:
        await asking(client)
        [wait] = (await http.get("/api/records/a1")).json()["record"]["waits"]
        link = (await http.post("/api/records/a1/link", json={"person": "ann"})).json()["url"].partition("#")[2]
        await http.put("/api/records/a1/data", json={"data": {"keyword": "tea", "draft": "Buy now!"}})
        old = {"choice": "approve", "seen": wait["hash"]}
        at_once = await http.post("/api/records/a1/answer", json=old)
        await client.work()
        later = await http.post("/api/records/a1/answer", json=old)
        by_link = await http.post("/api/link/answer", json={"link": unquote(link), "choice": "approve"})

        assert [answer.status_code for answer in (at_once, later, by_link)] == [409, 409, 410]
        assert (await client.get("a1")).status is Status.NEEDS_APPROVAL


@pytest.mark.parametrize("edits", [r'{"draft":"\ud800"}', r'{"\udfff":1}', r'{"draft":{"a":["\udc00"]}}'])
async def test_an_answer_whose_edits_are_no_text_is_refused(edits: str) -> None:
    async with opened() as client, calling(client) as http:
        await asking(client)
        body = f'{{"choice":"approve","edits":{edits}}}'
        answer = await http.post("/api/records/a1/answer", content=body, headers={"content-type": "application/json"})

        assert answer.status_code == 400, answer.text
        assert (await client.get("a1")).status is Status.NEEDS_APPROVAL


async def test_errors_are_grouped_by_cause_and_a_group_is_retried() -> None:
    BROKEN.update({"tea", "coffee"})
    async with opened() as client, calling(client) as http:
        for record_id, keyword in (("a1", "tea"), ("a2", "coffee"), ("a3", "milk")):
            await asking(client, record_id, keyword)
            await client.answer(record_id, "approve")
        await client.work()
        [group] = (await http.get("/api/errors")).json()
        BROKEN.clear()
        where = {"workflow": "publish", "step": "post", "cause": group["cause"]}
        retried = (await http.post("/api/many", json={"act": "retry", "where": where})).json()
        await client.work()

        assert group["count"] == 2 and group["step"] == "post"
        assert retried == {"done": 2, "refused": []}
        assert {(await client.get(name)).status for name in ("a1", "a2", "a3")} == {Status.DONE}


def test_a_cause_leaves_out_what_differs() -> None:
    assert cause("site 'a' gave 503 after 1.5 s") == cause("site 'b' gave 502 after 20 s")
    assert cause("") == "no reason was given"


async def test_many_are_answered_with_what_was_shown_and_refusals_are_told() -> None:
    async with opened() as client, calling(client) as http:
        await asking(client, "a1")
        await asking(client, "a2")
        grid = (await http.get("/api/grid")).json()
        seen = {row[0]: row[-1] for row in grid["rows"]}
        body = {"act": "answer", "choice": "approve", "record_ids": ["a1", "a2", "a3"], "seen": {"a1": seen["a1"]}}
        told = (await http.post("/api/many", json=body)).json()

        assert told["done"] == 1
        assert [row["record_id"] for row in told["refused"]] == ["a2", "a3"]


async def test_signals_moves_priorities_and_cancels() -> None:
    async with opened() as client, calling(client) as http:
        await client.start("order", {}, id="o1")
        await client.start("order", {}, id="o2")
        await client.work()
        sent = await http.post("/api/records/o1/signals/paid", json={"value": {"sum": 3}})
        urgent = await http.post("/api/records/o2/priority", json={"priority": 5})
        gone = await http.post("/api/records/o2/cancel", json={"reason": "not wanted"})
        illegal = await http.post("/api/records/o2/move", json={"step": "nowhere"})
        await client.work()

        assert [answer.status_code for answer in (sent, urgent, gone)] == [200, 200, 200]
        assert illegal.status_code in (400, 404, 409)
        assert urgent.json()["priority"] == 5
        assert (await http.get("/api/records/o1")).json()["record"]["result"] == {"sum": 3}
        assert gone.json()["status"] == "CANCELLED"


async def test_a_halt_is_told_everywhere_and_refuses_starts() -> None:
    async with opened() as client, calling(client) as http:
        halted = (await http.post("/api/halt", json={"reason": "smoke"})).json()
        refused = await http.post("/api/records", json={"workflow": "order"})
        standing = (await http.get("/api/standing")).json()
        resumed = (await http.post("/api/resume", json={})).json()
        paused = (await http.post("/api/pause", json={"workflow": "order"})).json()

        assert halted["halted"] == ["*"]
        assert (refused.status_code, refused.json()["error"]) == (423, "Halted")
        assert standing["controls"][0] | {"at": ""} == {
            "scope": "*",
            "halted": True,
            "paused": False,
            "by": "tester",
            "at": "",
            "reason": "smoke",
        }
        assert resumed["halted"] == []
        assert paused["paused"] == ["order"]


async def test_a_halt_says_how_many_records_it_stops_and_a_resume_how_many_go_on() -> None:
    async with opened() as client, calling(client) as http:
        nothing = (await http.get("/api/reach")).json()
        for name in ("a1", "a2", "a3", "a4"):
            await asking(client, name)
        await client.start("order", {}, id="o1")
        await client.answer("a4", "reject")
        await client.work()
        await client.cancel("a3")  # a person did that, and no resume takes it back
        before = (await http.get("/api/reach")).json()
        only = (await http.get("/api/reach", params={"workflow": "order"})).json()
        await http.post("/api/halt", json={"workflow": "publish"})
        halted = (await http.get("/api/reach")).json()
        still_held = (await http.get("/api/reach", params={"workflow": "publish"})).json()
        unknown = await http.get("/api/reach", params={"workflow": "nope"})
        resumed = (await http.post("/api/resume", json={"workflow": "publish", "cancelled": True})).json()
        await client.work()
        after = (await http.get("/api/reach")).json()

        assert set(nothing.values()) == {0}
        assert before | {"open": 3, "asking": 2, "held": 0} == before
        assert only["open"] == 1 and only["asking"] == 0
        # The halt of one workflow is no matter of a resume of all.
        assert halted | {"open": 1, "held": 0} == halted
        assert still_held | {"open": 0, "held": 2, "held_asking": 2, "more": False} == still_held
        assert unknown.status_code == 404
        assert resumed["returned"] == 2
        assert after == before


async def test_ids_with_slashes_and_other_letters_have_an_address() -> None:
    async with opened() as client, calling(client) as http:
        await client.start("order", {}, id="a/b c?d#e/ü")
        shown = await http.get("/api/records/a%2Fb%20c%3Fd%23e%2F%C3%BC")
        why = await http.get("/api/records/a%2fb%20c%3Fd%23e%2F%C3%BC/why")

        assert shown.json()["record"]["record_id"] == "a/b c?d#e/ü"
        assert why.json()["kind"] == "no worker"


@pytest.mark.parametrize("name", [".", "..", "...", "/.", "/..", "a/../b", ".hidden", "%2e%2e", "%1E."])
async def test_every_id_has_an_address_that_no_library_changes(name: str) -> None:
    async with opened() as client, calling(client) as http:
        await client.start("order", {}, id=name)
        where = f"/api/records/{part_of(name)}"
        shown = await http.get(where)
        paid = await http.post(f"{where}/signals/{part_of('..')}", json={"value": 1})
        edited = await http.put(f"{where}/data", json={"data": {"sum": 3}})

        assert shown.json()["record"]["record_id"] == name
        assert (paid.status_code, edited.status_code) == (400, 200)
        assert "never waits for a signal '..'" in paid.json()["message"]  # the name has come as it was sent


async def test_workflows_come_with_counts_and_a_drawing() -> None:
    async with opened() as client, calling(client) as http:
        await asking(client)
        told = {row["name"]: row for row in (await http.get("/api/workflows")).json()}
        drawn = await http.get("/api/workflows/publish/graph.svg")
        missing = await http.get("/api/workflows/publsh")

        assert told["publish"]["counts"] == [["review", "NEEDS_APPROVAL", 1]]
        assert drawn.headers["content-type"].startswith("image/svg+xml") and "1 NEEDS_APPROVAL" in drawn.text
        assert missing.status_code == 404 and "did you mean 'publish'" in missing.json()["message"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/api/records/none", None, 404),
        ("GET", "/api/nothing", None, 404),
        ("PATCH", "/api/records", None, 405),
        ("POST", "/api/records", {"workflow": "none"}, 404),
        ("POST", "/api/records", {"workflow": "publish"}, 400),
        ("POST", "/api/records", {"workflow": "publish", "dta": {}}, 422),
        ("POST", "/api/records", {"workflow": "order", "after": "99999999999999d"}, 400),
        ("POST", "/api/records", {"workflow": "order", "record_id": "a\x7fb"}, 400),
        ("POST", "/api/records/batch", {"workflow": "order", "items": [{"record_id": "a\x7fb"}]}, 400),
        ("POST", "/api/records/none/retry", None, 404),
        ("POST", "/api/many", {"act": "retry"}, 400),
        ("GET", "/api/records?status=LOST", None, 422),
        ("GET", "/api/records/a%00b", None, 404),
    ],
)
async def test_a_refusal_is_a_word_and_a_sentence(method: str, path: str, body: Any, status: int) -> None:
    async with opened() as client, calling(client) as http:
        answer = await http.request(method, path, json=body)

        assert answer.status_code == status
        assert set(answer.json()) == {"error", "message"}


async def test_no_traceback_leaves_the_process(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened() as client, calling(client) as http:

        async def broken() -> None:
            raise RuntimeError("the secret is 42")

        monkeypatch.setattr(client.ledger, "workers", broken)
        answer = await http.get("/api/workers")

        assert answer.status_code == 500
        assert "42" not in answer.text and "Traceback" not in answer.text
        assert "the secret is 42" in caplog.text


async def test_a_ledger_that_does_not_answer_is_told_by_readiness_not_by_health(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with opened() as client, calling(client) as http:
        ready = await http.get("/ready")

        async def down(*_: Any) -> None:
            raise LedgerUnavailable("the store is away")

        monkeypatch.setattr(client.ledger, "find", down)
        answers = [await http.get(path) for path in ("/health", "/ready", "/api/records")]

        assert ready.status_code == 200
        assert [answer.status_code for answer in answers] == [200, 503, 503]


async def test_two_acts_at_once_and_one_of_them_lands() -> None:
    async with opened() as client, calling(client) as http:
        await asking(client)
        body = {"choice": "approve"}
        answers = await asyncio.gather(*[http.post("/api/records/a1/answer", json=body) for _ in range(5)])

        assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409, 409]


async def test_the_api_is_the_same_on_postgres(postgres_url: str) -> None:
    async with opened(postgres_url) as client, calling(client) as http:
        started = await http.post("/api/records", json={"workflow": "publish", "data": {"keyword": "tea"}})
        await client.work()
        record_id = started.json()["record_id"]
        hash_ = (await http.get("/api/grid")).json()["rows"][0][-1]
        body = {"act": "answer", "choice": "approve", "record_ids": [record_id], "seen": {record_id: hash_}}
        told = (await http.post("/api/many", json=body)).json()
        await client.work()
        odd = [await http.get("/api/records", params={"text": text}) for text in ("\x00", "%", "'", "\ufffe")]

        assert told == {"done": 1, "refused": []}
        assert (await client.get(record_id)).status is Status.DONE
        assert [answer.status_code for answer in odd] == [400, 200, 200, 200]


async def test_every_address_that_answers_is_in_the_document() -> None:
    """Pages and files for the browser are none of the API, nor is what Google alone calls."""
    pages = {"/google/chat", "/", "/login", "/link", "/favicon.ico", "/static/{name}", "/api/openapi.json"}
    async with opened() as client, calling(client) as http:
        document = (await http.get("/api/openapi.json")).json()
        routes = [(route.path, route.methods) for route in app(client).routes if isinstance(route, Route)]
    known = {(path, method) for path, methods in routes for method in (methods or set()) - {"HEAD"}}
    told = {(path, method.upper()) for path, ways in document["paths"].items() for method in ways}

    assert ("/mcp", "POST") in told and ("/a2a/{mission}", "POST") in told and ("/login/oidc", "GET") in told
    assert {one for one in known if one[0] not in pages} == told
    for path, ways in document["paths"].items():
        for method, way in ways.items():
            assert way["responses"] and way["tags"] and way["summary"], (path, method)


async def test_a_record_tells_what_its_data_were_when_and_by_whom() -> None:
    long = "x" * 3000
    async with opened() as client, calling(client) as http:
        await asking(client)
        for draft in ("Mine.", long):
            edit = {"data": {"keyword": "tea", "draft": draft}}
            assert (await http.put("/api/records/a1/data", json=edit)).status_code == 200
        await client.work()  # it asks anew
        await http.post("/api/records/a1/answer", json={"choice": "approve", "edits": {"draft": "Yours."}})
        shown = (await http.get("/api/records/a1")).json()
        document = (await http.get("/api/openapi.json")).json()
        await client.work()
        done = (await http.get("/api/records/a1")).json()

    assert [(one["version"], one["kind"], one["by"]) for one in shown["versions"]] == [
        (9, "answered", "tester"),
        (6, "edited", "tester"),
        (5, "edited", "tester"),
        (3, "moved", ""),  # by its step
        (1, "started", "tester"),
    ]
    now, sixth, fifth, third, first = shown["versions"]
    assert (now["changes"], now["changed"]) == ({}, [])
    assert (sixth["changes"], sixth["changed"]) == ({}, ["draft"])  # too long for the log
    assert (fifth["changes"], fifth["changed"]) == ({"draft": ["Mine.", "Yours."]}, [])
    assert (third["changes"], third["changed"]) == ({"draft": ["About tea.", "Yours."]}, [])
    assert (first["changes"], first["changed"]) == ({"draft": ["", "Yours."]}, [])
    at = {event["version"]: event["at"] for event in shown["events"]}
    assert [one["at"] for one in shown["versions"]] == [at[9], at[6], at[5], at[3], at[1]]
    assert shown["versions_end"] == ""
    assert set(document["components"]["schemas"]["VersionOut"]["required"]) == set(now)
    assert [one["version"] for one in done["versions"]] == [9, 6, 5, 3, 1]  # its last step wrote nothing
    assert done["versions_end"] == ""


async def test_versions_that_would_fill_the_page_are_left_out_and_it_says_so() -> None:
    async with opened() as client, calling(client) as http:
        await client.start("order", {"n": 0}, id="o1")
        for number in range(1, 111):
            await client.edit("o1", {"n": number})
        many = (await http.get("/api/records/o1")).json()
        await client.start("order", {}, id="o2")
        for number in range(1, 40):  # each version lacks one field more
            await client.edit("o2", {f"f{n}": "y" * 1500 for n in range(number)})
        wide = (await http.get("/api/records/o2")).json()

    assert [one["version"] for one in many["versions"]] == list(range(111, 11, -1))
    assert many["versions"][-1]["changes"] == {"n": [11, 110]}
    assert many["versions_end"] == "What the data were before version 12 is not shown: that is too much."
    assert 10 < len(wide["versions"]) < 20
    assert len(wide["versions"][-1]["came"]) == len(wide["versions"]) - 1
    assert f"before version {wide['versions'][-1]['version']} is not shown" in wide["versions_end"]
