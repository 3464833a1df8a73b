"""Chat as the control plane: the verbs of the client as tools of the Model Context Protocol.

``tools`` and ``prompts`` know no protocol; ``server`` owns the library and speaks it over stdio and HTTP. Needs the
extra ``mcp``.
"""

from __future__ import annotations
