"""``quire mcp``: chat as the control plane."""

from __future__ import annotations

import click

from quire.errors import InputError
from quire.installing import install
from quire.surfaces.cli import flows
from quire.surfaces.cli.command import Exit, Session, verb
from quire.surfaces.cli.run.up import listening, start_logging, until_ended


@verb(
    "mcp",
    example="""
    quire mcp
    quire mcp --http --port 8700
    """,
)
@click.option("--http", is_flag=True, help="Listen for chats over HTTP at /mcp instead of standard input.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen, with --http.")
@click.option("--port", type=click.IntRange(0, 65535), default=8700, show_default=True, help="The port, with --http.")
def mcp(session: Session, http: bool, host: str, port: int) -> int:
    """Serve a chat with tools and prompts: what is stuck and why, show, start, approve, retry, cancel, halt, missions.

    Without --http a chat program starts this command and talks over standard input and output; it acts as you do. With
    --http it is the same server as quire serve, behind the same gate: a token says who talks and what they may do.
    """
    start_logging(session)

    async def over_http() -> None:
        from quire.surfaces.server import serve

        async with session.client(make=True) as client:
            serving, address = await listening(serve, client, host, port, session)
            session.out.say(f"chats on {address}/mcp; Ctrl-C ends it", bold=True)
            await until_ended(serving)

    async def over_stdio() -> None:
        from quire.surfaces.chat.mcp import server

        google = session.config.mcp.get("google", [])
        async with session.client(make=True, workflows=flows.built_in(session)) as client:
            await server.over_stdio(client, session.config.groups, google)

    try:
        session.run(over_http() if http else over_stdio())
    except ImportError as error:
        raise InputError(f"the chat is not installed here ({install('mcp', 'web')})") from error
    return Exit.OK
