"""Calls of Drive v3 under Google's own names. Files are addressed by id; creates carry one that was made before."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from quire.clock import new_id
from quire.google.budget import Urgency
from quire.google.error import AlreadyThere
from quire.google.transport import Transport

FOLDER = "application/vnd.google-apps.folder"
SPREADSHEET = "application/vnd.google-apps.spreadsheet"
_FIELDS = "id,name,mimeType,parents,version,sha256Checksum,size,trashed,appProperties"


class Drive:
    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    def _url(self, file_id: str = "", *, upload: bool = False) -> str:
        rest = f"/{quote(file_id, safe='')}" if file_id else ""
        return f"{self.transport.drive}{'upload/' if upload else ''}drive/v3/files{rest}"

    async def _call(self, method: str, url: str, what: str, *, write: bool, repeatable: bool, **given: Any) -> Any:
        urgency = given.pop("urgency", Urgency.ARCHIVE)
        params = {"supportsAllDrives": "true", **given.pop("params", {})}
        return await self.transport.call(
            method,
            url,
            what=what,
            urgency=urgency,
            write=write,
            repeatable=repeatable,
            params=params,
            metered=False,
            **given,
        )

    async def files_generate_ids(self, count: int = 10) -> list[str]:
        """Ids for files to come: whoever creates with one of them twice makes one file."""
        answer = await self._call(
            "GET",
            self._url("generateIds"),
            "asking Drive for ids",
            write=False,
            repeatable=True,
            params={"count": count},
        )
        return [str(found) for found in answer.json.get("ids", [])]

    async def files_get(self, file_id: str, *, fields: str = _FIELDS) -> dict[str, Any]:
        answer = await self._call(
            "GET",
            self._url(file_id),
            f"looking at the file {file_id}",
            write=False,
            repeatable=True,
            params={"fields": fields},
        )
        found: dict[str, Any] = answer.json
        return found

    async def files_get_media(self, file_id: str) -> bytes:
        answer = await self._call(
            "GET",
            self._url(file_id),
            f"reading the file {file_id}",
            write=False,
            repeatable=True,
            params={"alt": "media"},
        )
        content: bytes = answer.body
        return content

    async def files_create(
        self, metadata: Mapping[str, Any], content: bytes | None = None, *, fields: str = _FIELDS
    ) -> dict[str, Any]:
        """A new file. With an ``id`` in the metadata a repeat makes no twin; the file that is there is the answer."""
        known = str(metadata.get("id", ""))
        what = f"creating the file {metadata.get('name', '')!r}"
        try:
            if content is None:
                answer = await self._call(
                    "POST",
                    self._url(),
                    what,
                    write=True,
                    repeatable=bool(known),
                    params={"fields": fields},
                    body=dict(metadata),
                )
            else:
                body, kind = _multipart(metadata, content)
                answer = await self._call(
                    "POST",
                    self._url(upload=True),
                    what,
                    write=True,
                    repeatable=bool(known),
                    params={"fields": fields, "uploadType": "multipart"},
                    content=body,
                    headers={"Content-Type": kind},
                )
        except AlreadyThere:
            if not known:
                raise
            return await self.files_get(known, fields=fields)
        found: dict[str, Any] = answer.json
        return found

    async def files_update(
        self, file_id: str, metadata: Mapping[str, Any], content: bytes | None = None, *, fields: str = _FIELDS
    ) -> dict[str, Any]:
        """New metadata, and new content if any is given. The same again is the same."""
        what = f"updating the file {file_id}"
        if content is None:
            answer = await self._call(
                "PATCH",
                self._url(file_id),
                what,
                write=True,
                repeatable=True,
                params={"fields": fields},
                body=dict(metadata),
            )
        else:
            body, kind = _multipart(metadata, content)
            answer = await self._call(
                "PATCH",
                self._url(file_id, upload=True),
                what,
                write=True,
                repeatable=True,
                params={"fields": fields, "uploadType": "multipart"},
                content=body,
                headers={"Content-Type": kind},
            )
        found: dict[str, Any] = answer.json
        return found

    async def files_copy(self, file_id: str, metadata: Mapping[str, Any], *, fields: str = _FIELDS) -> dict[str, Any]:
        """A copy. Google takes no id for a copy of a document, so a lost answer may have left one."""
        what = f"copying the file {file_id}"
        answer = await self._call(
            "POST",
            f"{self._url(file_id)}/copy",
            what,
            write=True,
            repeatable=False,
            params={"fields": fields},
            body=dict(metadata),
        )
        found: dict[str, Any] = answer.json
        return found

    async def files_move(self, file_id: str, *, add: str, remove: str, fields: str = _FIELDS) -> dict[str, Any]:
        """Into another folder. The same again is the same."""
        params = {"fields": fields, "addParents": add, **({"removeParents": remove} if remove else {})}
        answer = await self._call(
            "PATCH",
            self._url(file_id),
            f"moving the file {file_id}",
            write=True,
            repeatable=True,
            params=params,
            body={},
        )
        found: dict[str, Any] = answer.json
        return found

    async def files_export(self, file_id: str, kind: str) -> bytes:
        """The content of a document in another format."""
        answer = await self._call(
            "GET",
            f"{self._url(file_id)}/export",
            f"exporting the file {file_id}",
            write=False,
            repeatable=True,
            params={"mimeType": kind},
        )
        content: bytes = answer.body
        return content

    async def files_delete(self, file_id: str) -> None:
        """Gone, for good. A second time it is ``Missing``."""
        await self._call("DELETE", self._url(file_id), f"deleting the file {file_id}", write=True, repeatable=True)

    async def changes_start(self) -> str:
        """The token from which on changes are listed."""
        url = f"{self.transport.drive}drive/v3/changes/startPageToken"
        answer = await self._call("GET", url, "asking Drive where its changes are", write=False, repeatable=True)
        return str(answer.json["startPageToken"])

    async def changes_list(self, token: str, *, fields: str = _FIELDS) -> tuple[list[dict[str, Any]], str]:
        """The files that have changed since the token, and the next token."""
        found: list[dict[str, Any]] = []
        url = f"{self.transport.drive}drive/v3/changes"
        params = {"fields": f"nextPageToken,newStartPageToken,changes(file({fields}))", "pageToken": token}
        params |= {"includeItemsFromAllDrives": "true", "pageSize": "1000"}
        while True:
            answer = await self._call(
                "GET", url, "reading what has changed in Drive", write=False, repeatable=True, params=params
            )
            found += [one["file"] for one in answer.json.get("changes", ()) if one.get("file")]
            if not (page := str(answer.json.get("nextPageToken", ""))):
                return found, str(answer.json.get("newStartPageToken", token))
            params["pageToken"] = page

    async def permissions_list(self, file_id: str) -> list[dict[str, Any]]:
        """Who may do what with the file, all pages."""
        found: list[dict[str, Any]] = []
        params = {"fields": "nextPageToken,permissions(id,type,role,emailAddress)", "pageSize": 100}
        while True:
            answer = await self._permissions("GET", file_id, "", write=False, params=params)
            found += answer.get("permissions", [])
            if not (page := str(answer.get("nextPageToken", ""))):
                return found
            params["pageToken"] = page

    async def permissions_create(
        self, file_id: str, who: str, role: str, *, notify: bool, message: str = ""
    ) -> dict[str, Any]:
        """Give a person a role. Without a notice a repeat is harmless; each one with a notice mails the person."""
        params = {"sendNotificationEmail": "true" if notify else "false"}
        params |= {"emailMessage": message} if notify and message else {}
        body = {"type": "user", "role": role, "emailAddress": who}
        return await self._permissions("POST", file_id, "", write=True, repeatable=not notify, params=params, body=body)

    async def permissions_update(self, file_id: str, permission_id: str, role: str) -> dict[str, Any]:
        return await self._permissions("PATCH", file_id, permission_id, write=True, body={"role": role})

    async def permissions_delete(self, file_id: str, permission_id: str) -> None:
        await self._permissions("DELETE", file_id, permission_id, write=True)

    async def _permissions(
        self, method: str, file_id: str, permission_id: str, *, write: bool, repeatable: bool = True, **given: Any
    ) -> dict[str, Any]:
        rest = f"/{quote(permission_id, safe='')}" if permission_id else ""
        what = f"{'changing' if write else 'reading'} who may see the file {file_id}"
        answer = await self._call(
            method, f"{self._url(file_id)}/permissions{rest}", what, write=write, repeatable=repeatable, **given
        )
        found: dict[str, Any] = answer.json
        return found

    async def files_list(self, q: str, *, fields: str = f"files({_FIELDS})") -> Sequence[dict[str, Any]]:
        """Files that match, all pages. For people's eyes: a search by name lags behind and finds twins."""
        found: list[dict[str, Any]] = []
        page = ""
        while True:
            params = {"q": q, "fields": f"nextPageToken,{fields}", "includeItemsFromAllDrives": "true"}
            if page:
                params["pageToken"] = page
            answer = await self._call(
                "GET", self._url(), "listing files", write=False, repeatable=True, params=params, urgency=Urgency.VIEW
            )
            found += answer.json.get("files", [])
            page = str(answer.json.get("nextPageToken", ""))
            if not page:
                return found


def _multipart(metadata: Mapping[str, Any], content: bytes) -> tuple[bytes, str]:
    mark = new_id("quire-part-")
    kind = str(metadata.get("mimeType", "application/octet-stream"))
    head = f"--{mark}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n{json.dumps(dict(metadata))}\r\n"
    body = head.encode() + f"--{mark}\r\nContent-Type: {kind}\r\n\r\n".encode() + content + f"\r\n--{mark}--".encode()
    return body, f"multipart/related; boundary={mark}"
