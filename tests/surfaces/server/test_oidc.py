"""Signing in with OpenID Connect, and pushes with fetched keys: against a real provider on loopback."""

from __future__ import annotations

import base64
import logging
from pathlib import Path
from typing import Any

import httpx2
import pytest

from quire.errors import InputError
from quire.surfaces.config import load
from quire.surfaces.server import serve
from quire.surfaces.server.auth.oidc import read, role_of
from quire.surfaces.server.auth.tokens import Role, all_tokens, revoke_token
from quire.testing.clock import START, ToldClock
from tests.surfaces.server.conftest import calling, opened
from tests.surfaces.server.provider import Provider, provider

HERE = "http://quire.example.org"
PAGE = {"Origin": HERE, "X-Quire": "1"}


def told(there: Provider, **roles: str) -> dict[str, str]:
    return {"issuer": there.issuer, "client_id": "quire", "client_secret": "s3cret"} | (roles or {"operator": "@x.eu"})


async def signed_in(http: httpx2.AsyncClient) -> httpx2.Response:
    """The way of a browser: to the provider and back."""
    out = await http.get("/login/oidc")
    assert out.status_code == 303, out.text
    async with httpx2.AsyncClient() as browser:
        there = await browser.get(out.headers["location"])
    back = there.headers["location"]
    assert back.startswith(f"{HERE}/login/oidc/callback?")
    return await http.get(back)


def elsewhere(there: Provider, **roles: str) -> dict[str, Any]:
    return {"loopback": False, "base": HERE, "provider": read(told(there, **roles), HERE)}


async def test_a_person_signs_in_acts_under_their_name_and_is_revoked(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "quire.audit")
    clock = ToldClock()
    with provider() as there:
        there.now = START
        async with opened(clock=clock, public_url=HERE) as client, calling(client, **elsewhere(there)) as http:
            page = await http.get("/login")
            before = await http.get("/api/records")
            back = await signed_in(http)
            session = (await http.get("/api/session")).json()
            started = await http.post("/api/records", json={"workflow": "order", "record_id": "o1"}, headers=PAGE)
            admin = await http.post("/api/tokens", json={"name": "x"}, headers=PAGE)
            [token] = await all_tokens(client.ledger)
            await signed_in(http)
            again = await all_tokens(client.ledger)
            await revoke_token(client.ledger, token.token_id)
            revoked = await http.get("/api/records")
            await signed_in(http)
            clock.advance("13h")
            late = await http.get("/api/records")
            events = await client.events("o1")

    assert 'href="/login/oidc"' in page.text
    assert before.status_code == 401
    assert (back.status_code, back.headers["location"]) == (303, "/")
    cookies = back.headers.get_list("set-cookie")
    assert any("quire_session" in text and "SameSite=strict" in text and "HttpOnly" in text for text in cookies)
    assert session == {"name": "ann@x.eu", "role": "operator", "way": "session"}
    assert started.status_code == 201 and '"by":"ann@x.eu"' in events[0].body
    assert admin.status_code == 403
    assert len(again) == 1 and token.made_by == there.issuer
    assert (revoked.status_code, late.status_code) == (401, 401)
    assert "sign in 'ann@x.eu' by 'ann@x.eu'" in caplog.text and "s3cret" not in caplog.text


@pytest.mark.parametrize(
    "lies",
    [
        {"nonce": "another"},
        {"aud": "another"},
        {"iss": "https://evil.example"},
        {"exp": START - 3600, "iat": START - 7200},
        {"iat": START + 3600},
        {"aud": ["quire", "another"]},
        {"email": "eve@y.eu"},
        {"email_verified": False},
    ],
    ids=str,
)
async def test_a_token_that_is_not_right_opens_nothing_and_is_logged(
    lies: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    with provider() as there:
        there.now, there.lies = START, lies
        async with opened(clock=ToldClock(), public_url=HERE) as client, calling(client, **elsewhere(there)) as http:
            back = await signed_in(http)
            after = await http.get("/api/records")

            assert (back.status_code, after.status_code) == (403, 401)
            assert not await all_tokens(client.ledger)
    assert "refused GET /login/oidc/callback" in caplog.text


async def test_a_session_that_was_revoked_stays_so_when_the_person_signs_in_again() -> None:
    with provider() as there:
        there.now = START
        async with opened(clock=ToldClock(), public_url=HERE) as client, calling(client, **elsewhere(there)) as http:
            cookies = []

            async def entered() -> list[int]:
                """Sign in once more; what each session so far opens."""
                await signed_in(http)
                cookies.append(f"quire_session={http.cookies.get('quire_session')}")
                http.cookies.clear()
                return [(await http.get("/api/records", headers={"Cookie": one})).status_code for one in cookies]

            beside = [await entered(), await entered()]
            [token] = await all_tokens(client.ledger)
            await revoke_token(client.ledger, token.token_id)
            after = await entered()

    assert beside == [[200], [200, 200]]
    assert after == [401, 401, 200]


async def test_an_e_mail_that_is_not_verified_names_nobody() -> None:
    with provider() as there:
        there.now, there.lies = START, {"email": "boss@x.eu", "email_verified": False}
        to = elsewhere(there, operator="groups:ops")
        async with opened(clock=ToldClock(), public_url=HERE) as client, calling(client, **to) as http:
            await signed_in(http)
            session = (await http.get("/api/session")).json()
            there.lies = {"sub": ""}
            nobody = await signed_in(http)

    assert session == {"name": "42", "role": "operator", "way": "session"}
    assert nobody.status_code == 403


async def test_a_sign_in_that_began_elsewhere_is_refused() -> None:
    with provider() as there:
        there.now = START
        clock = ToldClock()
        async with opened(clock=clock, public_url=HERE) as client, calling(client, **elsewhere(there)) as http:
            out = await http.get("/login/oidc")
            async with httpx2.AsyncClient() as browser:
                back = (await browser.get(out.headers["location"])).headers["location"]
            trip = http.cookies.get("quire_oidc")
            http.cookies.clear()
            without = await http.get(back)
            forged = await http.get(back, headers={"Cookie": "quire_oidc=x.y.z"})
            mixed = await http.get(f"{back}x", headers={"Cookie": f"quire_oidc={trip}"})
            denied = await http.get(
                back.replace("code=", "error=access_denied&c="), headers={"Cookie": f"quire_oidc={trip}"}
            )
            good = await http.get(back, headers={"Cookie": f"quire_oidc={trip}"})
            replayed = await http.get(back, headers={"Cookie": f"quire_oidc={trip}"})

    assert [answer.status_code for answer in (without, forged, mixed, denied)] == [403] * 4
    assert good.status_code == 303
    assert replayed.status_code == 503  # the provider takes a code once


async def test_keys_are_kept_and_rotated_and_a_flood_of_forgeries_fetches_none() -> None:
    clock = ToldClock()
    with provider() as there:
        there.now = START
        async with opened(clock=clock, public_url=HERE) as client, calling(client, **elsewhere(there)) as http:
            first = await signed_in(http)
            again = await signed_in(http)
            fetched = there.asked["/keys"]
            there.signing = 1  # a key that is not published: forged
            forged = [(await signed_in(http)).status_code for _ in range(3)]
            flooded = there.asked["/keys"]
            clock.advance("2m")
            there.published, there.now = [1], clock.now()
            rotated = await signed_in(http)
            there.signing = 0
            old = await signed_in(http)

    assert (first.status_code, again.status_code, fetched) == (303, 303, 1)
    assert forged == [403, 403, 403] and flooded == 1
    assert rotated.status_code == 303 and old.status_code == 403


async def test_without_a_provider_there_is_no_such_door_and_one_that_is_down_is_told() -> None:
    async with opened() as client, calling(client) as http:
        assert (await http.get("/login/oidc")).status_code == 404
        assert "login/oidc" not in (await http.get("/login")).text
    with provider() as there:
        there.down = True
        async with opened(public_url=HERE) as client, calling(client, **elsewhere(there)) as http:
            answer = await http.get("/login/oidc")
            assert answer.status_code == 503 and answer.json()["error"] == "Provider"


async def test_a_provider_is_enough_to_listen_on_another_address(tmp_path: Path) -> None:
    import asyncio

    with provider() as there:
        lines = "\n".join(f'{name} = "{value}"' for name, value in told(there).items())
        (tmp_path / "quire.toml").write_text(f'public_url = "{HERE}"\n[oidc]\n{lines}\n')
        config = load(start=tmp_path, environ={})
        async with opened(public_url=HERE) as client:
            started: asyncio.Future[int] = asyncio.get_running_loop().create_future()
            serving = asyncio.ensure_future(serve(client, host="0.0.0.0", port=0, config=config, started=started))
            port = await started
            async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}") as http:
                answers = [(await http.get(path)).status_code for path in ("/api/records", "/login", "/login/oidc")]
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
    assert answers == [401, 200, 303]


def test_the_highest_role_counts_and_only_a_verified_mail() -> None:
    roles = {"viewer": "@x.eu", "operator": "groups:ops, Bob@X.eu", "admin": "ann@x.eu"}
    found = read({"issuer": "https://i.eu", "client_id": "q"} | roles, HERE)
    assert found is not None

    def role(**claims: Any) -> Role | None:
        return role_of(found, claims)

    assert role(email="ANN@x.eu", email_verified=True) is Role.ADMIN
    assert role(email="ann@x.eu", email_verified=False) is None
    assert role(email="ann@x.eu", email_verified="true") is None
    assert role(email="bob@x.eu", email_verified=True) is Role.OPERATOR
    assert role(email="eve@x.eu", email_verified=True) is Role.VIEWER
    assert role(email="eve@evilx.eu", email_verified=True) is None
    assert role(groups=["ops"]) is Role.OPERATOR and role(groups="ops") is Role.OPERATOR
    assert role(groups="opsers") is None and role(groups=[]) is None


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"issuer": "http://i.eu"}, "must be an https address"),
        ({"isuer": "x"}, "did you mean 'issuer'"),
        ({"client_id": ""}, "client_id is missing"),
        ({"client_secret": "$NOT_THERE"}, "has no NOT_THERE"),
        ({"operator": ""}, "nobody has a role"),
    ],
)
def test_what_cannot_be_configured_is_one_sentence(changed: dict[str, str], words: str) -> None:
    right = {"issuer": "https://i.eu", "client_id": "q", "operator": "@x.eu"}
    with pytest.raises(InputError, match=words):
        read(right | changed, HERE, {})
    with pytest.raises(InputError, match="public_url"):
        read(right, "", {})


async def test_a_push_is_checked_with_fetched_keys_which_may_be_rotated(caplog: pytest.LogCaptureFixture) -> None:
    clock = ToldClock()
    body = {"message": {"data": base64.b64encode(b'{"sum": 3}').decode(), "messageId": "m1"}}
    with provider() as there:
        there.now, there.person = START, {"email": "push@x.eu", "email_verified": True}
        hook = {"workflow": "order", "kind": "pubsub", "audience": "quire", "email": "push@x.eu"}
        async with opened(clock=clock) as client, calling(client) as http:
            put = [
                await http.put("/api/hooks/shop", json=hook | more)
                for more in (
                    {"keys_url": f"{there.issuer}/keys"},
                    {"keys_url": "http://keys.example/k", "issuer": there.issuer},
                    {"keys_url": f"{there.issuer}/keys", "issuer": there.issuer},
                )
            ]

            async def pushed(**claims: Any) -> int:
                headers = {"Authorization": f"Bearer {there.token(**({'aud': 'quire'} | claims))}"}
                return (await http.post("/hooks/shop", json=body, headers=headers)).status_code

            good = [await pushed(), await pushed()]
            refused = [
                await pushed(aud="other"),
                await pushed(iss="https://evil.example"),
                await pushed(email="else@x.eu"),
                await pushed(email_verified=False),
                await pushed(exp=START - 60),
            ]
            there.signing, there.published = 2, [2]
            early = await pushed()
            clock.advance("2m")
            there.now = clock.now()
            rotated = await pushed()
            default = await http.put("/api/hooks/google", json=hook)
            [record] = await client.find()

    assert [answer.status_code for answer in put] == [400, 400, 200]
    assert good == [201, 200] and refused == [403] * 5
    assert (early, rotated) == (403, 200)
    assert default.status_code == 200 and record.data == '{"sum":3}'
    assert "another issuer's" in caplog.text
