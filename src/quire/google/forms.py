"""Calls of Forms v1 under Google's own names."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from quire.google.budget import Urgency
from quire.google.transport import Transport

FORMS = "https://forms.googleapis.com/"


class Forms:
    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    async def get(self, form_id: str) -> dict[str, Any]:
        return await self._call(form_id, "", f"reading the form {form_id}", {})

    async def responses_list(self, form_id: str, *, since: str = "") -> list[dict[str, Any]]:
        """The responses, or those given or edited since then; all pages, in no order."""
        found: list[dict[str, Any]] = []
        params: dict[str, Any] = {"pageSize": 5000, **({"filter": f"timestamp >= {since}"} if since else {})}
        while True:
            answer = await self._call(form_id, "/responses", f"reading the responses to {form_id}", params)
            found += answer.get("responses", [])
            if not (page := str(answer.get("nextPageToken", ""))):
                return found
            params["pageToken"] = page

    async def _call(self, form_id: str, rest: str, what: str, params: dict[str, Any]) -> dict[str, Any]:
        answer = await self.transport.call(
            "GET",
            f"{self.transport.endpoint or FORMS}v1/forms/{quote(form_id, safe='')}{rest}",
            what=what,
            urgency=Urgency.VIEW,
            write=False,
            repeatable=True,
            params=params,
            metered=False,
        )
        return answer.json
