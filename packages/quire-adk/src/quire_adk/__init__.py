"""Sessions and artifacts of Google's Agent Development Kit, kept by Quire: on any ledger, and in any folder."""

from quire_adk.artifacts import QuireArtifactService
from quire_adk.sessions import QuireSessionService

__all__ = ["QuireArtifactService", "QuireSessionService"]
