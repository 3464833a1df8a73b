"""Stores Google's discovery documents anew, as an installed google-api-python-client carries them."""

from __future__ import annotations

import json
import lzma
import sys
from pathlib import Path
from typing import Any

from hectograph.core.discovery import DOCUMENTS

#: Texts for people. They are two thirds of a document, and nothing here reads them.
_FOR_PEOPLE = frozenset({"description", "enumDescriptions", "documentationLink", "icons"})


def _stripped(node: Any) -> Any:
    """Return the document without the texts for people. A property may itself be named "description": it stays."""
    if isinstance(node, dict):
        return {
            key: _stripped(value)
            for key, value in node.items()
            if key not in _FOR_PEOPLE or (key == "description" and isinstance(value, dict))
        }
    return [_stripped(item) for item in node] if isinstance(node, list) else node


def main() -> int:
    """Store the installed client library's documents of the APIs that are stored here already."""
    try:
        from googleapiclient import discovery_cache
    except ImportError:
        sys.stderr.write("google-api-python-client is not installed: its package carries the documents\n")
        return 1
    source = Path(discovery_cache.__file__).parent / "documents"
    for held in sorted(DOCUMENTS.glob("*.json.xz")):
        document = json.loads((source / held.stem).read_text(encoding="utf-8"))
        text = json.dumps(_stripped(document), sort_keys=True, separators=(",", ":"))
        held.write_bytes(lzma.compress(text.encode(), preset=9))
        sys.stdout.write(f"{held.name}: revision {document['revision']}, {held.stat().st_size} bytes\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
