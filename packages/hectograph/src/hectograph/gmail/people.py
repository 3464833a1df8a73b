"""What people do with mail, by ``POST /emulator/person`` and on the page ``/mail``.

| do | takes |
|---|---|
| ``mail.send`` | ``as``, ``to`` (an address or a list), ``subject``, ``text``, ``files`` (name to text) |
| ``mail.reply`` | ``as``, ``text``, ``message`` (an id; else the newest that arrived), ``subject``, ``files`` |
| ``mail.read`` | ``as``, ``message``: it is unread no more |
| ``mail.bounce`` | ``as``, ``message``: the mail comes back to its sender |
| ``mail.rule`` | ``address`` (stars are allowed), ``rule``: ``bounce``, ``away`` with ``text``, or ``none`` |
| ``mail.alias`` | ``as``, ``address``: an address that the account may send as |
| ``mail.forget`` | ``as``: the history up to now is forgotten, so that old history ids are 404 |
"""

from __future__ import annotations

from collections.abc import Mapping
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import parseaddr
from typing import TYPE_CHECKING, Any

from hectograph.core.service import Act
from hectograph.gmail.mailbox import Mailbox
from hectograph.gmail.message import Mail, written
from hectograph.gmail.post import answer_to

if TYPE_CHECKING:
    from hectograph.gmail.api import GmailApi


class People:
    def __init__(self, api: GmailApi) -> None:
        self.api = api

    def acts(self) -> Mapping[str, Act]:
        return {
            "mail.send": self.send,
            "mail.reply": self.reply,
            "mail.read": self.read,
            "mail.bounce": self.bounce,
            "mail.rule": self.rule,
            "mail.alias": self.alias,
            "mail.forget": self.forget,
        }

    def _box(self, given: Mapping[str, Any]) -> Mailbox:
        if "@" not in str(given.get("as", "")):
            raise ValueError("'as' must be the address of the person who does it")
        return self.api.post.mailbox(str(given["as"]))

    def _mail(self, box: Mailbox, given: Mapping[str, Any]) -> Mail:
        if given.get("message"):
            found = box.mails.get(str(given["message"]))
        else:
            arrived = [one for one in box.mails.values() if "SENT" not in one.labels and "DRAFT" not in one.labels]
            found = max(arrived, key=lambda one: (one.at, one.message_id), default=None)
        if found is None:
            raise ValueError(f"{box.account} has no such mail")
        return found

    def _sent(self, box: Mailbox, mail: EmailMessage, given: Mapping[str, Any], thread: str = "") -> Any:
        for name, text in dict(given.get("files") or {}).items():
            mail.add_attachment(str(text).encode(), maintype="application", subtype="octet-stream", filename=name)
        sent = self.api.post.send(box, mail.as_bytes(policy=SMTP), thread)
        self.api.world.dirty()
        return sent.short()

    def send(self, given: Mapping[str, Any]) -> Any:
        box = self._box(given)
        to = given.get("to")
        receivers = [to] if isinstance(to, str) else list(to or ())
        if not receivers:
            raise ValueError("a mail needs 'to'")
        mail = written(box.account, receivers, str(given.get("subject", "")), str(given.get("text", "")))
        return self._sent(box, mail, given)

    def reply(self, given: Mapping[str, Any]) -> Any:
        box = self._box(given)
        mail = self._mail(box, given)
        to = parseaddr(mail.header("Reply-To") or mail.header("From"))[1]
        reply = answer_to(mail, box.account, [to], str(given.get("text", "")), str(given.get("subject", "")))
        box.relabel([mail], (), {"UNREAD"})
        return self._sent(box, reply, given, mail.thread_id)

    def read(self, given: Mapping[str, Any]) -> Any:
        box = self._box(given)
        mail = self._mail(box, given)
        box.relabel([mail], (), {"UNREAD"})
        self.api.world.dirty()
        return mail.labelled()

    def bounce(self, given: Mapping[str, Any]) -> Any:
        box = self._box(given)
        mail = self._mail(box, given)
        sender = parseaddr(mail.header("From"))[1]
        self.api.post.bounce(mail.raw, sender, box.account)
        self.api.world.dirty()
        return {"bounced": sender}

    def rule(self, given: Mapping[str, Any]) -> Any:
        address, rule = str(given.get("address", "")), str(given.get("rule", ""))
        if "@" not in address or rule not in {"bounce", "away", "none"}:
            raise ValueError("a rule needs an address, and is 'bounce', 'away' or 'none'")
        self.api.post.rules.pop(address, None)
        if rule != "none":
            self.api.post.rules[address] = {"do": rule, "text": str(given.get("text", "I am away."))}
        return {"rules": self.api.post.rules}

    def alias(self, given: Mapping[str, Any]) -> Any:
        box = self._box(given)
        box.aliases.append(str(given["address"]).lower())
        return {"aliases": box.aliases}

    def forget(self, given: Mapping[str, Any]) -> Any:
        box = self._box(given)
        box.forgotten = box.number + 1
        box.number += 1
        box.history.clear()
        return {"historyId": str(box.number)}
