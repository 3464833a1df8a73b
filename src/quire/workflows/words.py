"""The words that a status column of people's says: four vocabularies, and what one of their own must be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from quire.errors import DefinitionError, did_you_mean
from quire.workflows import declared

#: Stands in a word for the name of the record's step, in capitals.
STEP: Final = "{STEP}"

READY: Final[Mapping[str, str]] = {
    "ready": "Ready",
    "runs": "Processing",
    "yielded": "Processing",
    "asks": "Needs approval",
    "waits": "Waiting",
    "done": "Finalized",
    "error": "Failed",
    "cancelled": "Cancelled",
}
AGENT: Final[Mapping[str, str]] = {
    "ready": "INIT",
    "runs": STEP,
    "yielded": "RESUMING",
    "asks": "WAITING_FOR_APPROVAL",
    "waits": STEP,
    "done": "COMPLETED",
    "error": "FAILED",
    "cancelled": "CANCELLED",
}
QUEUE: Final[Mapping[str, str]] = {
    "ready": "PENDING",
    "runs": "RUNNING",
    "yielded": "RUNNING",
    "asks": "WAITING",
    "waits": "WAITING",
    "done": "COMPLETED",
    "error": "ERROR",
    "cancelled": "CANCELLED",
}
DRIVE: Final[Mapping[str, str]] = {
    "ready": "PENDING",
    "runs": "IN_PROGRESS",
    "yielded": "IN_PROGRESS",
    "asks": "NEEDS_APPROVAL",
    "waits": "IN_PROGRESS",
    "done": "DONE",
    "error": "ERROR",
    "cancelled": "CANCELLED",
}

VOCABULARIES: Final = {"READY": READY, "AGENT": AGENT, "QUEUE": QUEUE, "DRIVE": DRIVE}
#: The columns that the AGENT vocabulary binds by their names, and what they show.
AGENT_COLUMNS: Final = {
    "attempts": "Retry_Count",
    "updated_at": "Last_Updated",
    "error": "Error_Log",
}
AGENT_ID, AGENT_CONTEXT = "Execution_ID", "Context_Payload"

_ENDED = ("done", "error", "cancelled")
_OPEN = ("ready", "runs", "yielded", "asks", "waits")


def same(word: Any) -> str:
    """A word as two of them are compared: case and outer spaces do not count."""
    return str(word).strip().casefold()


def checked(given: object, whose: str) -> dict[str, str]:
    """Return all the words of a table. What a vocabulary of people's own leaves out is as in READY."""
    if isinstance(given, str) and given in VOCABULARIES:
        return dict(VOCABULARIES[given])
    if not isinstance(given, Mapping):
        known = ", ".join(VOCABULARIES)
        raise DefinitionError(f"words of {whose} is {given!r}; it must be {known}, or a dict like {{'ready': 'New'}}")
    for name, word in given.items():
        if name not in READY:
            raise DefinitionError(
                f"words of {whose} has {name!r}{did_you_mean(str(name), READY)}; it may have {', '.join(READY)}"
            )
        if not declared.is_text(word) or not word.strip() or word.startswith(("=", "#")):
            raise DefinitionError(
                f"words of {whose} says {word!r} for {name!r}; it must be a text that a cell can show"
            )
    words = {**READY, **given}
    ended = {same(words[name]) for name in _ENDED}
    for name in _OPEN:
        if same(words[name]) in ended:
            raise DefinitionError(
                f"words of {whose} uses {words[name]!r} for {name!r} and for an end: a row that has ended must "
                "not look like one that is open"
            )
    if same(words["ready"]) in {same(words[name]) for name in ("runs", "yielded", "asks", "waits")}:
        raise DefinitionError(
            f"words of {whose} uses {words['ready']!r} for a row that may start and for one that runs"
        )
    return words
