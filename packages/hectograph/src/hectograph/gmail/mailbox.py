"""One account's mailbox: mails, drafts, labels, and the history of every change."""

from __future__ import annotations

import base64
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from hectograph.core.clock import Now
from hectograph.gmail.message import Json, Mail, plain_subject

SYSTEM = (
    "CHAT", "SENT", "INBOX", "IMPORTANT", "TRASH", "DRAFT", "SPAM", "CATEGORY_FORUMS", "CATEGORY_UPDATES",
    "CATEGORY_PERSONAL", "CATEGORY_PROMOTIONS", "CATEGORY_SOCIAL", "STARRED", "UNREAD",
)  # fmt: skip

#: Labels that no caller may put on a mail or take from it.
FIXED = frozenset({"DRAFT", "SENT", "CHAT"})


@dataclass
class Change:
    """One line of the history."""

    number: int
    at: datetime
    #: ``messagesAdded``, ``messagesDeleted``, ``labelsAdded`` or ``labelsRemoved``.
    kind: str
    #: The mails as they were afterwards.
    messages: list[Json]
    labels: list[str]

    def json(self) -> Json:
        short = [{"id": one["id"], "threadId": one["threadId"]} for one in self.messages]
        entries: list[Json] = [{"message": one} for one in self.messages]
        if self.kind.startswith("labels"):
            entries = [{**one, "labelIds": self.labels} for one in entries]
        return {"id": str(self.number), "messages": short, self.kind: entries}

    def about(self, label: str) -> bool:
        return label in self.labels or any(label in one.get("labelIds", ()) for one in self.messages)


@dataclass
class Mailbox:
    account: str
    now: Now
    mails: dict[str, Mail] = field(default_factory=dict)
    #: The mail of each draft, by the draft's id.
    drafts: dict[str, str] = field(default_factory=dict)
    #: Drafts that were sent, with the moment: for a race of two that send one.
    spent: dict[str, tuple[datetime, str]] = field(default_factory=dict)
    labels: dict[str, Json] = field(default_factory=dict)
    history: list[Change] = field(default_factory=list)
    number: int = 1000
    #: Changes up to this number are forgotten.
    forgotten: int = 0
    aliases: list[str] = field(default_factory=list)
    vacation: Json = field(default_factory=dict)
    #: Settings that the emulator keeps and does nothing with, by name; and how the account sends as itself.
    settings: Json = field(default_factory=dict)
    filters: dict[str, Json] = field(default_factory=dict)
    answered: list[str] = field(default_factory=list)
    watch: Json = field(default_factory=dict)
    #: How many mails this account sent, and when.
    sent_at: list[datetime] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._last = 0
        self._random = random.Random(self.account)

    def mint(self) -> str:
        """Return a new id: 16 hex digits that grow with time."""
        self._last = max(int(self.now().timestamp() * 1000) << 20 | self._random.getrandbits(18), self._last + 1)
        return f"{self._last:016x}"

    def mint_draft(self) -> str:
        return f"r{self._random.choice(('', '-'))}{self._random.randrange(10**17, 2**63 - 1)}"

    def note(self, kind: str, mails: Sequence[Mail], labels: Iterable[str] = ()) -> None:
        """Write a change into the history."""
        self.number += 1 + self._random.randrange(20)
        for mail in mails:
            mail.history = self.number
        self.history.append(Change(self.number, self.now(), kind, [one.labelled() for one in mails], sorted(labels)))

    def add(self, raw: bytes, labels: Iterable[str], thread: str = "", at: datetime | None = None) -> Mail:
        """Put a mail into the mailbox; without a thread it begins one."""
        key = self.mint()
        mail = Mail(key, thread or key, raw, at or self.now(), set(labels))
        self.mails[key] = mail
        self.note("messagesAdded", [mail])
        return mail

    def remove(self, mail: Mail) -> None:
        del self.mails[mail.message_id]
        for draft in [draft for draft, key in self.drafts.items() if key == mail.message_id]:
            del self.drafts[draft]
        self.note("messagesDeleted", [mail])

    def relabel(self, mails: Sequence[Mail], add: Iterable[str] = (), remove: Iterable[str] = ()) -> bool:
        """Put labels on mails and take others away: one change for each label. Return whether anything changed."""
        changed = False
        for label in sorted(set(add)):
            new = [one for one in mails if label not in one.labels]
            for one in new:
                one.labels.add(label)
            if new:
                self.note("labelsAdded", new, [label])
                changed = True
        for label in sorted(set(remove)):
            new = [one for one in mails if label in one.labels]
            for one in new:
                one.labels.discard(label)
            if new:
                self.note("labelsRemoved", new, [label])
                changed = True
        return changed

    def thread(self, thread_id: str) -> list[Mail]:
        found = [one for one in self.mails.values() if one.thread_id == thread_id]
        return sorted(found, key=lambda one: (one.at, one.message_id))

    def thread_of(self, mail: Mail, wanted: str) -> str:
        """Return the thread that a mail of one's own joins, or "" where it begins one.

        It joins the thread that is asked for only if it answers a mail of it, and under the same subject.
        """
        inside = self.thread(wanted) if wanted else []
        known = {one.rfc822 for one in inside}
        answers = any(reference in known for reference in mail.references)
        same = any(plain_subject(one.subject) == plain_subject(mail.subject) for one in inside)
        return wanted if answers and same else ""

    def thread_by_references(self, mail: Mail) -> str:
        """Return the thread that a mail from outside joins, or ""."""
        wanted = set(mail.references)
        if not wanted:
            return ""
        return next((one.thread_id for one in self.mails.values() if one.rfc822 in wanted), "")

    def drop_history(self, before: datetime) -> None:
        """Forget changes that are older."""
        while self.history and self.history[0].at < before:
            self.forgotten = self.history.pop(0).number

    def known_labels(self) -> set[str]:
        return {*SYSTEM, *self.labels}

    def dump(self) -> Json:
        plain = (
            *("account", "drafts", "labels", "number", "forgotten", "aliases"),
            *("vacation", "settings", "filters", "answered", "watch"),
        )
        return {
            **{name: getattr(self, name) for name in plain},
            "last": self._last,
            "mails": [
                [one.message_id, one.thread_id, base64.b64encode(one.raw).decode(), one.at.isoformat(),
                 sorted(one.labels), one.history]
                for one in self.mails.values()
            ],
            "history": [[one.number, one.at.isoformat(), one.kind, one.messages, one.labels] for one in self.history],
        }  # fmt: skip

    @classmethod
    def load(cls, held: Mapping[str, Any], now: Now) -> Mailbox:
        plain = {name: value for name, value in held.items() if name not in {"mails", "history", "last"}}
        made = cls(now=now, **plain)
        made._last = held["last"]
        for key, thread, raw, at, labels, number in held["mails"]:
            content = base64.b64decode(raw)
            made.mails[key] = Mail(key, thread, content, datetime.fromisoformat(at), set(labels), number)
        for number, at, kind, messages, labels in held["history"]:
            made.history.append(Change(number, datetime.fromisoformat(at), kind, messages, labels))
        return made
