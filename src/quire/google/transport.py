"""One way to Google: a deadline for every call, the shared quota, back-off, and no blind repeats.

What Google refused for its quota, or never received, was not done: it is asked again, with full jitter. What broke
off, or ended in a 5xx, may have been done: it is asked again only if the caller says that a repeat does no harm.
"""

from __future__ import annotations

import email.utils
import json
import random
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx2

from quire.clock import SYSTEM, Clock
from quire.google.budget import Budget, Urgency, lane, shared
from quire.google.credentials import Credentials
from quire.google.error import GoogleError, NotSignedIn, Unanswered, Unavailable, error_of, is_rate_limit
from quire.google.lanes import api_of, lane_of

SHEETS = "https://sheets.googleapis.com/"
DRIVE = "https://www.googleapis.com/"

#: Google gives up a request after 180 s; nobody waits longer for one answer.
ANSWER_SECONDS = 180.0
#: The longest pause between two tries.
LONGEST_PAUSE = 32.0

_NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)


class Answer(NamedTuple):
    body: bytes
    headers: Mapping[str, str]

    @property
    def json(self) -> dict[str, Any]:
        found = json.loads(self.body) if self.body else {}
        return found if isinstance(found, dict) else {}


class Transport:
    """Connections of one user to one endpoint. Use it within one event loop, from ``open`` to ``close``."""

    def __init__(
        self,
        credentials: Credentials,
        *,
        endpoint: str = "",
        per_minute: float | None = 60.0,
        lanes: bool = False,
        clock: Clock = SYSTEM,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.credentials = credentials
        self.endpoint = endpoint and endpoint.rstrip("/") + "/"
        self.clock = clock
        self.per_minute = per_minute
        #: Keep to the quotas of all APIs, and not only to that of Sheets.
        self.lanes = lanes
        self._chance = chance
        self._client: httpx2.AsyncClient | None = None
        #: When Google last answered with 429 or 5xx, or not at all; on ``clock.boottime``.
        self.troubled_at: float | None = None
        #: Bytes of the bodies that were sent.
        self.sent_bytes = 0
        #: How far this machine's clock is from Google's, by the last answer.
        self.skew = 0.0

    async def open(self) -> None:
        if self._client is None:
            limits = httpx2.Limits(max_connections=16, max_keepalive_connections=16)
            # Certificates take long to load, and plain HTTP has none.
            self._client = httpx2.AsyncClient(
                limits=limits,
                timeout=httpx2.Timeout(ANSWER_SECONDS, connect=10.0),
                verify=not self.endpoint.startswith("http://"),
            )
            self.budgets = shared(self.endpoint, self.credentials.account, self.clock, self.per_minute)

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def call(
        self,
        method: str,
        url: str,
        *,
        what: str,
        urgency: Urgency,
        write: bool,
        repeatable: bool,
        deadline: float = 60.0,
        params: Mapping[str, Any] | None = None,
        body: Any = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        metered: bool = True,
        paid: bool = False,
    ) -> Answer:
        """Ask until there is an answer, or the deadline is over.

        ``repeatable``: doing it twice is the same as once, or the request fences itself. ``metered``: it counts
        against the quota of Sheets. ``paid``: for the first try that was done already.
        """
        if self._client is None:
            raise Unavailable(f"{what}: the connection to Google is not open")
        content = content if body is None else _as_json(body)
        until, tries = self.clock.boottime() + deadline, 0
        unanswered, signed_in_again = None, False
        while True:
            if not (paid and tries == 0):
                await self._turn(method, url, urgency, write=write, metered=metered)
            left = min(ANSWER_SECONDS, max(1.0, until - self.clock.boottime()))
            self.sent_bytes += len(content or b"")
            try:
                sent = {"Content-Type": "application/json", **await self.credentials.headers(), **(headers or {})}
                ask = self._client.request
                response = await ask(method, url, params=params, content=content, headers=sent, timeout=left)
            except httpx2.HTTPError as error:
                problem, pause = self._not_answered(error, what), 0.0
            else:
                self._read_date(response.headers)
                if response.is_success:
                    return Answer(response.content, response.headers)
                budget = self._budget(method, url, write=write, metered=metered)
                problem, again = self._refused(response, url, what, budget)
                if isinstance(problem, NotSignedIn) and not signed_in_again:
                    signed_in_again = True
                    self.credentials.expire()
                    continue
                if not again:
                    raise problem
                pause = _retry_after(response.headers)
            if isinstance(problem, Unanswered):
                unanswered = problem
                if not repeatable:
                    raise problem
            tries += 1
            pause = max(pause, self._chance() * min(LONGEST_PAUSE, 0.25 * 2**tries))
            if self.clock.boottime() + pause >= until:
                raise unanswered or problem
            await self.clock.sleep(pause)

    async def _turn(self, method: str, url: str, urgency: Urgency, *, write: bool, metered: bool) -> None:
        """Return when the quota that this call counts against has room for it."""
        found = lane_of(method, urlsplit(url).path) if self.lanes and not metered else None
        if metered or found is not None:
            units = 1.0 if found is None else found.units
            await self._budget(method, url, write=write, metered=metered).take(urgency, units)

    def _budget(self, method: str, url: str, *, write: bool, metered: bool) -> Budget:
        found = lane_of(method, urlsplit(url).path) if self.lanes and not metered else None
        if found is None:
            return self.budgets.of(write)
        whose = found.key or self.credentials.account
        return lane(self.endpoint, whose, found.name, found.per_minute, self.clock)

    def _not_answered(self, error: httpx2.HTTPError, what: str) -> GoogleError:
        """The connection brought no answer. Say whether the request can have reached Google."""
        self.troubled_at = self.clock.boottime()
        if isinstance(error, _NEVER_SENT):
            where = f"Google, which is to be at {self.endpoint}," if self.endpoint else "Google"
            return Unavailable(f"{what}: {where} cannot be reached: {error}. Check the network and the address.")
        return Unanswered(f"{what}: the connection broke off ({type(error).__name__}: {error})")

    def _refused(self, response: httpx2.Response, url: str, what: str, budget: Budget) -> tuple[GoogleError, bool]:
        """Return what the refusal means, and whether the same request may succeed later."""
        found = _parsed(response.content)
        problem = error_of(response.status_code, found, what, self.credentials.account, _product(url))
        used_up = is_rate_limit(response.status_code, found)
        if used_up:
            budget.halve()
        again = used_up or response.status_code >= 500
        if again:
            self.troubled_at = self.clock.boottime()
        return problem, again

    def _read_date(self, headers: Mapping[str, str]) -> None:
        sent_at = email.utils.parsedate_tz(headers.get("date", ""))
        if sent_at is not None:
            self.skew = self.clock.now() - email.utils.mktime_tz(sent_at)

    @property
    def sheets(self) -> str:
        return self.endpoint or SHEETS

    @property
    def drive(self) -> str:
        return self.endpoint or DRIVE


def _product(url: str) -> str:
    return api_of(urlsplit(url).path)


def _as_json(body: Any) -> bytes:
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()


def _parsed(content: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(content)
    except ValueError:
        return {"error": {"message": content[:200].decode(errors="replace")}}
    return found if isinstance(found, dict) else {}


def _retry_after(headers: Mapping[str, str]) -> float:
    try:
        return min(120.0, max(0.0, float(headers.get("retry-after", "0"))))
    except ValueError:
        return 0.0
