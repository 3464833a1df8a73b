"""What steps and effects work with: made once in a process by the factory that a workflow declares, and given back.

A factory is a function without arguments: ``Workflow("article", deps=make_deps)``. It may be plain or ``async def``. It
cleans up if it yields, or if what it returns is a context manager: Quire leaves it when the process ends.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any

from quire.errors import DefinitionError, in_words
from quire.workflows.workflow import Registry, Workflow

log = logging.getLogger("quire.worker")


@asynccontextmanager
async def made(factory: Callable[[], Any]) -> AsyncIterator[Any]:
    """Call the factory, wait for what it makes and enter it where it is a context; clean up at the end."""
    if inspect.isasyncgenfunction(factory):
        factory = asynccontextmanager(factory)
    elif inspect.isgeneratorfunction(factory):
        factory = contextmanager(factory)
    value = factory()
    if inspect.isawaitable(value):
        value = await value
    async with AsyncExitStack() as stack:
        if hasattr(value, "__aenter__") and hasattr(value, "__aexit__"):
            value = await stack.enter_async_context(value)
        elif hasattr(value, "__enter__") and hasattr(value, "__exit__"):
            value = stack.enter_context(value)
        yield value


class Dependencies:
    """The dependencies of all workflows of a process. What is ``given`` stands for those of every workflow."""

    def __init__(self, given: Any = None) -> None:
        self._given = given
        #: What each factory made, by the factory: two workflows with the same factory share it.
        self._made: dict[Callable[[], Any], Any] = {}
        self._keepers: list[tuple[asyncio.Task[None], asyncio.Event]] = []
        self._turn = asyncio.Lock()

    @property
    def given(self) -> Any:
        """What stands for the dependencies of every workflow; None: each makes its own."""
        return self._given

    def of(self, workflow: Workflow[Any, Any, Any] | None) -> Any:
        """Return what this workflow works with; None if it declares nothing."""
        if self._given is not None or workflow is None or workflow.make_deps is None:
            return self._given
        return self._made.get(workflow.make_deps)

    def problem(self, workflow: Workflow[Any, Any, Any]) -> str:
        """Say what this workflow lacks; nothing, if it can work."""
        if self._given is not None or workflow.make_deps is not None:
            return ""
        return workflow.lacks_deps()

    async def open(self, registry: Registry) -> None:
        """Make what the workflows of this registry need. Refuse, by name, the workflow for which nothing makes it."""
        async with self._turn:
            workflows = list(registry.workflows.values())
            for workflow in workflows:
                if problem := self.problem(workflow):
                    raise DefinitionError(problem)
            for workflow in workflows:
                factory = workflow.make_deps
                if self._given is None and factory is not None and factory not in self._made:
                    self._made[factory] = await self._kept(factory, workflow)

    async def _kept(self, factory: Callable[[], Any], workflow: Workflow[Any, Any, Any]) -> Any:
        ready: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        over = asyncio.Event()
        keeper = asyncio.ensure_future(_keep(factory, ready, over))
        await asyncio.wait([ready, keeper], return_when=asyncio.FIRST_COMPLETED)
        if ready.done():
            self._keepers.append((keeper, over))
            return ready.result()
        try:
            await keeper
        except Exception as error:
            raise DefinitionError(
                f"{named(factory)}() of workflow {workflow.name!r} did not make its dependencies: {in_words(error)}"
            ) from error
        raise DefinitionError(f"{named(factory)}() of workflow {workflow.name!r} made nothing")

    async def close(self) -> None:
        """Clean up, the last one made first."""
        async with self._turn:
            self._made.clear()
            while self._keepers:
                keeper, over = self._keepers.pop()
                over.set()
                try:
                    await keeper
                except Exception as error:  # noqa: BLE001 - a clean-up may raise anything; the others go on
                    log.error("the dependencies could not be cleaned up: %s", in_words(error))


async def _keep(factory: Callable[[], Any], ready: asyncio.Future[Any], over: asyncio.Event) -> None:
    """Enter and leave a context in one task: some contexts, such as those of anyio, accept no other."""
    async with made(factory) as value:
        ready.set_result(value)
        await over.wait()


def named(factory: Callable[[], Any]) -> str:
    return getattr(factory, "__name__", type(factory).__name__)
