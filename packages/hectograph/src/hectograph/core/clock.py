"""The emulator's clock: the machine's, or a told one that moves only when somebody moves it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

Now = Callable[[], datetime]


class Clock:
    """Tells the time. Once told a time it stands still until told again or advanced."""

    def __init__(self, source: Now | None = None) -> None:
        self._source = source
        self._told: datetime | None = None
        self._moved = threading.Condition()

    def now(self) -> datetime:
        if self._told is not None:
            return self._told
        return self._source() if self._source else datetime.now(UTC)

    @property
    def told(self) -> bool:
        return self._told is not None or self._source is not None

    def tell(self, moment: datetime | None) -> None:
        """Stand at a moment, or with nothing go with the machine again."""
        with self._moved:
            self._told = moment if moment is None or moment.tzinfo else moment.replace(tzinfo=UTC)
            self._moved.notify_all()

    def advance(self, seconds: float) -> None:
        self.tell(self.now() + timedelta(seconds=seconds))

    def sleep(self, seconds: float) -> None:
        """Let time pass: a told clock is moved, a real one is waited for."""
        if self._told is not None:
            self.advance(seconds)
        elif seconds > 0:
            time.sleep(seconds)


def stamp(moment: datetime) -> str:
    """RFC 3339 with milliseconds, as Drive writes times."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"
