"""Single acts as records: the built-in workflow ``google``, whose data name one act and what it is given.

So a mail that is typed on the command line, or asked for in a chat, has what every act of a step has: it happens once
under its id, is probed after a kill, is logged, and can be undone.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import BaseModel

from quire.clock import Span
from quire.errors import InputError, did_you_mean
from quire.model.codec import PLAIN, parse
from quire.run.run import Run
from quire.workflows.effect import Act, Effect
from quire.workflows.workflow import Workflow
from quire.workspace import calendar, chat, docs, drive, gmail, sheets

#: The acts by the words with which people ask for them.
ACTS: Mapping[str, Effect[..., Any, Any]] = {
    "mail": gmail.send,
    "draft": gmail.draft,
    "event": calendar.event,
    "post": chat.post,
    "folder": drive.folder,
    "copy": drive.copy,
    "fill": docs.fill,
    "pdf": drive.pdf,
    "share": drive.share,
    "row": sheets.row,
}
#: Those that reach somebody outside.
LEAVING = frozenset({"mail", "event", "post", "share"})
NAME = "google"


class Single(BaseModel):
    """One act, and what it is given by name."""

    act: str
    given: dict[str, Any]
    #: Which connection; empty: the usual one.
    using: str = ""
    #: People release it before; they are these, or anybody.
    asks: bool = False
    by: str = ""
    expires: str = "3d"


def named(word: str) -> Effect[..., Any, Any]:
    """The act that a word names."""
    if word not in ACTS:
        raise InputError(f"there is no act {word!r}{did_you_mean(word, ACTS)}")
    return ACTS[word]


def arguments(data: Single) -> dict[str, Any]:
    """What the act gets: a moment is written as text in the record."""
    given = dict(data.given)
    if data.act == "event" and isinstance(given.get("start"), str):
        given["start"] = moment(given["start"])
    return given


def moment(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise InputError(f"{text!r} is no moment; write it like 2027-01-11T09:00+01:00") from error


google: Workflow[Single, Any, None] = Workflow(NAME, data=Single)


@google.step
async def act(run: Run[Single]) -> dict[str, Any]:
    """Do the one act of this record."""
    data = run.data
    effect = named(data.act).named(data.act)
    if data.using:
        effect = effect.using(data.using)
    if data.asks:
        expires: Span = data.expires
        effect = effect.parked(f"May {data.act} be done?", by=data.by or None, expires=expires)
    made = await run.once(effect, **arguments(data))
    shown: dict[str, Any] = parse(PLAIN.encode(made, "what the act made"))
    return shown


async def rehearsed(data: Single) -> dict[str, Any]:
    """What the act would do, as far as reading tells. Refuses what could not be done; nothing is left behind."""
    effect = named(data.act)
    given = arguments(data)
    act_: Act[Any] = Act("rehearsal", None, "rehearsal", connection=data.using)
    found: Any = None
    if effect.prepare is not None and effect.prepare.check is not None:
        checked: Any = effect.prepare.check(act_, **given)
        found = await checked
    who: Any = effect.actor(act_) if effect.actor is not None else None
    return {
        "act": data.act,
        "given": data.given,
        "as": await who if who is not None else None,
        "prepared": parse(PLAIN.encode(found, "what was checked")),
    }
