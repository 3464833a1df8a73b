"""Names as people type them: a misspelt status, workflow or step is refused, with the name that was probably meant."""

from __future__ import annotations

from collections.abc import Sequence

import click

from quire.client.client import Client
from quire.errors import NotFound, did_you_mean
from quire.ledger import engine
from quire.model.record import Status


def statuses(ctx: click.Context, param: click.Parameter, words: Sequence[str]) -> tuple[Status, ...]:
    """Return the statuses named, in any case, one or several with commas."""
    found = []
    for word in (part.strip() for text in words for part in text.split(",")):
        name = word.upper().replace("-", "_")
        if name not in Status.__members__:
            raise click.BadParameter(f"{word!r} is not a status{did_you_mean(name, Status.__members__)}", ctx, param)
        found.append(Status(name))
    return tuple(dict.fromkeys(found))


async def check_names(client: Client, workflow: str, step: str) -> None:
    """Refuse a misspelt workflow or step instead of answering with an empty list."""
    if workflow:
        definition = await engine.definition(client.ledger, workflow)
        names = [row["name"] for row in definition["steps"]]
        if step and step not in names and step != "@undo" and not await client.find(step=step, limit=1):
            raise NotFound(f"{workflow!r} has no step {step!r}{did_you_mean(step, names)}")
