"""Metrics: what spans add up to, how the ledger stands, and both in the format that Prometheus reads. Pure.

Counters begin with the process that counts, as Prometheus expects of them; gauges are the ledger's at the moment of
the question. Labels are names of workflows, steps, effects and models, never ids: their number stays small.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from quire.explain.spans import Span
from quire.model.change import Count, Standing
from quire.model.side import EVERYWHERE, Worker
from quire.rules import returning

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 7200.0)

Labels = tuple[tuple[str, str], ...]


class Sample(NamedTuple):
    """One thing to count or to measure."""

    name: str
    value: float
    labels: Labels


class _Histogram:
    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.sum = 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(BUCKETS, value)] += 1
        self.sum += value


#: name → (kind, help)
KINDS = {
    "quire_runs_total": ("counter", "Runs that ended, by what they came to."),
    "quire_records_ended_total": ("counter", "Records that ended, by how."),
    "quire_effects_total": ("counter", "Effects that ended, by how."),
    "quire_model_calls_total": ("counter", "Calls of models."),
    "quire_model_tokens_total": ("counter", "Tokens of model calls, in and out."),
    "quire_model_usd_total": ("counter", "What model calls cost, as far as prices are known."),
    "quire_step_seconds": ("histogram", "How long a step ran."),
    "quire_effect_seconds": ("histogram", "How long an effect took."),
    "quire_model_seconds": ("histogram", "How long a model took to answer."),
    "quire_records": ("gauge", "Records, by workflow, step and status."),
    "quire_workers": ("gauge", "Workers that live."),
    "quire_effects_under_way": ("gauge", "Effects that have begun and have no receipt."),
    "quire_halted": ("gauge", "1: the scope is halted."),
    "quire_paused": ("gauge", "1: the scope is paused."),
}


def samples(span: Span) -> Iterator[Sample]:
    """What a span adds."""
    workflow = ("workflow", str(span.attributes.get("quire.workflow", "")))
    length = span.end - span.start
    match span.kind:
        case "run":
            yield Sample("quire_runs_total", 1, (workflow, ("outcome", span.outcome)))
        case "record":
            yield Sample("quire_records_ended_total", 1, (workflow, ("outcome", span.outcome)))
        case "step":
            yield Sample("quire_step_seconds", length, (workflow, ("step", span.name)))
        case "effect":
            # Agents number what they do; a label that grows with the work would fill the memory of whoever keeps it.
            name = ("effect", span.name.partition(" ")[0].partition("/")[0][:80])
            yield Sample("quire_effects_total", 1, (workflow, name, ("outcome", span.outcome)))
            yield Sample("quire_effect_seconds", length, (workflow, name))
        case "model":
            model = ("model", str(span.attributes.get("gen_ai.request.model", "")))
            yield Sample("quire_model_calls_total", 1, (workflow, model, ("outcome", span.outcome)))
            yield Sample("quire_model_seconds", length, (workflow, model))
            for way, key in (("in", "input"), ("out", "output")):
                tokens = float(span.attributes.get(f"gen_ai.usage.{key}_tokens", 0))
                yield Sample("quire_model_tokens_total", tokens, (workflow, model, ("way", way)))
            yield Sample("quire_model_usd_total", float(span.attributes.get("quire.usd", 0.0)), (workflow, model))


def standing_samples(counts: Sequence[Count], live: Sequence[Worker], standing: Standing) -> Iterator[Sample]:
    """How the ledger stands."""
    for count in counts:
        labels = (("workflow", count.workflow), ("step", count.step), ("status", str(count.status)))
        yield Sample("quire_records", count.count, labels)
    yield Sample("quire_workers", len(live), ())
    yield Sample("quire_effects_under_way", len(standing.under_way), ())
    for control in standing.controls:
        if returning.is_one(control):
            continue
        scope = (("scope", "all" if control.scope == EVERYWHERE else control.scope),)
        yield Sample("quire_halted", int(control.halted), scope)
        yield Sample("quire_paused", int(control.paused), scope)


class Meter:
    """Adds up."""

    def __init__(self) -> None:
        self._counters: Counter[tuple[str, Labels]] = Counter()
        self._histograms: dict[tuple[str, Labels], _Histogram] = {}

    def add(self, span: Span) -> None:
        for sample in samples(span):
            if KINDS[sample.name][0] == "histogram":
                self._histograms.setdefault((sample.name, sample.labels), _Histogram()).add(sample.value)
            else:
                self._counters[sample.name, sample.labels] += sample.value  # type: ignore[assignment]

    def text(self, gauges: Iterable[Sample]) -> str:
        """Everything, as Prometheus reads it."""
        lines: dict[str, list[str]] = {}
        for (name, labels), value in self._counters.items():
            lines.setdefault(name, []).append(f"{name}{_labels(labels)} {value:g}")
        for sample in gauges:
            lines.setdefault(sample.name, []).append(f"{sample.name}{_labels(sample.labels)} {sample.value:g}")
        for (name, labels), histogram in self._histograms.items():
            below = 0
            mine = lines.setdefault(name, [])
            for bound, count in zip((*BUCKETS, float("inf")), histogram.counts, strict=True):
                below += count
                edge = "+Inf" if bound == float("inf") else f"{bound:g}"
                mine.append(f"{name}_bucket{_labels((*labels, ('le', edge)))} {below}")
            mine += [f"{name}_sum{_labels(labels)} {histogram.sum:.9g}", f"{name}_count{_labels(labels)} {below}"]
        made = []
        for name, (kind, what) in KINDS.items():
            if name in lines:
                made += [f"# HELP {name} {what}", f"# TYPE {name} {kind}", *lines[name]]
        return "\n".join(made) + "\n"


def _labels(labels: Labels) -> str:
    def quoted(value: str) -> str:
        return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

    return "{" + ",".join(f'{name}="{quoted(value)}"' for name, value in labels) + "}" if labels else ""
