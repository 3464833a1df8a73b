"""What goes wrong with Google, by what the caller can do about it. HTTP codes stay inside this package.

Every message names the thing, what Google said, and the remedy.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from quire.errors import NotNow, QuireError


class GoogleError(QuireError):
    """Google refused, or could not be asked."""


class Unavailable(GoogleError):
    """Google could not be asked, or would not answer for now. Nothing was done; the same may be asked again."""


class RateLimited(Unavailable, NotNow):
    """The quota of a minute is used up. Nothing was done."""

    again = (60.0, 120.0, 300.0)

    def due(self, now: float, times: int) -> float:
        """Not all at once: up to half as long again."""
        pause = super().due(now, times) - now
        return now + pause * (1 + random.random() / 2)


class QuotaOver(GoogleError, NotNow):
    """A quota is used up that lasts for hours or a day: of a calendar, of a mailbox, of sharing."""

    again = (3600.0,)

    def due(self, now: float, times: int) -> float:
        """In an hour; if it is not over by then, at the next midnight of this machine."""
        if times == 0:
            return super().due(now, times)
        today = datetime.fromtimestamp(now, UTC).astimezone()
        midnight = (today + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
        return midnight.timestamp()


class Unanswered(GoogleError):
    """The request may have been done or not: its answer never came. Look before you repeat it."""


class NotSignedIn(GoogleError, NotNow):
    """There are no credentials, or Google does not take them."""

    remedy = "quire connect"


class NotShared(GoogleError):
    """The file exists for others: this account may not open or change it."""


class MissingScope(GoogleError, NotNow):
    """The credentials were made without the permission that the call needs."""


class ApiDisabled(GoogleError, NotNow):
    """The project has not switched this API on."""


class NoStorage(GoogleError, NotNow):
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
_RATES = frozenset({"rateLimitExceeded", "userRateLimitExceeded", "RATE_LIMIT_EXCEEDED"})
#: Quotas that do not come back within minutes.
_LONG = frozenset({"quotaExceeded", "dailyLimitExceeded", "sharingRateLimitExceeded"})
#: How Gmail says that a mailbox has sent enough for today, with a reason of a short quota.
_MAILBOX = re.compile(r"user-rate limit exceeded\.?\s+retry after|sending limit|sending quota", re.IGNORECASE)


def reasons(body: Mapping[str, Any]) -> set[str]:
    """The machine-readable reasons in an error body, of either of Google's two forms."""
    error = body.get("error")
    if not isinstance(error, Mapping):
        return {str(error)} if error else set()
    found = {str(item.get("reason", "")) for item in error.get("errors", ()) if isinstance(item, Mapping)}
    found |= {str(item.get("reason", "")) for item in error.get("details", ()) if isinstance(item, Mapping)}
    return found - {""}


def is_rate_limit(status: int, body: Mapping[str, Any]) -> bool:
    """Whether the quota of a minute is used up."""
    if is_quota_over(status, body):
        return False
    return status == 429 or (status == 403 and bool(_RATES & reasons(body)))


def is_quota_over(status: int, body: Mapping[str, Any]) -> bool:
    """Whether a quota is used up that lasts longer."""
    if status not in (403, 429):
        return False
    return bool(_LONG & reasons(body)) or _MAILBOX.search(_said(body)) is not None


def _said(body: Mapping[str, Any]) -> str:
    error = body.get("error")
    return str(error.get("message", "")) if isinstance(error, Mapping) else str(error or "")


def error_of(status: int, body: Mapping[str, Any], what: str, account: str, add: str = "") -> GoogleError:
    """The error that a refusal means. ``what``: the call and the file, for people; ``account``: who asks.

    ``add``: what ``quire connect --add`` takes to allow the call.
    """
    said = _said(body)
    sentence = f"{what}: Google says: {said.rstrip('.') or f'error {status}'}"
    who = account or "the account in use"
    if is_quota_over(status, body):
        return QuotaOver(f"{sentence}. The quota of {who} is used up for hours; nothing was done.")
    if is_rate_limit(status, body):
        return RateLimited(f"{sentence}. The quota is used up; wait a minute, or run fewer workers under this account.")
    if status == 401:
        return NotSignedIn(f"{sentence}. Sign in again: quire connect, or {_OWN_KEY}.")
    if status == 403:
        return _forbidden(sentence, said, reasons(body), who, add)
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


_OWN_KEY = (
    "set GOOGLE_APPLICATION_CREDENTIALS to a service account's key file, or run 'gcloud auth application-default "
    "login' with the scopes of Sheets and Drive"
)


def _forbidden(sentence: str, said: str, why: set[str], who: str, add: str) -> GoogleError:
    """What a 403 means that is no quota of calls."""
    if "storageQuotaExceeded" in why or "storage quota" in said.lower():
        return NoStorage(
            f"{sentence}. A service account has no storage of its own: use a folder in a shared drive and make {who} a "
            "content manager there. A person's storage is full: make room."
        )
    if "ACCESS_TOKEN_SCOPE_INSUFFICIENT" in why or "insufficientPermissions" in why or "scope" in said.lower():
        remedy = f"quire connect --add {add}" if add else "quire connect"
        missing = MissingScope(
            f"{sentence}. The credentials lack a scope: {remedy}, or sign in again with "
            "https://www.googleapis.com/auth/spreadsheets and https://www.googleapis.com/auth/drive."
            if add in ("", "sheets", "drive")
            else f"{sentence}. The credentials lack a scope: {remedy}"
        )
        missing.remedy = remedy
        return missing
    if "SERVICE_DISABLED" in why or "accessNotConfigured" in why:
        return ApiDisabled(f"{sentence}. Switch the API on for the project in the Google Cloud console.")
    return NotShared(f"{sentence}. Share the file with {who} as an editor (the Share button), then try again.")
