"""Acts at Google as tools of a chat: ``google_mail``, ``google_event``, … Only those that ``[mcp] google`` names.

Each is a record of the built-in workflow ``google``, which a worker does. One that leaves the house is parked: people
release it, for instance with the tool ``approve`` and the hash that ``show`` gives.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from pydantic import Field, create_model

from quire.errors import InputError, did_you_mean
from quire.surfaces.chat.mcp.tools import Desk, Given, Tool
from quire.surfaces.server.auth.tokens import Role
from quire.workspace import single
from quire.workspace.single import LEAVING, NAME, Single

_MAIL = {"to": list[str], "subject": str, "text": str}
_FOLDER = (str | None, Field(None, description="The id or link of the folder in which it stands."))
_FILES = (list[str] | None, Field(None, description="Ids or links of files in Drive."))
#: What each tool takes. A pair is a type with what it is if it is left out.
_TAKES: Mapping[str, Mapping[str, Any]] = {
    "mail": {**_MAIL, "cc": (list[str] | None, None), "attach": _FILES},
    "draft": {**_MAIL, "attach": _FILES},
    "event": {
        "title": str,
        "start": (str, Field(description="A moment with its time zone, like 2027-01-11T09:00+01:00.")),
        "lasts": (str, "1h"),
        "invite": (list[str] | None, None),
        "description": (str | None, None),
    },
    "post": {"space": str, "text": str},
    "folder": {"name": str, "parent": _FOLDER},
    "copy": {"template": str, "name": str, "parent": _FOLDER},
    "fill": {"document": str, "values": dict[str, str]},
    "pdf": {"document": str, "parent": _FOLDER},
    "share": {"file": str, "who": str, "role": (str, "reader")},
    "row": {"book": str, "tab": str, "row": dict[str, str]},
}


def offered(words: Sequence[str]) -> dict[str, Tool]:
    """The tools for these acts, by name."""
    for word in words:
        if word not in _TAKES:
            raise InputError(f"[mcp] google: there is no act {word!r}{did_you_mean(word, _TAKES)}")
    return {f"google_{word}": _tool(word) for word in words}


def _tool(word: str) -> Tool:
    fields: dict[str, Any] = {
        name: kind if isinstance(kind, tuple) else (kind, ...) for name, kind in _TAKES[word].items()
    }
    fields["id"] = (str | None, Field(None, description="An id of your own: a second call with it does nothing."))
    takes: type[Given] = create_model(f"Google{word.title()}", __base__=Given, **fields)
    first = (single.ACTS[word].act.__doc__ or "").split("\n")[0]
    asks = " People release it before: it answers with the id of what needs approval." if word in LEAVING else ""
    return Tool(f"google_{word}", f"Google: {word}", first + asks, Role.OPERATOR, takes, _act(word))


def _act(word: str) -> Callable[[Desk, Any], Awaitable[dict[str, Any]]]:
    async def act(desk: Desk, given: Any) -> dict[str, Any]:
        args = {name: value for name, value in given.model_dump(exclude={"id"}).items() if value is not None}
        if word == "event":
            single.moment(args["start"])
        leaves = word in LEAVING
        data = Single(act=word, given=args, asks=leaves)
        handle = await desk.client.start(NAME, data.model_dump(), id=given.id)
        desk.audit(f"google_{word}", handle.record_id)
        state = f"needs approval {handle.record_id}" if leaves else f"started {handle.record_id}"
        return {"id": handle.record_id, "state": state}

    return act
