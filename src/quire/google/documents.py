"""Calls of Docs v1 under Google's own names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from quire.google.budget import Urgency
from quire.google.transport import Transport

DOCS = "https://docs.googleapis.com/"


class Documents:
    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    def _url(self, document_id: str, verb: str = "") -> str:
        return f"{self.transport.endpoint or DOCS}v1/documents/{quote(document_id, safe='')}{verb}"

    async def get(self, document_id: str) -> dict[str, Any]:
        """The document with all of its tabs."""
        answer = await self.transport.call(
            "GET",
            self._url(document_id),
            what=f"reading the document {document_id}",
            urgency=Urgency.SETTLE,
            write=False,
            repeatable=True,
            params={"includeTabsContent": "true"},
            metered=False,
        )
        return answer.json

    async def batch_update(
        self, document_id: str, requests: Sequence[dict[str, Any]], *, revision: str
    ) -> dict[str, Any]:
        """Change the document as a whole, if it is still at this revision. So a repeat changes nothing twice."""
        body = {"requests": list(requests), "writeControl": {"requiredRevisionId": revision}}
        answer = await self.transport.call(
            "POST",
            self._url(document_id, ":batchUpdate"),
            what=f"changing the document {document_id}",
            urgency=Urgency.SETTLE,
            write=True,
            repeatable=False,
            body=body,
            metered=False,
        )
        return answer.json
