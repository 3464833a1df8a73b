"""What every address of the API is given: whoever acts, with what, and the names that stand in the address."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, NamedTuple

from fastapi import Depends, Path, Query
from starlette.requests import Request
from starlette.responses import Response

from quire.client.arguments import CONTROL
from quire.client.client import Client
from quire.clock import seconds
from quire.errors import InputError, NotFound
from quire.explain import words
from quire.model.address import name_of
from quire.model.record import Record
from quire.surfaces.server.auth.gate import Actor, Setup, audit, needs
from quire.surfaces.server.auth.tokens import Role
from quire.surfaces.server.refusal import WORDS, Problem, json_answer


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the refusals of an address, for the OpenAPI document."""
    # Any act may find the ledger halted or moved away, and any body may be too large.
    every = {400, 401, 403, 404, 409, 410, 413, 422, 423, 429, 500, 503, *statuses}
    return {status: {"model": Problem, "description": WORDS[status]} for status in sorted(every)}


class At(NamedTuple):
    """Whoever acts, and with what."""

    #: Acts in the actor's name.
    client: Client
    setup: Setup
    actor: Actor
    request: Request

    def audit(self, act: str, target: str, **details: Any) -> None:
        audit(self.request, act, target, **details)


def setup_of(request: Request) -> Setup:
    found: Setup = request.app.state.setup
    return found


def acting(request: Request, actor: Actor) -> At:
    setup = setup_of(request)
    return At(setup.client.acting_as(actor.name), setup, actor, request)


def _at(role: Role) -> Callable[[Request, Actor], Awaitable[At]]:
    needed = Depends(needs(role))

    async def at(request: Request, actor: Actor = needed) -> At:
        return acting(request, actor)

    return at


Viewer = Annotated[At, Depends(_at(Role.VIEWER))]
Operator = Annotated[At, Depends(_at(Role.OPERATOR))]
Admin = Annotated[At, Depends(_at(Role.ADMIN))]


def unslashed(text: str) -> str:
    """A name from the address, with the slashes that stand inside it (see ``Gate``); refused if it can be none."""
    text = name_of(text)
    if CONTROL.search(text):
        raise NotFound(f"{text!r} is not a name here: it holds a control character")
    return text


async def _record_id(record_id: Annotated[str, Path(max_length=500)]) -> str:
    return unslashed(record_id)


async def _workflow_name(workflow: Annotated[str, Path(max_length=500)]) -> str:
    return unslashed(workflow)


RecordId = Annotated[str, Depends(_record_id)]
WorkflowName = Annotated[str, Depends(_workflow_name)]
Filter = Annotated[str, Query(max_length=500)]


def clean(*texts: str) -> None:
    for text in texts:
        if CONTROL.search(text):
            raise InputError(f"{text!r} cannot be looked for: it holds a control character")


def record_answer(record: Record, status: int = 200) -> Response:
    return json_answer(words.record_json(record), status, {"ETag": f'"{record.version}"'})


def span(value: str | float | None) -> float | None:
    return None if value is None else seconds(seconds(value))
