"""A folder in a local directory.

A file is written under a temporary name beside the tree, made durable, and then given its own name: whoever looks sees
the old content or the new, never half of one. Many files are made durable together; their names are given in order.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TypeVar

from quire.clock import new_id
from quire.folder.base import Directory, Fence, Folder, FolderError, Gone, Once, Replace, Write, unfenced
from quire.folder.disk import Disk
from quire.folder.layout import WORKFLOWS
from quire.folder.names import Names
from quire.folder.state import rank_of

T = TypeVar("T")

#: Files on their way are here, outside of what people look at.
_TEMPORARY = ".quire"
_MARK = f"{WORKFLOWS}/.folder.json"
#: As many files as this are made durable together rather than one by one, and named by several hands.
_MANY = 8
_HANDS = 4


class LocalFolder(Folder):
    """Files below ``root``. ``portable``: names for any file system; None: as this one needs them."""

    def __init__(self, root: str | os.PathLike[str], *, portable: bool | None = None, disk: Disk | None = None) -> None:
        self.root = Path(root).absolute()
        self.url = self.root.as_uri()
        self.names = Names(portable=bool(portable))
        self.folder_id = ""
        self.disk = disk or Disk()
        self._portable = portable
        self._threads = ThreadPoolExecutor(1, "quire-folder")
        self._hands = ThreadPoolExecutor(_HANDS, "quire-files")
        self._known: set[str] = set()
        self._count = 0
        self._own = new_id(length=10)

    async def open(self) -> None:
        await self._in_thread(self._open)

    async def close(self) -> None:
        self._threads.shutdown(wait=True)
        self._hands.shutdown(wait=True)

    async def write(self, writes: Sequence[Write], fence: Fence = unfenced) -> None:
        await self._in_thread(lambda: self._write(writes, fence))

    async def read(self, *paths: str) -> list[bytes | None]:
        return await self._in_thread(lambda: [self.disk.read(self._at(path)) for path in paths])

    async def paths(self, under: str) -> list[str]:
        return await self._in_thread(lambda: sorted(self._walk(under)))

    # -- in the folder's thread --------------------------------------------------------------------------------

    async def _in_thread(self, work: Callable[[], T]) -> T:
        def run() -> T:
            with _quire_errors(self.root):
                return work()

        return await asyncio.get_running_loop().run_in_executor(self._threads, run)

    def _at(self, path: str) -> str:
        return f"{self.root}/{path}"

    def _open(self) -> None:
        self._directory(self._at(WORKFLOWS))
        self._directory(self._at(_TEMPORARY))
        probe = f"{self._at(_TEMPORARY)}/{self._own}.probe"
        self.disk.temporary(probe, b"")
        try:
            if self._portable is None:
                self.names = Names(portable=os.name == "nt" or self._ignores_case())
            self._tidy(os.stat(probe).st_mtime)
        finally:
            self.disk.remove(probe)
        mark = self.disk.read(self._at(_MARK))
        if mark is None:
            self._write([Once(_MARK, json.dumps({"folder_id": new_id("folder_")}).encode() + b"\n")], unfenced)
            mark = self.disk.read(self._at(_MARK))
        try:
            self.folder_id = str(json.loads(mark or b"")["folder_id"])
        except (ValueError, KeyError, TypeError):
            raise FolderError(f"{self._at(_MARK)!r} cannot be read: delete it, and the folder is filled anew") from None

    def _ignores_case(self) -> bool:
        return os.path.exists(f"{self._at(_TEMPORARY)}/{self._own}.PROBE")

    def _tidy(self, now: float) -> None:
        """Remove files that a process left on their way when it was killed: those of an hour ago and before."""
        for entry in os.scandir(self._at(_TEMPORARY)):
            with suppress(FileNotFoundError):
                if entry.stat().st_mtime < now - 3600:
                    self.disk.remove(entry.path)

    def _write(self, writes: Sequence[Write], fence: Fence) -> None:
        self._directory(self._at(_TEMPORARY))
        temporaries = self._temporaries(writes)
        touched: dict[str, None] = {}
        for _, group in groupby(enumerate(writes), lambda pair: type(pair[1])):
            same = list(group)
            self._side_by_side(same, partial(self._do, temporaries, touched, fence))
        for directory in touched:
            self.disk.sync_directory(directory)

    def _side_by_side(self, same: Sequence[tuple[int, Write]], do: Callable[[int, Write], None]) -> None:
        """Acts of one kind that follow each other, on different files, are done by several hands."""
        hands = _HANDS if len(same) >= _MANY and len({write.path for _, write in same}) == len(same) else 1
        shares = [same[hand::hands] for hand in range(hands)]

        def work(share: Sequence[tuple[int, Write]]) -> None:
            for place, write in share:
                do(place, write)

        if hands == 1:
            work(same)
            return
        futures = [self._hands.submit(work, share) for share in shares]
        wait(futures)  # all of them, also when one has failed
        for future in futures:
            future.result()

    def _do(
        self, temporaries: dict[int, str], touched: dict[str, None], fence: Fence, place: int, write: Write
    ) -> None:
        fence()
        path = self._at(write.path)
        temporary = temporaries.get(place)
        match write:
            case Directory():
                self._directory(path)
                return
            case Gone():
                self.disk.remove(path)
            case Once() if temporary is not None:
                self._into_place(path, partial(self.disk.name_once, temporary))
            case Replace(rank=rank) if temporary is not None:
                if rank is not None and rank_of(self.disk.head(path)) > rank:
                    self.disk.remove(temporary)
                    return
                self._into_place(path, partial(self.disk.replace, temporary))
            case _:
                return
        touched[os.path.dirname(path)] = None

    def _into_place(self, path: str, give: Callable[[str], None]) -> None:
        directory = os.path.dirname(path)
        self._directory(directory)
        try:
            give(path)
        except FileNotFoundError:  # somebody has removed the directory under us
            self._known.clear()
            self._directory(directory)
            give(path)

    def _temporaries(self, writes: Sequence[Write]) -> dict[int, str]:
        """Return the contents under temporary names, durable, by their place; none for what need not be written."""
        todo: list[tuple[int, str, bytes]] = []
        for place, write in enumerate(writes):
            match write:
                case Once(path=path) if os.path.exists(self._at(path)):
                    continue
                case Once(content=content) | Replace(content=content):
                    self._count += 1
                    todo.append((place, f"{self._at(_TEMPORARY)}/{self._own}.{self._count}", content))
        alone = len(todo) < _MANY
        for _, temporary, content in todo:
            self.disk.temporary(temporary, content, durable=alone)
        if not alone and not self.disk.sync(self._at(_TEMPORARY)):
            for _, temporary, _ in todo:
                self.disk.sync_file(temporary)
        return {place: temporary for place, temporary, _ in todo}

    def _directory(self, path: str) -> None:
        """Make a directory and the ones above it, their names durable."""
        if path in self._known:
            return
        if not os.path.isdir(path):
            parent = os.path.dirname(path)
            if parent != path:
                self._directory(parent)
            self.disk.make_directory(path)
            self.disk.sync_directory(parent)
        self._known.add(path)

    def _walk(self, under: str) -> Iterator[str]:
        top = self._at(under)
        for directory, inner, files in os.walk(top):
            inner[:] = [name for name in inner if not name.startswith(".")]
            where = os.path.relpath(directory, self.root).replace(os.sep, "/")
            yield from (f"{where}/{name}" for name in files if not name.startswith("."))


@contextmanager
def _quire_errors(root: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise FolderError(f"the folder {str(root)!r} cannot be used: {error}") from error
