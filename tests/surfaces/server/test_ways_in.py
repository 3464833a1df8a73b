"""Links, hooks, pushes and signals: the good ones work once, the forged, repeated and old ones never."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
from typing import Any
from urllib.parse import unquote

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from quire.client.client import Client
from quire.model.record import Status
from quire.run.waits import signature
from quire.surfaces.server.auth.gate import Limits
from quire.surfaces.server.auth.tokens import Role, make_token
from quire.surfaces.server.hooks import sign
from quire.surfaces.waking import wake_secret
from quire.testing.clock import START, ToldClock
from tests.surfaces.server.conftest import calling, opened


async def asking(client: Client, record_id: str = "a1") -> None:
    await client.start("publish", {"keyword": "tea"}, id=record_id)
    await client.work()


async def made_link(http: httpx2.AsyncClient, record_id: str = "a1", **told: Any) -> str:
    body = {"person": "ann@x.eu"} | told
    answer = await http.post(f"/api/records/{record_id}/link", json=body)
    assert answer.status_code == 201, answer.text
    return unquote(str(answer.json()["url"]).partition("#")[2])


# -- links -----------------------------------------------------------------------------------------------------


async def test_a_link_shows_what_is_asked_and_answers_once_in_the_persons_name() -> None:
    async with opened() as client, calling(client) as http:
        await asking(client)
        link = await made_link(http)
        shown = [(await http.post("/api/link", json={"link": link})).json() for _ in range(3)]
        answer = await http.post("/api/link/answer", json={"link": link, "choice": "approve", "note": "good"})
        again = await http.post("/api/link/answer", json={"link": link, "choice": "reject"})

        assert shown[0]["asked"]["show"] == "About tea." and shown[0]["person"] == "ann@x.eu"
        assert (answer.status_code, again.status_code) == (200, 410)
        [answered] = [event for event in await client.events("a1") if event.kind == "answered"]
        assert '"by":"ann@x.eu"' in answered.body and '"via":"link"' in answered.body


async def test_a_link_that_is_forged_old_foreign_or_for_something_else_is_refused_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = ToldClock()
    async with opened(clock=clock) as client, opened(clock=clock) as other:
        await asking(client)
        await asking(other)
        async with calling(client) as http, calling(other) as elsewhere:
            link = await made_link(http, expires="1h")
            foreign = await made_link(elsewhere)
            token, _ = await make_token(client.ledger, "bob", Role.OPERATOR)

            async def tried(text: str, **headers: str) -> tuple[int, str]:
                body = {"link": text, "choice": "approve"}
                answer = await http.post("/api/link/answer", json=body, headers=headers)
                return answer.status_code, answer.json()["error"]

            results = [
                await tried(link[:-2] + ("aa" if link[-2:] != "aa" else "bb")),
                await tried(foreign),
                await tried("nothing"),
                await tried(link, Authorization=f"Bearer {token}"),
            ]
            clock.advance("2h")
            results.append(await tried(link))

        assert results == [(403, "Forged"), (403, "Forged"), (403, "Forged"), (403, "Foreign"), (410, "Expired")]
        assert (await client.get("a1")).status is Status.NEEDS_APPROVAL
        assert caplog.text.count("refused POST /api/link/answer") == 5
        assert link not in caplog.text


async def test_a_link_answers_only_the_question_that_it_was_made_for() -> None:
    clock = ToldClock()
    async with opened(clock=clock) as client, calling(client) as http:
        await asking(client)
        link = await made_link(http)
        clock.advance("1m")
        await client.retry("a1", step="draft")
        await client.work()
        answer = await http.post("/api/link/answer", json={"link": link, "choice": "approve"})

        assert (await client.get("a1")).status is Status.NEEDS_APPROVAL
        assert (answer.status_code, answer.json()["error"]) == (410, "Used")


async def test_only_an_admin_makes_links() -> None:
    async with opened() as client:
        await asking(client)
        token, _ = await make_token(client.ledger, "bob", Role.OPERATOR)
        async with calling(client, token=token) as http:
            answer = await http.post("/api/records/a1/link", json={"person": "boss"})
        assert answer.status_code == 403


# -- hooks -----------------------------------------------------------------------------------------------------


class Caller:
    """Somebody outside who knows a hook's secret."""

    def __init__(self, http: httpx2.AsyncClient, secret: str, clock: ToldClock) -> None:
        self.http = http
        self.secret = secret
        self.clock = clock

    def signed(self, data: Any, nonce: str, away: float = 0.0) -> dict[str, Any]:
        body = json.dumps(data).encode()
        time = str(int(self.clock.now() + away))
        made = sign(self.secret, time, nonce, body)
        headers = {"X-Quire-Time": time, "X-Quire-Nonce": nonce, "X-Quire-Signature": made}
        return {"content": body, "headers": headers | {"Content-Type": "application/json"}}

    async def call(self, data: Any, nonce: str, away: float = 0.0) -> httpx2.Response:
        return await self.http.post("/hooks/shop", **self.signed(data, nonce, away))


async def hooked(http: httpx2.AsyncClient, clock: ToldClock, **told: Any) -> Caller:
    answer = await http.put("/api/hooks/shop", json={"workflow": "order"} | told)
    assert answer.status_code == 200, answer.text
    return Caller(http, answer.json().get("secret", ""), clock)


async def test_a_signed_call_becomes_a_record_once() -> None:
    clock = ToldClock()
    async with opened(clock=clock) as client:
        async with calling(client) as http:
            caller = await hooked(http, clock)
            first = await caller.call({"sum": 3}, "nonce-0001")
            replayed = await caller.call({"sum": 3}, "nonce-0001")
            second = await caller.call({"sum": 3}, "nonce-0002")
        async with calling(client) as restarted:
            caller.http = restarted
            after_restart = await caller.call({"sum": 3}, "nonce-0001")

        assert [first.status_code, replayed.status_code, second.status_code] == [201, 409, 201]
        assert after_restart.status_code == 409
        assert len(await client.find()) == 2
        assert (await client.get(first.json()["record_id"])).data == '{"sum":3}'


@pytest.mark.parametrize("key_field", ["", "number"])
async def test_a_call_that_started_nothing_may_come_again_and_two_at_once_start_one(key_field: str) -> None:
    clock = ToldClock()
    async with opened(clock=clock) as client, calling(client) as http:
        caller = await hooked(http, clock, key_field=key_field)
        await client.halt()
        halted = await caller.call({"number": 7}, "nonce-0001")
        await client.resume()
        again = await caller.call({"number": 7}, "nonce-0001")
        replayed = await caller.call({"number": 7}, "nonce-0001")
        both = await asyncio.gather(*[caller.call({"number": 8}, "nonce-0002") for _ in range(2)])

        assert [answer.status_code for answer in (halted, again, replayed)] == [423, 201, 409]
        assert sorted(answer.status_code for answer in both) == [201, 409]
        assert len(await client.find()) == 2


async def test_events_with_a_key_of_their_own_are_one_record_however_often_they_come() -> None:
    clock = ToldClock()
    async with opened(clock=clock) as client, calling(client) as http:
        caller = await hooked(http, clock, key_field="number")
        answers = [await caller.call({"number": 7}, f"nonce-{n:04}") for n in range(3)]
        replayed = await caller.call({"number": 7}, "nonce-0000")
        keyless = await caller.call({"name": "x"}, "nonce-0009")

        assert [answer.status_code for answer in answers] == [201, 200, 200]
        assert (replayed.status_code, keyless.status_code) == (409, 400)
        assert len(await client.find()) == 1


async def test_unsigned_forged_and_old_calls_are_refused_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    clock = ToldClock()
    async with opened(clock=clock) as client, calling(client) as http:
        caller = await hooked(http, clock)
        forged = caller.signed({"sum": 3}, "nonce-0001")
        forged["content"] = b'{"sum": 300}'
        other = caller.signed({"sum": 3}, "nonce-0001")
        other["headers"] |= {"X-Quire-Nonce": "nonce-0002"}
        results = [
            (await http.post("/hooks/shop", json={"sum": 3})).status_code,
            (await http.post("/hooks/shop", **forged)).status_code,
            (await http.post("/hooks/shop", **other)).status_code,
            (await caller.call({"sum": 3}, "nonce-0003", away=-301)).status_code,
            (await caller.call({"sum": 3}, "nonce-0004", away=301)).status_code,
            (await http.post("/hooks/none", json={})).status_code,
        ]
        assert (await http.post("/hooks/shpo", json={})).json()[
            "message"
        ] == "there is no hook 'shpo'"  # and not which is
        rotated = await hooked(http, clock, secret_number=2)
        results.append((await caller.call({"sum": 3}, "nonce-0005")).status_code)

        assert results == [401, 403, 403, 403, 403, 404, 403]
        assert rotated.secret != caller.secret
        assert await client.find() == []
        assert caplog.text.count("refused POST /hooks/shop") == 6


def cuts(signed: bytes) -> list[tuple[str, str, bytes]]:
    """Every time, nonce and body whose signed bytes are these."""
    dots = [at for at, byte in enumerate(signed) if byte == ord(".")]
    return [
        (signed[:first].decode(), signed[first + 1 : second].decode(), signed[second + 1 :])
        for first, second in itertools.combinations(dots, 2)
    ]


@pytest.mark.parametrize("path", ["/hooks/shop", "/wake"])
@pytest.mark.parametrize("time", ["1767225600", "1767225600.123", "1767225600.12345678"])
@pytest.mark.parametrize("nonce", ["nonce-0001", "nonce.0001", "q.nonce-0001", "12345678.nonce-1"])
async def test_a_signed_call_is_accepted_in_one_cut_of_its_bytes_only(path: str, time: str, nonce: str) -> None:
    clock = ToldClock(1767225600.0)
    plenty = Limits(mistake_burst=1000)
    async with opened(clock=clock) as client, calling(client, limits=plenty) as http:
        caller = await hooked(http, clock)
        secret = caller.secret if path == "/hooks/shop" else wake_secret(client.keyring)
        body = b'{"sum": "1.{}.2.{\\"a\\": 3}"}'
        signature_ = sign(secret, time, nonce, body)
        codes = []
        for cut in [(time, nonce, body), *cuts(f"{time}.{nonce}.".encode() + body)]:
            headers = {"X-Quire-Time": cut[0], "X-Quire-Nonce": cut[1], "X-Quire-Signature": signature_}
            answer = await http.post(path, content=cut[2], headers=headers | {"Content-Type": "application/json"})
            codes.append(answer.status_code)

        good = "." not in time and "." not in nonce
        assert (codes[0] < 300) is good and sum(code < 300 for code in codes) <= 1, codes
        assert set(codes) <= {201, 202, 401, 409, 422}, codes
        assert len(await client.find()) == (1 if good and path == "/hooks/shop" else 0)


async def test_a_push_needs_the_token_of_its_account_and_becomes_a_record_once() -> None:
    clock = ToldClock()
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    stranger = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public: dict[str, Any] = json.loads(RSAAlgorithm.to_jwk(key.public_key()))
    jwks = {"keys": [public | {"kid": "k1", "alg": "RS256", "use": "sig"}]}
    good = {"aud": "quire", "email": "push@x.eu", "email_verified": True, "iat": START, "exp": START + 3600}

    def token(with_: Any = key, kid: str = "k1", **told: Any) -> dict[str, str]:
        text = jwt.encode({**good, **told}, with_, algorithm="RS256", headers={"kid": kid})
        return {"Authorization": f"Bearer {text}"}

    data = base64.b64encode(b'{"sum": 3}').decode()
    body = {"message": {"data": data, "messageId": "m1"}, "subscription": "s"}
    async with opened(clock=clock) as client, calling(client) as http:
        await hooked(http, clock, kind="pubsub", audience="quire", email="push@x.eu", jwks=jwks)
        refused = [
            (await http.post("/hooks/shop", json=body, headers=headers)).status_code
            for headers in (
                {},
                token(stranger),
                token(kid="k2"),
                token(aud="other"),
                token(email="else@x.eu"),
                token(exp=START - 60),
                {"Authorization": "Bearer x.y.z"},
            )
        ]
        answers = [await http.post("/hooks/shop", json=body, headers=token()) for _ in range(2)]
        broken = await http.post("/hooks/shop", json={"message": {"data": "%"}}, headers=token())

        assert refused == [401, 403, 403, 403, 403, 403, 403]
        assert [answer.status_code for answer in answers] == [201, 200]
        assert broken.status_code == 400
        [record] = await client.find()
        assert record.data == '{"sum":3}'


# -- signals ---------------------------------------------------------------------------------------------------


async def test_the_signed_address_of_a_signal_works_and_another_does_not() -> None:
    async with opened() as client, calling(client, loopback=False) as http:
        await client.start("order", {}, id="o/1")
        await client.work()
        assert client.keyring is not None
        key = signature(client.keyring, "signal", "o/1", "paid")
        forged = await http.post("/signal/o%2F1/paid?key=" + "0" * 40, json={"sum": 3})
        other = await http.post(f"/signal/o%2F1/refunded?key={key}", json={"sum": 3})
        good = await asyncio.gather(
            *[
                http.post(f"/signal/o%2F1/paid?key={key}", json={"sum": 3}, headers={"Idempotency-Key": "k"})
                for _ in range(2)
            ]
        )
        await client.work()

        assert (forged.status_code, other.status_code) == (403, 403)
        assert {answer.status_code for answer in good} <= {200, 409}
        assert (await client.get("o/1")).result == '{"sum":3}'
        assert len(await client.ledger.signals("o/1")) == 1
