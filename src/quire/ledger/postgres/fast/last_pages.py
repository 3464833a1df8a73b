"""The last page of lines of each record that runs here, by the hash of its log's last line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from quire.model.record import Record, Status

#: As many as this process keeps images of records, and some more that nobody asks for any longer.
MOST_KNOWN = 50_000


class LastPages:
    """Who writes a page must name the page before it, for each record. A process knows it of records that it holds."""

    def __init__(self) -> None:
        #: None: no line of the record is in a page.
        self._known: dict[str, int | None] = {}

    def of(self, rows: Iterable[Record]) -> list[int | None] | None:
        """Return the last page of each of these records; None if one of them is not known here."""
        known = self._known
        try:
            return [known[row.log_hash] for row in rows]
        except KeyError:
            return None

    def put(self, rows: Iterable[Record], pages: Iterable[int | None]) -> None:
        self._known.update(zip([row.log_hash for row in rows], pages, strict=True))
        self._forget()

    def _forget(self) -> None:
        while len(self._known) > MOST_KNOWN:
            del self._known[next(iter(self._known))]

    def moved(self, before: Mapping[str, Record | None], after: Mapping[str, Record], page: int | None) -> None:
        """These logs have gone on in this page. None: they have gone on in rows, so the last pages are the same."""
        known = self._known
        for record_id, row in after.items():
            old = before[record_id]
            if old is None:  # the record is new
                last = None
            elif old.log_hash in known:
                last = known.pop(old.log_hash)
            else:
                continue
            if row.status is Status.RUNNING:
                known[row.log_hash] = last if page is None else page
        self._forget()
