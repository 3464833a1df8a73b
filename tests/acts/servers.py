"""A mail server and a web service of a test's own, on loopback: what they got, and what they do wrong on purpose."""

from __future__ import annotations

import email
import json
import re
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.policy import default
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Post:
    """Mail that was taken, and folders that can be read."""

    def __init__(self) -> None:
        self.taken: list[str] = []
        self.folders: dict[str, list[bytes]] = {"INBOX": [], "Sent": []}
        #: Say nothing any more after the mail was taken.
        self.loses_answers = 0
        self.refuses = ""

    def answer(self, text: str, *, automatic: bool = False) -> None:
        """The person at the other side answers the mail that came last."""
        mail = email.message_from_string(self.taken[-1], policy=default)
        head = f"From: {mail['To']}\r\nTo: {mail['From']}\r\nSubject: Re: {mail['Subject']}\r\n"
        head += f"Message-ID: <r{len(self.folders['INBOX'])}@x>\r\nIn-Reply-To: {mail['Message-ID']}\r\n"
        head += "Auto-Submitted: auto-replied\r\n" if automatic else ""
        self.folders["INBOX"].append(f"{head}\r\n{text}\r\n".encode())


def _smtp(post: Post) -> type[socketserver.StreamRequestHandler]:
    class Handler(socketserver.StreamRequestHandler):
        def say(self, text: str) -> None:
            self.wfile.write(f"{text}\r\n".encode())

        def handle(self) -> None:
            self.say("220 test")
            while line := self.rfile.readline().decode().strip():
                word = line.split()[0].upper()
                if word == "RCPT" and post.refuses and post.refuses in line:
                    self.say("550 no such person")
                elif word == "DATA":
                    self.say("354 go on")
                    lines = []
                    while (part := self.rfile.readline().decode()) != ".\r\n":
                        lines.append(part)
                    post.taken.append("".join(lines))
                    if post.loses_answers:
                        post.loses_answers -= 1
                        return
                    self.say("250 taken")
                elif word == "QUIT":
                    self.say("221 bye")
                    return
                else:
                    self.say("250 ok")

    return Handler


def _imap(post: Post) -> type[socketserver.StreamRequestHandler]:
    class Handler(socketserver.StreamRequestHandler):
        folder = "INBOX"

        def say(self, text: str) -> None:
            self.wfile.write(f"{text}\r\n".encode())

        def handle(self) -> None:
            self.say("* OK test")
            while line := self.rfile.readline().decode().strip():
                tag, word, *rest = line.split(" ", 2)
                given = rest[0] if rest else ""
                match word.upper():
                    case "CAPABILITY":
                        self.say("* CAPABILITY IMAP4rev1")
                    case "SELECT" | "EXAMINE":
                        self.folder = given.strip('"')
                        self.say(f"* {len(post.folders[self.folder])} EXISTS")
                    case "SEARCH":
                        self.search(given)
                    case "FETCH":
                        number = int(given.split()[0])
                        raw = post.folders[self.folder][number - 1]
                        self.wfile.write(f"* {number} FETCH (RFC822 {{{len(raw)}}}\r\n".encode() + raw + b")\r\n")
                    case "APPEND":
                        size = int(re.search(r"\{(\d+)\}", given)[1])  # type: ignore[index]
                        self.say("+ go on")
                        post.folders[given.split()[0].strip('"')].append(self.rfile.read(size))
                        self.rfile.readline()
                    case "LOGOUT":
                        self.say("* BYE")
                self.say(f"{tag} OK done")

        def search(self, given: str) -> None:
            found = re.search(r'HEADER (\S+) "(.*?)"', given)
            assert found is not None
            numbers = [
                str(number)
                for number, raw in enumerate(post.folders[self.folder], 1)
                if found[2] in str(email.message_from_bytes(raw, policy=default)[found[1]] or "")
            ]
            self.say(f"* SEARCH {' '.join(numbers)}")

    return Handler


@contextmanager
def serving(*servers: socketserver.TCPServer) -> Iterator[list[int]]:
    threads = [threading.Thread(target=one.serve_forever, args=(0.02,), daemon=True) for one in servers]
    for thread in threads:
        thread.start()
    try:
        yield [int(one.server_address[1]) for one in servers]
    finally:
        for one in servers:
            one.shutdown()
            one.server_close()


class _Threads(socketserver.ThreadingTCPServer):
    daemon_threads = True


@contextmanager
def mail_server() -> Iterator[tuple[Post, int, int]]:
    post = Post()
    with serving(_Threads(("127.0.0.1", 0), _smtp(post)), _Threads(("127.0.0.1", 0), _imap(post))) as (smtp, imap):
        yield post, smtp, imap


class Shop:
    """A service that takes orders; with ``honours`` a key that it knows is answered as before."""

    def __init__(self) -> None:
        self.orders: dict[str, dict[str, Any]] = {}
        self.keys: dict[str, str] = {}
        self.honours = True
        self.loses_answers = 0
        self.refuses: list[int] = []


@contextmanager
def shop_server() -> Iterator[tuple[Shop, str]]:
    shop = Shop()

    class Handler(BaseHTTPRequestHandler):
        def reply(self, status: int, body: Any = None) -> None:
            text = b"" if body is None else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            if status == 429:
                self.send_header("Retry-After", "7")
            self.end_headers()
            self.wfile.write(text)

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if shop.refuses:
                return self.reply(shop.refuses.pop(0), {"error": "no"})
            key = self.headers.get("Idempotency-Key", "")
            if not (shop.honours and key in shop.keys):
                number = str(len(shop.orders) + 1)
                shop.orders[number] = {**body, "id": number, "ref": key}
                shop.keys[key] = number
            if shop.loses_answers:
                shop.loses_answers -= 1
                self.close_connection = True
                return None
            return self.reply(201, shop.orders[shop.keys[key]])

        def do_GET(self) -> None:
            found = [order for order in shop.orders.values() if order["ref"] == self.path.rpartition("=")[2]]
            self.reply(200 if found else 404, found[0] if found else None)

        def do_DELETE(self) -> None:
            gone = shop.orders.pop(self.path.rpartition("/")[2], None)
            self.reply(204 if gone else 404)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as [port]:
        yield shop, f"http://127.0.0.1:{port}"
