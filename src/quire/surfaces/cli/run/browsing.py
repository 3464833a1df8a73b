"""Showing the dashboard to whoever sits in front of the screen; to nobody else."""

from __future__ import annotations

import os
import sys
import threading
import webbrowser
from collections.abc import Mapping

#: Set when the dashboard was opened already: a start again after a change needs no second tab.
OPENED = "QUIRE_OPENED"


def has_screen(environment: Mapping[str, str], platform: str = sys.platform) -> bool:
    """Return whether a browser that is started here is seen by the person who started this."""
    if environment.get(OPENED) or environment.get("CI") or environment.get("SSH_CONNECTION"):
        return False
    if platform in ("darwin", "win32"):
        return True
    return bool(environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"))


def show(address: str, *, terminal: bool) -> bool:
    """Open the address in the person's browser if there is a person: a terminal, and a screen. Answers whether."""
    if not terminal or not has_screen(os.environ):
        return False
    # Some browsers keep their caller waiting until they are closed.
    threading.Thread(target=webbrowser.open, args=(address,), daemon=True, name="quire-browser").start()
    return True
