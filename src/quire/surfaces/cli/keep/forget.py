"""The command ``quire forget``: of records that ended long ago only what makes them known remains."""

from __future__ import annotations

import click

from quire.client.client import Client
from quire.clock import iso
from quire.model.record import ENDED, Status
from quire.surfaces.cli.command import Exit, Session, verb, workflow_option
from quire.worker import forgetting


@verb(
    "forget",
    example="""
    quire forget --older 90d
    quire forget --older 365d --workflow publish --status ERROR
    """,
)
@click.option("--older", required=True, metavar="SPAN", help="Only records that ended longer ago, like 90d.")
@click.option(
    "--status",
    multiple=True,
    type=click.Choice(sorted(ENDED)),
    help="Of these statuses; without it DONE and CANCELLED. What failed may be tried again until it is forgotten.",
)
@workflow_option
def forget(session: Session, older: str, status: tuple[str, ...], workflow: str) -> int:
    """Forget the data, receipts and log lines of records that ended long ago.

    Id, dedupe key, status, version and the end of the log stay: a start under such an id is known and does nothing
    again. Receipts under a key of your own stay, and so do the ids of signals. This cannot be taken back. What a folder
    has not shown yet is kept; write a mirror or an export first if you need one.
    """
    span = forgetting.checked(older)
    asked = tuple(map(Status, status)) or forgetting.USUAL

    async def work(client: Client) -> None:
        before = await client.ledger.now() - span
        all_ = forgetting.Forgotten()
        while (
            some := await forgetting.forget_some(client.ledger, before, client.who, workflow=workflow, status=asked)
        ).records:
            all_ = all_.plus(some)
        tidied = await client.ledger.tidy(before)
        session.out.acted(
            f"forgot {all_.records} records that ended before {iso(before)}: {all_.lines} lines, {all_.receipts} "
            f"receipts, {tidied.blobs} long values",
            "",
            **all_._asdict(),
            blobs=tidied.blobs,
        )

    session.with_client(work)
    return Exit.OK
