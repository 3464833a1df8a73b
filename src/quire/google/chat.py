"""Calls of Chat v1 under Google's own names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from quire.google.budget import Urgency
from quire.google.credentials import StaticToken
from quire.google.transport import Transport

CHAT = "https://chat.googleapis.com/"
_REPLY = "REPLY_MESSAGE_FALLBACK_TO_NEW_THREAD"


class Chat:
    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    async def spaces_get(self, space: str) -> dict[str, Any]:
        return await self._call("GET", space, f"looking at {space}")

    async def messages_create(
        self, space: str, message: Mapping[str, Any], *, request_id: str, message_id: str
    ) -> dict[str, Any]:
        """A new message. A repeat with the same request returns the first one."""
        params = {"requestId": request_id, "messageId": message_id, "messageReplyOption": _REPLY}
        path = f"{space}/messages"
        return await self._call("POST", path, f"posting in {space}", write=True, params=params, body=dict(message))

    async def messages_get(self, name: str) -> dict[str, Any]:
        return await self._call("GET", name, f"looking at the message {name}")

    async def messages_patch(self, name: str, message: Mapping[str, Any]) -> dict[str, Any]:
        """Let it say something else. The same again is the same."""
        params = {"updateMask": ",".join(message)}
        return await self._call(
            "PATCH", name, f"changing the message {name}", write=True, params=params, body=dict(message)
        )

    async def messages_delete(self, name: str) -> None:
        await self._call("DELETE", name, f"deleting the message {name}", write=True)

    async def webhook(self, address: str, message: Mapping[str, Any], *, request_id: str) -> dict[str, Any]:
        """Post by a webhook. A repeat may be a second message. Errors do not name the address, which is secret."""
        if self.transport.endpoint:
            parts = urlsplit(address)
            there = urlsplit(self.transport.endpoint)
            address = urlunsplit((there.scheme, there.netloc, parts.path, parts.query, ""))
        nobody = Transport(StaticToken(""), endpoint=self.transport.endpoint, per_minute=None)
        await nobody.open()
        try:
            answer = await nobody.call(
                "POST",
                f"{address}&requestId={request_id}&messageReplyOption={_REPLY}",
                what="posting by a webhook",
                urgency=Urgency.SETTLE,
                write=True,
                repeatable=False,
                body=dict(message),
                metered=False,
            )
        finally:
            await nobody.close()
        return answer.json

    async def _call(self, method: str, path: str, what: str, *, write: bool = False, **given: Any) -> dict[str, Any]:
        answer = await self.transport.call(
            method,
            f"{self.transport.endpoint or CHAT}v1/{path}",
            what=what,
            urgency=Urgency.SETTLE,
            write=write,
            repeatable=True,
            metered=False,
            **given,
        )
        return answer.json
