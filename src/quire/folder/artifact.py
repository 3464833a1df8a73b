"""Artifacts: files that steps make for people, each beside its record; the same content again is the same file."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from quire.errors import InputError
from quire.folder.base import FolderError, Once

if TYPE_CHECKING:
    from quire.folder.base import Folder


class Artifacts:
    """The artifacts of one workflow: ``artifacts/<kind>/<record>/<name>``."""

    def __init__(self, folder: Folder, workflow: str) -> None:
        self.folder = folder
        self.layout = folder.layout(workflow)

    async def put(self, record_id: str, name: str, content: bytes) -> str:
        """Keep this content and answer its link. ``name``: ``brief.md``, or with a kind before it, ``drafts/brief.md``.

        The same content again gives the same link and writes nothing. Other content under the same name does not
        replace what is there: it gets a name of its own, and both are kept.
        """
        first = self.path(record_id, name)
        for path in (first, _marked(first, content)):
            [there] = await self.folder.read(path)
            if there is None:
                await self.folder.write([Once(path, content)])
                [there] = await self.folder.read(path)
            if there == content:
                return self.folder.link(path)
        raise FolderError(f"{first!r} cannot be written: what is read back is not what was put there")

    async def get(self, link: str) -> bytes:
        """The content behind a link that ``put`` gave."""
        path = self.folder.path_of(link)
        [content] = await self.folder.read(path) if path is not None else [None]
        if content is None:
            raise FolderError(f"there is no artifact {link!r} in this folder")
        return content

    def path(self, record_id: str, name: str) -> str:
        """Where an artifact of this name stands."""
        parts = name.split("/")
        if not all(parts) or any(part in (".", "..") for part in parts) or len(parts) > 8:
            raise InputError(f"{name!r} is not a name of an artifact; write it like 'brief.md' or 'drafts/brief.md'")
        kind = parts.pop(0) if len(parts) > 1 else "files"
        if kind.startswith("receipt_"):
            raise InputError(f"{name!r} is not a name of an artifact: 'receipt_…' is the engine's own")
        encode = self.layout.names.encode
        return "/".join([f"{self.layout.base}/artifacts", encode(kind), encode(record_id), *map(encode, parts)])


def _marked(path: str, content: bytes) -> str:
    """Return the same path with a hash of the content before its ending."""
    head, slash, last = path.rpartition("/")
    stem, dot, kind = last.rpartition(".")
    if not dot or len(kind) > 16:
        stem, dot, kind = last, "", ""
    return f"{head}{slash}{stem}~{hashlib.sha256(content).hexdigest()[:16]}{dot}{kind}"
