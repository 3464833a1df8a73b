"""Faults: what goes wrong on purpose, switched over HTTP while the emulator runs.

``POST /emulator/faults`` takes a rule or a list of rules; ``GET`` shows them with their hits; ``DELETE`` clears them.

| fault | takes | what happens to a matching request |
|---|---|---|
| ``rate_limit`` | ``scope`` user/project | 429 as recorded, nothing done |
| ``drive_rate_limit`` | | 403 ``userRateLimitExceeded`` of Drive, nothing done |
| ``error`` | ``reason``, ``status``, ``message`` | that refusal, nothing done; a reason alone is enough |
| ``reset`` | | the connection is reset, nothing done |
| ``lost_answer`` | | it is done, then the connection is reset |
| ``error_after`` | ``status`` | it is done, then the answer is that error |
| ``latency`` | ``seconds``, ``jitter`` | it waits first (a told clock is moved instead) |
| ``late_answer`` | ``seconds``, ``jitter`` | it is done, then the answer waits |
| ``barrier`` | ``parties``, ``timeout_seconds`` | held until so many are there, then all go on |
| ``stale_read`` | ``versions`` or ``seconds`` | a read is served from an older version of the book |
| ``race`` | | a batch whose fence is stale is accepted all the same (two racing batches both win) |
| ``sort_500`` | | a batch with ``sortRange`` is a 500, nothing done |
| ``ghost_name`` | | names deleted from now on stay taken for ``addNamedRange`` in later batches |

Which requests: ``kind`` (a regular expression over Google's method ids, ``sheets.spreadsheets.batchUpdate``),
``path`` (over the path with its query), ``method``, ``user`` (the bearer token), ``book`` (the id of the file, form,
calendar or task list that the path names), ``write`` (true or false), ``contains`` (a request kind inside a batch).
How often: ``count`` (1 unless told, null for ever), after ``skip`` matching requests have passed, each with
``probability`` drawn from ``seed``. Settings that are no single rule are at ``/emulator/settings``: quotas, name-search
lag, latency of every call, and the switches of ``switch.py``.
"""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Reason:
    """What Google answers for a reason that a rule names."""

    status: int
    message: str
    domain: str = "global"


#: The refusals that a rule may name by their reason alone, as ``{"fault": "error", "reason": "quotaExceeded"}``.
REASONS: Mapping[str, Reason] = {
    "rateLimitExceeded": Reason(403, "Rate Limit Exceeded", "usageLimits"),
    "userRateLimitExceeded": Reason(403, "User Rate Limit Exceeded", "usageLimits"),
    "dailyLimitExceeded": Reason(403, "Daily Limit Exceeded", "usageLimits"),
    "quotaExceeded": Reason(403, "Calendar usage limits exceeded.", "usageLimits"),
    "sharingRateLimitExceeded": Reason(403, "Rate limit exceeded. Please try again later."),
    "storageQuotaExceeded": Reason(403, "The user's Drive storage quota has been exceeded."),
    "insufficientFilePermissions": Reason(403, "The user does not have sufficient permissions for this file."),
    "accessNotConfigured": Reason(
        403, "The API has not been used in this project before or it is disabled.", "usageLimits"
    ),
    "domainPolicy": Reason(403, "The domain administrators have disabled this app."),
    "RESOURCE_EXHAUSTED": Reason(429, "Resource has been exhausted (e.g. check quota)."),
    "authError": Reason(401, "Invalid Credentials"),
    "notFound": Reason(404, "Not Found"),
    "fullSyncRequired": Reason(410, "Sync token is no longer valid, a full sync is required.", "calendar"),
    "backendError": Reason(503, "Backend Error"),
    "internalError": Reason(500, "Internal Error"),
}

FAULTS = frozenset(
    {
        "rate_limit",
        "drive_rate_limit",
        "error",
        "reset",
        "lost_answer",
        "error_after",
        "latency",
        "late_answer",
        "barrier",
        "stale_read",
        "race",
        "sort_500",
        "ghost_name",
    }
)

_KEYS = frozenset(
    {
        "fault",
        "id",
        "kind",
        "path",
        "method",
        "user",
        "book",
        "write",
        "contains",
        "count",
        "skip",
        "probability",
        "seed",
        "scope",
        "status",
        "message",
        "reason",
        "seconds",
        "jitter",
        "parties",
        "timeout_seconds",
        "versions",
        "retry_after",
    }
)


@dataclass(frozen=True)
class Call:
    """What a rule can look at."""

    kind: str
    path: str
    method: str
    user: str
    write: bool
    book: str = ""
    #: The request kinds inside a batchUpdate.
    inside: frozenset[str] = frozenset()


@dataclass
class Rule:
    rule_id: str
    fault: str
    given: Mapping[str, Any]
    left: int | None
    skip: int
    chance: random.Random
    hits: int = 0
    waiting: int = 0
    generation: int = 0
    gate: threading.Condition = field(default_factory=threading.Condition)

    def matches(self, call: Call) -> bool:
        given = self.given
        if "kind" in given and not re.search(given["kind"], call.kind):
            return False
        if "path" in given and not re.search(given["path"], call.path):
            return False
        if "method" in given and given["method"].upper() != call.method:
            return False
        if "user" in given and given["user"] != call.user:
            return False
        if "book" in given and given["book"] != call.book:
            return False
        if "write" in given and given["write"] != call.write:
            return False
        return "contains" not in given or given["contains"] in call.inside

    def json(self) -> dict[str, Any]:
        return {**self.given, "id": self.rule_id, "fault": self.fault, "left": self.left, "hits": self.hits}


class Faults:
    """The rules in force."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.rules: dict[str, Rule] = {}
        self._made = 0

    def add(self, given: Mapping[str, Any]) -> Rule:
        fault = given.get("fault", "")
        if fault not in FAULTS:
            raise ValueError(f"unknown fault {fault!r}; known: {', '.join(sorted(FAULTS))}")
        unknown = given.keys() - _KEYS
        if unknown:
            raise ValueError(f"unknown keys {sorted(unknown)} in a rule; known: {', '.join(sorted(_KEYS))}")
        for name in ("kind", "path"):
            if name in given:
                re.compile(given[name])
        with self.lock:
            self._made += 1
            rule_id = str(given.get("id") or f"f{self._made}")
            count = given.get("count", 1)
            rule = Rule(
                rule_id,
                fault,
                {k: v for k, v in given.items() if k not in {"id", "fault"}},
                count,
                int(given.get("skip", 0)),
                random.Random(given.get("seed", 0)),
            )
            self.rules[rule_id] = rule
            return rule

    def remove(self, rule_id: str | None = None) -> None:
        with self.lock:
            gone = list(self.rules.values()) if rule_id is None else [r for r in [self.rules.pop(rule_id, None)] if r]
            if rule_id is None:
                self.rules.clear()
        for rule in gone:
            with rule.gate:
                rule.generation += 1
                rule.gate.notify_all()

    def json(self) -> list[dict[str, Any]]:
        with self.lock:
            return [rule.json() for rule in self.rules.values()]

    def take(self, call: Call, *faults: str) -> Rule | None:
        """The first rule of these faults that strikes this call; it is used up by one."""
        with self.lock:
            for rule in self.rules.values():
                if rule.fault in faults and self._strikes(rule, call):
                    return rule
            return None

    def take_all(self, call: Call, *faults: str) -> list[Rule]:
        with self.lock:
            return [rule for rule in self.rules.values() if rule.fault in faults and self._strikes(rule, call)]

    def _strikes(self, rule: Rule, call: Call) -> bool:
        if rule.left == 0 or not rule.matches(call):
            return False
        if rule.skip > 0:
            rule.skip -= 1
            return False
        if rule.chance.random() >= float(rule.given.get("probability", 1.0)):
            return False
        if rule.fault != "barrier" and rule.left is not None:
            rule.left -= 1
        rule.hits += 1
        return True

    def active(self, call: Call, fault: str) -> Rule | None:
        """A rule that would strike, without using it up."""
        with self.lock:
            for rule in self.rules.values():
                if rule.fault == fault and rule.left != 0 and rule.matches(call):
                    return rule
            return None

    def spend(self, rule: Rule) -> None:
        with self.lock:
            rule.hits += 1
            if rule.left is not None:
                rule.left -= 1


def wait_at(rule: Rule) -> bool:
    """Hold this caller until the rule's parties are all there; a full round uses the rule up by one."""
    parties = int(rule.given.get("parties", 2))
    timeout = float(rule.given.get("timeout_seconds", 10.0))
    with rule.gate:
        generation = rule.generation
        rule.waiting += 1
        if rule.waiting >= parties:
            rule.waiting = 0
            rule.generation += 1
            if rule.left is not None:
                rule.left -= 1
            rule.gate.notify_all()
            return True
        full = rule.gate.wait_for(lambda: rule.generation != generation, timeout)
        if not full:
            rule.waiting = max(0, rule.waiting - 1)
        return full
