"""The HTTP API and the dashboard: ``app(client)`` makes them, ``serve(client)`` runs them beside a worker.

Needs the extra ``web``; without it this import fails, and the command line says so.
"""

from __future__ import annotations

from quire.surfaces.server.doors import Limits
from quire.surfaces.server.serving import app, serve

__all__ = ["Limits", "app", "serve"]
