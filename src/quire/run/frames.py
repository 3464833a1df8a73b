"""Which frames of a traceback are the user's own code."""

from __future__ import annotations

import asyncio
import traceback
from pathlib import Path

#: The folders whose frames a reader of an error does not need. They are known by their place and not by their name: a
#: user's project may lie in a folder named quire.
_FOLDED = (Path(__file__).resolve().parents[1], Path(asyncio.__file__).resolve().parent)


def is_users(filename: str) -> bool:
    """Whether a frame of this file is the user's own code: neither the engine's nor asyncio's."""
    path = Path(filename).resolve()
    return not any(path.is_relative_to(folder) for folder in _FOLDED)


def users_frames(error: BaseException) -> list[traceback.FrameSummary]:
    """Return the frames of an error's traceback that are the user's own code, the innermost last."""
    return [frame for frame in traceback.extract_tb(error.__traceback__) if is_users(frame.filename)]
