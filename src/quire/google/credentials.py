"""Who asks: a user, a service account, the machine's own identity, or nobody (for the emulator).

google-auth is imported only when real credentials are asked for.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from quire.google import kept
from quire.google.error import NotSignedIn, Unavailable
from quire.google.kept import SignIn
from quire.installing import install

SCOPES = ("https://www.googleapis.com/auth/spreadsheets", "https://www.googleapis.com/auth/drive")


class Credentials(Protocol):
    @property
    def account(self) -> str:
        """Whose quota the calls count against, and with whom files must be shared; empty if it is not known."""
        ...

    @property
    def client(self) -> str:
        """The OAuth client that signed in, if marks at Google belong to one; empty if it is not known."""
        ...

    async def headers(self) -> dict[str, str]:
        """What proves it, fresh enough for one call."""
        ...

    def expire(self) -> None:
        """Google refused the last proof: make a new one for the next call."""
        ...


class StaticToken:
    """A token that somebody else keeps fresh; for the emulator any text is one, and stands for a user of its own."""

    def __init__(self, token: str, account: str = "") -> None:
        self._token = token
        self._account = account or token

    @property
    def account(self) -> str:
        return self._account

    @property
    def client(self) -> str:
        return ""

    async def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}"} if self._token else {}

    def expire(self) -> None:
        pass


class GoogleAuth:
    """Credentials of google-auth, refreshed in a thread of their own."""

    def __init__(
        self, credentials: Any, account: str = "", *, endpoint: str = "", remedy: Callable[[str], str] | None = None
    ) -> None:
        self._credentials = credentials
        self._account = account
        self._request = _Requests(endpoint)
        self._remedy = remedy or _remedy
        self._lock = asyncio.Lock()

    @property
    def account(self) -> str:
        given = self._account or getattr(self._credentials, "service_account_email", "")
        return str(given or getattr(self._credentials, "account", ""))

    @property
    def client(self) -> str:
        return str(getattr(self._credentials, "client_id", None) or "")

    async def headers(self) -> dict[str, str]:
        async with self._lock:
            if not self._credentials.valid:
                await asyncio.to_thread(self._refresh)
            found: dict[str, str] = {}
            self._credentials.apply(found)
            # google-auth puts the quota project beside the token: "x-goog-user-project".
            return {name.title(): value for name, value in found.items()}

    def expire(self) -> None:
        self._credentials.token = None

    def _refresh(self) -> None:
        from google.auth.exceptions import GoogleAuthError, TransportError

        try:
            self._credentials.refresh(self._request)
        except TransportError as error:
            raise Unavailable(f"Google's sign-in cannot be reached: {error}") from error
        except GoogleAuthError as error:
            said = str(error.args[0]) if error.args else type(error).__name__
            details = " ".join(map(str, error.args))
            raise NotSignedIn(
                f"Google does not take the credentials of {self.account or 'this user'}: {said.rstrip('.')}. "
                f"{self._remedy(details)}"
            ) from error


def _remedy(said: str) -> str:
    """What a person does about a refused sign-in, by what Google says."""
    if "serviceAccounts.getAccessToken" in said or "IAM_PERMISSION_DENIED" in said or "iam.serviceAccounts" in said:
        return (
            "Whoever impersonates a service account needs the role roles/iam.serviceAccountTokenCreator on it, and the "
            "project needs the IAM Service Account Credentials API."
        )
    if "unauthorized_client" in said:
        return (
            "An administrator must allow the service account's client id these scopes: admin.google.com, Security, "
            "API controls, Domain-wide delegation. 'quire connect' prints both."
        )
    return "Make a new key, or sign in again: quire connect."


class _Answer:
    """What google-auth wants to see of an answer."""

    def __init__(self, status: int, headers: Mapping[str, str], data: bytes) -> None:
        self.status = status
        self.headers = headers
        self.data = data


class _Requests:
    """The transport of google-auth, so that it needs no second HTTP library. An emulator takes the place of Google."""

    def __init__(self, endpoint: str = "") -> None:
        self._endpoint = endpoint.rstrip("/")

    def __call__(
        self,
        url: str,
        method: str = "GET",
        body: bytes | str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = 30.0,
        **_: Any,
    ) -> _Answer:
        import httpx2
        from google.auth.exceptions import TransportError

        parts = urlsplit(url)
        if self._endpoint and (parts.hostname or "").endswith(".googleapis.com"):
            url = f"{self._endpoint}{parts.path}" + (f"?{parts.query}" if parts.query else "")
        try:
            with httpx2.Client(timeout=timeout) as client:
                answer = client.request(method, url, content=body, headers=dict(headers or {}))
                return _Answer(answer.status_code, answer.headers, answer.content)
        except httpx2.HTTPError as error:
            raise TransportError(str(error)) from error  # type: ignore[no-untyped-call]


def from_file(
    path: str | Path, scopes: Sequence[str] = SCOPES, *, subject: str = "", endpoint: str = ""
) -> Credentials:
    """The key file of a service account, or the file of a user who signed in (``authorized_user``).

    ``subject``: the person as whom a service account acts, where an administrator has delegated that.
    """
    _google_auth()
    from google.oauth2 import credentials, service_account

    try:
        given = json.loads(Path(path).read_text(encoding="utf-8"))
        kind = given.get("type") if isinstance(given, dict) else None
        if kind == "service_account":
            robot: Any = service_account.Credentials
            made = robot.from_service_account_info(given, scopes=list(scopes))
            made = made.with_subject(subject) if subject else made
            return GoogleAuth(made, subject, endpoint=endpoint)
        if kind == "authorized_user":
            if subject:
                raise NotSignedIn(f"{path} is the sign-in of a user, who acts as nobody else; leave out subject")
            user: Any = credentials.Credentials
            return GoogleAuth(user.from_authorized_user_info(given, scopes=list(scopes)), endpoint=endpoint)
    except (OSError, ValueError) as error:
        raise NotSignedIn(f"{path} holds no credentials that can be used: {error}") from error
    raise NotSignedIn(
        f"{path} holds no credentials that can be used: its type is {kind!r}, not a service account or user"
    )


def client_id_of(path: str | Path) -> str:
    """Return the number under which an administrator knows a service account; empty: the file has none."""
    try:
        given = json.loads(Path(path).read_text(encoding="utf-8"))
        return str(given.get("client_id", ""))
    except (OSError, ValueError, AttributeError):
        return ""


def of_sign_in(made: SignIn) -> Credentials:
    """A person who signed in with ``quire connect``. Asks for what was granted, and no more."""
    _google_auth()
    from google.oauth2 import credentials

    def remedy(said: str) -> str:
        add = f"Run: quire connect --account {made.account}"
        if made.ends_at is None or "invalid_grant" not in said:
            return f"{add}."
        return (
            f"{add}. The app is in testing, and Google ends its sign-ins after seven days: in the Google Cloud console "
            "set the user type to Internal, or publish the app."
        )

    user: Any = credentials.Credentials
    found = user.from_authorized_user_info(made.info, scopes=sorted(made.scopes))
    return GoogleAuth(found, made.account, endpoint=made.endpoint, remedy=remedy)


def default(scopes: Sequence[str] = SCOPES, *, quota_project: str = "", endpoint: str = "") -> Credentials:
    """What the machine is signed in as: GOOGLE_APPLICATION_CREDENTIALS, gcloud, or the cloud's metadata."""
    return GoogleAuth(_adc(scopes, quota_project), endpoint=endpoint)


def _adc(scopes: Sequence[str], quota_project: str = "") -> Any:
    auth = _google_auth()
    try:
        credentials, _ = auth.default(scopes=list(scopes), request=_Requests(), quota_project_id=quota_project or None)
    except auth.exceptions.GoogleAuthError as error:
        raise NotSignedIn(
            f"there are no Google credentials on this machine: {str(error).rstrip('.')}. Run 'quire connect', set "
            "GOOGLE_APPLICATION_CREDENTIALS to a service account's key file, or run "
            "'gcloud auth application-default login'."
        ) from error
    return credentials


def impersonated(target: str, scopes: Sequence[str], *, subject: str = "", endpoint: str = "") -> Credentials:
    """A service account without a key: the machine's own identity asks Google to sign for it."""
    _google_auth()
    from google.auth import impersonated_credentials

    source = _adc(["https://www.googleapis.com/auth/cloud-platform"])
    maker: Any = impersonated_credentials.Credentials
    made = maker(source, target, list(scopes), subject=subject or None)
    return GoogleAuth(made, subject or target, endpoint=endpoint)


#: What ``credentials = "…"`` may say beside the path of a file.
USER, ADC, IMPERSONATE = "user", "adc", "impersonate:"


def chosen(
    how: str,
    scopes: Sequence[str] = SCOPES,
    *,
    account: str = "",
    subject: str = "",
    endpoint: str = "",
    quota_project: str = "",
) -> Credentials:
    """The credentials that a setting names: ``user``, ``adc``, ``impersonate:ROBOT`` or the path of a file."""
    if how in ("", USER):
        made = kept.read(account)
        if endpoint and made.endpoint.rstrip("/") != endpoint.rstrip("/"):
            raise NotSignedIn(f"{made.account} signed in at {made.endpoint or 'Google'}, and not at {endpoint}")
        return of_sign_in(made)
    if how == ADC:
        return default(scopes, quota_project=quota_project, endpoint=endpoint)
    if how.startswith(IMPERSONATE):
        return impersonated(how.removeprefix(IMPERSONATE), scopes, subject=subject, endpoint=endpoint)
    return from_file(Path(how).expanduser(), scopes, subject=subject, endpoint=endpoint)


def _google_auth() -> Any:
    try:
        import google.auth
        import google.auth.exceptions
    except ImportError as error:
        raise NotSignedIn(f"google-auth is not installed; {install('google')}") from error
    return google.auth
