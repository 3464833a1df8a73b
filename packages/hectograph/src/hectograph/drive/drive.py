"""Drive: files by id, with folders, permissions, comments, revisions, changes and pre-generated ids."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from hectograph.core.clock import stamp
from hectograph.core.error import ApiError, file_not_found
from hectograph.core.people import CLIENT
from hectograph.core.switch import Switches
from hectograph.drive import query
from hectograph.drive.editor import Editor
from hectograph.drive.file import (
    APPS,
    FOLDER,
    SHORTCUT,
    File,
    Revision,
    permission_id,
)

_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

#: What a caller may set on a file; the rest of a body is ignored, as Drive does.
_SETTABLE = {
    "description", "starred", "properties", "appProperties", "originalFilename", "folderColorRgb", "contentHints",
    "copyRequiresWriterPermission", "viewersCanCopyContent", "writersCanShare", "viewedByMeTime", "contentRestrictions",
    "shortcutDetails", "indexableText", "inheritedPermissionsDisabled", "downloadRestrictions",
}  # fmt: skip

#: The folder of each application's own files, which no list shows unless it is asked for that space.
APP_DATA = "appDataFolder"

#: What a search learns late. Types and folders it knows at once.
_LAGGING = frozenset({"name", "title", "fullText", "properties", "appProperties"})

_ID_USABLE = {FOLDER, APPS + "drive-sdk"}


class Drive:
    def __init__(self, now: Callable[[], datetime], account: str, switches: Switches) -> None:
        self.now = now
        self.account = account
        self.switches = switches
        self.root = "0A" + "".join(secrets.choice(_ALPHABET) for _ in range(15)) + "PVA"
        self.files: dict[str, File] = {}
        self.generated: set[str] = set()
        self.used: set[str] = set()
        #: (number, file id) of every change, in order.
        self.changes: list[tuple[int, str, datetime]] = []
        self.name_lag_seconds = 0.0
        #: Who keeps what is in a Docs Editors file, by the file's type.
        self.editors: dict[str, Editor] = {}
        #: The OAuth client of the call under way.
        self.client = CLIENT
        self._calling = threading.local()
        #: Shared drives by id.
        self.drives: dict[str, dict[str, Any]] = {}

    def new_id(self, native: bool = False) -> str:
        size = 43 if native else 32
        return "1" + "".join(secrets.choice(_ALPHABET) for _ in range(size))

    def get(self, file_id: str) -> File:
        if file_id == "root" or file_id == self.root:
            return self._root()
        if file_id == APP_DATA:
            return File(APP_DATA, "Application data", FOLDER, [], self.now(), self.now(), self.account)
        found = self.files.get(file_id)
        if found is None:
            raise file_not_found(file_id)
        return found

    def _root(self) -> File:
        epoch = datetime(2020, 1, 1, tzinfo=self.now().tzinfo)
        return File(self.root, "My Drive", FOLDER, [], epoch, epoch, self.account)

    def home(self, file: File) -> str:
        """The shared drive or the hidden folder in which a file lies, however deep; nothing for My Drive."""
        seen: set[str] = set()
        above = list(file.parents)
        while above:
            key = above.pop()
            if key in self.drives or key == APP_DATA:
                return key
            if key not in seen and key in self.files:
                above += self.files[key].parents
            seen.add(key)
        return ""

    def seen(self, file: File) -> File:
        """Return the file as the calling OAuth client sees it: with its own appProperties."""
        held = file.apps.get(self.client)
        return replace(file, more={**file.more, "appProperties": held}) if held else file

    def touched(self, file: File, *, content: bool = True) -> None:
        file.version += 1
        if content:
            file.modified = self.now()
        self.changes.append((len(self.changes) + 1, file.file_id, self.now()))

    def add_drive(self, key: str, name: str) -> None:
        """A shared drive is also a folder, under the same id, in which files may lie."""
        self.files[key] = self._file(key, name, FOLDER, [])

    def generate(self, count: int) -> list[str]:
        ids = [self.new_id() for _ in range(count)]
        self.generated.update(ids)
        return ids

    def _given_id(self, given: Mapping[str, Any], mime_type: str) -> str:
        file_id = given.get("id")
        if not file_id:
            return self.new_id(mime_type.startswith(APPS) and mime_type != FOLDER)
        if file_id in self.used or file_id in self.files:
            raise ApiError.drive(409, "fileIdInUse", "A file already exists with the provided ID.")
        if mime_type == SHORTCUT or file_id not in self.generated:
            raise ApiError.drive(
                400, "invalid", "The provided file ID is not usable.", location="file.id", location_type="other"
            )
        if mime_type.startswith(APPS) and mime_type not in _ID_USABLE:
            raise ApiError.drive(
                403, "generatedIdsNotSupported", "Generated IDs are not supported for Docs Editors formats."
            )
        return str(file_id)

    def create(
        self,
        given: Mapping[str, Any],
        content: bytes | None = None,
        content_type: str = "",
        source: File | None = None,
    ) -> File:
        """Make a file: an empty one, one from an upload, or one with what is in ``source``, of the same type."""
        mime_type = given.get("mimeType") or content_type or "application/octet-stream"
        file_id = self._given_id(given, mime_type)
        parents = [self.get(p).file_id for p in given.get("parents") or ["root"]]
        if len(parents) > 1:
            raise ApiError.drive(403, "cannotAddParent", "Increasing the number of parents is not allowed")
        if not self.switches.service_account_has_quota and mime_type != FOLDER and parents == [self.root]:
            raise ApiError.drive(
                403,
                "storageQuotaExceeded",
                "Service Accounts do not have storage quota. Leverage shared drives "
                "(https://developers.google.com/workspace/drive/api/guides/about-shareddrives), or use OAuth "
                "delegation instead.",
                domain="usageLimits",
            )
        _check_properties(given)
        file = self._file(file_id, given.get("name") or "Untitled", mime_type, parents)
        file.more = {k: v for k, v in given.items() if k in _SETTABLE and v is not None}
        self._set_properties(file, "appProperties", file.more.pop("appProperties", {}))
        if mime_type == SHORTCUT:
            target_id = str(given.get("shortcutDetails", {}).get("targetId", ""))
            pointed = self.files.get(target_id)
            file.more["shortcutDetails"] = {
                "targetId": target_id,
                "targetMimeType": pointed.mime_type if pointed else "application/octet-stream",
            }
        for key, target in (("createdTime", "created"), ("modifiedTime", "modified")):
            if given.get(key):
                setattr(file, target, datetime.fromisoformat(str(given[key])))
        if source is not None:
            self.editors[mime_type].copy(source, file)
        elif mime_type in self.editors:
            self.editors[mime_type].make(file, content, content_type)
        elif not file.native:
            file.content = b"" if content is None else content
            self._revise(file)
        return self._keep(file)

    def adopt(self, file_id: str, name: str, mime_type: str) -> File:
        """Make the file of what an editor created."""
        return self._keep(self._file(file_id, name, mime_type, [self.root]))

    @property
    def author(self) -> str:
        """The account that makes files in the call under way: each call has a thread of its own."""
        found: str = getattr(self._calling, "author", self.account)
        return found

    @author.setter
    def author(self, email: str) -> None:
        self._calling.author = email

    def _file(self, file_id: str, name: str, mime_type: str, parents: list[str]) -> File:
        now = self.now()
        file = File(file_id, name, mime_type, parents, now, now, self.author, named=now)
        owner = permission_id(self.author)
        file.permissions[owner] = {
            "kind": "drive#permission",
            "id": owner,
            "type": "user",
            "emailAddress": self.author,
            "role": "owner",
            "displayName": self.author,
            "deleted": False,
            "pendingOwner": False,
        }
        return file

    def _keep(self, file: File) -> File:
        self.files[file.file_id] = file
        self.used.add(file.file_id)
        self.changes.append((len(self.changes) + 1, file.file_id, self.now()))
        return file

    def _revise(self, file: File) -> None:
        number = f"0B{secrets.token_urlsafe(24)}"
        file.revisions.append(Revision(number, self.now(), file.content or b"", file.mime_type))

    def write(self, file: File, content: bytes, content_type: str) -> None:
        if file.mime_type in self.editors:
            self.editors[file.mime_type].write(file, content, content_type)
        elif file.native:
            raise ApiError.drive(400, "badRequest", "Bad Request")
        else:
            file.content = content
            if content_type and not content_type.startswith("multipart/"):
                file.mime_type = content_type
            self._revise(file)
        self.touched(file)

    def update(self, file: File, given: Mapping[str, Any], *, add: str = "", remove: str = "") -> None:
        if file.file_id == self.root:
            raise ApiError.drive(
                403, "insufficientFilePermissions", "The user does not have sufficient permissions for this file."
            )
        _check_properties(given)
        if given.get("parents") is not None:
            raise ApiError.drive(
                403,
                "fieldNotWritable",
                "The parents field is not directly writable in update requests. "
                "Use the addParents and removeParents parameters instead.",
            )
        for parent in filter(None, remove.split(",")):
            real = self.get(parent).file_id
            file.parents = [p for p in file.parents if p != real]
        for parent in filter(None, add.split(",")):
            file.parents = [self.get(parent).file_id]
        if given.get("name") is not None and given["name"] != file.name:
            file.name = str(given["name"])
            file.named = self.now()
            if file.mime_type in self.editors:
                self.editors[file.mime_type].rename(file)
        if given.get("mimeType") and not file.native:
            file.mime_type = str(given["mimeType"])
        if "trashed" in given:
            file.trashed = bool(given["trashed"])
            file.more.pop("trashedTime", None)
            if file.trashed:
                file.more["trashedTime"] = stamp(self.now())
        for key in _SETTABLE & given.keys():
            if key in {"properties", "appProperties"}:
                self._set_properties(file, key, given[key] or {})
            else:
                file.more[key] = given[key]
        self.touched(file, content="modifiedTime" not in given)
        if given.get("modifiedTime"):
            file.modified = datetime.fromisoformat(str(given["modifiedTime"]))

    def _set_properties(self, file: File, name: str, given: Mapping[str, Any]) -> None:
        """Set some properties; one that is set to null goes."""
        place, key = (file.apps, self.client) if name == "appProperties" else (file.more, name)
        held = {k: v for k, v in {**place.get(key, {}), **given}.items() if v is not None}
        if held:
            place[key] = held
        else:
            place.pop(key, None)

    def copy(self, file: File, given: Mapping[str, Any]) -> File:
        if file.mime_type == FOLDER:
            raise ApiError.drive(403, "cannotCopyFile", "This file cannot be copied by the user.")
        merged = {
            "name": f"Copy of {file.name}",
            "parents": file.parents,
            **{k: v for k, v in file.more.items() if k in {"description", "properties"}},
            **{k: v for k, v in given.items() if v is not None},
        }
        wanted = merged.get("mimeType") or file.mime_type
        merged["mimeType"] = wanted
        if file.mime_type in self.editors and wanted == file.mime_type:
            return self.create(merged, source=file)
        return self.create(merged, file.content, file.mime_type)

    def delete(self, file: File) -> None:
        if file.file_id == self.root:
            raise ApiError.drive(
                403, "insufficientFilePermissions", "The user does not have sufficient permissions for this file."
            )
        for child in [f for f in self.files.values() if file.file_id in f.parents]:
            self.delete(child)
        self.files.pop(file.file_id, None)
        if file.mime_type in self.editors:
            self.editors[file.mime_type].drop(file)
        self.changes.append((len(self.changes) + 1, file.file_id, self.now()))

    def _buried(self) -> set[str]:
        """The files that are in the trash, themselves or with a folder around them."""
        gone = {key for key, file in self.files.items() if file.trashed}
        more = gone
        while more:
            more = {key for key, file in self.files.items() if key not in gone and gone.intersection(file.parents)}
            gone |= more
        return gone

    def search(self, text: str, order: str = "", *, home: str | None = None) -> list[File]:
        """Files in the wanted order: of one shared drive or space, or of all but the hidden space."""
        wanted, buried = query.compiled(text), self._buried()
        files = (
            file
            for file in self.files.values()
            if file.file_id not in self.drives
            and (self.home(file) != APP_DATA if home is None else self.home(file) == home)
        )
        read = self.editors if "fullText" in wanted.fields else {}
        found = [
            file
            for file in files
            if wanted.test(
                *(self.seen(file), buried, self.account, self.root),
                text=read[file.mime_type].text(file) if file.mime_type in read else "",
            )
        ]
        lag = max(self.name_lag_seconds, float(self.switches["list_lag"]))
        if lag and wanted.fields & _LAGGING:
            old = self.now() - timedelta(seconds=lag)
            found = [f for f in found if (f.named or f.created) <= old]
        found.sort(key=lambda f: f.modified, reverse=True)
        keys = [part.split() for part in order.split(",") if part.strip()]
        for at, (name, *way) in enumerate(keys):
            if way not in ([], ["desc"]):
                raise ApiError.drive(400, "invalid", "Invalid Value", location="orderBy")
            _order(name)
            if name.removesuffix("_natural") in {other[0].removesuffix("_natural") for other in keys[:at]}:
                text = "The orderBy parameter cannot contain duplicate sort keys."
                raise ApiError.drive(403, "orderByContainsDuplicateSortKeys", text, location="orderBy")
        for name, *way in reversed(keys):
            found.sort(key=_order(name), reverse=way == ["desc"])
        return found


def _order(name: str) -> Callable[[File], Any]:
    keys: dict[str, Callable[[File], Any]] = {
        "name": lambda f: f.name.casefold(),
        "name_natural": lambda f: f.name.casefold(),
        "createdTime": lambda f: f.created,
        "modifiedTime": lambda f: f.modified,
        "modifiedByMeTime": lambda f: f.modified,
        "viewedByMeTime": lambda f: f.modified,
        "recency": lambda f: f.modified,
        "folder": lambda f: f.mime_type != FOLDER,
        "starred": lambda f: not f.more.get("starred", False),
        "quotaBytesUsed": lambda f: len(f.content or b""),
        "sharedWithMeTime": lambda f: f.created,
    }
    if name not in keys:
        raise ApiError.drive(400, "invalid", "Invalid Value", location="orderBy")
    return keys[name]


def _check_properties(given: Mapping[str, Any]) -> None:
    for name in ("properties", "appProperties"):
        held = given.get(name) or {}
        if len(held) > 30:
            raise ApiError.drive(403, "propertyLimitExceeded", "The maximum number of properties has been exceeded.")
        for key, value in held.items():
            if value is not None and len(f"{key}{value}".encode()) > 124:
                raise ApiError.drive(
                    400,
                    "invalid",
                    "Property is too long: the key and the value may have 124 bytes together.",
                    location=name,
                    location_type="other",
                )
