"""Keeping keys out of everything that is stored, logged or shown."""

from __future__ import annotations

import os
import re

_NAMES = re.compile(r"(_API_KEY|_KEY|_TOKEN|_SECRET|_PASSWORD)$")
#: What keys of well-known providers look like.
_SHAPES = re.compile(r"\b(sk-[A-Za-z0-9_-]{16,}|AIza[0-9A-Za-z_-]{20,}|xai-[A-Za-z0-9]{16,}|gsk_[A-Za-z0-9]{16,})")

_known: set[str] = set()


def remember(secret: str | None) -> None:
    """This text is a secret: it is blacked out wherever it turns up."""
    if secret and len(secret) >= 6:
        _known.add(secret)


def looks_secret(text: str) -> bool:
    return bool(_SHAPES.search(text))


def blacked_out(text: str) -> str:
    """The text with every known secret, and whatever looks like one, replaced."""
    found = {value for name, value in os.environ.items() if _NAMES.search(name) and len(value) >= 8}
    for secret in sorted(found | _known, key=len, reverse=True):
        text = text.replace(secret, "[secret]")
    return _SHAPES.sub("[secret]", text)
