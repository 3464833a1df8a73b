"""The contract of a folder: where people find files. A projection of the ledger, and what steps made for people.

Small on purpose. A file is named by its path (see ``layout``), and a path means one thing for ever: a store that works
by ids, such as Google Drive, makes an id for a path once, remembers it (``Settings``), and never searches by name. Four
kinds of writing exist, and each may be repeated any number of times with the same outcome:

- ``Once``: the first content stays. Receipts, run logs, artifacts, archive segments.
- ``Replace``: newer content takes the place of older. With a *rank* (version, lines), which the content begins with, a
  lower rank never takes the place of a higher one. State files; without a rank: the table, the README.
- ``Gone``: the file is not there any more. Locks.
- ``Directory``: there is such a directory.

Nothing that Quire decides is read from a folder: the ledger decides, the folder shows. The one exception is a file
named STOP, which a person put there (``stops``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple, Protocol

from quire.errors import QuireError
from quire.folder.layout import WORKFLOWS, Layout
from quire.folder.names import Names
from quire.model.side import Setting

if TYPE_CHECKING:
    from quire.folder.artifact import Artifacts
    from quire.folder.config import Config


class FolderError(QuireError):
    """The folder cannot be used as it is. The message says why and what puts it right."""


class Rank(NamedTuple):
    """How new a state file is: the record's version, then how many lines its log has."""

    version: int
    lines: int


class Once(NamedTuple):
    path: str
    content: bytes


class Replace(NamedTuple):
    path: str
    content: bytes
    #: None: always.
    rank: Rank | None = None


class Gone(NamedTuple):
    path: str


class Directory(NamedTuple):
    path: str


Write = Once | Replace | Gone | Directory

#: A file of this name halts; some systems give a text file an ending unasked.
STOP = ("STOP", "STOP.txt")

#: Called before each act on the folder; raises when the caller may not write any more.
Fence = Callable[[], None]


def unfenced() -> None:
    """For those who may always write."""


class Settings(Protocol):
    """What a folder may remember in the ledger, by compare-and-swap: for stores that work by ids."""

    async def setting(self, name: str) -> Setting | None: ...

    async def settings(self, prefix: str) -> list[Setting]: ...

    async def keep(self, setting: Setting) -> bool: ...


class Folder(ABC):
    """Files for people, under ``Workflows/`` and ``Archive/``. Every verb may raise ``FolderError``."""

    url: str
    #: Made with the folder and kept in it: a folder that was deleted and made anew is another one.
    folder_id: str
    names: Names
    #: How often it may be looked at for what people put there.
    look_seconds: float = 2.0

    @abstractmethod
    async def open(self) -> None:
        """Make the folder, or find it. Two processes may do so at the same moment."""

    @abstractmethod
    async def close(self) -> None: ...

    @abstractmethod
    async def write(self, writes: Sequence[Write], fence: Fence = unfenced) -> None:
        """Do all of these, in order; those of one kind that follow each other may be done side by side.

        When it returns they are durable; when it raises, some of them may be.
        """

    @abstractmethod
    async def read(self, *paths: str) -> list[bytes | None]:
        """The contents of these files; None for one that is not there."""

    @abstractmethod
    async def paths(self, under: str) -> list[str]:
        """The files below this directory, sorted. For configuration and verification: nothing else is decided by it."""

    # -- made of the above -------------------------------------------------------------------------------------

    def link(self, path: str) -> str:
        """How records name this file: resolved by ``path_of``, on this machine and others."""
        return path

    def path_of(self, link: str) -> str | None:
        """Return the path behind a link of this folder; None if it is no such link."""
        parts = PurePosixPath(link).parts
        ours = len(parts) > 1 and parts[0] == WORKFLOWS and ".." not in parts and "/".join(parts) == link
        return link if ours else None

    def layout(self, workflow: str) -> Layout:
        return Layout(workflow, self.names)

    async def prepare(self, workflow: str) -> None:
        """Make the workflow's tree with its README. Any number of times."""
        from quire.folder.readme import readme

        layout = self.layout(workflow)
        writes: list[Write] = [Directory(path) for path in layout.directories()]
        text = readme(workflow)
        [there] = await self.read(layout.readme)
        if there is None or text.splitlines()[-1].encode() not in there:
            writes.append(Replace(layout.readme, text.encode()))
        await self.write(writes)

    async def config(self, workflow: str) -> Config:
        """Return the constants, flags and pointers in ``config/``. A secret found there is refused."""
        from quire.folder.config import load

        layout = self.layout(workflow)
        paths = await self.paths(layout.config)
        contents = await self.read(*paths)
        found = {path: content for path, content in zip(paths, contents, strict=True) if content is not None}
        return load(layout.config, found)

    async def stops(self, workflows: Sequence[str]) -> dict[str, str]:
        """Files named STOP, by the workflow in whose directory each lies; "" for one at the top, which stops all.

        The one thing in a folder that is obeyed: it can only ever stop work.
        """
        above = [("", top + name) for name in STOP for top in ("", f"{WORKFLOWS}/")]
        inside = [(workflow, f"{self.layout(workflow).base}/{name}") for workflow in workflows for name in STOP]
        contents = await self.read(*(path for _, path in [*above, *inside]))
        there = zip([*above, *inside], contents, strict=True)
        return {workflow: path for (workflow, path), content in there if content is not None}

    def artifacts(self, workflow: str) -> Artifacts:
        """Where steps of this workflow put what they make for people."""
        from quire.folder.artifact import Artifacts

        return Artifacts(self, workflow)
