"""Which alerts are sent, and when: one alert for each cause, no storm, nothing lost.

The functions are pure: state and findings come in, the new state goes out.

A channel's page remembers the causes that were sent and what waits to be sent. A cause is sent at once; while it
lasts, it is sent again only if more came to it and the quiet period is over. Many new causes of one place are one
alert. A channel gets at most ``MOST`` alerts in a quiet period: the last one of them tells how many causes more there
are, and what comes after that waits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from quire.explain.stuck import Finding
from quire.surfaces.alerts.channel import KINDS, Alert

MOST = 20
#: More new causes than this of one kind, workflow and step are one alert.
APART = 3
#: The first try is made again after this long, then twice as long, up to the longest.
BACK_OFF, LONGEST = 30.0, 3600.0
#: After so long an alert that could not be sent is given up.
GIVE_UP = 86400.0
#: The name under which a page keeps the causes that were sent: pages in ledgers have it from the beginning.
_ALERTED = "told"


@dataclass(frozen=True, slots=True)
class Alerted:
    """A cause that people were alerted to."""

    at: float
    #: The newest moment at which a record had come to it then.
    latest: float
    seen_at: float


@dataclass(frozen=True, slots=True)
class Waiting:
    """An alert on its way."""

    alert: Alert
    made_at: float
    next_at: float
    tries: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """One channel's memory."""

    alerted: Mapping[str, Alerted] = field(default_factory=dict)
    waiting: tuple[Waiting, ...] = ()
    #: When alerts were made in the last quiet period.
    moments: tuple[float, ...] = ()


def _key(finding: Finding) -> str:
    return hashlib.sha256(f"{finding.kind}\n{finding.cause}".encode()).hexdigest()[:16]


def kind_of(finding: Finding) -> str:
    return next(kind for kind, words in KINDS.items() if finding.kind in words)


def planned(page: Page, findings: Iterable[Finding], now: float, quiet: float, kinds: Iterable[str]) -> Page:
    """Return the page after what is stuck was read: alerts about new causes wait to be sent."""
    wanted = [finding for finding in findings if kind_of(finding) in kinds]
    alerted = dict(page.alerted)
    fresh = _fresh(wanted, alerted, now, quiet)
    moments = tuple(moment for moment in page.moments if now - moment < quiet)
    room = MOST - len(moments)
    groups = _grouped(fresh)
    sending = groups[:room] if len(groups) <= room else groups[: max(0, room - 1)]
    rest = groups[len(sending) :] if room > 0 else []
    made = [_alert(group, now) for group in sending]
    if rest:
        made.append(_summary(rest, now))
    for group in (*sending, *rest):
        for key, finding in group:
            alerted[key] = Alerted(now, finding.latest, now)
    # A cause that is gone is remembered for a quiet period: one that comes and goes is no storm either.
    alerted = {key: row for key, row in alerted.items() if now - row.seen_at < quiet or now - row.at < quiet}
    waiting = (*page.waiting, *(Waiting(alert, now, now) for alert in made))
    return Page(alerted, waiting, (*moments, *(now for _ in made)))


def _fresh(
    findings: Iterable[Finding], alerted: dict[str, Alerted], now: float, quiet: float
) -> list[tuple[str, Finding]]:
    """The causes to send: new ones, and those to which more came. Notes in ``alerted`` that the others last."""
    fresh: list[tuple[str, Finding]] = []
    for finding in findings:
        key = _key(finding)
        known = alerted.get(key)
        if known is None or (now - known.at >= quiet and finding.latest > known.latest):
            fresh.append((key, finding))
        if known is not None:
            alerted[key] = replace(known, seen_at=now)
    return fresh


def _grouped(fresh: Sequence[tuple[str, Finding]]) -> list[list[tuple[str, Finding]]]:
    places: dict[tuple[str, str, str], list[tuple[str, Finding]]] = {}
    for key, finding in fresh:
        places.setdefault((kind_of(finding), finding.workflow, finding.step), []).append((key, finding))
    groups: list[list[tuple[str, Finding]]] = []
    for place in places.values():
        groups += [place] if len(place) > APART else [[one] for one in place]
    return groups


def _id(keys: Iterable[str], now: float) -> str:
    return "quire-" + hashlib.sha256(f"{now!r} {' '.join(keys)}".encode()).hexdigest()[:24]


def _alert(group: Sequence[tuple[str, Finding]], now: float) -> Alert:
    first = group[0][1]
    id_, kind = _id((key for key, _ in group), now), kind_of(first)
    ids = tuple(record_id for _, finding in group for record_id in finding.record_ids)[:20]
    count = sum(finding.count for _, finding in group)
    text = first.sentence
    if len(group) > 1:
        text = "\n".join(finding.sentence for _, finding in group[:APART])
        text += f"\n… and {len(group) - APART} more of the same place"
    return Alert(id_, kind, text, count, ids, first.workflow, first.step)


def _summary(rest: Sequence[Sequence[tuple[str, Finding]]], now: float) -> Alert:
    count = sum(len(group) for group in rest)
    keys = [key for group in rest for key, _ in group]
    kinds = sorted({kind_of(finding) for group in rest for _, finding in group})
    text = f"{count} more causes ({', '.join(kinds)}); they are not sent one by one. Look: quire, or the dashboard"
    return Alert(_id(keys, now), "many", text, count)


def sent(page: Page, alert_id: str) -> Page:
    """It has arrived."""
    return replace(page, waiting=tuple(one for one in page.waiting if one.alert.alert_id != alert_id))


def failed(page: Page, alert_id: str, now: float, problem: str) -> Page:
    """It has not arrived: later again, and given up after a day."""
    kept = []
    for one in page.waiting:
        if one.alert.alert_id != alert_id:
            kept.append(one)
        elif now - one.made_at < GIVE_UP:
            pause = min(BACK_OFF * 2**one.tries, LONGEST)
            kept.append(replace(one, tries=one.tries + 1, next_at=now + pause, problem=problem[:300]))
    return replace(page, waiting=tuple(kept))


# -- as JSON ---------------------------------------------------------------------------------------------------


def page_json(page: Page) -> dict[str, Any]:
    return {
        _ALERTED: {key: [row.at, row.latest, row.seen_at] for key, row in page.alerted.items()},
        "waiting": [
            [
                one.alert._asdict() | {"record_ids": list(one.alert.record_ids)},
                one.made_at,
                one.next_at,
                one.tries,
                one.problem,
            ]
            for one in page.waiting
        ],
        "moments": list(page.moments),
    }


def read_page(kept: Mapping[str, Any]) -> Page:
    waiting = tuple(
        Waiting(Alert(**(alert | {"record_ids": tuple(alert["record_ids"])})), made_at, next_at, tries, problem)
        for alert, made_at, next_at, tries, problem in kept["waiting"]
    )
    alerted = {key: Alerted(*row) for key, row in kept[_ALERTED].items()}
    return Page(alerted, waiting, tuple(kept["moments"]))
