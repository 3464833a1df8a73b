"""Settings of a mailbox: the addresses that it sends as, the answer while its owner is away, filters, and the rest."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hectograph.core.http import Response
from hectograph.core.service import MethodCall, Play
from hectograph.gmail.mailbox import Mailbox
from hectograph.gmail.message import Json

if TYPE_CHECKING:
    from hectograph.gmail.api import GmailApi

#: Settings that are kept and have no effect here, as a new account has them.
_KEPT: Mapping[str, Json] = {
    "AutoForwarding": {"enabled": False},
    "Imap": {"enabled": False, "autoExpunge": True, "expungeBehavior": "archive", "maxFolderSize": 0},
    "Pop": {"accessWindow": "disabled", "disposition": "leaveInInbox"},
    "Language": {"displayLanguage": "en"},
}

_VACATION: Json = {
    "enableAutoReply": False,
    "responseSubject": "",
    "restrictToContacts": False,
    "restrictToDomain": False,
}

_ALIAS_FIELDS = frozenset({"displayName", "replyToAddress", "signature", "isDefault", "treatAsAlias"})


class Settings:
    def __init__(self, api: GmailApi) -> None:
        self.api = api

    def methods(self) -> Mapping[str, Play]:
        kept = {f"settings.get{name}": self.get_kept for name in _KEPT}
        kept |= {f"settings.update{name}": self.set_kept for name in _KEPT}
        return {
            **kept,
            "settings.sendAs.list": self.list_aliases,
            "settings.sendAs.get": self.get_alias,
            "settings.sendAs.create": self.add_alias,
            "settings.sendAs.patch": self.change_alias,
            "settings.sendAs.update": self.change_alias,
            "settings.sendAs.delete": self.delete_alias,
            "settings.getVacation": self.get_vacation,
            "settings.updateVacation": self.set_vacation,
            "settings.filters.list": self.filters,
            "settings.filters.get": self.get_filter,
            "settings.filters.create": self.add_filter,
            "settings.filters.delete": self.delete_filter,
            "settings.forwardingAddresses.list": lambda call: {},
        }

    # The addresses that an account sends as.

    def _aliases(self, box: Mailbox) -> dict[str, Json]:
        usual: Json = {"displayName": "", "replyToAddress": "", "signature": ""}
        out: dict[str, Json] = {}
        for email in (box.account, *box.aliases):
            more: Json = {"isPrimary": True, "isDefault": True}
            if email != box.account:
                more = {"treatAsAlias": True, "verificationStatus": "accepted"}
            out[email] = {"sendAsEmail": email, **usual, **more, **box.settings.get("sendAs", {}).get(email, {})}
        return out

    def _alias(self, call: MethodCall, box: Mailbox) -> str:
        email = call.parts["sendAsEmail"].lower()
        if email not in self._aliases(box):
            raise self.api.refuse(404, "Not Found", "notFound")
        return email

    def list_aliases(self, call: MethodCall) -> Any:
        return {"sendAs": list(self._aliases(self.api.box(call)).values())}

    def get_alias(self, call: MethodCall) -> Any:
        box = self.api.box(call)
        return self._aliases(box)[self._alias(call, box)]

    def add_alias(self, call: MethodCall) -> Any:
        box, given = self.api.box(call), call.body()
        email = str(given.get("sendAsEmail", "")).lower()
        if "@" not in email:
            raise self.api.refuse(400, "Invalid sendAsEmail", "invalidArgument")
        if email in self._aliases(box):
            raise self.api.refuse(409, "Alias already exists", "alreadyExists", status="ALREADY_EXISTS")
        box.aliases.append(email)
        self._keep(box, email, given)
        return self._aliases(box)[email]

    def _keep(self, box: Mailbox, email: str, given: Mapping[str, Any]) -> None:
        held = box.settings.setdefault("sendAs", {}).setdefault(email, {})
        held.update({name: value for name, value in given.items() if name in _ALIAS_FIELDS})

    def change_alias(self, call: MethodCall) -> Any:
        box = self.api.box(call)
        email = self._alias(call, box)
        self._keep(box, email, call.body())
        return self._aliases(box)[email]

    def delete_alias(self, call: MethodCall) -> Any:
        box = self.api.box(call)
        email = self._alias(call, box)
        if email == box.account:
            raise self.api.refuse(400, "Cannot delete the primary send-as alias", "invalidArgument")
        box.aliases.remove(email)
        return Response(204)

    # The answer while somebody is away.

    def get_vacation(self, call: MethodCall) -> Any:
        return {**_VACATION, **self.api.box(call).vacation}

    def set_vacation(self, call: MethodCall) -> Any:
        box = self.api.box(call)
        box.vacation, box.answered = call.body(), []
        return self.get_vacation(call)

    # Filters: they label what arrives.

    def filters(self, call: MethodCall) -> Any:
        box = self.api.box(call)
        return {"filter": list(box.filters.values())} if box.filters else {}

    def add_filter(self, call: MethodCall) -> Any:
        box, given = self.api.box(call), call.body()
        if not given.get("criteria") or not given.get("action"):
            raise self.api.refuse(400, "Filter doesn't have any criteria or action", "invalidArgument")
        action = given["action"]
        labels = set(action.get("addLabelIds", ())) | set(action.get("removeLabelIds", ()))
        self.api.labels.check(box, labels)
        digest = hashlib.sha1(json.dumps(given, sort_keys=True).encode()).digest()
        key = "ANe1Bm" + base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if key in box.filters:
            raise self.api.refuse(400, "Filter already exists", "failedPrecondition", status="FAILED_PRECONDITION")
        box.filters[key] = {"id": key, **given}
        return box.filters[key]

    def _filter(self, call: MethodCall) -> tuple[Mailbox, str]:
        box, key = self.api.box(call), call.parts["id"]
        if key not in box.filters:
            raise self.api.gone()
        return box, key

    def get_filter(self, call: MethodCall) -> Any:
        box, key = self._filter(call)
        return box.filters[key]

    def delete_filter(self, call: MethodCall) -> Any:
        box, key = self._filter(call)
        del box.filters[key]
        return Response(204)

    # What is kept and has no effect.

    def get_kept(self, call: MethodCall) -> Any:
        name = call.name.rpartition(".")[2].removeprefix("get").removeprefix("update")
        return {**_KEPT[name], **self.api.box(call).settings.get(name, {})}

    def set_kept(self, call: MethodCall) -> Any:
        name = call.name.rpartition(".")[2].removeprefix("update")
        self.api.box(call).settings[name] = call.body()
        return self.get_kept(call)
