"""Answers to mails: one reader for each account, by Gmail's history.

The history of a mailbox is forgotten after days or hours. Then, and for every wait that this process has not seen yet,
the threads themselves are looked at: nothing is missed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from quire.client.client import Client
from quire.google.error import Missing
from quire.google.gmail import Gmail
from quire.workspace.gmail.reading import read
from quire.workspace.readers.cursor import Fields
from quire.workspace.readers.waiting import Waiting
from quire.workspace.values import AUTOMATIC, Mail


class MailReader:
    """Brings what comes into the threads that records of one account wait for."""

    def __init__(self, client: Client, gmail: Gmail) -> None:
        self._client = client
        self._gmail = gmail
        self._seen: set[Waiting] = set()

    async def look(self, waits: Sequence[Waiting], fields: Fields) -> Fields:
        """Signal each wait what has come in its thread. Return the cursor after it."""
        threads: dict[str, list[Waiting]] = defaultdict(list)
        for wait in waits:
            threads[wait.parts[1]].append(wait)
        new = {wait.parts[1] for wait in waits if wait not in self._seen}
        known = str(fields.get("history", ""))
        now = str((await self._gmail.profile())["historyId"])
        changed: dict[str, set[str]] = {}
        try:
            if known:
                changed, now = await self._gmail.history(known)
            else:
                new = set(threads)
        except Missing:
            new = set(threads)
        for thread in sorted(new):
            await self._thread(thread, threads[thread])
        for thread, messages in changed.items():
            if thread in threads and thread not in new:
                await self._messages(sorted(messages), threads[thread])
        self._seen = set(waits)
        return {"history": now}

    async def _thread(self, thread: str, waits: Sequence[Waiting]) -> None:
        try:
            found = await self._gmail.threads_get(thread, form="full")
        except Missing:
            return  # somebody has deleted it
        for message in found.get("messages", ()):
            await self._bring(message, waits)

    async def _messages(self, ids: Sequence[str], waits: Sequence[Waiting]) -> None:
        for message_id in ids:
            try:
                message = await self._gmail.messages_get(message_id, form="full")
            except Missing:
                continue
            await self._bring(message, waits)

    async def _bring(self, message: dict[str, Any], waits: Sequence[Waiting]) -> None:
        if {"SENT", "DRAFT"} & set(message.get("labelIds", ())):
            return
        mail = await read(self._gmail, message)
        for wait in waits:
            if ends(mail, wait):
                await self._client.signal(
                    wait.record_id, wait.signal, mail, signal_id=f"mail-{mail.id}", by=mail.sender
                )


def ends(mail: Mail, wait: Waiting) -> bool:
    """Whether a mail is what is waited for: it came after ours, and a person wrote it, or it is a bounce."""
    after = wait.parts[2].removesuffix(AUTOMATIC)
    if after and int(mail.id, 16) <= int(after, 16):
        return False
    return mail.bounce or not mail.automatic or wait.signal.endswith(AUTOMATIC)
