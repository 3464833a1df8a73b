"""The page ``/outbox``: everything that would have left the house, the newest first."""

from __future__ import annotations

from hectograph.core.html import escape, page
from hectograph.core.http import Response
from hectograph.world import World


def show(world: World) -> Response:
    with world.lock:
        left = list(reversed(world.outgoing.left))
    out = "".join(
        f"<div class=card><b>{escape(one.summary)}</b><div class=quiet>{escape(one.at[:19].replace('T', ' '))} · "
        f"{escape(one.kind)} · {escape(one.sender)} → {escape(', '.join(one.to))}</div>"
        f"<details><summary>source</summary><pre>{escape(one.content)}</pre></details></div>"
        for one in left
    )
    return page("Outbox", out or "<p class=quiet>Nothing has left.</p>", "/outbox")
