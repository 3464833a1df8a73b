"""Questions to people, and their answers again when a mission is run from its recording."""

from __future__ import annotations

from collections import Counter
from typing import Any
from weakref import WeakKeyDictionary

from quire.agents.missions.recording import Recording
from quire.run.run import Run
from quire.workflows.approval import Answer

#: How often each question was put in the pass under way; a pass that is repeated counts anew.
_put: WeakKeyDictionary[Run[Any, Any], Counter[str]] = WeakKeyDictionary()


async def put(
    run: Run[Any, Any], recording: Recording | None, question: str, *, nth: int | None = None, **options: Any
) -> Answer:
    """``run.ask``; with a recording, what was answered then, the nth time that it was asked in this step."""
    if recording is None:
        return await run.ask(question, **options)
    counts = _put.setdefault(run, Counter())
    if nth is None:
        nth = counts[question]
    counts[question] += 1
    answer = recording.person(question, nth)
    if answer.get("edits"):
        run.data = {**run.data, **answer["edits"]}
    return Answer(answer["choice"], answer["by"], answer["note"], answer["edits"], answer.get("ahead", "approve"))
