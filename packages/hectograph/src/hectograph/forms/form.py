"""A form: its questions, what may be answered, and what was."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

Json = dict[str, Any]

#: By so much the two times of an answer differ that nobody edited: Google rounds one to milliseconds, as measured.
APART = timedelta(microseconds=342)


def millis(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def micros(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@dataclass(frozen=True)
class Asked:
    """One question as a person sees it."""

    key: str
    title: str
    #: ``text``, ``paragraph``, ``RADIO``, ``CHECKBOX``, ``DROP_DOWN``, ``scale``, ``date``, ``time`` or ``file``.
    kind: str
    required: bool
    choices: tuple[str, ...] = ()
    #: Whether a choice of one's own is allowed.
    other: bool = False


@dataclass
class Answered:
    """One response."""

    response_id: str
    created: datetime
    submitted: datetime
    email: str
    #: The values by question.
    answers: dict[str, list[str]]
    #: The row of the linked sheet that holds it.
    row: int = 0

    def json(self, collects: bool) -> Json:
        out: Json = {"responseId": self.response_id, "createTime": millis(self.created)}
        out["lastSubmittedTime"] = micros(self.submitted)
        if collects and self.email:
            out["respondentEmail"] = self.email
        answers = {
            key: {"questionId": key, "textAnswers": {"answers": [{"value": value} for value in values]}}
            for key, values in self.answers.items()
            if values
        }
        return out | ({"answers": answers} if answers else {})

    def dump(self) -> Json:
        times = {"created": self.created.isoformat(), "submitted": self.submitted.isoformat()}
        return {**self.__dict__, **times}

    @classmethod
    def load(cls, held: Mapping[str, Any]) -> Answered:
        times = {name: datetime.fromisoformat(held[name]) for name in ("created", "submitted")}
        return cls(**{**held, **times})


@dataclass
class Form:
    form_id: str
    title: str = ""
    description: str = ""
    revision: int = 1
    items: list[Json] = field(default_factory=list)
    settings: Json = field(default_factory=dict)
    published: bool = False
    accepting: bool = False
    sheet: str = ""
    responses: dict[str, Answered] = field(default_factory=dict)
    watches: dict[str, Json] = field(default_factory=dict)

    @property
    def revision_id(self) -> str:
        return f"{self.revision:08d}"

    @property
    def collects(self) -> bool:
        return self.settings.get("emailCollectionType", "DO_NOT_COLLECT") in {"VERIFIED", "RESPONDER_INPUT"}

    def json(self, document_title: str, base: str) -> Json:
        info = {"title": self.title, "description": self.description, "documentTitle": document_title}
        out: Json = {"formId": self.form_id, "info": {key: value for key, value in info.items() if value}}
        if self.items:
            out["items"] = deepcopy(self.items)
        if self.settings:
            out["settings"] = deepcopy(self.settings)
        out |= {"revisionId": self.revision_id, "responderUri": f"{base}form/{self.form_id}"}
        if self.sheet:
            out["linkedSheetId"] = self.sheet
        out["publishSettings"] = self.publish_settings()
        return out

    def publish_settings(self) -> Json:
        state = {"isPublished": self.published, "isAcceptingResponses": self.accepting}
        return {"publishState": {name: value for name, value in state.items() if value}}

    def questions(self) -> Iterator[Asked]:
        """Yield every question in order; a grid has one for each of its rows."""
        for item in self.items:
            title = item.get("title", "")
            if "questionItem" in item:
                yield _asked(title, item["questionItem"]["question"])
            group = item.get("questionGroupItem", {})
            columns = group.get("grid", {}).get("columns", {})
            for question in group.get("questions", ()):
                row = question.get("rowQuestion", {}).get("title", "")
                yield _asked(f"{title} [{row}]", {**question, "choiceQuestion": columns})

    def check(self, given: Mapping[str, list[str]]) -> dict[str, list[str]]:
        """Return the answers by question, or say what a person would read beside the question."""
        out: dict[str, list[str]] = {}
        known = list(self.questions())
        strange = set(given) - {one.key for one in known} - {one.title for one in known}
        if strange:
            titles = ", ".join(repr(one.title) for one in known)
            raise ValueError(f"the form has no question {min(strange)!r}; it has: {titles}")
        for one in known:
            values = [value for value in given.get(one.key, given.get(one.title, [])) if value != ""]
            if one.required and not values:
                raise ValueError(f"{one.title}: This is a required question")
            for value in values:
                _check_value(one, value)
            if len(values) > 1 and one.kind != "CHECKBOX":
                raise ValueError(f"{one.title}: only one answer is possible")
            if values:
                out[one.key] = values
        return out

    def fork(self) -> Form:
        return deepcopy(self)

    def dump(self) -> Json:
        return {**asdict(self), "responses": [one.dump() for one in self.responses.values()]}

    @classmethod
    def load(cls, held: Mapping[str, Any]) -> Form:
        responses = {one["response_id"]: Answered.load(one) for one in held["responses"]}
        return cls(**{**held, "responses": responses})


def _asked(title: str, question: Mapping[str, Any]) -> Asked:
    kind, choices, other = "text", tuple[str, ...](), False
    if question.get("textQuestion", {}).get("paragraph"):
        kind = "paragraph"
    elif "choiceQuestion" in question:
        held = question["choiceQuestion"]
        kind = held.get("type", "RADIO")
        choices = tuple(one["value"] for one in held.get("options", ()) if "value" in one)
        other = any(one.get("isOther") for one in held.get("options", ()))
    elif "scaleQuestion" in question:
        held = question["scaleQuestion"]
        kind = "scale"
        choices = tuple(map(str, range(int(held.get("low", 0)), int(held.get("high", 5)) + 1)))
    elif "ratingQuestion" in question:
        kind = "scale"
        choices = tuple(map(str, range(1, int(question["ratingQuestion"].get("ratingScaleLevel", 5)) + 1)))
    elif "dateQuestion" in question:
        kind = "date"
    elif "timeQuestion" in question:
        kind = "time"
    elif "fileUploadQuestion" in question:
        kind = "file"
    return Asked(str(question.get("questionId", "")), title, kind, bool(question.get("required")), choices, other)


def _check_value(asked: Asked, value: str) -> None:
    if asked.choices and value not in asked.choices and not asked.other:
        raise ValueError(f"{asked.title}: {value!r} is none of {', '.join(asked.choices)}")
    if asked.kind == "date":
        try:
            date.fromisoformat(value[:10])
        except ValueError as error:
            raise ValueError(f"{asked.title}: {value!r} is no date; write it as 2026-03-31") from error
    if asked.kind == "time" and not re.fullmatch(r"\d{1,2}:\d\d(:\d\d)?", value):
        raise ValueError(f"{asked.title}: {value!r} is no time; write it as 14:30")


def unordered(responses: Mapping[str, Answered]) -> list[Answered]:
    """Return the responses in the order of a list, which Google does not promise: by nothing that a caller knows."""
    return sorted(responses.values(), key=lambda one: hashlib.sha1(one.response_id.encode()).digest())
