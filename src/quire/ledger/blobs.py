"""Large values by their hash: part of the ledger, written with the commit that names them (protocol 20).

A column that holds JSON text holds ``@`` and a SHA-256 instead where the text is long: the same value is kept once, and
a move that does not change it does not write it again. A value that differs little from one that this process kept a
moment ago is a reference to that one with the difference: ``@sha256:…|[[0,120],"new",[123,5000]]``, which is 120
characters from its place 0, three new ones, and 5000 from its place 123. So what a long value takes grows with what is
changed of it, not with its length.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from quire.errors import LedgerError

_MARK = "@sha256:"
#: So many characters of a reference name the blob; what follows is the difference.
NAME_LENGTH = len(_MARK) + 64
#: A difference that is longer is not kept as one, and neither is one of more than this share of the value.
MOST_DIFFERENCE = 16 * 1024
LEAST_GAIN = 8
#: So many values are remembered to compare with, of so many characters together.
MOST_BASES = 16
MOST_CHARACTERS = 16 * 1024 * 1024
#: A difference has no more parts than this.
_MOST_PARTS = 200
#: How many characters are looked for where texts differ, at every which place, and how many samples tell early.
_PROBE, _STEP, _SAMPLES = 48, 8, 9


def is_reference(text: str | None) -> bool:
    return text is not None and text[:1] == "@"


def kept_apart(text: str, into: dict[str, str]) -> str:
    """Return the reference that stands for ``text``; the text itself is put ``into`` the blobs to be written."""
    reference = _MARK + hashlib.sha256(text.encode()).hexdigest()
    into[reference] = text
    return reference


def blob_of(reference: str) -> str:
    """Return the name of the blob that a reference needs."""
    return reference[:NAME_LENGTH]


def resolved(reference: str, blobs: Mapping[str, str], where: str) -> str:
    """Return the text behind the reference. A missing one is an error with its hash, never an empty value."""
    name = blob_of(reference)
    text = blobs.get(name)
    if text is None:
        raise LedgerError(f"the ledger has lost a value of {where}: there is no blob {name.removeprefix(_MARK)}")
    if name == reference:
        return text
    parts = json.loads(reference[NAME_LENGTH + 1 :])
    return "".join(part if isinstance(part, str) else text[part[0] : part[0] + part[1]] for part in parts)


class Bases:
    """The long values that one process kept last, to compare others with."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._texts: OrderedDict[str, str] = OrderedDict()

    def kept_apart(self, text: str, into: dict[str, str]) -> str:
        """The reference that stands for ``text``, as the difference from a known value if that is short.

        The known value goes ``into`` what is written, too: it may be of another ledger, or gone from this one.
        """
        with self._lock:
            for name, known in reversed(self._texts.items()):
                if (difference := _difference(known, text)) is not None:
                    self._texts.move_to_end(name)
                    into[name] = known
                    return name + difference
            name = kept_apart(text, into)
            self._texts[name] = text
            while len(self._texts) > MOST_BASES or sum(map(len, self._texts.values())) > MOST_CHARACTERS:
                self._texts.popitem(last=False)
            return name


#: Shared by all ledgers of the process.
BASES = Bases()


def _difference(known: str, text: str) -> str | None:
    """What turns one text into the other: nothing if they are the same, None if they differ too much."""
    if known == text:
        return ""
    most = min(MOST_DIFFERENCE, len(text) // LEAST_GAIN)
    if abs(len(known) - len(text)) > most or not _resembles(known, text):
        return None
    parts: list[Any] = []
    here = there = fresh = 0
    while there < len(text):
        alike = _alike(known, text, here, there)
        if alike:
            parts.append([here, alike])
            here, there = here + alike, there + alike
            continue
        where, skipped = _again(known, text, here, there)
        fresh += skipped
        if fresh > most or len(parts) > _MOST_PARTS:
            return None
        parts.append(text[there : there + skipped])
        here, there = where, there + skipped
    return "|" + json.dumps(parts, ensure_ascii=False, separators=(",", ":"))


def _resembles(known: str, text: str) -> bool:
    """Return whether most of some samples of one text are in the other: to compare what differs costs more."""
    missing = 0
    for part in range(_SAMPLES):
        place = part * (len(text) - _PROBE) // (_SAMPLES - 1)
        missing += text[place : place + _PROBE] not in known
        if missing > _SAMPLES // 3:
            return False
    return True


def _alike(known: str, text: str, here: int, there: int) -> int:
    """Return how many characters both have alike from these places on."""
    least, most = 0, min(len(known) - here, len(text) - there)
    while least < most:
        middle = (least + most + 1) // 2
        same = known[here + least : here + middle] == text[there + least : there + middle]
        least, most = (middle, most) if same else (least, middle - 1)
    return least


def _again(known: str, text: str, here: int, there: int) -> tuple[int, int]:
    """Where the texts are alike again: the place in the known one, and how many characters of the other come before."""
    for skipped in range(0, MOST_DIFFERENCE, _STEP):
        probe = text[there + skipped : there + skipped + _PROBE]
        if len(probe) < _PROBE:
            break
        where = known.find(probe, here, here + skipped + MOST_DIFFERENCE)
        if where >= 0:
            return where, skipped
    return len(known), len(text) - there
