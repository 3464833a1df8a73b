"""An OpenID Connect provider on loopback: real HTTP, real RSA keys that can be rotated, and lies on demand."""

from __future__ import annotations

import base64
import hashlib
import http.server
import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa


@cache
def _key(number: int) -> rsa.RSAPrivateKey:
    """Made when it is needed: making one takes a while."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


class Provider:
    def __init__(self) -> None:
        #: Which keys are published, and which one signs.
        self.published = [0]
        self.signing = 0
        self.person: dict[str, Any] = {"sub": "42", "email": "ann@x.eu", "email_verified": True, "groups": ["ops"]}
        #: Claims that are changed in the tokens.
        self.lies: dict[str, Any] = {}
        self.now = 0.0
        self.down = False
        self.asked: Counter[str] = Counter()
        self.codes: dict[str, dict[str, str]] = {}
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer._get(self)

            def do_POST(self) -> None:
                outer._post(self)

            def log_message(self, format: str, *args: Any) -> None: ...

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self.server.server_port}"

    def _answer(self, at: http.server.BaseHTTPRequestHandler, value: Any, status: int = 200, **headers: str) -> None:
        raw = json.dumps(value).encode()
        at.send_response(503 if self.down else status)
        for name, told in {"Content-Length": str(len(raw)), **headers}.items():
            at.send_header(name, told)
        at.end_headers()
        at.wfile.write(raw)

    def _get(self, at: http.server.BaseHTTPRequestHandler) -> None:
        path, query = urlsplit(at.path).path, {k: v[0] for k, v in parse_qs(urlsplit(at.path).query).items()}
        self.asked[path] += 1
        if path == "/.well-known/openid-configuration":
            ends = {name: f"{self.issuer}/{word}" for name, word in _ENDPOINTS.items()}
            self._answer(at, {"issuer": self.issuer, **ends})
        elif path == "/keys":
            self._answer(at, self.jwks())
        elif path == "/authorize":
            code = f"code-{len(self.codes)}"
            self.codes[code] = query
            back = f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"
            self._answer(at, {}, 302, Location=back)
        else:
            self._answer(at, {}, 404)

    def _post(self, at: http.server.BaseHTTPRequestHandler) -> None:
        raw = at.rfile.read(int(at.headers["Content-Length"])).decode()
        form = {name: values[0] for name, values in parse_qs(raw).items()}
        asked = self.codes.pop(form.get("code", ""), None)
        made = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).rstrip(b"=").decode()
        basic = base64.b64encode(b"quire:s3cret").decode()
        right = (
            asked is not None
            and made == asked["code_challenge"]
            and form["redirect_uri"] == asked["redirect_uri"]
            and at.headers.get("Authorization") == f"Basic {basic}"
        )
        if not right or asked is None:
            self._answer(at, {"error": "invalid_grant"}, 400)
            return
        self._answer(at, {"id_token": self.token(aud=asked["client_id"], nonce=asked["nonce"])})

    def jwks(self) -> dict[str, Any]:
        found = []
        for number in self.published:
            key = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(_key(number).public_key()))
            found.append(key | {"kid": f"k{number}", "use": "sig", "alg": "RS256"})
        return {"keys": found}

    def token(self, **told: Any) -> str:
        claims = {"iss": self.issuer, "iat": self.now, "exp": self.now + 300, **self.person, **told, **self.lies}
        return jwt.encode(claims, _key(self.signing), "RS256", {"kid": f"k{self.signing}"})


_ENDPOINTS = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}


@contextmanager
def provider() -> Iterator[Provider]:
    found = Provider()
    thread = threading.Thread(target=lambda: found.server.serve_forever(poll_interval=0.02))
    thread.start()
    try:
        yield found
    finally:
        found.server.shutdown()
        thread.join()
        found.server.server_close()
