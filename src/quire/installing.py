"""The command that installs an extra as it works here: from a clone, from a wheel, or from an index."""

from __future__ import annotations

import json
import shlex
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any
from urllib.parse import unquote, urlsplit


def install(*extras: str) -> str:
    """Return the command that adds these extras to the installed Quire, from the place that it was installed from."""
    return _command(_origin(), ",".join(extras))


def _origin() -> dict[str, Any]:
    """Where pip installed Quire from; nothing, if it took it from an index."""
    try:
        text = distribution("quire").read_text("direct_url.json")
    except PackageNotFoundError:
        text = None
    found = json.loads(text) if text else {}
    return found if isinstance(found, dict) else {}


def _command(origin: dict[str, Any], extras: str) -> str:
    url = str(origin.get("url", ""))
    if "vcs_info" in origin:
        vcs = origin["vcs_info"]
        return "pip install " + shlex.quote(f"quire[{extras}] @ {vcs['vcs']}+{url}@{vcs['commit_id']}")
    if url.startswith("file:"):
        editable = "-e " if origin.get("dir_info", {}).get("editable") else ""
        return f"pip install {editable}{shlex.quote(unquote(urlsplit(url).path) + f'[{extras}]')}"
    return "pip install " + shlex.quote(f"quire[{extras}] @ {url}" if url else f"quire[{extras}]")
