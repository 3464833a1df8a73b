"""A real MCP server for the tests: it writes notes into the file that NOTEBOOK names. Over stdio, or over HTTP."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from mcp.server import MCPServer

server = MCPServer("notebook")


@server.tool()
def note(text: str) -> str:
    """Write a note."""
    with Path(os.environ["NOTEBOOK"]).open("a") as book:
        book.write(f"{text}\n")
    return f"noted {text}"


@server.tool()
def burn() -> str:
    """Burn the notebook."""
    with Path(os.environ["NOTEBOOK"]).open("a") as book:
        book.write("burnt\n")
    return "burnt"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run("stdio")
