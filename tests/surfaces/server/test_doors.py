"""Who comes in, and who does not."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import socket
from pathlib import Path
from typing import Any

import pytest

from quire.errors import InputError
from quire.model.record import Status
from quire.surfaces.config import load
from quire.surfaces.server import Limits, serve
from quire.surfaces.server.auth.gate import Buckets, is_loopback
from quire.surfaces.server.auth.tokens import Role, all_tokens, make_token, revoke_token
from quire.surfaces.server.refusal import Refusal
from quire.testing.clock import ToldClock
from tests.surfaces.server.conftest import calling, opened

ELSEWHERE: dict[str, Any] = {"loopback": False, "base": "http://quire.example.org"}


async def test_another_address_without_a_token_refuses_to_start(tmp_path: Path) -> None:
    async with opened() as client:
        with pytest.raises(InputError, match="nobody has a token"):
            await serve(client, host="0.0.0.0", port=0)
        with pytest.raises(InputError, match="nobody has a token"):
            await serve(client, host="", port=0, config=load(start=tmp_path, environ={}))

        text, token = await make_token(client.ledger, "ann", expires="1h")
        await revoke_token(client.ledger, token.token_id)
        with pytest.raises(InputError, match="nobody has a token"):
            await serve(client, host="::", port=0)
        assert text not in str(await client.ledger.settings(""))


async def test_with_a_token_another_address_starts_and_asks_for_it() -> None:
    import httpx2

    async with opened() as client:
        text, _ = await make_token(client.ledger, "ann", Role.OPERATOR)
        started: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        serving = asyncio.ensure_future(serve(client, host="0.0.0.0", port=0, started=started))
        port = await started
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}") as http:
            stranger = await http.get("/api/records")
            ann = await http.get("/api/records", headers={"Authorization": f"Bearer {text}"})
            page = await http.get("/")
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)

        assert (stranger.status_code, ann.status_code, page.status_code) == (401, 200, 200)


async def test_a_taken_port_is_an_os_error() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        async with opened() as client:
            with pytest.raises(OSError, match="is taken by another program; choose another port"):
                await serve(client, port=taken.getsockname()[1])


@pytest.mark.parametrize(
    ("role", "statuses"),
    [(Role.VIEWER, (200, 403, 403)), (Role.OPERATOR, (200, 201, 403)), (Role.ADMIN, (200, 201, 201))],
)
async def test_each_role_does_what_it_may(role: Role, statuses: tuple[int, ...]) -> None:
    async with opened() as client:
        text, _ = await make_token(client.ledger, "ann", role)
        async with calling(client, token=text, **ELSEWHERE) as http:
            look = await http.get("/api/records")
            start = await http.post("/api/records", json={"workflow": "order"})
            token = await http.post("/api/tokens", json={"name": "bob"})

        assert (look.status_code, start.status_code, token.status_code) == statuses


async def test_a_viewer_cannot_act_at_all() -> None:
    async with opened() as client:
        text, _ = await make_token(client.ledger, "ann", Role.VIEWER)
        await client.start("order", {}, id="o1")
        async with calling(client, token=text, **ELSEWHERE) as http:
            document = (await http.get("/api/openapi.json")).json()
            acts = [
                (method, path)
                for path, ways in document["paths"].items()
                for method in ways
                if method != "get" and path.startswith("/api/") and not path.startswith(("/api/session", "/api/link"))
            ]
            answers = []
            for method, path in acts:
                address = path.replace("{record_id}", "o1").replace("{signal}", "paid")
                address = address.replace("{token_id}", "x").replace("{name}", "x")
                answers.append((await http.request(method.upper(), address, json={})).status_code)

        assert len(acts) >= 18
        # A body that does not fit may be told first; nothing is ever done.
        assert set(answers) <= {403, 422} and answers.count(403) >= 8
        assert (await client.get("o1")).version == 1


async def test_revoked_expired_and_forged_tokens_open_nothing(caplog: pytest.LogCaptureFixture) -> None:
    clock = ToldClock()
    async with opened(clock=clock) as client:
        good, _ = await make_token(client.ledger, "ann", Role.ADMIN)
        short, _ = await make_token(client.ledger, "bob", expires="1h")
        async with calling(client, **ELSEWHERE) as http:

            async def status(text: str) -> int:
                answer = await http.get("/api/records", headers={"Authorization": f"Bearer {text}"})
                return answer.status_code

            before = [await status(good), await status(short), await status(good[:-1] + "x"), await status("qt_x_y")]
            clock.advance("2h")
            [ann] = [token for token in await all_tokens(client.ledger) if token.name == "ann"]
            answer = await http.delete(f"/api/tokens/{ann.token_id}", headers={"Authorization": f"Bearer {good}"})
            after = [await status(good), await status(short)]

        assert before == [200, 200, 401, 401]
        assert answer.status_code == 200 and after == [401, 401]
        assert "refused GET" in caplog.text and good not in caplog.text


async def test_callers_of_the_configuration_come_in_with_their_key() -> None:
    hash_ = hashlib.sha256(b"the key").hexdigest()
    async with opened() as client:
        async with calling(client, token="the key", callers={"ci": f"viewer:{hash_}"}, **ELSEWHERE) as http:
            told = (await http.get("/api/session")).json()
        with pytest.raises(InputError, match="is not a role"):
            async with calling(client, callers={"ci": f"king:{hash_}"}):
                pass

        assert told == {"name": "ci", "role": "viewer", "way": "token"}


async def test_a_session_is_a_strict_cookie_and_acts_only_from_our_own_page() -> None:
    async with opened() as client:
        text, token = await make_token(client.ledger, "ann", Role.OPERATOR)
        async with calling(client, **ELSEWHERE) as http:
            wrong = await http.post("/api/session", json={"token": "nothing"})
            signed_in = await http.post("/api/session", json={"token": text})
            body = {"workflow": "order"}
            page = {"Origin": "http://quire.example.org", "X-Quire": "1"}
            bare = await http.post("/api/records", json=body)
            foreign = await http.post("/api/records", json=body, headers=page | {"Origin": "http://evil.example"})
            other_site = await http.post("/api/records", json=body, headers=page | {"Sec-Fetch-Site": "cross-site"})
            unmarked = await http.post("/api/records", json=body, headers={"Origin": "http://quire.example.org"})
            ours = await http.post("/api/records", json=body, headers=page)
            await revoke_token(client.ledger, token.token_id)
            revoked = await http.get("/api/records")

        cookie = signed_in.headers["set-cookie"].lower()
        assert "httponly" in cookie and "samesite=strict" in cookie and text not in cookie
        assert wrong.status_code == 401
        assert [answer.status_code for answer in (bare, foreign, other_site, unmarked)] == [403] * 4
        assert ours.status_code == 201
        assert revoked.status_code == 401


async def test_a_copied_cookie_opens_nothing_after_the_sign_out_and_other_sessions_go_on() -> None:
    clock = ToldClock()
    async with opened(clock=clock) as client:
        text, token = await make_token(client.ledger, "ann", Role.OPERATOR)
        page = {"Origin": "http://quire.example.org", "X-Quire": "1"}
        async with calling(client, **ELSEWHERE) as http, calling(client, **ELSEWHERE) as other:
            await http.post("/api/session", json={"token": text})
            await other.post("/api/session", json={"token": text})
            copied = {"Cookie": f"quire_session={http.cookies['quire_session']}"}
            before = await http.get("/api/records")
            out = await http.delete("/api/session", headers=page)
            gone = await http.get("/api/records")
            elsewhere = await other.get("/api/records")
        async with calling(client, **ELSEWHERE) as restarted:
            after = await restarted.get("/api/records", headers=copied)
            again = await restarted.delete("/api/session", headers=page | copied)

            # What the ledger keeps of it goes when the cookie could open nothing any more.
            clock.advance(13 * 3600)
            await restarted.post("/api/session", json={"token": text})
            await restarted.delete("/api/session", headers=page)
        kept = await client.ledger.setting(f"session/{token.token_id}")

        assert [answer.status_code for answer in (before, out, gone, elsewhere)] == [200, 200, 401, 200]
        assert (after.status_code, again.status_code) == (401, 200)
        assert kept is not None and len(json.loads(kept.value)) == 1


async def test_on_loopback_a_foreign_page_or_name_or_proxy_gets_nothing() -> None:
    async with opened() as client:
        async with calling(client) as http:
            body = {"workflow": "order"}
            script = await http.post("/api/records", json=body)
            foreign = await http.post("/api/records", json=body, headers={"Origin": "http://evil.example"})
            rebound = await http.get("/api/records", headers={"Host": "evil.example"})
            proxied = await http.get("/api/records", headers={"X-Forwarded-For": "10.0.0.1"})
            named = (await http.get("/api/session", headers={"X-Quire-As": "bj%C3%B6rn"})).json()

        assert script.status_code == 201
        assert foreign.status_code == 403
        assert (rebound.status_code, proxied.status_code) == (401, 401)
        assert named == {"name": "björn", "role": "admin", "way": "local"}


async def test_every_answer_carries_the_headers_and_no_page_has_inline_scripts() -> None:
    async with opened() as client, calling(client) as http:
        answers = [
            await http.get(path) for path in ("/", "/login", "/link", "/api/records", "/nothing", "/static/app.js")
        ]
        names = ("index.html", "login.html", "link.html")

        for answer in answers:
            assert "default-src 'none'" in answer.headers["content-security-policy"]
            assert "unsafe" not in answer.headers["content-security-policy"]
            assert answer.headers["x-content-type-options"] == "nosniff"
        for name in names:
            text = (await http.get(f"/static/{name}")).text
            assert "onclick" not in text and "<style" not in text and "<script>" not in text
        assert (await http.get("/static/..%2f..%2fdoors.py")).status_code == 404


async def test_no_script_of_the_dashboard_makes_markup_of_data() -> None:
    folder = Path(__file__).parents[3] / "src/quire/surfaces/server/static"
    for path in folder.glob("*.js"):
        text = path.read_text()
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "http://", "https://"):
            assert word not in text.replace("http://www.w3.org/2000/svg", ""), f"{path.name}: {word}"


async def test_a_large_body_is_refused_before_it_is_read() -> None:
    async with opened() as client, calling(client, limits=Limits(body_bytes=1000)) as http:
        read = 0

        async def endless() -> Any:
            nonlocal read
            while True:
                read += 500
                yield b"x" * 500

        stated = await http.post("/api/records", content=b"x", headers={"Content-Length": str(100 * 1024 * 1024)})
        counted = await http.post("/api/records", content=endless(), headers={"Content-Type": "application/json"})

        assert (stated.status_code, counted.status_code) == (413, 413)
        assert read <= 5000


async def test_a_100_mb_body_is_refused_over_the_network_before_it_is_sent() -> None:
    async with opened() as client:
        started: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        serving = asyncio.ensure_future(serve(client, port=0, started=started))
        reader, writer = await asyncio.open_connection("127.0.0.1", await started)
        head = "POST /api/records HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {100 * 1024 * 1024}\r\n\r\n".encode() + b"x" * 1000)
        line = await reader.readline()
        writer.close()
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)

        assert b"413" in line


async def test_too_many_requests_are_told_when_to_come_again() -> None:
    clock = ToldClock()
    limits = Limits(rate=1.0, burst=3, mistake_burst=2, mistake_rate=0.1)
    async with opened(clock=clock) as client, calling(client, limits=limits) as http:
        answers = [await http.get("/api/records") for _ in range(4)]
        clock.advance("2s")
        later = await http.get("/api/records")
        guesses = [await http.post("/api/session", json={"token": "guess"}) for _ in range(1)]
        clock.advance("10s")
        guesses += [await http.post("/api/session", json={"token": "guess"}) for _ in range(3)]

        assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
        assert int(answers[-1].headers["retry-after"]) >= 1
        assert later.status_code == 200
        assert [answer.status_code for answer in guesses] == [401, 401, 401, 429]


async def test_every_act_leaves_an_audit_line_with_its_actor(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "quire.audit")
    async with opened() as client:
        text, _ = await make_token(client.ledger, "ann@x.eu", Role.OPERATOR)
        async with calling(client, token=text, **ELSEWHERE) as http:
            await http.post("/api/records", json={"workflow": "order", "record_id": "o1"})
            await http.post("/api/records/o1/cancel", json={"reason": "no"})
            await http.post("/api/halt", json={"reason": "no more"})

        lines = [record.getMessage() for record in caplog.records if record.name == "quire.audit"]
        assert [line.partition(" by ")[0] for line in lines] == ["start 'o1'", "cancel 'o1'", "halt '*'"]
        assert all("'ann@x.eu' (token" in line for line in lines)
        events = await client.events("o1")
        assert all('"by":"ann@x.eu"' in event.body for event in events)
        assert (await client.get("o1")).status is Status.CANCELLED


def test_what_is_loopback() -> None:
    assert all(is_loopback(host) for host in ("127.0.0.1", "localhost", "::1", "[::1]", "127.8.8.8"))
    assert not any(is_loopback(host) for host in ("", "0.0.0.0", "::", "192.168.1.1", "quire.example.org"))


def test_a_flood_of_names_fills_no_memory() -> None:
    buckets = Buckets(ToldClock(), most=100)
    for number in range(1000):
        buckets.take(str(number), 1.0, 1)
    assert len(buckets._kept) == 100


def test_a_refusal_survives_pickling() -> None:
    import pickle

    again = pickle.loads(pickle.dumps(Refusal(403, "Forged", "no", {"A": "b"})))
    assert (again.status, again.error, str(again), again.headers) == (403, "Forged", "no", {"A": "b"})
