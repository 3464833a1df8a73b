"""Long values of a Sheets ledger: files in Drive beside the book, in a folder of their own.

A value that does not fit one cell is uploaded under an id that was made before, and its checksum is compared, before
the commit that names it is sent (protocol 20). The journal holds its hash and the file's id, so the book and these
files are the whole ledger. Where Drive gives no room (a service account has none of its own), such values stand in
cells of the journal, in as many as they need: slower, and just as safe.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from quire.clock import Clock
from quire.errors import LedgerError
from quire.google.drive import FOLDER, Drive
from quire.google.error import GoogleError, Missing, Unanswered, Unavailable
from quire.ledger.sheets.journal_rows import CELL_CHARACTERS, Entry, files_of, opened

log = logging.getLogger(__name__)

#: A file that nobody names is deleted when it is so old: its commit may still be on its way.
KEEP_SECONDS = 86400.0
#: Files that are read or written side by side.
_AT_ONCE = 8
#: Ids are asked for in such lots.
_LOT = 20


class LongValues:
    """The files of one book."""

    def __init__(self, drive: Drive, spreadsheet_id: str, clock: Clock) -> None:
        self.drive = drive
        self.spreadsheet_id = spreadsheet_id
        self.clock = clock
        #: Texts by what stands for them: uploaded by this process, or read.
        self.texts: dict[str, str] = {}
        #: Why files cannot be made; empty: they can, as far as is known.
        self.refused = ""
        #: Files that no commit names yet: their ids, and when they were made.
        self._uploaded: dict[str, tuple[str, float]] = {}
        self._ids: list[str] = []
        self.folder = ""

    # -- writing ---------------------------------------------------------------------------------------------------

    async def keep(self, blobs: Mapping[str, str], home: str) -> dict[str, str]:
        """Make files of those that are too long for a cell: their ids. ``home``: the folder, as the journal has it."""
        long = {reference: text for reference, text in blobs.items() if len(text) > CELL_CHARACTERS}
        if not long:
            return {}
        self.folder = await self.home(home)
        if self.refused:
            return {}
        try:
            gate = asyncio.Semaphore(_AT_ONCE)
            ids = await asyncio.gather(*(self._upload(gate, reference, text) for reference, text in long.items()))
        except (Unavailable, Unanswered):
            raise
        except GoogleError as error:
            self._refuse(error)
            return {}
        return dict(zip(long, ids, strict=True))

    def _refuse(self, error: GoogleError) -> None:
        self.refused = str(error)
        log.warning("long values of %s stand in the journal: %s", self.spreadsheet_id, error)

    async def home(self, known: str = "") -> str:
        """Return the folder beside the book, made with the first file; empty if it cannot be made."""
        if known or self.folder or self.refused:
            return known or self.folder
        try:
            found = await self.drive.files_get(self.spreadsheet_id, fields="id,name,parents")
            [*self._ids, folder_id] = await self.drive.files_generate_ids(_LOT)
            name = f"{found.get('name', self.spreadsheet_id)} (long values; do not delete)"
            made = {"id": folder_id, "name": name, "mimeType": FOLDER}
            await self.drive.files_create(made | ({"parents": found["parents"]} if found.get("parents") else {}))
        except (Unavailable, Unanswered):
            raise
        except GoogleError as error:
            self._refuse(error)
            return ""
        self.folder = folder_id
        return folder_id

    async def _upload(self, gate: asyncio.Semaphore, reference: str, text: str) -> str:
        known, made_at = self._uploaded.get(reference, ("", 0.0))
        if known and self.clock.boottime() - made_at < KEEP_SECONDS / 24:
            return known
        async with gate:
            if not self._ids:
                self._ids = await self.drive.files_generate_ids(_LOT)
            file_id, content = self._ids.pop(), text.encode()
            digest = hashlib.sha256(content).hexdigest()
            about = {"id": file_id, "name": f"{digest}.json", "mimeType": "application/json", "parents": [self.folder]}
            made = await self.drive.files_create(about, content, fields="id,sha256Checksum")
            if made.get("sha256Checksum") != digest:
                raise Unavailable(f"the file {file_id} in Drive is not what was written into it; it is written again")
        self._uploaded[reference] = file_id, self.clock.boottime()
        self.texts[reference] = text
        return file_id

    def committed(self, references: Iterable[str]) -> None:
        """The journal names these now, and the replica has their texts."""
        for reference in self.texts.keys() & set(references) if self.texts else ():
            self._uploaded.pop(reference, None)
            self.texts.pop(reference, None)

    # -- reading ---------------------------------------------------------------------------------------------------

    async def fetch(self, found: Sequence[Entry], known: Mapping[str, str]) -> None:
        """Read the files that these entries name into ``texts``. One that is gone for good is left out."""
        wanted = {
            reference: file_id
            for entry in found
            for reference, file_id in files_of(entry).items()
            if reference not in known and reference not in self.texts
        }
        gate = asyncio.Semaphore(_AT_ONCE)
        await asyncio.gather(*(self._read(gate, reference, file_id) for reference, file_id in wanted.items()))
        if inner := [opened(entry, self.texts) for entry in found if entry.snapshot and '"in_file":' in entry.body]:
            await self.fetch(inner, known)

    async def _read(self, gate: asyncio.Semaphore, reference: str, file_id: str) -> None:
        async with gate:
            try:
                content = await self.drive.files_get_media(file_id)
            except Missing as error:
                log.error("a long value of %s is lost: %s", self.spreadsheet_id, error)
                return
        digest = reference.rpartition(":")[2]
        if hashlib.sha256(content).hexdigest() != digest:
            raise LedgerError(
                f"the file {file_id} in Drive, a long value of the book {self.spreadsheet_id}, was changed: its "
                f"SHA-256 is not {digest}; restore its first version (Manage versions)"
            )
        self.texts[reference] = content.decode()

    # -- tidying ---------------------------------------------------------------------------------------------------

    async def collect(self, named: Iterable[str], home: str) -> int:
        """Delete the files that nothing names any more; answers how many."""
        if not home:
            return 0
        kept, gone = set(named), 0
        try:
            for file in await self.drive.files_list(f"'{home}' in parents", fields="files(id,createdTime)"):
                age = self.clock.now() - datetime.fromisoformat(str(file["createdTime"])).timestamp()
                if file["id"] not in kept and age > KEEP_SECONDS:
                    await self.drive.files_delete(str(file["id"]))
                    gone += 1
        except GoogleError as error:
            log.warning("long values of %s that nobody needs are not deleted: %s", self.spreadsheet_id, error)
        return gone
