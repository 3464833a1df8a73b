"""Keeping keys out of everything that is stored, logged or shown."""

from __future__ import annotations

import os
import re
from typing import TypeVar

_NAMES = re.compile(r"(_API_KEY|_KEY|_TOKEN|_SECRET|_PASSWORD)$")
#: What keys of well-known providers look like.
_SHAPES = re.compile(r"\b(sk-[A-Za-z0-9_-]{16,}|AIza[0-9A-Za-z_-]{20,}|xai-[A-Za-z0-9]{16,}|gsk_[A-Za-z0-9]{16,})")

#: Keys that were used by this process.
_known: set[str] = set()

T = TypeVar("T")


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


def without_keys(value: T) -> T:
    """Plain data with every key that was used replaced: what a model or a tool repeats of one is not kept.

    Only keys that were really used: words that merely look like one belong to whoever said them.
    """
    found: object = value
    if isinstance(value, str):
        for secret in _known:
            if secret in value:
                found = str(found).replace(secret, "[secret]")
    elif isinstance(value, dict):
        found = {key: without_keys(item) for key, item in value.items()}
    elif isinstance(value, list):
        found = [without_keys(item) for item in value]
    return found  # type: ignore[return-value]  # of the same kind


def harmless(error: Exception) -> Exception:
    """The error itself, or, if its words hold a secret, another without it."""
    text = str(error)
    clean = blacked_out(text)
    return error if clean == text else RuntimeError(f"{type(error).__name__}: {clean}")
