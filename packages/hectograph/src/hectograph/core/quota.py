"""Google's rate limits: 60 calls a minute per user and 300 per project, reads and writes counted apart."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import datetime
from typing import Any

from hectograph.core.error import ApiError

PROJECT = "1071851248496"


class Quota:
    def __init__(self) -> None:
        self.enabled = False
        self.per_user = 60
        self.per_project = 300
        self._lock = threading.Lock()
        self._minute = -1
        self._used: Counter[tuple[bool, str | None]] = Counter()

    def set(self, given: Any) -> None:
        """True, false, or the two limits by name."""
        if isinstance(given, bool):
            self.enabled = given
        else:
            self.enabled = True
            self.per_user = int(given.get("per_user", self.per_user))
            self.per_project = int(given.get("per_project", self.per_project))
        with self._lock:
            self._used.clear()

    def json(self) -> dict[str, Any]:
        return {"enabled": self.enabled, "per_user": self.per_user, "per_project": self.per_project}

    def charge(self, user: str, write: bool, now: datetime) -> ApiError | None:
        """Count a call, or say why it is refused; a refused call is not counted."""
        if not self.enabled:
            return None
        with self._lock:
            minute = int(now.timestamp() // 60)
            if minute != self._minute:
                self._minute = minute
                self._used.clear()
            if self._used[write, user] >= self.per_user:
                return exceeded(write, "user")
            if self._used[write, None] >= self.per_project:
                return exceeded(write, "project")
            self._used[write, user] += 1
            self._used[write, None] += 1
            return None


def exceeded(write: bool, scope: str) -> ApiError:
    noun = "Write" if write else "Read"
    user = scope == "user"
    limit = f"{noun} requests per minute" + (" per user" if user else "")
    detail = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "RATE_LIMIT_EXCEEDED",
        "domain": "googleapis.com",
        "metadata": {
            "quota_limit": f"{noun}RequestsPerMinutePer{'User' if user else 'Project'}",
            "service": "sheets.googleapis.com",
            "quota_metric": f"sheets.googleapis.com/{noun.lower()}_requests",
            "consumer": f"projects/{PROJECT}",
        },
    }
    return ApiError.sheets(
        429,
        f"Quota exceeded for quota metric '{noun} requests' and limit '{limit}' of service 'sheets.googleapis.com' for "
        f"consumer 'project_number:{PROJECT}'.",
        [detail],
    )
