"""What differs between two states of a record's data, field by field: for the line that tells of it, and back.

The ledger keeps data as they are, not as they were. What a step or a person changed stands in the line of the log that
came with it, as long as it is short, and ``before`` undoes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from quire.model.codec import dump, parse

#: Data that are longer are not compared: that would cost more than the move itself.
MOST_COMPARED = 100_000
#: Of what takes more than this, only the names of the fields are kept.
MOST_CHARACTERS = 2000
#: So many names, and so much of each.
MOST_NAMES = 20
MOST_OF_A_NAME = 100


class Known(NamedTuple):
    """Data as far as they are known."""

    fields: Mapping[str, Any]
    #: Nobody knows whether these were there, nor what they were.
    unknown: frozenset[str] = frozenset()


def same(one: Any, other: Any) -> bool:
    """Equal as JSON: true is not 1, and the order of an object's fields does not count."""
    if type(one) is not type(other) or one != other:
        return False
    if isinstance(one, dict):
        return all(same(value, other[name]) for name, value in one.items())
    return not isinstance(one, list) or all(map(same, one, other))


def pairs(was: Mapping[str, Any], now: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """``changes``: each of these fields, before and after; ``came``, ``went``: those whose null means "not there"."""
    found: dict[str, Any] = {"changes": {name: [was.get(name), now.get(name)] for name in names}}
    found["came"] = [name for name in names if name not in was]
    found["went"] = [name for name in names if name not in now]
    return {word: value for word, value in found.items() if value}


def differing(was: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the names of the fields that differ."""
    return [name for name in {**was, **now} if name not in was or name not in now or not same(was[name], now[name])]


def carried(saved: Any, was: Any, now: Mapping[str, Any]) -> Any:
    """An older state of data in which the same fields are changed as between ``was`` and ``now``."""
    if not isinstance(saved, dict) or not isinstance(was, dict):
        return dict(now)
    names = differing(was, now)
    new = {name: now[name] for name in names if name in now}
    return {name: value for name, value in saved.items() if name in new or name not in names} | new


def changes(before: str, after: str) -> dict[str, Any]:
    """What ``pairs`` tells; ``changed``: the names of those that are too long for it. {}: nothing differs.

    Of data that are no object, or very long, nothing is kept but that they changed: ``{"changed": []}``.
    """
    if max(len(before), len(after)) > MOST_COMPARED:
        return {} if before == after else {"changed": []}
    was, now = parse(before), parse(after)
    if not isinstance(was, dict) or not isinstance(now, dict):
        return {} if same(was, now) else {"changed": []}
    short, long, room = [], [], MOST_CHARACTERS
    for name in differing(was, now):
        size = len(dump(pairs(was, now, [name])))
        if size <= room:
            short.append(name)
            room -= size
        else:
            long.append(name)
    names = [name[:MOST_OF_A_NAME] for name in long[:MOST_NAMES]]
    return pairs(was, now, short) | ({"changed": names} if names else {})


def informed(after: Known, line: Mapping[str, Any]) -> Known:
    """What is known of the data as this line left them: it may tell fields of which later lines kept only the name."""
    changed = {name: now for name, (_, now) in line.get("changes", {}).items() if name in after.unknown}
    if not changed:
        return after
    here = {name: now for name, now in changed.items() if name not in line.get("went", ())}
    return Known({**after.fields, **here}, after.unknown - changed.keys())


def before(after: Known, line: Mapping[str, Any]) -> Known | None:
    """What the data were before the change that this line tells of. None: it does not say, or it does not fit.

    Fields of which only the name was kept are unknown from here on, until an older line tells what they were.
    """
    names: Sequence[str] | None = line.get("changed")
    if names is not None and (
        not names or len(names) >= MOST_NAMES or any(len(name) >= MOST_OF_A_NAME for name in names)
    ):
        return None  # some names may be missing, or cut
    after = informed(after, line)
    fields, unknown = dict(after.fields), set(after.unknown)
    came, went = frozenset(line.get("came", ())), frozenset(line.get("went", ()))
    for name, (was, now) in line.get("changes", {}).items():
        if (name in fields) == (name in went) or not same(fields.get(name), now):
            return None
        fields[name] = was
        if name in came:
            del fields[name]
    for name in names or ():
        fields.pop(name, None)
        unknown.add(name)
    return Known(fields, frozenset(unknown))
