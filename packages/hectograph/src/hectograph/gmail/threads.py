"""Threads: the mails that belong together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hectograph.core.http import Response
from hectograph.core.service import MethodCall, Play
from hectograph.gmail.mailbox import Mailbox
from hectograph.gmail.message import Json, Mail

if TYPE_CHECKING:
    from hectograph.gmail.api import GmailApi


class Threads:
    def __init__(self, api: GmailApi) -> None:
        self.api = api

    def methods(self) -> Mapping[str, Play]:
        return {
            "get": self.get_thread,
            "list": self.list_threads,
            "modify": self.modify_thread,
            "trash": self.modify_thread,
            "untrash": self.modify_thread,
            "delete": self.delete_thread,
        }

    def _thread(self, call: MethodCall, box: Mailbox) -> list[Mail]:
        found = box.thread(self.api.key(call.parts["id"]))
        if not found:
            raise self.api.gone()
        return found

    def get_thread(self, call: MethodCall) -> Any:
        mails, form = self._thread(call, self.api.box(call)), self.api.form(call)
        shown = [one.json(form, call.texts("metadataHeaders")) for one in mails]
        newest = max(one.history for one in mails)
        return {"id": mails[0].thread_id, "historyId": str(newest), "messages": shown}

    def list_threads(self, call: MethodCall) -> Any:
        box = self.api.box(call)
        newest = {mail.thread_id: mail for mail in reversed(self.api.found(call, box))}
        mails = sorted(newest.values(), key=lambda one: (one.at, one.message_id), reverse=True)

        def shown(mail: Mail) -> Json:
            history = max(one.history for one in box.thread(mail.thread_id))
            return {"id": mail.thread_id, "snippet": mail.snippet, "historyId": str(history)}

        return self.api.page(call, mails, "threads", shown)

    def modify_thread(self, call: MethodCall) -> Any:
        box = self.api.box(call)
        mails = self._thread(call, box)
        changes = {"trash": ({"TRASH"}, {"INBOX"}), "untrash": (set[str](), {"TRASH"})}
        word = call.name.rpartition(".")[2]
        add, remove = changes[word] if word in changes else self.api.wanted_labels(box, call.body())
        if box.relabel(mails, add, remove):
            self.api.post.pushed(box)
            return {"id": mails[0].thread_id, "messages": [one.labelled() for one in mails]}
        newest = max(one.history for one in mails)
        return {"id": mails[0].thread_id, "historyId": str(newest), "messages": [one.known() for one in mails]}

    def delete_thread(self, call: MethodCall) -> Any:
        box = self.api.box(call)
        for mail in self._thread(call, box):
            box.remove(mail)
        return Response(204)
