"""Performing a pass: the step's function runs, and what it returned or raised becomes an outcome."""

from __future__ import annotations

import asyncio
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from quire.errors import DefinitionError, IllegalMove, LeaseLost, did_you_mean
from quire.rules.outcome import Broke, Done, Next, Outcome, Tried, Yielded
from quire.run import forks
from quire.run.exits import Suspended, contained_in_thread, from_outside
from quire.run.failure import failure_of
from quire.run.host import OnVerdict
from quire.run.settling import failed, settle

if TYPE_CHECKING:
    from quire.run.passes import Pass


async def perform(pass_: Pass, task: asyncio.Task[Any] | None, on_verdict: OnVerdict) -> None:
    """Perform one pass of the step in this task. Its settling is under way on return; ``on_verdict`` gets the verdict.

    Raises ``LeaseLost`` when the record is lost to this worker: then there is nothing to settle.
    """
    pass_.task = task
    outcome = await _outcome(pass_)
    pass_.progressed()
    if pass_.suspending is not None:
        await asyncio.wait({pass_.suspending})
        if pass_.lost:
            pass_.suspending.result()
        elif pass_.stop is None:
            assert pass_.settled is not None
            on_verdict(pass_.settled)
            return
        outcome = pass_.stop
    if pass_.lost or outcome is None:
        raise LeaseLost(f"another worker holds {pass_.record.record_id!r} now")
    settle(pass_, outcome, on_verdict)


async def _outcome(pass_: Pass) -> Outcome | None:
    """Run the step's function. As soon as it is over, nobody cancels its task any more: others run in it, too.

    None: the pass is suspended, or its record is lost.
    """
    failure: BaseException | None = None
    value: Any = None
    task, copies = pass_.task, forks.generation()
    try:
        if pass_.step.is_async:
            assert pass_.step.fn is not None
            value = await pass_.step.fn(pass_.run)
        else:
            value = await _in_thread(pass_)
    except asyncio.CancelledError as error:
        asked = _must_end(pass_) or pass_.lost
        if not asked and pass_.host.ending():
            raise
        _take_back_cancels(pass_, task)
        if asked:
            if isinstance(pass_.stop, Tried | Broke) and not pass_.stop.trace:  # it took too long: here it stood
                pass_.stop = pass_.stop._replace(trace=failure_of(error).trace)
            await _landed(pass_)
            return pass_.stop
        failure = error
    except Suspended:
        return None
    except LeaseLost:
        pass_.lost = True
        return None
    except BaseException as error:
        if isinstance(error, (KeyboardInterrupt, GeneratorExit)) and from_outside(error, task):  # the process ends
            raise
        failure = error
    finally:
        pass_.task = None
        forks.end_if_copied(copies)
    if isinstance(pass_.stop, Yielded) and failure is None and not pass_.step.is_async:
        pass_.stop = None  # a thread cannot be stopped: the step has ended after all, and what it came to counts
    if _must_end(pass_):
        pass_.host.swallowed(pass_.record)
    if pass_.flights:
        await _landed(pass_)
    return pass_.stop if _must_end(pass_) else _own_outcome(pass_, value, failure)


def _must_end(pass_: Pass) -> bool:
    """Return whether the pass ends before its own end: somebody asked for it, or it is suspended."""
    return pass_.stop is not None or pass_.suspending is not None


def _take_back_cancels(pass_: Pass, task: asyncio.Task[Any] | None) -> None:
    """The cancellation was meant for the pass. The task goes on with other passes."""
    pass_.task = None
    while task is not None and task.cancelling():
        task.uncancel()


def _own_outcome(pass_: Pass, value: Any, failure: BaseException | None) -> Outcome:
    """Say what the step came to by itself. From now on it may do nothing more."""
    pass_.returned = True
    try:
        return _returned(pass_, value) if failure is None else failed(pass_, failure)
    except Exception as error:  # noqa: BLE001 - what a step returns may have code of its own
        return failed(pass_, error)


async def _in_thread(pass_: Pass) -> Any:
    from quire.run.run import SyncRun

    assert pass_.step.fn is not None
    loop = asyncio.get_running_loop()
    # In a context of its own: what the step leaves there does not reach the thread's next one.
    run_step = copy_context().run
    return await loop.run_in_executor(
        pass_.host.threads, run_step, contained_in_thread, pass_.step.fn, SyncRun(pass_.run, loop)
    )


async def _landed(pass_: Pass) -> None:
    """Wait until what is under way (an act, its receipt) has ended: only then may the record be settled."""
    while pass_.flights:
        pass_.quiet = asyncio.get_running_loop().create_future()
        await pass_.quiet


def _returned(pass_: Pass, value: Any) -> Outcome:
    """Say what the step's return value means: the next step, or the end of the record."""
    for pending in pass_.pending:
        if not pending.awaited:
            raise DefinitionError(
                f"step {pass_.step.name!r} never awaited {pending.what}: write 'await run.…', or it is not done"
            )
    data = pass_.run._encoded()
    then = pass_.step.then
    if not then:
        text, _ = pass_.workflow.result.taken(value, "its result")
        return Done(text, data)
    if value is None and len(then) == 1:
        value = then[0]
    if value not in then:
        legal = ", ".join(map(repr, then))
        hint = did_you_mean(value, then) if isinstance(value, str) else ""
        raise IllegalMove(f"step {pass_.step.name!r} returned {value!r}; it may return {legal}{hint}")
    target = pass_.workflow.steps[value]
    return Next(value, data, rests=target.rests and not target.ends, ends=target.rests and target.ends)
