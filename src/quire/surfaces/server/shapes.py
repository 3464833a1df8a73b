"""What the API takes and answers, for FastAPI to check and for the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from quire.model.record import MOST_PRIORITY
from quire.surfaces.server.auth.tokens import Role

Text = Annotated[str, StringConstraints(max_length=10_000)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=500)]
SpanIn = Annotated[str, StringConstraints(max_length=100)] | Annotated[float, Field(ge=0, le=1e9)]
Priority = Annotated[int, Field(ge=-MOST_PRIORITY, le=MOST_PRIORITY)]
Fields = dict[str, Any]


class In(BaseModel):
    """A body: a field that is not known is refused, because it is a mistake."""

    model_config = ConfigDict(extra="forbid")


class StartIn(In):
    workflow: Name
    data: Fields = {}
    record_id: Name | None = None
    after: SpanIn | None = Field(None, description="Not before so long from now: '5m', or seconds.")
    priority: Priority = 0


class Item(In):
    data: Fields = {}
    record_id: Name | None = None


class StartManyIn(In):
    workflow: Name
    items: Annotated[list[Item], Field(min_length=1, max_length=10_000)]
    after: SpanIn | None = None
    priority: Priority = 0


class SignalIn(In):
    value: Any = None
    signal_id: Name | None = Field(None, description="The same id again is the same signal to this record.")


class AnswerIn(In):
    choice: Text
    note: Text = ""
    edits: Fields = {}
    seen: Text = Field("", description="The hash of what was shown; an answer to anything else is refused.")
    question: Text = ""


class ResolveIn(In):
    happened: bool
    value: Any = None
    effect: Text = ""


class MoveIn(In):
    step: Name


class EditIn(In):
    data: Fields


class RetryIn(In):
    step: Text = Field("", description="From this step anew: a rewind.")


class CancelIn(In):
    undo: bool = False
    reason: Text = ""


class PriorityIn(In):
    priority: Priority


class Where(In):
    """Which records an act is for."""

    workflow: Text = ""
    step: Text = ""
    status: Literal["PENDING", "WAITING", "NEEDS_APPROVAL", "ERROR", "CANCELLED"] = "ERROR"
    cause: Text = Field("", description="A cause as /api/errors tells it.")
    limit: Annotated[int, Field(ge=1, le=10_000)] = 1000


class ManyIn(In):
    act: Literal["retry", "cancel", "answer", "prioritise"]
    record_ids: Annotated[list[Name], Field(max_length=10_000)] | None = None
    where: Where | None = None
    choice: Text = ""
    note: Text = ""
    seen: dict[str, Text] = Field({}, description="For answer: the hash of what was shown, by record id.")
    reason: Text = ""
    undo: bool = False
    step: Text = ""
    priority: Priority = 0


class OrderIn(In):
    workflow: Text = ""
    reason: Text = ""


class ResumeIn(In):
    workflow: Text = ""
    cancelled: bool = Field(False, description="What a halt cancelled goes on where it stood.")


class TokenIn(In):
    name: Name
    role: Role = Role.VIEWER
    expires: SpanIn | None = None


class SessionIn(In):
    token: Annotated[str, StringConstraints(min_length=1, max_length=500)]


class HookIn(In):
    workflow: Name
    kind: Literal["hmac", "pubsub"] = "hmac"
    key_field: Text = ""
    secret_number: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    audience: Text = ""
    email: Text = ""
    jwks: Fields = {}
    keys_url: Text = ""
    issuer: Text = ""


class LinkIn(In):
    person: Name
    expires: SpanIn | None = None


#: What a link to a question carries after its ``#``.
Link = Annotated[str, StringConstraints(min_length=1, max_length=8000)]


class LinkText(In):
    link: Link


class LinkAnswerIn(In):
    link: Link
    choice: Text
    note: Text = ""
    edits: Fields = {}


# -- answers ---------------------------------------------------------------------------------------------------


class RecordOut(BaseModel):
    record_id: str
    workflow: str
    status: str
    next_step: str
    visit: int
    attempt: int
    priority: int
    due_at: str | None
    run_until: str | None
    worker: str | None
    last_run_id: str | None
    last_error: str | None
    question: str | None
    note: str | None
    waits: list[Fields]
    parent_id: str | None
    dedupe_key: str
    version: int
    workflow_version: int
    epoch: int
    cancel: Any
    data: Any
    result: Any
    created_at: str | None
    updated_at: str | None


class RecordsOut(BaseModel):
    records: list[RecordOut]
    next: str | None = Field(description="Give it as 'after' for the next page; null: this is the last.")


class GridOut(BaseModel):
    columns: list[str]
    rows: list[list[Any]]
    next: str | None


class EventOut(BaseModel):
    seq: int
    record_id: str
    n: int
    version: int
    at: str
    kind: str
    body: Any
    run_id: str | None
    hash: str
    words: str
    trace: str | None = Field(None, description="Of a failed try: its trace as text; body.trace has it in parts.")


class EventsOut(BaseModel):
    events: list[EventOut]
    next: int | None


class WhyOut(BaseModel):
    sentence: str
    kind: str
    until: str | None
    remedy: str


class VersionOut(BaseModel):
    """The data as they were at one version, as their difference from how they are."""

    version: int
    at: str | None = Field(description="When they became so; null: the line that would tell it is not there.")
    kind: str = Field(description="The line of the log that made them so.")
    by: str = Field(description="Whom that line names; empty: nobody.")
    changes: dict[str, Annotated[list[Any], Field(min_length=2, max_length=2)]] = Field(
        description="Fields that differ: what each was then, and what it is now."
    )
    came: list[str] = Field(description="Those of them that were not there then.")
    went: list[str] = Field(description="Those of them that are not there now.")
    changed: list[str] = Field(description="Fields that changed since, of which nobody knows any more what they were.")


class ShownOut(BaseModel):
    record: RecordOut
    entry: Any
    versions: list[VersionOut] = Field(
        description="What the data were, newest first, as far as the log tells; the first is how they are."
    )
    versions_end: str = Field(description="Why older versions are not shown; empty: the last is how it was started.")
    why: WhyOut
    moves: list[str]
    events: list[EventOut]
    events_left_out: int
    receipts: list[Fields]
    signals: list[Fields]
    children: list[list[Any]]
    timeline: list[Fields]
    report: Fields
    now: str


class ManyOut(BaseModel):
    done: int
    refused: list[Fields]


class StartedOut(BaseModel):
    record_ids: list[str]


class StandingOut(BaseModel):
    epoch: int
    halted: list[str]
    paused: list[str]
    sealed: str | None
    under_way: list[Fields]
    controls: list[Fields]
    returned: int | None = Field(None, description="After resume with 'cancelled': so many records go on.")


class ApprovalsOut(BaseModel):
    """One page of what people are asked."""

    approvals: list[Fields]
    total: int = Field(description="So many fit what was asked for, on all pages.")
    workflows: dict[str, int] = Field(description="How many wait in each workflow, whichever was asked for.")


class ReachOut(BaseModel):
    """How many records a halt would stop, and how many a resume would let go on."""

    open: int = Field(description="So many a halt stops; pending, running and asking are parts of these.")
    pending: int
    running: int
    asking: int
    held: int = Field(description="Halts cancelled so many; resume with 'cancelled' lets them go on.")
    held_asking: int = Field(description="So many of these asked a person something.")
    more: bool = Field(description="There are too many to count: at least so many are held.")


class Said(BaseModel):
    """Something small, with named fields."""

    model_config = ConfigDict(extra="allow")
