"""Behaviours of Google that nobody has verified, each a switch with the likelier answer as its default.

| switch | default | the other way |
|---|---|---|
| ``duplicate_metadata_refused`` | a second metadataId is refused | it replaces the first |
| ``metadata_no_match_refused`` | update/delete that matches nothing is refused | it answers with nothing |
| ``delete_missing_name_refused`` | deleting an unknown named range is refused | it is ignored |
| ``duplicate_range_id_refused`` | a second namedRangeId is refused | it replaces the first |
| ``name_dies_with_cells`` | a name whose cells are deleted stays, without a range | it goes with its cells |
| ``values_batch_atomic`` | ``values.batchUpdate`` with one bad range applies nothing | what came before it stays |
| ``write_control_ignored`` | ``writeControl`` in a Sheets batch is accepted and ignored | it is an unknown field |
| ``require_auth`` | a call without a bearer token is served | it is 401, or 403 of Drive |
| ``service_account_has_quota`` | files may be created in My Drive | 403 ``storageQuotaExceeded`` |
| ``retry_after`` | a 429 has no Retry-After header, as recorded | it says how many seconds |
| ``find_replace_sees_blanks`` | a pattern that matches nothing-at-all finds blank cells of a ``range`` | it does not |
| ``foreign_ids_exist`` | an id as Google mints them that never was here is 404 | it is somebody else's book: 403 |
| ``append_sees_stale_grid`` | an append finds its row in the newest version | in the one before, so it may overwrite |

The other APIs declare theirs (``Service.switches``); ``GET /emulator/settings`` shows all of them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass
class Switches:
    duplicate_metadata_refused: bool = True
    metadata_no_match_refused: bool = True
    delete_missing_name_refused: bool = True
    duplicate_range_id_refused: bool = True
    name_dies_with_cells: bool = False
    values_batch_atomic: bool = True
    write_control_ignored: bool = True
    require_auth: bool = False
    service_account_has_quota: bool = True
    retry_after: bool = False
    find_replace_sees_blanks: bool = True
    foreign_ids_exist: bool = False
    append_sees_stale_grid: bool = False

    def __post_init__(self) -> None:
        self._declared: dict[str, tuple[Any, ...]] = {}
        self._chosen: dict[str, Any] = {}

    def declare(self, name: str, words: tuple[Any, ...]) -> None:
        """Make a switch of an API known: its possible values, the default first. One number alone allows any number."""
        self._declared[name] = words
        self._chosen[name] = words[0]

    def __getitem__(self, name: str) -> Any:
        """Return how a declared switch stands."""
        return self._chosen[name]

    def set(self, given: dict[str, Any]) -> None:
        known = {field.name for field in fields(self)}
        for name, value in given.items():
            if name in self._declared:
                words = self._declared[name]
                free = len(words) == 1 and isinstance(value, int | float) and not isinstance(value, bool)
                if not free and value not in words:
                    allowed = "any number" if len(words) == 1 else " or ".join(map(repr, words))
                    raise ValueError(f"the switch {name!r} cannot be {value!r}, only {allowed}")
                self._chosen[name] = value
            elif name not in known or not isinstance(value, bool):
                every = ", ".join(sorted(known | self._declared.keys()))
                raise ValueError(f"unknown switch or no boolean: {name!r}={value!r}; known: {every}")
            else:
                setattr(self, name, value)

    def json(self) -> dict[str, Any]:
        return asdict(self) | self._chosen
