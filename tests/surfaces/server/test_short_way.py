"""The short way answers as FastAPI does, and what it does not take FastAPI answers."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.routing import APIRoute

from quire.surfaces.server import api
from quire.surfaces.server.auth.tokens import Role, make_token
from quire.surfaces.server.short_way import ShortWay
from tests.surfaces.server.conftest import calling, opened

#: Method, address, body; in order and not in order.
READS: list[tuple[str, str, Any]] = [
    ("GET", "/api/records", None),
    ("GET", "/api/records?status=WAITING&status=PENDING&limit=2", None),
    ("GET", "/api/records?limit=0", None),
    ("GET", "/api/records?limit=many", None),
    ("GET", "/api/records?status=NOPE", None),
    ("GET", "/api/records?limit=1&limit=2&unknown=1", None),
    ("GET", "/api/records?order=sideways", None),
    ("GET", "/api/records?text=%00", None),
    ("GET", f"/api/records?text={'x' * 501}", None),
    ("GET", "/api/records/o1", None),
    ("GET", "/api/records/nobody", None),
    ("GET", "/api/records/a%2Fb", None),
    ("GET", f"/api/records/{'x' * 501}", None),
    ("GET", "/api/records/o1/why", None),
    ("GET", "/api/records/o1/events?after=1&limit=1", None),
    ("GET", "/api/records/o1/events?after=-1", None),
    ("GET", "/api/records//why", None),
    ("GET", "/api/records/o1/", None),
    ("GET", "/api/nothing", None),
    ("GET", "/api/workflows/order", None),
    ("GET", "/api/workflows/order/graph.svg", None),
    ("GET", "/api/grid?limit=1", None),
    ("GET", "/api/missions/o1", None),
    ("DELETE", "/api/records/o1", None),
    ("POST", "/api/records", {"workflow": "nobody"}),
    ("POST", "/api/records", {"workflow": "order", "surplus": 1}),
    ("POST", "/api/records", []),
    ("POST", "/api/records/o1/priority", {"priority": "much"}),
    ("POST", "/api/records/o1/priority", {"priority": 5}),
    ("POST", "/api/records/o1/move", {}),
    ("PUT", "/api/records/o1/data", {"data": 1}),
]


def varying(answer: Any) -> Any:
    """An answer without the moments that differ from one call to the next."""
    if isinstance(answer, dict):
        return {
            name: varying(value)
            for name, value in answer.items()
            if not name.endswith("_at") and name not in ("now", "sentence", "wall_seconds")
        }
    return [varying(value) for value in answer] if isinstance(answer, list) else answer


@pytest.mark.parametrize(("method", "path", "body"), READS)
async def test_both_ways_answer_alike(method: str, path: str, body: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened() as client, calling(client) as http:
        await client.start("order", {"amount": 1}, id="o1")
        await client.start("order", {}, id="a/b")
        short = await http.request(method, path, json=body)
        monkeypatch.setattr(ShortWay, "find", lambda *_: None)
        long = await http.request(method, path, json=body)

    assert short.status_code == long.status_code
    assert short.headers.get("content-type") == long.headers.get("content-type")
    assert short.headers.get("etag") == long.headers.get("etag")
    if short.headers.get("content-type") == "application/json":
        assert varying(short.json()) == varying(long.json())
    else:
        assert short.content == long.content


async def test_what_is_in_order_does_not_go_through_generic_routing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def long_way(*_: Any) -> None:
        raise AssertionError("this went the long way")

    monkeypatch.setattr(APIRoute, "handle", long_way)
    async with opened() as client, calling(client) as http:
        started = await http.post("/api/records", json={"workflow": "order", "record_id": "o1"})
        sent = await http.post("/api/records/o1/signals/paid", json={"value": 1})
        without_body = await http.post("/api/records/o1/cancel")
        shown = await http.get("/api/records/o1")

    assert [started.status_code, sent.status_code, without_body.status_code, shown.status_code] == [201, 200, 200, 200]
    assert shown.json()["record"]["status"] == "CANCELLED"


async def test_the_short_way_asks_who_may() -> None:
    async with opened() as client:
        text, _ = await make_token(client.ledger, "vera", Role.VIEWER)
        async with calling(client, token=text, loopback=False, base="http://elsewhere") as http:
            looked = await http.get("/api/records")
            acted = await http.post("/api/records", json={"workflow": "order"})
        async with calling(client, loopback=False, base="http://elsewhere") as http:
            unknown = await http.get("/api/records")
        found = await client.find()

    assert looked.status_code == 200
    assert acted.status_code == 403
    assert unknown.status_code == 401
    assert found == []


async def test_every_address_of_the_api_has_a_short_way() -> None:
    table = api.short_way(lambda *_: None)  # type: ignore[arg-type]  # nothing goes on to it
    missed = [
        (method, route.path)
        for route in api.ROUTES
        if isinstance(route, APIRoute)
        for method in route.methods or ()
        if table.find(method, route.path.replace("{", "").replace("}", "")) is None
    ]

    assert missed == []
