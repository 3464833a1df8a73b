"""What a person changed in a record's data, for the line of the log that tells of it: before and after, field by field.

The ledger keeps data as they are, not as they were. A step's own changes are its code's; what a person changed by hand
is nowhere else. It is kept as long as it is short.
"""

from __future__ import annotations

from typing import Any

from quire.model.codec import dump, parse

#: Longer than this, only the names of the fields are told.
MOST_CHARACTERS = 2000


def changes(before: str, after: str) -> dict[str, Any]:
    """``{"changes": {field: [before, after]}}``, ``{"changed": [field]}`` if that is too long; {}: nothing to tell.

    A field that was not there, or is not any more, is told as null.
    """
    was, now = parse(before), parse(after)
    if not isinstance(was, dict) or not isinstance(now, dict):
        return {}
    names = [name for name in {**was, **now} if name not in was or name not in now or was[name] != now[name]]
    if not names:
        return {}
    told = {name: [was.get(name), now.get(name)] for name in names}
    if len(dump(told)) <= MOST_CHARACTERS:
        return {"changes": told}
    return {"changed": [name[:100] for name in names[:20]]}
