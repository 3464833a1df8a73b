"""Google's own client, unchanged but for the address in its discovery documents."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from hectograph import Emulator

Build = Callable[[str, str], Any]


@contextmanager
def building(emulator: Emulator, token: str = "") -> Iterator[Build]:
    """Give a function that builds clients of this emulator's APIs; they are closed at the end."""
    from google.auth.credentials import AnonymousCredentials
    from google.oauth2.credentials import Credentials
    from googleapiclient import discovery
    from googleapiclient.discovery_cache import get_static_doc

    made: list[Any] = []

    def build(name: str, version: str) -> Any:
        document = json.loads(get_static_doc(name, version))
        document["rootUrl"] = emulator.url
        document.pop("mtlsRootUrl", None)
        who: Any = Credentials(token) if token else AnonymousCredentials()  # type: ignore[no-untyped-call]  # untyped
        made.append(discovery.build_from_document(document, credentials=who))
        return made[-1]

    try:
        yield build
    finally:
        for one in made:
            one.close()
