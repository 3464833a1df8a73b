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

    async def profile(self) -> dict[str, Any]:
        """The address of the mailbox, and where its history is."""
        return await self._call("GET", "profile", "looking at the mailbox")

    async def history(self, since: str) -> tuple[dict[str, set[str]], str]:
        """The messages that came since, by their threads, and where the history is now. ``Missing``: forgotten."""
        threads: dict[str, set[str]] = {}
        params: dict[str, Any] = {"startHistoryId": since, "historyTypes": "messageAdded", "maxResults": 500}
        while True:
            answer = await self._call("GET", "history", "reading what has changed in the mailbox", params=params)
            for entry in answer.get("history", ()):
                for added in entry.get("messagesAdded", ()):
                    message = added["message"]
                    threads.setdefault(str(message["threadId"]), set()).add(str(message["id"]))
            if not (page := str(answer.get("nextPageToken", ""))):
                return threads, str(answer.get("historyId", since))
            params["pageToken"] = page

    async def messages_list(self, query: str) -> list[dict[str, Any]]:
        """The mails that a search finds, the newest first, each with its id."""
        found: list[dict[str, Any]] = []
        params: dict[str, Any] = {"q": query, "maxResults": 500}
        while True:
            answer = await self._call("GET", "messages", "searching the mailbox", params=params)
            found += answer.get("messages", [])
            if not (page := str(answer.get("nextPageToken", ""))):
                return found
            params["pageToken"] = page

    async def messages_modify(self, message_id: str, *, add: list[str]) -> dict[str, Any]:
        """Put labels on a mail. The same again is the same."""
        path = f"messages/{quote(message_id, safe='')}/modify"
        return await self._call(
            "POST", path, f"labelling the mail {message_id}", write=True, body={"addLabelIds": add}, repeatable=True
        )

    async def label(self, name: str) -> str:
        """The id of the label of this name, which is made if there is none."""
        answer = await self._call("GET", "labels", "looking at the labels")
        for one in answer.get("labels", ()):
            if str(one.get("name", "")).lower() == name.lower():
                return str(one["id"])
        made = await self._call("POST", "labels", f"making the label {name!r}", write=True, body={"name": name})
        return str(made["id"])

    async def messages_get(self, message_id: str, *, form: str) -> dict[str, Any]:
        path = f"messages/{quote(message_id, safe='')}"
        return await self._call("GET", path, f"reading the mail {message_id}", params={"format": form})

    async def attachments_get(self, message_id: str, attachment_id: str) -> dict[str, Any]:
        """Return the content of one part of a mail, in base64url under ``data``."""
        path = f"messages/{quote(message_id, safe='')}/attachments/{quote(attachment_id, safe='')}"
        return await self._call("GET", path, f"reading a part of the mail {message_id}")

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
        given.setdefault("repeatable", not write)
        answer = await self.transport.call(
            method,
            f"{self.transport.endpoint or GMAIL}gmail/v1/users/me/{path}",
            what=what,
            urgency=Urgency.SETTLE,
            write=write,
            metered=False,
            **given,
        )
        return answer.json


def _message(mail: bytes, thread_id: str) -> dict[str, str]:
    raw = base64.urlsafe_b64encode(mail).decode("ascii")
    return {"raw": raw, "threadId": thread_id} if thread_id else {"raw": raw}
