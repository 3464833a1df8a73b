"""The names of models: ``provider:name``, and a few that need no provider."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path

from quire.errors import DefinitionError, did_you_mean

#: The model that answers from a script; the one on this machine; the library's own for tests.
SCRIPTED, LOCAL, TEST = "scripted", "local", "test"

#: Older names of providers.
RENAMED = {"google-gla": "google", "google-vertex": "google-cloud", "gemini": "google"}
#: Where a provider's key is looked for.
KEYS = {
    "google": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "openai": ("OPENAI_API_KEY",),
    "openai-chat": ("OPENAI_API_KEY",),
    "openai-responses": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY",),
}
#: What else a provider's library takes for a key.
ALSO = {
    "openai": ("OPENAI_ADMIN_KEY",),
    "openai-chat": ("OPENAI_ADMIN_KEY",),
    "openai-responses": ("OPENAI_ADMIN_KEY",),
    "anthropic": ("ANTHROPIC_AUTH_TOKEN",),
}


def split(name: str) -> tuple[str, str]:
    """Provider and name: ``google-gla:gemini-2.5-flash`` → ``google``, ``gemini-2.5-flash``."""
    provider, colon, rest = name.partition(":")
    if not colon:
        if name in (SCRIPTED, LOCAL, TEST):
            return name, ""
        if name.startswith("gemini"):
            return "google", name
        raise DefinitionError(f"the model {name!r} names no provider; write it like 'google:gemini-2.5-flash'")
    return RENAMED.get(provider, provider), rest


def problem(name: str) -> str:
    """Why no model can have this name; empty if one may."""
    try:
        provider, _ = split(name)
    except DefinitionError as error:
        return str(error)
    known = _known()
    plain = provider.partition("/")[0].replace("-", "_")
    if provider in (SCRIPTED, LOCAL, TEST) or not known or any(plain.startswith(one) for one in known):
        return ""
    return f"the library knows no provider {provider!r}{did_you_mean(provider, known)}"


@cache
def _known() -> list[str]:
    """The providers of the installed library, by the names of their modules: it need not be loaded for that."""
    found = find_spec("pydantic_ai")
    folders = [Path(place) / "providers" for place in (found.submodule_search_locations or [])] if found else []
    return sorted({file.stem for folder in folders for file in folder.glob("*.py") if not file.stem.startswith("_")})
