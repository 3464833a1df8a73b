"""A document under test, through Google's own client."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest


@dataclass
class Doc:
    docs: Any
    drive: Any
    key: str

    def batch(self, *requests: dict[str, Any], **control: Any) -> dict[str, Any]:
        body = {"requests": list(requests), **({"writeControl": control} if control else {})}
        found: dict[str, Any] = self.docs.documents().batchUpdate(documentId=self.key, body=body).execute()
        return found

    def refused(self, *requests: dict[str, Any], **control: Any) -> str:
        """Return the text of the refusal of a batch."""
        from googleapiclient.errors import HttpError

        with pytest.raises(HttpError) as error:
            self.batch(*requests, **control)
        return f"{error.value.resp.status} {error.value.reason}"

    def get(self, **query: Any) -> dict[str, Any]:
        found: dict[str, Any] = self.docs.documents().get(documentId=self.key, **query).execute()
        return found

    def export(self, kind: str) -> bytes:
        found: bytes = self.drive.files().export(fileId=self.key, mimeType=kind).execute()
        return found

    @property
    def revision(self) -> str:
        return str(self.get(fields="revisionId")["revisionId"])

    def text(self, **query: Any) -> str:
        """Return the text of the body, tables and all."""
        return text_of(self.get(**query)["body"]["content"])


def text_of(content: list[dict[str, Any]]) -> str:
    out = ""
    for block in content:
        out += "".join(
            run.get("textRun", {}).get("content", "") for run in block.get("paragraph", {}).get("elements", [])
        )
        for row in block.get("table", {}).get("tableRows", []):
            out += "".join(text_of(cell["content"]) for cell in row["tableCells"])
    return out


def insert(text: str, at: int | None = 1, **where: Any) -> dict[str, Any]:
    if at is None:
        return {"insertText": {"text": text, "endOfSegmentLocation": where}}
    return {"insertText": {"text": text, "location": {"index": at, **where}}}


def delete(start: int, end: int, **where: Any) -> dict[str, Any]:
    return {"deleteContentRange": {"range": {"startIndex": start, "endIndex": end, **where}}}


def replace(text: str, new: str, **more: Any) -> dict[str, Any]:
    contains = {"text": text, "matchCase": True, **more.pop("contains", {})}
    return {"replaceAllText": {"containsText": contains, "replaceText": new, **more}}
