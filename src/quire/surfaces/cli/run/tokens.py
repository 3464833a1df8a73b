"""``quire token``: who may come in over the network, and as what."""

from __future__ import annotations

import click

from quire.client.client import Client
from quire.clock import iso
from quire.surfaces.cli.command import Session, verb
from quire.surfaces.server.auth import tokens
from quire.surfaces.server.auth.tokens import Role


@click.group("token", context_settings={"help_option_names": ["-h", "--help"]})
def token() -> None:
    """Make, list and revoke the tokens with which people and programs call the API."""


def _command(made: click.Command) -> click.Command:
    token.add_command(made)
    return made


@_command
@verb(
    "create",
    example="""
    quire token create ann@x.eu --role operator --expires 90d
    quire token create prometheus
    """,
)
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice([str(role) for role in Role]),
    default="viewer",
    show_default=True,
    help="What it may do.",
)
@click.option("--expires", metavar="SPAN", help="After so long it opens nothing; without it, never.")
def create(session: Session, name: str, role: str, expires: str | None) -> None:
    """Make a token for NAME: whoever acts with it is called so in the log.

    Its text is shown once. The ledger keeps a hash of it, from which it cannot be found again.
    """

    async def work() -> None:
        async with session.client(make=True) as client:
            text, made = await tokens.make_token(client.ledger, name, role, by=client.who, expires=expires)
            if session.json:
                session.out.emit(tokens.token_json(made) | {"token": text})
                return
            end = f" until {iso(made.expires_at)}" if made.expires_at is not None else ""
            session.out.say(f"{made.name} is {made.role.one}{end}; revoke it with: quire token revoke {made.token_id}")
            session.out.say(text, bold=True)

    session.run(work())


@_command
@verb("list", example="quire token list")
def list_(session: Session) -> None:
    """List the tokens, without what opens anything."""

    async def work(client: Client) -> None:
        found = await tokens.all_tokens(client.ledger)
        if session.json:
            for one in found:
                session.out.emit(tokens.token_json(one))
            return
        now = await client.ledger.now()
        rows = []
        for one in sorted(found, key=lambda one: one.made_at):
            state = "opens" if one.valid(now) else "revoked" if one.revoked_at is not None else "expired"
            rows.append((one.token_id, one.name, one.role, state, iso(one.made_at), iso(one.expires_at) or "never"))
        session.out.table(["token_id", "name", "role", "state", "made_at", "expires_at"], rows)

    session.with_client(work)


@_command
@verb("revoke", example="quire token revoke 4kd0x8m2qa")
@click.argument("token_id")
def revoke(session: Session, token_id: str) -> None:
    """Revoke a token: it opens nothing any more, and neither do sessions that were opened with it."""

    async def work(client: Client) -> None:
        gone = await tokens.revoke_token(client.ledger, token_id, by=client.who)
        session.out.acted(f"revoked {gone.token_id} of {gone.name}", "", **tokens.token_json(gone))

    session.with_client(work)
