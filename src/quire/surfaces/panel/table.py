"""What the state table says of a record: its columns, what is asked of people, and the words that are legal. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from quire.clock import iso
from quire.explain.why import Around, why_of
from quire.folder.state import dedupe_key
from quire.model.change import Standing
from quire.model.codec import dump
from quire.model.record import Record, Status
from quire.model.side import EVERYWHERE
from quire.model.state import shown_status
from quire.model.wait import On, Wait, load_waits
from quire.surfaces.panel.layout import STATE

CANCEL, RETRY, HAPPENED, NOT = "CANCEL", "RETRY", "HAPPENED", "NOT"
#: People look at these cells; the whole text is in the ledger.
MOST_CHARACTERS = 2000
#: "in 3 min", "2 h ago": true when it is written, and not for long.
_RELATIVE = re.compile(r" \((?:in [^()]*|[^()]* ago)\)")
_CODE = re.compile(r" \[([0-9a-f]{8})\]$")


class Row(NamedTuple):
    """The hidden row of a record."""

    record_id: str
    status: str
    next_step: str
    dedupe_key: str
    last_run_id: str
    last_error: str
    updated_at: str
    why: str
    asks: str
    reply: str
    version: str
    #: What may be typed as a command, between bars.
    words: str

    @property
    def offered(self) -> list[str]:
        return self.words.split("|") if self.words else []

    @property
    def over(self) -> bool:
        """Whether the record has ended. Its status may be a state that the workflow declares."""
        return self.next_step == "" and self.status != ""

    @property
    def code(self) -> str:
        return code_of(self.asks)


assert Row._fields == STATE


def row_of(record: Record, seen: Around, reply: str = "") -> Row:
    asked = asked_of(record)
    return Row(
        record.record_id,
        shown_status(record),
        "" if record.ended else record.step,
        cut(dedupe_key(record)),
        record.run_id or "",
        cut(record.last_error or ""),
        iso(record.updated_at),
        why_text(record, seen),
        asks(asked) if asked is not None else "",
        cut(reply),
        str(record.version),
        "|".join(words(record, asked, seen.definition)),
    )


def why_text(record: Record, seen: Around) -> str:
    """Why it stands where it stands, without the id with which the sentence begins: that stands in the same row."""
    said = why_of(record, seen).sentence.removeprefix(repr(record.record_id)).lstrip(": ")
    return cut(_RELATIVE.sub("", said))


def panel_row(standing: Standing, reply: str, hidden: int) -> Row:
    """The hidden row of the panel itself: how the ledger stands."""
    halted = [control for control in standing.controls if control.halted]
    paused = [control for control in standing.controls if control.paused]
    status, why = "OPEN", ""
    for word, controls in (("PAUSED", paused), ("HALTED", halted)):
        if controls:
            control = controls[0]
            status = word
            what = "all of it" if control.scope == EVERYWHERE else f"workflow {control.scope!r}"
            by = f" by {control.by}" if control.by else ""
            why = f"{what}{by} since {iso(control.at)}; it goes on by quire resume"
    if standing.sealed:
        status, why = "SEALED", f"its records are at {standing.sealed}"
    if hidden:
        why = f"{why}; " if why else ""
        why += f"{hidden} more records are not shown here: the table is full"
    moment = max((control.at for control in standing.controls), default=0.0)
    blank = Row(*[""] * len(STATE))
    return blank._replace(
        record_id="@panel", status=status, why=why, reply=cut(reply), updated_at=iso(moment) if moment else ""
    )


def cut(text: str, record_id: str = "", where: str | None = None) -> str:
    """The text as a cell shows it. The end of one that is too long names where all of it stands, if that is known."""
    flat = "".join(letter for letter in text if letter >= " " or letter == "\n")
    if len(flat) <= MOST_CHARACTERS:
        return flat
    mark = f"… (all of it: {where or f'quire show {record_id}'})" if where or record_id else "…"
    return flat[: MOST_CHARACTERS - len(mark)] + mark


# -- questions -------------------------------------------------------------------------------------------------


def asked_of(record: Record) -> Wait | None:
    """What a person is asked; None: nothing."""
    if record.status is not Status.NEEDS_APPROVAL:
        return None
    waits = load_waits(record.waits)
    return next((wait for on in (On.QUESTION, On.DOUBT) for wait in waits if wait.on is on), None)


def asks(wait: Wait) -> str:
    """The question, what it shows, and the code that an answer in the same row is bound to."""
    about = wait.about or {}
    text = str(about.get("text", ""))
    show = about.get("show")
    if show not in (None, "", [], {}):
        text += " — " + (show if isinstance(show, str) else dump(show))
    return f"{cut(text)} [{code(wait)}]"


def code(wait: Wait) -> str:
    """Eight letters of the hash of what is asked and shown."""
    bound = str((wait.about or {}).get("hash") or hashlib.sha256(f"{wait.key}\n{wait.name}".encode()).hexdigest())
    return bound[:8]


def code_of(text: str) -> str:
    found = _CODE.search(text)
    return found[1] if found else ""


def words(record: Record, asked: Wait | None, definition: Mapping[str, Any] | None) -> list[str]:
    """What may be typed beside the record as it stands."""
    match record.status:
        case Status.DONE:
            return []
        case Status.ERROR | Status.CANCELLED:
            return [RETRY]
        case Status.NEEDS_APPROVAL if asked is not None and asked.on is On.DOUBT:
            return [HAPPENED, NOT, CANCEL]
        case Status.NEEDS_APPROVAL if asked is not None:
            return list(dict.fromkeys([*map(str.upper, _safe((asked.about or {}).get("choices", ()))), CANCEL]))
        case Status.PENDING if record.attempt:
            return [RETRY, CANCEL]
        case Status.WAITING if any(wait.on is On.REST for wait in load_waits(record.waits)):
            steps = definition["steps"] if definition is not None else ()
            then = next((step["then"] for step in steps if step["name"] == record.step), ())
            return [*_safe(then), CANCEL]
        case _:
            return [CANCEL]


def _safe(given: Sequence[str]) -> list[str]:
    """Words that can be listed: a bar divides them in the hidden row, and a list takes no formula."""
    return [word for word in given if "|" not in word and word[:1] not in "=+-@"][:40]
