"""Values of a document that are more than a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Image:
    """A picture in place of a placeholder. Google fetches it itself: the address must be open to everybody."""

    uri: str


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a table: the row that holds ``{{name.field}}`` is repeated for each of these."""

    rows: Sequence[Mapping[str, Any]]

    @property
    def fields(self) -> list[str]:
        return sorted({str(field) for row in self.rows for field in row})
