"""What each act and each look needs of Google: which API, which scopes, and which quota it counts against.

One table for all that ask for it before anything runs: signing in, the tests of a connection, and the lanes of quota.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from quire.workflows.effect import Effect

PREFIX = "https://www.googleapis.com/auth/"


@dataclass(frozen=True, slots=True)
class Lane:
    """A quota of Google: how much a minute, by whom it is counted, and what one act takes of it."""

    name: str
    per_minute: float
    units: float = 1.0
    #: Counted for each ``account``, or for each ``space`` of Chat, whoever writes there.
    by: str = "account"


@dataclass(frozen=True, slots=True)
class Needs:
    """What one act needs."""

    #: The API that must be switched on in the project, as in ``docs.googleapis.com``.
    api: str
    #: Short names of scopes, in groups: of each group one is enough, the narrowest stands first.
    scopes: tuple[tuple[str, ...], ...]
    lane: Lane
    #: The scope that is needed besides for files that this client neither made nor was given by a person.
    foreign: str = ""

    @property
    def narrowest(self) -> tuple[str, ...]:
        """The scopes that are enough where all files are this client's own."""
        return tuple(group[0] for group in self.scopes)


def full(scope: str) -> str:
    """The scope as Google writes it."""
    return scope if "://" in scope else PREFIX + scope


_DRIVE = Lane("drive", 325_000, 50)
_DRIVE_READ = Lane("drive", 325_000, 5)
_DOCS = Lane("docs.write", 60)
_DOCS_READ = Lane("docs.read", 300)
_SLIDES = Lane("slides.write", 60)
_SHEETS = Lane("sheets.write", 60)
_SHEETS_READ = Lane("sheets.read", 60)
_CALENDAR = Lane("calendar", 600)
_SPACE = Lane("chat.space", 60, by="space")
_TASKS = Lane("tasks", 600)
_PUBSUB = Lane("pubsub", 600_000)


def _gmail(units: float) -> Lane:
    return Lane("gmail", 6_000, units)


_FILES = ("drive.file", "drive")
_COMPOSE = ("gmail.compose", "gmail.modify", "https://mail.google.com/")
#: To tell a mail that was sent from a draft that was thrown away.
_LOOK = ("gmail.metadata", "gmail.readonly", "gmail.modify", "https://mail.google.com/")
_READ = ("gmail.readonly", "gmail.modify", "https://mail.google.com/")
_EVENTS = ("calendar.events", "calendar.events.owned", "calendar")
_BOT = ("chat.bot", "chat.messages.create", "chat.messages")

#: By the name of the act as steps write it.
NEEDS: Mapping[str, Needs] = {
    "drive.folder": Needs("drive", (_FILES,), _DRIVE, foreign="drive"),
    "drive.file": Needs("drive", (_FILES,), _DRIVE, foreign="drive"),
    "drive.copy": Needs("drive", (_FILES,), _DRIVE, foreign="drive"),
    "drive.pdf": Needs("drive", (_FILES,), _DRIVE, foreign="drive"),
    "drive.move": Needs("drive", (_FILES,), _DRIVE, foreign="drive"),
    "drive.share": Needs("drive", (_FILES,), _DRIVE, foreign="drive"),
    "docs.fill": Needs("docs", (("documents", *_FILES),), _DOCS),
    "docs.append": Needs("docs", (("documents", *_FILES),), _DOCS),
    "docs.replace": Needs("docs", (("documents", *_FILES),), _DOCS),
    "slides.fill": Needs("slides", (("presentations", *_FILES),), _SLIDES),
    "sheets.fill": Needs("sheets", (("spreadsheets", *_FILES),), _SHEETS),
    "sheets.row": Needs("sheets", (("spreadsheets", *_FILES),), _SHEETS),
    "gmail.draft": Needs("gmail", (_COMPOSE,), _gmail(10)),
    "gmail.send_draft": Needs("gmail", (_COMPOSE, _LOOK), _gmail(100)),
    "gmail.send": Needs("gmail", (_COMPOSE, _LOOK), _gmail(110)),
    "gmail.reply": Needs("gmail", (_COMPOSE, _LOOK), _gmail(110)),
    "calendar.event": Needs("calendar", (_EVENTS,), _CALENDAR),
    "calendar.update": Needs("calendar", (_EVENTS,), _CALENDAR),
    "calendar.cancel": Needs("calendar", (_EVENTS,), _CALENDAR),
    "chat.post": Needs("chat", (_BOT,), _SPACE),
    "chat.update": Needs("chat", (_BOT,), _SPACE),
    "chat.webhook": Needs("chat", (), _SPACE),
    "tasks.add": Needs("tasks", (("tasks",),), _TASKS),
    "pubsub.publish": Needs("pubsub", (("pubsub", "cloud-platform"),), _PUBSUB),
    # What only reads.
    "drive.text": Needs("drive", (("drive.readonly", "drive"),), _DRIVE_READ),
    "drive.export": Needs("drive", (("drive.readonly", "drive"),), _DRIVE_READ),
    "docs.read": Needs("docs", (("documents.readonly", "documents", "drive.readonly", *_FILES),), _DOCS_READ),
    "gmail.thread": Needs("gmail", (_READ,), _gmail(10)),
    "calendar.busy": Needs("calendar", (("calendar.freebusy", "calendar.readonly", "calendar"),), _CALENDAR),
    "sheets.values": Needs("sheets", (("spreadsheets.readonly", "spreadsheets", *_FILES),), _SHEETS_READ),
    "forms.responses": Needs("forms", (("forms.responses.readonly",), ("forms.body.readonly",)), Lane("forms", 180)),
    # What is waited for, and what starts records.
    "sent.replied": Needs("gmail", (_READ,), _gmail(2)),
    "event.answered": Needs("calendar", (("calendar.events.readonly", *_EVENTS),), _CALENDAR),
    "posted.clicked": Needs("chat", (("chat.bot",),), _SPACE),
    "Form": Needs("forms", (("forms.responses.readonly",), ("forms.body.readonly",)), Lane("forms", 180)),
    "Inbound": Needs("gmail", (_READ[1:],), _gmail(2)),
    "Dropped": Needs("drive", (("drive.readonly", "drive"),), _DRIVE_READ),
}


def name_of(effect: Effect[..., object, object]) -> str:
    """``drive.folder`` for the effect of that name; empty for one that is none of these."""
    module, _, name = effect.path.partition(":")
    words = module.split(".")
    return f"{words[2]}.{name}" if words[:2] == ["quire", "workspace"] else ""


def needs_of(effect: Effect[..., object, object]) -> Needs | None:
    """What an effect needs of Google; None for one that is none of these."""
    return NEEDS.get(name_of(effect))
