"""``/metrics`` for Prometheus. Nothing is counted before the first question, and nothing between two of them."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter
from starlette.responses import Response

from quire.client.client import Client
from quire.surfaces.server.asking import Viewer, problems
from quire.surfaces.telemetry.following import Following, last_seq
from quire.surfaces.telemetry.metrics import CONTENT_TYPE, Meter
from quire.surfaces.telemetry.tracing import standing

#: At one question at most so many times a thousand lines of the log are read; the rest at the next.
MOST_LOOKS = 20

router = APIRouter(responses=problems())


class Measuring:
    """Counts what the log tells, as far as it has been read."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._following = Following(client.ledger)
        self._meter = Meter()
        self._seq: int | None = None
        self._lock = asyncio.Lock()

    async def text(self) -> str:
        async with self._lock:
            if self._seq is None:
                self._seq = await last_seq(self._client.ledger)
            for _ in range(MOST_LOOKS):
                seen = await self._following.look(self._seq)
                self._seq = seen.seq
                for one in seen.found:
                    self._meter.add(one.span)
                if not seen.more:
                    break
            return self._meter.text(await standing(self._client))


@router.get(
    "/metrics",
    response_class=Response,
    tags=["health"],
    responses={200: {"content": {"text/plain": {}}, "description": "Metrics, as Prometheus reads them."}},
)
async def metrics(at: Viewer) -> Response:
    """Metrics for Prometheus: records by status, workers, halts; runs, steps, effects and model calls since the first
    question to this process."""
    measuring: Measuring = at.request.app.state.measuring
    return Response(await measuring.text(), media_type=CONTENT_TYPE)
