"""A folder in Google Drive: ``drive://FOLDER_ID``, a folder that is shared with the account.

Drive lets two files have one name, and finds by name what was there a while ago. So nothing is looked up by name: each
path gets an id that was made before the file, and the ledger remembers it (``Settings``). A create that is repeated, by
this process or another, is a 409 and makes no twin. A path whose file was removed gets a new id with its next file; the
old id is remembered until its file is surely gone.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import PurePosixPath
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

from quire.clock import new_id
from quire.folder.base import (
    STOP,
    Directory,
    Fence,
    Folder,
    FolderError,
    Gone,
    Once,
    Replace,
    Settings,
    Write,
    unfenced,
)
from quire.folder.layout import WORKFLOWS
from quire.folder.names import Names
from quire.folder.state import rank_of
from quire.folder.text import media_type
from quire.google.credentials import Credentials, StaticToken, default, from_file
from quire.google.drive import FOLDER, Drive
from quire.google.error import GoogleError, Missing
from quire.google.transport import Transport
from quire.model.side import Setting

_MARK = f"{WORKFLOWS}/.folder.json"
#: Ids are asked for in such lots.
_LOT = 50
#: Files that are written side by side.
_AT_ONCE = 8


class _Place(NamedTuple):
    """What the ledger remembers of a path."""

    #: Empty: it has no file.
    file_id: str
    #: Ids of files that were removed, until that is sure.
    gone: tuple[str, ...]
    #: Of the setting.
    version: int


_NOWHERE = _Place("", (), 0)


def _runs(writes: Sequence[Write]) -> list[list[Write]]:
    """Writes of one kind that follow each other, each to a path of its own: these are done side by side."""
    runs: list[list[Write]] = []
    for write in writes:
        last = runs[-1] if runs else []
        if last and type(last[0]) is type(write) and all(other.path != write.path for other in last):
            last.append(write)
        else:
            runs.append([write])
    return runs


def _first(errors: ExceptionGroup[Exception]) -> Exception:
    found: Exception = errors
    while isinstance(found, ExceptionGroup):
        found = found.exceptions[0]
    return found


class DriveFolder(Folder):
    """Files in Drive, below one folder."""

    look_seconds = 30.0

    def __init__(self, url: str, settings: Settings, *, credentials: Credentials | None = None) -> None:
        parts = urlsplit(url)
        given = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        if parts.scheme != "drive" or not parts.netloc:
            raise FolderError(f"{url!r} names no folder; write it like 'drive://FOLDER_ID'")
        self.url = url
        self.names = Names(portable=False)
        self.folder_id = ""
        self.root = parts.netloc
        self.settings = settings
        self._given = given
        self._credentials = credentials
        self._places: dict[str, _Place] = {}
        #: Directories that are there, and files that people put into them, by their paths.
        self._made: set[str] = set()
        self._seen: dict[str, str] = {}
        self._ids: list[str] = []
        self._asking = asyncio.Lock()
        self._open_now = False

    async def open(self) -> None:
        given, endpoint = self._given, self._given.get("endpoint", "")
        async with self._quire_errors():
            credentials = self._credentials
            if credentials is None and "credentials" in given:
                credentials = from_file(given["credentials"])
            if credentials is None:
                credentials = StaticToken(given.get("user", "quire")) if endpoint else default()
        self.transport = Transport(credentials, endpoint=endpoint, per_minute=None)
        self.drive = Drive(self.transport)
        await self.transport.open()
        try:
            async with self._quire_errors():
                found = await self.drive.files_get(self.root, fields="id,mimeType,trashed")
            if found.get("mimeType") != FOLDER or found.get("trashed"):
                raise FolderError(
                    f"{self.url} is not a folder, or lies in the bin; give the id of a folder that is in use"
                )
            await self._open()
        except BaseException:
            await self.transport.close()
            raise
        self._open_now = True

    async def _open(self) -> None:
        for setting in await self.settings.settings(self._name("")):
            self._remember(setting)
        [mark] = await self.read(_MARK)
        for tries in range(5):
            if mark is not None:
                break
            if tries:  # a person deleted the file, and its id serves no other; or another process did this meanwhile
                await self.write([Gone(_MARK)])
            await self.write([Once(_MARK, json.dumps({"folder_id": new_id("folder_")}).encode() + b"\n")])
            [mark] = await self.read(_MARK)
        try:
            self.folder_id = str(json.loads(mark or b"")["folder_id"])
        except (ValueError, KeyError, TypeError):
            raise FolderError(
                f"{_MARK} in {self.url} cannot be read: delete it, and the folder is filled anew"
            ) from None

    async def close(self) -> None:
        if self._open_now:
            self._open_now = False
            await self.transport.close()

    # -- ids -------------------------------------------------------------------------------------------------------

    def _name(self, path: str) -> str:
        return f"drive/{self.root}/{path}"

    async def _place(self, path: str) -> _Place:
        known = self._places.get(path)
        return known if known is not None else await self._look(path)

    async def _look(self, path: str) -> _Place:
        """As the ledger has it now."""
        setting = await self.settings.setting(self._name(path))
        return _NOWHERE if setting is None else self._remember(setting)

    def _remember(self, setting: Setting) -> _Place:
        value = json.loads(setting.value)
        place = _Place(value["id"], tuple(value["gone"]), setting.version)
        self._places[setting.name.removeprefix(self._name(""))] = place
        return place

    async def _keep(self, path: str, place: _Place) -> _Place:
        """Remember this; if another process was first, what it remembered stands."""
        value = json.dumps({"id": place.file_id, "gone": place.gone})
        if not await self.settings.keep(Setting(self._name(path), value, place.version)):
            return await self._look(path)
        kept = self._places[path] = place._replace(version=place.version + 1)
        return kept

    async def _file_id(self, path: str) -> str:
        """Return the id of this path's file, made now if it has none."""
        place = await self._place(path)
        while not place.file_id:
            async with self._asking:
                if not self._ids:
                    self._ids = await self.drive.files_generate_ids(_LOT)
            place = await self._keep(path, place._replace(file_id=self._ids.pop()))
        return place.file_id

    # -- writing ---------------------------------------------------------------------------------------------------

    async def write(self, writes: Sequence[Write], fence: Fence = unfenced) -> None:
        async with self._quire_errors():
            await self._reserve([write.path for write in writes if not isinstance(write, Gone)])
            for run in _runs(writes):
                gate = asyncio.Semaphore(_AT_ONCE)
                try:
                    async with asyncio.TaskGroup() as group:
                        for write in run:
                            group.create_task(self._write(write, fence, gate))
                except ExceptionGroup as errors:
                    raise _first(errors) from None

    async def _reserve(self, paths: Sequence[str]) -> None:
        """Ids for all these paths and the directories above them, asked of the ledger together: one commit for many."""
        whole = {above for path in paths for above in (path, *map(str, PurePosixPath(path).parents))} - {".", ""}
        new = [path for path in sorted(whole) if not self._places.get(path, _NOWHERE).file_id]
        await asyncio.gather(*map(self._file_id, new))

    async def _write(self, write: Write, fence: Fence, gate: asyncio.Semaphore) -> None:
        async with gate:
            fence()
            match write:
                case Directory(path=path):
                    await self._directory(path)
                case Gone(path=path):
                    await self._remove(path)
                case Once(path=path, content=content):
                    await self._create(path, content)
                case Replace():
                    await self._replace(write, fence)

    async def _directory(self, path: str) -> str:
        """Return the id of this directory; it and those above it are made if they are not there."""
        if path in ("", "."):
            return self.root
        file_id = await self._file_id(path)
        if path not in self._made:
            parent = await self._directory(str(PurePosixPath(path).parent))
            name = PurePosixPath(path).name
            await self.drive.files_create({"id": file_id, "name": name, "mimeType": FOLDER, "parents": [parent]})
            self._made.add(path)
        return file_id

    async def _create(self, path: str, content: bytes) -> None:
        """The first content stays: a second create with the id is no file."""
        parent = await self._directory(str(PurePosixPath(path).parent))
        file_id = await self._file_id(path)
        kind = media_type(path, content)
        name = PurePosixPath(path).name
        await self.drive.files_create({"id": file_id, "name": name, "mimeType": kind, "parents": [parent]}, content)

    async def _replace(self, write: Replace, fence: Fence) -> None:
        there = await self._content(write.path)
        if there is None:
            await self._create(write.path, write.content)
            there = await self._content(write.path)
        if there == write.content:
            return
        if write.rank is not None and there is not None and rank_of(there) > write.rank:
            return
        fence()
        await self.drive.files_update(await self._file_id(write.path), {"trashed": False}, write.content)

    async def _remove(self, path: str) -> None:
        """First the ledger forgets the id, then the file goes: whoever comes between them makes another file."""
        place = await self._look(path)
        while place.file_id:
            place = await self._keep(path, place._replace(file_id="", gone=(*place.gone, place.file_id)))
        for file_id in place.gone:
            try:
                await self.drive.files_delete(file_id)
            except Missing:
                continue
        if place.gone:
            await self._keep(path, place._replace(gone=()))
        self._made.discard(path)

    # -- reading ---------------------------------------------------------------------------------------------------

    async def read(self, *paths: str) -> list[bytes | None]:
        async with self._quire_errors():
            return [await self._content(path) for path in paths]

    async def _content(self, path: str) -> bytes | None:
        place = await self._place(path)
        if not place.file_id:
            place = await self._look(path)
        file_id = place.file_id or self._seen.get(path, "")
        if not file_id:
            return None
        try:
            return await self.drive.files_get_media(file_id)
        except Missing:
            return None

    async def paths(self, under: str) -> list[str]:
        async with self._quire_errors():
            place = await self._look(under)
            found = [path async for path in self._walk(under, place.file_id)] if place.file_id else []
        return sorted(set(found))

    async def stops(self, workflows: Sequence[str]) -> dict[str, str]:
        """Found by name, so Drive may take a while to show a new one."""
        async with self._quire_errors():
            tops = {self.root: ("", ""), (await self._place(WORKFLOWS)).file_id: ("", f"{WORKFLOWS}/")}
            for workflow in workflows:
                base = self.layout(workflow).base
                tops[(await self._place(base)).file_id] = (workflow, f"{base}/")
            tops.pop("", None)
            named = " or ".join(f"name = '{name}'" for name in STOP)
            there: dict[str, str] = {}
            for file in await self.drive.files_list(f"({named}) and trashed = false"):
                for parent in file.get("parents", ()):
                    if parent in tops:
                        workflow, where = tops[parent]
                        there.setdefault(workflow, f"{where}{file['name']}")
        return there

    async def _walk(self, under: str, directory_id: str) -> AsyncIterator[str]:
        for file in await self.drive.files_list(f"'{directory_id}' in parents and trashed = false"):
            name = str(file.get("name", ""))
            if name.startswith("."):
                continue
            path = f"{under}/{name}"
            if file.get("mimeType") == FOLDER:
                async for inner in self._walk(path, str(file["id"])):
                    yield inner
            else:
                self._seen.setdefault(path, str(file["id"]))
                yield path

    @asynccontextmanager
    async def _quire_errors(self) -> AsyncIterator[None]:
        try:
            yield
        except GoogleError as error:
            raise FolderError(f"the folder {self.url} cannot be used: {error}") from error
