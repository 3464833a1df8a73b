"""Google's rate limits, counted by the minute: for each API and each of its counters a limit per user and per project.

An API declares its limits (``Service.limits``) and what a call costs (``Service.charges``). Nothing is counted until
somebody switches the quotas on.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from hectograph.core.error import ApiError

PROJECT = "1071851248496"


@dataclass(frozen=True)
class Limit:
    """How many units a minute allows."""

    per_user: int
    per_project: int


@dataclass(frozen=True)
class Charge:
    """What a call costs: units of one of the API's counters."""

    counter: str
    units: int = 1
    #: Whose counter it is, where that is not the caller: a chat space has a limit of its own.
    key: str = ""


@dataclass(frozen=True)
class Exceeded:
    """Which limit refuses a call."""

    counter: str
    scope: str


class Quota:
    def __init__(self) -> None:
        self.enabled = False
        self.limits: dict[str, dict[str, Limit]] = {}
        self._lock = threading.Lock()
        self._minute = -1
        self._used: Counter[tuple[str, str, str | None]] = Counter()

    def declare(self, name: str, limits: Mapping[str, Limit]) -> None:
        """Make the limits of an API known, under the API's name."""
        self.limits[name] = dict(limits)

    def set(self, given: Any) -> None:
        """Switch the quotas on or off, or change limits.

        ``{"per_user": 5}`` changes those of Sheets, ``{"docs": {"write": {"per_user": 5}}}`` those of any API.
        """
        if isinstance(given, bool):
            self.enabled = given
        else:
            plain = {key: int(given[key]) for key in ("per_user", "per_project") if key in given}
            rest = {key: value for key, value in given.items() if key not in ("per_user", "per_project", "enabled")}
            for counter in self.limits.get("sheets", {}):
                self._change("sheets", counter, plain)
            for name, counters in rest.items():
                for counter, changed in counters.items():
                    self._change(name, counter, changed)
            self.enabled = bool(given.get("enabled", True))
        with self._lock:
            self._used.clear()

    def _change(self, name: str, counter: str, given: Mapping[str, Any]) -> None:
        if counter not in self.limits.get(name, {}):
            known = ", ".join(f"{api}.{one}" for api, limits in sorted(self.limits.items()) for one in limits)
            raise ValueError(f"unknown quota {name}.{counter}; known: {known}")
        self.limits[name][counter] = replace(self.limits[name][counter], **{k: int(v) for k, v in given.items()})

    def json(self) -> dict[str, Any]:
        sheets = self.limits.get("sheets", {}).get("read", Limit(0, 0))
        listed: dict[str, Any] = {
            name: {
                counter: {"per_user": limit.per_user, "per_project": limit.per_project}
                for counter, limit in held.items()
            }
            for name, held in self.limits.items()
        }
        return {"enabled": self.enabled, "per_user": sheets.per_user, "per_project": sheets.per_project, **listed}

    def charge(self, name: str, user: str, charges: Sequence[Charge], now: datetime) -> Exceeded | None:
        """Count a call, or say which limit refuses it; a refused call is not counted."""
        if not self.enabled:
            return None
        with self._lock:
            minute = int(now.timestamp() // 60)
            if minute != self._minute:
                self._minute = minute
                self._used.clear()
            used: Counter[tuple[str, str, str | None]] = Counter()
            for one in charges:
                limit = self.limits[name][one.counter]
                for scope, most, key in (
                    ("user", limit.per_user, one.key or user),
                    ("project", limit.per_project, None),
                ):
                    place = (name, one.counter, key)
                    if self._used[place] + used[place] + one.units > most:
                        return Exceeded(one.counter, scope)
                    used[place] += one.units
            self._used.update(used)
            return None


def exceeded(host: str, noun: str, scope: str) -> ApiError:
    """Return the refusal of an API of the Docs Editors: ``noun`` is what its counter counts, "Read" or "Write"."""
    user = scope == "user"
    metric = noun.lower().replace(" ", "_")
    limit = f"{noun} requests per minute" + (" per user" if user else "")
    detail = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "RATE_LIMIT_EXCEEDED",
        "domain": "googleapis.com",
        "metadata": {
            "quota_limit": f"{noun}RequestsPerMinutePer{'User' if user else 'Project'}",
            "service": host,
            "quota_metric": f"{host}/{metric}_requests",
            "consumer": f"projects/{PROJECT}",
        },
    }
    return ApiError.sheets(
        429,
        f"Quota exceeded for quota metric '{noun} requests' and limit '{limit}' of service '{host}' for "
        f"consumer 'project_number:{PROJECT}'.",
        [detail],
    )
