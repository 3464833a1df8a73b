"""How mail travels between the mailboxes: threads at the receiver's, bounces, automatic answers."""

from __future__ import annotations

import base64
import fnmatch
import random
from collections.abc import Mapping
from datetime import datetime, timedelta
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, parseaddr
from typing import TYPE_CHECKING

from hectograph.core.outgoing import Left
from hectograph.core.quota import PROJECT
from hectograph.gmail.mailbox import Mailbox
from hectograph.gmail.message import Json, Mail, written
from hectograph.gmail.query import Search

if TYPE_CHECKING:
    from hectograph.world import World

DAEMON = "Mail Delivery Subsystem <mailer-daemon@googlemail.com>"

#: What the first header of a mail says that came by the API.
_BY = "by gmailapi.google.com with HTTPREST"

#: Addresses to which no mail can be delivered.
NOWHERE = "*@invalid.example"


class PostOffice:
    """Every mailbox. Each address that is written to has one."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.mailboxes: dict[str, Mailbox] = {}
        #: What addresses do with mail: ``bounce``, or ``away`` with a text. The pattern may have stars.
        self.rules: dict[str, Json] = {NOWHERE: {"do": "bounce"}}
        self._random = random.Random(7)
        world.outgoing.subscribers.append(self.take)

    def mailbox(self, account: str) -> Mailbox:
        account = account.lower()
        if account not in self.mailboxes:
            self.mailboxes[account] = Mailbox(account, self.world.now)
        return self.mailboxes[account]

    def take(self, left: Left) -> None:
        """Deliver what another API lets leave as a mail: invitations, share notices."""
        if left.kind in {"invitation", "share"}:
            self.deliver(left.content.encode("utf-8", "replace"), left.sender, list(left.to))

    def completed(self, box: Mailbox, raw: bytes) -> bytes:
        """Return a mail as Gmail keeps a draft or sends it: with sender, date and its own Message-ID.

        A mail that is complete, because it was a draft, stays as it is.
        """
        mail = Mail("", "", raw, self.world.now())
        head, mark, body = _split(raw)
        kept = _headers(head)
        if kept and kept[0][1].startswith("Received: ") and _BY in kept[0][1]:
            return raw
        sender = parseaddr(mail.header("From"))[1].lower()
        if sender not in {box.account, *box.aliases}:
            kept = [(name, text) for name, text in kept if name != "from"]
            kept.insert(0, ("from", f"From: {box.account}"))
        now = format_datetime(self.world.now())
        if not any(name == "date" for name, _ in kept):
            kept.append(("date", "Date: " + now))
        if not mail.rfc822 or self.world.switches["message_id"] != "kept":
            kept = [(name, text) for name, text in kept if name != "message-id"]
            word = "".join(self._random.choices(_LETTERS, k=50))
            kept.append(("message-id", f"Message-Id: <CA{word}@mail.gmail.com>"))
        kept.insert(0, ("received", f"Received: from {PROJECT} named unknown {_BY}; {now}"))
        return _joined(kept) + mark + body

    def send(self, box: Mailbox, raw: bytes, thread: str) -> Mail:
        """Send a mail: it is in the sender's mailbox, and in those of all receivers."""
        original = Mail("", "", raw, self.world.now())
        receivers = list(dict.fromkeys(original.addresses("To", "Cc", "Bcc")))
        whole = self.completed(box, raw)
        head, mark, body = _split(whole)
        out = _joined([(name, text) for name, text in _headers(head) if name != "bcc"]) + mark + body
        labels = {"SENT"} | ({"INBOX", "UNREAD"} if box.account in receivers else set())
        mail = box.add(whole, labels, thread)
        box.sent_at.append(self.world.now())
        summary = f"{mail.subject or '(no subject)'}"
        self.world.outgoing.send("mail", box.account, tuple(receivers), summary, out.decode("utf-8", "replace"))
        self.deliver(out, box.account, [one for one in receivers if one != box.account])
        self.pushed(box)
        return mail

    def deliver(self, raw: bytes, sender: str, receivers: list[str]) -> None:
        for address in receivers:
            rule = self.rule(address)
            if rule.get("do") == "bounce":
                self.bounce(raw, sender, address)
                continue
            box = self.mailbox(address)
            self._arrive(box, b"Delivered-To: " + address.encode() + b"\r\n" + raw, sender, rule)

    def _arrive(self, box: Mailbox, raw: bytes, sender: str, rule: Mapping[str, str]) -> None:
        """Put a mail into its receiver's mailbox: into its thread, past the filters, and perhaps answered."""
        arrived = Mail("", "", raw, self.world.now())
        labels = {"INBOX", "UNREAD"} | ({"CATEGORY_UPDATES"} if "mailer-daemon" in sender else set())
        for one in box.filters.values():
            if matches(one.get("criteria", {}), arrived, self.world.now()):
                labels |= set(one.get("action", {}).get("addLabelIds", ()))
                labels -= set(one.get("action", {}).get("removeLabelIds", ()))
        mail = box.add(raw, labels, box.thread_by_references(arrived))
        self.pushed(box)
        self._answer_for(box, mail, sender, rule)

    def rule(self, address: str) -> Json:
        for pattern, rule in reversed(self.rules.items()):
            if fnmatch.fnmatch(address.lower(), pattern.lower()):
                return rule
        return {}

    def _answer_for(self, box: Mailbox, arrived: Mail, sender: str, rule: Mapping[str, str]) -> None:
        """Answer on behalf of somebody who is away: once to each sender, and never to a machine."""
        text = rule.get("text", "") if rule.get("do") == "away" else self._vacation(box)
        machine = arrived.header("Auto-Submitted").lower() not in {"", "no"} and rule.get("do") != "away"
        if not text or machine or sender in box.answered or "mailer-daemon" in sender:
            return
        box.answered.append(sender)
        subject = box.vacation.get("responseSubject") if not rule else ""
        reply = answer_to(arrived, box.account, [sender], text, subject or "")
        reply["Auto-Submitted"] = "auto-replied"
        self.send(box, reply.as_bytes(policy=SMTP), arrived.thread_id)

    def _vacation(self, box: Mailbox) -> str:
        held = box.vacation
        if not held.get("enableAutoReply"):
            return ""
        now = self.world.now().timestamp() * 1000
        if now < int(held.get("startTime", 0)) or now > int(held.get("endTime", 2**62)):
            return ""
        return str(held.get("responseBodyPlainText") or held.get("responseBodyHtml") or "")

    def bounce(self, raw: bytes, sender: str, address: str) -> None:
        """Tell a sender that an address could not be found: a mail into the same thread."""
        original = Mail("", "", raw, self.world.now())
        text = (
            f"** Address not found **\n\nYour message wasn't delivered to {address} because the address couldn't be "
            "found, or is unable to receive mail.\n\nThe response was:\n\n"
            "550 5.1.1 The email account that you tried to reach does not exist.\n"
        )
        ids = {"In_Reply_To": original.rfc822, "References": original.rfc822}
        notice = written(DAEMON, [sender], "Delivery Status Notification (Failure)", text, **ids)
        notice["Auto-Submitted"] = "auto-replied"
        notice["X-Failed-Recipients"] = address
        notice["Message-ID"] = f"<{self._random.getrandbits(64):x}@mx.google.com>"
        notice["Date"] = format_datetime(self.world.now() + timedelta(seconds=1))
        self.deliver(notice.as_bytes(policy=SMTP), "mailer-daemon@googlemail.com", [sender])

    def pushed(self, box: Mailbox) -> None:
        """Tell a watching topic that the mailbox has changed."""
        watch = box.watch
        if not watch or int(watch["expiration"]) <= self.world.now().timestamp() * 1000:
            return
        self.world.topics.publish(
            watch["topicName"], f'{{"emailAddress":"{box.account}","historyId":{box.number}}}'.encode(), {}
        )


def matches(criteria: Mapping[str, str], mail: Mail, now: datetime) -> bool:
    """Whether a filter is for a mail."""
    keyed = {"from": "from", "to": "to", "subject": "subject"}
    text = " ".join(f"{keyed[name]}:({value})" for name, value in criteria.items() if name in keyed)
    text += " " + criteria.get("query", "") + (" has:attachment" if criteria.get("hasAttachment") else "")
    return Search(text, now, {}).matches(mail)


def _joined(lines: list[tuple[str, str]]) -> bytes:
    return "\r\n".join(text for _, text in lines).encode("utf-8", "surrogateescape")


def _split(raw: bytes) -> tuple[bytes, bytes, bytes]:
    for mark in (b"\r\n\r\n", b"\n\n"):
        head, found, body = raw.partition(mark)
        if found:
            return head, b"\r\n\r\n", body
    return raw.rstrip(b"\r\n"), b"\r\n\r\n", b""


def _headers(head: bytes) -> list[tuple[str, str]]:
    """Return the header lines as they stand, each with its name in lower case."""
    out: list[tuple[str, str]] = []
    for line in head.decode("utf-8", "surrogateescape").splitlines():
        if line[:1] in {" ", "\t"} and out:
            out[-1] = (out[-1][0], f"{out[-1][1]}\r\n{line}")
        elif ":" in line:
            out.append((line.partition(":")[0].strip().lower(), line))
    return out


def answer_to(mail: Mail, sender: str, to: list[str], text: str, subject: str = "") -> EmailMessage:
    """Return a reply that joins the thread of a mail."""
    head = subject or mail.subject
    if not subject and not head.lower().startswith("re:"):
        head = f"Re: {head}"
    references = " ".join([*mail.references, mail.rfc822]).strip()
    quoted = "".join(f"> {line}\n" for line in mail.text.splitlines())
    whole = f"{text}\n\nOn {mail.header('Date')}, {mail.header('From')} wrote:\n{quoted}"
    return written(sender, to, head, whole, In_Reply_To=mail.rfc822, References=references)


def decoded(text: str) -> bytes:
    """Return the bytes of base64url text; padding may be missing."""
    plain = text.rstrip("=")
    if not plain or any(letter not in _LETTERS for letter in plain):
        raise ValueError(text[:20])
    return base64.urlsafe_b64decode(plain + "=" * (-len(plain) % 4))


_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
