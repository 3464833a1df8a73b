"""Correcting a prompt, and judging what came of it: each correction and each judgement is a receipt of its own.

What a correction may do to a prompt is said in ``corrected``, what a judge is asked in ``judging``; here models and
people are asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quire.agents.blueprint.blueprint import CorrectorSpec, JudgeSpec
from quire.agents.corrected import added, corrected, difference, fits
from quire.agents.correction import Fault, Faulty, GaveUp, Refused, Tries
from quire.agents.correction import request as correction
from quire.agents.judging import DOUBTED, Judgement, judgement
from quire.agents.judging import request as question
from quire.agents.people import put
from quire.workflows.retry import Fail

if TYPE_CHECKING:
    from quire.agents.missions.turn import Voice


class Correction:
    """Keeps a correction: what was asked, what is put below it, and why."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    async def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        return row


class Judged(Correction):
    """Keeps a judgement."""

    async def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        return row


class LeftOut(Exception):
    """A person leaves the agent out of the rest of the mission."""


async def correct(voice: Voice, name: str, next_name: str, goal: str, fault: Fault, tries: Tries) -> str:
    """The prompt for the next try: the goal with advice on the form below it.

    ``Refused``: the corrector will not have to do with it, which is for a person as any refusal is.
    """
    spec: CorrectorSpec = voice.blueprint.corrector
    try:
        asked = correction(goal, fault, spec.prompt)
        advice = await voice.ask_beside("corrector", spec.model, f"{name} corrected", asked, tries)
    except Faulty:
        advice = ""
    prompt = corrected(goal, f"{fault.type}: {fault.text}", advice)
    if not fits(goal, prompt):
        voice.run.note(f"{voice.spec.id}: a correction that changes the prompt is not taken")
        return goal
    row = {"error": fault.in_words(), "original": goal, "added": added(goal, prompt)}
    await voice.run.call(Correction(f"{next_name} correction"), row)
    voice.run.note(f"{voice.spec.id}: prompt corrected after {fault.in_words()}\n{difference(goal, prompt)}")
    return prompt


async def still_answers(voice: Voice, name: str, goal: str, text: str) -> bool:
    """Whether this answer to a corrected prompt is one to the goal. False: a person wants it asked again.

    ``Faulty``: the judge says that it is about something else.
    """
    spec = voice.blueprint.judge
    if not spec:
        return True
    found = await _judgement(voice, spec, name, goal, text)
    said = Judgement.model_validate(await voice.run.call(Judged(f"{name} judged"), found.model_dump()))
    voice.run.note(f"{voice.spec.id}: does the corrected answer do what was asked? {said.in_words()}")
    match said.word:
        case "yes":
            return True
        case "no":
            raise Faulty(Fault(kind="drift", type="Drift", text=said.why or "the answer is about something else"))
        case "doubt":
            return await _decided(voice, goal, text, said)


async def _judgement(voice: Voice, spec: JudgeSpec, name: str, goal: str, text: str) -> Judgement:
    """What the judge says. It has tries of its own: a line that breaks here is no fault of the answer."""
    tries = Tries(voice.blueprint.max_retries, keeps_last=True)
    try:
        asked = question(goal, text, spec.prompt)
        return judgement(await voice.ask_beside("judge", spec.model, f"{name} judge", asked, tries))
    except Refused as refused:
        return Judgement(word="doubt", why=f"the judge refuses to say: {refused.fault.text}")
    except Faulty as faulty:
        return Judgement(word="doubt", why=f"the judge's answer cannot be read: {faulty.fault.text}")
    except GaveUp as gave_up:
        return Judgement(word="doubt", why=f"the judge could not be asked: {gave_up}")


async def _decided(voice: Voice, goal: str, text: str, said: Judgement) -> bool:
    who = voice.spec.id
    answer = await put(
        voice.run,
        voice.recording,
        f"Does the corrected answer of {who} still do what was asked? The judge doubts: {said.why or 'no reason'}",
        show={"agent": who, "asked": goal, "answer": text},
        choices=DOUBTED,
        by=voice.spec.approver or voice.blueprint.approver,
    )
    if answer.choice in ("take it", "ask again"):
        return answer.choice == "take it"
    why = f"by {answer.by or 'a person'}, who does not take its corrected answer"
    if answer.choice == "leave out":
        raise LeftOut(f"left out {why}")
    raise Fail(f"stopped {why}")
