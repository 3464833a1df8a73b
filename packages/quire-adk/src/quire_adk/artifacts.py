"""Artifacts of Google's Agent Development Kit in a Quire folder: a local directory, or Drive.

A version is two files: its content, under a name of its own, and then what it is, under its number. The second is
written once, so of two processes that save at the same moment each gets a number, and a version is there whole or not
at all.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from google.adk.artifacts.base_artifact_service import ArtifactVersion, BaseArtifactService, ensure_part
from google.genai import types

from quire.clock import SYSTEM, new_id
from quire.errors import InputError
from quire.folder.base import Folder, Gone, Once
from quire.folder.local import LocalFolder

_USER = "user:"


class QuireArtifactService(BaseArtifactService):
    """Artifacts in an open folder, or in a directory: ``QuireArtifactService("folder")``.

    They are under ``Workflows/<app>/artifacts/adk/``, beside what workflows of that name make.
    """

    def __init__(self, folder: Folder | str | Path) -> None:
        self._folder = folder if isinstance(folder, Folder) else LocalFolder(folder)
        self._opened = isinstance(folder, Folder)
        self._opening = asyncio.Lock()

    async def close(self) -> None:
        """Let go of a directory that was given by its path."""
        await self._folder.close()

    async def save_artifact(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        artifact: types.Part | dict[str, Any],
        session_id: str | None = None,
        custom_metadata: dict[str, Any] | None = None,
    ) -> int:
        part, nonce = ensure_part(artifact), new_id()
        place = await self._place(app_name, user_id, session_id, filename)
        about: dict[str, Any] = {"id": nonce, "name": filename, "at": SYSTEM.now()}
        about["custom_metadata"] = custom_metadata or {}
        content: bytes | None = None
        if part.inline_data is not None:
            content = part.inline_data.data or b""
            about |= {"kind": "bytes", "mime_type": part.inline_data.mime_type}
        elif part.text is not None:
            content = part.text.encode()
            about |= {"kind": "text", "mime_type": "text/plain"}
        elif part.file_data is not None:
            about |= {"kind": "file", "part": part.model_dump(mode="json", exclude_none=True)}
        else:
            raise InputError(f"the artifact {filename!r} holds neither data, nor a file, nor text")
        folder = await self._open()
        if content is not None:
            await folder.write([Once(f"{place}/content_{nonce}", content)])
        number = max(await self._numbers(place), default=-1) + 1
        while True:  # whoever comes second to a number reads there what the first one wrote
            path = _about(place, number)
            await folder.write([Once(path, json.dumps(about).encode())])
            [there] = await folder.read(path)
            if there is not None and json.loads(there)["id"] == nonce:
                return number
            number += 1

    async def load_artifact(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        session_id: str | None = None,
        version: int | None = None,
    ) -> types.Part | None:
        place = await self._place(app_name, user_id, session_id, filename)
        found = await self._version(place, version)
        if found is None:
            return None
        about = found[1]
        if about["kind"] == "file":
            return types.Part.model_validate(about["part"])
        [content] = await (await self._open()).read(f"{place}/content_{about['id']}")
        if content is None:
            return None
        if about["kind"] == "text":
            return types.Part(text=content.decode())
        return types.Part(inline_data=types.Blob(data=content, mime_type=about["mime_type"]))

    async def list_artifact_keys(self, *, app_name: str, user_id: str, session_id: str | None = None) -> list[str]:
        folder = await self._open()
        scopes = [self._scope(app_name, user_id, None)]
        if session_id is not None:
            scopes.append(self._scope(app_name, user_id, session_id))
        first: dict[str, str] = {}
        for scope in scopes:
            for path in await folder.paths(scope):
                place, _, last = path.rpartition("/")
                if last.startswith("version_"):
                    first.setdefault(place, path)
        found = await folder.read(*first.values())
        return sorted({json.loads(about)["name"] for about in found if about is not None})

    async def delete_artifact(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> None:
        place = await self._place(app_name, user_id, session_id, filename)
        folder = await self._open()
        # What names the contents goes first: a version without its content is never seen.
        paths = sorted(await folder.paths(place), key=lambda path: "/content_" in path)
        await folder.write([Gone(path) for path in paths])

    async def list_versions(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> list[int]:
        return await self._numbers(await self._place(app_name, user_id, session_id, filename))

    async def list_artifact_versions(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> list[ArtifactVersion]:
        place = await self._place(app_name, user_id, session_id, filename)
        found = [await self._version(place, number) for number in await self._numbers(place)]
        return [self._told(place, *version) for version in found if version is not None]

    async def get_artifact_version(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        session_id: str | None = None,
        version: int | None = None,
    ) -> ArtifactVersion | None:
        place = await self._place(app_name, user_id, session_id, filename)
        found = await self._version(place, version)
        return None if found is None else self._told(place, *found)

    async def _open(self) -> Folder:
        async with self._opening:
            if not self._opened:
                await self._folder.open()
                self._opened = True
        return self._folder

    def _scope(self, app_name: str, user_id: str, session_id: str | None) -> str:
        encode = self._folder.names.encode
        owner = f"{self._folder.layout(app_name).base}/artifacts/adk/{encode(user_id)}"
        return f"{owner}/user" if session_id is None else f"{owner}/session_{encode(session_id)}"

    async def _place(self, app_name: str, user_id: str, session_id: str | None, filename: str) -> str:
        await self._open()  # only then is it known how names are spelt there
        scope = None if filename.startswith(_USER) else session_id
        return f"{self._scope(app_name, user_id, scope)}/{self._folder.names.encode(filename)}"

    async def _numbers(self, place: str) -> list[int]:
        paths = await (await self._open()).paths(place)
        names = [path.removeprefix(f"{place}/version_").removesuffix(".json") for path in paths]
        return sorted(int(name) for name in names if name.isdigit())

    async def _version(self, place: str, version: int | None) -> tuple[int, dict[str, Any]] | None:
        number = max(await self._numbers(place), default=None) if version is None else version
        if number is None:
            return None
        [about] = await (await self._open()).read(_about(place, number))
        return None if about is None else (number, json.loads(about))

    def _told(self, place: str, number: int, about: dict[str, Any]) -> ArtifactVersion:
        path = _about(place, number) if about["kind"] == "file" else f"{place}/content_{about['id']}"
        link = self._folder.link(path)
        return ArtifactVersion(
            version=number,
            canonical_uri=link if "://" in link else f"{self._folder.url}/{link}",
            custom_metadata=about["custom_metadata"],
            create_time=about["at"],
            mime_type=about.get("mime_type"),
        )


def _about(place: str, number: int) -> str:
    return f"{place}/version_{number}.json"
