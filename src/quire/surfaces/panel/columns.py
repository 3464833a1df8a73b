"""How the state table is laid out: what its columns are called, their order, and the row of the header. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from quire.errors import InputError, did_you_mean
from quire.surfaces.panel.cells import letters
from quire.surfaces.panel.layout import TABLE

#: In ``[state_table]`` this says the row of the header; the other keys are columns.
HEADER = "header"
_LAST_ROW = 50


class Arrangement(NamedTuple):
    #: What each column of the engine is called.
    titles: Mapping[str, str]
    order: tuple[str, ...]
    #: The row of the header, from 0: a table that is made gets it there. People may move it afterwards.
    header: int = 0

    def find(self, cells: Sequence[Any]) -> dict[str, int]:
        """The columns that this row names. A table that was made before may still have the engine's own names."""
        texts = [str(value).strip() for value in cells]
        found = {}
        for name in TABLE:
            title = next((title for title in (self.titles[name], name) if title in texts), None)
            if title is not None:
                found[name] = texts.index(title)
        return found

    def doubled(self, cells: Sequence[Any]) -> str:
        """Say which column stands there twice; empty: none does."""
        texts = [str(value).strip() for value in cells]
        for title in self.titles.values():
            if texts.count(title) > 1:
                first = texts.index(title)
                where = f"{letters(first)} and {letters(texts.index(title, first + 1))}"
                return f"the state table has two columns {title!r}, {where}: rename one of them"
        return ""


PLAIN = Arrangement({name: name for name in TABLE}, TABLE)


def arranged(given: Mapping[str, str]) -> Arrangement:
    """The arrangement that ``[state_table]`` declares: columns in their order, then those that it does not name."""
    titles = dict(PLAIN.titles)
    for name, title in given.items():
        if name == HEADER:
            continue
        if name not in TABLE:
            raise InputError(f"[state_table] has {name!r}{did_you_mean(name, TABLE)}; it may have {', '.join(TABLE)}")
        if not title.strip() or title.startswith(("=", "#")):
            raise InputError(f"[state_table] calls {name!r} {title!r}; a column needs a name that a cell can show")
        titles[name] = title.strip()
    twice = [title for title in titles.values() if list(titles.values()).count(title) > 1]
    if twice:
        raise InputError(f"[state_table] calls two columns {twice[0]!r}; give one of them another name")
    header = given.get(HEADER, "1")
    if not header.isdecimal() or not 1 <= int(header) <= _LAST_ROW:
        raise InputError(f"[state_table] has its header in row {header!r}; give a row from 1 to {_LAST_ROW}")
    order = [name for name in given if name != HEADER]
    return Arrangement(titles, (*order, *(name for name in TABLE if name not in order)), int(header) - 1)
