"""Signing in: the consent page, the token endpoint, and what stands beside them at Google.

| address | what |
|---|---|
| ``/o/oauth2/auth``, ``/o/oauth2/v2/auth`` | the consent page: an account, and a box for every scope |
| ``/token``, ``/oauth2/v4/token`` | codes (with PKCE), refresh tokens and assertions become access tokens |
| ``/revoke`` | ends a refresh token and all that came of it |
| ``/tokeninfo``, ``/oauth2/v3/userinfo`` | whose a token is, and what it may do |
| ``/oauth2/v1/certs``, ``/oauth2/v3/certs`` | the key of the emulator, as a certificate and as a JWK |
| ``/v1/projects/-/serviceAccounts/…`` | impersonation: access tokens, ID tokens, ``signJwt``, ``signBlob`` |

Any client is known and any assertion is believed, unless ``POST /emulator/oauth`` says more:

    {"clients": {"ID": {"secret": "S", "testing": true}},
     "delegation": {"bot@p.iam.gserviceaccount.com": ["https://www.googleapis.com/auth/gmail.send"]},
     "token_creators": {"bot@p.iam.gserviceaccount.com": ["ann@example.org"]}}

The refresh tokens of a client in testing end after seven days. Once a service account is named under ``delegation``, it
acts for others within these scopes only; under ``token_creators``, only these accounts may impersonate it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import secrets
import urllib.parse
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from hectograph.core import html, signing
from hectograph.core.error import EDITORS
from hectograph.core.http import Request, Response
from hectograph.core.people import Caller, number_of

if TYPE_CHECKING:
    from hectograph.world import World

LIFETIME = timedelta(seconds=3599)
TESTING = timedelta(days=7)
_CODE_LASTS = timedelta(minutes=10)

_CONSENT = frozenset({"/o/oauth2/auth", "/o/oauth2/v2/auth", "/oauth2/auth"})
_TOKEN = frozenset({"/token", "/oauth2/v4/token", "/oauth2/v3/token", "/oauth2/token", "/o/oauth2/token"})
_REVOKE = frozenset({"/revoke", "/o/oauth2/revoke"})
_INFO = frozenset({"/tokeninfo", "/oauth2/v3/tokeninfo", "/oauth2/v1/tokeninfo", "/oauth2/v2/tokeninfo"})
_USER = frozenset({"/oauth2/v3/userinfo", "/oauth2/v2/userinfo", "/oauth2/v1/userinfo", "/v1/userinfo"})
_CERTIFICATES = ("/service_accounts/v1/metadata/x509/", "/robot/v1/metadata/x509/")
_IMPERSONATE = re.compile(r"/v1/projects/-/serviceAccounts/([^/:]+):(\w+)")

#: Scopes that no API checks: they say who somebody is.
_WHO = {
    "openid": "openid",
    "email": "https://www.googleapis.com/auth/userinfo.email",
    "profile": "https://www.googleapis.com/auth/userinfo.profile",
}

_NOT_DELEGATED = (
    "Client is unauthorized to retrieve access tokens using this method, or client not authorized for any of the "
    "scopes requested."
)


class OAuthError(Exception):
    """A refusal as the token endpoint writes it."""

    def __init__(self, error: str, text: str = "", status: int = 400) -> None:
        super().__init__(error, text)
        self.status = status
        self.body = {"error": error} | ({"error_description": text} if text else {})


class SignIn:
    def __init__(self, world: World) -> None:
        self.world = world

    def handle(self, request: Request) -> Response | None:
        """Answer a request that belongs here, or return None."""
        path = request.path
        try:
            if path in _CONSENT:
                return self._consent(request) if request.method == "GET" else self._decided(request)
            if path in _TOKEN or path.endswith("/oauth2/v4/token"):
                return Response.of(self._token(request))
            if path in _REVOKE:
                return self._revoke(request)
            if path in _INFO:
                return self._info(request)
            if path in _USER:
                return self._user(request)
        except OAuthError as error:
            return Response.of(error.body, error.status)
        if path == "/oauth2/v1/certs" or path.startswith(_CERTIFICATES):
            return Response.of({signing.key().key_id: signing.key().certificate()})
        if path == "/oauth2/v3/certs":
            return Response.of({"keys": [signing.key().jwk()]})
        found = _IMPERSONATE.fullmatch(path)
        return None if found is None else self._impersonated(request, *found.groups())

    def set(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Take what ``POST /emulator/oauth`` declares."""
        rules = self.world.people.oauth
        for name, value in given.items():
            if name not in rules:
                raise ValueError(f"unknown setting {name!r}; known: {', '.join(rules)}")
            rules[name].update(value)
        return rules

    # The consent page.

    def _asked(self, request: Request) -> list[str]:
        words = request.one("scope").split()
        return list(dict.fromkeys(_WHO.get(word, word) for word in words))

    def _consent(self, request: Request) -> Response:
        if not request.one("redirect_uri") or not request.one("client_id") or request.one("response_type") != "code":
            text = "<p>Error 400: invalid_request. client_id, redirect_uri and response_type=code are needed.</p>"
            return html.page("Access blocked", text, status=400)
        hint = request.one("login_hint") or self._somebody()
        scopes = "".join(
            f'<label><input type=checkbox name=granted value="{html.escape(one)}" checked> {html.escape(one)}</label>'
            for one in self._asked(request)
        )
        known = "".join(f'<option value="{html.escape(one)}">' for one in self.world.people.known(self.world.account))
        inner = (
            f'<label><span>Account</span><input class=wide name=account value="{html.escape(hint)}" list=known></label>'
            f"<datalist id=known>{known}</datalist><fieldset><legend>Select what the app can access</legend>{scopes}"
            f"</fieldset><div class=row>{html.button('Continue', 'decision', 'allow')}"
            f"{html.button('Cancel', 'decision', 'deny', 'plain')}</div>"
        )
        wants = f"<p>{html.escape(request.one('client_id'))} wants access to your account.</p>"
        return html.page("Sign in", wants + html.form("?" + urllib.parse.urlencode(request.flat()), inner))

    def _somebody(self) -> str:
        account = self.world.account
        return "ann@example.org" if account.endswith(".gserviceaccount.com") else account

    def _decided(self, request: Request) -> Response:
        """Send the browser back to the application, with a code or with a refusal."""
        sent = html.every(request)
        back = {"state": request.one("state")} if request.one("state") else {}
        if sent.get("decision", [""])[-1] != "allow":
            return _redirect(request.one("redirect_uri"), {"error": "access_denied", **back})
        asked = set(self._asked(request))
        granted = [one for one in sent.get("granted", []) if one in asked]
        code = "4/0" + secrets.token_urlsafe(40)
        email = sent.get("account", [""])[-1].strip().lower() or self._somebody()
        client = request.one("client_id")
        if request.one("include_granted_scopes") == "true":
            granted += [one for one in self.world.people.granted.get(f"{client} {email}", []) if one not in granted]
        self.world.people.codes[code] = {
            "email": email,
            "client": client,
            "scopes": granted,
            "redirect": request.one("redirect_uri"),
            "challenge": request.one("code_challenge"),
            "method": request.one("code_challenge_method", "plain"),
            "offline": request.one("access_type") == "offline",
            "until": (self.world.now() + _CODE_LASTS).isoformat(),
        }
        self.world.dirty()
        return _redirect(request.one("redirect_uri"), {**back, "code": code, "scope": " ".join(granted)})

    # Tokens.

    def _token(self, request: Request) -> dict[str, Any]:
        sent = {**request.flat(), **html.given(request)}
        basic = request.headers.get("authorization", "")
        if basic.lower().startswith("basic "):
            name, _, secret = base64.b64decode(basic[6:]).decode().partition(":")
            sent |= {"client_id": urllib.parse.unquote(name), "client_secret": urllib.parse.unquote(secret)}
        kind = sent.get("grant_type", "")
        if kind == "authorization_code":
            return self._by_code(sent)
        if kind == "refresh_token":
            return self._by_refresh(sent)
        if kind == "urn:ietf:params:oauth:grant-type:jwt-bearer":
            return self._by_assertion(sent)
        if kind:
            raise OAuthError("unsupported_grant_type", f"Invalid grant_type: {kind}")
        return self._answer(Caller("", self.world.account))

    def _check_client(self, sent: Mapping[str, str]) -> None:
        known = self.world.people.oauth["clients"].get(sent.get("client_id", ""))
        if known and known.get("secret") and known["secret"] != sent.get("client_secret"):
            raise OAuthError("invalid_client", "Unauthorized", 401)

    def _by_code(self, sent: Mapping[str, str]) -> dict[str, Any]:
        self._check_client(sent)
        held = self.world.people.codes.pop(sent.get("code", ""), None)
        if held is None or datetime.fromisoformat(held["until"]) < self.world.now():
            raise OAuthError("invalid_grant", "Malformed auth code.")
        if held["client"] != sent.get("client_id"):
            raise OAuthError("unauthorized_client", "Unauthorized")
        if held["redirect"] != sent.get("redirect_uri"):
            raise OAuthError("redirect_uri_mismatch", "Bad Request")
        if held["challenge"] and _challenge(sent.get("code_verifier", ""), held["method"]) != held["challenge"]:
            raise OAuthError("invalid_grant", "Invalid code verifier.")
        scopes, email = frozenset(held["scopes"]), held["email"]
        self.world.people.granted[f"{held['client']} {email}"] = held["scopes"]
        out = self._answer(Caller("", email, scopes, held["client"]))
        if held["offline"]:
            refresh = "1//0" + secrets.token_urlsafe(48)
            made = self.world.now().isoformat()
            self.world.people.refresh[refresh] = {
                "email": email, "client": held["client"], "scopes": held["scopes"], "made": made,
            }  # fmt: skip
            out["refresh_token"] = refresh
            testing = self.world.people.oauth["clients"].get(held["client"], {}).get("testing")
            out |= {"refresh_token_expires_in": int(TESTING.total_seconds())} if testing else {}
        self.world.dirty()
        return out

    def _by_refresh(self, sent: Mapping[str, str]) -> dict[str, Any]:
        self._check_client(sent)
        held = self.world.people.refresh.get(sent.get("refresh_token", ""))
        if held is None or self._ended(held):
            raise OAuthError("invalid_grant", "Token has been expired or revoked.")
        if held["client"] != sent.get("client_id"):
            raise OAuthError("unauthorized_client", "Unauthorized")
        # A client may ask for all that it once wished for: it gets what was granted of that.
        asked = sent.get("scope", "").split()
        wanted = [one for one in held["scopes"] if not asked or one in asked]
        if not wanted:
            raise OAuthError("invalid_scope", "Some requested scopes were not granted.")
        return self._answer(Caller("", held["email"], frozenset(wanted), held["client"]))

    def _ended(self, held: Mapping[str, Any]) -> bool:
        testing = self.world.people.oauth["clients"].get(held["client"], {}).get("testing")
        return bool(testing) and self.world.now() - datetime.fromisoformat(held["made"]) >= TESTING

    def _by_assertion(self, sent: Mapping[str, str]) -> dict[str, Any]:
        """Believe what a service account asserts; who it may act for is a matter of delegation."""
        try:
            claims = signing.claims(sent.get("assertion", ""))
            issuer = str(claims["iss"])
        except (ValueError, KeyError, IndexError) as error:
            raise OAuthError("invalid_grant", "Invalid JWT: the assertion cannot be read.") from error
        if claims.get("target_audience"):
            return {"id_token": self._id_token(issuer, str(claims["target_audience"]))}
        subject, scopes = str(claims.get("sub") or issuer), frozenset(str(claims.get("scope", "")).split())
        if subject != issuer:
            self._check_delegated(issuer, scopes)
        robot = subject.endswith(".gserviceaccount.com")
        return self._answer(Caller("", subject, scopes, issuer, robot=robot))

    def _check_delegated(self, account: str, scopes: frozenset[str]) -> None:
        allowed = self.world.people.oauth["delegation"].get(account)
        if allowed is not None and not scopes <= set(allowed):
            raise OAuthError("unauthorized_client", _NOT_DELEGATED, 401)

    def _answer(self, caller: Caller) -> dict[str, Any]:
        """Return the answer of the token endpoint, with a new access token for this caller."""
        token = "ya29.emulated-" + secrets.token_urlsafe(24)
        if caller.scopes is not None:
            until = self.world.now() + LIFETIME
            made = Caller(token, caller.email, caller.scopes, caller.client, True, caller.robot, until)
            self.world.people.declared[token] = made
        out: dict[str, Any] = {
            "access_token": token,
            "expires_in": int(LIFETIME.total_seconds()),
            "token_type": "Bearer",
        }
        if caller.scopes is not None:
            out["scope"] = " ".join(sorted(caller.scopes))
            if "openid" in caller.scopes:
                out["id_token"] = self._id_token(caller.email, caller.client)
        return out

    def _id_token(self, email: str, audience: str) -> str:
        now = int(self.world.now().timestamp())
        claims = {"iss": "https://accounts.google.com", "aud": audience, "azp": audience, "sub": number_of(email)}
        return signing.token({**claims, "email": email, "email_verified": True, "iat": now, "exp": now + 3600})

    # About tokens.

    def _caller(self, token: str) -> Caller:
        found = self.world.people.declared.get(token)
        if found is None or not found.lives(self.world.now()):
            raise OAuthError("invalid_token", "Invalid Value")
        return found

    def _revoke(self, request: Request) -> Response:
        people, token = self.world.people, request.one("token") or html.given(request).get("token", "")
        held = people.refresh.pop(token, None)
        caller = people.declared.get(token)
        if held is None and caller is None:
            raise OAuthError("invalid_token", "Token expired or revoked")
        email, client = held["email"] if held else "", held["client"] if held else ""
        if caller is not None:
            email, client = caller.email, caller.client
        people.granted.pop(f"{client} {email}", None)
        people.refresh = {k: v for k, v in people.refresh.items() if (v["email"], v["client"]) != (email, client)}
        for key, one in list(people.declared.items()):
            if (one.email, one.client) == (email, client):
                people.declared[key] = one.ended()
        return Response.of({})

    def _info(self, request: Request) -> Response:
        token = request.one("access_token") or html.given(request).get("access_token", "") or request.user
        found = self._caller(token)
        left = LIFETIME if found.expires is None else found.expires - self.world.now()
        return Response.of(
            {
                "azp": found.client,
                "aud": found.client,
                "sub": number_of(found.email),
                "scope": " ".join(sorted(found.scopes or ())),
                "exp": str(int((self.world.now() + left).timestamp())),
                "expires_in": str(int(left.total_seconds())),
                "email": found.email,
                "email_verified": "true",
                "access_type": "offline",
            }
        )

    def _user(self, request: Request) -> Response:
        try:
            found = self._caller(request.user)
        except OAuthError:
            text = "Request is missing required authentication credential."
            return Response.of({"error": {"code": 401, "message": text, "status": "UNAUTHENTICATED"}}, 401)
        return Response.of({"sub": number_of(found.email), "email": found.email, "email_verified": True})

    # Impersonation.

    def _impersonated(self, request: Request, account: str, verb: str) -> Response:
        caller = self.world.people.caller(request.user, self.world.account)
        if request.user == "anonymous" or not caller.lives(self.world.now()):
            return Response.refused(EDITORS.bad_credentials())
        allowed = self.world.people.oauth["token_creators"].get(account)
        if allowed is not None and caller.email not in allowed:
            text = "Permission 'iam.serviceAccounts.getAccessToken' denied on resource (or it may not exist)."
            detail = {
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": "IAM_PERMISSION_DENIED",
                "domain": "iam.googleapis.com",
                "metadata": {"permission": "iam.serviceAccounts.getAccessToken"},
            }
            return Response.refused(EDITORS.refusal(403, text, details=[detail]))
        given = request.json()
        if verb == "generateAccessToken":
            made = self._answer(Caller("", account, frozenset(given.get("scope", ())), account, robot=True))
            until = (self.world.now() + LIFETIME).strftime("%Y-%m-%dT%H:%M:%SZ")
            return Response.of({"accessToken": made["access_token"], "expireTime": until})
        if verb == "generateIdToken":
            return Response.of({"token": self._id_token(account, str(given.get("audience", "")))})
        key = signing.key()
        if verb == "signJwt":
            return Response.of({"keyId": key.key_id, "signedJwt": signing.token(json.loads(given["payload"]))})
        if verb == "signBlob":
            blob = base64.b64encode(key.sign(base64.b64decode(given["payload"]))).decode()
            return Response.of({"keyId": key.key_id, "signedBlob": blob})
        return Response.refused(EDITORS.refusal(501, f"The emulator does not play {verb} of service accounts."))


def _redirect(address: str, fields: Mapping[str, str]) -> Response:
    mark = "&" if "?" in address else "?"
    return Response(
        302, b"", {"Location": address + mark + urllib.parse.urlencode(fields), "Cache-Control": "no-store"}
    )


def _challenge(verifier: str, method: str) -> str:
    if method != "S256":
        return verifier
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
