"""Spans of one record, made from its log and receipts: record → run → step → effect → model call. Pure.

The ids follow from the record and the line that opens the span. So every process makes the same ids, a span that is
sent twice is one span, and a child's spans find their parent's without asking. A record that ends and is tried again
begins another record span: its next *life*.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from quire.model.codec import parse
from quire.model.event import Event
from quire.model.receipt import Receipt, Stage
from quire.model.record import Record, Status
from quire.rules import lines
from quire.rules.lines import LineKind

#: The function whose receipts are answers of models (``quire.agents.missions.story``), and what its permit is called.
REPLY = "quire.agents.receipts:Reply"
PERMIT = "may "
#: What follows in the name of a permit for a call that was begun before.
AGAIN = " again "

_EFFECT_ENDS = {
    kind.value: kind.removeprefix("effect.")
    for kind in (LineKind.EFFECT_DONE, LineKind.EFFECT_VOID, LineKind.EFFECT_UNDONE, LineKind.EFFECT_UNCLEAR)
}


class Span(NamedTuple):
    #: record, run, step, effect or model
    kind: str
    span_id: str
    #: Empty: the first of its trace.
    parent_id: str
    name: str
    start: float
    end: float
    #: How it ended: the event's kind.
    outcome: str
    attributes: Mapping[str, Any]
    error: str
    #: The line after which it is complete.
    seq: int


def span_id(record_id: str, kind: str, n: int | str) -> str:
    return hashlib.sha256(f"{record_id}\n{kind}\n{n}".encode()).hexdigest()[:16]


def trace_id(root_id: str) -> str:
    """Return the trace of a record and of everything that it started, from the id of the first."""
    return hashlib.sha256(f"trace\n{root_id}".encode()).hexdigest()[:32]


def first_span(record_id: str) -> str:
    """Return the span of the record's first life: what its children's spans hang under."""
    return span_id(record_id, "record", 1)


class _Open(NamedTuple):
    span_id: str
    parent_id: str
    name: str
    start: float
    attributes: dict[str, Any]


class _Reader:
    """Reads a log from its start and keeps what is open."""

    def __init__(self, record: Record, events: Sequence[Event]) -> None:
        self.record = record
        self.events = events
        self.made: list[Span] = []
        self.life: _Open | None = None
        self.lives = 0
        self.run: _Open | None = None
        self.step: _Open | None = None
        self.effects: dict[str, _Open] = {}

    def read(self) -> list[Span]:
        for place, event in enumerate(self.events):
            self._take(place, event)
        return self.made

    def _close(self, kind: str, open_: _Open, event: Event, outcome: str, error: str = "") -> None:
        attributes = dict(open_.attributes) | {"quire.outcome": outcome}
        end = max(event.at, open_.start)
        self.made.append(
            Span(
                kind,
                open_.span_id,
                open_.parent_id,
                open_.name,
                open_.start,
                end,
                outcome,
                attributes,
                error,
                event.seq,
            )
        )

    def _begin_life(self, at: float) -> None:
        self.lives += 1
        record = self.record
        parent = first_span(record.parent_id) if record.parent_id is not None else ""
        about = {"quire.record_id": record.record_id, "quire.workflow": record.workflow, "quire.life": self.lives}
        self.life = _Open(span_id(record.record_id, "record", self.lives), parent, record.workflow, at, about)

    def _about(self, **more: Any) -> dict[str, Any]:
        return {"quire.record_id": self.record.record_id, "quire.workflow": self.record.workflow, **more}

    def _begin_step(self, name: str, event: Event) -> None:
        assert self.run is not None
        made = span_id(self.record.record_id, "step", event.n)
        self.step = _Open(made, self.run.span_id, name, event.at, self._about(**{"quire.step": name}))

    def _take(self, place: int, event: Event) -> None:
        body: dict[str, Any] = parse(event.body) if event.body else {}
        kind = event.kind
        if self.life is None and (kind == LineKind.STARTED or kind not in lines.ASIDE | _EFFECT_ENDS.keys()):
            first = self.lives == 0
            self._begin_life(min(event.at, self.record.created_at) if first and kind != LineKind.STARTED else event.at)
        if kind == LineKind.CLAIMED:
            assert self.life is not None
            made = span_id(self.record.record_id, "run", event.n)
            run = str(body.get("run") or event.run_id or "")
            about = self._about(**{"quire.run_id": run, "quire.worker": str(body.get("worker", ""))})
            self.run = _Open(made, self.life.span_id, "run", event.at, about)
            self._begin_step(str(body.get("step", "")), event)
        elif kind == LineKind.EFFECT_INTENDED:
            parent = self.step or self.life
            if parent is not None:
                made = span_id(self.record.record_id, "effect", event.n)
                name = str(body.get("effect", ""))
                self.effects[str(body.get("key"))] = _Open(
                    made, parent.span_id, name, event.at, self._about(**{"quire.effect": name})
                )
        elif kind in _EFFECT_ENDS:
            open_ = self.effects.pop(str(body.get("key")), None)
            if open_ is not None:
                self._close("effect", open_, event, _EFFECT_ENDS[kind])
        elif kind == LineKind.MOVED and self.run is not None and self.step is not None:
            self._close("step", self.step, event, kind)
            self.step = None
            if self._kept(place):
                self._begin_step(str(body.get("to", "")), event)
            else:
                self._close("run", self.run, event, kind)
                self.run = None
        elif kind in lines.RELEASES:
            self._release(event, body)

    def _release(self, event: Event, body: Mapping[str, Any]) -> None:
        kind = event.kind
        error = str(body.get("error") or body.get("reason") or kind) if kind in lines.FAILS else ""
        if self.step is not None:
            self._close("step", self.step, event, kind, error)
        if self.run is not None:
            self._close("run", self.run, event, kind, error)
        self.step = self.run = None
        if kind in lines.ENDS and not body.get("undo") and self.life is not None:
            self._close("record", self.life, event, kind, error)
            self.life = None

    def _kept(self, place: int) -> bool:
        """Whether the worker kept the record after this move: the next line says so, or how the record stands."""
        asked = False
        for event in self.events[place + 1 :]:
            if event.kind == LineKind.CANCEL_ASKED:
                asked = True
            elif event.kind == LineKind.CANCELLED:
                return asked
            elif event.kind not in lines.ASIDE:
                return event.kind in lines.RELEASES or event.kind == LineKind.MOVED or event.kind.startswith("effect.")
        return self.record.status is Status.RUNNING


def spans(record: Record, events: Sequence[Event], receipts: Sequence[Receipt] = ()) -> list[Span]:
    """The spans of a record that are complete, in the order in which they were."""
    made = _Reader(record, events).read()
    if not any(span.kind == "effect" and span.name.startswith(PERMIT) for span in made):
        return made
    calls = [receipt for receipt in receipts if receipt.fn == REPLY and receipt.stage is Stage.DONE]
    return _with_calls(record, made, calls)


def _with_calls(record: Record, made: Sequence[Span], calls: Sequence[Receipt]) -> list[Span]:
    """Model calls hang under the effect that permitted them, which lasts until the model has answered.

    Both are complete when their step is: until then nobody knows whether the answer is still to come.
    """
    steps = {span.span_id: span for span in made if span.kind == "step"}
    found: list[Span] = []
    for span in made:
        if span.kind != "effect" or not span.name.startswith(PERMIT):
            found.append(span)
            continue
        step = steps.get(span.parent_id)
        if step is None:
            continue
        name = span.name.removeprefix(PERMIT).partition(AGAIN)[0]
        mine = [r for r in calls if r.name == name and span.start <= r.at + 1e-6 and r.at <= step.end + 1e-6]
        answers = [_call(record, receipt, parse(receipt.value), span, step.seq) for receipt in mine]
        found.append(span._replace(name=name, end=max([span.end, *(call.end for call in answers)]), seq=step.seq))
        found += answers
    return found


def _call(record: Record, receipt: Receipt, row: Mapping[str, Any], permit: Span, seq: int) -> Span:
    began = float(row.get("began", receipt.at))
    ended = max(float(row.get("ended", began)), began)
    # A call is timed by its worker's clock, its permit by the ledger's: the call keeps its length and begins within.
    late = max(0.0, permit.start - began)
    began, ended = began + late, ended + late
    usage = row.get("usage") or {}
    about = {
        "quire.record_id": record.record_id,
        "quire.workflow": record.workflow,
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": str(row.get("model", "")),
        "gen_ai.usage.input_tokens": int(usage.get("in", 0) or 0),
        "gen_ai.usage.output_tokens": int(usage.get("out", 0) or 0),
        "quire.usd": float(row.get("usd") or 0.0),
    }
    error = row.get("error")
    text = f"{error.get('type')}: {error.get('text')}" if isinstance(error, dict) else ""
    made = span_id(record.record_id, "model", receipt.key)
    outcome = "error" if text else "done"
    name = f"chat {row.get('model', '')}".strip()
    return Span("model", made, permit.span_id, name, began, ended, outcome, about, text, seq)
