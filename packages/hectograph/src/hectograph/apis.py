"""The APIs that the emulator serves, the busiest first. To add one: ``core/service.py`` says how."""

from __future__ import annotations

from collections.abc import Callable

from hectograph.calendar.api import CalendarApi
from hectograph.chat.api import ChatApi
from hectograph.core.service import Service
from hectograph.docs.api import DocsApi
from hectograph.drive.api import DriveApi
from hectograph.drive.v2 import DriveV2
from hectograph.forms.api import FormsApi
from hectograph.gmail.api import GmailApi
from hectograph.pubsub.api import PubsubApi
from hectograph.sheets.api import SheetsApi
from hectograph.slides.api import SlidesApi
from hectograph.tasks.api import TasksApi
from hectograph.world import World

SERVICES: tuple[type[Service], ...] = (
    SheetsApi,
    DriveApi,
    DriveV2,
    DocsApi,
    GmailApi,
    CalendarApi,
    ChatApi,
    FormsApi,
    SlidesApi,
    TasksApi,
    PubsubApi,
)

VERSIONS = tuple(service.version for service in SERVICES)


def services(world: World, base: Callable[[], str]) -> tuple[Service, ...]:
    """Return every API over a world."""
    return tuple(service(world, base) for service in SERVICES)
