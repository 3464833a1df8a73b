"""Calls of Slides v1 under Google's own names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from quire.google.budget import Urgency
from quire.google.transport import Transport

SLIDES = "https://slides.googleapis.com/"


class Presentations:
    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    async def get(self, presentation_id: str) -> dict[str, Any]:
        return await self._call("GET", presentation_id, "", "reading", write=False, repeatable=True)

    async def batch_update(
        self, presentation_id: str, requests: Sequence[dict[str, Any]], *, revision: str
    ) -> dict[str, Any]:
        """Change the deck as a whole, if it is still at this revision. So a repeat changes nothing twice."""
        body = {"requests": list(requests), "writeControl": {"requiredRevisionId": revision}}
        return await self._call(
            "POST", presentation_id, ":batchUpdate", "changing", write=True, repeatable=False, body=body
        )

    async def _call(self, method: str, deck: str, verb: str, doing: str, **given: Any) -> dict[str, Any]:
        url = f"{self.transport.endpoint or SLIDES}v1/presentations/{quote(deck, safe='')}{verb}"
        what = f"{doing} the presentation {deck}"
        answer = await self.transport.call(method, url, what=what, urgency=Urgency.SETTLE, metered=False, **given)
        return answer.json
