"""Sending over real HTTP and real TLS: signed, encrypted, and no secret in a log."""

from __future__ import annotations

import asyncio
import datetime
import hashlib
import hmac
import ipaddress
import logging
import ssl
from pathlib import Path

import pytest

from quire.clock import SYSTEM
from quire.errors import InputError
from quire.surfaces.alerts.channel import Alert, Alerts, body, read
from quire.surfaces.alerts.sending import NotSent, send
from tests.surfaces.alerts.servers import mail, web

ALERT = Alert("al_1", "error", "the site answers 503", 3, ("a", "b"), "job", "work")
SECRET = "a-secret-of-thirty-two-letters-00"
NOW = 1_767_225_600.25


def told(**table: str) -> Alerts:
    found = read(table, {"QUIRE_SMTP_PASSWORD": "open sesame", "SECRET": SECRET})
    assert found is not None
    return found


# -- webhooks --------------------------------------------------------------------------------------------------


def genuine(headers: dict[str, str], body: bytes, secret: str) -> bool:
    """What docs/alerts.md tells a receiver to do."""
    time, nonce = headers["x-quire-time"], headers["x-quire-nonce"]
    if not time.isdecimal() or not nonce.isalnum():
        return False
    made = hmac.new(secret.encode(), f"{time}.{nonce}.".encode() + body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(made, headers["x-quire-signature"])


async def test_a_webhook_is_signed_with_its_time_and_a_nonce_that_is_new_each_time() -> None:
    async with web() as site:
        alerts = told(ops=f"webhook:{site.url}/x", secret="$SECRET")
        for _ in range(2):
            await send(alerts, alerts.channels[0], ALERT, NOW)
    first, again = site.got

    assert genuine(first.headers, first.raw, SECRET) and genuine(again.headers, again.raw, SECRET)
    assert not genuine(first.headers, first.raw + b" ", SECRET)
    assert not genuine(first.headers, first.raw, "another secret")
    assert not genuine(first.headers | {"x-quire-time": "1767225601"}, first.raw, SECRET)
    cut = {"x-quire-time": "1767225600." + first.headers["x-quire-nonce"], "x-quire-nonce": '{"alert_id": "al_1"'}
    assert not genuine(first.headers | cut, first.raw, SECRET)
    assert first.headers["x-quire-time"] == "1767225600"
    assert first.headers["x-quire-nonce"] != again.headers["x-quire-nonce"]
    assert first.headers["x-quire-alert"] == again.headers["x-quire-alert"] == "al_1"
    assert first.body["record_ids"] == ["a", "b"]


async def test_a_chat_gets_no_signature_and_neither_does_a_webhook_without_a_secret() -> None:
    async with web() as site:
        chat, plain = told(ops=f"slack:{site.url}/x", secret="$SECRET"), told(ops=f"webhook:{site.url}/x")
        await send(chat, chat.channels[0], ALERT, NOW)
        await send(plain, plain.channels[0], ALERT, NOW)

    assert [("x-quire-signature" in one.headers) for one in site.got] == [False, False]


@pytest.mark.parametrize("way", ["gchat", "slack"])
def test_what_a_record_says_pings_nobody_and_hides_no_link_in_a_chat(way: str) -> None:
    loud = "<users/all> <!channel> <https://evil.example|the invoice>"
    channel = told(ops=f"{way}:https://chat.example/x").channels[0]
    text = body(channel, ALERT._replace(text=loud, workflow=loud))["text"]
    assert "<" not in text and ">" not in text and text.count("users/all") == 2


def test_a_secret_that_can_be_guessed_is_refused() -> None:
    with pytest.raises(InputError, match="16 random characters"):
        told(ops="webhook:https://example.org/x", secret="short")


@pytest.mark.parametrize("status", [200, 500])
async def test_the_address_of_a_chat_is_in_no_log_at_any_level(status: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with web() as site:
        site.statuses = [status]
        alerts = told(ops=f"gchat:{site.url}/spaces/AAA/messages?key=K-SECRET&token=T-SECRET")
        try:
            await send(alerts, alerts.channels[0], ALERT, NOW)
        except NotSent as error:
            logging.getLogger("quire.alerts").warning("not sent: %s", error)
    logged = caplog.text + "".join(str(one.args) + one.getMessage() for one in caplog.records)

    assert "SECRET" not in logged and "spaces/AAA" not in logged
    # Whoever else uses the library hears from it as before.
    logging.getLogger("httpx2").info("HTTP Request: GET https://example.org")
    assert "https://example.org" in caplog.text


# -- mail ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 with its key, made here."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "mail of a test")])
    today = datetime.datetime.fromtimestamp(SYSTEM.now(), datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(today - datetime.timedelta(days=1))
        .not_valid_after(today + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "mail.pem"
    kept = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(made.public_bytes(serialization.Encoding.PEM) + kept)
    return path


@pytest.fixture
def offered(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


@pytest.mark.parametrize("way", ["smtps", "smtp"])
async def test_a_mail_goes_over_tls_with_the_password_inside_it(
    way: str, offered: ssl.SSLContext, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    async with mail(**({"tls": offered} if way == "smtps" else {"starttls": offered})) as post:
        assert post.url.startswith(f"{way}:")
        alerts = told(ops="mailto:ann@x.eu", smtp=post.url)
        await send(alerts, alerts.channels[0], ALERT, NOW)

    [(people, message)] = post.got
    assert people == ["ann@x.eu"]
    assert message["From"] == "quire@x.eu" and message["Message-ID"] == "<al_1@x.eu>"
    assert "AUTH" in post.words
    if way == "smtp":
        assert post.words.index("TLS") < post.words.index("AUTH") < post.words.index("MAIL")


@pytest.mark.parametrize("way", ["smtps", "smtp"])
async def test_a_mail_server_that_nobody_vouches_for_gets_neither_password_nor_mail(
    way: str, offered: ssl.SSLContext, caplog: pytest.LogCaptureFixture
) -> None:
    # The server's side of a handshake that the other one breaks off is no news here.
    asyncio.get_running_loop().set_exception_handler(lambda *_: None)
    async with mail(**({"tls": offered} if way == "smtps" else {"starttls": offered})) as post:
        alerts = told(ops="mailto:ann@x.eu", smtp=post.url)
        with pytest.raises(NotSent, match="SSLCertVerificationError"):
            await send(alerts, alerts.channels[0], ALERT, NOW)

    assert post.got == [] and not {"AUTH", "MAIL"} & set(post.words)


async def test_a_mail_server_without_tls_gets_no_password() -> None:
    async with mail() as post:
        alerts = told(ops="mailto:ann@x.eu", smtp=post.url)
        with pytest.raises(NotSent, match="the password is not sent"):
            await send(alerts, alerts.channels[0], ALERT, NOW)

    assert post.got == [] and "AUTH" not in post.words
