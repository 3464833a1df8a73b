"""What a part of a formula gives: a value, a range of cells not yet read, or rows of values."""

from __future__ import annotations

from dataclasses import dataclass

from hectograph.sheets.a1 import Box
from hectograph.sheets.cell import Value


@dataclass(frozen=True, slots=True)
class Area:
    """A range of cells, read cell by cell as needed."""

    sheet_id: int
    box: Box

    @property
    def single(self) -> bool:
        return self.box.height == 1 and self.box.width == 1


#: Rows of values.
Array = list[list[Value]]
Result = Value | Area | Array
