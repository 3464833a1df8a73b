"""Real servers for alerts: HTTP and SMTP on loopback, which keep what they get and can be told to refuse."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any


@dataclass
class Posted:
    path: str
    headers: dict[str, str]
    body: Any
    raw: bytes = b""


@dataclass
class Web:
    """An HTTP server that keeps what is posted."""

    url: str = ""
    got: list[Posted] = field(default_factory=list)
    #: Answers from here, the last one for ever.
    statuses: list[int] = field(default_factory=lambda: [200])
    #: While cleared, what arrives is kept and not answered.
    answers: asyncio.Event = field(default_factory=asyncio.Event)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.answers.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = (await reader.readline()).decode()
        headers = {}
        while (header := (await reader.readline()).decode().strip()) != "":
            name, _, value = header.partition(":")
            headers[name.lower()] = value.strip()
        raw = await reader.readexactly(int(headers.get("content-length", "0")))
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        if status < 300:
            self.got.append(Posted(line.split()[1], headers, json.loads(raw) if raw else None, raw))
        self.arrived.set()
        await self.answers.wait()
        writer.write(f"HTTP/1.1 {status} x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
        await writer.drain()
        writer.close()


@asynccontextmanager
async def web() -> AsyncIterator[Web]:
    found = Web()
    server = await asyncio.start_server(found.serve, "127.0.0.1", 0)
    found.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield found


@dataclass
class Mail:
    """An SMTP server that keeps the mails."""

    url: str = ""
    got: list[tuple[list[str], EmailMessage]] = field(default_factory=list)
    refuses: bool = False
    #: Offered as STARTTLS.
    tls: ssl.SSLContext | None = None
    #: Words of the session, in order; "TLS" where it became encrypted.
    words: list[str] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        people: list[str] = []

        async def say(text: str) -> None:
            writer.write(f"{text}\r\n".encode())
            await writer.drain()

        await say("220 here")
        while line := (await reader.readline()).decode().strip():
            word = line[:4].upper()
            self.words.append(word)
            if word == "EHLO":
                offers = ["x", *(["STARTTLS"] if self.tls and "TLS" not in self.words else []), "AUTH PLAIN"]
                for place, offer in enumerate(offers, 1):
                    await say(f"250{' ' if place == len(offers) else '-'}{offer}")
                continue
            if word == "STAR" and self.tls is not None:
                await say("220 go on")
                await writer.start_tls(self.tls)
                self.words.append("TLS")
                continue
            if word == "AUTH":
                await say("235 welcome")
                continue
            if word == "RCPT":
                people.append(line[line.index("<") + 1 : line.index(">")])
            if word == "MAIL" and self.refuses:
                await say("451 not now")
            elif word == "DATA":
                await say("354 go on")
                raw = b""
                while not raw.endswith(b"\r\n.\r\n"):
                    raw += await reader.readline()
                found = message_from_bytes(raw[:-3], policy=policy.default)
                assert isinstance(found, EmailMessage)
                self.got.append((people, found))
                await say("250 kept")
            elif word == "QUIT":
                await say("221 bye")
                break
            else:
                await say("250 ok")
        writer.close()


@asynccontextmanager
async def mail(*, tls: ssl.SSLContext | None = None, starttls: ssl.SSLContext | None = None) -> AsyncIterator[Mail]:
    """``tls``: encrypted from the first byte (smtps); ``starttls``: when it is asked for."""
    found = Mail(tls=starttls)
    server = await asyncio.start_server(found.serve, "127.0.0.1", 0, ssl=tls)
    scheme = "smtps" if tls is not None else "smtp"
    found.url = f"{scheme}://quire%40x.eu@127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield found
