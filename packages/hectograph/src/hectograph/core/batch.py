"""What every ``batchUpdate`` has in common: requests one after another, masks, and criteria for texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from hectograph.core import fieldmask, schema
from hectograph.core.discovery import api
from hectograph.core.error import EDITORS, Invalid
from hectograph.core.fieldmask import Mask

B = TypeVar("B")

#: A request's behaviour: it changes the batch and returns the reply, where there is one.
Handler = Callable[[B, dict[str, Any]], Mapping[str, Any] | None]


def replies(batch: B, requests: list[dict[str, Any]], handlers: Mapping[str, Handler[B]]) -> Iterator[dict[str, Any]]:
    """Apply the requests in order and yield their replies. The first that cannot be applied ends the batch."""
    if not requests:
        raise EDITORS.refusal(400, "Must specify at least one request.")
    for index, request in enumerate(requests):
        if not request:
            raise EDITORS.refusal(400, f"Invalid requests[{index}]: No request set.")
        ((kind, body),) = request.items()
        handler = handlers.get(kind)
        if handler is None:
            text = f"Invalid requests[{index}].{kind}: This request is not supported by the emulator."
            raise EDITORS.refusal(400, text)
        try:
            reply = handler(batch, body)
        except Invalid as error:
            raise EDITORS.refusal(400, f"Invalid requests[{index}].{kind}: {error}") from error
        yield {} if reply is None else {kind: dict(reply)}


def field_mask(version: str, request: Mapping[str, Any], message: str) -> Mask:
    """Return the mandatory ``fields`` of a request that replaces part of an object."""
    text = str(request.get("fields", ""))
    if not text.strip():
        raise Invalid("At least one field must be listed in 'fields'. (Use '*' to indicate all fields.)")
    try:
        mask = fieldmask.parse(text)
    except fieldmask.BadMask as error:
        raise Invalid(f"Invalid field mask: {text}") from error
    for path in fieldmask.paths(mask):
        if path[0] != "*" and not api(version).schema.has_path(message, path):
            raise Invalid(f"Invalid field: {'.'.join(schema.snake(part) for part in path)}")
    return mask


def text_pattern(criteria: Mapping[str, Any] | None) -> re.Pattern[str]:
    """Return what a request searches for in texts."""
    given = criteria or {}
    text = str(given.get("text", ""))
    if not text:
        raise Invalid("The text to search for must not be empty.")
    flags = 0 if given.get("matchCase") else re.IGNORECASE
    try:
        return re.compile(text if given.get("searchByRegex") else re.escape(text), flags)
    except re.error as error:
        raise Invalid(f"Invalid regular expression: {text}") from error
