"""A mission run again: from its receipts alone, or with something changed from a turn on.

``replay`` asks no model: it must come to the same result. ``what_if`` asks anew only what the change touches. Both work
on a copy in memory; the mission itself stays as it is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from quire.agents.blueprint.blueprint import Blueprint
from quire.agents.blueprint.reading import checked
from quire.agents.missions import daily as days
from quire.agents.missions import story as stories
from quire.agents.missions import tried
from quire.agents.missions.flow import compiled
from quire.agents.missions.recording import Recording
from quire.agents.missions.report import Report
from quire.agents.missions.story import Story
from quire.errors import InputError
from quire.ledger import engine
from quire.ledger.base import Ledger
from quire.ledger.finding import open_ledger
from quire.model.codec import dump
from quire.model.record import Record, Status
from quire.run.dependencies import Dependencies
from quire.worker.schedule import first_record, starting
from quire.worker.worker import Worker
from quire.workflows.workflow import Registry, Workflow


class Replayed(NamedTuple):
    """A mission and its repetition."""

    before: Report | None
    after: Report | None
    #: Why there is no result, if there is none.
    error: str
    #: Answers from receipts; calls that were made anew.
    recorded: int
    asked: list[str]
    #: Requests that are not word for word what they were.
    differing: list[str]
    #: Of a what-if: the number under which it is kept.
    number: int = 0

    @property
    def same(self) -> bool:
        if self.before is None or self.after is None:
            return False
        then = [(agent.id, agent.text) for agent in self.before.agents]
        now = [(agent.id, agent.text) for agent in self.after.agents]
        return self.before.text == self.after.text and then == now and not self.differing


async def replay(ledger: Ledger, mission_id: str, *, deps: Any = None) -> Replayed:
    """Run the mission again from its receipts, with no model call."""
    story = await stories.read(ledger, mission_id)
    if not story.record.ended:
        raise InputError(f"{mission_id!r} is {story.record.status}; only a mission that has ended can be run again")
    rows, people = stories.answers(story)
    return await _again(story, story.blueprint, Recording(rows, people), deps)


async def what_if(
    ledger: Ledger,
    mission_id: str,
    *,
    turn: int = 1,
    agent: str = "",
    prompt: str | None = None,
    model: str | None = None,
    deps: Any = None,
) -> Replayed:
    """Run a copy of the mission with another prompt or model from ``turn`` on; what comes before is not asked again.

    What it costs is counted, and its result is kept, in the mission's ledger: ``tried.tried`` returns both.
    """
    story = await stories.read(ledger, mission_id)
    rows, people = stories.answers(story)
    blueprint = changed(story.blueprint, turn=turn, agent=agent, prompt=prompt, model=model)
    touched = {agent} if agent else {spec.id for spec in blueprint.agents}
    reducer = blueprint.reducer.id

    def live(name: str) -> bool:
        who, number = stories.place(name.split(" tool ")[0])
        return who == reducer or (who in touched and number >= turn)

    change = {"turn": turn, "agent": agent, "prompt": prompt, "model": model}
    keeper = await tried.begin(ledger, story.record.record_id, change)
    keeper.counted = days.counting(ledger, story.record.record_id, keeper.number)
    done = await _again(story, blueprint, Recording(rows, people, live=live, keeper=keeper), deps)
    await keeper.ends(done.after, done.error)
    return done._replace(number=keeper.number)


def changed(
    blueprint: Blueprint, *, turn: int, agent: str = "", prompt: str | None = None, model: str | None = None
) -> Blueprint:
    """The blueprint with another prompt in this turn, or another model, for one agent or for all."""
    if prompt is None and model is None:
        raise InputError("what if what? Give another prompt or another model")
    body = blueprint.as_json()
    if agent:
        blueprint.agent(agent)
    elif prompt is not None and turn == 1:
        raise InputError("in turn 1 every agent has a prompt of its own: name the agent")
    for spec in [*body["agents"], body["reducer"]]:
        if spec["id"] != agent and (agent or spec is body["reducer"]):
            continue
        if model is not None:
            spec["model"] = model
        if prompt is not None and agent:
            if turn == 1 or spec is body["reducer"]:
                spec["prompt"] = prompt
            else:
                spec["turns"] = {**spec.get("turns", {}), turn: prompt}
    if prompt is not None and not agent:
        body["turns"] = {**body.get("turns", {}), turn: prompt}
        for spec in body["agents"]:
            spec["turns"] = {number: text for number, text in spec.get("turns", {}).items() if int(number) != turn}
    return checked(body, "the changed blueprint", None)


async def _again(story: Story, blueprint: Blueprint, recording: Recording, deps: Any) -> Replayed:
    flow = compiled(blueprint, recording=recording)
    record = await _conducted(flow, story.inputs, story.record.record_id, deps)
    after = Report.model_validate_json(record.result) if record.status is Status.DONE and record.result else None
    error = "" if after is not None else record.last_error or f"it is {record.status}: {record.question or ''}"
    return Replayed(story.report, after, error, len(recording.used), recording.asked, recording.differing)


async def _conducted(flow: Workflow[Any, Any, Any], inputs: dict[str, Any], record_id: str, deps: Any) -> Record:
    """Run one record of this workflow to its end, in a ledger that lives as long as this call."""
    ledger = open_ledger("memory:")
    await ledger.open()
    try:
        registry = Registry()
        registry.add(flow)
        keyring = await engine.shared_keyring(ledger)
        start = first_record(flow, record_id, dump(inputs), await ledger.now())
        await ledger.commit([starting(start)])
        worker = Worker(ledger, registry, dependencies=Dependencies(deps), keyring=keyring)
        worker.grace = 0.0
        await worker.run(until_idle=True)
        [record] = await ledger.load([record_id])
        return record
    finally:
        await ledger.close()
