"""One call over HTTP that changes something elsewhere.

Two kinds of targets: one that honours an idempotency key, to which `call` may be sent again; and one that does not, at
which `once` is looked for under an address that holds its key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from quire.workflows.effect import Act, NotDone, effect
from quire.workflows.retry import Fail

#: The header in which most services take a key.
KEY = "Idempotency-Key"
_FIELD = re.compile(r"\{([\w.]+)\}")


@dataclass(frozen=True, slots=True)
class Answered:
    """What the other side answered."""

    status: int
    body: Any
    #: The address that takes it back; empty: nothing does.
    take_back: str = ""


class TryLater(NotDone):
    """The other side refused for now. ``retry_after``: in how many seconds it wants to be asked again."""

    def __init__(self, text: str, retry_after: float | None) -> None:
        super().__init__(text)
        if retry_after is not None:
            self.retry_after = retry_after


def _filled(template: str, key: str, body: Any) -> str:
    """Put the key and fields of the answer into an address: ``https://…/orders/{id}``, ``…?key={key}``."""

    def value(found: re.Match[str]) -> str:
        if found[1] == "key":
            return key
        inner: Any = body
        for word in found[1].split("."):
            if not isinstance(inner, Mapping) or word not in inner:
                raise Fail(f"{template!r} names {found[1]!r}, which the answer does not have")
            inner = inner[word]
        return str(inner)

    return _FIELD.sub(value, template)


async def _sent(act: Act[Any], method: str, url: str, body: Any, headers: Mapping[str, str]) -> tuple[int, Any]:
    """Send a request. What surely was not done is ``NotDone``; a 5xx or a lost answer says nothing."""
    import httpx2

    seconds = max(1.0, act.time_left.total_seconds())
    try:
        async with httpx2.AsyncClient(timeout=seconds) as client:
            content = None if body is None else json.dumps(body).encode()
            given = {**({"Content-Type": "application/json"} if content else {}), **headers}
            answer = await client.request(method, url, content=content, headers=given)
    except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
        raise NotDone(f"{url} cannot be reached: {error}") from error
    status, text = answer.status_code, answer.text
    if status in (408, 425, 429):
        after = answer.headers.get("retry-after", "")
        raise TryLater(f"{url} answers {status}: {text[:200]}", float(after) if after.isdigit() else None)
    if status >= 500:
        raise RuntimeError(f"{url} answers {status}: {text[:200]}")
    try:
        return status, answer.json() if text else None
    except ValueError:
        return status, text


def _done(url: str, status: int, body: Any, take_back: str, key: str) -> Answered:
    if status >= 400:
        raise Fail(f"{url} answers {status}: {str(body)[:200]}")
    return Answered(status, body, _filled(take_back, key, body) if take_back else "")


async def _undo(act: Act[Any], made: Answered) -> None:
    if not made.take_back:
        return
    status, body = await _sent(act, "DELETE", made.take_back, None, {KEY: act.key})
    if status >= 400 and status not in (404, 410):
        raise Fail(f"{made.take_back} answers {status}: {str(body)[:200]}")


@effect(repeat=True, undo=_undo, timeout="60s")
async def call(
    act: Act[Any],
    method: str,
    url: str,
    body: Any = None,
    *,
    headers: Mapping[str, str] = {},
    key_header: str = KEY,
    take_back: str = "",
) -> Answered:
    """Call a service that honours an idempotency key. After a lost answer it is sent again, under the same key.

    ``take_back``: the address that is deleted if it is undone, with fields of the answer: ``https://…/orders/{id}``.
    """
    status, answer = await _sent(act, method, url, body, {**headers, key_header: act.key})
    return _done(url, status, answer, take_back, act.key)


async def _look(
    act: Act[Any],
    method: str,
    url: str,
    body: Any = None,
    *,
    look: str,
    headers: Mapping[str, str] = {},
    key_header: str = KEY,
    take_back: str = "",
) -> Answered | NotDone:
    where = _filled(look, act.key, {})
    status, found = await _sent(act, "GET", where, None, headers)
    if status in (404, 410):
        return NotDone(f"{where} is not there")
    return _done(where, status, found, take_back, act.key)


@effect(probe=_look, undo=_undo, timeout="60s")
async def once(
    act: Act[Any],
    method: str,
    url: str,
    body: Any = None,
    *,
    look: str,
    headers: Mapping[str, str] = {},
    key_header: str = KEY,
    take_back: str = "",
) -> Answered:
    """Call a service that would do it twice. ``look``: where it is found afterwards, like ``https://…?ref={key}``.

    The key travels in ``key_header``; 404 at ``look`` means that it did not happen.
    """
    status, answer = await _sent(act, method, url, body, {**headers, key_header: act.key})
    return _done(url, status, answer, take_back, act.key)
