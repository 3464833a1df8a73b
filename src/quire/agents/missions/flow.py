"""A mission: a blueprint compiled to an ordinary workflow.

One workflow, whose records are of two kinds. The *mission* itself: ``begin`` pins the blueprint, ``agents`` sends out
one record per agent and gathers what they came to, ``reduce`` makes one result of it. And each *part* of it, a child
record for one agent: ``turn``, entered anew for every turn, and ``report``. A turn's words are pieces of history
(``quire.agents.history``) that whoever takes the next turn reads back.

Limits are kept by the mission: each part gets a share of what is left and comes back when it is used up; when nothing
is left, the mission asks a person, once. The same going out and coming back makes the barrier between turns.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from quire.agents.blueprint.blueprint import Blueprint
from quire.agents.blueprint.reading import load
from quire.agents.missions.part import Part
from quire.agents.missions.plan import Plan, new_agent, now
from quire.agents.missions.recording import Recording
from quire.agents.missions.report import Report
from quire.agents.missions.story import is_mission, is_part
from quire.agents.spend import Spend
from quire.run.run import Run
from quire.workflows.retry import Fail, Retry
from quire.workflows.workflow import Workflow

Mission = Run[dict[str, Any], Any]
Flow = Workflow[dict[str, Any], Report, Any]


def mission(path: str | Path | Mapping[str, Any] | Blueprint) -> Flow:
    """The workflow of a blueprint. A relative path is taken from the file that calls, not from where the process is."""
    if isinstance(path, str | Path) and not os.path.isabs(path):
        caller = sys._getframe(1).f_globals.get("__file__")
        near = Path(caller).parent / path if caller else Path(path)
        path = near if near.exists() else Path(path)
    return compiled(load(path))


def compiled(blueprint: Blueprint, *, recording: Recording | None = None) -> Flow:
    """The blueprint as a workflow. With a recording, answers come from there."""
    # A failed step is tried again by the turn itself; what is left for the engine are errors of tools and stores.
    retry = Retry(1 + max(2, blueprint.max_retries))
    flow: Flow = Workflow(blueprint.mission, data=dict[str, Any], result=Report, retry=retry)
    flow.about = blueprint.about()

    @flow.step(then=["agents", "turn"])
    async def begin(run: Mission) -> Literal["agents", "turn"]:
        if is_part(run.data):
            delay = int(run.data["part"].get("delay_ms", 0))
            if delay and recording is None:
                await run.sleep(delay / 1000)
            return "turn"
        run.data = await _new_mission(run, blueprint)
        return "agents"

    @flow.step(then=["agents", "reduce"])
    async def agents(run: Mission) -> Literal["agents", "reduce"]:
        _must_be(run, part=False)
        plan = Plan(run, recording)
        if not plan.goes_on:
            await plan.go_again()
        within = await plan.time_left()
        if within is not None and within <= 0:
            plan.finish("deadline")
        if plan.goes_on and await plan.afford():
            parts = [plan.part(agent_id) for agent_id in plan.going]
            await plan.gather(await run.map(flow, parts, within=within, failures="keep"))
        plan.check_policy()
        if plan.goes_on:
            run.data["round"] += 1
            return "agents"
        return "reduce"

    @flow.step(then=["turn", "report"], cap=blueprint.cap)
    async def turn(run: Mission) -> Literal["turn", "report"]:
        _must_be(run, part=True)
        return await Part(run, recording).take()

    @flow.step
    async def report(run: Mission) -> Report:
        _must_be(run, part=True)
        return Report.model_validate(run.data["report"])

    @flow.step
    async def reduce(run: Mission) -> Report:
        _must_be(run, part=False)
        return await Plan(run, recording).reduced()

    flow.check()
    return flow


def _must_be(run: Mission, *, part: bool) -> None:
    """A person who rewinds a record may name a step of the other kind."""
    if part and not is_part(run.data):
        raise Fail(f"{run.record_id!r} is a mission; turns are taken by its parts, the records below it")
    if not part and not is_mission(run.data):
        raise Fail(f"{run.record_id!r} is not a mission that has begun; rewind the record above it")


async def _new_mission(run: Mission, blueprint: Blueprint) -> dict[str, Any]:
    """The data with which a mission begins.

    Rewound to its first step it begins anew, with the blueprint of today; what was said before is another conversation.
    """
    again = is_mission(run.data)
    inputs = dict(run.data["inputs"] if again else run.data)
    blueprint.check_inputs(inputs)
    return {
        "inputs": inputs,
        "thread": f"{run.record_id}~{run.visit}" if again else run.record_id,
        "blueprint": blueprint.as_json(),
        "hash": blueprint.hash,
        "limits": blueprint.limits.model_dump(mode="json", exclude_none=True),
        "began": await run.call(now, run),
        "round": 1,
        "agents": {agent.id: new_agent() for agent in blueprint.agents},
        "spent": Spend().model_dump(),
    }
