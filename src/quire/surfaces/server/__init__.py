"""The HTTP API and the dashboard: ``app(client)`` makes them, ``serve(client)`` runs them beside a worker.

Needs the extra ``web``. It is imported when one of these names is asked for: tokens alone need nothing of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quire.surfaces.server.auth.gate import Limits
    from quire.surfaces.server.serving import app, serve

__all__ = ["Limits", "app", "serve"]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{'auth.gate' if name == 'Limits' else 'serving'}")
    return getattr(module, name)
