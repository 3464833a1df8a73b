"""Settings of a mailbox: the addresses that it sends as, and the answer while its owner is away."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hectograph.core.service import MethodCall, Play
from hectograph.gmail.mailbox import Mailbox
from hectograph.gmail.message import Json

if TYPE_CHECKING:
    from hectograph.gmail.api import GmailApi


class Settings:
    def __init__(self, api: GmailApi) -> None:
        self.api = api

    def methods(self) -> Mapping[str, Play]:
        return {
            "settings.sendAs.list": self.list_aliases,
            "settings.sendAs.get": self.get_alias,
            "settings.getVacation": self.get_vacation,
            "settings.updateVacation": self.set_vacation,
        }

    def _aliases(self, box: Mailbox) -> list[Json]:
        first: Json = {"sendAsEmail": box.account, "displayName": "", "replyToAddress": "", "signature": ""}
        first |= {"isPrimary": True, "isDefault": True}
        return [first, *(self._alias(one) for one in box.aliases)]

    def _alias(self, email: str) -> Json:
        usual = {"displayName": "", "replyToAddress": "", "signature": "", "treatAsAlias": True}
        return {"sendAsEmail": email, **usual, "verificationStatus": "accepted"}

    def list_aliases(self, call: MethodCall) -> Any:
        return {"sendAs": self._aliases(self.api.box(call))}

    def get_alias(self, call: MethodCall) -> Any:
        wanted = call.parts["sendAsEmail"].lower()
        found = next((one for one in self._aliases(self.api.box(call)) if one["sendAsEmail"] == wanted), None)
        if found is None:
            raise self.api.refuse(404, "Not Found", "notFound")
        return found

    def get_vacation(self, call: MethodCall) -> Any:
        return {"enableAutoReply": False, **self.api.box(call).vacation}

    def set_vacation(self, call: MethodCall) -> Any:
        box = self.api.box(call)
        box.vacation, box.answered = call.body(), []
        return self.get_vacation(call)
