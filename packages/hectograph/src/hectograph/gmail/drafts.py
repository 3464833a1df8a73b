"""Drafts: their ids last, the mails under them do not, and each can be sent once."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from hectograph.core.http import Response
from hectograph.core.service import MethodCall, Play
from hectograph.gmail.mailbox import Mailbox
from hectograph.gmail.message import Json, Mail, plain_subject

if TYPE_CHECKING:
    from hectograph.gmail.api import GmailApi

#: The second of two sends of one draft that come so close counts as racing with the first.
_RACE = timedelta(seconds=1)


class Drafts:
    def __init__(self, api: GmailApi) -> None:
        self.api = api

    def methods(self) -> Mapping[str, Play]:
        return {
            "create": self.create_draft,
            "get": self.get_draft,
            "list": self.list_drafts,
            "update": self.update_draft,
            "send": self.send_draft,
            "delete": self.delete_draft,
        }

    def _draft(self, call: MethodCall, box: Mailbox, key: str = "") -> tuple[str, Mail]:
        draft = key or call.parts["id"]
        if draft not in box.drafts:
            raise self.api.gone()
        return draft, box.mails[box.drafts[draft]]

    def create_draft(self, call: MethodCall) -> Any:
        box, given = self.api.box(call), call.body().get("message", {})
        raw = self.api.raw(call, given)
        thread = str(given.get("threadId", ""))
        if thread and not box.thread(thread):
            raise self.api.gone()
        joined = box.thread_of(Mail("", "", raw, self.api.world.now()), thread)
        mail = box.add(self.api.post.completed(box, raw), {"DRAFT"}, joined)
        draft = box.mint_draft()
        box.drafts[draft] = mail.message_id
        return {"id": draft, "message": mail.labelled()}

    def get_draft(self, call: MethodCall) -> Any:
        draft, mail = self._draft(call, self.api.box(call))
        return {"id": draft, "message": mail.json(self.api.form(call))}

    def list_drafts(self, call: MethodCall) -> Any:
        box = self.api.box(call)
        found = {one.message_id for one in self.api.found(call, box)}
        drafts = [(draft, box.mails[key]) for draft, key in box.drafts.items() if key in found]
        drafts.sort(key=lambda pair: (pair[1].at, pair[1].message_id), reverse=True)
        return self.api.page(call, drafts, "drafts", lambda pair: {"id": pair[0], "message": pair[1].short()})

    def edit(self, box: Mailbox, draft: str, raw: bytes, wanted: str = "") -> Mail:
        """Give a draft another text. Its id stays; its mail is a new one, in a new thread under another subject."""
        old = box.mails[box.drafts[draft]]
        new = Mail("", "", raw, self.api.world.now())
        same = plain_subject(new.subject) == plain_subject(old.subject)
        thread = box.thread_of(new, wanted) if wanted else old.thread_id if same else ""
        del box.mails[old.message_id]
        box.note("messagesDeleted", [old])
        mail = box.add(self.api.post.completed(box, raw), {"DRAFT"}, thread)
        box.drafts[draft] = mail.message_id
        return mail

    def update_draft(self, call: MethodCall) -> Any:
        box, given = self.api.box(call), call.body().get("message", {})
        draft, _ = self._draft(call, box)
        mail = self.edit(box, draft, self.api.raw(call, given), str(given.get("threadId", "")))
        return {"id": draft, "message": mail.labelled()}

    def send_draft(self, call: MethodCall) -> Any:
        """Send a draft, which works once: the draft is gone, and the mail that was sent is a new one."""
        box, given = self.api.box(call), call.body()
        key = str(given.get("id", ""))
        if not key and (call.media or given.get("message")):
            message = given.get("message", {})
            return self.api.sent(box, self.api.raw(call, message), str(message.get("threadId", "")))
        if key not in box.drafts:
            return self._raced(box, key)
        draft, mail = self._draft(call, box, key)
        if call.media is not None or given.get("message", {}).get("raw"):
            mail = self.edit(box, draft, self.api.raw(call, given.get("message", {})))
        sent = self.api.sent(box, mail.raw, mail.thread_id, sure=True)
        box.remove(mail)
        box.drafts.pop(draft, None)
        box.spent[draft] = (self.api.world.now(), base64.b64encode(mail.raw).decode())
        return sent

    def _raced(self, box: Mailbox, draft: str) -> Json:
        """Send a draft a second time, where the switch lets both of two racing calls win."""
        at, raw = box.spent.get(draft, (None, ""))
        if self.api.world.switches["draft_race"] != "both" or at is None or self.api.world.now() - at > _RACE:
            raise self.api.gone()
        return self.api.sent(box, base64.b64decode(raw), "")

    def delete_draft(self, call: MethodCall) -> Any:
        box = self.api.box(call)
        _, mail = self._draft(call, box)
        box.remove(mail)
        return Response(204)
