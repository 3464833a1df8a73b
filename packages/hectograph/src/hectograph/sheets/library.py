"""The shelf of books: the published version of each, and old versions to restore or to serve stale reads from."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from hectograph.core.error import ApiError, not_found
from hectograph.sheets.book import Book

T = TypeVar("T")

#: Old versions kept per book; past this the older half is thinned, so that the far past stays reachable.
KEPT_VERSIONS = 256


@dataclass
class Shelf:
    """One book with its past."""

    current: Book
    at: datetime
    past: list[tuple[datetime, Book]] = field(default_factory=list)

    def publish(self, book: Book, at: datetime) -> None:
        self.past.append((self.at, self.current))
        if len(self.past) > KEPT_VERSIONS:
            half = len(self.past) // 2
            self.past[:half] = self.past[:half:2]
        self.current, self.at = book, at

    def version(self, number: int) -> Book:
        """The newest version that is not younger than a number."""
        found = self.past[0][1] if self.past else self.current
        for _, book in [*self.past, (self.at, self.current)]:
            if book.version <= number:
                found = book
        return found

    def as_of(self, moment: datetime) -> Book:
        found = self.past[0][1] if self.past else self.current
        for at, book in [*self.past, (self.at, self.current)]:
            if at <= moment:
                found = book
        return found


class Library:
    def __init__(self, now: Callable[[], datetime]) -> None:
        self.now = now
        self.lock = threading.RLock()
        self.shelves: dict[str, Shelf] = {}

    def shelf(self, book_id: str) -> Shelf:
        found = self.shelves.get(book_id)
        if found is None:
            raise not_found()
        return found

    def add(self, book: Book) -> None:
        self.shelves[book.book_id] = Shelf(book, self.now())

    def remove(self, book_id: str) -> None:
        self.shelves.pop(book_id, None)

    def change(self, book_id: str, work: Callable[[Book], T], *, keep_partial: bool = False) -> T:
        """Run ``work`` on a fork and publish it; if it raises, nothing happened.

        With ``keep_partial`` a refusal is published as far as it came, which is one of the unverified behaviours.
        """
        with self.lock:
            shelf = self.shelf(book_id)
            fork = shelf.current.fork()
            try:
                result = work(fork)
            except ApiError:
                if keep_partial:
                    shelf.publish(fork, self.now())
                raise
            fork.memo.clear()
            shelf.publish(fork, self.now())
            return result

    def restore(self, book_id: str, old: Book) -> Book:
        """Publish an older version again, as "restore this version" does."""
        with self.lock:
            shelf = self.shelf(book_id)
            book = old.fork()
            book.version = shelf.current.version + 1
            book.minted = shelf.current.minted
            shelf.publish(book, self.now())
            return book
