"""Which quota a call counts against, and how much of it: one for each API, by account or by space.

The figures are Google's for projects made since May 2026, each for one minute. Sheets has its own pace, which a ledger
may set (``Transport.per_minute``); acts share it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple


class Lane(NamedTuple):
    """A quota, and what one call takes of it."""

    name: str
    per_minute: float
    units: float = 1.0
    #: Whose it is, if not the account's: a space of Chat.
    key: str = ""


GMAIL_PER_MINUTE = 6_000.0
#: Units of Gmail by method and path below ``users/me/``; where nothing is said, 5.
_GMAIL: Mapping[str, float] = {
    "POST drafts/send": 100,
    "POST messages/send": 100,
    "POST drafts": 10,
    "PUT drafts/": 15,
    "DELETE drafts/": 10,
    "GET history": 2,
    "GET threads": 10,
    "POST threads/": 10,
    "GET profile": 1,
    "GET labels": 1,
    "GET settings/": 1,
    "POST watch": 100,
    "POST stop": 50,
}
#: Units of Drive by method; looking is cheap.
_DRIVE: Mapping[str, float] = {"GET": 5, "POST": 50, "PATCH": 50, "PUT": 50, "DELETE": 50}

_SPACE = re.compile(r"v1/(spaces/[^/?]+)/messages")
_API = re.compile(
    r"(?:upload/|batch/)?(gmail|calendar|drive|tasks)/v\d/|v1/(documents|presentations|forms|spaces|projects)\b|"
    r"v4/(spreadsheets)\b"
)
_NAMES = {"documents": "docs", "presentations": "slides", "spaces": "chat", "spreadsheets": "sheets"}


def api_of(path: str) -> str:
    """The API whose path this is, as ``quire connect --add`` names it; empty for another one."""
    found = _API.match(path.lstrip("/"))
    word = next(filter(None, found.groups()), "") if found is not None else ""
    return "pubsub" if word == "projects" else _NAMES.get(word, word)


def lane_of(method: str, path: str) -> Lane | None:
    """The quota that this call counts against; None: it counts against none that is kept here."""
    path = path.lstrip("/")
    read = method == "GET"
    match api_of(path):
        case "gmail":
            return Lane("gmail", GMAIL_PER_MINUTE, _gmail_units(method, path))
        case "calendar":
            return Lane("calendar", 600)
        case "drive":
            return Lane("drive", 325_000, _DRIVE.get(method, 50))
        case "docs" | "slides" as api:
            return Lane(f"{api}.read", 300 if api == "docs" else 600) if read else Lane(f"{api}.write", 60)
        case "forms":
            return Lane("forms.responses", 180) if "/responses" in path else Lane("forms", 150)
        case "tasks":
            return Lane("tasks", 600)
        case "chat" if not read and (found := _SPACE.match(path)):
            return Lane("chat.space", 60, key=found[1])
        case "chat":
            return Lane("chat", 900)
        case _:
            return None


def _gmail_units(method: str, path: str) -> float:
    call = f"{method} {path.partition('/users/')[2].partition('/')[2]}"
    return max(((len(known), units) for known, units in _GMAIL.items() if call.startswith(known)), default=(0, 5.0))[1]
