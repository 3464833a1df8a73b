"""Errors as callers see them: ``{"error", "message"}`` with the right status. No traceback leaves the process."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field
from pydantic_core import to_json
from starlette.responses import Response

from quire.errors import (
    AlreadyExists,
    CodeChanged,
    Halted,
    IllegalMove,
    InputError,
    LedgerUnavailable,
    Moved,
    NotFound,
    QuireError,
    ResultMissing,
    StaleVersion,
)

log = logging.getLogger("quire.server")


class Problem(BaseModel):
    """Why something was refused."""

    error: str = Field(description="One word: the family of the error.")
    message: str = Field(description="One sentence: what was found, what was expected, what puts it right.")


class Refusal(QuireError):
    """A refusal of the gate itself, with its status."""

    def __init__(self, status: int, error: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.error = error
        self.headers = dict(headers or {})

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.status, self.error, str(self), self.headers)


#: Every status that an error can have, for the OpenAPI document.
WORDS = {
    400: "What was sent cannot be accepted.",
    401: "Nobody is signed in.",
    403: "This caller may not do that.",
    404: "There is no such thing.",
    405: "This address does not take that method.",
    409: "The record stands otherwise.",
    410: "It was there and is not any more.",
    412: "The record has changed since it was read.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    422: "What was sent does not have the right shape.",
    423: "The ledger, or the workflow, is halted.",
    429: "Too many requests; Retry-After says when to come again.",
    500: "Something unexpected; the server's log has the details.",
    503: "The ledger does not answer.",
}


def status_of(error: QuireError) -> int:
    """The status that a family of errors has."""
    match error:
        case Refusal():
            return error.status
        case NotFound():
            return 404
        case Halted():
            return 423
        case IllegalMove() | AlreadyExists() | StaleVersion() | CodeChanged() | ResultMissing():
            return 409
        case InputError():
            return 400
        case Moved():
            return 410
        case LedgerUnavailable():
            return 503
        case _:
            return 500


def json_answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a value as JSON, quickly: what is sent was made here and needs no second look."""
    body = to_json(value, inf_nan_mode="null")
    return Response(body, status, dict(headers or {}), "application/json")


def refused(error: QuireError) -> Response:
    status = status_of(error)
    headers = dict(error.headers) if isinstance(error, Refusal) else {}
    if status == 503:
        headers["Retry-After"] = "2"
    word = error.error if isinstance(error, Refusal) else type(error).__name__
    return json_answer({"error": word, "message": str(error)}, status, headers)


def unexpected(error: Exception, where: str) -> Response:
    """Answer an error that nobody planned for: the log gets its details, the caller does not."""
    log.error("unexpected at %s: %s: %s", where, type(error).__name__, error, exc_info=error)
    message = "something unexpected happened; the server's log has the details"
    return json_answer({"error": "Unexpected", "message": message}, 500)
