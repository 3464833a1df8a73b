"""A mission's own view of itself: who still goes, what is left to spend, what comes next, and the one result."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ValidationError

from quire.agents import history
from quire.agents.blueprint.blueprint import Blueprint, Limits
from quire.agents.conversation import raised
from quire.agents.correcting import LeftOut
from quire.agents.correction import GaveUp
from quire.agents.missions import daily as days
from quire.agents.missions.recording import Recording
from quire.agents.missions.report import AgentReport, Report
from quire.agents.missions.turn import Voice, reduction, with_remedy
from quire.agents.people import put
from quire.agents.spend import LimitReached, Meter, Spend
from quire.clock import iso, seconds
from quire.errors import did_you_mean
from quire.run.run import Run, behind
from quire.workflows.approval import EXPIRED
from quire.workflows.fanout import Failed
from quire.workflows.retry import Fail

#: What a person may say when a limit is reached.
AT_LIMIT = ("raise", "finish", "stop")


async def now(run: Run[Any, Any]) -> float:
    """The moment on the ledger's clock, remembered: the step that asks again gets the same."""
    return behind(run).now()


async def today(run: Run[Any, Any]) -> dict[str, Any]:
    """What was spent today, remembered."""
    return await days.Daybook.of(run, run.record_id).today(gather=True)


def new_agent() -> dict[str, Any]:
    """How an agent of a mission starts."""
    return {"next": 1, "pieces": 0, "compacted": 0, "resumes": False, "status": "going", "text": "", "error": ""}


class Plan:
    """The mission's own view: who still goes, what is left, what comes next."""

    def __init__(self, run: Run[Any, Any], recording: Recording | None) -> None:
        self.run = run
        self.recording = recording
        self.data = run.data
        #: How often each question was put in this pass.
        self._asked: dict[str, int] = {}
        #: The blueprint that this mission started with, whatever the file says by now.
        self.blueprint = Blueprint.model_validate(self.data["blueprint"])

    @property
    def agents(self) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = self.data["agents"]
        return found

    @property
    def going(self) -> list[str]:
        return [agent_id for agent_id, agent in self.agents.items() if agent["status"] == "going"]

    @property
    def goes_on(self) -> bool:
        """There are turns to take, and nobody and nothing has ended them."""
        return bool(self.going) and not self.data.get("finishing")

    async def go_again(self) -> None:
        """A person has rewound the mission to here: who has not finished goes again, from the turn that failed."""
        for agent in self.agents.values():
            if agent["status"] != "done":
                agent |= {"status": "going", "error": ""}
        self.data.pop("finishing", None)
        self.data |= {"round": self.data["round"] + 1, "began": await self.run.call(now, self.run)}

    def finish(self, why: Literal["deadline", "person"]) -> None:
        self.data["finishing"] = why

    @property
    def spent(self) -> Spend:
        return Spend.model_validate(self.data["spent"])

    @property
    def doomed(self) -> bool:
        """Too few agents can still finish."""
        lost = sum(agent["status"] in ("failed", "left out") for agent in self.agents.values())
        return len(self.agents) - lost < self.blueprint.needed()

    def left(self) -> dict[str, Any]:
        """What may still be spent."""
        limits, spent = self.data["limits"], self.spent
        found: dict[str, Any] = {}
        for word, used in (("tokens", spent.tokens), ("usd", spent.usd), ("calls", spent.calls)):
            if limits.get(word) is not None:
                found[word] = limits[word] - used
        if limits.get("wall") is not None:
            found["until"] = self.data["began"] + seconds(limits["wall"])
        return found | days.limits_of(limits)

    async def afford(self) -> bool:
        """Whether anything is left to spend; if not, a person says what follows. False: finish with what is there."""
        while await self._legible() and (reached := await self._reached()) is not None:
            limits = self.data["limits"]
            expires, otherwise = await self._how_long(reached)
            question = self._question(reached)
            nth = self._asked.get(question, 0)
            self._asked[question] = nth + 1
            answer = await put(
                self.run,
                self.recording,
                question,
                nth=nth,
                show={"limits": limits, "spent": self._spent_by_agent(), **otherwise},
                edit=["limits"],
                choices=AT_LIMIT,
                by=self.blueprint.approver,
                expires=expires,
            )
            self.data = self.run.data
            if answer.choice == EXPIRED:
                continue  # another day: what it allows is looked at anew
            if answer.choice == "raise":
                written = self.data["limits"]
                if isinstance(written, dict) and written.get(reached) == limits[reached]:
                    written[reached] = _doubled(reached, limits[reached])
            elif answer.choice == "finish":
                self.finish("person")
                return False
            else:
                raise Fail(f"stopped by {answer.by or 'a person'} at its limit of {_limit(reached, limits[reached])}")
        return not self.data.get("finishing")

    async def _legible(self) -> bool:
        """Whether the limits, which people write, can be kept; until they can, a person is asked. False: finish."""
        while (wrong := _misspelt(self.data["limits"])) is not None:
            answer = await put(
                self.run,
                self.recording,
                f"The limits of {self.blueprint.mission} cannot be read: {wrong}. "
                "Write them anew to raise them, finish with what is there, or stop?",
                show={"limits": self.data["limits"], "spent": self._spent_by_agent()},
                edit=["limits"],
                choices=AT_LIMIT,
                by=self.blueprint.approver,
            )
            self.data = self.run.data
            if answer.choice == "finish":
                self.finish("person")
                return False
            if answer.choice != "raise":
                raise Fail(f"stopped by {answer.by or 'a person'}; its limits cannot be read: {wrong}")
        return True

    def _question(self, reached: str) -> str:
        limit = _limit(reached, self.data["limits"][reached])
        return (
            f"{self.blueprint.mission} has reached its limit of {limit}: {self.spent.in_words()} so far. "
            "Raise it, finish with what is there, or stop?"
        )

    async def _how_long(self, reached: str) -> tuple[float | None, dict[str, str]]:
        """How long a person may take, and what follows otherwise: a limit of a day is another tomorrow."""
        if reached not in days.WORDS or self.recording is not None:
            return None, {}
        moment = await self.run.call(now, self.run)
        span = days.until_tomorrow(moment)
        return span, {"otherwise": f"it goes on by itself at {iso(moment + span)}"}

    async def _reached(self) -> str | None:
        left = self.left()
        for word in ("tokens", "usd", "calls"):
            if word in left and left[word] <= 0:
                return word
        if self.recording is not None:  # clocks and days are not what they were: people were asked, or were not
            words = [word for word in ("wall", *days.WORDS) if self.data["limits"].get(word) is not None]
            return next((word for word in words if self._left_to_hear(word)), None)
        if "until" in left and await self.run.call(now, self.run) >= left["until"]:
            return "wall"
        if limits := days.limits_of(left):
            return days.reached(limits, Spend.model_validate(await self.run.call(today, self.run)))
        return None

    def _left_to_hear(self, word: str) -> bool:
        assert self.recording is not None
        question = self._question(word)
        return self._asked.get(question, 0) < self.recording.times_asked(question)

    async def time_left(self) -> float | None:
        if self.blueprint.deadline is None or self.recording is not None:
            return None
        end = self.data["began"] + seconds(self.blueprint.deadline)
        return float(max(0.0, end - await self.run.call(now, self.run)))

    def part(self, agent_id: str) -> dict[str, Any]:
        """What the record of one agent starts with."""
        agent, left, count = self.agents[agent_id], self.left(), len(self.going)
        whole = {"until", *days.WORDS}
        share = {word: value if word in whole else value / count for word, value in left.items()}
        lowest = min(self.agents[other]["next"] for other in self.going)
        last = lowest if self.blueprint.barrier else self.blueprint.last_turn
        first = self.data["round"] == 1
        return {
            "inputs": self.data["inputs"],
            "blueprint": self.data["blueprint"],
            "part": {
                "mission": self.run.record_id,
                "thread": self.data["thread"],
                "agent": agent_id,
                "next": agent["next"],
                "last": last,
                "pieces": agent["pieces"],
                "compacted": agent["compacted"],
                "resumes": agent["resumes"],
                "allowance": share,
                "round": self.data["round"],
                "delay_ms": self.blueprint.start_delay_ms if first else 0,
            },
        }

    async def gather(self, results: list[Report | Failed]) -> None:
        """Take in what the parts came to."""
        for agent_id, result in zip(self.going, results, strict=True):
            agent = self.agents[agent_id]
            if isinstance(result, Failed):
                overdue = "had not ended in time" in result.error
                error = result.error.removeprefix("Fail: ")
                agent |= {"status": "unfinished" if overdue else "failed", "error": error}
                if overdue:
                    self.finish("deadline")
                await self._salvage(agent_id)
                continue
            self._add(agent_id, result.spent)
            agent |= {
                "next": result.next_turn,
                "pieces": result.pieces,
                "compacted": result.compacted,
                "resumes": result.resumes,
                "text": result.text or agent["text"],
            }
            if result.status == "left out":
                agent |= {"status": "left out", "error": result.limit}
            elif result.next_turn > self.blueprint.last_turn:
                agent["status"] = "done"

    def _add(self, agent_id: str, spent: Spend) -> None:
        agent = self.agents[agent_id]
        agent["spent"] = Spend.model_validate(agent.get("spent") or {}).plus(spent).model_dump()
        self.data["spent"] = self.spent.plus(spent).model_dump()

    async def _salvage(self, agent_id: str) -> None:
        """Of a part that ended without a report: what it had said by then, and what it had spent."""
        agent = self.agents[agent_id]
        place = (self.run, self.data["thread"], agent_id)
        bill = await history.found(*place, f"bill {self.data['round']}")
        if bill is not None:
            self._add(agent_id, Spend.model_validate(bill))
        while (piece := await history.found(*place, agent["pieces"] + 1)) is not None:
            agent["pieces"] += 1
            if "text" in piece:
                agent |= {"text": piece["text"], "next": piece["turn"] + 1}
                if bill is None and "spent" in piece:
                    self._add(agent_id, Spend.model_validate(piece["spent"]))

    def check_policy(self) -> None:
        """Raise ``Fail`` if too few agents have finished, or can."""
        if self.data.get("finishing") == "person":
            return
        need = self.blueprint.needed()
        if self.data.get("finishing") == "deadline":
            best = self.blueprint.policy == "best_effort"
            have = [a for a in self.agents.values() if a["status"] == "done" or (best and a["text"])]
            if len(have) < need:
                raise Fail(f"the deadline passed, and {len(have)} of {need} agents that must finish have")
        elif self.doomed:
            lost = {name: agent for name, agent in self.agents.items() if agent["status"] in ("failed", "left out")}
            errors: dict[str, list[str]] = {}
            for name, agent in lost.items():
                errors.setdefault(agent["error"], []).append(name)
            causes = "; ".join(f"{', '.join(names)}: {error}" for error, names in errors.items())
            raise Fail(f"{need} of {len(self.agents)} agents must finish and {len(lost)} cannot: {causes}")

    def _spent_by_agent(self) -> dict[str, str]:
        each = {name: Spend.model_validate(agent.get("spent") or {}).in_words() for name, agent in self.agents.items()}
        return {**each, "all": self.spent.in_words()}

    async def reduced(self) -> Report:
        """One result of all that was reported."""
        there = [(name, agent["text"]) for name, agent in self.agents.items() if agent["text"]]
        if not there:
            raise Fail("no agent has anything to report")
        if not self.data.get("finishing"):
            await self.afford()
        meter = Meter({} if self.data.get("finishing") else self.left())
        reducer = self.blueprint.reducer

        async def at_limit(reached: LimitReached) -> None:
            await raised(self.run, reducer.id, meter, reached, self.blueprint.approver, self.recording)

        voice = Voice(self.run, self.blueprint, reducer, meter=meter, recording=self.recording, at_limit=at_limit)
        try:
            said = await voice.say(f"{reducer.id}/0", reduction(self.blueprint, there, self.data["inputs"]), [])
        except LeftOut as left:
            raise Fail(str(left)) from None
        except GaveUp as gave_up:
            raise Fail(with_remedy(gave_up, self.run.record_id, "reduce")) from None
        spent = self.spent.plus(meter.spent)
        self.data |= {"spent": spent.model_dump(), "reducer_spent": meter.spent.model_dump()}
        whole = all(agent["status"] == "done" for agent in self.agents.values())
        return Report(
            text=said.text,
            mission=self.blueprint.mission,
            by=reducer.id,
            status="done" if whole else "partial",
            blueprint=self.data["hash"],
            agents=[self._report_of(name) for name in self.agents],
            spent=spent,
        )

    def _report_of(self, agent_id: str) -> AgentReport:
        agent = self.agents[agent_id]
        status = "unfinished" if agent["status"] == "going" else agent["status"]
        spent = Spend.model_validate(agent.get("spent") or {})
        turns = agent["next"] - 1
        return AgentReport(
            id=agent_id, text=agent["text"], turns=turns, status=status, error=agent["error"], spent=spent
        )


def _misspelt(limits: Any) -> str | None:
    """What is wrong with limits that a person wrote: one that is not understood would be none."""
    unknown = [word for word in limits if word not in Limits.model_fields] if isinstance(limits, dict) else []
    if unknown:
        return f"there is no limit {unknown[0]!r}{did_you_mean(unknown[0], Limits.model_fields)}"
    try:
        Limits.model_validate(limits, strict=True)  # what was written is what is counted with
    except ValidationError as error:
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc'])) or 'limits'}: {first['msg']}"
    return None


def _limit(word: str, value: Any) -> str:
    match word:
        case "usd":
            return f"${value}"
        case "usd_per_day":
            return f"${value} a day"
        case "wall":
            return f"{value} of time"
        case "tokens_per_day" | "calls_per_day":
            return f"{value:,} {days.WORDS[word]} a day"
        case _:
            return f"{value:,} {word}"


def _doubled(word: str, value: Any) -> Any:
    return seconds(value) * 2 if word == "wall" else value * 2
