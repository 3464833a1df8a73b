"""Any agent of pydantic-ai, made durable on a Quire ledger.

``durable(agent)`` is a workflow of one step around the agent: each start is a record, each answer of its model and each
tool call a receipt. A process that dies in the middle loses nothing: whoever works on the ledger next goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Protocol

from pydantic import BaseModel
from typing_extensions import TypeVar

from quire.agents import history
from quire.agents.conversation import conversed
from quire.clock import Span
from quire.errors import DefinitionError
from quire.model.change import Rate
from quire.model.record import Record
from quire.run.run import Run
from quire.workflows.retry import Retry
from quire.workflows.workflow import Workflow

if TYPE_CHECKING:
    from pydantic_ai.agent import AbstractAgent
    from pydantic_ai.messages import ModelMessage

T = TypeVar("T")
A = TypeVar("A")


class Prompt(BaseModel):
    """What an agent is asked, and what was said before, as rows in the library's own format; at the end, all of it."""

    prompt: str
    history: list[dict[str, Any]] = []


class Starter(Protocol):
    """What starts and runs records: a ``quire.Client``."""

    async def start(self, workflow: Any, data: Any = None, *, id: str | None = None) -> Any: ...

    async def work(self, *, until: str | None = None) -> int: ...

    async def get(self, record_id: str) -> Record: ...


class PlainStarter(Protocol):
    """The same without ``await``: what ``quire.open`` gives."""

    def start(self, workflow: Any, data: Any = None, *, id: str | None = None) -> Any: ...

    def work(self, *, until: str | None = None) -> int: ...


class DurableAgent(Generic[A, T]):
    """An agent whose runs are records. Register ``agent.workflow`` with every worker that shall run it."""

    def __init__(
        self,
        agent: AbstractAgent[A, T],
        *,
        name: str = "",
        approver: str | None = None,
        expires: Span | None = None,
        budget_usd: float | None = None,
        budget_tokens: int | None = None,
        retries: int = 4,
        rate: Rate | None = None,
        retry: Retry | None = None,
        timeout: Span = "2m",
        stream: bool = False,
    ) -> None:
        named = name or agent.name
        if not named:
            raise DefinitionError("a durable agent needs a name: its records are found by it; give it one with name=")
        self.agent = agent
        self.name = named
        output = agent.output_type
        result: Any = output if isinstance(output, type) else None
        self.workflow: Workflow[Prompt, T, A] = Workflow(named, data=Prompt, result=result, retry=retry)

        @self.workflow.step
        async def answer(run: Run[Prompt, A]) -> T:
            result = await conversed(
                run,
                agent,
                run.data.prompt,
                deps=run.deps,
                approver=approver,
                expires=expires,
                budget_usd=budget_usd,
                budget_tokens=budget_tokens,
                retries=retries,
                rate=rate,
                history=history.loaded(run.data.history),
                name=named,
                timeout=timeout,
                stream=stream,
            )
            run.data = Prompt(prompt=run.data.prompt, history=history.dumped(result.all_messages()))
            return result.output

    async def run(self, prompt: str, *, client: Starter, id: str | None = None, past: Any = ()) -> T:
        """Start a run, work on it here until it ends, and return the output.

        After a crash the same call with the same ``id`` goes on where it stopped. A run that waits for a person is left
        waiting: then this returns when somebody has answered and some worker has finished it.
        """
        data = Prompt(prompt=prompt, history=history.dumped(list(past)))
        handle = await client.start(self.workflow, data, id=id)
        await client.work(until=handle.record_id)
        output: T = await handle.result()
        return output

    def run_sync(self, prompt: str, *, client: PlainStarter, id: str | None = None, past: Any = ()) -> T:
        """The same from a plain function, with the client of ``quire.open``."""
        data = Prompt(prompt=prompt, history=history.dumped(list(past)))
        handle = client.start(self.workflow, data, id=id)
        client.work(until=handle.record_id)
        output: T = handle.result()
        return output

    async def past(self, client: Starter, id: str) -> list[ModelMessage]:
        """The whole conversation of a run that has ended: ``past`` of the run that goes on with it."""
        return messages(await client.get(id))


def messages(record: Record) -> list[ModelMessage]:
    """The conversation that a durable agent's record holds."""
    return history.loaded(Prompt.model_validate_json(record.data).history)


def durable(agent: AbstractAgent[A, T], **options: Any) -> DurableAgent[A, T]:
    """Make an agent durable: ``support = durable(Agent(...), name="support")``. Options as ``DurableAgent``."""
    return DurableAgent(agent, **options)
