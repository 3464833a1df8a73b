"""Everything the emulator holds: books, files, clock, faults, counters."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from hectograph.core.channels import Channels
from hectograph.core.clock import Clock, Now
from hectograph.core.delivery import Delivery
from hectograph.core.faults import Faults
from hectograph.core.http import Response
from hectograph.core.outgoing import Outgoing
from hectograph.core.people import People
from hectograph.core.quota import Quota
from hectograph.core.service import Service
from hectograph.core.switch import Switches
from hectograph.core.topics import Topics
from hectograph.drive.drive import Drive
from hectograph.drive.file import SPREADSHEET
from hectograph.sheets.library import Library

#: Who the caller is, unless told: the account of the public recordings, so that they replay unchanged.
#: A service account of a project below example.com, which nobody can own: an account of this name is nobody's.
ACCOUNT = "robot@emulator.example.com.iam.gserviceaccount.com"

#: The time zone of an account, unless told: that of the public recordings of Calendar.
TIME_ZONE = "Europe/London"


def known_zone(name: str) -> str:
    """Return the name of a time zone, or refuse it."""
    try:
        return ZoneInfo(name).key
    except (KeyError, ValueError, OSError) as error:
        raise ValueError(f"there is no time zone {name!r}") from error


def _nobody(*_: Any) -> Any:
    raise ValueError("no application serves this world")


class World:
    def __init__(self, clock: Now | None = None, account: str = ACCOUNT) -> None:
        self.clock = Clock(clock)
        self.account = account
        self.time_zone = TIME_ZONE
        self.switches = Switches()
        self.faults = Faults()
        self.quota = Quota()
        self.library = Library(self.now)
        self.drive = Drive(self.now, account, self.switches)
        self.latency_seconds = 0.0
        #: Names that were deleted and still count as taken, by book.
        self.ghosts: dict[str, set[str]] = {}
        #: The APIs by name and version; each holds its own state.
        self.services: dict[str, Service] = {}
        self.people = People()
        self.outgoing = Outgoing(self.now)
        self.delivery = Delivery(self.now)
        self.channels = Channels(self.delivery)
        self.topics = Topics()
        #: Types into a book, as a person does; a form writes its responses so.
        self.type: Callable[[Mapping[str, Any]], Any] = _nobody
        #: Calls an API as a program does: verb, path, body. Pages use it.
        self.call: Callable[..., Response] = _nobody
        self.changed = threading.Condition()
        self.edits = 0
        self._count_lock = threading.Lock()
        self.counters: Counter[str] = Counter()

    def now(self) -> datetime:
        return self.clock.now()

    @property
    def lock(self) -> threading.RLock:
        return self.library.lock

    def count(self, *names: str) -> None:
        with self._count_lock:
            self.counters.update(names)

    def touched(self, book_id: str) -> None:
        """Tell Drive and the watching pages that a book changed."""
        file = self.drive.files.get(book_id)
        if file is not None:
            title = self.library.shelf(book_id).current.properties["title"]
            if title != file.name:
                file.name = title
                file.named = self.now()
            self.drive.touched(file)
        self.dirty()

    def dirty(self) -> None:
        with self.changed:
            self.edits += 1
            self.changed.notify_all()

    def clear(self) -> None:
        """Forget everything, as when just started; settings stay."""
        with self.lock:
            self.drive.files.clear()
            self.library.shelves.clear()
            self.drive.changes.clear()
            self.outgoing.left.clear()
            self.delivery.clear()
            self.channels.held.clear()
            for service in self.services.values():
                service.clear()
        self.faults.remove()
        self.counters.clear()
        self.dirty()

    def settings(self) -> dict[str, Any]:
        return {
            "quotas": self.quota.json(),
            "name_lag_seconds": self.drive.name_lag_seconds,
            "latency_seconds": self.latency_seconds,
            "account": self.account,
            "time_zone": self.time_zone,
            "switches": self.switches.json(),
        }

    def set(self, given: dict[str, Any]) -> None:
        for name, value in given.items():
            match name:
                case "quotas":
                    self.quota.set(value)
                case "name_lag_seconds":
                    self.drive.name_lag_seconds = float(value)
                case "latency_seconds":
                    self.latency_seconds = float(value)
                case "account":
                    self.account = self.drive.account = str(value)
                case "time_zone":
                    self.time_zone = known_zone(str(value))
                case "switches":
                    self.switches.set(value)
                case _:
                    raise ValueError(f"unknown setting {name!r}; known: {', '.join(self.settings())}")

    def act(self, given: Mapping[str, Any]) -> Any:
        """Let a person do something in one of the APIs: ``{"do": "calendar.answer", ...}``."""
        word = str(given.get("do", ""))
        for service in self.services.values():
            found = service.acts().get(word)
            if found is not None:
                with self.lock:
                    done = found(given)
                    self.dirty()
                    return done
        known = sorted(name for service in self.services.values() for name in service.acts())
        raise ValueError(f"nobody knows how to do {word!r}; known: {', '.join(known)}")

    def books(self) -> list[dict[str, Any]]:
        out = []
        for file in list(self.drive.files.values()):
            if file.mime_type == SPREADSHEET and file.file_id in self.library.shelves:
                book = self.library.shelf(file.file_id).current
                out.append(
                    {
                        "id": file.file_id,
                        "title": file.name,
                        "version": book.version,
                        "trashed": file.trashed,
                        "sheets": [sheet.title for sheet in book.all_sheets()],
                    }
                )
        return out
