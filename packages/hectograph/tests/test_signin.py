"""Signing in: consent with boxes, codes and refresh tokens, seven days of testing, delegation, impersonation."""

from __future__ import annotations

import base64
import hashlib
import json
import urllib.parse
from typing import Any

import pytest

from emulator_api import Api, Refused
from emulator_direct import Direct
from hectograph import Emulator

AUTH = "https://www.googleapis.com/auth/"
BACK = "http://127.0.0.1:53211/"
VERIFIER = "v" * 50
BOT = "bot@acme.iam.gserviceaccount.com"


@pytest.fixture
def api() -> Api:
    return Direct()


def asked(*scopes: str, **more: str) -> dict[str, str]:
    digest = hashlib.sha256(VERIFIER.encode()).digest()
    challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
    return {
        "client_id": "c1", "redirect_uri": BACK, "response_type": "code", "state": "s1", "access_type": "offline",
        "scope": " ".join(AUTH + one for one in scopes), "code_challenge": challenge, "code_challenge_method": "S256",
        **more,
    }  # fmt: skip


def sent(api: Api, path: str, fields: dict[str, Any]) -> tuple[int, Any, dict[str, str]]:
    body = urllib.parse.urlencode(fields, doseq=True).encode()
    status, raw, headers = api.raw("POST", path, body, {"Content-Type": "application/x-www-form-urlencoded"})
    return status, json.loads(raw) if raw else None, headers


def consent(api: Api, query: dict[str, str], account: str = "ann@example.org", **fields: Any) -> dict[str, str]:
    """Tick the boxes as a person does; return what the application hears."""
    path = "/o/oauth2/auth?" + urllib.parse.urlencode(query)
    assert api.raw("GET", path)[0] == 200
    ticked = {"granted": query["scope"].split(), "decision": "allow", "account": account, **fields}
    status, _, headers = sent(api, path, ticked)
    assert status == 302 and headers["location"].startswith(BACK + "?")
    return dict(urllib.parse.parse_qsl(headers["location"].partition("?")[2]))


def exchange(api: Api, code: str, **more: str) -> tuple[int, Any]:
    fields = {"grant_type": "authorization_code", "code": code, "client_id": "c1", "redirect_uri": BACK}
    status, body, _ = sent(api, "/token", {**fields, "code_verifier": VERIFIER, **more})
    return status, body


def refresh(api: Api, token: str) -> tuple[int, Any]:
    status, body, _ = sent(api, "/token", {"grant_type": "refresh_token", "refresh_token": token, "client_id": "c1"})
    return status, body


def test_a_box_left_unticked_is_a_scope_that_is_missing(api: Api) -> None:
    heard = consent(api, asked("drive.file", "calendar.events"), granted=[AUTH + "drive.file"])
    status, tokens = exchange(api, heard["code"])

    assert heard["state"] == "s1" and status == 200 and tokens["scope"] == AUTH + "drive.file"
    api.user = tokens["access_token"]
    assert api("GET", "/drive/v3/files")["files"] == []
    with pytest.raises(Refused) as error:
        api("GET", "/calendar/v3/calendars/primary/events")
    assert error.value.body["error"]["details"][0]["reason"] == "ACCESS_TOKEN_SCOPE_INSUFFICIENT"
    assert exchange(api, heard["code"]) == (
        400,
        {"error": "invalid_grant", "error_description": "Malformed auth code."},
    )


def test_scopes_that_were_granted_before_are_included(api: Api) -> None:
    exchange(api, consent(api, asked("drive.file"))["code"])
    heard = consent(api, asked("calendar.events", include_granted_scopes="true"))
    assert exchange(api, heard["code"])[1]["scope"].split() == [AUTH + "calendar.events", AUTH + "drive.file"]


def test_a_person_who_cancels_is_heard(api: Api) -> None:
    assert consent(api, asked("drive"), decision="deny") == {"error": "access_denied", "state": "s1"}


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"code_verifier": "w" * 50}, "invalid_grant"),
        ({"redirect_uri": "http://127.0.0.1:1/"}, "redirect_uri_mismatch"),
        ({"client_id": "c2"}, "unauthorized_client"),
    ],
)
def test_a_code_is_good_for_who_asked_alone(api: Api, more: dict[str, str], error: str) -> None:
    status, body = exchange(api, consent(api, asked("drive"))["code"], **more)
    assert (status, body["error"]) == (400, error)


def test_the_account_is_the_one_that_signed_in_and_tokens_run_out(api: Api) -> None:
    heard = consent(api, asked("gmail.readonly", login_hint="ann@example.org"), account="Bob@example.com")
    tokens = exchange(api, heard["code"])[1]
    api.user = tokens["access_token"]
    assert api("GET", "/gmail/v1/users/me/profile")["emailAddress"] == "bob@example.com"
    assert api("GET", "/tokeninfo", access_token=api.user)["email"] == "bob@example.com"
    api("POST", "/emulator/clock", {"advance_seconds": 3600})
    with pytest.raises(Refused) as error:
        api("GET", "/gmail/v1/users/me/profile")
    assert error.value.status == 401
    api.user = refresh(api, tokens["refresh_token"])[1]["access_token"]
    assert api("GET", "/oauth2/v3/userinfo")["email"] == "bob@example.com"


def test_a_client_in_testing_loses_its_refresh_tokens_after_seven_days(api: Api) -> None:
    api("POST", "/emulator/oauth", {"clients": {"c1": {"testing": True}}})
    tokens = exchange(api, consent(api, asked("drive"))["code"])[1]
    assert tokens["refresh_token_expires_in"] == 7 * 86400
    api("POST", "/emulator/clock", {"advance_seconds": 7 * 86400 - 1})
    assert refresh(api, tokens["refresh_token"])[0] == 200
    api("POST", "/emulator/clock", {"advance_seconds": 1})
    gone = {"error": "invalid_grant", "error_description": "Token has been expired or revoked."}
    assert refresh(api, tokens["refresh_token"]) == (400, gone)


def test_a_secret_that_is_declared_must_be_right(api: Api) -> None:
    api("POST", "/emulator/oauth", {"clients": {"c1": {"secret": "right"}}})
    heard = consent(api, asked("drive"))
    assert exchange(api, heard["code"], client_secret="wrong")[0] == 401
    assert exchange(api, heard["code"], client_secret="right")[0] == 200


def test_a_revoked_grant_ends_all_that_came_of_it(api: Api) -> None:
    tokens = exchange(api, consent(api, asked("drive"))["code"])[1]
    assert sent(api, "/revoke", {"token": tokens["refresh_token"]})[0] == 200
    assert refresh(api, tokens["refresh_token"])[0] == 400
    api.user = tokens["access_token"]
    with pytest.raises(Refused) as error:
        api("GET", "/drive/v3/files")
    assert error.value.status == 401


def key_file(emulator: Emulator) -> dict[str, str]:
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = rsa.generate_private_key(65537, 2048)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return {"type": "service_account", "client_email": BOT, "private_key": pem, "token_uri": emulator.url + "token"}


def test_googles_library_signs_in_a_service_account_delegated_and_not(emulator: Emulator) -> None:
    from google.auth.exceptions import RefreshError
    from google.auth.transport.requests import Request
    from google.oauth2 import service_account

    scopes = [AUTH + "gmail.send", AUTH + "gmail.readonly"]
    plain = service_account.Credentials.from_service_account_info(key_file(emulator), scopes=scopes)  # type: ignore[no-untyped-call]
    delegated = plain.with_subject("ann@example.org")
    api = Api(emulator)
    for credentials, status in ((plain, 400), (delegated, 200)):
        credentials.refresh(Request())
        api.user = credentials.token
        found, body, _ = api.raw("GET", "/gmail/v1/users/me/profile")
        assert found == status, body
    api("POST", "/emulator/oauth", {"delegation": {BOT: [AUTH + "gmail.send"]}})
    with pytest.raises(RefreshError, match="unauthorized_client"):
        delegated.refresh(Request())


def test_googles_library_impersonates_with_a_subject_and_no_key(emulator: Emulator) -> None:
    from google.auth import impersonated_credentials
    from google.auth.exceptions import RefreshError
    from google.auth.transport.requests import Request
    from google.oauth2.credentials import Credentials

    api = Api(emulator)
    source = Credentials("ann@example.org")  # type: ignore[no-untyped-call]
    override = f"{emulator.url}v1/projects/-/serviceAccounts/{BOT}:generateAccessToken"
    scopes = [AUTH + "drive"]
    made: Any = impersonated_credentials.Credentials(source, BOT, scopes, iam_endpoint_override=override)  # type: ignore[no-untyped-call]
    made.refresh(Request())
    api.user = made.token
    assert api("GET", "/tokeninfo", access_token=made.token)["email"] == BOT
    api("POST", "/emulator/oauth", {"token_creators": {BOT: ["eve@example.com"]}})
    with pytest.raises(RefreshError, match="getAccessToken"):
        made.refresh(Request())


def test_an_id_token_is_signed_with_the_key_that_is_shown(emulator: Emulator) -> None:
    from google.auth import jwt

    api = Api(emulator)
    query = asked("drive", scope="openid email")
    tokens = exchange(api, consent(api, query, granted=["openid"])["code"])[1]
    certificates = api("GET", "/oauth2/v1/certs")
    claims = jwt.decode(tokens["id_token"], certificates, audience="c1")  # type: ignore[no-untyped-call]  # untyped
    assert claims["email"] == "ann@example.org"


def test_grants_survive_a_restart(tmp_path: Any) -> None:
    path = tmp_path / "world.json"
    with Emulator(path=path) as first:
        tokens = exchange(Api(first), consent(Api(first), asked("drive"))["code"])[1]
    with Emulator(path=path) as second:
        assert refresh(Api(second), tokens["refresh_token"])[0] == 200
        assert Api(second, tokens["access_token"])("GET", "/drive/v3/files")["files"] == []


def test_the_loopback_flow_of_google_auth_oauthlib_signs_in(
    emulator: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    flows = pytest.importorskip("google_auth_oauthlib.flow", reason="google-auth-oauthlib is not installed")
    monkeypatch.setenv("OAUTHLIB_INSECURE_TRANSPORT", "1")  # the token endpoint is on loopback, without TLS
    monkeypatch.setenv("OAUTHLIB_RELAX_TOKEN_SCOPE", "1")  # a box may be left unticked
    client = {"client_id": "c1", "client_secret": "s", "token_uri": emulator.url + "token"}
    addresses = {"auth_uri": emulator.url + "o/oauth2/auth", "redirect_uris": [BACK]}
    flow = flows.InstalledAppFlow.from_client_config(
        {"installed": client | addresses}, [AUTH + "drive", AUTH + "calendar"]
    )
    flow.redirect_uri = BACK
    address, _ = flow.authorization_url(access_type="offline")
    query = dict(urllib.parse.parse_qsl(address.partition("?")[2]))
    api = Api(emulator)

    flow.fetch_token(code=consent(api, query, granted=[AUTH + "drive"])["code"])

    assert flow.credentials.granted_scopes == [AUTH + "drive"] and flow.credentials.refresh_token
    from google.auth.transport.requests import Request

    flow.credentials.refresh(Request())
    api.user = flow.credentials.token
    assert api("GET", "/drive/v3/files")["files"] == []
