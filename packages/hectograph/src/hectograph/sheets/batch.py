"""``spreadsheets.batchUpdate``: the requests of a batch, applied in order to a fork, published whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from hectograph.core.batch import field_mask
from hectograph.core.error import Invalid, invalid
from hectograph.core.fieldmask import Mask
from hectograph.core.switch import Switches
from hectograph.sheets import locales
from hectograph.sheets.book import Book
from hectograph.sheets.filters import check_indexes
from hectograph.sheets.locales import Locale
from hectograph.sheets.render import Reader
from hectograph.sheets.requests import cells as requests_cells
from hectograph.sheets.requests import dimension as requests_dimension
from hectograph.sheets.requests import metadata as requests_metadata
from hectograph.sheets.requests import named as requests_named
from hectograph.sheets.requests import object as requests_object
from hectograph.sheets.requests import range as requests_range
from hectograph.sheets.requests import sheet as requests_sheet
from hectograph.sheets.requests import tidy as requests_tidy


def _check_indexes(body: Any) -> None:
    """Refuse ranges that begin before the grid or end before they begin; cells are not searched."""
    if isinstance(body, list):
        for item in body:
            _check_indexes(item)
    elif isinstance(body, dict):
        if "startIndex" in body or "endIndex" in body:
            start, end = body.get("startIndex", 0), body.get("endIndex", 0)
            if start < 0 or end < 0:
                raise Invalid("DimensionRange indexes must be >= 0")
            if "startIndex" in body and "endIndex" in body and end < start:
                raise Invalid(f"endIndex[{end}] cannot be before startIndex[{start}]")
        check_indexes(body)
        for name in ("rowIndex", "columnIndex", "destinationIndex"):
            if isinstance(body.get(name), int) and body[name] < 0:
                raise Invalid(f"{name}[{body[name]}] must be >= 0.")
        for name, item in body.items():
            if name not in {"rows", "cell"}:
                _check_indexes(item)


Handler = Callable[["Batch", dict[str, Any]], dict[str, Any] | None]

_HANDLERS: dict[str, Callable[..., dict[str, Any] | None]] = {
    **requests_sheet.HANDLERS,
    **requests_dimension.HANDLERS,
    **requests_cells.HANDLERS,
    **requests_range.HANDLERS,
    **requests_tidy.HANDLERS,
    **requests_named.HANDLERS,
    **requests_object.HANDLERS,
    **requests_metadata.HANDLERS,
}


@dataclass
class Batch:
    """A batch under way on a fork of a book."""

    book: Book
    now: Callable[[], datetime]
    account: str = ""
    switches: Switches = field(default_factory=Switches)
    #: Names that are gone and still count as taken (the ghost of the fault list).
    ghosts: set[str] = field(default_factory=set)
    #: Names that this batch deleted; adding them again in the same batch is always allowed.
    released: set[str] = field(default_factory=set)
    #: Whether a stale fence is let through, and whether one was.
    racing: bool = False
    raced: bool = False

    def let_through(self) -> bool:
        """Whether this batch is the second winner of a race; asked where a fence would refuse it."""
        self.raced |= self.racing
        return self.racing

    @property
    def locale(self) -> Locale:
        return locales.of(self.book.properties.get("locale", "en_US"))

    def reader(self) -> Reader:
        return Reader(self.book, self.now)

    def mask(self, request: Mapping[str, Any], message: str) -> Mask:
        return field_mask("sheets.v4", request, message)

    def run(self, requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
        if not requests:
            raise invalid("Must specify at least one request.")
        replies: list[dict[str, Any]] = []
        for index, request in enumerate(requests):
            if not request:
                raise invalid(f"Invalid requests[{index}]: No request set.")
            ((kind, body),) = request.items()
            handler = _HANDLERS.get(kind)
            if handler is None:
                raise invalid(f"Invalid requests[{index}].{kind}: This request is not supported by the emulator.")
            try:
                _check_indexes(body)
                replies.append(handler(self, body) or {})
            except Invalid as error:
                raise invalid(f"Invalid requests[{index}].{kind}: {error}") from error
        return replies
