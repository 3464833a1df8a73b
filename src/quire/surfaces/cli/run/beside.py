"""What runs beside a worker or a server: alerts, telemetry, and the readers of Google. It fails no record."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from quire.client.client import Client
from quire.errors import InputError, QuireError, did_you_mean
from quire.installing import install
from quire.surfaces.cli.command import Session

log = logging.getLogger("quire.workspace")


@asynccontextmanager
async def beside(session: Session, client: Client) -> AsyncIterator[None]:
    async with _alerting(session, client), _tracing(session, client), _reading(client):
        yield


@asynccontextmanager
async def _reading(client: Client) -> AsyncIterator[None]:
    """Bring what comes back from Google, where a workflow acts on it or starts by it."""
    if not _uses_google(client):
        yield
        return
    from quire.workspace.readers import Readers

    readers = Readers(client)
    try:
        await readers.look()  # a worker that ends when nothing is due has seen what had come
    except QuireError as error:
        log.warning("nobody could look at what has come from Google: %s", error)
    task = asyncio.ensure_future(readers.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _uses_google(client: Client) -> bool:
    kinds = {source.as_json()["kind"] for one in client.registry.workflows.values() for source, _ in one.sources}
    return "quire.workspace" in sys.modules or bool(kinds & {"form", "inbound", "dropped"})


@asynccontextmanager
async def _alerting(session: Session, client: Client) -> AsyncIterator[None]:
    if not session.config.alerts:
        yield
        return
    from quire.surfaces.alerts import channel
    from quire.surfaces.alerts.alerting import Alerting
    from quire.surfaces.alerts.answering import links

    alerts = channel.read(session.config.alerts)
    assert alerts is not None
    alerting = Alerting(client, alerts, links(client, session.config.groups), groups=session.config.groups)
    task = asyncio.ensure_future(alerting.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        with suppress(QuireError):  # what is not sent now, the next process sends
            await alerting.once()
            await alerting.release()


_TELEMETRY = ("otlp", "logs")


def checked_telemetry(settings: dict[str, str]) -> dict[str, str]:
    """What ``[telemetry]`` says; refused if it cannot be."""
    for name, value in settings.items():
        if name not in _TELEMETRY:
            raise InputError(f"telemetry: there is no {name!r}{did_you_mean(name, _TELEMETRY)}")
        if name == "logs" and value not in ("json", "text"):
            raise InputError(f"telemetry.logs is 'json' or 'text', not {value!r}")
        if name == "otlp" and not value.startswith(("http://", "https://")):
            raise InputError(
                f"telemetry.otlp is the address of a collector, like 'http://localhost:4318', not {value!r}"
            )
    return settings


@asynccontextmanager
async def _tracing(session: Session, client: Client) -> AsyncIterator[None]:
    endpoint = checked_telemetry(session.config.telemetry).get("otlp")
    if not endpoint:
        yield
        return
    try:
        from quire.surfaces.telemetry.export import Export
    except ImportError as error:
        raise InputError(f"telemetry.otlp needs OpenTelemetry ({install('telemetry')})") from error
    from quire.surfaces.telemetry.tracing import Tracing

    export = Export.otlp(endpoint)
    tracing = Tracing(client, export)
    task = asyncio.ensure_future(tracing.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        with suppress(QuireError):  # what is not sent now, the next process sends
            await tracing.once()
            await tracing.release()
        await asyncio.to_thread(export.close)
