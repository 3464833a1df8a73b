"""A thousand contacts are imported in one loop.

Kill it in the middle of the loop: the next process goes on where the last save was.

quire up examples/contacts.py
quire start contacts count=1000 --follow
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from quire import Run, workflow


@dataclass
class Book:
    """The address book that they come into."""

    imported: list[int] = field(default_factory=list)


def make_deps() -> Book:
    return Book()


async def import_contact(book: Book, number: int) -> None:
    book.imported.append(number)


@workflow(deps=make_deps)
async def contacts(run: Run[dict[str, Any], Book]) -> int:
    run.data["imported"] = 0
    async for number in run.each(range(int(run.data["count"])), every=100):
        await import_contact(run.deps, number)
        run.data["imported"] += 1
    return int(run.data["imported"])
