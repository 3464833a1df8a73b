"""What goes wrong with Google, by what the caller can do about it. HTTP codes stay inside this package.

Every message names the thing, what Google said, and the remedy.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from quire.errors import QuireError


class GoogleError(QuireError):
    """Google refused, or could not be asked."""


class Unavailable(GoogleError):
    """Google could not be asked, or would not answer for now. Nothing was done; the same may be asked again."""


class RateLimited(Unavailable):
    """The quota is used up for now. Nothing was done."""


class Unanswered(GoogleError):
    """The request may have been done or not: its answer never came. Look before you repeat it."""


class NotSignedIn(GoogleError):
    """There are no credentials, or Google does not take them."""


class NotShared(GoogleError):
    """The file exists for others: this account may not open or change it."""


class MissingScope(GoogleError):
    """The credentials were made without the permission that the call needs."""


class ApiDisabled(GoogleError):
    """The project has not switched this API on."""


class NoStorage(GoogleError):
    """The account has no room for files."""


class Missing(GoogleError):
    """There is no such file, or it is not shared with this account: Google does not tell the two apart."""


class AlreadyThere(GoogleError):
    """A file with this id exists: for a repeated create that is success."""


class Changed(GoogleError):
    """The file is not at the state that the call names any more."""


class Invalid(GoogleError):
    """Google will not take this request as it is; nothing was done."""

    def __init__(self, message: str, *, index: int | None = None, request: str = "") -> None:
        super().__init__(message)
        #: Which request of a batch was refused, and its kind; None and empty if it was none of them.
        self.index = index
        self.request = request


_PLACE = re.compile(r"Invalid (?:requests|data)\[(\d+)\](?:\.(\w+))?")
_RATES = frozenset({"rateLimitExceeded", "userRateLimitExceeded", "dailyLimitExceeded", "sharingRateLimitExceeded"})


def reasons(body: Mapping[str, Any]) -> set[str]:
    """The machine-readable reasons in an error body, of either of Google's two forms."""
    error = body.get("error")
    if not isinstance(error, Mapping):
        return {str(error)} if error else set()
    found = {str(item.get("reason", "")) for item in error.get("errors", ()) if isinstance(item, Mapping)}
    found |= {str(item.get("reason", "")) for item in error.get("details", ()) if isinstance(item, Mapping)}
    return found - {""}


def is_rate_limit(status: int, body: Mapping[str, Any]) -> bool:
    return status == 429 or (status == 403 and bool(_RATES & reasons(body)))


def error_of(status: int, body: Mapping[str, Any], what: str, account: str) -> GoogleError:
    """The error that a refusal means. ``what``: the call and the file, for people; ``account``: who asks."""
    error = body.get("error")
    said = str(error.get("message", "")) if isinstance(error, Mapping) else str(error or "")
    why = reasons(body)
    sentence = f"{what}: Google says: {said.rstrip('.') or f'error {status}'}"
    who = account or "the account in use"
    if is_rate_limit(status, body):
        return RateLimited(f"{sentence}. The quota is used up; wait a minute, or run fewer workers under this account.")
    if status == 401:
        return NotSignedIn(
            f"{sentence}. Sign in again: set GOOGLE_APPLICATION_CREDENTIALS to a service account's key file, or run "
            "'gcloud auth application-default login' with the scopes of Sheets and Drive."
        )
    if status == 403:
        if "storageQuotaExceeded" in why or "storage quota" in said.lower():
            return NoStorage(
                f"{sentence}. A service account has no storage of its own: use a folder in a shared drive and make "
                f"{who} a content manager there."
            )
        if "ACCESS_TOKEN_SCOPE_INSUFFICIENT" in why or "insufficientPermissions" in why or "scope" in said.lower():
            return MissingScope(
                f"{sentence}. The credentials lack a scope: sign in again with "
                "https://www.googleapis.com/auth/spreadsheets and https://www.googleapis.com/auth/drive."
            )
        if "SERVICE_DISABLED" in why or "accessNotConfigured" in why:
            return ApiDisabled(f"{sentence}. Switch the API on for the project in the Google Cloud console.")
        return NotShared(f"{sentence}. Share the file with {who} as an editor (the Share button), then try again.")
    if status in (404, 410):
        return Missing(f"{sentence}. Check the id, and that the file is shared with {who}.")
    if status == 409:
        return AlreadyThere(sentence)
    if status == 412:
        return Changed(sentence)
    if status >= 500:
        return Unanswered(f"{sentence}. Whether it was done is unknown.")
    place = _PLACE.search(said)
    if place is None:
        return Invalid(sentence)
    return Invalid(sentence, index=int(place[1]), request=place[2] or "")
