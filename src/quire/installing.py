"""The command that installs an extra as it works here: from a clone, from a wheel, or from an index."""

from __future__ import annotations

import json
import re
import shlex
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from typing import Any
from urllib.parse import unquote, urlsplit


def install(*extras: str) -> str:
    """Return the command that adds these extras to the installed Quire.

    It takes them from the place that Quire was installed from. Where pip noted no place, the command names the packages
    of the extras and not Quire: an index may have a package of another author under that name.
    """
    try:
        quire = distribution("quire")
    except PackageNotFoundError:
        return "install Quire first, as docs/install.md says"
    origin = _origin(quire)
    return _from(origin, ",".join(extras)) if origin.get("url") else _packages(quire, extras)


def _origin(quire: Distribution) -> dict[str, Any]:
    text = quire.read_text("direct_url.json")
    found = json.loads(text) if text else {}
    return found if isinstance(found, dict) else {}


def _from(origin: dict[str, Any], extras: str) -> str:
    url = str(origin["url"])
    if "vcs_info" in origin:
        vcs = origin["vcs_info"]
        return "pip install " + shlex.quote(f"quire[{extras}] @ {vcs['vcs']}+{url}@{vcs['commit_id']}")
    if url.startswith("file:"):
        editable = "-e " if origin.get("dir_info", {}).get("editable") else ""
        return f"pip install {editable}{shlex.quote(unquote(urlsplit(url).path) + f'[{extras}]')}"
    return "pip install " + shlex.quote(f"quire[{extras}] @ {url}")


def _packages(quire: Distribution, extras: tuple[str, ...]) -> str:
    """Return the command that installs what these extras ask for, and the extras that they contain."""
    wanted, left, done = list[str](), list(extras), set[str]()
    while left:
        extra = left.pop(0)
        done.add(extra)
        for line in quire.requires or []:
            package, _, condition = (part.strip() for part in line.partition(";"))
            if not re.search(rf"""extra == ['"]{re.escape(extra)}['"]""", condition):
                continue
            inner = re.fullmatch(r"quire\[(.*)\]", package)
            if inner:
                left += [name for name in inner[1].split(",") if name not in done]
            elif package not in wanted and "sys_platform" not in condition:
                wanted.append(package)
    return "pip install " + " ".join(map(shlex.quote, wanted))
