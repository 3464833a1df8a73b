"""Signing in with a browser: the installed-app flow over a loopback address, with PKCE.

google-auth-oauthlib makes the link and changes the code for tokens. The loopback server is our own, because the
library's ends at the first request, which may be a browser's look for an icon. Nothing is kept here.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from quire.errors import InputError
from quire.google.error import NotSignedIn
from quire.installing import install

#: These say who has signed in. No API asks for them.
WHO = ("openid", "https://www.googleapis.com/auth/userinfo.email")
#: How long a person may take.
PATIENCE_SECONDS = 600.0

_PAGE = """<!doctype html><meta charset=utf-8><title>Quire</title>
<body style="font:16px system-ui;margin:4em auto;max-width:30em"><h1>{title}</h1><p>{text}</p>"""


class Granted(NamedTuple):
    """What came of a sign-in."""

    refresh_token: str
    access_token: str
    scopes: frozenset[str]
    #: Google ends the refresh token after so many seconds; None: it says nothing of an end.
    ends_in: float | None


class App(NamedTuple):
    """The OAuth client of a person's own project, of the kind "Desktop app"."""

    client_id: str
    client_secret: str
    auth_uri: str
    token_uri: str
    project: str = ""


def app_of(path: str | Path) -> App:
    """Read the client file that the Google Cloud console gives out."""
    try:
        given = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"the client file {str(path)!r} cannot be read: {error}") from error
    if not isinstance(given, dict) or "installed" not in given:
        raise InputError(f"{str(path)!r} {_not_a_client(given)}")
    inner = given["installed"]
    try:
        return App(
            str(inner["client_id"]),
            str(inner.get("client_secret", "")),
            str(inner.get("auth_uri") or "https://accounts.google.com/o/oauth2/auth"),
            str(inner.get("token_uri") or "https://oauth2.googleapis.com/token"),
            str(inner.get("project_id", "")),
        )
    except (KeyError, AttributeError) as error:
        raise InputError(f"{str(path)!r} is no client file: it lacks {error}; download it anew") from error


def _not_a_client(given: Any) -> str:
    kind = given.get("type") if isinstance(given, dict) else None
    if kind == "service_account":
        return "is the key of a service account; give it with --credentials instead of --client"
    if kind == "authorized_user":
        return "holds the sign-in of a user; give it with --credentials instead of --client"
    if isinstance(given, dict) and "web" in given:
        return "is a client of the kind 'Web application'; make one of the kind 'Desktop app' in the same console"
    return "is no client file; in the Google Cloud console make an OAuth client of the kind 'Desktop app'"


class Consent:
    """One sign-in, from the link to the tokens. Use it as a context manager: it holds a port of this machine."""

    def __init__(self, app: App, scopes: Sequence[str], *, hint: str = "", port: int = 0) -> None:
        self._app = app
        self._answered = threading.Event()
        self._answer = ""
        try:
            self._server = ThreadingHTTPServer(("127.0.0.1", port), self._handler())
        except OSError as error:
            raise NotSignedIn(f"port {port} of this machine cannot be used: {error}; give another --port") from error
        self.port = int(self._server.server_address[1])
        try:
            self._flow = _flow(app, [*WHO, *scopes], f"http://127.0.0.1:{self.port}/")
            options = {"access_type": "offline", "include_granted_scopes": "true", "prompt": "consent"}
            with _relaxed(app.auth_uri):
                self.address, _ = self._flow.authorization_url(**options, **({"login_hint": hint} if hint else {}))
        except BaseException:
            self._server.server_close()
            raise

    def __enter__(self) -> Consent:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._flow.oauth2session.close()

    def wait(self, patience: float = PATIENCE_SECONDS) -> Granted:
        """Return what the person granted. Raises if the person declines, or nobody comes."""
        if not self._answered.wait(patience):
            raise NotSignedIn(f"nobody signed in within {patience / 60:.0f} minutes; nothing was kept")
        back = {name: values[-1] for name, values in parse_qs(urlsplit(self._answer).query).items()}
        if "error" in back:
            raise NotSignedIn(_declined(back["error"], back.get("error_description", "")))
        from oauthlib.oauth2 import OAuth2Error

        try:
            with _relaxed(self._app.token_uri):
                token: Mapping[str, Any] = self._flow.fetch_token(
                    authorization_response=f"https://127.0.0.1:{self.port}{self._answer}", timeout=60
                )
        except OAuth2Error as error:
            said = error.description or error.error or type(error).__name__
            raise NotSignedIn(f"Google did not take the sign-in: {said}; nothing was kept") from error
        except OSError as error:
            raise NotSignedIn(f"Google's sign-in cannot be reached: {error}; nothing was kept") from error
        granted = token.get("scope") or ()
        scopes = granted.split() if isinstance(granted, str) else granted
        ends = token.get("refresh_token_expires_in")
        return Granted(
            str(token.get("refresh_token", "")),
            str(token["access_token"]),
            frozenset(map(str, scopes)),
            float(ends) if ends else None,
        )

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        consent = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                back = parse_qs(urlsplit(self.path).query)
                known = "code" in back or "error" in back
                title, text = ("Signed in", "You may close this page and go back to the terminal.")
                if "error" in back:
                    title, text = ("Not signed in", "Nothing was kept. The terminal says more.")
                elif not known:
                    title, text = ("Not found", "This address only takes the answer of a sign-in.")
                page = _PAGE.format(title=title, text=text).encode()
                self.send_response(200 if known else 404)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(page)))
                self.end_headers()
                self.wfile.write(page)
                if known and not consent._answered.is_set():
                    consent._answer = self.path
                    consent._answered.set()

            def log_message(self, format: str, *args: Any) -> None:
                """Write nothing: the address holds the code."""

        return Handler


def _declined(error: str, text: str) -> str:
    known = {
        "access_denied": "the sign-in was declined in the browser",
        "admin_policy_enforced": "the organisation does not allow this app; an administrator must trust its client id",
        "org_internal": "the app is for its own organisation only; sign in with an account of it",
    }
    return f"{known.get(error, f'Google refused the sign-in: {error} {text}'.strip())}; nothing was kept"


def _flow(app: App, scopes: Sequence[str], redirect: str) -> Any:
    try:
        from google_auth_oauthlib.flow import InstalledAppFlow
    except ImportError as error:
        raise NotSignedIn(f"google-auth-oauthlib is not installed; {install('google', 'connect')}") from error
    config = {
        "installed": {
            "client_id": app.client_id,
            "client_secret": app.client_secret,
            "auth_uri": app.auth_uri,
            "token_uri": app.token_uri,
            "redirect_uris": [redirect],
        }
    }
    flow: Any = InstalledAppFlow.from_client_config(config, list(scopes), autogenerate_code_verifier=True)
    flow.redirect_uri = redirect
    return flow


@contextmanager
def _relaxed(uri: str) -> Iterator[None]:
    """Let oauthlib take fewer scopes than were asked for, and plain HTTP where the other side is this machine."""
    local = uri.startswith(("http://127.0.0.1", "http://localhost"))
    names = ["OAUTHLIB_RELAX_TOKEN_SCOPE", *(["OAUTHLIB_INSECURE_TRANSPORT"] if local else [])]
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
