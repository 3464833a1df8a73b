"""Labels: the system's, and those that a person makes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from hectograph.core.http import Response
from hectograph.core.service import MethodCall, Play
from hectograph.gmail.mailbox import FIXED, SYSTEM, Mailbox
from hectograph.gmail.message import Json

if TYPE_CHECKING:
    from hectograph.gmail.api import GmailApi


#: The labels of the system that a person sees in the list of labels.
_SHOWN = frozenset({"SENT", "INBOX", "DRAFT", "STARRED", "UNREAD"})


class Labels:
    def __init__(self, api: GmailApi) -> None:
        self.api = api

    def methods(self) -> Mapping[str, Play]:
        return {
            "labels.list": self.list,
            "labels.get": self.get,
            "labels.create": self.create,
            "labels.update": self.change,
            "labels.patch": self.change,
            "labels.delete": self.delete,
        }

    def check(self, box: Mailbox, labels: Iterable[str], *, fixed: bool = True) -> None:
        """Refuse labels that are not there, or that nobody may set."""
        wrong = set(labels) - box.known_labels() | (set(labels) & FIXED if fixed else set())
        if wrong:
            raise self.api.refuse(400, f"Invalid label: {min(wrong)}", "invalidArgument")

    def list(self, call: MethodCall) -> Any:
        box = self.api.box(call)
        return {"labels": [*(_system(name) for name in SYSTEM), *(dict(one) for one in box.labels.values())]}

    def _found(self, call: MethodCall, box: Mailbox) -> Json:
        key = call.parts["id"]
        if key in SYSTEM:
            return _system(key)
        if key not in box.labels:
            raise self.api.refuse(404, "Not Found", "notFound")
        return dict(box.labels[key])

    def get(self, call: MethodCall) -> Any:
        box = self.api.box(call)
        return self._counted(box, self._found(call, box))

    def _counted(self, box: Mailbox, out: Json) -> Json:
        mails = [one for one in box.mails.values() if out["id"] in one.labels]
        unread = [one for one in mails if "UNREAD" in one.labels]
        return out | {
            "messagesTotal": len(mails),
            "messagesUnread": len(unread),
            "threadsTotal": len({one.thread_id for one in mails}),
            "threadsUnread": len({one.thread_id for one in unread}),
        }

    def create(self, call: MethodCall) -> Any:
        box, given = self.api.box(call), call.body()
        self._check_name(box, given, "")
        key = f"Label_{1 + max((int(one.partition('_')[2]) for one in box.labels), default=0)}"
        usual = {"messageListVisibility": "show", "labelListVisibility": "labelShow", "type": "user"}
        box.labels[key] = {**usual, **given, "id": key}
        return {name: value for name, value in box.labels[key].items() if name != "type"}

    def _check_name(self, box: Mailbox, given: Mapping[str, Any], key: str) -> None:
        name = str(given.get("name", "")).strip()
        if not name:
            raise self.api.refuse(400, "Invalid label name", "invalidArgument")
        taken = {one["name"].casefold() for held, one in box.labels.items() if held != key}
        if name.casefold() in taken or name.upper() in SYSTEM:
            raise self.api.refuse(409, "Label name exists or conflicts", "aborted")

    def change(self, call: MethodCall) -> Any:
        box, key = self.api.box(call), call.parts["id"]
        given, held = call.body(), self._found(call, box)
        if key in SYSTEM:
            raise self.api.refuse(400, "Invalid update request", "invalidArgument")
        new = {**held, **given, "id": key}
        self._check_name(box, new, key)
        box.labels[key] = new
        return self._counted(box, dict(new))

    def delete(self, call: MethodCall) -> Any:
        box, key = self.api.box(call), call.parts["id"]
        self._found(call, box)
        if key in SYSTEM:
            raise self.api.refuse(400, "Invalid delete request", "invalidArgument")
        box.relabel(list(box.mails.values()), (), {key})
        del box.labels[key]
        return Response(204)


def _system(name: str) -> Json:
    hidden = {"messageListVisibility": "hide", "labelListVisibility": "labelHide"}
    shown: Json = {"id": name, "name": name}
    return {**shown, **({} if name in _SHOWN else hidden), "type": "system"}
