"""One turn of one agent: asked, answered, corrected where need be, and kept as a piece of history."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from quire.agents import history
from quire.agents.blueprint.blueprint import AgentSpec, Blueprint, ModelSpec
from quire.agents.corrected import fits
from quire.agents.correcting import LeftOut, correct, still_answers
from quire.agents.correction import Fault, Faulty, GaveUp, Refused, Tries, classified
from quire.agents.missions.daily import Daybook
from quire.agents.missions.recording import Recording
from quire.agents.missions.story import is_part
from quire.agents.people import put
from quire.agents.secrets import harmless
from quire.agents.spend import LimitReached, Meter
from quire.errors import QuireError
from quire.run.run import Run
from quire.workflows.retry import Fail

if TYPE_CHECKING:
    from pydantic_ai import Agent
    from pydantic_ai.models import Model

    from quire.agents.receipts import Receipts

#: What a person may say when a model refuses to answer.
REFUSED = ("leave out", "ask again", "stop")

SUM_UP = (
    "Sum up our conversation so far for yourself: you will go on with this summary in place of the words. Keep every "
    "decision, number, name and open question. It began with this request:\n\n"
)


class Said(NamedTuple):
    """What a turn came to."""

    text: str
    rows: list[history.Row]


class Voice:
    """How one agent of a mission speaks: its model, its limits, its receipts."""

    def __init__(
        self,
        run: Run[Any, Any],
        blueprint: Blueprint,
        spec: AgentSpec,
        *,
        meter: Meter,
        recording: Recording | None = None,
        at_limit: Callable[[LimitReached], Awaitable[None]] | None = None,
    ) -> None:
        self.run = run
        self.blueprint = blueprint
        self.spec = spec
        self.meter = meter
        self.recording = recording
        self.at_limit = at_limit

    async def model(self, spec: ModelSpec, who: str = "") -> Model:
        from quire.agents import models, scripted

        if self.recording is not None and not self.recording.needs_models:
            return scripted.model(self.spec.id, None)  # never asked: it only stands where a model must
        await models.ready(spec)
        return models.built(spec, who or self.spec.id)

    def receipts(self, name: str, spec: ModelSpec, tries: Tries) -> Receipts:
        from quire.agents.models import price_of, rate_of
        from quire.agents.receipts import Receipts

        return Receipts(
            self.run,
            name,
            who=self.spec.id,
            approver=self.spec.approver or self.blueprint.approver,
            expires=self.spec.expires,
            rate=rate_of(spec),
            daybook=self._daybook(),
            tries=tries,
            meter=self.meter,
            at_limit=self.at_limit,
            price=price_of(spec),
            timeout=spec.timeout,
            stream=spec.stream,
            recording=self.recording,
        )

    def _daybook(self) -> Daybook | None:
        """Where the day's spending is counted; a repetition from a recording spends nothing."""
        return None if self.recording is not None else Daybook.of(self.run, mission_of(self.run))

    async def say(self, name: str, prompt: str, past: list[history.Row], *, resumes: bool = False) -> Said:
        """Put a prompt to the agent; correct it, wait, or ask a person as the class of error says.

        ``goal`` is what is to be answered: nothing but a person's own words changes it.
        """
        tries = Tries(self.blueprint.max_retries)
        goal = asked = prompt
        if resumes and (said_last := _last_prompt(past)):
            asked = said_last
            goal = prompt if fits(prompt, asked) else asked
        fault: Fault | None = None
        call, round_ = name, 0
        while True:
            round_ += 1
            before, call = call, name if round_ == 1 else f"{name} try {round_}"
            try:
                if fault is not None:
                    failed, fault = fault, None
                    asked = await self._after(failed, before, call, goal, tries)
                said = await self._once(call, asked, past, tries, resumes=resumes)
                if asked == goal or await self._accepted(call, goal, said):
                    return said
                asked = goal
            except Faulty as faulty:
                tries.failed(faulty.fault)
                fault = faulty.fault
            except Refused as refused:
                chosen = await self._decided(asked, refused)
                if chosen != asked:
                    goal = asked = chosen
            resumes = False

    async def _after(self, fault: Fault, name: str, next_name: str, goal: str, tries: Tries) -> str:
        """What is asked after this fault."""
        if fault.kind == "drift":
            self.run.note(f"{self.spec.id}: the correction led away from the task; the prompt itself is asked again")
            return goal
        if tries.repeats_itself:
            self.run.note(f"{self.spec.id}: the same error twice; correction stops: {fault.text[:200]}")
            return goal
        return await correct(self, name, next_name, goal, fault, tries)

    async def _accepted(self, name: str, goal: str, said: Said) -> bool:
        try:
            return await still_answers(self, name, goal, said.text)
        except Interrupted as interrupted:
            # The answer is there and paid for: whoever goes on has only to judge it.
            raise Interrupted(interrupted.reached, said.rows) from None

    async def _once(self, name: str, prompt: str, past: list[history.Row], tries: Tries, *, resumes: bool) -> Said:
        from quire.agents import cast

        spec = self.blueprint.model_of(self.spec)
        alone = self.recording if self.recording is not None and not self.recording.needs_models else None
        recorded = alone.tools(self.spec.id) if alone is not None else None
        agent = cast.agent(self.spec, await self.model(spec), recorded)
        result = await self._run(agent, spec, None if resumes else prompt, past, self.receipts(name, spec, tries))
        return Said(cast.text_of(result.output), history.dumped(result.new_messages()))

    async def _run(
        self, agent: Agent[Any, Any], spec: ModelSpec, prompt: str | None, past: list[history.Row], receipts: Receipts
    ) -> Any:
        before = history.loaded(past)
        settings: Any = dict(spec.settings)
        try:
            return await agent.run(
                prompt,
                message_history=before,
                deps=self.run.deps,
                capabilities=[receipts],
                model_settings=settings or None,
                infer_name=False,
            )
        except LimitReached as reached:
            # What was said in this turn before the limit is not lost: the turn goes on from there.
            new = receipts.messages[len(before) :]
            raise Interrupted(reached, history.dumped(new) if len(new) > 1 else []) from None
        except (QuireError, Fail):
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, it goes on without a key in its words
            fault = classified(error)
            if fault is None:
                raise harmless(error) from None
            if fault.kind == "safety":
                raise Refused(fault) from None
            raise Faulty(fault) from None

    async def ask_beside(self, who: str, model: ModelSpec | None, name: str, prompt: str, tries: Tries) -> str:
        """Ask somebody else about this turn, the corrector or the judge: beside the conversation, within its limits."""
        from pydantic_ai import Agent

        spec = model or self.blueprint.model_of(self.spec)
        made: Agent[Any, Any] = Agent(await self.model(spec, who), name=f"{who} of {self.spec.id}", output_type=str)
        result = await self._run(made, spec, prompt, [], self.receipts(name, spec, tries))
        return str(result.output)

    async def _decided(self, prompt: str, refused: Refused) -> str:
        """A refusal is for a person. Nothing here rewrites a prompt to get around it."""
        self.run.data["prompt"] = prompt
        answer = await put(
            self.run,
            self.recording,
            f"The model of {self.spec.id} refuses to answer: {refused.fault.text}. What now?",
            show={"agent": self.spec.id, "prompt": prompt, "refused": refused.fault.in_words()},
            edit=["prompt"],
            choices=REFUSED,
            by=self.spec.approver or self.blueprint.approver,
        )
        if answer.choice == "ask again":
            return str(self.run.data["prompt"])
        if answer.choice == "leave out":
            raise LeftOut(f"left out by {answer.by or 'a person'} after a refusal: {refused.fault.text}")
        raise Fail(f"stopped by {answer.by or 'a person'} after a refusal: {refused.fault.text}")

    async def compact(self, name: str, past: list[history.Row]) -> list[history.Row]:
        """The exchange in which the model sums up the conversation: it stands for what went before."""
        from pydantic_ai import Agent

        spec = self.blueprint.model_of(self.spec)
        agent: Agent[Any, Any] = Agent(await self.model(spec), name=self.spec.id, output_type=str)
        first = _first_prompt(past)
        receipts = self.receipts(name, spec, Tries(self.blueprint.max_retries))
        result = await self._run(agent, spec, f"{SUM_UP}{first}", past, receipts)
        return history.dumped(result.new_messages())


class Interrupted(Exception):
    """A limit was reached in the middle of a turn."""

    def __init__(self, reached: LimitReached, rows: list[history.Row]) -> None:
        super().__init__(str(reached))
        self.reached = reached
        self.rows = rows


def mission_of(run: Run[Any, Any]) -> str:
    """The mission to which this record, itself or as a part, belongs."""
    return str(run.data["part"]["mission"]) if is_part(run.data) else run.record_id


def _first_prompt(rows: list[history.Row]) -> str:
    for row in rows:
        for part in row.get("parts", []):
            if part.get("part_kind") == "user-prompt":
                return str(part.get("content", ""))
    return ""


def _last_prompt(rows: list[history.Row]) -> str:
    """What was asked last in this conversation."""
    for row in reversed(rows):
        for part in reversed(row.get("parts", [])):
            if part.get("part_kind") == "user-prompt":
                return str(part.get("content", ""))
    return ""


def prompt_for(blueprint: Blueprint, spec: AgentSpec, turn: int, inputs: Mapping[str, Any]) -> str:
    """What the agent is asked in this turn, with the inputs filled in."""
    text = blueprint.filled(blueprint.prompt(spec, turn), inputs)
    return text + blueprint.given(inputs) if turn == 1 else text


def reduction(blueprint: Blueprint, reports: list[tuple[str, str]], inputs: Mapping[str, Any]) -> str:
    """What the reducer is asked: its prompt, then every final report under the name of its agent."""
    parts = [blueprint.filled(blueprint.reducer.prompt, inputs).rstrip() + blueprint.given(inputs)]
    parts += [f"## Report of {agent_id}\n\n{text.strip()}" for agent_id, text in reports]
    return "\n\n".join(parts)


def with_remedy(gave_up: GaveUp, record_id: str, step: str, when: str = "") -> str:
    """Why it was given up, and the command that asks anew."""
    return f"{gave_up}; to ask anew{when}: quire retry {record_id} --from {step}"
