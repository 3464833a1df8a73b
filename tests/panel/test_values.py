"""Cells as the types that fields want."""

from __future__ import annotations

from typing import Any

import pytest

from quire.errors import InputError
from quire.surfaces.panel.values import typed, zone_of

TEXT = {"type": "string"}
DATE = {"type": "string", "format": "date"}
MOMENT = {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]}
EITHER = {"anyOf": [{"type": "string"}, {"type": "integer"}]}


@pytest.mark.parametrize(
    ("value", "shown", "wanted", "said"),
    [
        (46024, "1/2/2026", TEXT, "1/2/2026"),
        (True, "TRUE", TEXT, "TRUE"),
        (True, "TRUE", {"anyOf": [{"type": "string"}, {"type": "boolean"}]}, True),
        (5, "5", EITHER, 5),
        ("007", "007", TEXT, "007"),
        (46024, "1/2/2026", DATE, "2026-01-02"),
        (46024.5, "1/2/2026 12:00", DATE, "1/2/2026 12:00"),  # refused then: a moment is no date
        (46024.25, "6:00", MOMENT, "2026-01-02T06:00:00+02:00"),
        (46024 + 1 / 3, "8:00", MOMENT, "2026-01-02T08:00:00+02:00"),
        (1e12, "1E+12", MOMENT, "1E+12"),  # and not a number of seconds since 1970
        (0.5, "12:00", {"type": "string", "format": "time"}, "12:00:00"),
        (1.5, "36:00", {"type": "string", "format": "time"}, "36:00"),
        (5.0, "5", {"type": "integer"}, 5),
        (5.0, "5", {"type": "number"}, 5.0),
        ("5", "5", {"type": "integer"}, 5),
        ("yes", "yes", {"type": "boolean"}, True),
        (5.0, "5", {}, 5),
    ],
)
def test_a_cell_is_what_its_field_wants(value: Any, shown: str, wanted: dict[str, Any], said: Any) -> None:
    found = typed(value, shown, wanted, "GMT+02:00")

    assert (found, type(found)) == (said, type(said))


def test_a_time_zone_that_is_not_known_is_told() -> None:
    with pytest.raises(InputError, match="'Mars/Olympus' is not known here"):
        zone_of("Mars/Olympus")
