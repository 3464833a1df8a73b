"""Who asks: a service account, the application's default credentials, a user, or nobody (for the emulator).

google-auth is imported only when real credentials are asked for.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from quire.google.error import NotSignedIn, Unavailable
from quire.installing import install

SCOPES = ("https://www.googleapis.com/auth/spreadsheets", "https://www.googleapis.com/auth/drive")


class Credentials(Protocol):
    @property
    def account(self) -> str:
        """Whose quota the calls count against, and with whom files must be shared; empty if it is not known."""
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

    async def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}"} if self._token else {}

    def expire(self) -> None:
        pass


class GoogleAuth:
    """Credentials of google-auth, refreshed in a thread of their own."""

    def __init__(self, credentials: Any) -> None:
        self._credentials = credentials
        self._lock = asyncio.Lock()

    @property
    def account(self) -> str:
        return str(getattr(self._credentials, "service_account_email", "") or getattr(self._credentials, "account", ""))

    async def headers(self) -> dict[str, str]:
        async with self._lock:
            if not self._credentials.valid:
                await asyncio.to_thread(self._refresh)
            found: dict[str, str] = {}
            self._credentials.apply(found)
            return {name.title(): value for name, value in found.items()}

    def expire(self) -> None:
        self._credentials.token = None

    def _refresh(self) -> None:
        from google.auth.exceptions import GoogleAuthError, TransportError

        try:
            self._credentials.refresh(_request)
        except TransportError as error:
            raise Unavailable(f"Google's sign-in cannot be reached: {error}") from error
        except GoogleAuthError as error:
            raise NotSignedIn(
                f"Google does not take the credentials of {self.account or 'this user'}: {error}. Make a new key, or "
                "sign in again with 'gcloud auth application-default login'."
            ) from error


class _Answer:
    """What google-auth wants to see of an answer."""

    def __init__(self, status: int, headers: Mapping[str, str], data: bytes) -> None:
        self.status = status
        self.headers = headers
        self.data = data


def _request(
    url: str,
    method: str = "GET",
    body: bytes | str | None = None,
    headers: Mapping[str, str] | None = None,
    timeout: float | None = 30.0,
    **_: Any,
) -> _Answer:
    """The transport of google-auth, so that it needs no second HTTP library."""
    import httpx2
    from google.auth.exceptions import TransportError

    try:
        with httpx2.Client(timeout=timeout) as client:
            answer = client.request(method, url, content=body, headers=dict(headers or {}))
            return _Answer(answer.status_code, answer.headers, answer.content)
    except httpx2.HTTPError as error:
        raise TransportError(str(error)) from error  # type: ignore[no-untyped-call]


def from_file(path: str | Path) -> Credentials:
    """The key file of a service account, or the file of a user who signed in (``authorized_user``)."""
    _google_auth()
    from google.oauth2 import credentials, service_account

    try:
        given = json.loads(Path(path).read_text(encoding="utf-8"))
        kind = given.get("type") if isinstance(given, dict) else None
        makers: dict[Any, Any] = {
            "service_account": service_account.Credentials.from_service_account_info,
            "authorized_user": credentials.Credentials.from_authorized_user_info,
        }
        if kind in makers:
            return GoogleAuth(makers[kind](given, scopes=list(SCOPES)))
    except (OSError, ValueError) as error:
        raise NotSignedIn(f"{path} holds no credentials that can be used: {error}") from error
    raise NotSignedIn(
        f"{path} holds no credentials that can be used: its type is {kind!r}, not a service account or user"
    )


def default(scopes: Sequence[str] = SCOPES) -> Credentials:
    """What the machine is signed in as: GOOGLE_APPLICATION_CREDENTIALS, gcloud, or the cloud's metadata."""
    auth = _google_auth()
    try:
        credentials, _ = auth.default(scopes=list(scopes), request=_request)
    except auth.exceptions.GoogleAuthError as error:
        raise NotSignedIn(
            f"there are no Google credentials on this machine: {error} Set GOOGLE_APPLICATION_CREDENTIALS to a service "
            "account's key file, or run 'gcloud auth application-default login'."
        ) from error
    return GoogleAuth(credentials)


def _google_auth() -> Any:
    try:
        import google.auth
        import google.auth.exceptions
    except ImportError as error:
        raise NotSignedIn(f"google-auth is not installed; {install('google')}") from error
    return google.auth
