"""Cards with a text and buttons. A press on a button comes back as the signal ``posted.clicked``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def card(
    title: str, text: str = "", *, buttons: Mapping[str, str] = {}, fields: Mapping[str, str] = {}
) -> dict[str, Any]:
    """Return a card for ``chat.post``. ``buttons``: what each is called, by the word that comes back."""
    widgets: list[dict[str, Any]] = [{"textParagraph": {"text": text}}] if text else []
    widgets += [{"decoratedText": {"topLabel": label, "text": value}} for label, value in fields.items()]
    if buttons:
        made = [
            {"text": label, "onClick": {"action": {"function": word, "parameters": [{"key": "choice", "value": word}]}}}
            for word, label in buttons.items()
        ]
        widgets.append({"buttonList": {"buttons": made}})
    return {"header": {"title": title}, "sections": [{"widgets": widgets or [{"divider": {}}]}]}
