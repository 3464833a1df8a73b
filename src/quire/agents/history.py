"""The history of a conversation: pieces in the library's own format, each written once and never again.

A piece holds what one turn added. It is a receipt under a key of its own (mission, agent, number), so that whoever goes
on with the conversation, in whatever process, reads it back; the bytes stored grow with what is said, not with its
square. A conversation that has grown too long is *compacted*: the model itself sums it up, that exchange is a piece
too and says which pieces it stands for; they stay where they are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from quire.workflows.effect import Effect, NotDone
from quire.workflows.retry import Fail

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage

    from quire.run.run import Run

Row = dict[str, Any]

#: What of a message says when, by whom and under which id something was said, not what was said.
_INCIDENTAL = {"timestamp", "provider_name", "provider_details", "id", "metadata"}


def dumped(messages: Sequence[ModelMessage]) -> list[Row]:
    """Messages as plain JSON, in the library's own format."""
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    rows: list[Row] = ModelMessagesTypeAdapter.dump_python(list(messages), mode="json")
    return rows


def loaded(rows: Sequence[Row]) -> list[ModelMessage]:
    """Messages from their rows. Kinds of parts that this version of the library does not know are left out."""
    from pydantic import ValidationError
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    try:
        return ModelMessagesTypeAdapter.validate_python(list(rows))
    except ValidationError:
        return ModelMessagesTypeAdapter.validate_python([_known_parts(row) for row in rows])


def _known_parts(row: Row) -> Row:
    from pydantic import ValidationError
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    parts = []
    for part in row.get("parts", []):
        try:
            ModelMessagesTypeAdapter.validate_python([{**row, "parts": [part]}])
        except ValidationError:
            continue
        parts.append(part)
    return {**row, "parts": parts}


def digest(messages: Sequence[ModelMessage], extra: Any = None) -> str:
    """A hash of what is said, whenever it was said."""
    said = [[row["kind"], row.get("instructions"), _without(row["parts"])] for row in dumped(messages)]
    text = json.dumps([said, extra], sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without(item) for key, item in value.items() if key not in _INCIDENTAL and item is not None}
    if isinstance(value, list):
        return [_without(item) for item in value]
    return value


def size(rows: Sequence[Row]) -> int:
    """About how many tokens these messages are: a quarter of their characters."""
    return sum(len(json.dumps(_without(row.get("parts", [])), ensure_ascii=False)) for row in rows) // 4


class Piece:
    """Writes a piece, or stands for one that was written."""

    def __init__(self, rows: Row | None) -> None:
        self.rows = rows

    async def __call__(self) -> dict[str, Any]:
        if self.rows is None:
            raise NotDone("this piece of the conversation is not in the ledger")
        return self.rows

    # All pieces are the same function to whoever asks for its type or path.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Piece)

    def __hash__(self) -> int:
        return hash(Piece)


def _effect(mission_id: str, agent_id: str, number: int | str, rows: Row | None) -> Effect[[], Row, Any]:
    key = f"mission/{mission_id}/{agent_id}/{number}"
    made: Effect[[], Row, Any] = Effect(
        act=Piece(rows),  # type: ignore[arg-type]  # bare: it takes its arguments only
        name=f"{'look for ' if rows is None else ''}piece {agent_id} {number}",
        repeat=True,
        bare=True,
    )
    return made.keyed(key)


async def write(run: Run[Any, Any], mission_id: str, agent_id: str, number: int | str, piece: Row) -> None:
    """Keep a piece. Under a number that is taken, what is there stays."""
    effect = _effect(mission_id, agent_id, number, piece)
    await run.once(effect)
    effect.act.rows = None  # type: ignore[attr-defined]  # whoever still holds the effect need not hold the words


async def found(run: Run[Any, Any], mission_id: str, agent_id: str, number: int | str) -> Row | None:
    """A piece that was kept, by this record or by another; None if there is none."""
    try:
        return await run.once(_effect(mission_id, agent_id, number, None))
    except NotDone:
        return None


async def read(run: Run[Any, Any], mission_id: str, agent_id: str, number: int) -> Row:
    """A piece that must be there."""
    piece = await found(run, mission_id, agent_id, number)
    if piece is None:
        raise Fail(f"piece {number} of the conversation with {agent_id} is not in this ledger")
    return piece


async def hydrated(run: Run[Any, Any], mission_id: str, agent_id: str, pieces: int, compacted: int) -> list[Row]:
    """The conversation so far. ``compacted``: the number of the piece that stands for all before it; 0: none does."""
    rows: list[Row] = []
    for number in range(max(1, compacted), pieces + 1):
        rows += (await read(run, mission_id, agent_id, number))["messages"]
    return rows
