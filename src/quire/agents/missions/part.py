"""One agent's part of a mission: a record of its own, whose turns are entered one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from quire.agents import history
from quire.agents.blueprint.blueprint import Blueprint
from quire.agents.correcting import LeftOut
from quire.agents.correction import GaveUp
from quire.agents.missions.recording import NotRecorded, Recording
from quire.agents.missions.report import Report
from quire.agents.missions.turn import Interrupted, Voice, prompt_for, with_remedy
from quire.agents.spend import Meter, Spend
from quire.run.run import Run
from quire.workflows.retry import Fail


class Part:
    """One agent's part of a mission, at one of its turns."""

    def __init__(self, run: Run[Any, Any], recording: Recording | None) -> None:
        self.run = run
        self.recording = recording
        self.state: dict[str, Any] = run.data["part"]
        self.blueprint = Blueprint.model_validate(run.data["blueprint"])
        self.spec = self.blueprint.agent(self.state["agent"])

    async def take(self) -> Literal["turn", "report"]:
        """Take the next turn, and say what comes after it."""
        if self.state["next"] > self.state["last"] or await self._taken_before():
            return self._after("done", self.state.get("text", ""))
        state, number = self.state, self.state["next"]
        self.run.note(f"{self.spec.id}, turn {number}/{self.blueprint.last_turn}")
        spent = Spend.model_validate(state.get("spent") or {})
        meter = Meter(_less(state["allowance"], spent))
        voice = Voice(self.run, self.blueprint, self.spec, meter=meter, recording=self.recording)
        status, text, limit = "done", state.get("text", ""), ""
        try:
            past = await self._past(voice)
            name = f"{self.spec.id}/{number}" + (f" part {state['pieces']}" if state["resumes"] else "")
            prompt = prompt_for(self.blueprint, self.spec, number, self.run.data["inputs"])
            said = await voice.say(name, prompt, past, resumes=state["resumes"])
            piece = {"turn": number, "prompt": prompt, "text": said.text, "messages": said.rows}
            await self._keep(piece | {"spent": meter.spent.model_dump()})
            state |= {"next": number + 1, "resumes": False}
            text = said.text
        except Interrupted as interrupted:
            status, limit = "limit", interrupted.reached.limit
            if interrupted.rows:
                await self._keep({"turn": number, "messages": interrupted.rows, "interrupted": True})
                state["resumes"] = True
        except LeftOut as left:
            status, limit = "left out", str(left)
        except NotRecorded as missing:
            raise Fail(str(missing)) from None
        except GaveUp as gave_up:
            bill = spent.plus(meter.spent).model_dump()
            await history.write(self.run, state["thread"], self.spec.id, f"bill {state['round']}", bill)
            raise Fail(with_remedy(gave_up, state["mission"], "agents", ", once the mission has ended")) from None
        state["spent"] = spent.plus(meter.spent).model_dump()
        return self._after(status, text, limit)

    def _after(self, status: str, text: str, limit: str = "") -> Literal["turn", "report"]:
        """What comes after a turn: the next, or the report to the mission."""
        state = self.state
        state["text"] = text
        self.run.data.pop("prompt", None)
        if status == "done" and state["next"] <= state["last"]:
            return "turn"
        self.run.data["report"] = Report(
            text=text,
            mission=self.blueprint.mission,
            by=self.spec.id,
            status=status,
            spent=Spend.model_validate(state.get("spent") or {}),
            limit=limit,
            next_turn=state["next"],
            pieces=state["pieces"],
            compacted=state["compacted"],
            resumes=state["resumes"],
        ).model_dump(mode="json")
        return "report"

    async def _taken_before(self) -> bool:
        """Whether an earlier record took this turn already: when a person retries, nothing is asked twice."""
        state = self.state
        while not state.get("fresh"):
            number = state["pieces"] + 1
            piece = await history.found(self.run, state["thread"], self.spec.id, number)
            if piece is None:
                state["fresh"] = True
                return False
            spent = Spend.model_validate(state.get("spent") or {})
            state |= {
                "pieces": number,
                "spent": spent.plus(Spend.model_validate(piece.get("spent") or {})).model_dump(),
            }
            if "stands_for" in piece:
                state["compacted"] = number
            elif "text" in piece:
                state |= {"text": piece["text"], "next": piece["turn"] + 1, "resumes": False}
                return True
            else:
                state["resumes"] = True
        return False

    async def _keep(self, piece: history.Row) -> None:
        number = self.state["pieces"] + 1
        await history.write(self.run, self.state["thread"], self.spec.id, number, piece)
        self.state["pieces"] = number

    async def _past(self, voice: Voice) -> list[history.Row]:
        """The conversation so far; summed up first if it has grown too long."""
        state = self.state
        place = (self.run, state["thread"], self.spec.id)
        past = await history.hydrated(*place, state["pieces"], state["compacted"])
        before = history.size(past)
        if before <= self.blueprint.history_tokens or state["resumes"] or len(past) < 4:
            return past
        rows = await voice.compact(f"{self.spec.id}/{state['next']} sum-up", past)
        stands_for = {"from": state["compacted"] or 1, "to": state["pieces"], "tokens": before}
        await self._keep({"messages": rows, "stands_for": stands_for})
        state["compacted"] = state["pieces"]
        self.run.note(f"{self.spec.id}: {before:,} tokens of history summed up in {history.size(rows):,}")
        return rows


def _less(allowance: Mapping[str, Any], spent: Spend) -> dict[str, Any]:
    """What is left of the mission's share; moments and limits of a day are not shared out."""
    used = {"tokens": spent.tokens, "usd": spent.usd, "calls": spent.calls}
    return {word: value - used.get(word, 0) if word in used else value for word, value in allowance.items()}
