"""Approvals: a question bound to what was shown, who may answer, and when their answers are enough. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from quire.clock import Span, seconds
from quire.errors import DefinitionError, IllegalMove, InputError, did_you_mean
from quire.model.codec import dump
from quire.model.receipt import fingerprint
from quire.model.record import Record
from quire.model.row import replace
from quire.model.wait import On, Wait

EXPIRED = "expired"
#: In what a question is about: the parked intent that its answer releases or drops.
PARKED = "parked"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person said. True if the choice is the first one offered, which is the one that goes ahead."""

    choice: str
    by: str = ""
    note: str = ""
    edits: Mapping[str, Any] = field(default_factory=dict)
    #: The first choice that was offered.
    ahead: str = "approve"

    def __bool__(self) -> bool:
        return self.choice == self.ahead


def question(
    *,
    key: str,
    text: str,
    show: object,
    edit: Sequence[str],
    choices: Sequence[str],
    by: str | Sequence[str] | None,
    quorum: int,
    remind: Span | None,
    escalate: tuple[Span, str] | None,
    expires: Span | None,
    now: float,
) -> Wait:
    """The wait that stands for a question to a person."""
    if not choices:
        raise DefinitionError(f"the question {text!r} offers no choice")
    if EXPIRED in choices:
        raise DefinitionError(f"the question {text!r} offers {EXPIRED!r}, which is what it answers when nobody does")
    if quorum < 1:
        raise DefinitionError(f"the question {text!r} asks for {quorum} answers; the least is 1")
    people = [by] if isinstance(by, str) else list(by or [])
    about: dict[str, Any] = {
        "text": text,
        "show": show,
        "choices": list(choices),
        "edit": list(edit),
        "by": people,
        "quorum": quorum,
        "asked_at": now,
        "votes": [],
    }
    if remind is not None:
        about["remind"] = seconds(remind)
        about["remind_at"] = now + seconds(remind)
    if escalate is not None:
        about["escalate_at"] = now + seconds(escalate[0])
        about["escalate_to"] = escalate[1]
    if expires is not None:
        about["expires_at"] = now + seconds(expires)
    about["hash"] = content_hash(about)
    return Wait(On.QUESTION, key=key, name=about["hash"][:8], until=_next_moment(about), about=about)


def content_hash(about: Mapping[str, Any]) -> str:
    """What an approval is bound to: the question, what was shown, and what may be chosen and edited."""
    bound = {word: about.get(word) for word in ("text", "show", "choices", "edit", "asked_at")}
    return hashlib.sha256(dump(bound).encode()).hexdigest()


def shown_print(show: object) -> str:
    """What is shown, as an answer's receipt remembers it."""
    return fingerprint(dump(show))


def said(answer: Answer, record: Record) -> dict[str, Any]:
    """What the receipt of an answer holds: the answer, and a print of the data over which the step asked."""
    return {
        "choice": answer.choice,
        "by": answer.by,
        "note": answer.note,
        "edits": dict(answer.edits),
        "ahead": answer.ahead,
        "over": _entry_print(record),
    }


def edited_since(record: Record, said: Mapping[str, Any]) -> bool:
    """Return whether the data over which the step asks are other ones than those of this answer.

    An answer of before prints were kept says nothing of it, and stands.
    """
    over = said.get("over")
    return over is not None and over != _entry_print(record)


def _entry_print(record: Record) -> str:
    return fingerprint(record.data if record.entry is None else record.entry)


def _next_moment(about: Mapping[str, Any]) -> float | None:
    moments = [about.get(word) for word in ("remind_at", "escalate_at", "expires_at")]
    return min((moment for moment in moments if moment is not None), default=None)


def expired(wait: Wait, now: float) -> bool:
    end = (wait.about or {}).get("expires_at")
    return end is not None and now >= end


def passed(wait: Wait, now: float) -> tuple[Wait, list[str]]:
    """The wait after its reminders and escalations up to now, and what happened meanwhile, as event kinds."""
    about = dict(wait.about or {})
    happened = []
    if (moment := about.get("remind_at")) is not None and now >= moment:
        happened.append("reminded")
        about["remind_at"] = now + about["remind"]
    if (moment := about.get("escalate_at")) is not None and now >= moment:
        happened.append("escalated")
        about["by"] = [*about["by"], about.pop("escalate_to")]
        del about["escalate_at"]
    if happened:
        about["calls"] = about.get("calls", 0) + 1  # those whom an alert reaches are called once more
    return replace(wait, about=about, until=_next_moment(about)), happened


@dataclass(frozen=True, slots=True)
class Vote:
    """One person's answer on its way in."""

    choice: str
    by: str
    note: str = ""
    edits: Mapping[str, Any] = field(default_factory=dict)
    #: By which way in: cli, api, sheet, link, mcp, …
    via: str = ""
    at: float = 0.0
    #: The hash of what the person saw; empty: they say nothing of it.
    seen: str = ""


def check_vote(wait: Wait, vote: Vote, groups: Mapping[str, Sequence[str]] | None = None) -> None:
    """Refuse an answer that the question does not take."""
    about = wait.about or {}
    choices = about.get("choices", [])
    if vote.choice not in choices:
        hint = did_you_mean(vote.choice, choices)
        raise InputError(f"{vote.choice!r} is not an answer to {about.get('text')!r}{hint}")
    if vote.seen and vote.seen != about.get("hash") and vote.seen != wait.name:
        raise IllegalMove(
            f"what is asked has changed since it was shown: it is now {about.get('text')!r} "
            f"with {dump(about.get('show'))[:200]}; look at it again, then answer"
        )
    people = about.get("by", [])
    if people and not is_one_of(vote.by, people, groups or {}):
        nobody = unanswerable(about, groups or {})
        hint = f" ({nobody})" if nobody else ""
        whose = vote.by or "somebody without a name"
        raise IllegalMove(f"{whose} may not answer this; it is for {', '.join(people)}{hint}")
    for word in vote.edits:
        if word not in about.get("edit", []):
            allowed = ", ".join(about.get("edit", [])) or "nothing"
            raise InputError(f"the answer may not edit {word!r}; it may edit {allowed}")
    if any(earlier["by"] == vote.by for earlier in about.get("votes", [])) and about.get("quorum", 1) > 1:
        raise InputError(f"{vote.by!r} has answered already; {about['quorum']} different people are needed")


def is_one_of(person: str, people: Sequence[str], groups: Mapping[str, Sequence[str]]) -> bool:
    """Return whether a person is named, or is a member of a group that is named."""
    return any(person == name or person in groups.get(name, ()) for name in people)


def unknown_people(people: Sequence[str], groups: Mapping[str, Sequence[str]]) -> list[str]:
    """The names that nobody is known to stand behind: no address, no group, and nobody in a group."""
    members = {person for some in groups.values() for person in some}
    return [name for name in people if "@" not in name and name not in groups and name not in members]


def unanswerable(about: Mapping[str, Any], groups: Mapping[str, Sequence[str]]) -> str:
    """Return why too few people can answer the question; empty: enough can."""
    people: Sequence[str] = about.get("by", [])
    able: set[str] = set()
    for name in people:
        able |= set(groups[name]) if name in groups else {name}
    unknown = unknown_people(people, groups)
    able -= set(unknown)
    needed = about.get("quorum", 1)
    if not people or len(able) >= needed:
        return ""
    few = f"{needed} answers are needed and only {len(able)} people can give one" if able else "nobody can answer"
    some = ", ".join(map(repr, unknown))
    missing = did_you_mean(unknown[0], groups) if unknown and groups else ""
    return f"{few}: there is no group {some}{missing}" if unknown else few


def counted(wait: Wait, vote: Vote) -> tuple[Wait, Answer | None]:
    """The wait with this vote in it, and the answer if it is decided now: enough agree, or one does not."""
    about = dict(wait.about or {})
    row = {"choice": vote.choice, "by": vote.by, "note": vote.note, "edits": dict(vote.edits), "via": vote.via}
    about["votes"] = [*about.get("votes", []), row | {"at": vote.at}]
    quorum = about.get("quorum", 1)
    ahead = about["choices"][0]
    same = [v for v in about["votes"] if v["choice"] == vote.choice]
    decided = len(same) >= quorum or (vote.choice != ahead)
    if not decided:
        return replace(wait, about=about), None
    names = ", ".join(dict.fromkeys(v["by"] for v in same if v["by"]))
    notes = "; ".join(v["note"] for v in same if v["note"])
    edits: dict[str, Any] = {}
    for v in same:
        edits |= v["edits"]
    return replace(wait, about=about), Answer(vote.choice, names, notes, edits, ahead)
