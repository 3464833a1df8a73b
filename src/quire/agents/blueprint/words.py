"""The words of a blueprint: one spelling inside, several accepted from outside.

``MAX_TURNS``, ``maxTurns``, ``max-turns`` and ``max_turns`` are the same word; ``initialPrompt`` is ``prompt``.
"""

from __future__ import annotations

import re
from typing import Any

#: Words that mean the same, by where they stand.
_SAME = {
    "": {
        "name": "mission",
        "turn_prompts": "turns",
        "worker_start_delay_ms": "start_delay_ms",
        "concurrency": "cap",
        "max_concurrency": "cap",
    },
    "agents": {"initial_prompt": "prompt", "name": "id", "system": "instructions", "turn_prompts": "turns"},
    "reducer": {"initial_prompt": "prompt", "name": "id", "system": "instructions"},
    "corrector": {"initial_prompt": "prompt", "system": "prompt"},
    "judge": {"initial_prompt": "prompt", "system": "prompt"},
}
#: Below these words nothing is a word of ours: turn numbers, JSON Schemas, scripts, settings of a provider.
_OPAQUE = {"turns", "output", "script", "settings", "inputs", "headers", "env"}


def plain(word: str) -> str:
    """``initialPrompt``, ``INITIAL_PROMPT`` and ``initial-prompt`` as ``initial_prompt``."""
    if not word.isupper():
        word = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", word)
    return word.replace("-", "_").replace(" ", "_").lower()


def spelled(place: str, word: str) -> str:
    """The word as it is spelled inside, in the part of the blueprint named ``place``."""
    found = plain(word)
    return _SAME.get(place, {}).get(found, found)


def normal(value: Any, place: str = "") -> Any:
    """The same blueprint with every word in its inner spelling. A word that stands twice keeps its first value."""
    if isinstance(value, list):
        return [normal(item, place) for item in value]
    if not isinstance(value, dict):
        return value
    found: dict[Any, Any] = {}
    for key, item in value.items():
        word = spelled(place, key) if isinstance(key, str) else key
        found.setdefault(word, item if word in _OPAQUE else normal(item, str(word)))
    return found
