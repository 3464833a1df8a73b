"""What Calendar makes by itself: the times of a quick event from a few words, and a video conference."""

from __future__ import annotations

import random
import re
from datetime import datetime, timedelta

from hectograph.calendar.event import Fields

_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def words(text: str, now: datetime, usual: datetime) -> tuple[str, datetime]:
    """Read the few words for a time that a quick event may have; return the rest of the text and the time."""
    pattern = (
        r"\b(?:(today|tomorrow|" + "|".join(_WEEKDAYS) + r")\b)?\s*(?:at\s+)?(?:(\d{1,2})(?::(\d\d))?\s*(am|pm)?)?\s*$"
    )
    found = re.search(pattern, text, re.IGNORECASE)
    if found is None or not (found.group(1) or found.group(2)):
        return text, usual
    day, hour, minute, half = found.groups()
    start = usual if hour is None else now.replace(hour=_hour(int(hour), half), minute=int(minute or 0), second=0)
    word = (day or "").lower()
    if word == "tomorrow":
        start += timedelta(days=1)
    elif word in _WEEKDAYS:
        start += timedelta(days=(_WEEKDAYS.index(word) - now.weekday()) % 7 or 7)
    rest = re.sub(r"\s+(on|at)$", "", text[: found.start()].strip())
    return rest or text, start.replace(microsecond=0)


def _hour(hour: int, half: str | None) -> int:
    if half:
        hour = hour % 12 + (12 if half.lower() == "pm" else 0)
    return min(hour, 23)


def meeting(account: str, request: Fields) -> Fields:
    seed = random.Random(f"{account}/{request.get('requestId')}")
    word = "".join(seed.choices("abcdefghijklmnopqrstuvwxyz", k=10))
    code = f"{word[:3]}-{word[3:7]}-{word[7:]}"
    return {
        "createRequest": {
            "requestId": request.get("requestId", ""),
            "conferenceSolutionKey": {"type": "hangoutsMeet"},
            "status": {"statusCode": "success"},
        },
        "entryPoints": [
            {"entryPointType": "video", "uri": f"https://meet.google.com/{code}", "label": f"meet.google.com/{code}"}
        ],
        "conferenceSolution": {"key": {"type": "hangoutsMeet"}, "name": "Google Meet"},
        "conferenceId": code,
    }
