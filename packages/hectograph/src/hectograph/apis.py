"""The APIs that the emulator serves, the busiest first. To add one: ``core/service.py`` says how."""

from __future__ import annotations

from collections.abc import Callable

from hectograph.calendar.api import CalendarApi
from hectograph.core.error import CALENDAR
from hectograph.core.service import Play, Service
from hectograph.docs.api import DocsApi
from hectograph.drive.api import DriveApi
from hectograph.drive.v2 import DriveV2
from hectograph.gmail.api import GmailApi
from hectograph.pubsub.api import PubsubApi
from hectograph.sheets.api import SheetsApi
from hectograph.slides.api import SlidesApi
from hectograph.world import World


class _NotPlayed(Service):
    """An API whose methods are known and not played yet: every one of them answers 501."""

    def methods(self) -> dict[str, Play]:
        return {}


class Chat(_NotPlayed):
    version = "chat.v1"


class Forms(_NotPlayed):
    version = "forms.v1"


class Tasks(_NotPlayed):
    version = "tasks.v1"
    envelope = CALENDAR
    strict = False


SERVICES: tuple[type[Service], ...] = (
    SheetsApi,
    DriveApi,
    DriveV2,
    DocsApi,
    GmailApi,
    CalendarApi,
    Chat,
    Forms,
    SlidesApi,
    Tasks,
    PubsubApi,
)

VERSIONS = tuple(service.version for service in SERVICES)


def services(world: World, base: Callable[[], str]) -> tuple[Service, ...]:
    """Return every API over a world."""
    return tuple(service(world, base) for service in SERVICES)
