"""Large values by their hash: part of the ledger, written with the commit that names them (protocol 20).

A column that holds JSON text holds ``@`` and a SHA-256 instead where the text is long: the same value is kept once, and
a move that does not change it does not write it again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from quire.errors import LedgerError

_MARK = "@sha256:"


def is_reference(text: str | None) -> bool:
    return text is not None and text[:1] == "@"


def kept_apart(text: str, into: dict[str, str]) -> str:
    """Return the reference that stands for ``text``; the text itself is put ``into`` the blobs to be written."""
    reference = _MARK + hashlib.sha256(text.encode()).hexdigest()
    into[reference] = text
    return reference


def resolved(reference: str, blobs: Mapping[str, str], where: str) -> str:
    """Return the text behind the reference. A missing one is an error with its hash, never an empty value."""
    text = blobs.get(reference)
    if text is None:
        raise LedgerError(f"the ledger has lost a value of {where}: there is no blob {reference.removeprefix(_MARK)}")
    return text
