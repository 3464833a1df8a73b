"""``converse``: an agent within a step of an ordinary workflow, durable like everything else there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from typing_extensions import TypeVar

from quire.agents.correction import Refused, classified
from quire.agents.missions.recording import Recording
from quire.agents.people import put
from quire.agents.secrets import harmless
from quire.agents.spend import LimitReached, Meter
from quire.clock import Span, iso
from quire.errors import QuireError
from quire.model.change import Rate
from quire.model.receipt import fingerprint
from quire.run.run import Run
from quire.workflows.retry import Fail

if TYPE_CHECKING:
    from pydantic_ai.agent import AbstractAgent
    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.run import AgentRunResult

T = TypeVar("T")
A = TypeVar("A")
X = TypeVar("X")
D = TypeVar("D")


#: Whose errors are a model's.
_LIBRARIES = {"pydantic_ai", "openai", "anthropic", "google", "httpx", "httpx2", "httpcore"}


async def converse(
    run: Run[D, X],
    agent: AbstractAgent[A, T],
    prompt: str,
    *,
    deps: A | None = None,
    approver: str | None = None,
    expires: Span | None = None,
    budget_usd: float | None = None,
    budget_tokens: int | None = None,
    retries: int = 4,
    rate: Rate | None = None,
    history: Sequence[ModelMessage] = (),
    name: str = "",
    timeout: Span = "2m",
    stream: bool = False,
) -> T:
    """Ask an agent and return its output. Nothing that was answered is asked again, whatever happens to the process.

    Tools that require approval become questions to ``approver``, and are done at most once; other tools may be
    repeated. When the budget is reached, or the model refuses to answer, the step waits for a person. Several
    conversations of the same agent with the same prompt in one step each need a ``name``. An agent without dependencies
    needs no ``deps``.
    """
    result = await conversed(
        run,
        agent,
        prompt,
        deps=deps,
        approver=approver,
        expires=expires,
        budget_usd=budget_usd,
        budget_tokens=budget_tokens,
        retries=retries,
        rate=rate,
        history=history,
        name=name,
        timeout=timeout,
        stream=stream,
    )
    return result.output


async def conversed(
    run: Run[D, X],
    agent: AbstractAgent[A, T],
    prompt: str,
    *,
    deps: A | None,
    approver: str | None,
    expires: Span | None,
    budget_usd: float | None,
    budget_tokens: int | None,
    retries: int,
    rate: Rate | None,
    history: Sequence[ModelMessage],
    name: str,
    timeout: Span,
    stream: bool,
) -> AgentRunResult[T]:
    """The same as ``converse``; all that the library tells of it, not only the output."""
    from quire.agents.receipts import Receipts

    who = agent.name or "the agent"
    called = name or f"{who} {fingerprint(prompt)[:8]}"
    meter = Meter({"usd": budget_usd, "tokens": budget_tokens})

    async def at_limit(reached: LimitReached) -> None:
        await raised(run, who, meter, reached, approver)

    async def at_refusal(refused: Refused) -> None:
        answer = await run.ask(
            f"{who}: {refused.fault.text}. What now?",
            show={"prompt": prompt, "refused": refused.fault.in_words()},
            choices=["ask again", "stop"],
            by=approver,
        )
        if not answer:
            raise refused

    receipts = Receipts(
        run,
        called,
        who=who,
        approver=approver,
        expires=expires,
        rate=rate,
        retries=retries,
        meter=meter,
        at_limit=at_limit,
        at_refusal=at_refusal,
        timeout=timeout,
        stream=stream,
    )
    options: dict[str, Any] = {"message_history": list(history)} if history else {}
    try:
        return await agent.run(prompt, deps=cast("A", deps), capabilities=[receipts], infer_name=False, **options)
    except (QuireError, Fail):
        raise
    except Exception as error:  # noqa: BLE001 - an agent's tools may raise anything
        raise failure(error) from None


async def raised(
    run: Run[Any, Any],
    who: str,
    meter: Meter,
    reached: LimitReached,
    approver: str | None,
    recording: Recording | None = None,
) -> None:
    """Ask a person whether the limit may be raised; return if so."""
    word = "until" if reached.limit == "wall" else reached.limit
    limit = meter.allowance[word]
    answer = await put(
        run,
        recording,
        f"{who} has reached its limit: {reached.text}. {'Go on without it' if word == 'until' else 'Double it'}?",
        show={"limit": reached.limit, "is": iso(limit) if word == "until" else limit, "spent": meter.spent.in_words()},
        choices=["raise", "stop"],
        by=approver,
    )
    if not answer:
        raise Fail(f"{answer.by or 'a person'} stopped {who} at its limit: {reached.text}")
    if word == "until":
        del meter.allowance[word]
    else:
        meter.allowance[word] = limit * 2


def failure(error: Exception) -> Exception:
    """An error as the step shall show it: what a model's is, by its class and with no key in it; others as they are."""
    if type(error).__module__.partition(".")[0] not in _LIBRARIES or (fault := classified(error)) is None:
        return harmless(error)
    sentence = f"{fault.type}: {fault.text}"
    return Fail(sentence) if fault.kind in ("permanent", "safety") else RuntimeError(sentence)
