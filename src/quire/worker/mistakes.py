"""What is wrong with workflows before any record comes to it: named where a process begins, not when a step runs.

``misuses`` reads the source of the steps. The others compare the workflows of a process with each other, and with the
records that are open.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from quire.errors import DefinitionError, did_you_mean
from quire.model.change import Count
from quire.model.record import ENDED, UNDO
from quire.run.run import Run
from quire.workflows.step_source import Call, Source
from quire.workflows.workflow import Step, Workflow

#: The methods of a run that do nothing unless they are awaited.
_AWAITED = frozenset({"once", "call", "sleep", "wait", "ask", "child", "map", "all"})


def check_calls(workflow: Workflow[Any, Any, Any]) -> None:
    """Raise ``DefinitionError`` if a step of this workflow calls its run as it cannot be called."""
    if found := misuses(workflow):
        raise DefinitionError(f"workflow {workflow.name!r} cannot run: " + "; ".join(found))


def misuses(workflow: Workflow[Any, Any, Any]) -> list[str]:
    """Say which calls of ``run`` in the source of the steps cannot succeed."""
    return [text for name, source in workflow.step_sources().items() for text in _misuses(workflow.steps[name], source)]


def _misuses(step: Step, source: Source) -> Iterator[str]:
    where = f"step {step.name!r}, line"
    named = [(call.method, call.line) for call in source.calls]
    for name, line in [*named, *source.attributes]:
        if not hasattr(Run, name) and name != "data" and not name.startswith("_"):
            public = [word for word in dir(Run) if not word.startswith("_")]
            yield f"{where} {line}: run has no {name!r}{did_you_mean(name, public)}"
    for call in source.calls:
        if wrong := _refused(call):
            yield f"{where} {call.line}: run.{call.method}(): {wrong}"
        if call.dropped and call.method in _AWAITED and step.is_async:
            yield f"{where} {call.line}: run.{call.method}(…) is never awaited, so it does nothing; write 'await run.…'"
    for method, value, line in source.children:
        if not isinstance(value, Workflow):
            yield (
                f"{where} {line}: run.{method} takes a workflow, not {value!r}; give the Workflow itself, or the "
                "function under @workflow"
            )


def _refused(call: Call) -> str:
    """Say why Python refuses these arguments. Empty: it takes them, or nobody can tell before the step runs."""
    method = inspect.getattr_static(Run, call.method, None)
    if not call.plain or not inspect.isfunction(method):
        return ""
    try:
        inspect.signature(method).bind(None, *[None] * call.positional, **dict.fromkeys(call.names))
    except TypeError as error:
        return str(error)
    return ""


def unlisted(workflows: Iterable[Workflow[Any, Any, Any]]) -> list[str]:
    """Name the workflows of children that are not among these workflows."""
    listed = {workflow.name: workflow for workflow in workflows}
    found = {}
    for workflow in listed.values():
        for name, source in workflow.step_sources().items():
            for method, child, _ in source.children:
                if isinstance(child, Workflow) and child.name not in listed:
                    found[child.name] = (
                        f"step {name!r} of {workflow.name!r} starts children of workflow {child.name!r} "
                        f"(run.{method}), which is not listed here: they wait for a worker that knows {child.name!r}"
                    )
    return list(found.values())


def lost_steps(counts: Sequence[Count], workflows: Iterable[Workflow[Any, Any, Any]]) -> list[str]:
    """Name the steps at which open records stand and which their workflow does not have."""
    known = {workflow.name: workflow for workflow in workflows}
    lost: dict[tuple[str, str], int] = {}
    for count in counts:
        workflow = known.get(count.workflow)
        if workflow is None or count.status in ENDED or count.step == UNDO:
            continue
        if workflow.find(count.step) is None:
            place = (count.workflow, count.step)
            lost[place] = lost.get(place, 0) + count.count
    return [
        f"{some} at step {step!r}, which workflow {name!r} does not have{did_you_mean(step, known[name].steps)}; "
        f"if the step was renamed, write was={step!r} at the new one"
        for (name, step), number in lost.items()
        for some in ["1 open record stands" if number == 1 else f"{number:,} open records stand"]
    ]
