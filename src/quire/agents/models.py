"""From the words of a blueprint to a model of pydantic-ai.

``provider:name`` for every provider that the library knows; ``scripted`` for the scripted model, ``local`` for a small
model on this machine; with ``base_url`` any server that speaks a provider's protocol, first of all OpenAI's.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from quire.agents import scripted, secrets
from quire.agents.blueprint.blueprint import ModelSpec
from quire.agents.provider import ALSO, KEYS, split
from quire.errors import DefinitionError
from quire.model.change import Rate
from quire.workflows.effect import rate as make_rate

if TYPE_CHECKING:
    from pydantic_ai.models import Model


def rate_of(spec: ModelSpec) -> Rate | None:
    """How often the model may be called, over all workers that share the ledger."""
    if spec.rate is None:
        return None
    count, _, per = spec.rate.partition("/")
    return make_rate(float(count), per.strip(), f"model {spec.model}")


def price_of(spec: ModelSpec) -> dict[str, float] | None:
    """What the blueprint says of the price; None: the library's list is asked. A local model is free."""
    if spec.price is not None:
        return {"input": spec.price.input, "output": spec.price.output}
    return {"input": 0.0, "output": 0.0} if split(spec.model)[0] == "local" else None


def without_key(spec: ModelSpec) -> str:
    """Return why this model cannot be asked, if its key is missing; empty if it has one, or needs none."""
    provider, _ = split(spec.model)
    names = (spec.key,) if spec.key is not None else KEYS.get(provider, ())
    other = spec.base_url is not None and provider != "google"
    if not names or other or any(os.environ.get(name) for name in (*names, *ALSO.get(provider, ()))):
        return ""
    return (
        f"the model {spec.model!r} needs a key: set the environment variable {' or '.join(names)}; "
        "without one there are the models 'scripted' and 'local' (quire model fetch)"
    )


def key_of(spec: ModelSpec, provider: str) -> str | None:
    """The key, from the environment and nowhere else."""
    usual = (f"{provider.upper().replace('-', '_')}_API_KEY",)
    names = (spec.key,) if spec.key is not None else KEYS.get(provider, usual)
    for name in names:
        if value := os.environ.get(name, ""):
            secrets.remember(value)
            return value
    if spec.key is not None:
        raise DefinitionError(
            f"the environment variable {spec.key!r}, which holds the key of {spec.model!r}, is not set"
        )
    return None


#: As many models are kept at a time.
MOST_MODELS = 64
#: Models are kept per event loop: their connections belong to it, and making one costs more than using it.
_built: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Model]] = WeakKeyDictionary()


async def ready(spec: ModelSpec) -> None:
    """What takes long before a model can be made is done beside the loop: the local one loads its weights."""
    provider, name = split(spec.model)
    if provider == "local":
        from quire.agents import local

        await asyncio.to_thread(local.server, name)


def built(spec: ModelSpec, agent_id: str) -> Model:
    """The model that answers for this agent, made once."""
    kept = _built.setdefault(asyncio.get_running_loop(), {})
    # Agents with the same model share its connections; a scripted one has answers of its own for each.
    whose = agent_id if split(spec.model)[0] == scripted.NAME else ""
    key = f"{whose} {os.environ.get(spec.key or '', '')} {spec.model_dump_json()}"
    name = hashlib.sha256(key.encode()).hexdigest()
    if name not in kept:
        if len(kept) >= MOST_MODELS:
            kept.pop(next(iter(kept)))
        kept[name] = build(spec, agent_id)
    return kept[name]


def build(spec: ModelSpec, agent_id: str) -> Model:
    """A model that answers for this agent."""
    provider, name = split(spec.model)
    if provider == scripted.NAME:
        return scripted.model(agent_id, spec.script)
    if provider == "local":
        from quire.agents import local

        return local.model(name)
    if problem := without_key(spec):
        raise DefinitionError(problem)
    key = key_of(spec, provider)
    try:
        if provider == "google":
            return _google(name, key, spec.base_url)
        if provider == "anthropic":
            return _anthropic(name, key, spec.base_url)
        if provider.startswith("openai"):
            return _openai(provider, name, key, spec.base_url)
        if spec.base_url is not None:
            raise DefinitionError(
                f"a base_url goes with google:, anthropic: and openai:, not with {provider!r}; "
                "servers that speak OpenAI's protocol (llama.cpp, Ollama, vLLM) are openai:NAME"
            )
        from pydantic_ai.models import infer_model

        return infer_model(f"{provider}:{name}" if name else provider)
    except DefinitionError:
        raise
    except Exception as error:  # noqa: BLE001 - each provider raises its own kind, and the text may name the key
        raise DefinitionError(f"the model {spec.model!r} cannot be used: {secrets.blacked_out(str(error))}") from None


def _google(name: str, key: str | None, base_url: str | None) -> Model:
    from google.genai.types import HttpRetryOptions
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    # One try each: what follows a failure is decided here, and survives this process.
    once = HttpRetryOptions(attempts=1)
    return GoogleModel(name, provider=GoogleProvider(api_key=key or "", base_url=base_url, retry_options=once))


def _anthropic(name: str, key: str | None, base_url: str | None) -> Model:
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    client = AsyncAnthropic(api_key=key, base_url=base_url, max_retries=0)
    return AnthropicModel(name, provider=AnthropicProvider(anthropic_client=client))


def _openai(provider: str, name: str, key: str | None, base_url: str | None) -> Model:
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    # Servers of one's own take any key, but the library wants one.
    given = key if key is not None or base_url is None else "none"
    made: Any = OpenAIProvider(openai_client=AsyncOpenAI(api_key=given, base_url=base_url, max_retries=0))
    if provider == "openai-responses" or (provider == "openai" and base_url is None):
        return OpenAIResponsesModel(name, provider=made)
    return OpenAIChatModel(name, provider=made)
