"""Which methods of Google's APIs are played: ``hectograph --methods`` prints it, and METHODS.md keeps it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from hectograph.core.service import Service

_WIDTH = 120

_HEAD = """\
# Methods

What `hectograph --methods` prints. A method that is not played answers 501 with its name.
"""


def listing(services: Iterable[Service]) -> str:
    """Return for every API which methods are played and which are not, as Markdown."""
    out = [_HEAD]
    for service in services:
        names = sorted(method.name for method in service.api.methods)
        played = [name for name in names if service.plays(name)]
        left = [name for name in names if not service.plays(name)]
        name, _, version = service.version.partition(".")
        out.append(f"## {name.title()} {version}: {len(played)} of {len(names)}\n")
        out.append(_wrapped("Played:", played))
        if left:
            out.append(_wrapped("Not played:", left))
    return "\n".join(out)


def _wrapped(head: str, names: list[str]) -> str:
    text = f"{head} {', '.join(f'`{name}`' for name in names)}."
    return "\n".join(textwrap.wrap(text, _WIDTH, break_long_words=False, break_on_hyphens=False)) + "\n"
