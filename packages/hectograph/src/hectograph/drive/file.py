"""A file in Drive, and its resource in the words of v3 and of v2."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from hectograph.core.clock import stamp

FOLDER = "application/vnd.google-apps.folder"
SPREADSHEET = "application/vnd.google-apps.spreadsheet"
SHORTCUT = "application/vnd.google-apps.shortcut"
DOCUMENT = "application/vnd.google-apps.document"
PRESENTATION = "application/vnd.google-apps.presentation"
FORM = "application/vnd.google-apps.form"
APPS = "application/vnd.google-apps."

_OFFICE = "application/vnd.openxmlformats-officedocument."

#: The size that a small file of the editors has, in bytes.
_SMALLEST = "1024"

#: Where people open a file, by its type.
_LINKS = {
    DOCUMENT: "https://docs.google.com/document/d/{}/edit?usp=drivesdk",
    SPREADSHEET: "https://docs.google.com/spreadsheets/d/{}/edit?usp=drivesdk",
    PRESENTATION: "https://docs.google.com/presentation/d/{}/edit?usp=drivesdk",
    FORM: "https://docs.google.com/forms/d/{}/edit?usp=drivesdk",
    FOLDER: "https://drive.google.com/drive/folders/{}",
}

#: Where a file is exported, and into what, by its type.
_EXPORTS: dict[str, tuple[str, dict[str, str]]] = {
    SPREADSHEET: (
        "https://docs.google.com/spreadsheets/export?id={}&exportFormat={}",
        {
            "application/x-vnd.oasis.opendocument.spreadsheet": "ods",
            "text/tab-separated-values": "tsv",
            "application/pdf": "pdf",
            _OFFICE + "spreadsheetml.sheet": "xlsx",
            "text/csv": "csv",
            "application/zip": "zip",
            "application/vnd.oasis.opendocument.spreadsheet": "ods",
        },
    ),
    DOCUMENT: (
        "https://docs.google.com/feeds/download/documents/export/Export?id={}&exportFormat={}",
        {
            "application/rtf": "rtf",
            "application/vnd.oasis.opendocument.text": "odt",
            "text/html": "html",
            "application/pdf": "pdf",
            "text/x-markdown": "md",
            "text/markdown": "md",
            "application/epub+zip": "epub",
            "application/zip": "zip",
            _OFFICE + "wordprocessingml.document": "docx",
            "text/plain": "txt",
        },
    ),
    PRESENTATION: (
        "https://docs.google.com/feeds/download/presentations/Export?id={}&exportFormat={}",
        {
            "application/vnd.oasis.opendocument.presentation": "odp",
            "application/pdf": "pdf",
            _OFFICE + "presentationml.presentation": "pptx",
            "text/plain": "txt",
        },
    ),
}


@dataclass
class Revision:
    revision_id: str
    at: datetime
    content: bytes
    mime_type: str
    keep_forever: bool = False


@dataclass
class File:
    file_id: str
    name: str
    mime_type: str
    parents: list[str]
    created: datetime
    modified: datetime
    owner: str
    version: int = 1
    content: bytes | None = None
    trashed: bool = False
    #: Everything else that callers may set: description, starred, properties, …
    more: dict[str, Any] = field(default_factory=dict)
    #: The appProperties that each OAuth client has set; no client sees those of another one.
    apps: dict[str, dict[str, str]] = field(default_factory=dict)
    permissions: dict[str, dict[str, Any]] = field(default_factory=dict)
    comments: dict[str, dict[str, Any]] = field(default_factory=dict)
    revisions: list[Revision] = field(default_factory=list)
    #: When the name (or the file) came to be; the name index may lag behind this.
    named: datetime | None = None
    #: When its permissions were last changed, and what they were before.
    race: tuple[datetime, dict[str, dict[str, Any]]] | None = None

    @property
    def native(self) -> bool:
        return self.mime_type.startswith(APPS)

    @property
    def etag(self) -> str:
        digest = hashlib.sha256(f"{self.file_id}/{self.version}".encode()).hexdigest()[:24]
        return f'"{digest}"'

    def facts(self) -> dict[str, Any]:
        """What a search may ask about."""
        return {
            "id": self.file_id,
            "name": self.name,
            "title": self.name,
            "mimeType": self.mime_type,
            "trashed": self.trashed,
            "starred": self.more.get("starred", False),
            "parents": self.parents,
            "modifiedTime": stamp(self.modified),
            "createdTime": stamp(self.created),
            "properties": self.more.get("properties", {}),
            "appProperties": self.more.get("appProperties", {}),
            "owners": [self.owner],
            "writers": [
                p["emailAddress"]
                for p in self.permissions.values()
                if p.get("role") in {"owner", "writer"} and "emailAddress" in p
            ],
            "readers": [p["emailAddress"] for p in self.permissions.values() if "emailAddress" in p],
            "sharedWithMe": False,
            "viewedByMeTime": stamp(self.modified),
            "visibility": _visibility(self),
            "shortcutDetails.targetId": self.more.get("shortcutDetails", {}).get("targetId", ""),
            "fullText": f"{self.name} {self.more.get('description', '')} "
            + ((self.content or b"")[:100_000].decode("utf-8", "ignore") if self.mime_type.startswith("text/") else ""),
        }


def _visibility(file: File) -> str:
    """How a search calls the widest circle that a file is shared with."""
    kinds = {(p["type"], bool(p.get("allowFileDiscovery"))) for p in file.permissions.values()}
    for kind, found, word in (
        ("anyone", True, "anyoneCanFind"),
        ("anyone", False, "anyoneWithLink"),
        ("domain", True, "domainCanFind"),
        ("domain", False, "domainWithLink"),
    ):
        if (kind, found) in kinds:
            return word
    return "limited"


def user(email: str, *, me: bool = True) -> dict[str, Any]:
    return {
        "kind": "drive#user",
        "displayName": email,
        "me": me,
        "permissionId": permission_id(email),
        "emailAddress": email,
    }


def permission_id(email: str) -> str:
    return str(int.from_bytes(hashlib.sha256(email.encode()).digest()[:8], "big"))[:20].rjust(20, "1")


def link(file: File) -> str:
    return _LINKS.get(file.mime_type, "https://drive.google.com/file/d/{}/view?usp=drivesdk").format(file.file_id)


_CAPABILITIES = (
    "canAcceptOwnership",
    "canAddChildren",
    "canAddMyDriveParent",
    "canChangeCopyRequiresWriterPermission",
    "canChangeViewersCanCopyContent",
    "canComment",
    "canCopy",
    "canDelete",
    "canDisableInheritedPermissions",
    "canDownload",
    "canEdit",
    "canEnableInheritedPermissions",
    "canListChildren",
    "canModifyContent",
    "canModifyContentRestriction",
    "canModifyEditorContentRestriction",
    "canModifyLabels",
    "canModifyOwnerContentRestriction",
    "canMoveChildrenWithinDrive",
    "canMoveItemOutOfDrive",
    "canMoveItemWithinDrive",
    "canReadLabels",
    "canReadRevisions",
    "canRemoveChildren",
    "canRemoveContentRestriction",
    "canRemoveMyDriveParent",
    "canRename",
    "canShare",
    "canTrash",
    "canUntrash",
)


def capabilities(file: File) -> dict[str, bool]:
    children = {"canAddChildren", "canListChildren", "canMoveChildrenWithinDrive", "canRemoveChildren"}
    never = {
        "canAcceptOwnership",
        "canAddMyDriveParent",
        "canModifyLabels",
        "canReadLabels",
        "canRemoveContentRestriction",
        "canEnableInheritedPermissions",
        "canDisableInheritedPermissions",
        "canModifyEditorContentRestriction",
    }
    folder = file.mime_type == FOLDER
    return {
        name: name not in never and (folder or name not in children) and not (folder and name == "canCopy")
        for name in _CAPABILITIES
    }


def file_json(file: File) -> dict[str, Any]:
    """The whole v3 resource."""
    out: dict[str, Any] = {
        "kind": "drive#file",
        "id": file.file_id,
        "name": file.name,
        "mimeType": file.mime_type,
        "starred": False,
        "trashed": file.trashed,
        "explicitlyTrashed": file.trashed,
        "parents": file.parents,
        "spaces": ["drive"],
        "version": str(file.version),
        "webViewLink": link(file),
        "iconLink": f"https://drive-thirdparty.googleusercontent.com/16/type/{file.mime_type}",
        "hasThumbnail": False,
        "thumbnailVersion": "0",
        "viewedByMe": True,
        "viewedByMeTime": stamp(file.modified),
        "createdTime": stamp(file.created),
        "modifiedTime": stamp(file.modified),
        "modifiedByMeTime": stamp(file.modified),
        "modifiedByMe": True,
        "owners": [user(file.owner)],
        "lastModifyingUser": user(file.owner),
        "shared": len(file.permissions) > 1,
        "ownedByMe": True,
        "capabilities": capabilities(file),
        "viewersCanCopyContent": True,
        "copyRequiresWriterPermission": False,
        "writersCanShare": True,
        "permissions": [dict(p) for p in file.permissions.values()],
        "permissionIds": list(file.permissions),
        "quotaBytesUsed": str(len(file.content or b"")),
        "isAppAuthorized": True,
        "linkShareMetadata": {"securityUpdateEligible": False, "securityUpdateEnabled": True},
        "inheritedPermissionsDisabled": False,
    }
    if file.content is not None and not file.native:
        suffix = file.name.rpartition(".")[2] if "." in file.name else ""
        out |= {
            "size": str(len(file.content)),
            "md5Checksum": hashlib.md5(file.content, usedforsecurity=False).hexdigest(),
            "sha1Checksum": hashlib.sha1(file.content, usedforsecurity=False).hexdigest(),
            "sha256Checksum": hashlib.sha256(file.content).hexdigest(),
            "headRevisionId": file.revisions[-1].revision_id if file.revisions else "",
            "originalFilename": file.more.get("originalFilename", file.name),
            "webContentLink": f"https://drive.google.com/uc?id={file.file_id}&export=download",
            "fileExtension": suffix,
            "fullFileExtension": suffix,
        }
    if file.mime_type in _EXPORTS:
        out["size"] = _SMALLEST
        place, kinds = _EXPORTS[file.mime_type]
        out["exportLinks"] = {kind: place.format(file.file_id, short) for kind, short in kinds.items()}
    return out | file.more


def file_json_v2(file: File, base: str) -> dict[str, Any]:
    """The v2 resource, as far as conditional updates need it."""
    new = file_json(file)
    here = f"{base}drive/v2/files/{file.file_id}"
    out: dict[str, Any] = {
        "kind": "drive#file",
        "id": file.file_id,
        "etag": file.etag,
        "selfLink": here,
        "alternateLink": link(file),
        "title": file.name,
        "mimeType": file.mime_type,
        "labels": {
            "starred": bool(file.more.get("starred", False)),
            "hidden": False,
            "trashed": file.trashed,
            "restricted": False,
            "viewed": True,
        },
        "createdDate": stamp(file.created),
        "modifiedDate": stamp(file.modified),
        "modifiedByMeDate": stamp(file.modified),
        "lastViewedByMeDate": stamp(file.modified),
        "markedViewedByMeDate": "1970-01-01T00:00:00.000Z",
        "version": str(file.version),
        "parents": [
            {
                "kind": "drive#parentReference",
                "id": parent,
                "selfLink": f"{here}/parents/{parent}",
                "parentLink": f"{base}drive/v2/files/{parent}",
                "isRoot": parent.startswith("0A"),
            }
            for parent in file.parents
        ],
        "ownerNames": [file.owner],
        "lastModifyingUserName": file.owner,
        "quotaBytesUsed": new["quotaBytesUsed"],
        "editable": True,
        "copyable": True,
        "writersCanShare": True,
        "shared": new["shared"],
        "explicitlyTrashed": file.trashed,
        "appDataContents": False,
        "spaces": ["drive"],
    }
    for name in (
        "md5Checksum",
        "sha1Checksum",
        "sha256Checksum",
        "headRevisionId",
        "originalFilename",
        "fileExtension",
        "description",
        "exportLinks",
    ):
        if name in new:
            out[name] = new[name]
    if "md5Checksum" in new:
        out |= {"fileSize": new["size"], "downloadUrl": f"{base}drive/v2/files/{file.file_id}?alt=media"}
    properties = [
        {"kind": "drive#property", "key": key, "value": value, "visibility": visibility}
        for visibility, held in (
            ("PUBLIC", file.more.get("properties", {})),
            ("PRIVATE", file.more.get("appProperties", {})),
        )
        for key, value in held.items()
    ]
    if properties:
        out["properties"] = properties
    return out
