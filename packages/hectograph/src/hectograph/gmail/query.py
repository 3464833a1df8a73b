"""The search language of Gmail, as far as it is played: which mails a text finds.

``from: to: cc: bcc: subject: label: in: is: has:attachment filename: after: before: newer_than: older_than:
rfc822msgid: deliveredto:``, ``"…"``, ``-``, ``OR``, ``{}``, ``()`` and bare words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

from hectograph.gmail.message import Mail

Test = Callable[[Mail], bool]

_TOKEN = re.compile(
    r'\s*(?:(-)|([(){}])|([A-Za-z_0-9]+):(?:"([^"]*)"|\(([^)]*)\)|([^\s(){}"]*))|"([^"]*)"|([^\s(){}"]+))'
)


class Search:
    """One search text, read."""

    def __init__(self, text: str, now: datetime, labels: Mapping[str, str]) -> None:
        self.now = now
        #: The ids of labels by their names in lower case.
        self.labels = labels
        self.anywhere = bool(re.search(r"\bin:(anywhere|trash|spam|drafts?)\b", text, re.IGNORECASE))
        self._tokens = [match.groups() for match in _TOKEN.finditer(text) if match.group().strip()]
        self._at = 0
        self.matches = self._any("")

    def _any(self, end: str) -> Test:
        """Read terms until a closing mark: all of them must hold, with OR binding more tightly."""
        groups: list[list[Test]] = []
        joined = False
        while self._at < len(self._tokens):
            minus, mark, *_, word = self._tokens[self._at]
            if mark and mark == end:
                self._at += 1
                break
            if word == "OR" and groups:
                joined, self._at = True, self._at + 1
                continue
            if word == "AND" or mark in (")", "}"):
                self._at += 1
                continue
            test = self._term(bool(minus))
            if joined and groups:
                groups[-1].append(test)
            else:
                groups.append([test])
            joined = False
        if end == "}":
            return lambda mail: any(test(mail) for group in groups for test in group)
        return lambda mail: all(any(test(mail) for test in group) for group in groups)

    def _term(self, minus: bool) -> Test:
        if minus:
            self._at += 1
            if self._at >= len(self._tokens):
                return lambda mail: True
            inner = self._term(False)
            return lambda mail: not inner(mail)
        _, mark, key, *rest = self._tokens[self._at]
        self._at += 1
        if mark:
            return self._any(")" if mark == "(" else "}")
        if key:
            quoted, listed, bare = rest[0], rest[1], rest[2]
            if listed is not None:
                tests = [self._keyed(key.lower(), word) for word in listed.split() if word != "OR"]
                either = " OR " in f" {listed} "
                return lambda mail: any(t(mail) for t in tests) if either else all(t(mail) for t in tests)
            return self._keyed(key.lower(), quoted if quoted is not None else bare or "")
        phrase, word = rest[3], rest[4]
        return _contains(phrase if phrase is not None else word or "")

    def _keyed(self, key: str, value: str) -> Test:
        folded = value.casefold()
        match key:
            case "from" | "to" | "cc" | "bcc" | "subject" | "deliveredto":
                name = {"deliveredto": "Delivered-To"}.get(key, key)
                return lambda mail: all(word in mail.header(name).casefold() for word in folded.split() or [""])
            case "label" | "in" | "is":
                return self._labelled(folded)
            case "has":
                return (lambda mail: bool(mail.files)) if folded == "attachment" else (lambda mail: False)
            case "filename":
                return lambda mail: any(folded in name.casefold() for name, _, _ in mail.files)
            case "rfc822msgid":
                wanted = value.strip("<>")
                return lambda mail: mail.rfc822.strip("<>") == wanted
            case "after" | "newer":
                return self._since(value, after=True)
            case "before" | "older":
                return self._since(value, after=False)
            case "newer_than" | "older_than":
                return self._age(value, newer=key == "newer_than")
        return _contains(f"{key}:{value}")

    def _labelled(self, word: str) -> Test:
        if word in {"anywhere", "all"}:
            return lambda mail: True
        if word == "read":
            return lambda mail: "UNREAD" not in mail.labels
        known = {"drafts": "DRAFT", "draft": "DRAFT", "sent": "SENT", "starred": "STARRED"}
        label = known.get(word) or self.labels.get(word.replace("-", " ")) or self.labels.get(word) or word.upper()
        return lambda mail: label in mail.labels

    def _since(self, value: str, *, after: bool) -> Test:
        """Compare with a moment: a day in any of its spellings, or seconds since 1970."""
        if value.isdigit() and len(value) > 8:
            moment = datetime.fromtimestamp(int(value), UTC)
        else:
            found = re.fullmatch(r"(\d{4})[/-](\d{1,2})[/-](\d{1,2})", value)
            other = re.fullmatch(r"(\d{1,2})/(\d{1,2})/(\d{4})", value)
            if found is not None:
                year, month, day = map(int, found.groups())
            elif other is not None:
                month, day, year = map(int, other.groups())
            else:
                return lambda mail: False
            try:
                moment = datetime(year, month, day, tzinfo=UTC)
            except ValueError:
                return lambda mail: False
        return (lambda mail: mail.at >= moment) if after else (lambda mail: mail.at < moment)

    def _age(self, value: str, *, newer: bool) -> Test:
        found = re.fullmatch(r"(\d+)([dmyh])", value)
        if found is None:
            return lambda mail: False
        days = int(found.group(1)) * {"h": 1 / 24, "d": 1, "m": 30, "y": 365}[found.group(2)]
        moment = self.now - timedelta(days=days)
        return (lambda mail: mail.at >= moment) if newer else (lambda mail: mail.at < moment)


def _contains(text: str) -> Test:
    folded = text.casefold()
    return lambda mail: folded in _whole(mail)


def _whole(mail: Mail) -> str:
    words = [mail.header(name) for name in ("Subject", "From", "To", "Cc")] + [mail.text]
    return " ".join(" ".join(words).split()).casefold()
