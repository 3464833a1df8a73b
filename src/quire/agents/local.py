"""A small model on this machine, without a key and without a network.

``quire model fetch`` brings the weights of SmolLM2-135M-Instruct and the runtime that computes with them (see
``quire.agents.shelf``). The model is very small: it writes fluent sentences and reasons about nothing. It shows that a
real model runs. A mission that matters wants a larger one: another file of weights (``quire model fetch NAME --from``),
or a server of llama.cpp, Ollama or vLLM (``openai:NAME`` with ``base_url``).
"""

from __future__ import annotations

import os
from threading import Lock
from typing import TYPE_CHECKING, Any

from quire.agents import shelf
from quire.errors import DefinitionError

if TYPE_CHECKING:
    from pydantic_ai.models import Model

#: The servers of this process, by the file of their weights.
_servers: dict[str, Any] = {}
_starting = Lock()


def check(name: str = "") -> None:
    """Raise if this model, or the runtime, is not on this machine."""
    shelf.weights(name or shelf.DEFAULT)
    if not shelf.has_runtime():
        raise DefinitionError(f"the runtime of local models is not on this machine; {shelf.HOW}")


def server(name: str = "") -> Any:
    """Return the server of this model, in this process on a port of its own on loopback.

    It is started once, whichever threads ask.
    """
    with _starting:
        check(name)
        path = str(shelf.weights(name or shelf.DEFAULT))
        if path not in _servers:
            _servers[path] = _server(path)
        return _servers[path]


def _server(path: str) -> Any:
    import xllamacpp  # type: ignore[import-not-found]  # fetched, and of no extra

    params = xllamacpp.CommonParams()
    params.model.path = path
    params.n_ctx = 4096
    params.n_parallel = 1
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.verbosity = 0
    # Threads that wait for each other at every token come to a crawl on a machine that does anything else.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = max(1, (os.cpu_count() or 1) // 2)
    return xllamacpp.Server(params)


def model(name: str = "") -> Model:
    """Return the local model, as one of an OpenAI-compatible server."""
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(base_url=f"{server(name).listening_address}/v1", api_key="none")
    # Left to itself it goes on for ever.
    return OpenAIChatModel(name or shelf.DEFAULT, provider=provider, settings={"max_tokens": 300})
