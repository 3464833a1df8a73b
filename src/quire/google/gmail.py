"""Calls of Gmail v1 under Google's own names, for the mailbox of the account that signs in."""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import quote

from quire.google.budget import Urgency
from quire.google.transport import Transport

GMAIL = "https://gmail.googleapis.com/"


class Gmail:
    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    async def drafts_create(self, mail: bytes, *, thread_id: str = "") -> dict[str, Any]:
        """A new draft. A lost answer may leave one that nobody knows: nobody receives it."""
        body = {"message": _message(mail, thread_id)}
        return await self._call("POST", "drafts", "writing a draft", write=True, body=body)

    async def drafts_list(self, most: int) -> list[dict[str, Any]]:
        """The newest drafts, each with its id alone."""
        found: list[dict[str, Any]] = []
        params: dict[str, Any] = {"maxResults": min(most, 500)}
        while len(found) < most:
            answer = await self._call("GET", "drafts", "listing the drafts", params=params)
            found += answer.get("drafts", [])
            if not (page := str(answer.get("nextPageToken", ""))):
                break
            params["pageToken"] = page
        return found[:most]

    async def drafts_delete(self, draft_id: str) -> None:
        """Gone, for good. A second time it is ``Missing``."""
        path = f"drafts/{quote(draft_id, safe='')}"
        await self._call("DELETE", path, f"deleting the draft {draft_id}", write=True)

    async def drafts_get(self, draft_id: str, *, form: str = "minimal") -> dict[str, Any]:
        return await self._call(
            "GET",
            f"drafts/{quote(draft_id, safe='')}",
            f"looking at the draft {draft_id}",
            params={"format": form},
        )

    async def drafts_send(self, draft_id: str) -> dict[str, Any]:
        """Send a draft. It works once: afterwards there is no such draft."""
        return await self._call(
            "POST", "drafts/send", f"sending the draft {draft_id}", write=True, body={"id": draft_id}
        )

    async def messages_send(self, mail: bytes, *, thread_id: str = "") -> dict[str, Any]:
        """Send a mail. Nothing tells a second sending from the first."""
        return await self._call("POST", "messages/send", "sending a mail", write=True, body=_message(mail, thread_id))

    async def messages_get(self, message_id: str, *, form: str) -> dict[str, Any]:
        path = f"messages/{quote(message_id, safe='')}"
        return await self._call("GET", path, f"reading the mail {message_id}", params={"format": form})

    async def send_as_list(self) -> list[dict[str, Any]]:
        """The addresses that the account may send as."""
        answer = await self._call("GET", "settings/sendAs", "looking which addresses the account sends as")
        found: list[dict[str, Any]] = answer.get("sendAs", [])
        return found

    async def threads_get(self, thread_id: str, *, form: str = "metadata") -> dict[str, Any]:
        """The mails of a thread: with their headers, or in ``full``."""
        return await self._call(
            "GET",
            f"threads/{quote(thread_id, safe='')}",
            f"looking at the thread {thread_id}",
            params={"format": form},
        )

    async def _call(self, method: str, path: str, what: str, *, write: bool = False, **given: Any) -> dict[str, Any]:
        answer = await self.transport.call(
            method,
            f"{self.transport.endpoint or GMAIL}gmail/v1/users/me/{path}",
            what=what,
            urgency=Urgency.SETTLE,
            write=write,
            repeatable=not write,
            metered=False,
            **given,
        )
        return answer.json


def _message(mail: bytes, thread_id: str) -> dict[str, str]:
    raw = base64.urlsafe_b64encode(mail).decode("ascii")
    return {"raw": raw, "threadId": thread_id} if thread_id else {"raw": raw}
