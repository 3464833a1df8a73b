"""What the shell completes from the ledger: ids, workflows, steps, choices. It never fails and never takes long."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from quire.client.client import Client

_MOST = 50


def _asked(ctx: click.Context, ask: Callable[[Client], Awaitable[list[CompletionItem]]]) -> list[CompletionItem]:
    from quire.surfaces.cli.command import Session

    session = Session()

    async def inside(client: Client) -> list[CompletionItem]:
        return await ask(client)

    try:
        return session.with_client(inside)
    except Exception:  # noqa: BLE001 - a shell that completes nothing is better than one that prints an error
        return []


def records(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    async def ask(client: Client) -> list[CompletionItem]:
        found = await client.find(text=incomplete, limit=_MOST, order="updated" if not incomplete else "id")
        fitting = [record for record in found if record.record_id.startswith(incomplete)]
        return [CompletionItem(record.record_id, help=f"{record.status} {record.step}") for record in fitting]

    return _asked(ctx, ask)


def workflows(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    async def ask(client: Client) -> list[CompletionItem]:
        from quire.ledger.engine import definitions

        names = [row["name"] for row in await definitions(client.ledger)]
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]

    return _asked(ctx, ask)


def _record_of(ctx: click.Context) -> str:
    return str(ctx.params.get("record_id") or "")


def steps(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Steps of the record's workflow; where a record is to be moved, its successors."""

    async def ask(client: Client) -> list[CompletionItem]:
        from quire.ledger.engine import definition, definitions

        record_id = _record_of(ctx)
        if record_id:
            record = await client.get(record_id)
            rows: list[Any] = (await definition(client.ledger, record.workflow))["steps"]
            if ctx.info_name == "move":
                here: Any = next((row for row in rows if row["name"] == record.step), {"then": []})
                return [CompletionItem(name) for name in here["then"] if name.startswith(incomplete)]
        else:
            rows = [row for found in await definitions(client.ledger) for row in found["steps"]]
        return [CompletionItem(row["name"]) for row in rows if row["name"].startswith(incomplete)]

    return _asked(ctx, ask)


def choices(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """What may be answered to the record's question."""

    async def ask(client: Client) -> list[CompletionItem]:
        from quire.model.wait import On, load_waits

        record = await client.get(_record_of(ctx))
        asked = [wait for wait in load_waits(record.waits) if wait.on is On.QUESTION]
        words = [word for wait in asked for word in (wait.about or {}).get("choices", [])]
        return [CompletionItem(word) for word in words if word.startswith(incomplete)]

    return _asked(ctx, ask)
