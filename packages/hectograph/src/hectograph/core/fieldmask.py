"""Field masks: which parts of an answer are wanted, and which parts of an object a request replaces.

The grammar is that of the ``fields`` parameter: ``a,b.c,d(e,f/g)``, ``*`` for everything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from hectograph.core.schema import camel

#: A mask is a tree; an empty branch means "all of it".
Mask = dict[str, "Mask"]

_TOKEN = re.compile(r"[A-Za-z0-9_\-$@]+|[(),./*]")


class BadMask(ValueError):
    """The text is no field mask."""


def parse(text: str) -> Mask:
    tokens = _TOKEN.findall(text)
    if "".join(tokens) != re.sub(r"\s+", "", text):
        raise BadMask(text)
    mask: Mask = {}
    rest = _fields(tokens, 0, mask)
    if rest != len(tokens):
        raise BadMask(text)
    return mask


def _fields(tokens: list[str], at: int, into: Mask) -> int:
    while at < len(tokens):
        branch = into
        before: Mask = into
        while True:
            if at >= len(tokens) or tokens[at] in "(),./":
                raise BadMask("".join(tokens))
            name = tokens[at] if tokens[at] == "*" else camel(tokens[at])
            fresh = name not in branch
            before, branch = branch, branch.setdefault(name, {})
            at += 1
            if at < len(tokens) and tokens[at] in "./":
                if not fresh and not branch:
                    branch = {}  # the whole field is wanted already
                at += 1
                continue
            break
        if at < len(tokens) and tokens[at] == "(":
            at = _fields(tokens, at + 1, branch)
            if at >= len(tokens) or tokens[at] != ")":
                raise BadMask("".join(tokens))
            at += 1
        else:
            before[name] = {}
        if at < len(tokens) and tokens[at] == ",":
            at += 1
            continue
        return at
    return at


def paths(mask: Mask, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every leaf of a mask as a path."""
    for name, branch in mask.items():
        here = (*before, name)
        if branch:
            yield from paths(branch, here)
        else:
            yield here


def chosen(value: Any, mask: Mask) -> Any:
    """The parts of an answer that a mask names; lists are looked through, what is missing stays missing."""
    if not mask or ("*" in mask and not mask["*"]):
        return value
    if isinstance(value, list):
        return [chosen(item, mask) for item in value]
    if not isinstance(value, Mapping):
        return value
    out: dict[str, Any] = {}
    for name, item in value.items():
        branch = mask.get(name, mask.get("*"))
        if branch is not None:
            out[name] = chosen(item, branch)
    return out


def wants(mask: Mask, *path: str) -> bool:
    """Whether any part below a path is wanted."""
    for name in path:
        if not mask or "*" in mask:
            return True
        if name not in mask:
            return False
        mask = mask[name]
    return True


def merged(old: Mapping[str, Any], new: Mapping[str, Any], mask: Mask) -> dict[str, Any]:
    """The old object with what the mask names taken from the new one; named and absent means removed."""
    if not mask or "*" in mask:
        return dict(new)
    out = dict(old)
    for name, branch in mask.items():
        given = new.get(name)
        if branch and "*" not in branch:
            inner = merged(out.get(name) or {}, given or {}, branch)
            if inner:
                out[name] = inner
            else:
                out.pop(name, None)
        elif given is None:
            out.pop(name, None)
        else:
            out[name] = given
    return out
