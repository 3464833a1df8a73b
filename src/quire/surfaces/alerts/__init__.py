"""Alerts: people hear, once for each cause, of what does not go on by itself.

``channel`` says where to, ``book`` what and when (pure), ``sending`` how (HTTP and SMTP), ``alerting`` does it.
"""

from __future__ import annotations
