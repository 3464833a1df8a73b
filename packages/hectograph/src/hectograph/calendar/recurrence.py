"""Recurrence as RFC 5545 has it, as far as it is played.

RRULE with DAILY, WEEKLY, MONTHLY or YEARLY, and INTERVAL, COUNT, UNTIL, BYDAY, BYMONTHDAY, BYMONTH, WKST; EXDATE and
RDATE. Any other part is refused by name.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from itertools import count

from hectograph.calendar.event import refused, zone

_DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_PLAYED = frozenset({"FREQ", "INTERVAL", "COUNT", "UNTIL", "BYDAY", "BYMONTHDAY", "BYMONTH", "WKST"})

#: No rule is followed further than this.
_LAST_YEAR = 2100


@dataclass(frozen=True)
class Rule:
    frequency: str
    interval: int = 1
    count: int | None = None
    until: datetime | None = None
    #: Weekdays with the place in the month that they are limited to, or 0.
    days: tuple[tuple[int, int], ...] = ()
    month_days: tuple[int, ...] = ()
    months: tuple[int, ...] = ()


@dataclass(frozen=True)
class Recurrence:
    rules: tuple[Rule, ...]
    without: frozenset[datetime]
    also: tuple[datetime, ...]


def read(lines: Sequence[str], local: tzinfo) -> Recurrence:
    """Read the lines of ``recurrence``; what is not played is refused with its name."""
    rules: list[Rule] = []
    without: set[datetime] = set()
    also: list[datetime] = []
    for line in lines:
        head, _, text = line.partition(":")
        name, *_ = head.split(";")
        if name == "RRULE":
            rules.append(_rule(text, local))
        elif name in {"EXDATE", "RDATE"}:
            zoned = re.search(r"TZID=([^;:]+)", head)
            where: tzinfo = local
            if zoned is not None:
                where = zone(zoned.group(1)) or local
            found = [_moment(word, where) for word in text.split(",")]
            without.update(found) if name == "EXDATE" else also.extend(found)
        else:
            raise refused(f"Invalid recurrence rule: the emulator does not play {name or 'an empty line'}.")
    return Recurrence(tuple(rules), frozenset(without), tuple(also))


def _moment(word: str, where: tzinfo) -> datetime:
    for form in ("%Y%m%dT%H%M%SZ", "%Y%m%dT%H%M%S", "%Y%m%d"):
        try:
            found = datetime.strptime(word.strip(), form).replace(tzinfo=UTC if form.endswith("Z") else where)
        except ValueError:
            continue
        return found.astimezone(UTC)
    raise refused("Invalid recurrence rule.")


def _rule(text: str, local: tzinfo) -> Rule:
    parts = dict(piece.partition("=")[::2] for piece in text.split(";") if piece)
    unknown = sorted(parts.keys() - _PLAYED)
    frequency = parts.get("FREQ", "")
    if unknown or frequency not in {"DAILY", "WEEKLY", "MONTHLY", "YEARLY"}:
        what = ", ".join(unknown) or f"FREQ={frequency}"
        raise refused(f"Invalid recurrence rule: the emulator does not play {what}.")
    days = []
    for word in filter(None, parts.get("BYDAY", "").split(",")):
        found = re.fullmatch(r"([+-]?\d+)?(MO|TU|WE|TH|FR|SA|SU)", word)
        if found is None:
            raise refused("Invalid recurrence rule.")
        days.append((_DAYS.index(found.group(2)), int(found.group(1) or 0)))
    if frequency == "YEARLY" and days and "BYMONTH" not in parts:
        raise refused("Invalid recurrence rule: the emulator does not play BYDAY of a year without BYMONTH.")
    try:
        until = None
        if "UNTIL" in parts:
            until = _moment(parts["UNTIL"], local)
            if len(parts["UNTIL"]) == 8:
                until += timedelta(days=1, seconds=-1)
        return Rule(
            frequency,
            max(1, int(parts.get("INTERVAL", 1))),
            int(parts["COUNT"]) if "COUNT" in parts else None,
            until,
            tuple(days),
            tuple(int(word) for word in filter(None, parts.get("BYMONTHDAY", "").split(","))),
            tuple(int(word) for word in filter(None, parts.get("BYMONTH", "").split(","))),
        )
    except ValueError as error:
        raise refused("Invalid recurrence rule.") from error


def starts(recurrence: Recurrence, first: datetime, local: tzinfo) -> Iterator[datetime]:
    """Yield when the instances begin, in order; the clock time is kept over a change to summer time."""
    wall = first.astimezone(local).replace(tzinfo=None)
    if not recurrence.rules:
        yield from sorted({first, *recurrence.also} - recurrence.without)
        return
    extra = sorted(set(recurrence.also))
    for rule in recurrence.rules:
        made = 0
        for day in _days(rule, wall.date()):
            moment = datetime.combine(day, wall.time(), local).astimezone(UTC)
            if moment < first:
                continue
            made += 1
            if (rule.count is not None and made > rule.count) or (rule.until is not None and moment > rule.until):
                break
            while extra and extra[0] <= moment:
                one = extra.pop(0)
                if one != moment and one not in recurrence.without:
                    yield one
            if moment not in recurrence.without:
                yield moment
    yield from (one for one in extra if one not in recurrence.without)


def _days(rule: Rule, first: date) -> Iterator[date]:
    """Yield the days that a rule names, without its limits."""
    for step in count(0, rule.interval):
        days = _period(rule, first, step)
        if days is None:
            return
        yield from days


def _period(rule: Rule, first: date, step: int) -> list[date] | None:
    """Return the days of the period that lies so many periods after the first; None when the world ends."""
    try:
        if rule.frequency == "DAILY":
            found = [first + timedelta(days=step)]
            last = found[-1]
        elif rule.frequency == "WEEKLY":
            monday = first - timedelta(days=first.weekday()) + timedelta(weeks=step)
            found = [monday + timedelta(days=day) for day in sorted({d for d, _ in rule.days} or {first.weekday()})]
            last = monday
        elif rule.frequency == "MONTHLY":
            year, month = divmod(first.year * 12 + first.month - 1 + step, 12)
            found, last = _in_month(rule, first, year, month + 1), date(year, month + 1, 1)
        else:
            last = date(first.year + step, 1, 1)
            months = rule.months or (first.month,)
            found = [day for month in sorted(months) for day in _in_month(rule, first, last.year, month)]
    except (ValueError, OverflowError):
        return None
    if last.year > _LAST_YEAR:
        return None
    wanted = {day for day, _ in rule.days}
    if rule.frequency == "DAILY" and wanted:
        found = [day for day in found if day.weekday() in wanted]
    if rule.frequency != "YEARLY" and rule.months:
        found = [day for day in found if day.month in rule.months]
    if rule.frequency in {"DAILY", "WEEKLY"} and rule.month_days:
        found = [day for day in found if day.day in rule.month_days]
    return found


def _in_month(rule: Rule, first: date, year: int, month: int) -> list[date]:
    size = calendar.monthrange(year, month)[1]
    if rule.month_days:
        numbers = {day if day > 0 else size + 1 + day for day in rule.month_days}
        return [date(year, month, day) for day in sorted(numbers) if 1 <= day <= size]
    if rule.days:
        out: set[date] = set()
        for weekday, place in rule.days:
            every = [d for n in range(1, size + 1) if (d := date(year, month, n)).weekday() == weekday]
            if place == 0:
                out.update(every)
            elif abs(place) <= len(every):
                out.add(every[place - 1 if place > 0 else place])
        return sorted(out)
    return [date(year, month, first.day)] if first.day <= size else []
