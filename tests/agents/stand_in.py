"""A stand-in for Gemini, OpenAI and Anthropic over real HTTP on loopback: it speaks their protocols from a script."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import monotonic
from typing import Any


@dataclass(frozen=True)
class Asked:
    """One request, whatever its protocol."""

    protocol: str
    body: dict[str, Any]
    headers: dict[str, str]
    #: What was said so far, in order: ("user" | "model", text).
    said: list[tuple[str, str]]
    stream: bool
    #: How many requests came before it.
    number: int

    @property
    def prompts(self) -> list[str]:
        return [text for who, text in self.said if who == "user"]

    @property
    def prompt(self) -> str:
        return self.prompts[-1]

    @property
    def turn(self) -> int:
        return len(self.prompts)


@dataclass
class Answer:
    """What is answered."""

    text: str = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    #: Name and arguments of a tool that the model calls.
    tool: tuple[str, dict[str, Any]] | None = None
    #: The provider withholds the answer.
    refused: bool = False
    tokens: tuple[int, int] = (10, 5)
    #: Seconds before the answer.
    delay: float = 0.0
    #: How a stream ends before its time: "reset" or "closed".
    cut: str = ""
    #: Nothing is answered until this is set; then the line is dropped.
    parked: threading.Event | None = None


@dataclass
class Entry:
    asked: Asked
    began: float
    ended: float = 0.0
    answered: bool = False


class StandIn:
    """The server. ``answer`` decides what is answered; ``log`` has every request."""

    def __init__(self, answer: Callable[[Asked], Answer | str]) -> None:
        self.answer = answer
        self.log: list[Entry] = []
        self.arrived = threading.Condition()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: Any) -> None: ...

            def do_POST(self) -> None:
                owner.serve(self)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), name="stand-in", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def model(self, protocol: str = "openai", **more: Any) -> dict[str, Any]:
        """The ``model`` of a blueprint that is answered here."""
        bases = {"google": self.url, "openai": f"{self.url}/v1", "anthropic": self.url}
        names = {
            "google": "google:gemini-2.5-flash",
            "openai": "openai:gpt-4o",
            "anthropic": "anthropic:claude-of-the-tests",
        }
        return {"model": names[protocol], "base_url": bases[protocol], **more}

    @property
    def answered(self) -> list[Asked]:
        return [entry.asked for entry in self.log if entry.answered]

    def wait_for(self, condition: Callable[[], bool], timeout: float = 60.0) -> None:
        """Until the condition holds; it is looked at whenever something arrives or is answered."""
        with self.arrived:
            if not self.arrived.wait_for(condition, timeout):
                raise AssertionError(f"not in {timeout} s; there were {len(self.log)} requests")

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def serve(self, handler: BaseHTTPRequestHandler) -> None:
        body = json.loads(handler.rfile.read(int(handler.headers["content-length"])))
        protocol = _protocol(handler.path)
        stream = "streamGenerateContent" in handler.path or bool(body.get("stream"))
        with self.arrived:
            headers = {key.lower(): value for key, value in handler.headers.items()}
            asked = Asked(protocol, body, headers, _SAID[protocol](body), stream, len(self.log))
            entry = Entry(asked, monotonic())
            self.log.append(entry)
            self.arrived.notify_all()
        made = self.answer(asked)
        answer = Answer(made) if isinstance(made, str) else made
        if answer.delay:
            threading.Event().wait(answer.delay)
        handler.close_connection = True
        if answer.parked is not None:
            answer.parked.wait(60)
            return
        # Before the last byte is sent: whoever asked may look at the log at once.
        entry.ended = monotonic()
        entry.answered = answer.status == 200 and not answer.cut
        try:
            self._send(handler, asked, answer)
        except OSError:
            entry.answered = False  # whoever asked is gone
        with self.arrived:
            self.arrived.notify_all()

    def _send(self, handler: BaseHTTPRequestHandler, asked: Asked, answer: Answer) -> None:
        if answer.status != 200:
            error = {"error": {"message": answer.text or "no", "type": "error", "code": answer.status}}
            self._json(handler, answer.status, error, answer.headers)
            return
        if not asked.stream:
            made = _WHOLE[asked.protocol](answer)
            named = {"model": asked.body["model"]} if "model" in made else {}
            self._json(handler, 200, made | named, answer.headers)
            return
        events = _STREAM[asked.protocol](answer)
        if answer.cut:
            events = events[: max(1, len(events) // 2)]
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        # "closed": without a length and without chunks the end of the line looks like the end of the answer.
        chunked = answer.cut != "closed"
        if chunked:
            handler.send_header("Transfer-Encoding", "chunked")
        handler.send_header("Connection", "close")
        handler.end_headers()
        for name, event in events:
            data = event if isinstance(event, str) else json.dumps(event)
            text = (f"event: {name}\n" if name else "") + f"data: {data}\n\n"
            raw = text.encode()
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(raw), raw) if chunked else raw)
            handler.wfile.flush()
        if chunked and not answer.cut:
            handler.wfile.write(b"0\r\n\r\n")

    @staticmethod
    def _json(handler: BaseHTTPRequestHandler, status: int, value: Any, headers: dict[str, str]) -> None:
        raw = json.dumps(value).encode()
        handler.send_response(status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(raw)))
        handler.send_header("Connection", "close")
        for name, text in headers.items():
            handler.send_header(name, text)
        handler.end_headers()
        handler.wfile.write(raw)


def _protocol(path: str) -> str:
    if "generateContent" in path.replace("streamGenerate", "generate") or ":streamGenerateContent" in path:
        return "google"
    return "anthropic" if path.split("?")[0].endswith("/messages") else "openai"


# -- what was said -----------------------------------------------------------------------------------------------------


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content or [] if isinstance(part, dict))


def _said_google(body: dict[str, Any]) -> list[tuple[str, str]]:
    rows = [(row["role"], "".join(part.get("text", "") for part in row["parts"])) for row in body["contents"]]
    return [(who, text) for who, text in rows if text]


def _said_openai(body: dict[str, Any]) -> list[tuple[str, str]]:
    who = {"user": "user", "assistant": "model"}
    rows = [(who[row["role"]], _text(row.get("content"))) for row in body["messages"] if row["role"] in who]
    return [(name, text) for name, text in rows if text]


def _said_anthropic(body: dict[str, Any]) -> list[tuple[str, str]]:
    who = {"user": "user", "assistant": "model"}
    rows = [(who[row["role"]], _text(row["content"])) for row in body["messages"]]
    return [(name, text) for name, text in rows if text]


_SAID = {"google": _said_google, "openai": _said_openai, "anthropic": _said_anthropic}


# -- whole answers -----------------------------------------------------------------------------------------------------


def _google(answer: Answer, text: str | None = None, last: bool = True) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": answer.text if text is None else text}]
    if answer.tool is not None:
        parts = [{"functionCall": {"name": answer.tool[0], "args": answer.tool[1]}}]
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if last:
        candidate["finishReason"] = "STOP"
    if answer.refused:
        candidate = {"finishReason": "SAFETY", "index": 0}
    used = {"promptTokenCount": answer.tokens[0], "candidatesTokenCount": answer.tokens[1]}
    return {
        "candidates": [candidate],
        "usageMetadata": used | {"totalTokenCount": sum(answer.tokens)},
        "modelVersion": "gemini-2.5-flash",
        "responseId": "r1",
    }


def _openai(answer: Answer) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text}
    reason = "stop"
    if answer.tool is not None:
        call = {"name": answer.tool[0], "arguments": json.dumps(answer.tool[1])}
        message |= {"content": None, "tool_calls": [{"id": "call_1", "type": "function", "function": call}]}
        reason = "tool_calls"
    if answer.refused:
        message |= {"content": None, "refusal": "I cannot help with that."}
    used = {"prompt_tokens": answer.tokens[0], "completion_tokens": answer.tokens[1]}
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 1767225600,
        "model": "gpt-4o",
        "choices": [{"index": 0, "message": message, "finish_reason": reason, "logprobs": None}],
        "usage": used | {"total_tokens": sum(answer.tokens)},
    }


def _anthropic(answer: Answer) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": answer.text}]
    reason = "end_turn"
    if answer.tool is not None:
        content = [{"type": "tool_use", "id": "call_1", "name": answer.tool[0], "input": answer.tool[1]}]
        reason = "tool_use"
    if answer.refused:
        content, reason = [], "refusal"
    return {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": "claude-of-the-tests",
        "content": content,
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": {"input_tokens": answer.tokens[0], "output_tokens": answer.tokens[1]},
    }


_WHOLE: dict[str, Callable[[Answer], dict[str, Any]]] = {
    "google": _google,
    "openai": _openai,
    "anthropic": _anthropic,
}


# -- streams -----------------------------------------------------------------------------------------------------------

Events = list[tuple[str, Any]]


def _words(text: str) -> list[str]:
    return [word + " " for word in text.split(" ")]


def _stream_google(answer: Answer) -> Events:
    words = _words(answer.text)
    return [("", _google(answer, word, last=number == len(words) - 1)) for number, word in enumerate(words)]


def _stream_openai(answer: Answer) -> Events:
    def chunk(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": reason, "logprobs": None}
        return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o", "choices": [choice]}

    used = {
        "prompt_tokens": answer.tokens[0],
        "completion_tokens": answer.tokens[1],
        "total_tokens": sum(answer.tokens),
    }
    events: Events = [("", chunk({"role": "assistant", "content": ""}))]
    events += [("", chunk({"content": word})) for word in _words(answer.text)]
    events += [("", chunk({}, "stop")), ("", {**chunk({}), "choices": [], "usage": used}), ("", "[DONE]")]
    return events


def _stream_anthropic(answer: Answer) -> Events:
    start = {**_anthropic(answer), "content": [], "stop_reason": None}
    block = {"type": "text", "text": ""}
    events: Events = [
        ("message_start", {"type": "message_start", "message": start}),
        ("content_block_start", {"type": "content_block_start", "index": 0, "content_block": block}),
    ]
    for word in _words(answer.text):
        delta = {"type": "text_delta", "text": word}
        events.append(("content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}))
    ended = {"stop_reason": "end_turn", "stop_sequence": None}
    events += [
        ("content_block_stop", {"type": "content_block_stop", "index": 0}),
        ("message_delta", {"type": "message_delta", "delta": ended, "usage": {"output_tokens": answer.tokens[1]}}),
        ("message_stop", {"type": "message_stop"}),
    ]
    return events


_STREAM: dict[str, Callable[[Answer], Events]] = {
    "google": _stream_google,
    "openai": _stream_openai,
    "anthropic": _stream_anthropic,
}


@contextmanager
def stand_in(answer: Callable[[Asked], Answer | str]) -> Iterator[StandIn]:
    server = StandIn(answer)
    try:
        yield server
    finally:
        server.close()
