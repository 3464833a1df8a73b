"""A mission as its ledger tells it: who was asked what and when, what was answered, what it cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, NamedTuple

from quire.agents.begun import REPLY, call_of_permit, without_answer
from quire.agents.blueprint.blueprint import Blueprint
from quire.agents.judging import Judgement
from quire.agents.missions.report import Report
from quire.agents.spend import LOST, Spend, of_row
from quire.errors import InputError, NotFound
from quire.ledger.base import Ledger
from quire.model.change import Query
from quire.model.codec import parse
from quire.model.receipt import Kind, Receipt, Stage
from quire.model.record import Record, Status

#: The functions whose receipts are answers of tools.
TOOLS = ("quire.agents.receipts:ToolReply", "quire.agents.receipts:ToolAct")
PIECE = "quire.agents.history:Piece"
CORRECTION = "quire.agents.correcting:Correction"
JUDGED = "quire.agents.correcting:Judged"
#: What the data of a mission hold from its first step on.
_WORDS = {"inputs", "thread", "blueprint", "hash", "agents", "spent", "round"}
#: What a part's own words hold; an input of a mission may be called "part", too.
_PART = {"mission", "thread", "agent", "next", "last"}


#: What is said of a call that was begun and never answered.
LOST_WORDS = "the process died before the answer was kept; the cost is not known"


class Call(NamedTuple):
    """One call of a model."""

    agent: str
    #: 0 is the reducer's.
    turn: int
    name: str
    began: float
    ended: float
    spent: Spend
    #: Empty, or the class and words of what went wrong.
    error: str
    record_id: str
    visit: int

    @property
    def day(self) -> str:
        return datetime.fromtimestamp(self.began, UTC).strftime("%Y-%m-%d")


class Corrected(NamedTuple):
    """A prompt that was corrected, and what became of it."""

    agent: str
    #: 0 is the reducer's.
    turn: int
    #: Which try was made with it: ``try 2``.
    name: str
    error: str
    original: str
    #: What was put below the original.
    added: str
    #: What the judge said of its answer; empty: there was no answer to judge, or no judge.
    judged: str
    record_id: str

    def in_words(self) -> str:
        """In one line: who was corrected, why, and what the judge said of the answer."""
        where = f"turn {self.turn}, {self.name}" if self.turn else self.name
        line = " ".join(self.error.split())
        why = line if len(line) <= 200 else f"{line[:199]}…"
        after = f"; judged {self.judged}" if self.judged else ""
        return f"{self.agent}, {where}, after {why}{after}"


class Story(NamedTuple):
    """All of a mission."""

    record: Record
    blueprint: Blueprint
    hash: str
    inputs: dict[str, Any]
    parts: list[Record]
    calls: list[Call]
    #: Agent → turn → what was said.
    said: dict[str, dict[int, str]]
    receipts: list[Receipt]
    report: Report | None
    corrections: list[Corrected]

    @property
    def spent(self) -> Spend:
        return total(call.spent for call in self.calls)

    def spent_by(self, agent_id: str) -> Spend:
        return total(call.spent for call in self.calls if call.agent == agent_id)

    @property
    def status(self) -> Status:
        return standing(self.record, self.parts)

    def questions(self) -> list[tuple[str, str]]:
        """What it asks people now: record and question."""
        asking = [record for record in (self.record, *self.parts) if record.status is Status.NEEDS_APPROVAL]
        return [(record.record_id, record.question or "") for record in asking]


def standing(mission: Record, parts: Iterable[Record]) -> Status:
    """Return how the mission stands. Its own record only waits while its agents work, so these decide."""
    if mission.status is not Status.WAITING:
        return mission.status
    open_ = {record.status for record in parts if not record.ended}
    if open_ & {Status.RUNNING, Status.PENDING}:
        return Status.RUNNING
    return Status.NEEDS_APPROVAL if Status.NEEDS_APPROVAL in open_ else Status.WAITING


async def standings(ledger: Ledger, records: Iterable[Record]) -> dict[str, Status]:
    """Return how those of these records stand that are missions whose record waits, by id."""
    found: dict[str, Status] = {}
    for record in records:
        if record.status is Status.WAITING and '"thread"' in record.data and is_mission(parse(record.data)):
            parts = await ledger.find(Query(parent_id=record.record_id, limit=100_000))
            found[record.record_id] = standing(record, parts)
    return found


class Pace(NamedTuple):
    """How parallel a mission was, from its first call to its last."""

    wall: float
    #: The sum of all calls: what one after the other would have taken.
    work: float
    #: The most calls that were under way at the same time.
    most: int
    #: From the end of one turn of an agent to the beginning of its next, on average.
    hop: float

    @property
    def speed_up(self) -> float:
        return self.work / self.wall if self.wall > 0 else 1.0


def total(parts: Iterable[Spend]) -> Spend:
    found = Spend()
    for part in parts:
        found = found.plus(part)
    return found


def place(name: str) -> tuple[str, int]:
    """Agent and turn of a receipt: ``ceo/2 1.1`` → ``ceo``, 2."""
    agent, _, rest = name.rpartition("/") if "/" in name else (name, "", "0")
    digits = ""
    for letter in rest:
        if not letter.isdigit():
            break
        digits += letter
    return agent, int(digits or 0)


def is_mission(data: Any) -> bool:
    """Whether a record's data are those of a mission that has begun."""
    return isinstance(data, dict) and data.keys() >= _WORDS


def is_part(data: Any) -> bool:
    """Whether a record's data are those of one agent's part of a mission."""
    part = data.get("part") if isinstance(data, dict) else None
    return isinstance(part, dict) and part.keys() >= _PART


async def read(ledger: Ledger, mission_id: str) -> Story:
    """The story of a mission, finished or not. The id of one of its parts does as well."""
    found = await ledger.load([mission_id])
    if not found:
        raise NotFound(f"Record with ID {mission_id} not found.")
    [record] = found
    if (above := mission_of(record)) != mission_id:
        return await read(ledger, above)
    data = parse(record.data)
    if not is_mission(data):
        why = "it has not begun yet" if record.status is Status.PENDING else f"it is a record of {record.workflow!r}"
        raise InputError(f"{mission_id!r} is not a mission under way: {why}")
    parts = await ledger.find(Query(parent_id=mission_id, order="id", limit=100_000))
    receipts = await ledger.receipts(record_ids=[mission_id, *(part.record_id for part in parts)])
    calls = calls_of(receipts, [record, *parts])
    said: dict[str, dict[int, str]] = {}
    for receipt in receipts:
        if receipt.stage is not Stage.DONE:
            continue
        if receipt.fn == PIECE and f"mission/{data['thread']}/" in receipt.key:  # not of before a rewind
            piece = parse(receipt.value)
            if "text" in piece and not receipt.name.startswith("look for "):
                agent = receipt.name.removeprefix("piece ").rpartition(" ")[0]
                said.setdefault(agent, {})[piece["turn"]] = piece["text"]
    report = Report.model_validate_json(record.result) if record.status is Status.DONE and record.result else None
    blueprint = Blueprint.model_validate(data["blueprint"])
    calls.sort(key=lambda call: call.began)
    fixed = _corrections(receipts)
    return Story(record, blueprint, data["hash"], data["inputs"], parts, calls, said, receipts, report, fixed)


def _corrections(receipts: Iterable[Receipt]) -> list[Corrected]:
    """Corrections in the order in which they were made, each with its judgement."""
    done = [receipt for receipt in receipts if receipt.stage is Stage.DONE and receipt.fn in (CORRECTION, JUDGED)]
    judgements = {
        (receipt.record_id, receipt.visit, receipt.name.removesuffix(" judged")): parse(receipt.value)
        for receipt in done
        if receipt.fn == JUDGED
    }
    found = []
    for receipt in sorted(done, key=lambda receipt: receipt.at):
        if receipt.fn != CORRECTION:
            continue
        row, name = parse(receipt.value), receipt.name.removesuffix(" correction")
        row_of = judgements.get((receipt.record_id, receipt.visit, name))
        judged = Judgement.model_validate(row_of).in_words() if row_of is not None else ""
        agent, turn = place(name)
        which = name.partition(f"{agent}/{turn} ")[2]
        about = (row["error"], row["original"], row["added"], judged)
        found.append(Corrected(agent, turn, which, *about, receipt.record_id))
    return found


def calls_of(receipts: Sequence[Receipt], records: Iterable[Record]) -> list[Call]:
    """Return the calls of models that these records made, also those whose answer was lost."""
    found = [call_of(one) for one in receipts if one.fn == REPLY and one.stage is Stage.DONE]
    for one in without_answer(receipts, records):
        name = call_of_permit(one.name)
        found.append(Call(*place(name), name, one.at, one.at, LOST, LOST_WORDS, one.record_id, one.visit))
    return found


def call_of(receipt: Receipt) -> Call:
    """Return the call whose receipt this is."""
    row = parse(receipt.value)
    agent, turn = place(receipt.name)
    error = row.get("error")
    outcome = (
        f"{error['kind']}: {error['type']}: {error['text']}" if error else row.get("text", "") if "limit" in row else ""
    )
    began = row.get("began", receipt.at)
    spent = Spend() if "limit" in row else of_row(row)
    return Call(
        agent, turn, receipt.name, began, row.get("ended", began), spent, outcome, receipt.record_id, receipt.visit
    )


def answers(story: Story) -> tuple[dict[str, Any], dict[str, list[dict[str, Any]]]]:
    """What models and tools answered, by name, and what people did, by question: the mission's recording."""
    rows: dict[str, Any] = {}
    people: dict[str, list[dict[str, Any]]] = {}
    for receipt in story.receipts:
        if receipt.stage is not Stage.DONE:
            continue
        if receipt.fn in (REPLY, *TOOLS):
            rows[receipt.name] = parse(receipt.value)
        elif receipt.kind is Kind.ASK:
            people.setdefault(receipt.name, []).append(parse(receipt.value))
    return rows, people


def pace(calls: list[Call]) -> Pace:
    """How parallel the calls were."""
    done = [call for call in calls if call.ended > call.began]
    if not done:
        return Pace(0.0, 0.0, 0, 0.0)
    wall = max(call.ended for call in done) - min(call.began for call in done)
    work = sum(call.ended - call.began for call in done)
    moments = sorted([(call.began, 1) for call in done] + [(call.ended, -1) for call in done])
    most = now = 0
    for _, step in moments:
        now += step
        most = max(most, now)
    hops = []
    for agent in {call.agent for call in done}:
        own = [call for call in done if call.agent == agent]
        hops += [after.began - before.ended for before, after in pairwise(own)]
    return Pace(wall, work, most, sum(hops) / len(hops) if hops else 0.0)


def mission_of(record: Record) -> str:
    """The mission of which this record is a part; itself if it is one."""
    data = parse(record.data) if '"part"' in record.data else {}
    return str(data["part"]["mission"]) if is_part(data) else record.record_id
