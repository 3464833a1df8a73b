"""What the acts return: small values that survive a receipt."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from quire.workflows.retry import Fail

#: The end of the name of a wait that an automatic answer ends, too.
AUTOMATIC = "+automatic"
_IN_LINK = re.compile(r"(?:/d/|/folders/|[?&]id=)([\w-]{10,})")
_ID = re.compile(r"[\w-]+")


@dataclass(frozen=True, slots=True)
class File:
    """A file or a folder in Drive."""

    id: str
    name: str
    url: str
    mime: str = ""
    #: The hash of its content; empty for folders and Google's own documents.
    md5: str = ""


@dataclass(frozen=True, slots=True)
class Shared:
    """A role that a person was given on a file."""

    file: str
    permission: str
    who: str
    role: str


@dataclass(frozen=True, slots=True)
class Filled:
    """A document whose placeholders were replaced, and how many places that were."""

    document: str
    places: int


@dataclass(frozen=True, slots=True)
class Written:
    """What was put into a document, and the name that it has there."""

    document: str
    mark: str
    text: str


@dataclass(frozen=True, slots=True)
class RowIn:
    """A row that was put into a spreadsheet, and the mark that it has there."""

    book: str
    tab: str
    mark: str


@dataclass(frozen=True, slots=True)
class Sent:
    """A mail that left."""

    id: str
    thread: str
    to: str
    subject: str
    #: What is sent in the same thread if the mail is taken back; empty: it cannot be.
    take_back: str = ""
    #: Whose mailbox it left from, and the hash of what it says.
    account: str = ""
    hash: str = ""

    @property
    def replied(self) -> str:
        """What a step waits for: ``await run.wait(sent.replied, Mail, timeout="14d")``.

        A person's answer ends the wait, and a bounce (``mail.bounce``); what a machine answers does not.
        """
        return f"mail:{self.account}/{self.thread}/{self.id}"

    @property
    def replied_by_anything(self) -> str:
        """The same, also ended by an automatic answer (``mail.automatic``)."""
        return f"{self.replied}{AUTOMATIC}"


@dataclass(frozen=True, slots=True)
class Draft:
    """A draft in a mailbox. Its id lasts; its message is another one after each edit."""

    id: str
    message: str
    thread: str
    to: str
    subject: str
    account: str = ""


@dataclass(frozen=True, slots=True)
class MailFile:
    """A file that came with a mail."""

    name: str
    mime: str
    message: str
    attachment: str
    size: int = 0


@dataclass(frozen=True, slots=True)
class Mail:
    """A mail as it is read."""

    id: str
    thread: str
    sender: str
    to: str
    subject: str
    text: str
    html: str
    at: datetime
    files: tuple[MailFile, ...] = ()
    #: A machine wrote it, as one that says that somebody is away.
    automatic: bool = False
    #: It says that a mail could not be delivered.
    bounce: bool = False


@dataclass(frozen=True, slots=True)
class Event:
    """An event in a calendar."""

    id: str
    calendar: str
    url: str
    #: Its guests were invited, so they hear of it when it is taken back.
    invited: bool = False
    title: str = ""
    #: The address of its conference, if it has one.
    meet: str = ""
    account: str = ""

    @property
    def answered(self) -> str:
        """What a step waits for: ``await run.wait(event.answered, Answered)``."""
        return f"event:{self.account}/{self.calendar}/{self.id}"


@dataclass(frozen=True, slots=True)
class Answered:
    """What a guest said to an invitation."""

    event: str
    who: str
    #: As Calendar has it: ``accepted``, ``declined``, ``tentative``.
    response: str
    comment: str = ""


@dataclass(frozen=True, slots=True)
class Posted:
    """A message in Chat."""

    name: str
    space: str
    thread: str
    account: str = ""

    @property
    def clicked(self) -> str:
        """What a step waits for: ``await run.wait(posted.clicked, Clicked)``."""
        return f"chat:{self.name}"


@dataclass(frozen=True, slots=True)
class Clicked:
    """A press on a button of a message in Chat."""

    message: str
    #: The word of the button.
    choice: str
    by: str
    #: What was typed and chosen in the message's own fields.
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Task:
    """A task on a list."""

    id: str
    list: str
    title: str


@dataclass(frozen=True, slots=True)
class Published:
    """A message to a topic of Pub/Sub."""

    topic: str
    id: str
    key: str


@dataclass(frozen=True, slots=True)
class FormResponse:
    """What somebody answered in a form, by the titles of its questions."""

    id: str
    created_at: datetime
    submitted_at: datetime
    email: str
    answers: Mapping[str, Any]


#: A mail as a step has it: what an act or a wait returned, or its id.
MailLike = Mail | Sent | str | Mapping[str, Any]

#: A file as a step has it: what an act returned, its id, or the link that the browser shows.
FileLike = File | str | Mapping[str, Any]


def id_of(file: FileLike) -> str:
    """Return the id of a file that is given as a value, an id or a link."""
    if isinstance(file, File):
        return file.id
    text = str(file.get("id", "")) if isinstance(file, Mapping) else file
    if found := _IN_LINK.search(text):
        return found[1]
    if _ID.fullmatch(text):
        return text
    raise Fail(f"{text!r} is neither the id nor the link of a file; copy its address from the browser")


def outside_key(key: str) -> str:
    """The word under which an act is found at Google: 32 letters and digits, as the ids of events allow."""
    return base64.b32hexencode(hashlib.sha256(key.encode()).digest()).decode("ascii")[:32].lower()
