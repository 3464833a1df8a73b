"""One mail in one mailbox: what it holds, and how the API shows it."""

from __future__ import annotations

import base64
import email
import hashlib
import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from email.message import EmailMessage, Message
from email.policy import SMTP, default
from email.utils import getaddresses
from functools import cached_property
from typing import Any, cast

Json = dict[str, Any]

#: The order in which answers list the labels of a mail, as recorded; labels of one's own come first.
_LISTED = (
    "CATEGORY_PROMOTIONS", "UNREAD", "IMPORTANT", "STARRED", "SPAM", "TRASH", "CATEGORY_SOCIAL", "CATEGORY_UPDATES",
    "CATEGORY_FORUMS", "CATEGORY_PERSONAL", "DRAFT", "SENT", "CHAT", "INBOX",
)  # fmt: skip
_ORDER = {name: place for place, name in enumerate(_LISTED, 1)}

#: A part without a name is shown in place up to this size.
_IN_PLACE = 8192


@dataclass
class Mail:
    message_id: str
    thread_id: str
    raw: bytes
    at: datetime
    labels: set[str] = field(default_factory=set)
    history: int = 0

    @cached_property
    def parsed(self) -> EmailMessage:
        return email.message_from_bytes(self.raw, policy=default)

    def header(self, name: str) -> str:
        try:
            value = self.parsed[name]
        except (ValueError, IndexError, AttributeError):
            return ""
        return "" if value is None else str(value)

    @property
    def subject(self) -> str:
        return self.header("Subject")

    @property
    def rfc822(self) -> str:
        return self.header("Message-ID").strip()

    def addresses(self, *names: str) -> list[str]:
        """Return the addresses in these headers."""
        # An empty text among the others would make a strict reader refuse them all.
        found = getaddresses([text for name in names if (text := self.header(name))])
        return [address.lower() for _, address in found if "@" in address]

    @property
    def references(self) -> list[str]:
        return re.findall(r"<[^<>\s]+>", f"{self.header('References')} {self.header('In-Reply-To')}")

    @cached_property
    def text(self) -> str:
        """The text that a person reads: the plain part, or what is in the HTML one."""
        return body_text(self.parsed)

    @cached_property
    def files(self) -> list[tuple[str, str, bytes]]:
        """The attachments: name, type, content."""
        out = []
        for part in self.parsed.walk():
            name = part.get_filename()
            if name and not part.is_multipart():
                out.append((name, part.get_content_type(), content_of(part)))
        return out

    @property
    def snippet(self) -> str:
        return html.escape(" ".join(self.text.split())[:200], quote=True).replace("&#x27;", "&#39;")

    def short(self) -> Json:
        return {"id": self.message_id, "threadId": self.thread_id}

    def labelled(self) -> Json:
        if not self.labels:
            return self.short()
        return {**self.short(), "labelIds": sorted(self.labels, key=lambda one: (_ORDER.get(one, 0), one))}

    def known(self) -> Json:
        """Return the mail as an answer to a change that changed nothing."""
        return {name: value for name, value in self.json("minimal").items() if name != "payload"}

    def json(self, form: str, headers: Sequence[str] = ()) -> Json:
        """Return the mail as ``messages.get`` shows it: ``minimal``, ``metadata``, ``full`` or ``raw``."""
        out = self.labelled() | {"snippet": self.snippet}
        if form == "full":
            out["payload"] = self._part(self.parsed, "")
        elif form == "metadata":
            wanted = {name.lower() for name in headers}
            listed = [one for one in _headers(self.parsed) if not wanted or one["name"].lower() in wanted]
            out["payload"] = {"mimeType": self.parsed.get_content_type(), "headers": listed}
        out |= {"sizeEstimate": len(self.raw), "historyId": str(self.history)}
        out["internalDate"] = str(int(self.at.timestamp() * 1000))
        if form == "raw":
            out["raw"] = base64.urlsafe_b64encode(self.raw).decode()
        return out

    def _part(self, part: Message, path: str) -> Json:
        out: Json = {"partId": path, "mimeType": part.get_content_type(), "filename": part.get_filename() or ""}
        out["headers"] = _headers(part)
        if part.is_multipart():
            inner = cast("list[Message]", part.get_payload())
            before = f"{path}." if path else ""
            out["body"] = {"size": 0}
            out["parts"] = [self._part(one, f"{before}{number}") for number, one in enumerate(inner)]
            return out
        content = content_of(part)
        out["body"] = {"size": len(content)}
        if out["filename"] or len(content) > _IN_PLACE:
            out["body"] = {"attachmentId": self.attachment_id(path), "size": len(content)}
        elif content:
            out["body"]["data"] = base64.urlsafe_b64encode(content).decode()
        return out

    def attachment_id(self, path: str) -> str:
        digest = hashlib.sha256(f"{self.message_id}/{path}".encode()).digest()
        return "ANGjdJ" + base64.urlsafe_b64encode(digest * 4).decode().rstrip("=")

    def attachment(self, key: str) -> bytes | None:
        for path, part in _leaves(self.parsed, ""):
            if self.attachment_id(path) == key:
                return content_of(part)
        return None


def _leaves(part: Message, path: str) -> Iterator[tuple[str, Message]]:
    if not part.is_multipart():
        yield path, part
        return
    before = f"{path}." if path else ""
    for number, one in enumerate(cast("list[Message]", part.get_payload())):
        yield from _leaves(one, f"{before}{number}")


def content_of(part: Message) -> bytes:
    found = part.get_payload(decode=True)
    if isinstance(found, bytes):
        return found
    inner = part.get_payload()
    return inner[0].as_bytes() if isinstance(inner, list) and inner and isinstance(inner[0], Message) else b""


def _headers(part: Message) -> list[Json]:
    out = []
    for name in dict.fromkeys(part.keys()):
        try:
            values = part.get_all(name) or []
        except (ValueError, IndexError, AttributeError):
            values = []
        out += [{"name": name, "value": " ".join(str(value).split("\n")).replace("\r", "")} for value in values]
    return out


def body_text(parsed: EmailMessage) -> str:
    for kind in ("plain", "html"):
        try:
            part = parsed.get_body((kind,))
            if part is None:
                continue
            text = str(part.get_content())
        except (KeyError, LookupError, ValueError, AttributeError):
            continue
        return text if kind == "plain" else html.unescape(re.sub(r"<[^>]*>", " ", text))
    return ""


def plain_subject(text: str) -> str:
    """Return a subject without what replies put before it: two that are equal belong together."""
    found = " ".join(text.split()).casefold()
    while (shorter := re.sub(r"^(re|aw|fwd?|wg)\s*:\s*", "", found)) != found:
        found = shorter
    return found


def written(sender: str, to: Sequence[str], subject: str, text: str, **headers: str) -> EmailMessage:
    """Return a new mail of plain text."""
    made = EmailMessage(policy=SMTP)
    made["From"], made["To"], made["Subject"] = sender, ", ".join(to), subject
    for name, value in headers.items():
        if value:
            made[name.replace("_", "-")] = value
    made.set_content(text)
    return made
